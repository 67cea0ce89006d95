//! Asking by an HTTP request.

use super::origins::{OriginOwner, Origins, UrlOrigin};
use super::pages::{LINK, has_next, next_page};
use super::response::{ANSWER_BYTES_MAX, QueryResponse, ResponseKind, TAKES_MAX};
use super::subject::Credentials;
use crate::http::body;
use crate::http::client::Client;
use crate::http::target::Target;
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Request, header};
use semel_core::json::{self, Json};

pub async fn ask(
    method: &str,
    url: &str,
    origins: &Origins,
    credentials: Credentials<'_>,
) -> Result<QueryResponse, String> {
    let (target, headers) = address(url, origins, credentials)?;
    let (head, body) = exchange(method, target, headers, ANSWER_BYTES_MAX).await?;
    let resp = content(&head.headers, &body)?;
    let more = has_next(&head.headers).then(|| LINK.to_owned()).or_else(|| next_page(&resp));
    let headers = shown(&head.headers);
    Ok(QueryResponse { resp, kind: ResponseKind::Http { status: head.status.as_u16(), headers }, more })
}

/// One request, and its whole answer.
pub async fn exchange(
    method: &str,
    target: Target,
    headers: HeaderMap,
    bytes_max: usize,
) -> Result<(Parts, Bytes), String> {
    let request = request(method, &target, headers, Bytes::new())?;
    let about = target.to_string();
    let client = Client::to(target).map_err(|error| error.to_string())?;
    let asked = tokio::time::timeout(TAKES_MAX, async {
        let prepared = client.prepare_read().await.map_err(|error| error.to_string())?;
        let response = client.send(prepared, request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body::read(body, bytes_max, TAKES_MAX).await.map_err(|error| error.to_string())?;
        Ok((head, body))
    });
    asked.await.map_err(|_| format!("{about} did not answer"))?
}

/// Where to ask, and what the operator sends there; the caller's own credential goes to its own upstream alone.
pub fn address(
    url: &str,
    origins: &Origins,
    credentials: Credentials<'_>,
) -> Result<(Target, HeaderMap), String> {
    let target = Target::parse(url).map_err(|error| error.to_string())?;
    let own = match credentials {
        Credentials::Headers { upstream, .. } => Some(upstream),
        Credentials::None | Credentials::Server { .. } => None,
    };
    let target = origins.lead(target, own)?;
    let lent = match credentials {
        Credentials::Headers { upstream, headers } if *upstream == UrlOrigin::of(&target) => {
            Some(headers.clone())
        }
        _ => None,
    };
    match (origins.of(&target), lent) {
        (OriginOwner::Unknown, lent) => Ok((target, lent.unwrap_or_default())),
        (OriginOwner::Known(known), lent) => {
            let mut headers = lent.unwrap_or_default();
            for (name, value) in known.headers.as_ref().map_err(Clone::clone)? {
                headers.insert(name, value.clone());
            }
            Ok((target.with_private(known.private), headers))
        }
        (OriginOwner::Several { private }, Some(headers)) => Ok((target.with_private(private), headers)),
        (OriginOwner::Several { .. }, None) => Err(format!(
            "several accounts are at {}, and nobody knows with whose credential to ask",
            target.authority()
        )),
    }
}

pub fn request(
    method: &str,
    target: &Target,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Bytes>, String> {
    let path = target.uri().path_and_query().map_or("/", |path| path.as_str());
    let mut request =
        Request::builder().method(method).uri(path).body(body).map_err(|error| error.to_string())?;
    let all = request.headers_mut();
    all.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
    all.insert(header::USER_AGENT, HeaderValue::from_static(concat!("semel/", env!("CARGO_PKG_VERSION"))));
    all.extend(headers);
    // An encoded answer could not be read, and no connection is kept open for the next question.
    all.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    all.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let host = HeaderValue::from_str(target.authority()).map_err(|error| error.to_string())?;
    all.insert(header::HOST, host);
    Ok(request)
}

/// The body as JSON, else as text. What says that it is JSON and is none was cut off.
pub fn content(headers: &HeaderMap, body: &[u8]) -> Result<Json, String> {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err("it answered in an encoding that was not asked for".into());
    }
    if body.is_empty() {
        return Ok(Json::Null);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match json::parse_bytes(body) {
        Ok(json) => Ok(json),
        Err(error) if kind.to_ascii_lowercase().contains("json") => {
            Err(format!("its JSON is broken: {error}"))
        }
        Err(_) => Ok(Json::str(&String::from_utf8_lossy(body))),
    }
}

/// Names in lower case; of those that come twice, the values side by side, as HTTP joins them.
fn shown(headers: &HeaderMap) -> Json {
    let joined = headers.keys().map(|name| {
        let values: Vec<&str> =
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        (name.as_str().to_owned(), Json::str(&values.join(", ")))
    });
    Json::Object(joined.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::policy::template::Template;

    fn filled(url: &str, id: &str) -> Result<String, String> {
        let places = Json::object([("args", Json::object([("id", Json::str(id))]))]);
        Template::parse(url).unwrap().render_url(&places).map_err(|missing| missing.to_string())
    }

    #[test]
    fn a_value_cannot_leave_its_place_in_the_url() {
        let url = "https://api.example.com/v1/charges/{args.id}?q={args.id}";
        for id in
            ["ch/1", "ch?x=1", "ch&x=1", "ch#x", "@evil.example", "a b", "%2e%2e", "..%2f", "é", "\r\nX: 1"]
        {
            let filled = filled(url, id).unwrap();
            let target = Target::parse(&filled).unwrap();
            assert_eq!(target.host(), "api.example.com", "{id}");
            let path = target.uri().path();
            assert_eq!(path.matches('/').count(), 3, "{id}: {path}");
            assert_eq!(target.uri().query().unwrap().matches(['=', '&']).count(), 1, "{id}");
        }
    }

    #[test]
    fn a_value_that_would_step_out_of_the_path_is_refused() {
        for (url, id) in [
            ("https://x.example/a/{args.id}/b", ".."),
            ("https://x.example/a/{args.id}", "."),
            ("https://x.example/a/{args.id}{args.id}/b", "."),
            ("https://x.example/a/.{args.id}", "."),
            ("https://x.example/charges/{args.id}", ""),
        ] {
            assert!(filled(url, id).is_err(), "{url} with {id:?}");
        }
        assert!(filled("https://x.example/a?b={args.id}", "a.b").is_ok());
    }

    #[test]
    fn a_body_is_json_else_text_and_what_was_cut_is_neither() {
        let of = |kind: &str, body: &str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
            content(&headers, body.as_bytes())
        };
        assert_eq!(of("application/json", "[1]").unwrap().canonical(), "[1]");
        assert_eq!(of("text/plain", "paid").unwrap(), Json::str("paid"));
        assert_eq!(of("text/plain", "").unwrap(), Json::Null);
        assert!(of("application/problem+json", "{\"id\": \"ch").is_err());
    }
}
