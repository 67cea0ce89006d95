//! Where a key stands in a request: found there, taken out of what makes two requests the same, and put there.

use super::arguments::{Arguments, BodyShape};
use super::graphql::KeyEdit;
use super::key::{self, BadKey};
use super::offer::Offer;
use crate::wire::form;
use crate::wire::members::{Members, quoted};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use semel_core::ids::IdempotencyKey;
use semel_core::json::{Json, Object};
use semel_core::policy::rule::{Inject, InjectInto};

/// Whether a request can carry a key there. A rule for all requests of an API meets some that cannot, and a key that
/// nobody reads protects nobody.
pub fn fits(inject: &Inject, arguments: &Arguments) -> bool {
    match (&inject.into, &arguments.shape) {
        (InjectInto::Header(name), _) => HeaderName::try_from(name.as_str()).is_ok(),
        (InjectInto::Query(_), _) => true,
        (InjectInto::Body(path), BodyShape::Json | BodyShape::Graphql(_)) => {
            // An object that the request does not have is none that the upstream would look into.
            let (around, _) = path.rsplit_once('.').unwrap_or_default();
            let around = around.split('.').filter(|step| !step.is_empty());
            let object = around.fold(arguments.json.get("body"), |json, step| json?.get(step));
            matches!(object, Some(Json::Object(_)))
        }
        (InjectInto::Body(_), BodyShape::Form) => true,
        // With another text it would not be the document that its digest names.
        (InjectInto::Directive(_), BodyShape::Graphql(_)) if arguments.has_named_document() => false,
        (InjectInto::Directive(name), BodyShape::Graphql(graphql)) => {
            graphql.takes_key(name, arguments.json.get("body").and_then(|body| body.get("variables")))
        }
        _ => false,
    }
}

/// The key that the client itself put where the rule would put one.
pub fn given(
    inject: &Inject,
    arguments: &Arguments,
    headers: &HeaderMap,
    offer: &Offer,
) -> Result<Option<IdempotencyKey>, BadKey> {
    let text = match &inject.into {
        InjectInto::Header(name) => {
            let name = HeaderName::try_from(name.as_str()).ok();
            let given = name.map(|name| key::of_header(headers, &name)).transpose()?.flatten();
            return given.map(|given| key::checked(given, offer)).transpose();
        }
        InjectInto::Query(name) => member(arguments, "query", name),
        InjectInto::Body(path) => match arguments.shape {
            BodyShape::Form => member(arguments, "body", path),
            _ => path
                .split('.')
                .try_fold(arguments.json.get("body"), |json, step| Some(json?.get(step)))
                .flatten()
                .and_then(|json| match json {
                    Json::String(text) => Some(text.clone()),
                    // A client that counts its requests means the count.
                    Json::Number(_) => Some(json.canonical()),
                    _ => None,
                }),
        },
        InjectInto::Directive(name) => match &arguments.shape {
            BodyShape::Graphql(graphql) => {
                let body = arguments.json.get("body");
                graphql.key(name, body.and_then(|body| body.get("variables")).and_then(Json::as_object))
            }
            _ => None,
        },
        _ => None,
    };
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let place = place(&inject.into);
    let given = IdempotencyKey::parse(&text).map_err(|bad| BadKey::Malformed(place, bad))?;
    key::checked(given, offer).map(Some)
}

/// A client's own key in its place, as it is written there: `"k"` and `k` are one name here, and may be two upstream.
pub fn as_it_came(inject: &Inject, headers: &HeaderMap, key: Option<&IdempotencyKey>) -> String {
    let place = place(&inject.into).to_ascii_lowercase();
    let in_header = match &inject.into {
        InjectInto::Header(name) => headers.get(name.as_str()),
        _ => None,
    };
    match in_header {
        Some(value) => format!("{place}\nas it came {}", String::from_utf8_lossy(value.as_bytes())),
        None => format!("{place}\nas it came {}", key.map_or("", IdempotencyKey::as_str)),
    }
}

fn place(into: &InjectInto) -> String {
    match into {
        InjectInto::Query(name) => format!("the parameter {name}"),
        InjectInto::Directive(name) => format!("@{name}"),
        InjectInto::Body(name) => format!("{name} in the body"),
        InjectInto::Header(name) | InjectInto::Arg(name) | InjectInto::Flag(name) | InjectInto::Env(name) => {
            name.clone()
        }
    }
}

fn member(arguments: &Arguments, root: &str, name: &str) -> Option<String> {
    arguments.json.get(root)?.get(name)?.as_str().map(str::to_owned)
}

