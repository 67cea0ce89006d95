//! `semel sdk --stdio`, as the SDKs speak to it.

use crate::home::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

struct Sidecar {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Sidecar {
    fn start(home: &Home) -> Sidecar {
        let (mut sidecar, ready) = Sidecar::start_and_read(home);
        assert_eq!((&ready["protocol"], ready["semel"].is_string()), (&json!(1), true), "{ready}");
        sidecar.asked = 0;
        sidecar
    }

    fn start_and_read(home: &Home) -> (Sidecar, Value) {
        let mut command = home.command(["sdk", "--stdio"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut sidecar = Sidecar { child, input, output, asked: 0 };
        let first = sidecar.line();
        (sidecar, first)
    }

    fn say(&mut self, text: &str) {
        let input = self.input.as_mut().expect("its input is open");
        input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("it reads");
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, path: &str, body: &Value) -> (u64, Value) {
        self.asked += 1;
        self.say(&json!({"id": self.asked, "method": "POST", "path": path, "body": body}).to_string());
        let answer = self.line();
        assert_eq!(answer["id"], self.asked);
        (answer["status"].as_u64().expect("a status"), answer["body"].clone())
    }

    fn begin(&mut self, more: &Value) -> Value {
        let mut body = json!({"action": "fn:charge", "arguments": {"invoice": "1001", "amount": 4900}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("/begin", &body).1
    }

    fn settle(&mut self, begun: &Value, outcome: &str, reply: &Value) -> (u64, Value) {
        self.ask("/settle", &json!({"claim": begun["claim"], "outcome": outcome, "reply": reply}))
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[test]
fn a_call_runs_once_and_its_repeat_gets_the_reply() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    let begun = sidecar.begin(&json!({"key": "charge:1001"}));
    assert_eq!(begun["outcome"], "run", "{begun}");
    let (status, settled) = sidecar.settle(&begun, "applied", &json!({"id": "ch_1"}));
    assert_eq!((status, &settled["outcome"]), (200, &json!("ran")));
    sidecar.end();
    let mut next = Sidecar::start(&home);
    let again = next.begin(&json!({"key": "charge:1001"}));
    assert_eq!((&again["outcome"], &again["data"]), (&json!("replayed"), &json!({"id": "ch_1"})));
    let listed = home.json(["ledger", "list"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    next.end();
}

#[test]
fn a_program_that_goes_away_leaves_a_doubt_at_once() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    let begun = sidecar.begin(&json!({"class": "consequential"}));
    assert_eq!(begun["outcome"], "run", "{begun}");
    sidecar.end();
    let mut next = Sidecar::start(&home);
    let held = next.begin(&json!({"class": "consequential"}));
    assert_eq!((&held["code"], &held["effect_id"]), (&json!("in_doubt"), &begun["effect_id"]), "{held}");
    // This test has only closed the pipe, and may still be at it: what it saw before cannot say no.
    let probe = format!("/effects/{}/probe", begun["effect_id"].as_str().unwrap());
    let (status, refused) = next.ask(&probe, &json!({"found": "no", "asked_ms_ago": 0, "quiet": "0s"}));
    assert_eq!(status, 409, "{refused}");
    // Its late word still counts, to any sidecar.
    let (status, settled) = next.settle(&begun, "applied", &json!("late"));
    assert_eq!((status, &settled["ok"]), (200, &json!(true)), "{settled}");
    assert_eq!(next.begin(&json!({"class": "consequential"}))["data"], "late");
    next.end();
}

#[test]
fn arguments_named_in_by_alone_make_two_calls_the_same() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    let mail = |to: &str, text: &str| json!({"action": "fn:send_mail", "arguments": {"to": to, "text": text}, "by": ["to"], "run": "r"});
    let first = sidecar.ask("/begin", &mail("ann", "Hello")).1;
    sidecar.settle(&first, "applied", &json!(1));
    assert_eq!(sidecar.ask("/begin", &mail("ann", "Dear Ann")).1["outcome"], "replayed");
    assert_eq!(sidecar.ask("/begin", &mail("bob", "Hello")).1["outcome"], "run");
    let wrong = json!({"action": "fn:send_mail", "arguments": {"to": "x"}, "by": ["too"]});
    let (status, refused) = sidecar.ask("/begin", &wrong);
    assert!(status == 422 && refused["detail"].as_str().unwrap().contains("too"), "{refused}");
    sidecar.end();
}

#[test]
fn a_doubt_about_a_tool_that_honours_our_key_is_sent_again_under_it() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    let keyed = json!({"keyed_for": "24h", "class": "consequential"});
    let first = sidecar.begin(&keyed);
    let (status, doubt) = sidecar.settle(&first, "in_doubt", &Value::Null);
    assert_eq!((status, &doubt["ok"], &doubt["code"]), (200, &json!(false), &json!("in_doubt")), "{doubt}");
    let second = sidecar.begin(&keyed);
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("run"), &json!(2)), "{second}");
    assert_eq!(second["idempotency_key"], first["idempotency_key"]);
    assert_eq!(first["tier"], "keyed");
    sidecar.end();
}

#[test]
fn a_tool_that_waits_for_input_has_not_run() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    let first = sidecar.begin(&json!({"class": "consequential"}));
    sidecar.settle(&first, "awaiting_input", &Value::Null);
    let second = sidecar.begin(&json!({"class": "consequential"}));
    assert_eq!((&second["outcome"], &second["attempt"]), (&json!("run"), &json!(2)), "{second}");
    sidecar.end();
}

#[test]
fn lines_that_are_no_requests_are_answered_and_harm_nothing() {
    let home = Home::new();
    let mut sidecar = Sidecar::start(&home);
    for odd in ["hello", "{}", "[1]", r#"{"id":-1,"method":"POST","path":"/begin"}"#] {
        sidecar.say(odd);
        let answer = sidecar.line();
        assert_eq!((&answer["id"], &answer["status"]), (&Value::Null, &json!(400)), "{odd}: {answer}");
    }
    for (path, expected) in [("/nothing", 404), ("/../../x y", 400)] {
        let (status, _) = sidecar.ask(path, &json!({}));
        assert_eq!(status, expected, "{path}");
    }
    assert_eq!(sidecar.begin(&json!({}))["outcome"], "run");
    sidecar.end();
}

#[test]
fn a_sidecar_that_cannot_work_says_so_and_ends() {
    let home = Home::new();
    home.file("semel.toml", "version = 1\n[[rule]]\nmatch = \"fn:x\"\nclas = \"read\"\n");
    let (mut sidecar, first) = Sidecar::start_and_read(&home);
    assert_eq!(first["code"], "policy_invalid", "{first}");
    assert!(!sidecar.child.wait().unwrap().success());
    std::fs::remove_file(home.work().join("semel.toml")).unwrap();
    std::fs::write(home.state(), "no directory").unwrap();
    let (mut sidecar, first) = Sidecar::start_and_read(&home);
    assert_eq!(first["code"], "ledger_unavailable", "{first}");
    assert!(!sidecar.child.wait().unwrap().success());
}
