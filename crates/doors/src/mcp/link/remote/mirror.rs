//! Headers that mirror a message's body, so that whatever stands between can route without reading it.

use super::{METHOD, NAME, PARAM};
use crate::mcp::members::Members;
use crate::mcp::message::{Message, text};
use crate::mcp::tools::Definition;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};

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
    for (header, argument) in definition.map_or(&[][..], |definition| &definition.headers) {
        let Some(written) = arguments.get(argument).filter(|written| *written != "null") else { continue };
        let said = arguments.text(argument).map_or_else(|| written.to_owned(), |text| text.into_owned());
        if let Ok(header) = format!("{PARAM}{}", header.to_ascii_lowercase()).parse::<HeaderName>() {
            headers.insert(header, value(&said));
        }
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
    use bytes::Bytes;

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

    #[test]
    fn other_methods_mirror_what_they_are_about() {
        let read = mirrored(r#"{"id":1,"method":"resources/read","params":{"uri":"file:///a b "}}"#, None);
        assert_eq!(read[1], ("mcp-name".into(), "=?base64?ZmlsZTovLy9hIGIg?=".into()));
        assert_eq!(mirrored(r#"{"id":1,"method":"tools/list"}"#, None).len(), 1);
        assert!(mirrored(r#"{"id":1,"result":{}}"#, None).is_empty());
    }
}
