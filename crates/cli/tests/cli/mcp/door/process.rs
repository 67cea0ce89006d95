//! semel as a process: whoever starts it instead of the server notices nothing.

use super::stage::{Stage, greeted};
use crate::mcp::line::Line;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

fn signal(name: &str, process: &Value) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "somebody was there to be signalled");
}

fn lives(process: &Value) -> bool {
    std::path::Path::new("/proc").join(process.to_string()).exists()
}

fn surroundings(line: &mut Line) -> Value {
    line.request("told/surroundings", json!({}))["result"].take()
}

#[test]
fn environment_and_working_directory_are_the_servers_own() {
    let stage = Stage::telling(json!({}));
    let seen = |mut command: Command| {
        let mut seen = surroundings(&mut Line::to(command.env("BILLING_KEY", "b 1")));
        seen["pid"].take();
        seen
    };
    let direct = seen(stage.bare());
    assert_eq!(direct["environment"]["BILLING_KEY"], "b 1");
    assert_eq!(seen(stage.guarded(&[])), direct);
}

#[test]
fn what_the_server_writes_to_stderr_comes_out_of_semels() {
    let stage = Stage::telling(json!({}));
    let mut line = stage.open();
    line.request("told/write", json!({"stderr": "odd \u{1b}[1m words\n"}));
    assert_eq!(stage.stderr(), "odd \u{1b}[1m words\n");
}

#[test]
fn the_servers_exit_code_is_semels() {
    for code in [0, 3, 77] {
        let stage = Stage::telling(json!({}));
        let mut line = Line::to(&mut stage.guarded(&[]));
        line.ask("told/exit", json!({"code": code}));
        assert_eq!(line.read(), None, "nothing but messages goes to stdout");
        assert_eq!(line.close().code(), Some(code));
    }
}

#[test]
fn a_signal_ends_the_server_and_then_semel_as_a_shell_would_report_it() {
    for (name, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let stage = Stage::with_tools(&["create_order"]);
        let mut line = stage.open();
        line.call("create_order", json!({}));
        let server = surroundings(&mut line)["pid"].take();
        signal(name, &line.process().into());
        assert_eq!(line.read(), None);
        stage.wait_until("the server has ended", || !lives(&server));
        let status = line.close();
        assert!(status.code() == Some(128 + number) || status.signal() == Some(number), "{name}: {status}");
    }
}

#[test]
fn other_signals_are_the_servers_and_semel_goes_on_with_it() {
    let names = ["SIGUSR1", "SIGUSR2", "SIGQUIT"];
    let stage = Stage::telling(json!({"signals": names}));
    let mut line = stage.open();
    for (nth, name) in names.iter().enumerate() {
        signal(&name.replace("SIG", "-"), &line.process().into());
        stage.wait_until("the server has the signal", || stage.world().len() == nth + 1);
        assert_eq!(stage.world()[nth], json!({"signal": name}));
    }
    assert_eq!(line.request("ping", json!({}))["result"], json!({}));
    assert_eq!(line.close().code(), Some(0));
}

#[test]
fn a_server_that_ends_by_such_a_signal_ends_semel() {
    for (name, number) in [("-QUIT", 3), ("-USR1", 10)] {
        let stage = Stage::telling(json!({}));
        let mut line = stage.open();
        line.request("ping", json!({}));
        signal(name, &line.process().into());
        assert_eq!(line.read(), None);
        assert_eq!(line.close().code(), Some(128 + number), "{name}");
    }
}

/// Rule 12: what was sent is finished and settled before the server is asked to end.
#[test]
fn a_signal_lets_a_call_finish_that_was_sent() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"until": "until"}}));
    let mut line = stage.open();
    line.ask("tools/call", json!({"name": "create_order", "arguments": {}}));
    stage.wait_until("the effect is there", || stage.world().len() == 1);
    signal("-TERM", &line.process().into());
    stage.file("until", "");
    let (answer, _) = line.read_answer().expect("the call is answered");
    assert!(crate::mcp::text(&answer["result"]).starts_with("done: "), "{answer}");
    line.close();
    assert_eq!(stage.recorded()[0]["state"], "applied");
}

/// `printf … | semel mcp`: the input ends before the first answer, and all answers come.
#[test]
fn all_that_was_asked_is_answered_though_the_input_has_ended() {
    let stage = Stage::with_tools(&["create_order", "get_order"]);
    let mut command = stage.guarded(&[]);
    let input = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_order","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_order","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
        "",
    ];
    stage.file("input", &input.join("\n"));
    let file = std::fs::File::open(stage.work().join("input")).expect("the input");
    let ended = command.stdin(file).stdout(Stdio::piped()).output().expect("semel runs");
    let text = String::from_utf8(ended.stdout).expect("text");
    let mut ids: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a message")["id"].take())
        .collect();
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [1, 2, 3], "{text}");
    assert!(ended.status.success(), "{:?}", ended.status);
}

#[test]
fn lines_that_are_no_messages_go_to_stderr_and_are_explained_once() {
    let stage = Stage::telling(json!({}));
    let mut line = greeted(Line::to(&mut stage.guarded(&[])));
    stage.file("say", "Server started on port 3\n\nReady.");
    assert_eq!(line.request("ping", json!({}))["result"], json!({}));
    let said = stage.stderr();
    assert!(said.contains("Server started on port 3\n") && said.contains("Ready.\n"), "{said}");
    assert_eq!(said.matches("they go here").count(), 1, "{said}");
}
