//! Which part of the world a request is for, and what it would change there.

use super::reply::Reply;
use super::state::Inner;
use super::{models, payments, plain};
use crate::http::request::Request;
use serde_json::{Value, json};

/// What a request changes.
#[derive(Debug, Clone)]
pub enum Change {
    Nothing,
    Effect {
        kind: &'static str,
        object: Value,
    },
    /// A model was run, and has to be paid.
    Generation {
        api: &'static str,
        id: String,
        streamed: bool,
    },
}

/// What is done and what is said, had nothing gone wrong.
#[derive(Debug)]
pub struct Performed {
    pub change: Change,
    pub reply: Reply,
}

pub fn perform(request: &Request, number: u64, world: &Inner) -> Performed {
    let path = request.head.path.as_str();
    match (request.head.method.as_str(), path) {
        ("POST", "/v1/chat/completions") => models::chat::answer(request, number),
        ("POST", "/v1/responses") => models::responses::answer(request, number),
        ("POST", "/v1/messages") => models::messages::answer(request, number),
        (method, _) => {
            let answered = payments::answer(method, path, request, number, world);
            let answered = answered.or_else(|| plain::answer(method, path, request, number, world));
            answered.unwrap_or_else(|| refused(404, "no such route"))
        }
    }
}

pub fn refused(status: u16, why: &str) -> Performed {
    let error = json!({"error": {"type": "invalid_request_error", "message": why}});
    Performed { change: Change::Nothing, reply: Reply::json(status, &error) }
}
