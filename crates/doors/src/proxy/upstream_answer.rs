//! The upstream's own answer to the newest attempt.

use super::streamed::StreamWriter;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

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
