//! `multipart/form-data` by its parts: the boundary is another one every time the same form is sent.

use super::broken_multipart::{BrokenMultipart, MULTIPART_PARTS_MAX};
use super::content_type::{self, Charset, is_token};
use super::disposition::Disposition;
use super::opaque::sealed;
use semel_core::json::{Json, Object};

/// A part's headers are a few lines.
const PART_HEADER_BYTES_MAX: usize = 8 * 1024;

/// A form, part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormParts {
    /// Each part under its name: a text, or what is known of a file. Parts of one name are a list.
    pub values: Json,
    /// The types of texts that are more than plain text, under the same names.
    pub types: Option<Json>,
}

/// The parts, if every reader would find the same. Some end lines with a bare LF or CR, and some take the boundary for
/// one wherever it stands; so it may stand nowhere but where all of them look for it.
pub fn parts(boundary: &str, charset: Charset, body: &[u8]) -> Result<FormParts, BrokenMultipart> {
    let mark = format!("--{boundary}");
    let next = |from: usize| Delimiter::find(mark.as_bytes(), body, from);
    let mut before = next(0)?.ok_or(BrokenMultipart::Unbounded)?;
    is_idle(&body[..before.start])?;
    let (mut all, mut types) = (Object::new(), Object::new());
    for _ in 0..=MULTIPART_PARTS_MAX {
        if before.closes {
            let rest = &body[before.end..];
            if find(rest, mark.as_bytes()).is_some() {
                return Err(BrokenMultipart::Inside);
            }
            is_idle(rest)?;
            return Ok(FormParts { values: Json::Object(all), types: told_of(&types) });
        }
        let after = next(before.end)?.ok_or(BrokenMultipart::Unbounded)?;
        let FormPart { name, value, kind } = part(charset, &body[before.end..after.start])?;
        put(&mut types, name.clone(), Json::String(kind));
        put(&mut all, name, value);
        before = after;
    }
    Err(BrokenMultipart::TooMany)
}

/// A line with the boundary, from the line break before it.
struct Delimiter {
    start: usize,
    /// Where the line break behind it stands.
    end: usize,
    closes: bool,
}

impl Delimiter {
    fn find(mark: &[u8], body: &[u8], from: usize) -> Result<Option<Delimiter>, BrokenMultipart> {
        let Some(at) = find(&body[from..], mark).map(|at| from + at) else { return Ok(None) };
        let start = match at {
            0 => 0,
            _ if body[..at].ends_with(b"\r\n") => at - 2,
            _ => return Err(BrokenMultipart::Inside),
        };
        let behind = &body[at + mark.len()..];
        if behind.starts_with(b"\r\n") {
            return Ok(Some(Delimiter { start, end: at + mark.len(), closes: false }));
        }
        let rest = behind.strip_prefix(b"--").ok_or(BrokenMultipart::Inside)?;
        let line = rest.trim_ascii_start();
        let space = &rest[..rest.len() - line.len()];
        // Nothing, or white space with a line break.
        if !line.is_empty() && !space.contains(&b'\n') {
            return Err(BrokenMultipart::Inside);
        }
        Ok(Some(Delimiter { start, end: at + mark.len() + 2, closes: true }))
    }
}

/// The text before the first boundary and behind the last is for readers that know no multipart. Some look for parts
/// there all the same.
fn is_idle(text: &[u8]) -> Result<(), BrokenMultipart> {
    if text.contains(&b':') { Err(BrokenMultipart::Beside) } else { Ok(()) }
}

/// Which texts say that they are more than plain.
fn told_of(types: &Object) -> Option<Json> {
    let plain = Json::str("");
    let told = types.iter().filter(|(_, kind)| match kind {
        Json::Array(kinds) => kinds.iter().any(|kind| *kind != plain),
        kind => **kind != plain,
    });
    let told: Object = told.map(|(name, kind)| (name.to_owned(), kind.clone())).collect();
    (!told.is_empty()).then_some(Json::Object(told))
}

