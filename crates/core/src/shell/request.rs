//! The request that a command line client makes, as the HTTP door names it.

use super::{Input, Word};
use crate::json::{Json, Object, parse_bounded};

/// A request of `curl`, `wget` or HTTPie.
#[derive(Debug)]
pub(super) struct Request {
    /// `http:METHOD HOST/PATH`
    pub action: String,
    /// `path`, `query` and `body`.
    pub arguments: Object,
    /// By their names in lower case; `authorization` also of `--user`.
    pub headers: Object,
    /// Whether it sends nothing from a file or a pipe.
    pub is_known: bool,
}

impl Request {
    /// Whether it goes to this machine, where agents try out what they build.
    pub fn is_local(&self) -> bool {
        let place = self.action.split_once(' ').map_or("", |(_, place)| place);
        let host = place.split('/').next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        // `http :3000/orders`
        matches!(host, "localhost" | "0.0.0.0" | "[::1]")
            || host.starts_with("127.")
            || place.starts_with(':')
    }
}

pub(super) const CLIENTS: [&str; 6] = ["curl", "wget", "http", "https", "xh", "xhs"];

/// Options of `curl` with a value: their letters, and the long ones that a request is seldom made without.
const CURL_LETTERS: &str = "AbcCdDeEFHKmoPQrtTuUwxXyYz";
const CURL_LONG: &[&str] = &[
    "cacert",
    "cert",
    "connect-timeout",
    "cookie",
    "cookie-jar",
    "data",
    "data-binary",
    "data-raw",
    "data-urlencode",
    "form",
    "header",
    "json",
    "key",
    "max-time",
    "output",
    "proxy",
    "request",
    "resolve",
    "retry",
    "retry-delay",
    "retry-max-time",
    "upload-file",
    "url",
    "user",
    "user-agent",
    "write-out",
];

const WGET_LETTERS: &str = "aeioOPQtTUw";
const WGET_LONG: &[&str] =
    &["body-data", "body-file", "header", "method", "post-data", "post-file", "timeout", "tries"];

const HTTPIE_LETTERS: &str = "aAopsP";
const HTTPIE_LONG: &[&str] =
    &["auth", "auth-type", "output", "pretty", "print", "raw", "session", "timeout", "verify"];

#[derive(Default)]
struct Parts {
    method: Option<String>,
    addresses: Vec<String>,
    body: Vec<String>,
    headers: Vec<(String, String)>,
    sends_file: bool,
}

/// `None` of another program.
pub(super) fn request(words: &[Word], input: &Input) -> Option<Request> {
    let (program, words) = words.split_first()?;
    let parts = match program.program() {
        "curl" => curl(words, input),
        "wget" => wget(words),
        "http" | "https" | "xh" | "xhs" => httpie(words, input),
        _ => return None,
    };
    Some(parts.request())
}

/// An option with its value, or a word that is none.
enum Piece<'w> {
    Option(&'w str, &'w str),
    Operand(&'w str),
}

fn pieces<'w>(words: &'w [Word], letters_with_value: &str, long_with_value: &[&str]) -> Vec<Piece<'w>> {
    let mut rest = words.iter().map(|word| word.text.as_str());
    let mut pieces = Vec::new();
    while let Some(word) = rest.next() {
        pieces.push(if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, value)) => Piece::Option(name, value),
                None if long_with_value.contains(&long) => {
                    Piece::Option(long, rest.next().unwrap_or_default())
                }
                None => Piece::Option(long, ""),
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // Letters stand together, and the value of the last may too: `-sXPOST`.
            match letters.find(|letter| letters_with_value.contains(letter)) {
                Some(at) => {
                    let (letter, value) = letters[at..].split_at(1);
                    Piece::Option(
                        letter,
                        if value.is_empty() { rest.next().unwrap_or_default() } else { value },
                    )
                }
                None => Piece::Option(letters.trim_matches(|letter| !"IG".contains(letter)), ""),
            }
        } else {
            Piece::Operand(word)
        });
    }
    pieces
}

