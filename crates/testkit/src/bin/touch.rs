//! Changes the counting world, or asks it. The command that the tests wrap with `semel run`.
//!
//! `semel-touch --world SOCKET --key K [options]` changes the world under that key and prints `{"done": "…"}`.
//! It exits with 0, with 3 if the world refused, with 4 if it could not be reached (nothing was sent), and with 1
//! and "connection reset" on stderr if the answer was lost.
//!
//! `semel-touch --world SOCKET --find K` is the probe: 0 and the same line, 1 if it never happened, 2 if unknown.
//!
//! `semel-touch --world SOCKET --speak mcp` is an MCP server with one tool, `create_order`: it changes the world under
//! the key that its argument `order` names.
//!
//! Options: `--mode answer|lose|refuse|lie`, `--delay-ms N`, `--linger-ms N` (before and after the change),
//! `--nap-ms N` (in this process, before connecting), `--life-ms N`, `--output-bytes N` (printed before the change),
//! `--moods SEED` (draws mode and spans from seed, key and attempt).

use semel_testkit::random::{Random, digest};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Later than this after sending the world refuses; probes of the tests stay quiet for longer.
const LIFE_MS: u64 = 1_000;

const LOST: u8 = 1;
const UNKNOWN: u8 = 2;
const REFUSED: u8 = 3;
const UNREACHABLE: u8 = 4;

#[derive(Debug)]
struct TouchArgs {
    world: String,
    key: Option<String>,
    find: Option<String>,
    speak: Option<String>,
    mode: String,
    delay_ms: u64,
    linger_ms: u64,
    nap_ms: u64,
    life_ms: u64,
    output_bytes: u64,
    moods: Option<u64>,
}

fn main() -> ExitCode {
    let Some(asked) = understand(std::env::args().skip(1)) else {
        say("usage: semel-touch --world SOCKET (--key K | --find K | --speak mcp) [options]");
        return ExitCode::from(UNKNOWN);
    };
    ExitCode::from(match (&asked.key, &asked.find) {
        _ if asked.speak.is_some() => speak(&asked),
        (_, Some(key)) => find(&asked.world, key),
        (Some(key), None) => touch(&asked, key),
        (None, None) => UNKNOWN,
    })
}