/// The old value there tells nothing about the request: it is not compared.
pub fn forget(inject: &Inject, arguments: &mut Arguments) {
    let Json::Object(all) = &mut arguments.json else { return };
    match &inject.into {
        InjectInto::Header(name) => remove(all, "headers", &[name.to_ascii_lowercase().as_str()]),
        InjectInto::Query(name) => remove(all, "query", &[name]),
        InjectInto::Body(path) if arguments.shape == BodyShape::Form => remove(all, "body", &[path]),
        InjectInto::Body(path) => remove(all, "body", &path.split('.').collect::<Vec<_>>()),
        InjectInto::Directive(name) => {
            let (BodyShape::Graphql(graphql), Some(Json::Object(body))) =
                (&arguments.shape, all.get_mut("body"))
            else {
                return;
            };
            let document = body.get("query").and_then(Json::as_str).unwrap_or_default();
            match graphql.with_key(document, name, "") {
                Some(KeyEdit::Document(edited)) => drop(body.insert("query", Json::String(edited))),
                Some(KeyEdit::Variable(variable)) => remove(body, "variables", &[&variable]),
                None => {}
            }
        }
        InjectInto::Arg(_) | InjectInto::Flag(_) | InjectInto::Env(_) => {}
    }
}

fn remove(object: &mut Object, name: &str, path: &[&str]) {
    let [first, rest @ ..] = path else { return drop(object.remove(name)) };
    if let Some(Json::Object(inner)) = object.get_mut(name) {
        remove(inner, first, rest);
    }
}

/// The parts of a request that may hold a key.
#[derive(Debug)]
pub struct RequestParts<'a> {
    pub uri: &'a mut Uri,
    pub headers: &'a mut HeaderMap,
    pub body: &'a mut Bytes,
    pub shape: &'a BodyShape,
}

/// Puts the key there, in place of what stands there.
pub fn put(inject: &Inject, key: &str, request: RequestParts<'_>) {
    put_as(inject, key, &quoted(key), request);
}

/// Puts any value there; in JSON it is what it looks like: `true` is no text.
pub fn put_value(inject: &Inject, value: &str, request: RequestParts<'_>) {
    let json = semel_core::json::parse(value).map_or_else(|_| quoted(value), |_| value.to_owned());
    put_as(inject, value, &json, request);
}

fn put_as(inject: &Inject, key: &str, json: &str, request: RequestParts<'_>) {
    let RequestParts { uri, headers, body, shape } = request;
    match &inject.into {
        InjectInto::Header(name) => {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_str(key)) {
                headers.insert(name, value);
            }
        }
        InjectInto::Query(name) => {
            let query = form::with(uri.query().unwrap_or_default(), name, key);
            if let Ok(whole) = PathAndQuery::try_from(format!("{}?{query}", uri.path())) {
                *uri = Uri::from(whole);
            }
        }
        InjectInto::Body(path) => {
            let text = std::str::from_utf8(body).unwrap_or_default();
            let edited = match shape {
                BodyShape::Form => Some(form::with(text, path, key)),
                _ => with_member(text, &path.split('.').collect::<Vec<_>>(), json),
            };
            if let Some(edited) = edited {
                *body = Bytes::from(edited);
            }
        }
        InjectInto::Directive(name) => {
            if let BodyShape::Graphql(graphql) = shape
                && let Some(edited) = with_directive(body, graphql, name, key)
            {
                *body = Bytes::from(edited);
            }
        }
        InjectInto::Arg(_) | InjectInto::Flag(_) | InjectInto::Env(_) => {}
    }
}

/// An object with one member set, however deep; all else stays as it was written.
fn with_member(text: &str, path: &[&str], value: &str) -> Option<String> {
    let mut members = Members::parse(text)?;
    match path {
        [] => return None,
        [name] => members.set(name, value.to_owned()),
        [name, rest @ ..] => {
            let inner = with_member(members.get(name).unwrap_or("{}"), rest, value)?;
            members.set(name, inner);
        }
    }
    Some(members.to_string())
}

