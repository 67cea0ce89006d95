//! From what a request came to, to a response.

use super::headers;
use super::offer::Offer;
use super::streamed::{StreamedBody, StreamedHead};
use crate::delivery::Delivery;
use crate::http::server::on_sent::OnSent;
use crate::reply::HttpReply;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_core::answer::{Answer, Code, OutcomeWord, Retry, Trouble};
use semel_core::effect::{Evidence, STORM};
use serde_json::{Value, json};

const EFFECT_ID: HeaderName = HeaderName::from_static("semel-effect-id");
const OUTCOME: HeaderName = HeaderName::from_static("semel-outcome");
const EFFECT: HeaderName = HeaderName::from_static("semel-effect");
const ATTEMPT: HeaderName = HeaderName::from_static("semel-attempt");
const EVIDENCE: HeaderName = HeaderName::from_static("semel-evidence");
const REASON: HeaderName = HeaderName::from_static("semel-reason");
const POSSIBLE_REPEAT: HeaderName = HeaderName::from_static("semel-possible-repeat");
const BEST_EFFORT: HeaderName = HeaderName::from_static("semel-best-effort");
const REPLY: HeaderName = HeaderName::from_static("semel-reply");
/// The name that Stripe gave it, and others took over.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The SDKs of model APIs look at this before they count statuses.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The same for the SDKs of Stripe.
const STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");

/// A twin has been waited for already; what still runs is worth a second.
const RETRY_SECONDS: u32 = 1;

/// The receipt of the caller, in headers.
#[derive(Debug)]
pub struct Receipt<'a> {
    answer: &'a Answer,
}

impl<'a> Receipt<'a> {
    pub fn of(answer: &'a Answer) -> Receipt<'a> {
        Receipt { answer }
    }

    fn write(&self, headers: &mut HeaderMap) {
        let answer = self.answer;
        if let Some(id) = answer.effect_id {
            put(headers, EFFECT_ID, &id.to_string());
        }
        headers.insert(OUTCOME, HeaderValue::from_static(answer.outcome.word()));
        headers.insert(EFFECT, HeaderValue::from_static(answer.effect.word()));
        if let Some(attempt) = answer.attempt {
            headers.insert(ATTEMPT, HeaderValue::from(attempt.0));
        }
        if let Some(evidence) = answer.evidence.filter(|evidence| *evidence != Evidence::Reported) {
            headers.insert(EVIDENCE, HeaderValue::from_static(evidence.word()));
        }
        if let Some(reason) = &answer.reason {
            put(headers, REASON, reason);
        }
        if answer.possible_repeat {
            headers.insert(POSSIBLE_REPEAT, HeaderValue::from_static("true"));
        }
        if answer.best_effort {
            headers.insert(BEST_EFFORT, HeaderValue::from_static("true"));
        }
    }
}

/// Text as a header can hold it.
fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let value = HeaderValue::from_str(text).or_else(|_| {
        let text: String = text.chars().map(plain).collect();
        HeaderValue::from_str(&text)
    });
    if let Ok(value) = value {
        headers.insert(name, value);
    }
}

/// The upstream's own answer, as it came, with the receipt.
pub fn live(
    status: StatusCode,
    headers: HeaderMap,
    receipt: &Receipt<'_>,
    offer: &Offer,
    body: Bytes,
    delivery: Option<Delivery>,
) -> Response {
    let mut headers = headers::downward(headers, status, offer);
    receipt.write(&mut headers);
    if let Some(elsewhere) = headers::keep_inside(&mut headers, status, offer) {
        put(
            &mut headers,
            REASON,
            &format!("the upstream redirects to {elsewhere}, which semel does not guard"),
        );
    }
    departing(response(status, headers, Body::from(body)), delivery)
}

/// The same, while it arrives.
pub fn streaming(begun: StreamedHead, offer: &Offer, best_effort: bool) -> Response {
    let StreamedHead { status, headers, length, parts, effect, attempt } = begun;
    let mut headers = headers::downward(headers, status, offer);
    put(&mut headers, EFFECT_ID, &effect.to_string());
    headers.insert(OUTCOME, HeaderValue::from_static(OutcomeWord::Ran.word()));
    headers.insert(ATTEMPT, HeaderValue::from(attempt.0));
    if best_effort {
        headers.insert(BEST_EFFORT, HeaderValue::from_static("true"));
    }
    let on_sent = OnSent::default();
    let mut response =
        response(status, headers, Body::new(StreamedBody::new(parts, length, on_sent.clone())));
    response.extensions_mut().insert(on_sent);
    response
}

/// The recorded reply, for a repeat.
pub fn replay(
    answer: &Answer,
    recorded: Vec<u8>,
    usual_status: StatusCode,
    delivery: Option<Delivery>,
) -> Response {
    let HttpReply { status, mut headers, body } = HttpReply::of_any(recorded, usual_status);
    Receipt::of(answer).write(&mut headers);
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    departing(response(status, headers, Body::from(body)), delivery)
}