fn curl(words: &[Word], input: &Input) -> Parts {
    let mut parts = Parts::default();
    for piece in pieces(words, CURL_LETTERS, CURL_LONG) {
        match piece {
            Piece::Operand(address) | Piece::Option("url", address) => {
                parts.addresses.push(address.to_owned())
            }
            Piece::Option("X" | "request", method) => parts.method = Some(method.to_owned()),
            Piece::Option("I" | "head", _) => parts.method = Some("HEAD".to_owned()),
            Piece::Option("G" | "get", _) => parts.method = Some("GET".to_owned()),
            Piece::Option("T" | "upload-file", _) => {
                parts.method.get_or_insert_with(|| "PUT".to_owned());
                parts.sends_file = true;
            }
            Piece::Option("H" | "header", header) => parts.header(header),
            Piece::Option("u" | "user", user) => {
                parts.headers.push(("authorization".to_owned(), user.to_owned()))
            }
            Piece::Option("data-raw", text) => parts.body.push(text.to_owned()),
            Piece::Option("F" | "form", field) => {
                parts.sends_file |= field.contains("=@") || field.contains("=<");
                parts.body.push(field.to_owned());
            }
            Piece::Option(name, text) if name == "d" || name == "json" || name.starts_with("data") => {
                match (text, input) {
                    ("@-", Input::Text(document)) => parts.body.push(document.clone()),
                    _ => {
                        parts.sends_file |=
                            text.starts_with('@') || name == "data-urlencode" && text.contains('@');
                        parts.body.push(text.to_owned());
                    }
                }
            }
            Piece::Option(..) => {}
        }
    }
    parts
}

fn wget(words: &[Word]) -> Parts {
    let mut parts = Parts::default();
    for piece in pieces(words, WGET_LETTERS, WGET_LONG) {
        match piece {
            Piece::Operand(address) => parts.addresses.push(address.to_owned()),
            Piece::Option("method", method) => parts.method = Some(method.to_owned()),
            Piece::Option("post-data" | "body-data", text) => parts.body.push(text.to_owned()),
            Piece::Option("post-file" | "body-file", file) => {
                parts.sends_file = true;
                parts.body.push(file.to_owned());
            }
            Piece::Option("header", header) => parts.header(header),
            Piece::Option(..) => {}
        }
    }
    parts
}

/// `http [METHOD] ADDRESS [NAME=VALUE | NAME:=JSON | NAME==QUERY | HEADER:VALUE | NAME@FILE]…`
fn httpie(words: &[Word], input: &Input) -> Parts {
    let mut parts = Parts::default();
    for piece in pieces(words, HTTPIE_LETTERS, HTTPIE_LONG) {
        match piece {
            Piece::Option("raw", text) => parts.body.push(text.to_owned()),
            Piece::Option("a" | "auth", user) => {
                parts.headers.push(("authorization".to_owned(), user.to_owned()))
            }
            Piece::Option(..) => {}
            Piece::Operand(word) if parts.addresses.is_empty() => {
                match !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
                    true => parts.method = Some(word.to_owned()),
                    false => parts.addresses.push(word.to_owned()),
                }
            }
            Piece::Operand(item) => match (item.split_once('='), item.split_once(':')) {
                (Some((_, value)), _) if value.starts_with('=') => parts.addresses.push(item.to_owned()),
                (Some((name, value)), _) => {
                    parts.body.push(format!("{}={value}", name.trim_end_matches(':')))
                }
                (None, Some(_)) => parts.header(item),
                (None, None) => {
                    parts.sends_file = true;
                    parts.body.push(item.to_owned());
                }
            },
        }
    }
    match input {
        Input::Text(document) => parts.body.push(document.clone()),
        Input::Unknown if parts.body.is_empty() && parts.method.as_deref() != Some("GET") => {
            parts.sends_file = true;
            parts.body.push(String::new());
        }
        Input::None | Input::Unknown => {}
    }
    parts
}

impl Parts {
    fn header(&mut self, header: &str) {
        self.sends_file |= header.starts_with('@');
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        self.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }

    fn request(self) -> Request {
        let Parts { method, addresses, body, headers, sends_file } = self;
        let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
        let address = addresses.iter().find(|address| address.contains("://")).or(addresses.first());
        let address = address.map_or("", String::as_str);
        let place = address.split_once("://").map_or(address, |(_, place)| place);
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        // A name and a password are no part of the address.
        let host_from = place[..place.find('/').unwrap_or(place.len())].rfind('@').map_or(0, |at| at + 1);
        let place = &place[host_from..];
        let place = place.trim_end_matches('/');
        let path = place.find('/').map_or("/", |at| &place[at..]);
        let body = body.join("&");
        let body = parse_bounded(body.as_bytes()).unwrap_or_else(|_| fields(&body));
        let headers = headers.into_iter().map(|(name, value)| (name, Json::String(value)));
        Request {
            action: format!("http:{method} {place}"),
            arguments: [("path", Json::str(path)), ("query", fields(query)), ("body", body)]
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            headers: headers.collect(),
            is_known: !sends_file,
        }
    }
}

/// The fields of a form, as they are written; any other text is itself.
fn fields(text: &str) -> Json {
    let pairs: Option<Vec<(&str, &str)>> = text.split('&').map(|pair| pair.split_once('=')).collect();
    match pairs {
        Some(pairs) => {
            Json::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), Json::str(value))).collect())
        }
        None => Json::str(text),
    }
}