struct FormPart {
    name: String,
    value: Json,
    /// Of a text; empty if that is plain.
    kind: String,
}

/// One part, from the line break before its headers.
fn part(charset: Charset, text: &[u8]) -> Result<FormPart, BrokenMultipart> {
    let head = find(text, b"\r\n\r\n")
        .filter(|end| *end <= PART_HEADER_BYTES_MAX)
        .ok_or(BrokenMultipart::Unnamed)?;
    let (head, content) = (&text[..head], &text[head + 4..]);
    if !charset.agrees_on(head) {
        return Err(BrokenMultipart::Charset);
    }
    let head = std::str::from_utf8(head).map_err(|_| BrokenMultipart::Headers)?;
    let headers = head.split("\r\n").skip(1).map(header).collect::<Result<Vec<_>, _>>()?;
    let header = |wanted: &str| {
        let mut found = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        match (found.next(), found.next()) {
            (found, None) => Ok(found.map_or("", |(_, value)| *value)),
            // Which of them a server goes by is not known.
            (_, Some(_)) => Err(BrokenMultipart::Twice),
        }
    };
    let Disposition { name, file } = Disposition::read(header("content-disposition")?)?;
    let kind = header("content-type")?;
    let encoding = encoding(header("content-transfer-encoding")?);
    let (value, kind) = match (file, std::str::from_utf8(content)) {
        // Some readers decode it, and most do not.
        (None, _) if encoding.is_some() => return Err(BrokenMultipart::Encoded),
        (None, _) if !(charset.agrees_on(content) && is_in_utf8(kind, content)) => {
            return Err(BrokenMultipart::Charset);
        }
        // This part names the encoding of all the others.
        (None, Ok(text)) if name == "_charset_" && !text.eq_ignore_ascii_case("utf-8") => {
            return Err(BrokenMultipart::Charset);
        }
        (None, Ok(text)) => (Json::str(text), told(kind)),
        (file, _) => {
            let mut sealed = sealed(kind, content);
            if let Json::Object(known) = &mut sealed {
                let further = [("filename", file), ("encoding", encoding)];
                for (name, value) in further.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                    known.insert(name, Json::String(value));
                }
            }
            (sealed, String::new())
        }
    };
    Ok(FormPart { name, value, kind })
}

/// One header. A line that goes on in the next one, or ends in another way, would be two to some.
fn header(line: &str) -> Result<(&str, &str), BrokenMultipart> {
    let is_control = |character: char| character.is_control() && character != '\t';
    match line.split_once(':') {
        Some((name, value)) if is_token(name) && !value.contains(is_control) => Ok((name, value.trim())),
        _ => Err(BrokenMultipart::Headers),
    }
}

/// Whether a text is the same in UTF-8, by what its type says. Many clients name another encoding for plain ASCII.
fn is_in_utf8(kind: &str, content: &[u8]) -> bool {
    content_type::charset(kind).is_ok_and(|charset| charset.agrees_on(content))
}

/// How a content is encoded, if it is not what it stands for as it is.
fn encoding(named: &str) -> Option<String> {
    let named = named.to_ascii_lowercase();
    (!matches!(named.as_str(), "" | "7bit" | "8bit" | "binary")).then_some(named)
}

