//! What comes of a request: a change of the world, and an answer.

use super::reply::UpstreamReply;
use serde_json::{Value, json};

/// What a request changes.
#[derive(Debug, Clone)]
pub enum WorldChange {
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
    pub change: WorldChange,
    pub reply: UpstreamReply,
}

pub fn refused(status: u16, why: &str) -> Performed {
    let error = json!({"error": {"type": "invalid_request_error", "message": why}});
    Performed { change: WorldChange::Nothing, reply: UpstreamReply::json(status, &error) }
}
