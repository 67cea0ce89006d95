//! Idempotency keys as Stripe's first API honours them: whatever came of the first request, once it had begun.

use super::plan::KeySupport;
use super::reply::UpstreamReply;
use super::state::{Stored, UpstreamState};
use crate::http::request::Request;
use serde_json::json;

/// What the key says about a request.
#[derive(Debug)]
pub enum KeyLookup {
    /// It has none, or none that counts.
    No,
    /// The first; its answer is to be kept under this name.
    First(String),
    Answered(Box<UpstreamReply>),
}

pub fn look(state: &UpstreamState, request: &Request) -> KeyLookup {
    let mut inner = state.inner();
    let key = request.head.header("idempotency-key").filter(|_| request.head.method == "POST");
    let (Some(key), KeySupport::Honour) = (key, inner.honours) else { return KeyLookup::No };
    let name = format!("{} {key}", request.head.path);
    let error = |status, kind: &str, why: &str| {
        let reply =
            UpstreamReply::json(status, &json!({"error": {"type": kind, "code": kind, "message": why}}));
        KeyLookup::Answered(Box::new(reply))
    };
    match inner.keys.get(&name) {
        None => {
            inner.keys.insert(name.clone(), Stored { digest: request.digest(), reply: None });
            KeyLookup::First(name)
        }
        Some(stored) if stored.digest != request.digest() => {
            error(400, "idempotency_error", "this key came with other parameters")
        }
        Some(Stored { reply: None, .. }) => {
            error(409, "idempotency_key_in_use", "a request with this key is still at work")
        }
        Some(Stored { reply: Some(reply), .. }) => {
            KeyLookup::Answered(Box::new(reply.clone().with("Idempotent-Replayed", "true")))
        }
    }
}

pub fn keep(state: &UpstreamState, name: &str, reply: &UpstreamReply) {
    if let Some(stored) = state.inner().keys.get_mut(name) {
        stored.reply = Some(reply.clone());
    }
}

/// What was turned away before it began is not remembered.
pub fn forget(state: &UpstreamState, name: &str) {
    state.inner().keys.remove(name);
}