fn understand(mut words: impl Iterator<Item = String>) -> Option<TouchArgs> {
    let mut asked = TouchArgs {
        world: String::new(),
        key: None,
        find: None,
        speak: None,
        mode: "answer".into(),
        delay_ms: 0,
        linger_ms: 0,
        nap_ms: 0,
        life_ms: LIFE_MS,
        output_bytes: 0,
        moods: None,
    };
    while let Some(flag) = words.next() {
        let value = words.next()?;
        match flag.as_str() {
            "--world" => asked.world = value,
            "--key" => asked.key = Some(value),
            "--find" => asked.find = Some(value),
            "--speak" => asked.speak = Some(value),
            "--mode" => asked.mode = value,
            "--delay-ms" => asked.delay_ms = value.parse().ok()?,
            "--linger-ms" => asked.linger_ms = value.parse().ok()?,
            "--nap-ms" => asked.nap_ms = value.parse().ok()?,
            "--life-ms" => asked.life_ms = value.parse().ok()?,
            "--output-bytes" => asked.output_bytes = value.parse().ok()?,
            "--moods" => asked.moods = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(asked)
}

fn find(world: &str, key: &str) -> u8 {
    match ask(world, &json!({"find": key})) {
        Ok(Some(answer)) => match answer["found"].as_str() {
            Some(id) => done(id),
            None => 1,
        },
        _ => UNKNOWN,
    }
}

fn touch(asked: &TouchArgs, key: &str) -> u8 {
    let attempt = attempt();
    let mut request = json!({
        "mode": asked.mode, "delay_ms": asked.delay_ms, "linger_ms": asked.linger_ms,
        "do": {"key": key, "id": fresh_id(), "attempt": attempt, "life_ms": asked.life_ms},
    });
    let mut nap_ms = asked.nap_ms;
    if let Some(seed) = asked.moods {
        let mut random = Random::new(seed ^ digest(key) ^ attempt);
        request["mode"] = match random.below(100) {
            0..4 => "lose".into(),
            4..12 => "refuse".into(),
            _ => "answer".into(),
        };
        nap_ms = random.below(8);
        request["delay_ms"] = random.below(12).into();
        request["linger_ms"] = random.below(12).into();
    }
    nap(nap_ms);
    print_filler(asked.output_bytes);
    request["do"]["sent_at_ms"] = now_ms().into();
    match ask(&asked.world, &request) {
        Err(error) => {
            say(&format!("cannot reach the world: {error}"));
            UNREACHABLE
        }
        Ok(None) => {
            say("connection reset by the world");
            LOST
        }
        Ok(Some(answer)) => match (answer["done"].as_str(), answer["refused"].as_str()) {
            (Some(id), _) => done(id),
            (None, why) => {
                say(&format!("refused: {}", why.unwrap_or("no reason")));
                REFUSED
            }
        },
    }
}

/// Each call has a thread of its own, so that several are under way at once.
fn speak(asked: &TouchArgs) -> u8 {
    std::thread::scope(|scope| {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let request: Value = serde_json::from_str(&line).unwrap_or_default();
            if !request["id"].is_null() {
                scope.spawn(move || {
                    let answer =
                        json!({"jsonrpc": "2.0", "id": request["id"], "result": answer(asked, &request)});
                    let _nobody_listens = writeln!(std::io::stdout(), "{answer}");
                });
            }
        }
    });
    0
}

fn answer(asked: &TouchArgs, request: &Value) -> Value {
    match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "touch", "version": "1"},
        }),
        Some("tools/list") => json!({
            "tools": [{"name": "create_order", "inputSchema": {"type": "object"}}],
        }),
        Some("tools/call") => {
            let key = request["params"]["arguments"]["order"].as_str().unwrap_or_default();
            let asking = json!({
                "mode": asked.mode, "delay_ms": asked.delay_ms, "linger_ms": asked.linger_ms,
                "do": {
                    "key": key, "id": fresh_id(), "attempt": 1, "life_ms": asked.life_ms, "sent_at_ms": now_ms(),
                },
            });
            let answer = ask(&asked.world, &asking).ok().flatten().unwrap_or_default();
            json!({
                "content": [{"type": "text", "text": answer.to_string()}],
                "isError": answer["done"].is_null(),
            })
        }
        _ => json!({}),
    }
}

/// `Err`: nothing was sent. `Ok(None)`: it was sent, and no answer came.
fn ask(world: &str, request: &Value) -> std::io::Result<Option<Value>> {
    let mut stream = UnixStream::connect(world)?;
    let mut line = String::new();
    let answered = writeln!(stream, "{request}").and_then(|()| BufReader::new(&stream).read_line(&mut line));
    Ok(answered.ok().and_then(|_| serde_json::from_str(&line).ok()))
}

fn done(id: &str) -> u8 {
    let _nobody_listens = writeln!(std::io::stdout(), "{}", json!({"done": id}));
    0
}

fn say(text: &str) {
    let _nobody_listens = writeln!(std::io::stderr(), "{text}");
}

fn print_filler(bytes: u64) {
    let mut filler = std::io::repeat(b'.').take(bytes);
    let _nobody_listens = std::io::copy(&mut filler, &mut std::io::stdout());
}

/// Each execution of this program is told apart from every other.
fn fresh_id() -> String {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut urandom| urandom.read_exact(&mut bytes));
    read.expect("there is randomness");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[allow(clippy::disallowed_methods, reason = "semel tells its child the attempt's number by the environment")]
fn attempt() -> u64 {
    std::env::var("SEMEL_ATTEMPT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[allow(clippy::disallowed_methods, reason = "the world compares it with its own clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[allow(clippy::disallowed_methods, reason = "a slow command is what the test asked for")]
fn nap(span_ms: u64) {
    if span_ms > 0 {
        std::thread::sleep(Duration::from_millis(span_ms));
    }
}
