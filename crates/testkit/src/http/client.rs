//! One connection, without a library: every byte that leaves is the test's own, and every byte that comes back is seen.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct RawClient {
    reader: BufReader<TcpStream>,
    address: String,
    /// The last request was a HEAD, whose response has no body whatever its length says.
    is_head: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Status line and headers, with the empty line.
    pub head: String,
    pub body: String,
}

/// Hangs up for certain: between its fork and its exec a child that another test starts has a copy of every socket, so
/// closing one's own copy alone is not seen by the other side before the child has closed its copy too.
impl Drop for RawClient {
    fn drop(&mut self) {
        let _gone = self.reader.get_ref().shutdown(Shutdown::Both);
    }
}

impl RawClient {
    pub fn connect(address: &str) -> RawClient {
        let stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_nodelay(true).expect("it is a socket");
        RawClient { reader: BufReader::new(stream), address: address.to_owned(), is_head: false }
    }

    /// The only request of a connection of its own: first line, headers with their line ends, and body.
    pub fn ask(address: &str, line: &str, headers: &str, body: &str) -> RawClient {
        let mut client = RawClient::connect(address);
        client.send(line, &format!("{headers}Connection: close\r\n"), body);
        client
    }

    /// A request with the host, and with the length of a body, unless the headers give them.
    pub fn send(&mut self, line: &str, headers: &str, body: &str) {
        let host = match headers.contains("Host: ") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let length = match headers.contains("Content-Length") || body.is_empty() {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        self.is_head = line.starts_with("HEAD ");
        self.write(format!("{line}\r\n{host}{length}{headers}\r\n{body}"));
    }

    /// A server that refuses early may have closed its end already; its answer is still to be read.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _refused_early = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// Whether the first byte of a response is there.
    pub fn is_answered(&self) -> bool {
        let stream = self.reader.get_ref();
        let waits = |not: bool| stream.set_nonblocking(not).expect("it can be set");
        waits(true);
        let is_answered = stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        waits(false);
        is_answered
    }

    /// Whether the other end closes the connection rather than wait for another request.
    pub fn is_closed(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }

    /// One line, with its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line
    }

    /// Status line and headers; `None` if the connection ended instead. Interim responses are passed over.
    pub fn head_if_any(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
            if head.starts_with("HTTP/1.1 1") && head.ends_with("\r\n\r\n") {
                head.clear();
            }
        }
        Some(head)
    }

    pub fn head(&mut self) -> String {
        self.head_if_any().expect("a head before the end of the connection")
    }

    /// So many bytes of a body.
    pub fn read(&mut self, bytes: usize) -> String {
        let mut read = vec![0; bytes];
        self.reader.read_exact(&mut read).expect("so many bytes");
        String::from_utf8(read).expect("text")
    }

    /// All that comes until the connection ends, however it ends.
    pub fn rest(&mut self) -> String {
        let mut all = Vec::new();
        let _cut = self.reader.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    }

    /// One chunk of a body; empty at its end, `None` where the connection ended in the middle.
    pub fn chunk_if_any(&mut self) -> Option<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok().filter(|read| *read > 0)?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(String::from_utf8_lossy(&chunk).into_owned())
    }

    pub fn chunk(&mut self) -> String {
        self.chunk_if_any().expect("a chunk before the end of the connection")
    }

    /// The rest of a body in chunks.
    pub fn chunks(&mut self) -> String {
        let mut all = String::new();
        loop {
            match self.chunk() {
                end if end.is_empty() => return all,
                chunk => all.push_str(&chunk),
            }
        }
    }

    /// Chunks of a stream until it has said this.
    pub fn chunks_until(&mut self, text: &str) -> String {
        let mut all = String::new();
        while !all.contains(text) {
            let chunk = self.chunk();
            assert!(!chunk.is_empty(), "it ended before {text:?}: {all}");
            all.push_str(&chunk);
        }
        all
    }

    /// The rest of a body in chunks that breaks off in the middle.
    pub fn broken_chunks(&mut self) -> String {
        let mut all = String::new();
        while let Some(chunk) = self.chunk_if_any() {
            assert!(!chunk.is_empty(), "a cut answer must not look whole: {all}");
            all.push_str(&chunk);
        }
        all
    }

    /// The response to the only request.
    pub fn answer(mut self) -> Response {
        self.next_answer()
    }

    /// The next response of several.
    pub fn next_answer(&mut self) -> Response {
        self.answer_if_any().expect("a whole response before the end of the connection")
    }

    /// The next response; `None` if the connection ended before its end.
    pub fn answer_if_any(&mut self) -> Option<Response> {
        let head = self.head_if_any()?;
        self.body(head)
    }

    /// What came of a response before the connection broke; status 0 if not even its head did.
    pub fn answer_so_far(mut self) -> Response {
        let Some(head) = self.head_if_any() else {
            return Response { status: 0, head: String::new(), body: String::new() };
        };
        let mut response = Response::with_head(head);
        if response.header("transfer-encoding").is_none() {
            response.body = self.rest();
            return response;
        }
        while let Some(chunk) = self.chunk_if_any().filter(|chunk| !chunk.is_empty()) {
            response.body.push_str(&chunk);
        }
        response
    }

    /// The response whose head was read already.
    pub fn answer_after(mut self, head: String) -> Response {
        self.body(head).expect("a whole body before the end of the connection")
    }

    /// Without a length, a response that closes the connection ends with it.
    fn body(&mut self, head: String) -> Option<Response> {
        let mut response = Response::with_head(head);
        if self.is_head {
            return Some(response);
        }
        if response.header("transfer-encoding").is_some() {
            loop {
                match self.chunk_if_any()? {
                    end if end.is_empty() => return Some(response),
                    chunk => response.body.push_str(&chunk),
                }
            }
        }
        let mut body = Vec::new();
        match response.header("content-length") {
            Some(length) => {
                body = vec![0; length.parse().expect("a length")];
                self.reader.read_exact(&mut body).ok()?;
            }
            None if response.header("connection") == Some("close") => {
                self.reader.read_to_end(&mut body).ok()?;
            }
            None => {}
        }
        response.body = String::from_utf8_lossy(&body).into_owned();
        Some(response)
    }
}

impl Response {
    fn with_head(head: String) -> Response {
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        Response { status, head, body: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The document, or the last event of a stream: a call that takes long is answered in one.
    pub fn json(&self) -> Value {
        let is_stream = self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let last = || self.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let text = is_stream.then(last).flatten().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The answer to a JSON-RPC request, be it a document or an event of a stream.
    pub fn rpc_answer(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let documents = events.chain([self.body.as_str()]);
        let mut documents = documents.filter_map(|text| serde_json::from_str(text).ok());
        let answers = |message: &Value| message.get("result").is_some() || message.get("error").is_some();
        documents.find(answers).unwrap_or_else(|| panic!("no answer in {self:?}"))
    }

    pub fn tool_result(&self) -> Value {
        let mut answer = self.rpc_answer();
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }

    /// The outcome in the receipt of a tool call.
    pub fn tool_outcome(&self) -> Value {
        self.json()["result"]["_meta"]["dev.semel/receipt"]["outcome"].clone()
    }
}

/// Status, outcome and code of an answer at semel's HTTP door, in short.
pub fn became(answer: &Response) -> (u16, String, String) {
    let outcome = answer.header("semel-outcome").unwrap_or("none").to_owned();
    let document: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    (answer.status, outcome, document["code"].as_str().unwrap_or_default().to_owned())
}
