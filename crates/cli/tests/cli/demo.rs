//! `semel demo` is a test of its own: real processes, and a book that is counted. Here it is held to its word.

use semel_testkit::signals;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
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
fn a_demo_that_is_interrupted_takes_its_files_along() {
    let surroundings = Surroundings::new();
    signals::restore_for_children();
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

#[test]
fn the_tool_takes_the_money_before_it_is_killed_and_keeps_the_contract_of_a_probe() {
    let directory = tempfile::tempdir().expect("a directory");
    let book = directory.path().join("book.jsonl");
    let pay = |request: &[&str]| {
        let head = ["demo", "pay", "--book", book.to_str().expect("text")];
        Command::new(SEMEL).args(head).args(request).output().expect("a tool")
    };
    assert_eq!(pay(&["find", "1"]).status.code(), Some(2), "nobody knows");
    std::fs::write(&book, "").expect("a book");
    assert_eq!(pay(&["find", "1"]).status.code(), Some(1), "it did not happen");
    std::fs::write(directory.path().join("book.kill-1"), "").expect("a mark");
    let killed = pay(&["charge", "1", "4900", "a memo\nin two lines"]);
    assert_eq!((killed.status.code(), text(&killed.stdout).as_str()), (None, ""));
    let found = pay(&["find", "1"]);
    assert_eq!(found.status.code(), Some(0), "it happened");
    assert!(text(&found.stdout).contains("ch_1"));
    assert_eq!(pay(&["charge", "1", "4900", "a memo"]).status.code(), Some(0), "killed once");
    assert_eq!(std::fs::read_to_string(&book).expect("a book").lines().count(), 2);
}
