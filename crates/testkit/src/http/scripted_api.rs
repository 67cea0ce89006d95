//! An API that creates something for each write, and fails as it is told.

use super::server::{FakeServer, ServedExchange};
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

/// The API's part in one write.
#[derive(Debug, Clone)]
pub enum ApiAct {
    /// Changes the world, and says so: the usual.
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
    /// Waits to be released, then creates.
    Hold,
    /// Changes the world, waits to be released, and closes without a word.
    HoldAndVanish,
    /// Creates, with so many bytes of an answer, in chunks.
    Large(usize),
    /// The same with a length, and its second half only once it is released.
    LargeHalfHeld(usize),
}

#[derive(Debug, Clone)]
pub struct ScriptedApi {
    server: FakeServer,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    acts: VecDeque<ApiAct>,
    pages: HashMap<String, String>,
}

impl Deref for ScriptedApi {
    type Target = FakeServer;

    fn deref(&self) -> &FakeServer {
        &self.server
    }
}

impl ScriptedApi {
    pub fn start() -> ScriptedApi {
        let script: Arc<Mutex<Script>> = Arc::default();
        let reads = Arc::clone(&script);
        let server = FakeServer::start(move |exchange| match exchange.request.head.method.as_str() {
            "GET" | "HEAD" | "OPTIONS" => show(exchange, &lock(&reads).pages),
            _ => {
                let act = lock(&reads).acts.pop_front().unwrap_or(ApiAct::Create);
                perform(exchange, act)
            }
        });
        ScriptedApi { server, script }
    }

    /// For the next writes, one after another.
    pub fn next(&self, act: ApiAct) {
        lock(&self.script).acts.push_back(act);
    }

    /// The document at a path.
    pub fn shows(&self, path: &str, body: &str) {
        lock(&self.script).pages.insert(path.to_owned(), body.to_owned());
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().expect("nobody panicked")
}

fn show(exchange: &mut ServedExchange<'_>, pages: &HashMap<String, String>) -> Option<()> {
    let target = exchange.request.line().split(' ').nth(1)?.to_owned();
    if let Some(page) = pages.get(&target) {
        return exchange.reply(200, "", page);
    }
    match target.as_str() {
        "/moved" => exchange.reply(302, "Location: /there?x=1\r\n", ""),
        "/away" => exchange.reply(307, "Location: http://169.254.169.254/latest\r\n", ""),
        _ => {
            let body = if exchange.request.head.method == "HEAD" { "" } else { "hello world" };
            exchange.write(&format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Own: 1\r\nSet-Cookie: a=b\r\n\
                 Semel-Outcome: forged\r\nKeep-Alive: timeout=5\r\nContent-Length: 11\r\n\r\n{body}"
            ))
        }
    }
}

fn perform(exchange: &mut ServedExchange<'_>, act: ApiAct) -> Option<()> {
    let effects = match act {
        ApiAct::Refuse(..) | ApiAct::Hold => 0,
        _ => exchange.server.count_effect(),
    };
    match act {
        ApiAct::Create => exchange.reply(
            201,
            "X-Own: 1\r\nSet-Cookie: session=s3cr3t\r\nRequest-Id: req_1\r\nLocation: /charges/1\r\n",
            &format!("{{ \"id\" : \"ch_{effects}\",  \"amount\": 1.0 }}"),
        ),
        ApiAct::Refuse(status, headers, body) => exchange.reply(status, headers, body),
        ApiAct::Answer(status, headers, body) => exchange.reply(status, headers, &body),
        ApiAct::Raw(text) => exchange.write(&text).and(None),
        ApiAct::Vanish => None,
        ApiAct::Cut => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n";
            exchange.write(&format!("{head}{{\"id\":")).and(None)
        }
        ApiAct::Hold => {
            exchange.wait_for_release();
            exchange.server.count_effect();
            exchange.reply(201, "", "{\"id\":\"held\"}")
        }
        ApiAct::HoldAndVanish => {
            exchange.wait_for_release();
            None
        }
        ApiAct::Large(bytes) => {
            exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let mut left = bytes;
            while left > 0 {
                let piece = left.min(100_000);
                exchange.chunk(&"x".repeat(piece))?;
                left -= piece;
            }
            exchange.chunk("")
        }
        ApiAct::LargeHalfHeld(bytes) => {
            let half = "x".repeat(bytes / 2);
            exchange.write(&format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{half}"))?;
            exchange.wait_for_release();
            exchange.write(&"y".repeat(bytes - bytes / 2))
        }
    }
}
