//! What a request says, as the arguments that rules speak of: `path`, `query`, `body` and `headers`.

use super::form;
use super::graphql::{self, Graphql};
use super::multipart;
use super::path::Place;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{self, HeaderName};
use semel_core::digest::Digest;
use semel_core::json::{self, Json, Object};

/// Headers that say what is done, or on which state or part of the world: with another value it is another request. A
/// rule's `key` may name further ones.
const TELLING: [&str; 4] = [
    "if-match",
    "if-none-match",
    "content-range",
    // Names the operation, where one address takes all of them.
    "x-amz-target",
];

/// Why a request cannot be understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("the body says that it is JSON: {0}")]
    Json(json::ParseError),
    #[error("the body says that it is JSON in another encoding than UTF-8")]
    Charset,
    #[error("the body says that it is a form, and is no text")]
    Form,
    #[error("the body has {0}")]
    Pairs(form::TooMany),
    #[error("the query has {0}")]
    Query(form::TooMany),
    #[error("the multipart body {0}")]
    Multipart(multipart::Broken),
    #[error("Content-Type came twice")]
    Types,
    #[error(
        "its GraphQL document cannot be read: it is broken, names what it does not have, or is nested too deep"
    )]
    Document,
}

impl From<graphql::Unreadable> for BadRequest {
    fn from(_: graphql::Unreadable) -> Self {
        BadRequest::Document
    }
}

/// How a body is written, and so how a key can be put into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Empty,
    Json,
    Graphql(Graphql),
    /// The same by itself or in a form: no key is put into it.
    Document(Graphql),
    Form,
    /// Parts, or bytes of which no more is known than their digest.
    Opaque,
}

impl Shape {
    /// Whether it is a GraphQL document without any change.
    pub fn only_asks(&self) -> bool {
        matches!(self, Shape::Graphql(graphql) | Shape::Document(graphql) if graphql.only_asks)
    }
}

/// What rules speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    pub json: Json,
    pub shape: Shape,
}

impl Arguments {
    pub fn read(
        place: &Place,
        query: Option<&str>,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Arguments, BadRequest> {
        let mut all = Object::new();
        let path = place.path.as_str();
        all.insert("path", Json::str(path));
        if let Some(with_parameters) = &place.with_parameters {
            all.insert("path_parameters", Json::str(with_parameters));
        }
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            all.insert("query", Json::Object(form::object(query).map_err(BadRequest::Query)?));
        }
        let mut telling: Object =
            TELLING.iter().filter_map(|name| Some(((*name).to_owned(), value(headers, name)?))).collect();
        // A patch of one kind is read otherwise than a patch of another.
        let kind = essence(kind_of(headers));
        if is_json(&kind) && kind.contains("patch") && !body.is_empty() {
            telling.insert("content-type", Json::String(kind));
        }
        if !telling.is_empty() {
            all.insert("headers", Json::Object(telling));
        }
        let Content { body, part_types, shape } = content(path, query, headers, body)?;
        for (root, value) in [("body", body), ("part_types", part_types)] {
            if let Some(value) = value {
                all.insert(root, value);
            }
        }
        Ok(Arguments { json: Json::Object(all), shape })
    }

    /// Adds headers that a rule names.
    pub fn with_headers<'a>(&mut self, names: impl Iterator<Item = &'a str>, headers: &HeaderMap) {
        let Json::Object(all) = &mut self.json else { return };
        for name in names {
            let Some(found) =
                HeaderName::try_from(name).ok().and_then(|known| value(headers, known.as_str()))
            else {
                continue;
            };
            match all.get_mut("headers") {
                Some(Json::Object(known)) => drop(known.insert(name, found)),
                _ => drop(all.insert("headers", Json::object([(name, found)]))),
            }
        }
    }
}

/// One text, or a list where a header came more than once.
fn value(headers: &HeaderMap, name: &str) -> Option<Json> {
    let text =
        |value: &http::HeaderValue| Json::String(String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut values: Vec<Json> = headers.get_all(name).iter().map(text).collect();
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => Some(Json::Array(values)),
    }
}

/// A body as arguments.
struct Content {
    body: Option<Json>,
    /// What the texts of a multipart form say they are.
    part_types: Option<Json>,
    shape: Shape,
}

impl Content {
    fn of(body: Json, shape: Shape) -> Content {
        Content { body: Some(body), part_types: None, shape }
    }

    fn described(mut body: Json, graphql: Graphql, shape: fn(Graphql) -> Shape) -> Content {
        graphql.describe(&mut body);
        Content::of(body, shape(graphql))
    }
}

