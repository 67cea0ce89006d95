//! The head of a request, and how its body is written.

use super::{Extent, lines};
use bytes::{BufMut, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Method, Request};
use http_body::Body;

/// What a first line has beside its target, and what is said of the body.
const MORE_BYTES: usize = 80;

#[derive(Debug)]
pub struct Question {
    pub head: BytesMut,
    pub extent: Extent,
}

impl Question {
    /// Its head says of its body what that knows of itself, whatever its headers say.
    pub fn of<B: Body>(request: &Request<B>) -> Question {
        let extent = Extent::of(request.body().size_hint());
        let headers = request.headers();
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let mut head = BytesMut::with_capacity(target.len() + lines::room(headers) + MORE_BYTES);
        head.put_slice(request.method().as_str().as_bytes());
        head.put_u8(b' ');
        head.put_slice(target.as_bytes());
        head.put_slice(b" HTTP/1.1\r\n");
        for (name, value) in headers {
            if *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING {
                lines::write(&mut head, name, value.as_bytes());
            }
        }
        // Where nothing comes, it is said if something could have, or if somebody wants it said: some servers ask for it.
        let expects = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
        match extent {
            Extent::Length(0) if !expects && !headers.contains_key(CONTENT_LENGTH) => {}
            Extent::Length(length) => lines::write_length(&mut head, length),
            // Only an answer can end with its connection.
            Extent::Chunked | Extent::UntilClosed => lines::write(&mut head, &TRANSFER_ENCODING, b"chunked"),
        }
        head.put_slice(b"\r\n");
        Question { head, extent }
    }
}
