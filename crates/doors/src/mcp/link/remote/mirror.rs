//! Headers that mirror a message's body, so that whatever stands between can route without reading it.

use super::headers::{METHOD, NAME, PARAM};
use crate::mcp::message::{Message, text};
use crate::mcp::tools::{Definition, Tools};
use crate::wire::members::Members;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// A client's call, which the client has mirrored itself, and what the tools of its server mirror.
#[derive(Debug)]
pub struct MirroredCall {
    params: Bytes,
    tools: Arc<Tools>,
}

impl MirroredCall {
    pub fn new(message: &Message, tools: Arc<Tools>) -> MirroredCall {
        MirroredCall { params: message.params.clone().unwrap_or_default(), tools }
    }
}

/// From what a client has mirrored to what goes out on its behalf. Of its own call only what is not as it sent it is
/// mirrored anew: where its headers and its body disagree, that is for the server to see.
pub fn on_behalf(headers: &mut HeaderMap, message: &Message, call: Option<&MirroredCall>) {
    let params = message.params.as_ref().map_or("{}", text);
    let params = Members::parse(params).unwrap_or_default();
    let tool = params.text("name").filter(|_| message.method() == Some("tools/call"));
    let definition = call.zip(tool.as_ref()).and_then(|(call, tool)| call.tools.get(tool));
    let came = call.and_then(|call| Members::parse(text(&call.params)));
    match came.filter(|came| tool.is_some() && came.text("name") == tool) {
        Some(came) => {
            let (came, goes) = (came.object("arguments"), params.object("arguments"));
            for (header, way) in definition.map_or(&[][..], |definition| &definition.headers) {
                if said(&came, way) != said(&goes, way) {
                    set(headers, header, said(&goes, way));
                }
            }
        }
        None => {
            clear(headers);
            write(headers, message, definition.map(Arc::as_ref));
        }
    }
}

/// Takes out what another message's body said.
pub fn clear(headers: &mut HeaderMap) {
    let mirrored: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(PARAM)).cloned().collect();
    for name in mirrored.iter().chain([&METHOD, &NAME]) {
        headers.remove(name);
    }
}

/// Writes method and name, and the arguments that the tool's definition mirrors.
pub fn write(headers: &mut HeaderMap, message: &Message, definition: Option<&Definition>) {
    let Some(method) = message.method() else { return };
    headers.insert(METHOD, value(method));
    let params = message.params.as_ref().map_or("{}", text);
    let params = Members::parse(params).unwrap_or_default();
    let name = match method {
        "tools/call" | "prompts/get" => params.text("name"),
        "resources/read" => params.text("uri"),
        _ => None,
    };
    if let Some(name) = name {
        headers.insert(NAME, value(&name));
    }
    let arguments = params.object("arguments");
    for (header, way) in definition.map_or(&[][..], |definition| &definition.headers) {
        set(headers, header, said(&arguments, way));
    }
}

fn set(headers: &mut HeaderMap, header: &str, said: Option<String>) {
    let Ok(header) = format!("{PARAM}{}", header.to_ascii_lowercase()).parse::<HeaderName>() else { return };
    match said {
        Some(said) => drop(headers.insert(header, value(&said))),
        None => drop(headers.remove(header)),
    }
}

/// The text of an argument; `None` if there is none, or nothing that can be mirrored.
fn said(arguments: &Members<'_>, way: &[String]) -> Option<String> {
    match way {
        [] => None,
        [name] => {
            let written = arguments.get(name)?;
            let is_plain = written != "null" && !written.starts_with(['{', '[']);
            let text = || arguments.text(name).map_or_else(|| written.to_owned(), |text| text.into_owned());
            is_plain.then(text)
        }
        [name, within @ ..] => said(&arguments.object(name), within),
    }
}