/// The body, by what it says it is.
fn content(
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Content, BadRequest> {
    if body.is_empty() {
        return Ok(Content { body: None, part_types: None, shape: Shape::Empty });
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let kind = types.next().map_or("", |kind| kind.to_str().unwrap_or_default());
    if types.next().is_some() {
        // Semel would read it by the one, and the upstream perhaps by the other.
        return Err(BadRequest::Types);
    }
    if !super::headers::is_read_as_it_is(headers) {
        return Ok(Content::of(sealed(kind, body), Shape::Opaque));
    }
    match essence(kind).as_str() {
        kind if is_json(kind) => {
            let utf8 = |(name, value): (&str, &str)| {
                !name.eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
            };
            if !parameters(kind_of(headers)).all(utf8) {
                return Err(BadRequest::Charset);
            }
            let json = json::parse_bytes(body).map_err(BadRequest::Json)?;
            Ok(match graphql::of(path, query, &json)? {
                Some(graphql) => Content::described(json, graphql, Shape::Graphql),
                None => Content::of(json, Shape::Json),
            })
        }
        "application/x-www-form-urlencoded" => {
            let text = std::str::from_utf8(body).map_err(|_| BadRequest::Form)?;
            let form = Json::Object(form::object(text).map_err(BadRequest::Pairs)?);
            Ok(match graphql::of(path, query, &form)? {
                Some(graphql) => Content::described(form, graphql, Shape::Document),
                None => Content::of(form, Shape::Form),
            })
        }
        "application/graphql" => {
            let text = std::str::from_utf8(body).map_err(|_| BadRequest::Document)?;
            let graphql = graphql::of_text(query, text)?;
            Ok(Content::described(Json::object([("query", Json::str(text))]), graphql, Shape::Document))
        }
        "multipart/form-data" => {
            let boundary = parameters(kind).find(|(name, _)| name.eq_ignore_ascii_case("boundary"));
            let boundary = boundary.map(|(_, value)| value).unwrap_or_default();
            let parts = multipart::parts(boundary, body).map_err(BadRequest::Multipart)?;
            Ok(Content { body: Some(parts.values), part_types: parts.types, shape: Shape::Opaque })
        }
        _ => Ok(Content::of(sealed(kind, body), Shape::Opaque)),
    }
}

/// A type without its parameters.
fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn kind_of(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

fn is_json(kind: &str) -> bool {
    matches!(kind, "application/json" | "text/json")
        || kind.starts_with("application/")
            && (kind.ends_with("+json") || kind.starts_with("application/x-amz-json-"))
}

/// `; name=value` behind a type, quotes taken off.
fn parameters(kind: &str) -> impl Iterator<Item = (&str, &str)> {
    kind.split(';').skip(1).filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim();
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        Some((name.trim(), bare))
    })
}

/// Bytes that nobody looks into.
pub fn sealed(kind: &str, bytes: &[u8]) -> Json {
    Json::object([
        ("sha256", Json::String(Digest::plain(bytes).to_string())),
        ("bytes", Json::Number(json::Number::from_i64(i64::try_from(bytes.len()).unwrap_or(i64::MAX)))),
        ("type", Json::str(kind)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, body: &str) -> Result<String, BadRequest> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        Ok(Arguments::read(
            &Place::at("", "/a").unwrap(),
            Some("x=1&x=2"),
            &headers,
            &Bytes::from(body.to_owned()),
        )?
        .json
        .canonical())
    }

    #[test]
    fn the_type_decides_how_a_body_is_read() {
        assert_eq!(
            read("application/json; charset=UTF-8", r#"{"b":1.0,"a":9007199254740993}"#).unwrap(),
            r#"{"body":{"a":9007199254740993,"b":1},"path":"/a","query":{"x":["1","2"]}}"#
        );
        assert!(read("application/vnd.api+json", "[1]").unwrap().contains(r#""body":[1]"#));
        let form = read("application/x-www-form-urlencoded", "a[b]=1&a[b]=2").unwrap();
        assert!(form.contains(r#""body":{"a[b]":["1","2"]}"#), "{form}");
        let other = read("text/plain", "abc").unwrap();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(
            other.contains(&format!(r#""body":{{"bytes":3,"sha256":"{digest}","type":"text/plain"}}"#)),
            "{other}"
        );
        assert_eq!(read("", "").unwrap(), r#"{"path":"/a","query":{"x":["1","2"]}}"#);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for body in [r#"{"a":1,"a":2}"#, "{", r#"{"a":NaN}"#, "\u{feff}{}", &"[".repeat(200)] {
            assert!(matches!(read("application/json", body), Err(BadRequest::Json(_))), "{body}");
        }
        assert_eq!(read("application/json; charset=utf-16", "{}"), Err(BadRequest::Charset));
        let mut headers = HeaderMap::new();
        headers.append(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.append(header::CONTENT_TYPE, "text/plain".parse().unwrap());
        let twice = Arguments::read(&Place::at("", "/").unwrap(), None, &headers, &Bytes::from_static(b"{}"));
        assert_eq!(twice, Err(BadRequest::Types));
    }

    #[test]
    fn a_compressed_body_is_bytes() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
        let read =
            Arguments::read(&Place::at("", "/").unwrap(), None, &headers, &Bytes::from_static(b"\x1f\x8b"))
                .unwrap();
        assert_eq!(read.shape, Shape::Opaque);
        assert!(read.json.get("body").unwrap().get("sha256").is_some());
    }

    #[test]
    fn headers_that_say_on_what_it_acts_are_arguments_and_others_are_not() {
        let mut headers = HeaderMap::new();
        headers.insert("if-match", "v1".parse().unwrap());
        headers.insert("x-trace", "1".parse().unwrap());
        let mut read = Arguments::read(&Place::at("", "/").unwrap(), None, &headers, &Bytes::new()).unwrap();
        assert_eq!(read.json.canonical(), r#"{"headers":{"if-match":"v1"},"path":"/"}"#);
        read.with_headers(["x-trace", "absent"].into_iter(), &headers);
        assert_eq!(read.json.canonical(), r#"{"headers":{"if-match":"v1","x-trace":"1"},"path":"/"}"#);
    }
}
