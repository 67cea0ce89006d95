//! `multipart/form-data` by its parts: the boundary is another one every time the same form is sent.

use super::arguments::sealed;
use semel_core::json::{Json, Object};

/// More parts than this were generated to do harm.
const PARTS_MAX: usize = 1_000;

/// A part's headers are a few lines.
const PART_HEADER_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("names no boundary")]
    NoBoundary,
    #[error("does not begin and end with its boundary")]
    Unbounded,
    #[error("has a part without a name")]
    Unnamed,
    #[error("has a part that says twice what it is")]
    Twice,
    #[error("has more than {PARTS_MAX} parts")]
    TooMany,
}

/// A form, part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Each part under its name: a text, or what is known of a file. Parts of one name are a list.
    pub values: Json,
    /// The types of texts that are more than plain text, under the same names.
    pub types: Option<Json>,
}

pub fn parts(boundary: &str, body: &[u8]) -> Result<Parts, Broken> {
    if boundary.is_empty() || boundary.len() > 70 {
        return Err(Broken::NoBoundary);
    }
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = match body.strip_prefix(&delimiter.as_bytes()[2..]) {
        Some(rest) => rest,
        // What stands before the first boundary is for readers that know no multipart.
        None => &body[find(body, delimiter.as_bytes()).ok_or(Broken::Unbounded)? + delimiter.len()..],
    };
    let (mut all, mut types) = (Object::new(), Object::new());
    for _ in 0..PARTS_MAX {
        if rest.starts_with(b"--") {
            let plain = Json::str("");
            let told = types.iter().filter(|(_, kind)| match kind {
                Json::Array(kinds) => kinds.iter().any(|kind| *kind != plain),
                kind => **kind != plain,
            });
            let told: Object = told.map(|(name, kind)| (name.to_owned(), kind.clone())).collect();
            let types = (!told.is_empty()).then_some(Json::Object(told));
            return Ok(Parts { values: Json::Object(all), types });
        }
        // White space may follow a boundary on its line.
        let line = find(rest, b"\r\n").ok_or(Broken::Unbounded)?;
        if !rest[..line].iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return Err(Broken::Unbounded);
        }
        rest = &rest[line..];
        let end = find(rest, delimiter.as_bytes()).ok_or(Broken::Unbounded)?;
        let Part { name, value, kind } = part(&rest[..end])?;
        put(&mut types, name.clone(), Json::String(kind));
        put(&mut all, name, value);
        rest = &rest[end + delimiter.len()..];
    }
    Err(Broken::TooMany)
}

struct Part {
    name: String,
    value: Json,
    /// Of a text; empty if that is plain.
    kind: String,
}

/// One part, from the line break before its headers.
fn part(text: &[u8]) -> Result<Part, Broken> {
    let head = find(text, b"\r\n\r\n").filter(|end| *end <= PART_HEADER_BYTES_MAX).ok_or(Broken::Unnamed)?;
    let content = &text[head + 4..];
    let head = std::str::from_utf8(&text[..head]).map_err(|_| Broken::Unnamed)?;
    let header = |wanted: &str| {
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        match (found.next(), found.next()) {
            (found, None) => Ok(found.map_or("", |(_, value)| value.trim())),
            // Which of them a server goes by is not known.
            (_, Some(_)) => Err(Broken::Twice),
        }
    };
    let disposition = header("content-disposition")?;
    let name = parameter(disposition, "name")?.ok_or(Broken::Unnamed)?;
    let file = match (parameter(disposition, "filename")?, parameter(disposition, "filename*")?) {
        (Some(plain), Some(extended)) => Some(format!("{plain}\n{extended}")),
        (plain, extended) => plain.or(extended),
    };
    let kind = header("content-type")?;
    let (value, kind) = match (file, std::str::from_utf8(content)) {
        (None, Ok(text)) => (Json::str(text), told(kind)),
        (file, _) => {
            let mut sealed = sealed(kind, content);
            if let (Json::Object(known), Some(file)) = (&mut sealed, file) {
                known.insert("filename", Json::String(file));
            }
            (sealed, String::new())
        }
    };
    Ok(Part { name, value, kind })
}

