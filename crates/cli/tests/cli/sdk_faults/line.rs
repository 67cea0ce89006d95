//! A client without an SDK: every byte that it sends is the test's own, and every byte that comes back is seen.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection.
#[derive(Debug)]
pub struct Line {
    reader: BufReader<TcpStream>,
    address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Line {
    pub fn to(address: &str) -> Line {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_nodelay(true).expect("it is a socket");
        Line { reader: BufReader::new(stream), address: address.to_owned() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // Whoever refuses early may have closed its end already; what it said is still to be read.
        let _refused_early = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// A whole request, its length and host added.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if method != "GET" {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(format!("{text}\r\n{body}"));
    }

    /// Status and headers. None if the connection ended instead.
    pub fn head(&mut self) -> Option<(u16, Vec<(String, String)>)> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            let read = self.reader.read_until(b'\n', &mut line);
            if read.is_ok_and(|read| read > 0) && line != b"\r\n" {
                lines.push(String::from_utf8(line).expect("a head is text").trim_end().to_owned());
                continue;
            }
            if line != b"\r\n" {
                return None;
            }
            // What goes ahead of an answer is no answer.
            if lines.first().is_some_and(|first| !first.starts_with("HTTP/1.1 1")) {
                break;
            }
            lines.clear();
        }
        let status = lines[0].get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        let split = |line: &String| {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Some((status, lines[1..].iter().map(split).collect()))
    }

    /// One chunk of a body; empty at its end, none if the connection ended before.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// The whole answer; none if the connection ended before its end.
    pub fn answer(&mut self) -> Option<Answer> {
        let (status, headers) = self.head()?;
        let mut answer = Answer { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding").is_some() {
            loop {
                match self.chunk()? {
                    end if end.is_empty() => return Some(answer),
                    chunk => answer.body.extend(chunk),
                }
            }
        }
        let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        answer.body = vec![0; length];
        self.reader.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// Whether the other end closes the connection, rather than wait for another request.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.get_mut().set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout can be set");
        self.reader.read_to_end(&mut rest).is_ok()
    }

    /// Goes away in the middle.
    pub fn leave(self) {
        self.reader.get_ref().shutdown(Shutdown::Both).expect("it was open");
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(known, _)| known == name);
        named.next().map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn outcome(&self) -> &str {
        self.header("semel-outcome").unwrap_or_default()
    }

    /// What kind of refusal this is: the `code` of problem+json.
    pub fn code(&self) -> String {
        let problem =
            self.header("content-type").is_some_and(|kind| kind.starts_with("application/problem+json"));
        if problem { self.json()["code"].as_str().unwrap_or_default().to_owned() } else { String::new() }
    }

    /// Nobody knows whether it happened; and nobody should try again.
    pub fn assert_in_doubt(&self) {
        assert_eq!((self.status, self.code().as_str()), (423, "in_doubt"), "{self:?} {}", self.text());
        assert_eq!(self.header("x-should-retry"), Some("false"), "{self:?}");
    }

    pub fn assert_replayed(&self, first: &Answer) {
        assert_eq!(self.header("idempotent-replayed"), Some("true"), "{self:?}");
        assert_eq!((self.status, &self.body), (first.status, &first.body), "{self:?}");
    }
}
