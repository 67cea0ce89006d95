//! The upstream's own answer to the newest attempt.

use super::streamed::StreamWriter;
use crate::reply::HttpReply;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

#[derive(Debug)]
pub struct UpstreamAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: AnswerBody,
}

#[derive(Debug)]
pub enum AnswerBody {
    Whole(Bytes),
    /// It is on its way to the client already, but for its end.
    Streamed(StreamWriter),
}

impl UpstreamAnswer {
    /// As the answer object shows it. `None`: it was given on as it came.
    pub fn data(self) -> Option<Value> {
        let UpstreamAnswer { status, headers, body: AnswerBody::Whole(body) } = self else { return None };
        serde_json::from_str(&HttpReply { status, headers, body }.data()).ok()
    }
}