/// The type of a text as far as it says something: clients write `text/plain` or nothing, and mean the same.
fn told(kind: &str) -> String {
    let kind: String = kind.to_ascii_lowercase().split_whitespace().collect();
    match kind.as_str() {
        "text/plain" | "text/plain;charset=utf-8" | "text/plain;charset=us-ascii" => String::new(),
        _ => kind,
    }
}

/// A parameter of a disposition, quoted or bare.
fn parameter(disposition: &str, wanted: &str) -> Result<Option<String>, Broken> {
    let mut found = None;
    let mut rest = disposition;
    while let Some((name, value)) = rest.split_once(';').and_then(|(_, after)| after.split_once('=')) {
        let value = value.trim_start();
        let (value, beyond) = match value.strip_prefix('"') {
            Some(quoted) => {
                let end = end_of_quote(quoted).ok_or(Broken::Unnamed)?;
                (unescaped(&quoted[..end]), &quoted[end + 1..])
            }
            None => {
                let end = value.find(';').unwrap_or(value.len());
                (value[..end].trim().to_owned(), &value[end..])
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) && found.replace(value).is_some() {
            return Err(Broken::Twice);
        }
        rest = beyond;
    }
    Ok(found)
}

fn end_of_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends.then_some(at)
    })
}

fn unescaped(text: &str) -> String {
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

fn put(all: &mut Object, name: String, value: Json) {
    match all.get_mut(&name) {
        None => drop(all.insert(name, value)),
        Some(Json::Array(values)) => values.push(value),
        Some(first) => {
            let before = std::mem::replace(first, Json::Null);
            *first = Json::Array(vec![before, value]);
        }
    }
}

/// Where `needle` first stands.
fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = hay[from..].iter().position(|byte| *byte == first) {
        let at = from + at;
        if hay[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(boundary: &str) -> Vec<u8> {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nann\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".txt\"\r\nContent-Type: text/plain\r\n\r\n\
             abc\r\n--{boundary}\r\ncontent-disposition: form-data; name=tag\r\n\r\n1\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=tag\r\n\r\n2\r\n--{boundary}--\r\n"
        )
        .into_bytes()
    }

    #[test]
    fn parts_count_and_the_boundary_does_not() {
        let read = parts("xyz", &form("xyz")).unwrap();
        assert_eq!(read, parts("another", &form("another")).unwrap());
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            read.values.canonical(),
            format!(
                r#"{{"file":{{"bytes":3,"filename":"a \"b\".txt","sha256":"{digest}","type":"text/plain"}},"tag":["1","2"],"to":"ann"}}"#
            )
        );
    }

    #[test]
    fn the_type_of_a_text_is_told_where_it_is_not_plain() {
        let read = |kinds: [&str; 2]| {
            let part =
                |kind: &str| format!("--b\r\nContent-Disposition: form-data; name=a\r\n{kind}\r\n{{}}\r\n");
            let form = kinds.map(part).concat() + "--b--";
            parts("b", form.as_bytes()).unwrap().types.map(|types| types.canonical())
        };
        let json = "Content-Type: application/JSON\r\n";
        assert_eq!(read(["", "Content-Type: text/plain; charset=UTF-8\r\n"]), None);
        assert_eq!(read([json, ""]).as_deref(), Some(r#"{"a":["application/json",""]}"#));
        assert_eq!(read(["", json]).as_deref(), Some(r#"{"a":["","application/json"]}"#));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let whole = form("xyz");
        assert_eq!(parts("", &whole), Err(Broken::NoBoundary));
        assert_eq!(parts("other", &whole), Err(Broken::Unbounded));
        for cut in 1..whole.len() - 4 {
            assert!(parts("xyz", &whole[..cut]).is_err(), "{cut}");
        }
        let unnamed = b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--";
        assert_eq!(parts("b", unnamed), Err(Broken::Unnamed));
        let many = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(PARTS_MAX + 1);
        assert_eq!(parts("b", format!("{many}--b--").as_bytes()), Err(Broken::TooMany));
    }
}
