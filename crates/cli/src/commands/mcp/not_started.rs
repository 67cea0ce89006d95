//! The answer for a server that semel does not start. Its client hears why, where it would only see a process die.

use crate::EXIT_FAILED;
use crate::context::Context;
use crate::output::hint;
use semel_doors::mcp::frame::Frame;
use semel_doors::mcp::message::{Message, MessageKind};
use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;

/// A request before anything has begun is short.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Answers every request with the error, until the client has gone. A person at a terminal waits for nothing.
pub fn answer(context: &Context, error: &anyhow::Error) -> ExitCode {
    context.output.error(error);
    let mut input = std::io::stdin().lock();
    if !input.is_terminal() {
        let to_do = hint(error).map(|hint| format!(". To change that: {hint}"));
        let words = format!("semel did not start this server: {error:#}{}", to_do.unwrap_or_default());
        let mut line = Vec::new();
        while (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let message = Message::parse(std::mem::take(&mut line).into());
            let Ok(Message { kind: MessageKind::Request { id, .. }, .. }) = message else { continue };
            let frame = Frame::refusal(&id, -32603, &words, None).to_bytes();
            let mut output = std::io::stdout().lock();
            let written = output.write_all(&frame).and_then(|()| output.write_all(b"\n"));
            if written.and_then(|()| output.flush()).is_err() {
                break;
            }
        }
    }
    ExitCode::from(EXIT_FAILED)
}
