//! A request, read from the socket byte by byte as far as it goes.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// No test sends a longer head.
const HEAD_BYTES_MAX: usize = 256 * 1024;
/// Bounds what a broken client can make this process hold.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct RequestHead {
    /// All of it, with the empty line.
    pub text: String,
    pub method: String,
    pub path: String,
    pub query: String,
    pub version: String,
    /// In the order and with the case in which they came.
    pub headers: Vec<(String, String)>,
    bytes: usize,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub head: RequestHead,
    pub body: Vec<u8>,
    /// Of head and body on the wire.
    pub bytes: usize,
}

/// Bytes that were read and not yet used, and the socket that has more.
#[derive(Debug)]
pub struct RequestReader<R> {
    from: R,
    buffer: Vec<u8>,
    used: usize,
}

impl<R: Read> RequestReader<R> {
    pub fn new(from: R) -> Self {
        RequestReader { from, buffer: Vec::new(), used: 0 }
    }

    /// Waits for one more byte than there are. False at the end.
    fn more(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let read = self.from.read(&mut chunk)?;
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(read > 0)
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.rest().len() < count {
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let taken = self.rest()[..count].to_vec();
        self.used += count;
        Ok(taken)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.rest().iter().position(|byte| *byte == b'\n') {
                return self.take(at + 1);
            }
            if self.rest().len() > HEAD_BYTES_MAX || !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next head; none if the peer closed instead.
    pub fn head(&mut self) -> io::Result<Option<RequestHead>> {
        self.buffer.drain(..self.used);
        self.used = 0;
        if self.buffer.is_empty() && !self.more()? {
            return Ok(None);
        }
        let first = text(&self.line()?);
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = text(&self.line()?);
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let whole = String::from_utf8_lossy(&self.buffer[..self.used]).into_owned();
        Ok(Some(RequestHead { text: whole, method, path, query, version, headers, bytes: self.used }))
    }

    /// Reads on until so many bytes of this request were there, or the peer stopped sending.
    pub fn until(&mut self, bytes: usize) -> io::Result<()> {
        while self.buffer.len() < bytes && self.more()? {}
        Ok(())
    }

    /// The rest of a request whose head was read.
    pub fn body(&mut self, head: RequestHead) -> io::Result<Request> {
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = text(&self.line()?);
                let size = size.split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
                if size > BODY_BYTES_MAX - body.len().min(BODY_BYTES_MAX) {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                body.extend(self.take(size)?);
                let end = self.line()?;
                if size == 0 || end != b"\r\n" {
                    break;
                }
            }
        } else if let Some(length) = head.header("content-length") {
            let length: usize = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            if length > BODY_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            body = self.take(length)?;
        }
        Ok(Request { bytes: self.used, head, body })
    }
}

/// A line without its end; what is not text is seen as such.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches(['\r', '\n']).to_owned()
}

impl RequestHead {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// How many bytes the whole request has on the wire; none where only its end will tell.
    pub fn total(&self) -> Option<usize> {
        let chunked = self.header("transfer-encoding").is_some();
        let length = self.header("content-length").map_or(Some(0), |length| length.parse().ok());
        length.filter(|_| !chunked).map(|length: usize| self.bytes + length)
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The first line.
    pub fn line(&self) -> &str {
        self.head.text.lines().next().unwrap_or_default()
    }

    /// Method and target, as in `GET /charges?order=1`.
    pub fn what(&self) -> String {
        self.line().split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn digest(&self) -> String {
        Sha256::digest(&self.body).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The body as a form: names and values, decoded.
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&String::from_utf8_lossy(&self.body))
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

pub fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let escape = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let escaped = escape.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        bytes.push(match (first, escaped) {
            (b'%', Some(byte)) => {
                rest = &after[2..];
                byte
            }
            (b'+', _) => b' ',
            _ => *first,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
