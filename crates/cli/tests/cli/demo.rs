//! `semel demo` is a test of its own: real processes, and a bank that counts. Here it is held to its word.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use tempfile::TempDir;

const SEMEL: &str = env!("CARGO_BIN_EXE_semel");

/// A demo whose every trace would be found: it may write to these directories only, and must leave both empty.
struct Surroundings {
    state: TempDir,
    temporary: TempDir,
}

impl Surroundings {
    fn new() -> Self {
        let directory = || tempfile::tempdir().expect("a directory");
        Surroundings { state: directory(), temporary: directory() }
    }

    fn demo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SEMEL);
        command
            .arg("demo")
            .args(arguments)
            .env("SEMEL_STATE_DIR", self.state.path())
            .env("TMPDIR", self.temporary.path())
            // Neither may get in.
            .env("SEMEL_POLICY", "/nonexistent/semel.toml")
            .env("SEMEL_RUN_ID", "a run of the user's")
            .stdin(Stdio::null());
        command
    }

    fn assert_empty(&self) {
        for directory in [self.state.path(), self.temporary.path()] {
            let left: Vec<_> = std::fs::read_dir(directory).expect("a directory").collect();
            assert!(left.is_empty(), "left behind in {}: {left:?}", directory.display());
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_demo_counts_what_it_must_and_leaves_nothing_behind() {
    let surroundings = Surroundings::new();
    let output = surroundings.demo(&["--fast"]).output().expect("a demo");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    assert_eq!(stderr, "");
    let counts: Vec<&str> =
        stdout.lines().map(str::trim).filter(|line| line.starts_with("charges for order")).collect();
    assert_eq!(
        counts,
        [
            "charges for order 1001: 2  ✗ paid twice",
            "charges for order 1002: 1  ✓ paid once",
            "charges for order 1003: 1  ✓ paid once",
            "charges for order 1004: 1  ✓ paid once",
            "charges for order 1005: 2  ✓ as asked",
            "charges for order 1005: 2  ✓ still two",
            "charges for order 1006: 1  ✓ another order is another payment",
            "charges for order 1007: 1  ✓ not tried again, and not passed off as done",
            "charges for order 1007: 1  ✓ paid once",
        ]
    );
    assert_eq!(stdout.matches("exit 121").count(), 2, "{stdout}");
    assert!(stdout.contains("semel run --help · semel ledger · docs/contract.md"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "no colour where there is no terminal");
    surroundings.assert_empty();
}

#[test]
fn the_demo_as_json_is_one_document_in_which_every_act_is_ok() {
    let surroundings = Surroundings::new();
    let output = surroundings.demo(&["--fast", "--json"]).output().expect("a demo");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    assert_eq!(document["ok"], true);
    let acts = document["acts"].as_array().expect("acts");
    let counted: Vec<&Value> = acts.iter().map(|act| &act["counted"]).collect();
    assert_eq!(
        json!(counted),
        json!([{"1001": 2}, {"1002": 1}, {"1003": 1}, {"1004": 1}, {"1005": 2, "1006": 1}, {"1007": 1}])
    );
    for act in acts {
        assert_eq!(act["ok"], true, "{act:#}");
        assert_eq!(act["expected"], act["counted"], "{act:#}");
        assert!(act["name"].is_string() && act["detail"].is_string(), "{act:#}");
    }
    surroundings.assert_empty();
}

#[test]
fn a_demo_that_is_interrupted_takes_its_bank_and_its_files_along() {
    let surroundings = Surroundings::new();
    let mut demo = surroundings.demo(&[]).stdout(Stdio::piped()).spawn().expect("a demo");
    let mut stdout = BufReader::new(demo.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("1 ") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).expect("readable"), 0, "the demo has begun");
    }
    let pid = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    std::io::copy(&mut stdout, &mut std::io::sink()).expect("readable");
    assert_eq!(demo.wait().expect("it ends").code(), Some(130));
    surroundings.assert_empty();
}

/// The bank without the demo.
struct Bank {
    child: Child,
    stdin: ChildStdin,
    address: String,
}

impl Bank {
    fn open(log: &Path) -> Bank {
        let mut command = Command::new(SEMEL);
        command.args(["demo", "bank", "--log"]).arg(log).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a bank");
        let stdin = child.stdin.take().expect("piped");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut address).expect("an address");
        Bank { child, stdin, address: address.trim().to_owned() }
    }

    fn pay(&self, request: &[&str]) -> Output {
        let head = ["demo", "pay", "--bank", &self.address];
        Command::new(SEMEL).args(head).args(request).output().expect("a tool")
    }

    fn say(&self, line: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        writeln!(stream, "{line}").expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("readable");
        if reply.is_empty() { Value::Null } else { serde_json::from_str(&reply).expect("one reply") }
    }

    fn close(self) -> Option<i32> {
        let Bank { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().expect("it ends").code()
    }
}

#[test]
fn the_bank_writes_before_it_answers_and_ends_with_its_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let bank = Bank::open(&log);
    assert_eq!(bank.say(r#"{"request":"lose_next_answer","order":"1"}"#)["reply"], "answer_will_be_lost");
    let charge = r#"{"request":"charge","order":"1","amount":4900,"memo":"a"}"#;
    assert_eq!(bank.say(charge), Value::Null, "the answer is lost");
    assert_eq!(bank.say(r#"{"request":"count","order":"1"}"#)["count"], 1, "and the money is gone");
    assert_eq!(bank.say(charge)["charge"]["id"], "ch_2");
    for nonsense in
        ["", "{", "null", r#"{"request":"rob"}"#, r#"{"request":"charge","order":"1","amount":-1}"#]
    {
        assert_eq!(bank.say(nonsense)["reply"], "refused", "{nonsense}");
    }
    assert_eq!(bank.close(), Some(0));
    let mut charges = BTreeMap::new();
    for line in std::fs::read_to_string(&log).expect("a log").lines() {
        let charge: Value = serde_json::from_str(line).expect("a charge");
        *charges.entry(charge["order"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(charges, BTreeMap::from([(r#""1""#.to_owned(), 2)]));
}

#[test]
fn the_tool_keeps_the_contract_of_a_probe() {
    let directory = tempfile::tempdir().expect("a directory");
    let bank = Bank::open(&directory.path().join("log"));
    assert_eq!(bank.pay(&["find", "1"]).status.code(), Some(1), "it did not happen");
    bank.say(r#"{"request":"lose_next_answer","order":"1"}"#);
    let lost = bank.pay(&["charge", "1", "4900", "a memo"]);
    assert_eq!(lost.status.code(), Some(1));
    assert!(text(&lost.stderr).contains("connection closed before the answer"));
    let found = bank.pay(&["find", "1"]);
    assert_eq!(found.status.code(), Some(0), "it happened");
    assert!(text(&found.stdout).contains("ch_1"));
    let address = bank.address.clone();
    assert_eq!(bank.close(), Some(0));
    let nobody =
        Command::new(SEMEL).args(["demo", "pay", "--bank", &address, "find", "1"]).output().expect("a tool");
    assert_eq!(nobody.status.code(), Some(2), "nobody knows");
}
