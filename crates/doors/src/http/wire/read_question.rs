//! The head of a request. It has one reading, or it is refused.

use super::framing::Framing;
use super::{HEADER_BYTES_MAX, HEADERS_MAX, Malformed, lines};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use http::request::{Parts, Request};
use http::{HeaderMap, Method, Uri, Version};
use httparse::Status;
use std::mem::MaybeUninit;

#[derive(Debug)]
pub struct Asked {
    pub parts: Parts,
    pub framing: Framing,
    pub asker: Asker,
    /// Its body comes when it is asked for.
    pub waits_for_word: bool,
}

/// What an answer has to know of whom it is for.
#[derive(Debug, Clone, Copy)]
pub struct Asker {
    pub wants_body: bool,
    pub version: Version,
    /// Another request may follow on the same connection.
    pub stays: bool,
}

/// Takes the head of a request off what came. `None`: there is more of it to come.
pub fn read_question(came: &mut Bytes) -> Result<Option<Asked>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut asked = httparse::Request::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_request_with_uninit_headers(&mut asked, came, &mut headers)? {
        Status::Complete(length) if length <= HEADER_BYTES_MAX => length,
        Status::Partial if came.len() <= HEADER_BYTES_MAX => return Ok(None),
        _ => return Err(Malformed::HeadersTooLong),
    };
    if !lines::are_whole(&came[..length]) {
        return Err(Malformed::Line);
    }
    let question = question(came, &asked)?;
    let _read = came.split_to(length);
    Ok(Some(question))
}

/// Whether a head may have become whole, or too long, since there were so many bytes of it. One that comes in many parts
/// is not parsed as often.
pub fn has_whole_head(came: &[u8], before: usize) -> bool {
    // A line break of which some had come.
    let new = &came[before.saturating_sub(2)..];
    came.len() > HEADER_BYTES_MAX
        || new.windows(2).any(|bytes| bytes == b"\n\n")
        || new.windows(3).any(|bytes| bytes == b"\n\r\n")
}

fn question(came: &Bytes, asked: &httparse::Request<'_, '_>) -> Result<Asked, Malformed> {
    let (mut parts, ()) = Request::new(()).into_parts();
    let (method, target) = (asked.method.unwrap_or_default(), asked.path.unwrap_or_default());
    parts.method = Method::from_bytes(method.as_bytes()).map_err(|_| Malformed::Header)?;
    parts.uri = Uri::from_maybe_shared(came.slice_ref(target.as_bytes())).map_err(|_| Malformed::Header)?;
    parts.version = if asked.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    parts.headers = lines::read(came, asked.headers)?;
    let asker = Asker {
        wants_body: parts.method != Method::HEAD,
        version: parts.version,
        stays: lines::stays_open(&parts.headers, parts.version),
    };
    let framing = framing(&parts.headers, parts.version)?;
    let waits_for_word = parts.version == Version::HTTP_11
        && !framing.is_over()
        && lines::words(&parts.headers, &EXPECT).any(|word| word.eq_ignore_ascii_case(b"100-continue"));
    Ok(Asked { parts, framing, asker, waits_for_word })
}

/// RFC 9112, section 6.3, without what it lets a server forgive.
fn framing(headers: &HeaderMap, version: Version) -> Result<Framing, Malformed> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).into_iter();
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    let (length, coding) = (lengths.next(), codings.next());
    if lengths.next().is_some() || (coding.is_some() && (length.is_some() || version == Version::HTTP_10)) {
        return Err(Malformed::Length);
    }
    match (length, coding) {
        (_, Some(coding))
            if coding.as_bytes().eq_ignore_ascii_case(b"chunked") && codings.next().is_none() =>
        {
            Ok(Framing::chunked())
        }
        (_, Some(_)) => Err(Malformed::Coding),
        (Some(length), None) => {
            lines::length(length.as_bytes()).map(Framing::Length).ok_or(Malformed::Length)
        }
        (None, None) => Ok(Framing::Length(0)),
    }
}
