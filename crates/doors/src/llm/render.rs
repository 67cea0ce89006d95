//! From what came of a request to the response that its client can use.

use super::api::ModelApi;
use super::attachment::Attachment;
use super::call::ModelCall;
use super::form;
use super::joined_body::JoinedBody;
use super::live_answer::{AnswerForm, AnswerHead};
use super::recording::{self, Recording};
use super::usage;
use crate::delivery::Delivery;
use crate::http::server::on_sent::OnSent;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_core::answer::{Answer, Code, OutcomeWord, Retry};
use semel_core::effect::STORM;
use semel_core::ids::EffectId;
use semel_core::wording;
use semel_gate::{GivenReply, Passed};
use semel_ledger::RecordSnapshot;
use serde_json::{Value, json};
use std::sync::Arc;

const EFFECT: HeaderName = HeaderName::from_static("semel-effect-id");
const OUTCOME: HeaderName = HeaderName::from_static("semel-outcome");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Soon enough for a retry to be the one that joins.
const JOIN_AGAIN_MS: u64 = 1_000;

/// An answer that comes, as it comes.
pub fn following(call: &ModelCall, attached: Attachment, head: &AnswerHead) -> Response {
    let Attachment { reader, effect, joined } = attached;
    let outcome = if joined { OutcomeWord::Joined } else { OutcomeWord::Ran };
    let saves = joined.then(|| call.meter.clone());
    let on_sent = OnSent::default();
    let body = JoinedBody::new(reader, Arc::clone(&call.services), saves, on_sent.clone());
    let body = body.hiding_usage(joined && hides_usage(call, head));
    let mut response = Response::new(Body::new(body));
    response.extensions_mut().insert(on_sent);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers.clone();
    receipt(response.headers_mut(), effect, outcome);
    response
}

/// Whether an answer that another request was given says what this one did not ask for.
fn hides_usage(call: &ModelCall, head: &AnswerHead) -> bool {
    let request = &call.request;
    request.api == ModelApi::Chat && head.form == AnswerForm::Events && !request.include_usage
}

/// The response to a request whose answer had not begun before it was settled.
pub fn response(call: &ModelCall, passed: Passed, attached: Option<Attachment>) -> Response {
    let Passed { mut answer, reply, delivery } = passed;
    if let Some(trouble) = answer.trouble.as_mut().filter(|_| call.request.names_step) {
        wording::told_of_a_step(trouble);
    }
    match (reply, attached) {
        (GivenReply::Recorded(bytes), _) => match recording::read(bytes) {
            Some(recording) => recorded(call, recording, &answer, delivery),
            None => unkept(&answer),
        },
        // Whatever the API says of an error, it says to the client.
        (reply, Some(attached)) if reply == GivenReply::Live || passes_error(call, &answer, &attached) => {
            match attached.reader.live().head() {
                Some(head) => following(call, attached, &head),
                None => trouble(&answer),
            }
        }
        _ if answer.dry_run.is_some() => document(StatusCode::OK, &answer, json!(answer)),
        _ if answer.ok => unkept(&answer),
        _ => trouble(&answer),
    }
}

/// An attempt that ended in an error of the API, made or joined by this call. A stream that broke off in an error is
/// nothing to whoever asked for a document: it would pass for one.
fn passes_error(call: &ModelCall, answer: &Answer, attached: &Attachment) -> bool {
    let lost = answer.trouble.as_ref().is_some_and(|trouble| trouble.code == Code::InDoubt);
    let live = attached.reader.live();
    let fits = || live.head().is_some_and(|head| !head.status.is_success() || head.form == call.request.form);
    lost && live.is_error() && (!attached.joined || fits())
}

