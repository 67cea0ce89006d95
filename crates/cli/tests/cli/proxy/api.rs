//! An HTTP API that records every request, counts how often it changed the world, and fails as it is told.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// One request, as it arrived.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub body: Vec<u8>,
}

impl Heard {
    pub fn first(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }
}

/// What the API does with its next write.
#[derive(Debug, Clone)]
pub enum Act {
    /// Changes the world, and says so: what it does unless told otherwise.
    Create,
    /// This status, these headers and this body, without changing anything.
    Refuse(u16, &'static str, &'static str),
    /// Changes the world, and answers with this.
    Answer(u16, &'static str, String),
    /// Changes the world, writes this and closes.
    Raw(String),
    /// Changes the world, and closes without a word.
    Vanish,
    /// Changes the world, promises more than it sends, and closes.
    Cut,
    /// Waits for `release`, then creates.
    Hold,
    /// Changes the world, waits for `release`, and closes without a word.
    HoldAndVanish,
    /// Creates, with so many bytes of an answer, in chunks.
    Large(usize),
    /// The same with a length, and its second half only after `release`.
    LargeHalfHeld(usize),
}

#[derive(Debug, Clone)]
pub struct Api {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    effects: usize,
    heard: Vec<Heard>,
    connections: usize,
    closed: usize,
    script: VecDeque<Act>,
    shown: HashMap<String, String>,
    released: bool,
}

impl Api {
    pub fn start() -> Api {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let api = Api { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let serving = api.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.lock().connections += 1;
                let serving = serving.clone();
                std::thread::spawn(move || {
                    serving.serve(stream);
                    serving.lock().closed += 1;
                    serving.state.changed.notify_all();
                });
            }
        });
        api
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.inner.lock().expect("nobody panicked")
    }

    pub fn effects(&self) -> usize {
        self.lock().effects
    }

    pub fn connections(&self) -> usize {
        self.lock().connections
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.lock().heard.clone()
    }

    pub fn last(&self) -> Heard {
        self.lock().heard.last().cloned().expect("a request")
    }

    /// What it does with the next writes, one after another.
    pub fn next(&self, act: Act) {
        self.lock().script.push_back(act);
    }

    /// What it shows to whoever looks there.
    pub fn shows(&self, path: &str, body: &str) {
        self.lock().shown.insert(path.to_owned(), body.to_owned());
    }

    pub fn release(&self) {
        self.lock().released = true;
        self.state.changed.notify_all();
    }

    /// Waits until so many requests have come.
    pub fn has_heard(&self, count: usize) {
        drop(self.state.changed.wait_while(self.lock(), |inner| inner.heard.len() < count));
    }

    /// Waits until it has closed so many connections.
    pub fn has_closed(&self, count: usize) {
        drop(self.state.changed.wait_while(self.lock(), |inner| inner.closed < count));
    }

    fn held(&self) {
        drop(self.state.changed.wait_while(self.lock(), |inner| !inner.released));
    }

    /// One connection, until either side closes it.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let heard = read(&mut reader)?;
            let method = heard.first().split(' ').next()?.to_owned();
            let path = heard.first().split(' ').nth(1)?.to_owned();
            let act = {
                let mut inner = self.lock();
                inner.heard.push(heard.clone());
                let safe = matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
                let act = if safe { None } else { Some(inner.script.pop_front().unwrap_or(Act::Create)) };
                if matches!(&act, Some(act) if !matches!(act, Act::Refuse(..) | Act::Hold)) {
                    inner.effects += 1;
                }
                act
            };
            self.state.changed.notify_all();
            match act {
                None => self.look(&mut stream, &method, &path)?,
                Some(act) => self.act(&mut stream, act)?,
            }
        }
    }

    fn look(&self, stream: &mut TcpStream, method: &str, path: &str) -> Option<()> {
        let body = if method == "HEAD" { "" } else { "hello world" };
        let shown = self.lock().shown.get(path).cloned();
        if let Some(shown) = shown {
            return reply(stream, 200, "", &shown);
        }
        match path {
            "/moved" => {
                write(stream, "HTTP/1.1 302 Found\r\nLocation: /there?x=1\r\nContent-Length: 0\r\n\r\n")
            }
            "/away" => write(
                stream,
                "HTTP/1.1 307 X\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n",
            ),
            _ => write(
                stream,
                &format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Own: 1\r\nSet-Cookie: a=b\r\nSemel-Outcome: forged\r\nKeep-Alive: timeout=5\r\nContent-Length: 11\r\n\r\n{body}"
                ),
            ),
        }
    }

    fn act(&self, stream: &mut TcpStream, act: Act) -> Option<()> {
        match act {
            Act::Create => {
                let effects = self.effects();
                reply(
                    stream,
                    201,
                    "X-Own: 1\r\nSet-Cookie: session=s3cr3t\r\nRequest-Id: req_1\r\nLocation: /charges/1\r\n",
                    &format!("{{ \"id\" : \"ch_{effects}\",  \"amount\": 1.0 }}"),
                )
            }
            Act::Refuse(status, headers, body) => reply(stream, status, headers, body),
            Act::Answer(status, headers, body) => reply(stream, status, headers, &body),
            Act::Raw(text) => {
                write(stream, &text)?;
                None
            }
            Act::Vanish => None,
            Act::Cut => {
                write(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":",
                )?;
                None
            }
            Act::Hold => {
                self.held();
                self.lock().effects += 1;
                reply(stream, 201, "", "{\"id\":\"held\"}")
            }
            Act::HoldAndVanish => {
                self.held();
                None
            }
            Act::Large(bytes) => {
                write(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                let mut left = bytes;
                while left > 0 {
                    let piece = left.min(100_000);
                    write(stream, &format!("{piece:x}\r\n{}\r\n", "x".repeat(piece)))?;
                    left -= piece;
                }
                write(stream, "0\r\n\r\n")
            }
            Act::LargeHalfHeld(bytes) => {
                write(stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"))?;
                write(stream, &"x".repeat(bytes / 2))?;
                self.held();
                write(stream, &"y".repeat(bytes - bytes / 2))
            }
        }
    }
}

/// One whole request; `None` at the end of the connection.
fn read(reader: &mut impl BufRead) -> Option<Heard> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut heard = Heard { head, body: Vec::new() };
    if heard.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                break;
            }
            heard.body.extend_from_slice(&chunk[..size]);
        }
    } else {
        let length = heard.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        heard.body = vec![0; length];
        reader.read_exact(&mut heard.body).ok()?;
    }
    Some(heard)
}

fn write(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok()
}

fn reply(stream: &mut TcpStream, status: u16, headers: &str, body: &str) -> Option<()> {
    let kind = if body.starts_with('{') { "Content-Type: application/json\r\n" } else { "" };
    write(
        stream,
        &format!("HTTP/1.1 {status} X\r\n{kind}{headers}Content-Length: {}\r\n\r\n{body}", body.len()),
    )
}
