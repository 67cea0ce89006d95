//! `semel serve` before an API of our own.

use super::api::Api;
use crate::home::Home;
use crate::serve::served::{Answer, Asked, Served, TOKEN};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[derive(Debug)]
pub struct Stage {
    pub home: Home,
    pub api: Api,
    pub served: Served,
    policy: String,
}

pub const JSON: &str = "Content-Type: application/json\r\n";
pub const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

impl Stage {
    /// An API called `api`, whose actions are called `bank`, under these further settings and rules.
    pub fn with(settings: &str) -> Stage {
        Stage::in_mode("guard", settings)
    }

    pub fn in_mode(mode: &str, settings: &str) -> Stage {
        let (home, api) = (Home::new(), Api::start());
        let (own, rules) = settings
            .split_once("[[rule]]")
            .map_or((settings, String::new()), |(own, rules)| (own, format!("[[rule]]{rules}")));
        let rules = rules.replace("{API}", &api.url());
        let policy = format!(
            "mode = \"{mode}\"\n[upstream.api]\nurl = \"{}\"\nservice = \"bank\"\n{own}\n{rules}",
            api.url()
        );
        let served = Served::start(&home, &policy);
        Stage { home, api, served, policy }
    }

    /// An API that a preset knows.
    pub fn known(preset: &str) -> Stage {
        Stage::known_below(preset, &[("api", "")])
    }

    /// The same, under each of these names below another path.
    pub fn known_below(preset: &str, names: &[(&str, &str)]) -> Stage {
        let (home, api) = (Home::new(), Api::start());
        let upstream = |(name, path): &(&str, &str)| {
            format!("[upstream.{name}]\nurl = \"{}{path}\"\npreset = \"{preset}\"\n", api.url())
        };
        let policy: String = names.iter().map(upstream).collect();
        let served = Served::start(&home, &policy);
        Stage { home, api, served, policy }
    }

    pub fn plain() -> Stage {
        Stage::with("")
    }

    /// Ends semel and starts it again on the same ledger.
    pub fn restart(&mut self) {
        assert!(self.served.stop().success());
        self.restart_after_stop();
    }

    /// Starts it again on the same ledger.
    pub fn restart_after_stop(&mut self) {
        self.served = Served::start(&self.home, &self.policy);
    }

    /// Kills semel and starts it again.
    pub fn crash(&mut self) {
        self.served.kill();
        self.served = Served::start(&self.home, &self.policy);
    }

    /// Ends semel and starts it again, to fail where it is told to.
    pub fn restart_failing(&mut self, failpoints: &str) {
        assert!(self.served.stop().success());
        self.served = Served::start_with(&self.home, &self.policy, &[("SEMEL_FAILPOINTS", failpoints)]);
    }

    /// A second process on the same ledger.
    pub fn second(&self) -> Served {
        Served::start(&self.home, &self.policy)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Asked {
        ask(&self.served, method, path, headers, body)
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.ask(method, path, headers, body).answer()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    /// A JSON body under a key.
    pub fn charge(&self, key: &str, body: &str) -> Answer {
        self.send("POST", "/charges", &format!("{JSON}Idempotency-Key: {key}\r\n"), body)
    }
}

pub fn ask(served: &Served, method: &str, path: &str, headers: &str, body: &str) -> Asked {
    ask_of(served, "api", (method, path), headers, body)
}

/// Of the upstream of that name.
pub fn ask_of(served: &Served, name: &str, (method, path): (&str, &str), headers: &str, body: &str) -> Asked {
    let bare = body.is_empty() && method == "POST" && !headers.contains("Content-Length");
    let length = if bare { "Content-Length: 0\r\n" } else { "" };
    served.ask_raw(
        &format!("{method} /p/{name}{path} HTTP/1.1"),
        &format!("Semel-Token: {TOKEN}\r\n{length}{headers}"),
        body,
    )
}

/// A header of an answer.
pub fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Status, outcome and code, in short.
pub fn became(answer: &Answer) -> (u16, String, String) {
    let outcome = header(answer, "semel-outcome").unwrap_or("none").to_owned();
    let document: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    (answer.status, outcome, document["code"].as_str().unwrap_or_default().to_owned())
}

/// One connection that is kept: each request waits for the answer before it.
#[derive(Debug)]
pub struct Line {
    reader: BufReader<TcpStream>,
}

impl Line {
    pub fn to(served: &Served) -> Line {
        let stream = TcpStream::connect(&served.address).expect("semel listens");
        stream.set_nodelay(true).expect("it is open");
        Line { reader: BufReader::new(stream) }
    }

    pub fn write(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).expect("it is taken");
    }

    pub fn post(&mut self, path: &str, headers: &str, body: &str) -> Answer {
        self.write_post(path, headers, body);
        self.answer()
    }

    /// What the body of an answer begins with that has not ended. It is waited for, and not for ever.
    pub fn post_and_read(&mut self, path: &str, headers: &str, body: &str, bytes: usize) -> String {
        self.write_post(path, headers, body);
        self.reader.get_mut().set_read_timeout(Some(Duration::from_secs(20))).expect("it is open");
        self.head();
        let mut read = vec![0; bytes];
        self.reader.read_exact(&mut read).expect("a beginning");
        String::from_utf8(read).expect("text")
    }

    fn write_post(&mut self, path: &str, headers: &str, body: &str) {
        let length = body.len();
        self.write(&format!(
            "POST /p/api{path} HTTP/1.1\r\nHost: localhost\r\nSemel-Token: {TOKEN}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ));
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.reader.read_line(&mut head).expect("a head") > 0, "the connection ended: {head:?}");
        }
        head
    }

    /// The next answer on the line, which has a length.
    pub fn answer(&mut self) -> Answer {
        let head = self.head();
        let mut answer = Answer { status: head[9..12].parse().expect("a status"), head, body: String::new() };
        let length = header(&answer, "content-length").map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a whole body");
        answer.body = String::from_utf8(body).expect("text");
        answer
    }

    /// Whether the other side has closed it.
    pub fn is_closed(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}
