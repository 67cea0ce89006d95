//! The API that fails as told does so: a fault that never happens would make tests that cannot fail.

use crate::scene::{private_directory, sleep};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

struct Upstream {
    child: Child,
    address: String,
    directory: TempDir,
}

impl Upstream {
    fn start() -> Upstream {
        let directory = private_directory();
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel-upstream"));
        command.arg("--log").arg(directory.path().join("log")).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        Upstream { child, address: said["address"].as_str().expect("an address").to_owned(), directory }
    }

    /// All bytes that come back until the connection ends.
    fn ask(&self, request: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout can be set");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        // A reset after some bytes is an end too; the bytes before it count.
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            answer.extend_from_slice(&chunk[..read]);
            if complete(&answer) {
                break;
            }
        }
        answer
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        let text =
            format!("POST {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        String::from_utf8(self.ask(&text)).expect("text")
    }

    fn plan(&self, plan: &Value) {
        let said = self.post("/__plan", "", &plan.to_string());
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }

    fn charge(&self) -> String {
        self.post("/v1/charges", "", "amount=1&currency=eur")
    }

    fn logged(&self, at: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.directory.path().join("log")).expect("a log");
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| line["at"] == at).collect()
    }

    fn effects(&self) -> usize {
        self.logged("effect").len()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| body.len() == length)
}

#[test]
fn a_plan_with_an_unknown_word_is_refused() {
    let upstream = Upstream::start();
    let said = upstream.post("/__plan", "", r#"{"next": [{"cut_responce": 0}]}"#);
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("cut_responce"), "{said}");
}

#[test]
fn a_response_is_cut_after_exactly_so_many_bytes_and_the_effect_is_in_the_log() {
    let upstream = Upstream::start();
    let whole = upstream.charge();
    for (at, how) in [(0, "close"), (1, "reset"), (17, "close"), (whole.len() - 1, "reset")] {
        upstream.plan(&json!({"next": [{"path": "/v1/charges", "cut_response": at, "how": how}]}));
        let effects = upstream.effects();
        let said = upstream.charge();
        // A reset may overtake what was sent before it.
        assert!(if how == "close" { said.len() == at } else { said.len() <= at }, "{at}: {said:?}");
        assert_eq!(upstream.effects(), effects + 1);
    }
}

#[test]
fn a_request_that_was_cut_has_no_effect_and_one_that_was_read_whole_has() {
    let upstream = Upstream::start();
    let bytes = {
        upstream.charge();
        usize::try_from(upstream.logged("received")[0]["bytes"].as_u64().expect("a length")).expect("small")
    };
    for (at, effects) in [(0, 1), (20, 1), (bytes - 1, 1), (bytes, 2)] {
        upstream.plan(&json!({"next": [{"path": "/v1/charges", "cut_request": at}]}));
        assert_eq!(upstream.charge(), "");
        assert_eq!(upstream.effects(), effects, "{at}");
    }
}

#[test]
fn keys_are_honoured_or_ignored_as_told() {
    let upstream = Upstream::start();
    let key = "Idempotency-Key: k\r\n";
    let charge = |body: &str| upstream.post("/v1/charges", key, body);
    charge("amount=1");
    charge("amount=1");
    assert_eq!(upstream.effects(), 2);
    upstream.plan(&json!({"keys": "honour", "next": [{"path": "/v1/charges", "cut_response": 0}]}));
    assert_eq!(charge("amount=1"), "");
    let first = charge("amount=1");
    assert!(first.contains("Idempotent-Replayed: true"), "{first}");
    assert_eq!(first, charge("amount=1"));
    assert!(charge("amount=2").starts_with("HTTP/1.1 400"));
    assert_eq!(upstream.effects(), 3);
}

#[test]
fn a_lie_is_no_effect_and_a_late_commit_is_one_after_the_line_is_gone() {
    let upstream = Upstream::start();
    upstream.plan(&json!({"next": [
        {"path": "/v1/charges", "effect": "never"},
        {"path": "/v1/charges", "effect": {"late": "later"}, "how": "reset"},
    ]}));
    assert!(upstream.charge().starts_with("HTTP/1.1 200"));
    assert_eq!(upstream.charge(), "");
    assert_eq!(upstream.effects(), 0);
    upstream.post("/__release/later", "", "");
    while upstream.effects() == 0 {
        sleep(Duration::from_millis(2));
    }
    assert_eq!(upstream.effects(), 1);
}

#[test]
fn a_stream_stops_before_its_end_in_each_of_three_ways() {
    let upstream = Upstream::start();
    let body = r#"{"model": "m", "max_tokens": 9, "stream": true, "messages": []}"#;
    let mut ends = Vec::new();
    for fault in [
        json!({"stream": {"stop_after": 4}, "close": "announced"}),
        json!({"stream": {"stop_after": 4}, "how": "end", "close": "announced"}),
        json!({"stream": {"error_after": 4}, "close": "announced"}),
        json!({"close": "announced"}),
    ] {
        upstream.plan(&json!({"next": [fault]}));
        let said = upstream.post("/v1/messages", "", body);
        let (events, whole) = (said.matches("event: ").count(), said.ends_with("0\r\n\r\n"));
        ends.push((events, whole, said.contains("event: error"), said.contains("message_stop")));
    }
    let wanted = [(4, false, false, false), (4, true, false, false), (5, true, true, false)];
    assert_eq!(ends[..3], wanted);
    assert!(ends[3].1 && ends[3].3, "{ends:?}");
    assert_eq!(upstream.logged("generation").len(), 4);
}

#[test]
fn a_peer_that_leaves_a_black_hole_is_seen_to_leave() {
    let upstream = Upstream::start();
    upstream.plan(&json!({"next": [{"path": "/v1/charges", "hold": "never"}]}));
    let mut stream = TcpStream::connect(&upstream.address).expect("it listens");
    let request = "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\namount=1";
    stream.write_all(request.as_bytes()).expect("it reads");
    while upstream.effects() == 0 {
        sleep(Duration::from_millis(2));
    }
    drop(stream);
    while upstream.logged("gone").is_empty() {
        sleep(Duration::from_millis(2));
    }
}
