//! The names of a part of a form: its own, and that of its file.

use super::broken_multipart::BrokenMultipart;
use super::content_type::is_token;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disposition {
    pub name: String,
    /// Only what has one is a file. Both forms of it, where it has both.
    pub file: Option<String>,
}

impl Disposition {
    /// Reads what all readers read alike, and nothing else: a field by another name is another field.
    pub fn read(text: &str) -> Result<Disposition, BrokenMultipart> {
        let (kind, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        match kind.trim() {
            "" => return Err(BrokenMultipart::Unnamed),
            kind if kind.eq_ignore_ascii_case("form-data") => {}
            // Some readers leave it out, others do not look.
            _ => return Err(BrokenMultipart::Ambiguous),
        }
        let mut known: Vec<(String, String)> = Vec::new();
        while let Some(after) = rest.strip_prefix(';') {
            let after = after.trim_start();
            if after.is_empty() || after.starts_with(';') {
                rest = after;
                continue;
            }
            let (name, value) = after.split_once('=').ok_or(BrokenMultipart::Ambiguous)?;
            let name = name.to_ascii_lowercase();
            let (value, beyond) = value_of(&name, value)?;
            if known.iter().any(|(before, _)| *before == name) {
                return Err(BrokenMultipart::Twice);
            }
            known.push((name, value));
            rest = beyond;
        }
        let mut take = |wanted: &str| {
            let at = known.iter().position(|(name, _)| name == wanted)?;
            Some(known.swap_remove(at).1)
        };
        let file = match (take("filename"), take("filename*")) {
            (Some(plain), Some(extended)) => Some(format!("{plain}\n{extended}")),
            (plain, extended) => plain.or(extended),
        };
        Ok(Disposition { name: take("name").ok_or(BrokenMultipart::Unnamed)?, file })
    }
}

/// The value that a text begins with, quoted or bare, and what follows it.
fn value_of<'a>(name: &str, text: &'a str) -> Result<(String, &'a str), BrokenMultipart> {
    let (raw, is_quoted, beyond) = match text.strip_prefix('"') {
        Some(quoted) => {
            let end = end_of_quote(quoted).ok_or(BrokenMultipart::Ambiguous)?;
            (&quoted[..end], true, quoted[end + 1..].trim_start())
        }
        None => {
            let end = text.find(';').unwrap_or(text.len());
            (text[..end].trim_end(), false, &text[end..])
        }
    };
    let is_plain = match (name, is_quoted) {
        // Readers do not agree on what a backslash does, and some decode what looks like an encoded word.
        ("name", true) => !raw.contains('\\') && !raw.starts_with("=?"),
        // A single quote is one of those that are taken off, to some.
        ("name", false) => is_token(raw) && !raw.contains('\''),
        // `utf-8'en'text`.
        ("filename*", false) => is_token(raw) && raw.matches('\'').count() == 2,
        ("filename", false) => !raw.is_empty() && !raw.contains(['"', '\'', '=']),
        ("filename" | "filename*", true) => holds_no_other(raw),
        // `name*`, and what is continued in `name*1`: some readers put it in the place of the plain one.
        (other, _) if !is_token(other) || other.contains('*') => false,
        (_, true) => holds_no_other(raw),
        (_, false) => is_token(raw) && !raw.contains('\''),
    };
    if !is_plain || !(beyond.is_empty() || beyond.starts_with(';')) {
        return Err(BrokenMultipart::Ambiguous);
    }
    Ok((if is_quoted { unescaped(raw) } else { raw.to_owned() }, beyond))
}

/// To some readers a quoted text ends with its first quote, escaped or not: then nothing that follows may be a name.
fn holds_no_other(raw: &str) -> bool {
    !(raw.contains("\\\"") && raw.contains('='))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_where_all_readers_read_the_same() {
        for (text, name, file) in [
            (r#"form-data; name="invoice""#, "invoice", None),
            (r#"Form-Data;name=invoice;"#, "invoice", None),
            (r#"form-data; name="metadata[a b]""#, "metadata[a b]", None),
            (r#"form-data; name="a;b=c""#, "a;b=c", None),
            (r#"form-data; name="f"; filename="a \"b\".txt""#, "f", Some("a \"b\".txt")),
            (r#"form-data; name="f"; filename="C:\new\a.txt""#, "f", Some("C:\\new\\a.txt")),
            (r#"form-data; name="f"; filename="it's; a=b.txt""#, "f", Some("it's; a=b.txt")),
            (r#"form-data; name="f"; filename="""#, "f", Some("")),
            ("form-data; name=\"f\"; filename*=utf-8''%C3%A9.txt", "f", Some("utf-8''%C3%A9.txt")),
            (
                "form-data; name=f; filename=\"e.txt\"; filename*=utf-8''%C3%A9.txt",
                "f",
                Some("e.txt\nutf-8''%C3%A9.txt"),
            ),
            (r#"form-data; filename="a.txt"; size=3; name="f""#, "f", Some("a.txt")),
        ] {
            let expected = Disposition { name: name.to_owned(), file: file.map(str::to_owned) };
            assert_eq!(Disposition::read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_could_be_another_name_is_refused() {
        assert_eq!(Disposition::read(""), Err(BrokenMultipart::Unnamed));
        assert_eq!(Disposition::read("form-data"), Err(BrokenMultipart::Unnamed));
        assert_eq!(Disposition::read("form-data; filename=a"), Err(BrokenMultipart::Unnamed));
        assert_eq!(Disposition::read("form-data; name=a; NAME=b"), Err(BrokenMultipart::Twice));
        assert_eq!(
            Disposition::read("form-data; name=a; filename=b; filename=c"),
            Err(BrokenMultipart::Twice)
        );
        for text in [
            "attachment; name=a",
            "form-data; name=\"memo\"; name*=utf-8''invoice",
            "form-data; name*=utf-8''invoice",
            "form-data; name*0=in; name*1=voice",
            "form-data; name=a; filename*0=b",
            "form-data; name=a; filename*=b",
            "form-data; name =\"a\"",
            "form-data; name= \"a\"",
            "form-data; name=\"a\"b",
            "form-data; name=\"a\" name=\"b\"",
            "form-data; name=\"a",
            "form-data; name='a'",
            "form-data; name=a b",
            "form-data; name=a[b]",
            r#"form-data; name="in\voice""#,
            r#"form-data; name="a\"; name=\"b""#,
            r#"form-data; name="a"; filename="b\"; name=c; x=\"""#,
            r#"form-data; name="=?utf-8?B?aW52b2ljZQ==?=""#,
            "form-data; name",
            "form-data; name=a; filename=b name=\"c\"",
        ] {
            assert_eq!(Disposition::read(text), Err(BrokenMultipart::Ambiguous), "{text}");
        }
    }
}