fn with_directive(body: &[u8], graphql: &super::graphql::Graphql, name: &str, key: &str) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let members = Members::parse(text)?;
    let document = members.text("query")?;
    let (path, value) = match graphql.with_key(&document, name, key)? {
        KeyEdit::Document(edited) => (vec!["query".to_owned()], edited),
        KeyEdit::Variable(variable) => (vec!["variables".to_owned(), variable], key.to_owned()),
    };
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    with_member(text, &path, &quoted(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::path::UpstreamPath;
    use semel_core::policy::rule::KeyForm;

    fn inject(into: InjectInto) -> Inject {
        Inject { into, form: KeyForm::Text, length: None, valid_for: None }
    }

    fn read(kind: &str, path: &str, query: Option<&str>, body: &str) -> Arguments {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, kind.parse().unwrap());
        Arguments::read(&UpstreamPath::at("", path).unwrap(), query, &headers, &Bytes::from(body.to_owned()))
            .unwrap()
    }

    fn with(into: InjectInto, kind: &str, path: &str, body: &str) -> Option<(String, String)> {
        let inject = inject(into);
        let arguments = read(kind, path, None, body);
        fits(&inject, &arguments).then(|| {
            let (mut uri, mut body) = (Uri::try_from(path).unwrap(), Bytes::from(body.to_owned()));
            let mut headers = HeaderMap::new();
            let shape = &arguments.shape;
            put(&inject, "K", RequestParts { uri: &mut uri, headers: &mut headers, body: &mut body, shape });
            (uri.to_string(), String::from_utf8(body.to_vec()).unwrap())
        })
    }

    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";

    #[test]
    fn a_key_is_put_where_the_upstream_reads_it() {
        let body = |name: &str| InjectInto::Body(name.to_owned());
        let put = |into, kind, body: &str| with(into, kind, "/a?x=%41", body);
        let written = |text: &str| Some(("/a?x=%41".to_owned(), text.to_owned()));
        assert_eq!(put(body("k"), JSON, r#"{ "n": 1.0 }"#), written(r#"{"n":1.0,"k":"K"}"#));
        assert_eq!(put(body("k"), JSON, r#"{"k":"old","n":1}"#), written(r#"{"k":"K","n":1}"#));
        assert_eq!(
            put(body("input.id"), JSON, r#"{"input":{"t":"x"}}"#),
            written(r#"{"input":{"t":"x","id":"K"}}"#)
        );
        assert_eq!(put(body("k"), FORM, "a=%20&k=old"), written("a=%20&k=K"));
        let query = put(InjectInto::Query("requestId".into()), JSON, "{}");
        assert_eq!(query, Some(("/a?x=%41&requestId=K".to_owned(), "{}".to_owned())));
        for (kind, unfit) in
            [(JSON, "[1]"), (JSON, r#"{"input":1}"#), (JSON, "{}"), ("text/plain", "x"), ("", "")]
        {
            assert_eq!(put(body("input.id"), kind, unfit), None, "{unfit}");
        }
    }

    #[test]
    fn a_directive_or_its_variable_gets_the_key() {
        let directive = || InjectInto::Directive("idempotent".to_owned());
        let put = |body: &str| with(directive(), JSON, "/graphql", body).map(|(_, body)| body);
        assert_eq!(
            put(r#"{"query":"mutation { pay(a: \"x\") { id } }","variables":{"v":1.0}}"#).unwrap(),
            r#"{"query":"mutation { pay(a: \"x\") @idempotent(key: \"K\") { id } }","variables":{"v":1.0}}"#
        );
        assert_eq!(
            put(r#"{"query":"mutation($k: String) { pay @idempotent(key: $k) }","variables":{"k":"c","v":1.0}}"#)
                .unwrap(),
            r#"{"query":"mutation($k: String) { pay @idempotent(key: $k) }","variables":{"k":"K","v":1.0}}"#
        );
        assert_eq!(put(r#"{"query":"mutation { a b }"}"#), None);
    }

    #[test]
    fn what_stands_there_is_not_compared() {
        let forgotten = |into, kind, path: &str, query, body: &str| {
            let mut arguments = read(kind, path, query, body);
            forget(&inject(into), &mut arguments);
            arguments.json.canonical()
        };
        assert_eq!(
            forgotten(InjectInto::Body("input.id".into()), JSON, "/", None, r#"{"input":{"id":"x","t":1}}"#),
            r#"{"body":{"input":{"t":1}},"path":"/"}"#
        );
        assert_eq!(
            forgotten(InjectInto::Query("k".into()), JSON, "/", Some("k=1&a=2"), ""),
            r#"{"path":"/","query":{"a":"2"}}"#
        );
        let document = |key: &str| format!(r#"{{"query":"mutation {{ pay @i(key: \"{key}\") }}"}}"#);
        let directive =
            |key| forgotten(InjectInto::Directive("i".into()), JSON, "/graphql", None, &document(key));
        assert_eq!(directive("a"), directive("b"));
    }
}
