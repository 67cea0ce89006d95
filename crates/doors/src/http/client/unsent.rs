//! A request as it goes on its way.

use super::Payload;
use crate::http::outgoing::Outgoing;
use crate::http::wire::Question;
use http::{Method, Request};

/// Its head is bytes from the beginning, and the same ones on whatever connection it leaves.
#[derive(Debug)]
pub struct Unsent {
    pub(super) method: Method,
    pub(super) outgoing: Outgoing<Payload>,
}

impl Unsent {
    pub fn method(&self) -> &Method {
        &self.method
    }
}

impl<B: Into<Payload>> From<Request<B>> for Unsent {
    fn from(request: Request<B>) -> Unsent {
        let request = request.map(Into::into);
        let Question { head, extent } = Question::of(&request);
        let (parts, body) = request.into_parts();
        // What is at hand of the body is written along with the head.
        let outgoing = match body {
            Payload::Whole(data) => Outgoing::whole(head, data),
            arriving @ Payload::Streamed(_) => Outgoing::new(head, extent, arriving),
        };
        Unsent { method: parts.method, outgoing }
    }
}
