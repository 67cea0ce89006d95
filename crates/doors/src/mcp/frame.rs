//! A message on its way out, in parts that are shared rather than copied: a result of 50 MB is held once.

use super::id::Id;
use bytes::Bytes;
use std::io::{self, IoSlice, Write};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame(Vec<Bytes>);

impl Frame {
    pub fn new(parts: impl IntoIterator<Item = Bytes>) -> Frame {
        Frame(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }

    /// A response with this result.
    pub fn result(id: &Id, result: Frame) -> Frame {
        Frame::response(id, "result", result)
    }

    pub fn error(id: &Id, error: Frame) -> Frame {
        Frame::response(id, "error", error)
    }

    fn response(id: &Id, member: &str, body: Frame) -> Frame {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":"#);
        Frame::new(std::iter::once(Bytes::from(head)).chain(body.0).chain([Bytes::from_static(b"}")]))
    }

    /// A complaint about something that had no readable id.
    pub fn complaint(code: i32, message: &str) -> Frame {
        let error =
            serde_json::json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
        Frame::from(error.to_string())
    }

    pub fn refusal(id: &Id, code: i32, message: &str, data: Option<serde_json::Value>) -> Frame {
        let mut error = serde_json::json!({"code": code, "message": message});
        if let Some(data) = data {
            error["data"] = data;
        }
        Frame::error(id, Frame::from(error.to_string()))
    }

    pub fn parts(&self) -> &[Bytes] {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As one piece; copies unless it is one already.
    pub fn to_bytes(&self) -> Bytes {
        match self.0.as_slice() {
            [one] => one.clone(),
            parts => parts.concat().into(),
        }
    }

    /// In the parts that it is sent in over HTTP: little in one piece, much without a copy.
    pub fn to_sent(&self) -> Vec<Bytes> {
        if self.len() < COPIED_MAX { vec![self.to_bytes()] } else { self.0.clone() }
    }

    /// Writes all parts and a newline. Before the first byte nothing has left: `Err` then carries `true`.
    pub fn write_line(&self, out: &mut impl Write) -> Result<(), (io::Error, Untouched)> {
        if self.len() < COPIED_MAX {
            let mut line = Vec::with_capacity(self.len() + 1);
            self.0.iter().for_each(|part| line.extend_from_slice(part));
            line.iter_mut().for_each(|byte| *byte = within_line(*byte));
            line.push(b'\n');
            return write_parts(out, &[&line]);
        }
        let parts: Vec<Bytes> = self.0.iter().map(in_one_line).collect();
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).chain([&b"\n"[..]]).collect();
        write_parts(out, &parts)
    }
}

/// So little is copied sooner than it is written in parts.
const COPIED_MAX: usize = 4 * 1024;

fn write_parts(out: &mut impl Write, parts: &[&[u8]]) -> Result<(), (io::Error, Untouched)> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut left = slices.as_mut_slice();
    let mut untouched = Untouched(true);
    while !left.is_empty() {
        let written = match &*left {
            [one] => out.write(one),
            several => out.write_vectored(several),
        };
        match written {
            Ok(0) => return Err((io::ErrorKind::WriteZero.into(), untouched)),
            Ok(written) => {
                untouched = Untouched(false);
                IoSlice::advance_slices(&mut left, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((error, untouched)),
        }
    }
    out.flush().map_err(|error| (error, Untouched(false)))
}

/// In JSON a line break can only stand between tokens, where a space says the same. On a pipe it would end the message,
/// and what follows would be read as another one: a call of a tool, hidden inside something harmless. Some readers also
/// end lines at a carriage return.
fn in_one_line(part: &Bytes) -> Bytes {
    match part.iter().any(|byte| within_line(*byte) != *byte) {
        false => part.clone(),
        true => part.iter().map(|byte| within_line(*byte)).collect(),
    }
}

fn within_line(byte: u8) -> u8 {
    if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }
}

/// Whether not a single byte had left when writing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untouched(pub bool);

impl From<String> for Frame {
    fn from(text: String) -> Frame {
        Frame::new([Bytes::from(text)])
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Frame {
        Frame::new([bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_built_around_its_result() {
        let result = Frame::new([Bytes::from_static(b"{\"a\""), Bytes::from_static(b":1}")]);
        let frame = Frame::result(&Id::text("x"), result);
        assert_eq!(frame.to_bytes(), r#"{"jsonrpc":"2.0","id":"x","result":{"a":1}}"#);
        let mut out = Vec::new();
        frame.write_line(&mut out).unwrap();
        assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"a\":1}}\n");
    }

    #[test]
    fn a_message_stays_one_line_however_it_was_written() {
        for size in [0, COPIED_MAX] {
            let mut out = Vec::new();
            let long = "y".repeat(size);
            let hidden = "\r\n{\"method\":\"tools/call\"}\r}";
            let parts = [format!("{{\"{long}\":"), hidden.to_owned()].map(Bytes::from);
            Frame::new(parts).write_line(&mut out).unwrap();
            let line = format!("{{\"{long}\":  {{\"method\":\"tools/call\"}} }}\n");
            assert_eq!(out, line.as_bytes(), "{size}");
        }
    }

    #[test]
    fn a_pipe_that_was_closed_before_leaves_the_frame_untouched() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_, untouched) = Frame::from(String::from("{}")).write_line(&mut Closed).unwrap_err();
        assert_eq!(untouched, Untouched(true));
    }
}
