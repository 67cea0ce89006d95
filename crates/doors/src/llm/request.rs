//! A request for a generation, read once.

use super::api::ModelApi;
use super::live_answer::AnswerForm;
use crate::call_options::{BadOption, CallOptions, STEP};
use crate::caller::Caller;
use crate::http::body::unshared;
use crate::http::call_metadata;
use crate::http::headers::unshare;
use crate::proxy::Offer;
use crate::proxy::headers::{self, is_read_as_it_is};
use crate::proxy::key::{self, BadKey};
use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use semel_core::call_metadata::CallMetadata;
use semel_core::digest::Digest;
use semel_core::ids::{IdempotencyKey, Reason, Run};
use semel_core::json::{self, Json, Object};

/// Headers in which agents put a session of their own. It labels, and narrows nothing.
const SESSIONS: [HeaderName; 2] =
    [HeaderName::from_static("x-claude-code-session-id"), HeaderName::from_static("session-id")];

/// Headers that change what is generated, by whom, or who pays for it.
const TELLING: [HeaderName; 10] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("azureml-model-deployment"),
    HeaderName::from_static("x-portkey-provider"),
    HeaderName::from_static("x-portkey-config"),
    HeaderName::from_static("x-portkey-custom-host"),
    HeaderName::from_static("helicone-target-url"),
];

/// What spans and counts know of a model's name, which is the client's to choose.
const MODEL_CHARS_MAX: usize = 200;

/// What a client asked for.
#[derive(Debug)]
pub struct ModelRequest {
    pub api: ModelApi,
    /// The form in which the client wants its answer.
    pub form: AnswerForm,
    /// Whether a stream of chat completions is to end with what it cost.
    pub include_usage: bool,
    pub key: Option<IdempotencyKey>,
    /// The key stands for the step that the client names, and it knows of none.
    pub names_step: bool,
    pub again: Option<Reason>,
    pub run: Option<Run>,
    pub dry_run: bool,
}

/// The request to the upstream.
#[derive(Debug, Clone)]
pub struct ModelOutgoing {
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A request, taken apart. The arguments are what rules and keys are made of: `args` is the body, beside it what else
/// tells requests apart. They are as large as the body, and not needed for long.
#[derive(Debug)]
pub struct ParsedRequest {
    pub request: ModelRequest,
    pub arguments: Json,
    pub metadata: CallMetadata,
    pub outgoing: ModelOutgoing,
}

/// Why a request cannot be understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadModelRequest {
    #[error("the body is encoded, and semel cannot tell what it asks for")]
    Encoded,
    #[error("the body: {0}")]
    Body(json::ParseError),
    #[error("the body must be an object")]
    NoObject,
    #[error("the path is no path")]
    Path,
    #[error(transparent)]
    Wish(#[from] BadOption),
    #[error(transparent)]
    Key(#[from] BadKey),
}

pub fn read(
    offer: &Offer,
    api: ModelApi,
    path: &str,
    caller: &Caller,
    parts: Parts,
    body: Bytes,
) -> Result<ParsedRequest, BadModelRequest> {
    let headers = parts.headers;
    if !is_read_as_it_is(&headers) {
        return Err(BadModelRequest::Encoded);
    }
    let Json::Object(object) = json::parse_bounded(&body).map_err(BadModelRequest::Body)? else {
        return Err(BadModelRequest::NoObject);
    };
    let options = CallOptions::of(&headers)?;
    let run = run(caller, &options, &headers);
    let wants_events = object.get("stream").and_then(Json::as_bool) == Some(true);
    let of_stream = object.get("stream_options");
    let usage = of_stream.and_then(|options| options.get("include_usage")).and_then(Json::as_bool);
    let model = object.get("model").and_then(Json::as_str);
    let model = model.map(|model| model.chars().take(MODEL_CHARS_MAX).collect());
    let key = key(offer, run.as_ref(), &headers)?;
    // A step is the agent's own name for what it does.
    let names_step = headers.contains_key(&STEP);
    let metadata = CallMetadata { model, ..call_metadata(&headers) };
    let request = ModelRequest {
        api,
        form: if wants_events { AnswerForm::Events } else { AnswerForm::Document },
        include_usage: usage == Some(true),
        key,
        names_step,
        again: options.again,
        run,
        dry_run: options.dry_run,
    };
    let query = parts.uri.query();
    let arguments = arguments(path, query, &headers, object);
    let mut headers = headers::upward(headers, offer);
    // A compressed answer could not be looked at while it comes.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    unshare(&mut headers);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    let uri = format!("{}{path}{query}", offer.base).parse().map_err(|_| BadModelRequest::Path)?;
    let body = unshared(body);
    Ok(ParsedRequest { request, arguments, metadata, outgoing: ModelOutgoing { uri, headers, body } })
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
fn run(caller: &Caller, options: &CallOptions, headers: &HeaderMap) -> Option<Run> {
    let told = caller.run.as_ref().or(caller.surrounding_run.as_ref()).or(options.baggage.as_ref());
    told.cloned().or_else(|| {
        let session = SESSIONS.iter().find_map(|name| headers.get(name))?;
        Run::inferred(session.to_str().ok()?).ok()
    })
}

/// The step that the caller names. Steps are counted anew in every run, so a step belongs to its run; a key is the
/// caller's own everywhere.
fn key(offer: &Offer, run: Option<&Run>, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, BadKey> {
    let Some(step) = key::of_header(headers, &STEP)? else { return key::in_header(headers, offer) };
    let run = run.filter(|run| run.named).map_or("", |run| &run.id);
    let digest = Digest::of(&[b"step", run.as_bytes(), step.as_str().as_bytes()]);
    Ok(Some(IdempotencyKey::parse(&format!("step-{digest}")).expect("a digest is a key")))
}
