//! Answers on their way out.

use super::Api;
use super::problem::Problem;
use crate::command::render::Output as CommandOutput;
use crate::http::body::Piped;
use crate::proxy::reply::Kept;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use semel_core::answer::Answer;
use semel_core::digest::Digest;
use semel_gate::GivenReply;
use semel_gate::clock::Clock;
use semel_ledger::Found;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List<T> {
    pub schema_version: u32,
    pub items: Vec<T>,
    /// Where to go on, as `cursor`; null at the end. A page may be short, or empty, and still have a next one.
    pub next: Option<String>,
}

impl<T> List<T> {
    pub fn of(items: Vec<T>, next: Option<String>) -> List<T> {
        List { schema_version: 1, items, next }
    }
}

pub fn json(value: &impl Serialize) -> Result<Response, Problem> {
    Ok(document(Body::from(text(value)?), "application/json"))
}

pub fn markdown(text: String) -> Response {
    document(Body::from(text), "text/markdown; charset=utf-8")
}

fn text(value: &impl Serialize) -> Result<String, Problem> {
    let failed =
        |error: serde_json::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    serde_json::to_string(value).map_err(failed)
}

fn document(body: Body, kind: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What was recorded, as JSON to the digit.
pub fn data(reply: &[u8]) -> Box<RawValue> {
    let raw = |text: String| RawValue::from_string(text).ok();
    let output = || CommandOutput::decode(reply).and_then(|output| raw(output.data().to_string()));
    let answer = || raw(Kept::decode(reply.to_vec())?.data());
    let exact = || raw(String::from_utf8(reply.to_vec()).ok()?);
    let words = || raw(serde_json::json!({"text": String::from_utf8_lossy(reply)}).to_string());
    output().or_else(answer).or_else(exact).or_else(words).unwrap_or_default()
}

/// An answer with the reply that belongs to it. The tree of `serde_json` would round its numbers, so it is put in as
/// the text that it is.
pub fn answer(answer: &Answer, reply: &GivenReply) -> Result<String, Problem> {
    let mut whole = text(answer)?;
    if let GivenReply::Recorded(bytes) = reply
        && let Some(head) = whole.strip_suffix("\"data\":null}")
    {
        whole = format!("{head}\"data\":{}}}", data(bytes).get());
    }
    Ok(whole)
}

/// A success whose answer still has to reach its caller.
#[derive(Debug)]
pub struct Delivery {
    pub found: Option<Found>,
    pub came: Duration,
    pub late_after: Duration,
}

/// Once the connection has taken all of it in time, it counts as delivered; the client's next call waits for that mark.
pub fn delivering(api: Arc<Api>, text: String, delivery: Delivery) -> Response {
    let unmarked = |found: &Found| found.effect().is_some_and(|effect| effect.delivered_at.is_none());
    let Some(found) = delivery.found.filter(unmarked) else {
        return document(Body::from(text), "application/json");
    };
    let key: Digest = found.key;
    let left = api.hall.leaving.begin(key);
    let (writer, body) = Piped::new();
    tokio::spawn(async move {
        // Once there is room for as many parts as ever wait, the connection has taken them all.
        let taken = writer.send(Bytes::from(text)).await.is_ok()
            && writer.reserve_many(writer.max_capacity()).await.is_ok();
        let late = api.hall.clock.elapsed().saturating_sub(delivery.came) > delivery.late_after;
        if let (true, false, Ok(gate)) = (taken, late, &api.hall.gate) {
            let _working = api.hall.busy.begin();
            // A missing mark means undelivered: the next call is answered from the record, which is safe.
            let _unmarked = gate.delivered(&found).await;
        }
        drop(left);
    });
    document(Body::new(body), "application/json")
}
