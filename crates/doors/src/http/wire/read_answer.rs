//! The head of an answer.

use super::framing::Framing;
use super::lines::{self, length, stays_open, words};
use super::{HEADER_BYTES_MAX, HEADERS_MAX, Malformed};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::{Parts, Response};
use http::{Method, StatusCode, Version};
use httparse::Status;
use hyper::ext::ReasonPhrase;
use std::mem::MaybeUninit;

#[derive(Debug)]
pub struct Head {
    pub parts: Parts,
    pub framing: Framing,
    /// Another request may follow on the same connection.
    pub keeps_open: bool,
}

/// Takes the head of the answer to a request of this method off what came. `None`: there is more of it to come.
pub fn read_answer(came: &mut Bytes, method: &Method) -> Result<Option<Head>, Malformed> {
    while !came.is_empty() {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let read = parser.parse_response_with_uninit_headers(&mut answer, came, &mut headers)?;
        let length = match read {
            Status::Complete(length) if length <= HEADER_BYTES_MAX => length,
            Status::Partial if came.len() <= HEADER_BYTES_MAX => return Ok(None),
            _ => return Err(Malformed::HeadersTooLong),
        };
        let status = StatusCode::from_u16(answer.code.unwrap_or_default()).map_err(|_| Malformed::Header)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Malformed::Switched);
        }
        if status.is_informational() {
            // A word before the answer.
            let _told = came.split_to(length);
            continue;
        }
        let head = head(came, status, &answer, method)?;
        let _read = came.split_to(length);
        return Ok(Some(head));
    }
    Ok(None)
}

fn head(
    came: &Bytes,
    status: StatusCode,
    answer: &httparse::Response<'_, '_>,
    method: &Method,
) -> Result<Head, Malformed> {
    let (mut parts, ()) = Response::new(()).into_parts();
    // Which version an upstream speaks is between it and us.
    let version = if answer.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    parts.status = status;
    parts.headers = lines::read(came, answer.headers)?;
    if let Some(reason) = answer.reason
        && status.canonical_reason() != Some(reason)
        && let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes())
    {
        parts.extensions.insert(reason);
    }
    let framing = framing(&parts, version, method)?;
    let keeps_open =
        framing != Framing::UntilClosed && keeps_open(&parts, version) && !may_go_on(&parts, method);
    Ok(Head { parts, framing, keeps_open })
}

/// RFC 9112, section 6.3.
fn framing(parts: &Parts, version: Version, method: &Method) -> Result<Framing, Malformed> {
    let Parts { headers, .. } = parts;
    if has_no_body(parts, method) {
        return Ok(Framing::Length(0));
    }
    // Old servers say that there is none.
    let mut codings = words(headers, &TRANSFER_ENCODING)
        .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
    match (codings.next(), codings.next()) {
        (None, _) => {}
        _ if version == Version::HTTP_10 => return Err(Malformed::Length),
        (Some(chunked), None) if chunked.eq_ignore_ascii_case(b"chunked") => return Ok(Framing::chunked()),
        _ => return Err(Malformed::Coding),
    }
    let mut lengths = words(headers, &CONTENT_LENGTH);
    match lengths.next().map(length) {
        None => Ok(Framing::UntilClosed),
        Some(Some(first)) if lengths.all(|other| length(other) == Some(first)) => Ok(Framing::Length(first)),
        Some(_) => Err(Malformed::Length),
    }
}

fn has_no_body(parts: &Parts, method: &Method) -> bool {
    *method == Method::HEAD || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Whether a body may follow that must not: some servers answer `HEAD` as if it were `GET`, and what comes late would be
/// the answer to somebody else's request.
fn may_go_on(parts: &Parts, method: &Method) -> bool {
    let Parts { headers, .. } = parts;
    let says_so = || {
        words(headers, &CONTENT_LENGTH).any(|length| length != b"0")
            || headers.contains_key(TRANSFER_ENCODING)
    };
    has_no_body(parts, method) && (*method == Method::HEAD || says_so())
}

/// Whether the connection stays open behind the answer. One that says in two ways where it ends is not gone on from.
fn keeps_open(parts: &Parts, version: Version) -> bool {
    let Parts { headers, .. } = parts;
    let both = headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
    !both && stays_open(headers, version)
}
