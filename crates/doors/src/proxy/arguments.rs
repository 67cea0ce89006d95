//! A request as the arguments that rules speak of: `path`, `query`, `body` and `headers`.

use super::broken_multipart::BrokenMultipart;
use super::content_type::{self, Charset, OtherCharset, essence};
use super::graphql::{self, Graphql};
use super::multipart;
use super::opaque::sealed;
use super::path::UpstreamPath;
use crate::wire::form;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{self, HeaderName};
use semel_core::identity::HEADERS_READ;
use semel_core::json::{self, Json, Object};
use semel_core::policy::graphql::GraphqlRequest;
use std::borrow::Cow;

/// Where the digest of a GraphQL document stands that is named by it.
const DOCUMENT: &str = "document";

/// Why a request cannot be understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadArguments {
    #[error("the body is declared as JSON and is not: {0}")]
    Json(json::ParseError),
    #[error("its Content-Type names another encoding than UTF-8")]
    Charset,
    #[error("the body is declared as a form and is no text")]
    Form,
    #[error("the body has {0}")]
    Pairs(form::TooMany),
    #[error("the query has {0}")]
    Query(form::TooMany),
    #[error("the multipart body {0}")]
    Multipart(BrokenMultipart),
    #[error("the body is plain, but its Content-Encoding says it is compressed")]
    NotEncoded,
    #[error("Content-Type is ambiguous: name one type, once")]
    Types,
    #[error("its GraphQL document cannot be read: broken, incomplete, or nested too deep")]
    Document,
}

impl From<graphql::UnreadableDocument> for BadArguments {
    fn from(_: graphql::UnreadableDocument) -> Self {
        BadArguments::Document
    }
}

impl From<OtherCharset> for BadArguments {
    fn from(_: OtherCharset) -> Self {
        BadArguments::Charset
    }
}

/// How a body is written, and so how a key can be put into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyShape {
    Empty,
    Json,
    Graphql(Graphql),
    /// The same by itself or in a form: no key is put into it.
    Document(Graphql),
    Form,
    /// Parts, or bytes of which no more is known than their digest.
    Opaque,
}

/// The arguments of rules, and how the body was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    pub json: Json,
    pub shape: BodyShape,
    /// Its question in GraphQL.
    pub asked: GraphqlRequest,
}

