//! What the bank and its customers say to each other: one JSON request a line, one JSON reply a line.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A charge with its memo is a few hundred bytes; a longer line is not ours.
pub const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Both ends are on this machine, and the bank thinks for less than a second.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Take money. Asked twice it is taken twice: this bank knows no idempotency keys.
    Charge { order: String, amount: u64, memo: String },
    /// The first charge of an order, if there is one.
    Find { order: String },
    /// How many charges an order has.
    Count { order: String },
    /// The line breaks after this order's next charge: the money moves, and the answer is lost.
    ///
    /// The fault belongs to the bank, so that the agent's retry is the same command to the byte.
    LoseNextAnswer { order: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Charged { charge: Charge },
    Found { charge: Option<Charge> },
    Count { count: u64 },
    AnswerWillBeLost,
    Refused { why: String },
}

/// One line of the bank's books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub id: String,
    pub order: String,
    /// In cents.
    pub amount: u64,
    pub memo: String,
}

/// Why a request has no reply.
#[derive(Debug)]
pub enum Unanswered {
    /// There was no connection, so nothing was asked.
    NotSent(io::Error),
    /// It may have been heard.
    Lost(Option<io::Error>),
    /// There was an answer, and it makes no sense.
    Garbled(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::NotSent(error) => write!(f, "the bank cannot be reached: {error}"),
            Unanswered::Lost(None) => f.write_str("connection closed before the answer"),
            Unanswered::Lost(Some(error)) => write!(f, "connection closed before the answer ({error})"),
            Unanswered::Garbled(line) => write!(f, "the bank's answer makes no sense: {line}"),
        }
    }
}

impl std::error::Error for Unanswered {}

/// Asks the bank one thing, on a connection of its own, once.
pub fn ask(bank: SocketAddr, request: &Request) -> Result<Reply, Unanswered> {
    let mut line = serde_json::to_vec(request).expect("a request has string keys");
    line.push(b'\n');
    let mut stream = TcpStream::connect_timeout(&bank, PATIENCE).map_err(Unanswered::NotSent)?;
    let lost = |error| Unanswered::Lost(Some(error));
    stream.set_read_timeout(Some(PATIENCE)).map_err(Unanswered::NotSent)?;
    stream.write_all(&line).map_err(lost)?;
    match read_line(&mut BufReader::new(stream)).map_err(lost)? {
        None => Err(Unanswered::Lost(None)),
        Some(line) => {
            parse(&line).map_err(|_| Unanswered::Garbled(String::from_utf8_lossy(&line).into_owned()))
        }
    }
}

/// One whole line without its end; `None` where the other side has closed, if need be in the middle of a line.
pub fn read_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        _ if line.len() as u64 >= LINE_BYTES_MAX - 1 => Err(io::Error::other("a line without an end")),
        _ => Ok(None),
    }
}

pub fn parse<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_no_line() {
        assert_eq!(read_line(&mut &b"whole\nhal"[..]).expect("readable"), Some(b"whole".to_vec()));
        assert_eq!(read_line(&mut &b"hal"[..]).expect("readable"), None);
        assert_eq!(read_line(&mut &b""[..]).expect("readable"), None);
        let endless = vec![b'x'; LINE_BYTES_MAX as usize + 1];
        read_line(&mut &endless[..]).expect_err("too long");
    }

    #[test]
    fn a_request_with_a_field_too_many_is_not_understood() {
        parse::<Request>(br#"{"request":"find","order":"1"}"#).expect("well formed");
        parse::<Request>(br#"{"request":"find","order":"1","lose_answer":true}"#).expect_err("unknown field");
        parse::<Request>(br#"{"request":"rob"}"#).expect_err("unknown request");
    }
}
