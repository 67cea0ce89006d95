//! The events of a stream, one by one.

use crate::http::client::Incoming;
use crate::http::sse::{Parser, Piece, TooLarge};
use bytes::Bytes;
use http_body_util::BodyExt;

#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    parser: Parser,
}

impl EventStream {
    pub fn new(body: Incoming) -> EventStream {
        EventStream { body, parser: Parser::default() }
    }

    /// `None`: the stream has ended, or broke off.
    pub async fn next(&mut self) -> Option<Result<Piece, TooLarge>> {
        loop {
            if let Some(piece) = self.parser.next_piece().transpose() {
                return Some(piece);
            }
            let frame = self.body.frame().await?.ok()?;
            self.parser.push(&frame.into_data().unwrap_or_default());
        }
    }

    /// The bytes after the last whole event.
    pub fn rest(mut self) -> Bytes {
        self.parser.rest()
    }
}
