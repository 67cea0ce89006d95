//! Answers on their way out.

use super::problem::Problem;
use crate::delivery::Delivery;
use crate::reply;
use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use semel_core::answer::Answer;
use semel_gate::GivenReply;
use serde::Serialize;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List<T> {
    pub schema_version: u32,
    pub items: Vec<T>,
    /// Where to go on, as `cursor`; null at the end. A page may be short, or empty, and still have a next one.
    pub next: Option<String>,
    /// How many on this page cannot be read and were left out; absent where there are none.
    #[serde(skip_serializing_if = "is_none")]
    pub damaged: usize,
}

impl<T> List<T> {
    pub fn of(items: Vec<T>, next: Option<String>) -> List<T> {
        List { schema_version: 1, items, next, damaged: 0 }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub fn is_none(count: &usize) -> bool {
    *count == 0
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

/// An answer with the reply that belongs to it. The tree of `serde_json` would round its numbers, so it is put in as
/// the text that it is.
pub fn answer(answer: &Answer, reply: &GivenReply) -> Result<String, Problem> {
    let mut whole = text(answer)?;
    if let GivenReply::Recorded(bytes) = reply
        && let Some(head) = whole.strip_suffix("\"data\":null}")
    {
        whole = format!("{head}\"data\":{}}}", reply::to_json(bytes).get());
    }
    Ok(whole)
}

/// An answer that counts as delivered once it has left.
pub fn delivering(text: String, delivery: Option<Delivery>) -> Response {
    let mut response = document(Body::from(text), "application/json");
    if let Some(delivery) = delivery {
        delivery.of_response(&mut response);
    }
    response
}
