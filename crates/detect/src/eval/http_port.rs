//! Calls as HTTP requests.

use super::port::{AgentCall, Heard, PATIENCE, Port, failure};
use super::world::wait_until;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Sends HTTP requests below an address.
#[derive(Debug)]
pub struct HttpPort {
    pub address: SocketAddr,
    pub host: String,
    /// The path before the tool's name.
    pub base: String,
    /// A header for each call, in whose value `{step}` stands for the agent's name of the step.
    pub header: Option<(String, String)>,
}

impl Port for HttpPort {
    fn call(&self, call: &AgentCall<'_>) -> (Heard, Option<Value>) {
        match self.exchange(call) {
            Ok((status, body)) => {
                let value = serde_json::from_str(&body).ok();
                if (200..300).contains(&status) {
                    (Heard::Done, value)
                } else {
                    (failure(format!("{status} {body}")), None)
                }
            }
            Err(error) => (Heard::Unknown(error.to_string()), None),
        }
    }

    /// A client that is stopped closes its connection.
    fn call_and_stop(&self, call: &AgentCall<'_>, is_time: &dyn Fn() -> bool) {
        if let Ok(stream) = self.send(call) {
            wait_until(is_time);
            drop(stream);
        }
    }
}

impl HttpPort {
    fn send(&self, call: &AgentCall<'_>) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (method, path) = call.tool.split_once(" /").unwrap_or(("POST", call.tool));
        let is_read = call.tool.starts_with("list_");
        // A read asks with its arguments as a query.
        let (target, body) = match is_read {
            true => (format!("GET {}/{path}?{}", self.base, query(call.args)), String::new()),
            false => (format!("{method} {}/{path}", self.base), body(call.args)),
        };
        let mut head = format!(
            "{target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n",
            self.host
        );
        if let Some(reason) = call.again {
            head.push_str(&format!("Semel-Again: {reason}\r\n"));
        }
        if let Some((name, value)) = &self.header {
            head.push_str(&format!("{name}: {}\r\n", value.replace("{step}", call.step)));
        }
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
        Ok(stream)
    }

    fn exchange(&self, call: &AgentCall<'_>) -> io::Result<(u16, String)> {
        let mut answer = String::new();
        self.send(call)?.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("the connection ended without an answer"))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        // A chunked body has its sizes on lines of their own; the document is what stands between braces.
        let document = body.find('{').zip(body.rfind('}')).map_or(body, |(from, to)| &body[from..=to]);
        Ok((status, document.to_owned()))
    }
}

/// A request without arguments has no body.
fn body(args: &Value) -> String {
    if args.as_object().is_some_and(|members| members.is_empty()) { String::new() } else { args.to_string() }
}

fn query(args: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let members = args.as_object().into_iter().flatten();
    members.map(|(name, value)| format!("{name}={}", encoded(&text(value)))).collect::<Vec<_>>().join("&")
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
