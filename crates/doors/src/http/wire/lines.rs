//! The lines of a head.

use super::Malformed;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use httpdate::HttpDate;
use semel_core::time::At;
use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// The values are parts of what came.
pub fn read(came: &Bytes, lines: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Malformed::Header)?;
        let value =
            HeaderValue::from_maybe_shared(came.slice_ref(line.value)).map_err(|_| Malformed::Header)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// A line feed alone ends a line for some readers and not for others, who would take what follows for a header of its own.
pub fn are_whole(lines: &[u8]) -> bool {
    // Counted, since that takes the least time.
    let feeds = lines.iter().filter(|byte| **byte == b'\n').count();
    feeds == lines.windows(2).filter(|bytes| *bytes == b"\r\n").count()
}

/// The parts of a list, over all lines of its name.
pub fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii))
}

/// Whether more may follow on the same connection, as far as this message says.
pub fn stays_open(headers: &HeaderMap, version: Version) -> bool {
    let says = |word: &[u8]| words(headers, &CONNECTION).any(|said| said.eq_ignore_ascii_case(word));
    !says(b"close") && (version == Version::HTTP_11 || says(b"keep-alive"))
}

pub fn length(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

pub fn write(head: &mut BytesMut, name: &HeaderName, value: &[u8]) {
    head.put_slice(name.as_str().as_bytes());
    head.put_slice(b": ");
    head.put_slice(value);
    head.put_slice(b"\r\n");
}

pub fn write_length(head: &mut BytesMut, length: u64) {
    let _never_fails = write!(head.writer(), "{CONTENT_LENGTH}: {length}\r\n");
}

pub fn write_date(head: &mut BytesMut, now: At) {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_micros(now.0));
    let _never_fails = write!(head.writer(), "{DATE}: {date}\r\n");
}

/// The bytes that these take.
pub fn room(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