/// The answer in semel's own words: a success whose reply is not known, a dry run, or why it is none.
pub fn answer(answer: &Answer, offer: &Offer, delivery: Option<Delivery>) -> Response {
    let mut headers = HeaderMap::new();
    Receipt::of(answer).write(&mut headers);
    let object = serde_json::to_value(answer).unwrap_or_default();
    let (status, kind, document) = match &answer.trouble {
        None if answer.dry_run.is_some() => (StatusCode::OK, "application/json", object),
        None => {
            if matches!(answer.outcome, OutcomeWord::Replayed | OutcomeWord::Joined) {
                headers.insert(REPLAYED, HeaderValue::from_static("true"));
            }
            headers.insert(REPLY, HeaderValue::from_static("unknown"));
            (StatusCode::OK, "application/problem+json", without_reply(object))
        }
        Some(trouble) => {
            let status = status(trouble.code, offer);
            advise(trouble, offer, &mut headers);
            (status, "application/problem+json", problem(status, trouble.code, offer, object))
        }
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let body = Bytes::from(document.to_string());
    departing(response(status, headers, Body::from(body)), delivery)
}

/// RFC 9457, with the answer's members as its extensions, and with `error`: some SDKs take whatever lacks that member
/// for a success, whatever its status. Its message is all that most of them show, and so all that a model may see.
fn problem(status: StatusCode, code: Code, offer: &Offer, mut object: Value) -> Value {
    let said = |member: &str| object[member].as_str().unwrap_or_default();
    let detail = format!("semel: {}", said("what_happened"));
    let mut message = format!("{detail} {}", said("next_step"));
    if let Some(effect) = object["effect_id"].as_str().filter(|effect| !message.contains(effect)) {
        message.push_str(&format!(" [{effect}]"));
    }
    let kind = match code {
        // By this its SDKs know which error to raise.
        Code::Drift if offer.preset == Some("stripe") => "idempotency_error".to_owned(),
        code => format!("semel_{code}"),
    };
    let error = json!({"type": kind, "code": code, "message": message});
    let mut document =
        json!({"title": code.word(), "status": status.as_u16(), "detail": detail, "error": error});
    if let (Some(document), Some(object)) = (document.as_object_mut(), object.as_object_mut()) {
        document.append(object);
    }
    document
}

/// It happened, and nobody here knows what the upstream answered. No client should take this for that.
fn without_reply(object: Value) -> Value {
    let reason = object["reason"].as_str().unwrap_or("it happened").trim_end_matches('.');
    let detail =
        format!("semel: {reason}. The upstream's reply is not known here. Read it from the upstream.");
    let mut document = json!({"title": "reply_unknown", "status": StatusCode::OK.as_u16(), "detail": detail});
    if let (Some(document), Value::Object(mut object)) = (document.as_object_mut(), object) {
        document.append(&mut object);
    }
    document
}

fn status(code: Code, offer: &Offer) -> StatusCode {
    let of_api = |code| StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    match code {
        Code::InFlight => of_api(offer.keys.in_flight_status),
        Code::Drift => of_api(offer.keys.drift_status),
        Code::InDoubt => StatusCode::LOCKED,
        Code::KeyRequired => StatusCode::BAD_REQUEST,
        Code::Cancelled | Code::Refuted | Code::HeldForPerson => StatusCode::FORBIDDEN,
        // Somebody else's attempt was refused, of which nothing was kept.
        Code::UpstreamRefused => StatusCode::FAILED_DEPENDENCY,
        Code::NotStarted => StatusCode::BAD_GATEWAY,
        Code::Lookalike | Code::Superseded | Code::CannotUndo => StatusCode::CONFLICT,
        Code::BudgetSpent | Code::LedgerUnavailable | Code::PolicyInvalid => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Whether to try again, in the headers that clients obey.
fn advise(trouble: &Trouble, offer: &Offer, headers: &mut HeaderMap) {
    let code = trouble.code;
    match trouble.is_it_safe_to_retry {
        // A doubt that waits for its upstream is for whoever reads the answer; an SDK would be back at once.
        _ if code == Code::InDoubt => without_retry(offer, headers),
        Retry::No => without_retry(offer, headers),
        // For whoever reads the answer too; the header says how long at least.
        _ if code == Code::BudgetSpent => {
            without_retry(offer, headers);
            headers.insert(RETRY_AFTER, HeaderValue::from(STORM.as_secs()));
        }
        Retry::Wait | Retry::Yes if matches!(code, Code::InFlight | Code::LedgerUnavailable) => {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(RETRY_SECONDS * 1000));
        }
        Retry::Wait | Retry::Yes => {}
    }
}

fn without_retry(offer: &Offer, headers: &mut HeaderMap) {
    let no = HeaderValue::from_static("false");
    if offer.preset == Some("stripe") {
        headers.insert(STRIPE_SHOULD_RETRY, no.clone());
    }
    headers.insert(SHOULD_RETRY, no);
}

fn departing(mut response: Response, delivery: Option<Delivery>) -> Response {
    if let Some(delivery) = delivery {
        delivery.of_response(&mut response);
    }
    response
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