/// The type of a text as far as it says something: clients write `text/plain` or nothing, and mean the same.
fn told(kind: &str) -> String {
    let kind: String = kind.to_ascii_lowercase().split_whitespace().collect();
    match kind.as_str() {
        "text/plain" | "text/plain;charset=utf-8" | "text/plain;charset=us-ascii" => String::new(),
        _ => kind,
    }
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

    fn read_in(boundary: &str, body: &[u8]) -> Result<FormParts, BrokenMultipart> {
        parts(boundary, Charset::Utf8, body)
    }

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
        let read = read_in("xyz", &form("xyz")).unwrap();
        assert_eq!(read, read_in("another", &form("another")).unwrap());
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
            read_in("b", form.as_bytes()).unwrap().types.map(|types| types.canonical())
        };
        let json = "Content-Type: application/JSON\r\n";
        assert_eq!(read(["", "Content-Type: text/plain; charset=UTF-8\r\n"]), None);
        assert_eq!(read([json, ""]).as_deref(), Some(r#"{"a":["application/json",""]}"#));
        assert_eq!(read(["", json]).as_deref(), Some(r#"{"a":["","application/json"]}"#));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let whole = form("xyz");
        assert_eq!(read_in("other", &whole), Err(BrokenMultipart::Unbounded));
        for cut in 1..whole.len() - 4 {
            assert!(read_in("xyz", &whole[..cut]).is_err(), "{cut}");
        }
        let unnamed = b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--";
        assert_eq!(read_in("b", unnamed), Err(BrokenMultipart::Unnamed));
        let many =
            "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(MULTIPART_PARTS_MAX + 1);
        assert_eq!(read_in("b", format!("{many}--b--").as_bytes()), Err(BrokenMultipart::TooMany));
    }

    const TO: &str = "--B\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nann\r\n";

    #[test]
    fn a_boundary_that_some_readers_would_miss_or_find_is_refused() {
        let within =
            |text: &str| format!("--B\r\nContent-Disposition: form-data; name=a\r\n\r\n{text}\r\n--B--");
        for text in
            ["x\n--B\ny", "x\r--B\ry", "x\n--B--", "x\n\r--B", "x--B", "x--By", "\n--B\r\n", "x\r\n--Bxy"]
        {
            assert_eq!(read_in("B", within(text).as_bytes()), Err(BrokenMultipart::Inside), "{text:?}");
        }
        for (form, broken) in [
            (format!("{TO}--B--x\r\n{TO}--B--\r\n"), BrokenMultipart::Inside),
            (format!("{TO}--B-- x"), BrokenMultipart::Inside),
            (format!("{TO}--B--\r\n{TO}--B--\r\n"), BrokenMultipart::Inside),
            (format!("{TO}--B--\r\n\r\n--B"), BrokenMultipart::Inside),
            (format!("{TO}--B \r\n{}--B--", &TO[5..]), BrokenMultipart::Inside),
            (format!("\n{TO}--B--"), BrokenMultipart::Inside),
            (format!("x{TO}--B--"), BrokenMultipart::Inside),
            (TO.replace('\r', "") + "--B--", BrokenMultipart::Inside),
            (
                format!("Content-Disposition: form-data; name=a\r\n\r\nx\r\n{TO}--B--"),
                BrokenMultipart::Beside,
            ),
            (
                format!("{TO}--B--\r\nContent-Disposition: form-data; name=a\r\n\r\nx"),
                BrokenMultipart::Beside,
            ),
            (format!("{TO}--B\r\n--B--"), BrokenMultipart::Unnamed),
            (TO.to_owned(), BrokenMultipart::Unbounded),
        ] {
            assert_eq!(read_in("B", form.as_bytes()), Err(broken), "{form:?}");
        }
        for form in [
            format!("{TO}--B--"),
            format!("{TO}--B--\n"),
            format!("{TO}--B-- \t\r\n"),
            format!("\r\n{TO}--B--\r\n\r\n"),
            format!("This is a message in MIME format.\r\n{TO}--B--\r\nIt ends here."),
        ] {
            assert_eq!(
                read_in("B", form.as_bytes()).unwrap().values.canonical(),
                r#"{"to":"ann"}"#,
                "{form:?}"
            );
        }
        assert_eq!(read_in("B", b"--B--\r\n").unwrap().values.canonical(), "{}");
    }

    #[test]
    fn headers_that_some_readers_would_divide_otherwise_are_refused() {
        for (headers, broken) in [
            (
                "Content-Disposition: form-data; name=memo\nContent-Disposition: form-data; name=a",
                BrokenMultipart::Headers,
            ),
            ("Content-Disposition: form-data; name=memo\n\nContent-Type: a/b", BrokenMultipart::Headers),
            ("Content-Disposition: form-data; name=memo\rx: y", BrokenMultipart::Headers),
            ("Content-Disposition: form-data; name=memo;\r\n name=a", BrokenMultipart::Headers),
            ("Content-Disposition : form-data; name=memo", BrokenMultipart::Headers),
            ("Content-Disposition: form-data; name=\"a\u{0}\"", BrokenMultipart::Headers),
            ("Content-Disposition: form-data; name=memo\r\nx", BrokenMultipart::Headers),
            (
                "Content-Disposition: form-data; name=memo\r\nContent-Disposition: form-data; name=a",
                BrokenMultipart::Twice,
            ),
            ("Content-Disposition: form-data; name=memo; name=a", BrokenMultipart::Twice),
            ("Content-Disposition: form-data; name=memo; name*=utf-8''a", BrokenMultipart::Ambiguous),
            ("Content-Type: text/plain", BrokenMultipart::Unnamed),
        ] {
            let form = format!("--B\r\n{headers}\r\n\r\nx\r\n--B--\r\n");
            assert_eq!(read_in("B", form.as_bytes()), Err(broken), "{headers:?}");
        }
    }

    #[test]
    fn an_encoded_text_is_refused_and_an_encoded_file_is_another() {
        let read = |parameters: &str, encoding: &str| {
            let head = format!("Content-Disposition: form-data; name=a{parameters}\r\n{encoding}");
            let form = format!("--B\r\n{head}\r\nMTAwNQ==\r\n--B--");
            read_in("B", form.as_bytes()).map(|parts| parts.values.canonical())
        };
        for plain in ["", "7bit", "8BIT", "Binary"] {
            let header = format!("Content-Transfer-Encoding: {plain}\r\n");
            assert_eq!(read("", &header).unwrap(), r#"{"a":"MTAwNQ=="}"#, "{plain}");
            assert_eq!(read("; filename=b", &header), read("; filename=b", ""), "{plain}");
        }
        for encoded in ["base64", "quoted-printable", "x", "8bit, base64"] {
            let header = format!("content-transfer-encoding: {encoded}\r\n");
            assert_eq!(read("", &header), Err(BrokenMultipart::Encoded), "{encoded}");
            let file = read("; filename=b", &header).unwrap();
            assert!(file.contains(&format!(r#""encoding":"{encoded}""#)), "{file}");
        }
        let twice = "Content-Transfer-Encoding: 8bit\r\n".repeat(2);
        assert_eq!(read("", &twice), Err(BrokenMultipart::Twice));
    }

    #[test]
    fn a_text_in_another_encoding_is_refused_unless_it_is_ascii() {
        let read = |name: &str, kind: &str, value: &str| {
            let head = format!("Content-Disposition: form-data; name={name}\r\nContent-Type: {kind}\r\n");
            read_in("B", format!("--B\r\n{head}\r\n{value}\r\n--B--").as_bytes()).map(drop)
        };
        for kind in ["text/plain; charset=utf-8", "text/plain;charset=UTF8", "image/png"] {
            assert_eq!(read("a", kind, "è"), Ok(()), "{kind}");
        }
        assert_eq!(read("a", "text/plain; charset=ISO-8859-1", "e"), Ok(()));
        assert_eq!(read("a", "text/plain; charset=ISO-8859-1", "è"), Err(BrokenMultipart::Charset));
        assert_eq!(read("a", "text/plain; charset=utf-16", "e"), Err(BrokenMultipart::Charset));
        assert_eq!(read("a; filename=b", "text/plain; charset=utf-16", "e"), Ok(()));
        assert_eq!(read("_charset_", "text/plain", "UTF-8"), Ok(()));
        assert_eq!(read("_charset_", "text/plain", "iso-8859-1"), Err(BrokenMultipart::Charset));
    }
}
