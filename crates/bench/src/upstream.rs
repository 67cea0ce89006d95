//! An API that does next to nothing, in a process of its own: what stands behind every proxy that is measured.
//!
//! It counts what is posted, and answers like a model below `/v1/`: whole, as a stream, or as a stream that stays open.

use super::child::COMMAND;
use super::wire::{BenchConnection, request};
use serde_json::{Value, json};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use xtask::project::Result;

/// The part of the bench that this is in its own process.
pub const PART: &str = "upstream";

/// About what an API says when something was made.
pub const ANSWER_BYTES: usize = 200;

/// A request that says so gets a stream that has begun and never ends.
pub const HELD: &str = "held";

#[derive(Debug)]
pub struct BenchUpstream {
    process: Child,
    pub address: SocketAddr,
    /// Open as long as it lives, so that it can say goodbye.
    _output: BufReader<ChildStdout>,
}

impl BenchUpstream {
    pub fn start() -> Result<BenchUpstream> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([COMMAND, PART, "."]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("its output was asked for"));
        output.read_line(&mut line)?;
        Ok(BenchUpstream { process, address: line.trim().parse()?, _output: output })
    }

    /// How often something was posted to it.
    pub fn count(&self, runtime: &Runtime) -> Result<u64> {
        let body = runtime.block_on(async {
            BenchConnection::to(self.address).await?.ask(&request("GET", "/count", "", "")).await
        })?;
        let said: Value = serde_json::from_slice(&body)?;
        said["count"].as_u64().ok_or_else(|| "it does not count".into())
    }
}

impl Drop for BenchUpstream {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

/// The child's side: serves until its input ends.
pub fn in_child() -> Result<Value> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?);
        let posted = Rc::new(Cell::new(0));
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(serve(stream, Rc::clone(&posted)));
            }
        });
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        ended.await??;
        Ok(json!({}))
    })
}

async fn serve(mut stream: TcpStream, posted: Rc<Cell<u64>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let Some((head, body)) = whole(&buffer) else {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let (answer, held) = answer(&buffer[..head], &buffer[head..head + body], &posted);
        buffer.drain(..head + body);
        stream.write_all(answer.as_bytes()).await?;
        if held {
            // Until the other side has had enough.
            while stream.read_buf(&mut buffer).await? > 0 {}
            return Ok(());
        }
    }
}

/// The lengths of head and body, once both are there.
pub fn whole(buffer: &[u8]) -> Option<(usize, usize)> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let body = length.and_then(|(_, length)| length.trim().parse().ok()).unwrap_or(0);
    (buffer.len() >= head + body).then_some((head, body))
}

fn answer(head: &[u8], body: &[u8], posted: &Cell<u64>) -> (String, bool) {
    if head.starts_with(b"GET /count ") {
        return (document(&json!({"count": posted.get()}).to_string()), false);
    }
    if !head.starts_with(b"POST ") {
        return (document(&resource()), false);
    }
    posted.set(posted.get() + 1);
    if !head.starts_with(b"POST /v1/") {
        return (document(&resource()), false);
    }
    let says = |word: &str| body.windows(word.len()).any(|window| window == word.as_bytes());
    match (says("\"stream\":true"), says(HELD)) {
        (false, _) => (document(&completion()), false),
        (true, held) => (stream(held), held),
    }
}

fn resource() -> String {
    let pad = "x".repeat(ANSWER_BYTES - 30);
    json!({"id": "it_1", "pad": pad}).to_string()
}

fn completion() -> String {
    let message = json!({"role": "assistant", "content": "once and only once"});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}})
    .to_string()
}

fn document(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The head of a stream, before its first event.
pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One event as it goes over the wire.
pub fn event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock",
        "choices": [choice]});
    chunked(&format!("data: {chunk}\n\n"))
}

pub fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// What comes after the last event.
pub fn stream_end() -> String {
    chunked("data: [DONE]\n\n") + "0\r\n\r\n"
}

fn stream(held: bool) -> String {
    let mut text = STREAM_HEAD.to_owned() + &event(&json!({"role": "assistant", "content": "once"}), None);
    if !held {
        text += &event(&json!({"content": " and only once"}), None);
        text += &event(&json!({}), Some("stop"));
        text += &stream_end();
    }
    text
}