impl Arguments {
    pub fn read(
        place: &UpstreamPath,
        query: Option<&str>,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Arguments, BadArguments> {
        let mut all = Object::new();
        let path = place.path.as_str();
        all.insert("path", Json::str(path));
        if let Some(with_parameters) = &place.with_parameters {
            all.insert("path_parameters", Json::str(with_parameters));
        }
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            all.insert("query", Json::Object(form::object(query).map_err(BadArguments::Query)?));
        }
        let mut telling: Object = HEADERS_READ
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), value(headers, name)?)))
            .collect();
        // A patch of one kind is read otherwise than a patch of another.
        let kind = essence(&kind_of(headers));
        if is_json(&kind) && kind.contains("patch") && !body.is_empty() {
            telling.insert("content-type", Json::String(kind));
        }
        if !telling.is_empty() {
            all.insert("headers", Json::Object(telling));
        }
        let BodyContent { body, part_types, document, shape, asked } = content(path, query, headers, body)?;
        for (root, value) in [("body", body), ("part_types", part_types), (DOCUMENT, document)] {
            if let Some(value) = value {
                all.insert(root, value);
            }
        }
        Ok(Arguments { json: Json::Object(all), shape, asked })
    }

    /// Whether it carries the full text of a document that a digest names too.
    pub fn says_in_full(&self) -> bool {
        self.has_named_document() && matches!(self.asked, GraphqlRequest::Document { .. })
    }

    /// Whether its GraphQL document is named by a digest, be the text there or not.
    pub fn has_named_document(&self) -> bool {
        self.json.get(DOCUMENT).is_some()
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
struct BodyContent {
    body: Option<Json>,
    /// The types of the texts of a multipart form.
    part_types: Option<Json>,
    document: Option<Json>,
    shape: BodyShape,
    asked: GraphqlRequest,
}

impl BodyContent {
    fn of(body: Json, shape: BodyShape) -> BodyContent {
        BodyContent {
            body: Some(body),
            part_types: None,
            document: None,
            shape,
            asked: GraphqlRequest::Unknown,
        }
    }

    fn described(mut body: Json, graphql: Graphql, shape: fn(Graphql) -> BodyShape) -> BodyContent {
        graphql.describe(&mut body);
        BodyContent { asked: graphql.asked(), ..BodyContent::of(body, shape(graphql)) }
    }
}

/// The body, by what it says it is.
fn content(
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<BodyContent, BadArguments> {
    if body.is_empty() {
        return Ok(BodyContent { body: None, ..BodyContent::of(Json::Null, BodyShape::Empty) });
    }
    let kind = &*kind_of(headers);
    if headers.get_all(header::CONTENT_TYPE).iter().count() > 1 {
        // Semel would read it by the one, and the upstream perhaps by the other.
        return Err(BadArguments::Types);
    }
    let essence = essence(kind);
    if !super::headers::is_read_as_it_is(headers) {
        // A compressed body is no text, and many servers never look at that header.
        if is_read(&essence) && std::str::from_utf8(body).is_ok() {
            return Err(BadArguments::NotEncoded);
        }
        return Ok(BodyContent::of(sealed(kind, body), BodyShape::Opaque));
    }
    if essence.split([',', ' ', '\t']).next().is_some_and(|first| first != essence && is_read(first)) {
        // Some servers go by what it begins with.
        return Err(BadArguments::Types);
    }
    let charset = || content_type::charset(kind);
    match essence.as_str() {
        kind if is_json(kind) => {
            if charset()? != Charset::Utf8 {
                return Err(BadArguments::Charset);
            }
            let json = json::parse_bytes(body).map_err(BadArguments::Json)?;
            let document = graphql::named_by_digest(path, &json).map(Json::str);
            let content = match graphql::of(path, query, &json)? {
                Some(graphql) => BodyContent::described(json, graphql, BodyShape::Graphql),
                None => {
                    let asked = graphql::asked(path, query, &json);
                    BodyContent { asked, ..BodyContent::of(json, BodyShape::Json) }
                }
            };
            Ok(BodyContent { document, ..content })
        }
        "application/x-www-form-urlencoded" => {
            let text = std::str::from_utf8(body).map_err(|_| BadArguments::Form)?;
            let is_ascii = || form::pairs(text).all(|(name, value)| name.is_ascii() && value.is_ascii());
            if charset()? == Charset::Ascii && !is_ascii() {
                return Err(BadArguments::Charset);
            }
            let form = Json::Object(form::object(text).map_err(BadArguments::Pairs)?);
            Ok(match graphql::of(path, query, &form)? {
                Some(graphql) => BodyContent::described(form, graphql, BodyShape::Document),
                None => BodyContent::of(form, BodyShape::Form),
            })
        }
        "application/graphql" => {
            let text = std::str::from_utf8(body).map_err(|_| BadArguments::Document)?;
            if !charset()?.agrees_on(body) {
                return Err(BadArguments::Charset);
            }
            let graphql = graphql::of_text(query, text)?;
            Ok(BodyContent::described(
                Json::object([("query", Json::str(text))]),
                graphql,
                BodyShape::Document,
            ))
        }
        "multipart/form-data" => {
            let boundary = content_type::boundary(kind).map_err(BadArguments::Multipart)?;
            let parts = multipart::parts(boundary, charset()?, body).map_err(BadArguments::Multipart)?;
            Ok(BodyContent { part_types: parts.types, ..BodyContent::of(parts.values, BodyShape::Opaque) })
        }
        _ => Ok(BodyContent::of(sealed(kind, body), BodyShape::Opaque)),
    }
}

/// A byte that is no text in it does not hide the rest.
fn kind_of(headers: &HeaderMap) -> Cow<'_, str> {
    headers
        .get(header::CONTENT_TYPE)
        .map_or(Cow::Borrowed(""), |kind| String::from_utf8_lossy(kind.as_bytes()))
}

/// Whether a body of this type is read into fields.
fn is_read(kind: &str) -> bool {
    let other = ["application/x-www-form-urlencoded", "application/graphql", "multipart/form-data"];
    is_json(kind) || other.contains(&kind)
}

fn is_json(kind: &str) -> bool {
    matches!(kind, "application/json" | "text/json")
        || kind.starts_with("application/")
            && (kind.ends_with("+json") || kind.starts_with("application/x-amz-json-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, body: &str) -> Result<String, BadArguments> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        Ok(Arguments::read(
            &UpstreamPath::at("", "/a").unwrap(),
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
            assert!(matches!(read("application/json", body), Err(BadArguments::Json(_))), "{body}");
        }
        for charset in ["utf-16", "iso-8859-1"] {
            let json = read(&format!("application/json; charset={charset}"), "{}");
            assert_eq!(json, Err(BadArguments::Charset), "{charset}");
        }
        let mut headers = HeaderMap::new();
        headers.append(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.append(header::CONTENT_TYPE, "text/plain".parse().unwrap());
        let twice =
            Arguments::read(&UpstreamPath::at("", "/").unwrap(), None, &headers, &Bytes::from_static(b"{}"));
        assert_eq!(twice, Err(BadArguments::Types));
        for kind in
            ["application/json, text/plain", "multipart/form-data boundary=B", "application/graphql ,"]
        {
            assert_eq!(read(kind, "{}"), Err(BadArguments::Types), "{kind}");
        }
        assert!(read("text/plain, application/json", "{").is_ok(), "nobody takes it for JSON");
        let odd = http::HeaderValue::from_bytes(b"application/json; x=\xE9").unwrap();
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, odd)]);
        let json =
            Arguments::read(&UpstreamPath::at("", "/").unwrap(), None, &headers, &Bytes::from_static(b"{}"));
        assert_eq!(json.unwrap().shape, BodyShape::Json);
    }

    #[test]
    fn what_is_called_compressed_and_is_not_is_refused() {
        let read = |kind: &'static str, body: &'static [u8]| {
            let kind = http::HeaderValue::from_static(kind);
            let gzip = http::HeaderValue::from_static("gzip");
            let headers =
                HeaderMap::from_iter([(header::CONTENT_TYPE, kind), (header::CONTENT_ENCODING, gzip)]);
            Arguments::read(&UpstreamPath::at("", "/").unwrap(), None, &headers, &Bytes::from_static(body))
        };
        assert_eq!(read("application/json", br#"{"invoice":7}"#), Err(BadArguments::NotEncoded));
        assert_eq!(read("application/x-www-form-urlencoded", b"invoice=7"), Err(BadArguments::NotEncoded));
        let compressed = read("application/json", b"\x1f\x8b\x08\x00\x00").unwrap();
        assert_eq!(compressed.shape, BodyShape::Opaque);
        assert!(read("text/plain", b"invoice=7").is_ok(), "nobody looks into it");
    }

    #[test]
    fn a_text_in_another_encoding_is_read_where_that_makes_no_difference() {
        let part =
            |text: &str| format!("--B\r\nContent-Disposition: form-data; name=a\r\n\r\n{text}\r\n--B--");
        for (kind, plain, other) in [
            ("application/x-www-form-urlencoded; charset=", "a=%201".to_owned(), "a=%C3%A8".to_owned()),
            ("application/x-www-form-urlencoded; charset=", "a=1".to_owned(), "%E8=1".to_owned()),
            ("application/graphql; charset=", "{ me }".to_owned(), "{ me(name: \"è\") }".to_owned()),
            ("multipart/form-data; boundary=B; charset=", part("1"), part("è")),
        ] {
            let read = |charset: &str, body: &str| read(&format!("{kind}{charset}"), body);
            for charset in ["utf-8", "UTF8", "iso-8859-1", "US-ASCII", "\"windows-1252\""] {
                assert_eq!(read(charset, &plain), read("utf-8", &plain), "{kind}{charset}");
            }
            assert!(read("utf-8", &other).is_ok(), "{kind}");
            assert!(matches!(
                read("iso-8859-1", &other),
                Err(BadArguments::Charset | BadArguments::Multipart(BrokenMultipart::Charset))
            ));
            assert_eq!(read("utf-16", &plain), Err(BadArguments::Charset), "{kind}");
        }
        // Nobody looks into other bodies.
        assert!(read("text/plain; charset=utf-16", "a").is_ok());
    }

    #[test]
    fn a_compressed_body_is_bytes() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert(header::CONTENT_ENCODING, "gzip".parse().unwrap());
        let read = Arguments::read(
            &UpstreamPath::at("", "/").unwrap(),
            None,
            &headers,
            &Bytes::from_static(b"\x1f\x8b"),
        )
        .unwrap();
        assert_eq!(read.shape, BodyShape::Opaque);
        assert!(read.json.get("body").unwrap().get("sha256").is_some());
    }

    #[test]
    fn headers_that_say_on_what_it_acts_are_arguments_and_others_are_not() {
        let mut headers = HeaderMap::new();
        headers.insert("if-match", "v1".parse().unwrap());
        headers.insert("x-trace", "1".parse().unwrap());
        let mut read =
            Arguments::read(&UpstreamPath::at("", "/").unwrap(), None, &headers, &Bytes::new()).unwrap();
        assert_eq!(read.json.canonical(), r#"{"headers":{"if-match":"v1"},"path":"/"}"#);
        read.with_headers(["x-trace", "absent"].into_iter(), &headers);
        assert_eq!(read.json.canonical(), r#"{"headers":{"if-match":"v1","x-trace":"1"},"path":"/"}"#);
    }

    /// A form as a client writes it: the type, and what its two parts and its end are written like.
    struct Client {
        name: &'static str,
        kind: &'static str,
        text: &'static str,
        file: &'static str,
        end: &'static str,
    }

    #[test]
    fn forms_are_read_as_clients_write_them() {
        let dashes = "multipart/form-data; boundary=------------------------d74496d66958873e";
        let hex = "multipart/form-data; boundary=0f2ac7d5b1ae4a1bb4ac0d4c3a7e0d5c";
        let named = "Content-Disposition: form-data; name=\"invoice\"\r\n";
        let typed = "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n";
        let clients = [
            Client { name: "curl", kind: dashes, text: named, file: typed, end: "\r\n" },
            Client { name: "httpx, urllib3, Stripe", kind: hex, text: named, file: typed, end: "\r\n" },
            Client {
                name: "requests with an old urllib3",
                kind: hex,
                text: named,
                file: "Content-Disposition: form-data; name=\"file\"; filename*=utf-8''%C3%A9.txt\r\n",
                end: "\r\n",
            },
            Client {
                name: "undici",
                kind: "multipart/form-data; boundary=----formdata-undici-054126217443",
                text: named,
                file: typed,
                end: "",
            },
            Client {
                name: "browsers",
                kind: "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
                text: named,
                file: "Content-Disposition: form-data; name=\"file\"; filename=\"C:\\a%22 é.txt\"\r\n\
                       Content-Type: application/octet-stream\r\n",
                end: "\r\n",
            },
            Client {
                name: "aiohttp",
                kind: hex,
                text: "Content-Type: text/plain; charset=utf-8\r\n\
                       Content-Disposition: form-data; name=\"invoice\"\r\n",
                file: "Content-Type: text/plain\r\nContent-Disposition: form-data; name=\"file\"; \
                       filename=\"e.txt\"; filename*=utf-8''%C3%A9.txt\r\n",
                end: "\r\n",
            },
            Client {
                name: "Go",
                kind: "multipart/form-data; boundary=9a1b5c0e9d7f4a0c8b2f6e3d1c0b9a8f7e6d5c4b3a2918070605040302",
                text: named,
                file: "Content-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\" \\\\ c.txt\"\r\n\
                       Content-Type: application/octet-stream\r\n",
                end: "\r\n",
            },
            Client {
                name: ".NET",
                kind: "multipart/form-data; boundary=\"1b3f8f0a-9d0c-4f6e-8f9c-0a8c5b7d9e01\"",
                text: "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=invoice\r\n",
                file: "Content-Disposition: form-data; name=file; filename=a.txt; filename*=utf-8''a.txt\r\n",
                end: "\r\n",
            },
            Client {
                name: "Apache HttpClient",
                kind: "multipart/form-data; charset=UTF-8; boundary=Ux9sYkCbYqTkF8-_",
                text: "Content-Disposition: form-data; name=\"invoice\"\r\nContent-Type: text/plain; \
                       charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n",
                file: "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
                       Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n",
                end: "\r\n",
            },
            Client {
                name: "OkHttp, Guzzle",
                kind: hex,
                text: "Content-Disposition: form-data; name=\"invoice\"\r\nContent-Length: 4\r\n",
                file: "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Length: 3\r\n",
                end: "\r\n",
            },
            Client {
                name: "Jersey",
                kind: "multipart/form-data;boundary=Boundary_1_1361923520_1612345678901",
                text: "Content-Type: text/plain\r\nContent-Disposition: form-data; name=\"invoice\"\r\n",
                file: "Content-Type: text/plain\r\nContent-Disposition: form-data; filename=\"a.txt\"; \
                       modification-date=\"Mon, 01 Jan 2024 00:00:00 GMT\"; size=3; name=\"file\"\r\n",
                end: "\r\n",
            },
            Client {
                name: "LWP",
                kind: "multipart/form-data; boundary=xYzZY",
                text: named,
                file: typed,
                end: "\r\n",
            },
        ];
        for Client { name, kind, text, file, end } in clients {
            let boundary = content_type::boundary(kind).unwrap();
            let body = format!(
                "--{boundary}\r\n{text}\r\n1001\r\n--{boundary}\r\n{file}\r\nabc\r\n--{boundary}--{end}"
            );
            let read = read(kind, &body).unwrap_or_else(|bad| panic!("{name}: {bad}"));
            assert!(read.contains(r#""invoice":"1001""#), "{name}: {read}");
            assert!(read.contains(r#""file":{"bytes":3,"#), "{name}: {read}");
        }
    }
}