/// As it is where a header can carry it, else in the marked base64 form.
fn value(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\t');
    let plain = plain && text.trim() == text && !text.is_empty() && !text.starts_with("=?base64?");
    let written = if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    HeaderValue::try_from(written).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn mirrored(body: &str, definition: Option<&str>) -> Vec<(String, String)> {
        let message = Message::parse(Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let definition = definition.and_then(Definition::read);
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-old", HeaderValue::from_static("x"));
        clear(&mut headers);
        write(&mut headers, &message, definition.as_ref());
        let mut list: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        list.sort();
        list
    }

    #[test]
    fn a_call_is_mirrored_with_the_arguments_that_its_tool_names() {
        let tool = r#"{"name":"t","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},"n":{"x-mcp-header":"N"},"gone":{"x-mcp-header":"Gone"},"b":{"x-mcp-header":"B"}}}}"#;
        let body = r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"süd","n":42,"b":true,"x":1}}}"#;
        let wanted = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "t"),
            ("mcp-param-b", "true"),
            ("mcp-param-n", "42"),
            ("mcp-param-region", "=?base64?c8O8ZA==?="),
        ];
        let wanted: Vec<_> = wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(mirrored(body, Some(tool)), wanted);
    }

    fn calling(tool: &str, arguments: Value) -> Message {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"id": 1, "method": "tools/call", "params": params});
        Message::parse(Bytes::from(call.to_string())).unwrap()
    }

    #[test]
    fn of_a_clients_own_call_what_semel_changed_is_mirrored_anew_and_nothing_else() {
        let marked = |name: &str| json!({"x-mcp-header": name});
        let within = json!({"properties": {"zone": marked("Zone")}});
        let charge =
            json!({"key": marked("Key"), "own": marked("Own"), "region": marked("Region"), "at": within});
        let tools = json!([{"name": "charge", "inputSchema": {"properties": charge}},
            {"name": "find", "inputSchema": {"properties": {"id": marked("Id")}}}]);
        let mut known = Tools::default();
        known.add_page(&json!({"tools": tools}).to_string());
        let at = json!({"zone": "z"});
        let came = calling("charge", json!({"key": "mine", "own": 1, "region": "eu", "at": at}));
        let call = MirroredCall::new(&came, Arc::new(known));
        let headers = |message: &Message| {
            let mut headers = HeaderMap::new();
            let sent = ["method=tools/call", "name=charge", "param-key=mine", "param-own=1", "param-other=o"];
            // What it says of its region is not what stands in its body.
            for (name, said) in
                sent.iter().chain(&["param-region=us", "param-zone=z"]).filter_map(|s| s.split_once('='))
            {
                let name: HeaderName = format!("mcp-{name}").parse().unwrap();
                headers.insert(name, HeaderValue::from_static(said));
            }
            on_behalf(&mut headers, message, Some(&call));
            let list = headers.iter().map(|(name, value)| format!("{name}={}", value.to_str().unwrap()));
            let mut list: Vec<String> =
                list.filter_map(|line| Some(line.strip_prefix("mcp-")?.to_owned())).collect();
            list.sort();
            list
        };
        let as_it_came = headers(&came);
        assert_eq!(as_it_came.len(), 7, "{as_it_came:?}");
        let changed = calling("charge", json!({"key": "semel's", "region": "eu", "at": at}));
        let wanted = [
            "method=tools/call",
            "name=charge",
            "param-key=semel's",
            "param-other=o",
            "param-region=us",
            "param-zone=z",
        ];
        assert_eq!(headers(&changed), wanted);
        let probe = calling("find", json!({"id": 7}));
        assert_eq!(headers(&probe), ["method=tools/call", "name=find", "param-id=7"]);
    }

    #[test]
    fn other_methods_mirror_what_they_are_about() {
        let read = mirrored(r#"{"id":1,"method":"resources/read","params":{"uri":"file:///a b "}}"#, None);
        assert_eq!(read[1], ("mcp-name".into(), "=?base64?ZmlsZTovLy9hIGIg?=".into()));
        assert_eq!(mirrored(r#"{"id":1,"method":"tools/list"}"#, None).len(), 1);
        assert!(mirrored(r#"{"id":1,"result":{}}"#, None).is_empty());
    }
}