/// An answer from the record, in the form that is asked for.
fn recorded(
    call: &ModelCall,
    recording: Recording,
    answer: &Answer,
    delivery: Option<RecordSnapshot>,
) -> Response {
    let Recording { head, body } = recording;
    let wanted = call.request.form;
    let api = call.request.api;
    if let Some(cost) = usage::of_whole(api, head.form, &body).filter(|_| head.status.is_success()) {
        call.meter.saved(&call.services, cost);
    }
    let (body, form) = match head.status.is_success() && head.form != wanted {
        false if hides_usage(call, &head) => (form::without_usage(body), head.form),
        false => (body, head.form),
        true => match form::converted(api, wanted, &body, call.request.include_usage) {
            Some(converted) => (converted, wanted),
            None => {
                let is_new = |found: &RecordSnapshot| {
                    found.effect().is_some_and(|effect| effect.delivered_at.is_none())
                };
                return inconvertible(answer, wanted, delivery.as_ref().is_some_and(is_new));
            }
        },
    };
    let mut response = Response::new(Body::from(body));
    let late_from = Some(call.received_at + call.rule.late_after);
    if let Some(delivery) = Delivery::of(&call.services, delivery, late_from) {
        delivery.of_response(&mut response);
    }
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    if form != head.form {
        let kind = match form {
            AnswerForm::Document => "application/json",
            AnswerForm::Events => "text/event-stream; charset=utf-8",
        };
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    receipt(response.headers_mut(), answer.effect_id, answer.outcome);
    response
}

/// The answer is there, and cannot be said in the form that is asked for. Before anybody has it, no other is generated.
fn inconvertible(answer: &Answer, wanted: AnswerForm, is_new: bool) -> Response {
    let (this, other) = match wanted {
        AnswerForm::Document => ("as one document", "as a stream"),
        AnswerForm::Events => ("as a stream", "as one document"),
    };
    let what = format!("It was generated, but its answer cannot be given {this}.");
    let another = if is_new { "" } else { ", or with the header `Semel-Again: why` to generate another" };
    let next = format!("Ask for it {other}{another}.");
    let mut response = complaint(StatusCode::NOT_ACCEPTABLE, answer, "answer_in_another_form", &what, &next);
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

/// It was generated, and nobody can have it any more.
fn unkept(answer: &Answer) -> Response {
    let reason = answer.reason.as_deref().unwrap_or("its answer is not kept");
    let what = format!("It was generated, but its answer cannot be given: {reason}.");
    let next = "Ask again with the header `Semel-Again: why`, or under another step, to generate another.";
    let mut response = complaint(StatusCode::GONE, answer, "answer_not_kept", &what, next);
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

fn trouble(answer: &Answer) -> Response {
    let Some(trouble) = &answer.trouble else { return unkept(answer) };
    let status = match (trouble.code, trouble.is_it_safe_to_retry) {
        (Code::InFlight | Code::Lookalike | Code::Superseded | Code::CannotUndo, _) => StatusCode::CONFLICT,
        (Code::Drift, _) => StatusCode::UNPROCESSABLE_ENTITY,
        // A lost generation is generated again when it is asked for again; SDKs ask again after this.
        (Code::InDoubt, Retry::Yes) | (Code::UpstreamRefused | Code::NotStarted, _) => {
            StatusCode::BAD_GATEWAY
        }
        (Code::InDoubt | Code::KeyRequired, _) => StatusCode::BAD_REQUEST,
        (Code::Cancelled | Code::Refuted | Code::HeldForPerson, _) => StatusCode::FORBIDDEN,
        (Code::BudgetSpent | Code::LedgerUnavailable | Code::PolicyInvalid, _) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let what = &trouble.what_happened;
    let mut response = complaint(status, answer, trouble.code.word(), what, &trouble.next_step);
    let headers = response.headers_mut();
    match trouble.is_it_safe_to_retry {
        // For whoever reads the answer: an SDK would only be back too soon.
        _ if trouble.code == Code::BudgetSpent => {
            headers.insert(RETRY_AFTER, HeaderValue::from(STORM.as_secs()));
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        Retry::Wait => {
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(JOIN_AGAIN_MS));
            headers.insert(RETRY_AFTER, HeaderValue::from(JOIN_AGAIN_MS.div_ceil(1_000)));
        }
        Retry::Yes if status == StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Retry::Yes => {}
        Retry::No => drop(headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"))),
    }
    response
}

/// The answer object as a problem (RFC 9457), with what the SDKs of these APIs look for in an error.
fn complaint(status: StatusCode, answer: &Answer, code: &str, what: &str, next: &str) -> Response {
    let mut problem = json!(answer);
    let message = format!("semel: {what} {next}");
    if let Some(members) = problem.as_object_mut() {
        members.insert("title".into(), json!(code));
        members.insert("status".into(), json!(status.as_u16()));
        members.insert("detail".into(), json!(message));
        members.insert(
            "error".into(),
            json!({"type": format!("semel_{code}"), "code": code, "message": message}),
        );
    }
    let mut response = document(status, answer, problem);
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn document(status: StatusCode, answer: &Answer, value: Value) -> Response {
    let body = Bytes::from(value.to_string());
    let mut response = Response::new(Body::from(body.clone()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    receipt(headers, answer.effect_id, answer.outcome);
    response
}

fn receipt(headers: &mut HeaderMap, effect: Option<EffectId>, outcome: OutcomeWord) {
    headers.insert(OUTCOME, HeaderValue::from_static(outcome.word()));
    if let Some(Ok(effect)) = effect.map(|effect| HeaderValue::from_str(&effect.to_string())) {
        headers.insert(EFFECT, effect);
    }
    if outcome == OutcomeWord::Replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
}
