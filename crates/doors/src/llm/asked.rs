//! A request for a generation, read once.

use super::api::Api;
use super::live::Form;
use crate::caller::Caller;
use crate::http::headers::end_to_end;
use crate::mcp::call::run_in_baggage;
use crate::proxy::Offer;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use semel_core::ids::{BadName, IdempotencyKey, Reason, Run};
use semel_core::json::{self, Json, Object};

const STEP: HeaderName = HeaderName::from_static("semel-step");
const AGAIN: HeaderName = HeaderName::from_static("semel-again");
const DRY_RUN: HeaderName = HeaderName::from_static("semel-dry-run");
/// The beginning of every header that is meant for semel alone.
const OWN: &str = "semel-";

/// Headers in which agents put a session of their own. It labels, and narrows nothing.
const SESSIONS: [HeaderName; 2] =
    [HeaderName::from_static("x-claude-code-session-id"), HeaderName::from_static("session-id")];

/// Headers that change what is generated, or who pays for it.
const TELLING: [HeaderName; 5] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// How often the SDK says it has sent this before.
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// What a client asked for.
#[derive(Debug)]
pub struct Asked {
    pub api: Api,
    /// Path and query behind the upstream's own address.
    pub path: String,
    /// What goes upstream.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What rules and keys are made of: `args` is the body, beside it what else tells requests apart.
    pub arguments: Json,
    /// The form in which the client wants its answer.
    pub form: Form,
    /// Whether a stream of chat completions is to end with what it cost.
    pub include_usage: bool,
    pub key: Option<IdempotencyKey>,
    pub again: Option<Reason>,
    pub run: Option<Run>,
    pub dry_run: bool,
    /// The SDK's own count of its retries.
    pub retry: u32,
}

/// Why a request cannot be understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("the body is encoded, and semel cannot tell what it asks for")]
    Encoded,
    #[error("the body: {0}")]
    Body(json::ParseError),
    #[error("the body must be an object")]
    NoObject,
    #[error("{0}: {1}")]
    Header(HeaderName, BadName),
    #[error("{0} must be text")]
    NotText(HeaderName),
}

impl Asked {
    pub fn read(
        offer: &Offer,
        api: Api,
        path: &str,
        caller: &Caller,
        parts: Parts,
        body: Bytes,
    ) -> Result<Asked, BadRequest> {
        let mut headers = parts.headers;
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(BadRequest::Encoded);
        }
        let Json::Object(object) = json::parse_bounded(&body).map_err(BadRequest::Body)? else {
            return Err(BadRequest::NoObject);
        };
        let again = match text(&headers, &AGAIN)? {
            None => None,
            Some(why) => Some(Reason::parse(why).map_err(|bad| BadRequest::Header(AGAIN, bad))?),
        };
        let run = run(caller, &headers)?;
        let key = key(offer, run.as_ref(), &headers)?;
        let query = parts.uri.query();
        let wants_events = object.get("stream").and_then(Json::as_bool) == Some(true);
        let options = object.get("stream_options");
        let usage = options.and_then(|options| options.get("include_usage")).and_then(Json::as_bool);
        let retry = headers.get(RETRY_COUNT).and_then(|count| count.to_str().ok()?.parse().ok());
        let dry_run =
            headers.get(DRY_RUN).is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0" | b"false"));
        let arguments = arguments(path, query, &headers, object);
        prepare(&mut headers, offer);
        Ok(Asked {
            api,
            path: query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")),
            headers,
            body,
            arguments,
            form: if wants_events { Form::Events } else { Form::Document },
            include_usage: usage == Some(true),
            key,
            again,
            run,
            dry_run,
            retry: retry.unwrap_or(0),
        })
    }
}

/// As large as the largest request that these APIs take.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// The body, and what tells two requests with equal bodies apart.
fn arguments(path: &str, query: Option<&str>, headers: &HeaderMap, body: Object) -> Json {
    let mut arguments = Object::new();
    arguments.insert("args", Json::Object(body));
    // With and without the version it is the same address; what else is in it may name a deployment.
    let path = path.strip_prefix("/v1").unwrap_or(path);
    arguments.insert("path", Json::str(path));
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        arguments.insert("query", Json::str(query));
    }
    let telling = TELLING.into_iter().filter_map(|name| {
        let values: Vec<String> = headers
            .get_all(&name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        (!values.is_empty()).then(|| (name.to_string(), Json::String(values.join(","))))
    });
    let telling: Object = telling.collect();
    if !telling.is_empty() {
        arguments.insert("headers", Json::Object(telling));
    }
    Json::Object(arguments)
}

/// The run, strongest first: what semel was told, what travels with the request, the agent's own session.
fn run(caller: &Caller, headers: &HeaderMap) -> Result<Option<Run>, BadRequest> {
    if let Some(run) = caller.run.as_ref().or(caller.surrounding_run.as_ref()) {
        return Ok(Some(run.clone()));
    }
    const BAGGAGE: HeaderName = HeaderName::from_static("baggage");
    if let Some(run) = text(headers, &BAGGAGE).ok().flatten().and_then(run_in_baggage) {
        return Run::named(&run).map(Some).map_err(|bad| BadRequest::Header(BAGGAGE, bad));
    }
    let session = SESSIONS.iter().find_map(|name| text(headers, name).ok().flatten());
    Ok(session.and_then(|session| Run::inferred(session).ok()))
}

/// The step that the caller names. Steps are counted anew in every run, so a step belongs to its run; a key is the
/// caller's own everywhere.
fn key(offer: &Offer, run: Option<&Run>, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, BadRequest> {
    if let Some(step) = text(headers, &STEP)? {
        IdempotencyKey::parse(step).map_err(|bad| BadRequest::Header(STEP, bad))?;
        let run = run.filter(|run| run.named).map_or("", |run| &run.id);
        let digest = semel_core::digest::Digest::of(&[b"step", run.as_bytes(), step.as_bytes()]);
        return Ok(Some(IdempotencyKey::parse(&format!("step-{digest}")).expect("a digest is a key")));
    }
    let Ok(name) = offer.keys.header.parse::<HeaderName>() else { return Ok(None) };
    match text(headers, &name)? {
        None => Ok(None),
        Some(key) => {
            let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
            IdempotencyKey::parse(bare).map(Some).map_err(|bad| BadRequest::Header(name, bad))
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, BadRequest> {
    match headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| BadRequest::NotText(name.clone())),
    }
}

/// What goes on to the upstream: nothing of this connection, nothing of semel's, the operator's headers in place of
/// the client's.
fn prepare(headers: &mut HeaderMap, offer: &Offer) {
    end_to_end(headers);
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in own.iter().chain(&[HOST, ORIGIN]) {
        headers.remove(name);
    }
    // What is compressed could not be looked at while it comes.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in &offer.headers {
        headers.insert(name, value.clone());
    }
}
