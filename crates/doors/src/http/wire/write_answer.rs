//! The head of an answer, and how its body is written.

use super::read_question::Asker;
use super::{Extent, lines};
use bytes::{BufMut, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;
use http::{StatusCode, Version};
use http_body::SizeHint;
use hyper::ext::ReasonPhrase;
use semel_core::time::At;

/// What is said beside the headers: of the body, the connection and the time.
const MORE_BYTES: usize = 160;

#[derive(Debug)]
pub struct Answer {
    pub head: BytesMut,
    /// `None`: no body follows.
    pub extent: Option<Extent>,
    /// Another request may follow on the same connection.
    pub stays: bool,
}

impl Answer {
    /// Its head says of its body and its connection what these are, whatever its headers say.
    pub fn of(parts: &Parts, body: SizeHint, asker: Asker, now: At) -> Answer {
        let Parts { status, headers, .. } = parts;
        let extent = match Extent::of(body) {
            _ if has_no_body(*status) || !asker.wants_body => None,
            Extent::Chunked if asker.version == Version::HTTP_10 => Some(Extent::UntilClosed),
            extent => Some(extent),
        };
        let stays = asker.stays
            && lines::stays_open(headers, Version::HTTP_11)
            && extent != Some(Extent::UntilClosed);
        let mut head = BytesMut::with_capacity(lines::room(headers) + MORE_BYTES);
        head.put_slice(b"HTTP/1.1 ");
        head.put_slice(status.as_str().as_bytes());
        head.put_u8(b' ');
        match parts.extensions.get::<ReasonPhrase>() {
            Some(reason) => head.put_slice(reason.as_bytes()),
            None => head.put_slice(status.canonical_reason().unwrap_or_default().as_bytes()),
        }
        head.put_slice(b"\r\n");
        for (name, value) in headers {
            if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
                lines::write(&mut head, name, value.as_bytes());
            }
        }
        if !headers.contains_key(DATE) {
            lines::write_date(&mut head, now);
        }
        match extent {
            Some(Extent::Length(length)) => lines::write_length(&mut head, length),
            Some(Extent::Chunked) => lines::write(&mut head, &TRANSFER_ENCODING, b"chunked"),
            Some(Extent::UntilClosed) => {}
            None => length_of_what_is_not_sent(&mut head, parts, body),
        }
        match (stays, asker.version) {
            (false, _) => lines::write(&mut head, &CONNECTION, b"close"),
            (true, Version::HTTP_10) => lines::write(&mut head, &CONNECTION, b"keep-alive"),
            (true, _) => {}
        }
        head.put_slice(b"\r\n");
        Answer { head, extent, stays }
    }
}

fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Of what would be sent to another question it may be said how long it is.
fn length_of_what_is_not_sent(head: &mut BytesMut, parts: &Parts, body: SizeHint) {
    if parts.status == StatusCode::NO_CONTENT || parts.status.is_informational() {
        return;
    }
    match (parts.headers.get(CONTENT_LENGTH), body.exact()) {
        (Some(length), _) => lines::write(head, &CONTENT_LENGTH, length.as_bytes()),
        (None, Some(length)) if length > 0 => lines::write_length(head, length),
        (None, _) => {}
    }
}
