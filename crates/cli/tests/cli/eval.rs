//! `semel eval`: users who stop, golden pairs, models, and the commands that repeat a failure.

use crate::home::{Home, Ran};
use semel_testkit::http::server::FakeServer;
use serde_json::{Value, json};

/// The report of one door.
fn eval(home: &Home, args: &[&str]) -> Value {
    let ran = home.semel([&["eval", "--json"], args].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr));
    report["doors"][0].clone()
}

fn numbers(report: &Value) -> [u64; 4] {
    ["scenarios", "ran_twice", "wrongly_suppressed", "honestly_reported"]
        .map(|name| report["numbers"][name].as_u64().expect("a number"))
}

#[test]
fn an_effect_that_survived_the_users_stop_is_not_done_again() {
    let home = Home::new();
    for door in ["command", "mcp", "http"] {
        let args = ["--only", "stopped by the user", "--door", door];
        let bare = eval(&home, &[&args[..], &["--unguarded"]].concat());
        assert_eq!(numbers(&bare)[..2], [4, 4], "{door}: {bare}");
        let guarded = eval(&home, &args);
        assert_eq!(numbers(&guarded), [4, 0, 0, 4], "{door}: {guarded}");
    }
}

#[test]
fn a_golden_pair_runs_once_or_twice_as_it_says() {
    let home = Home::new();
    for door in ["mcp", "http"] {
        // Different entities; the whole set is judged by the test of the doors.
        let args = ["--only", "entity", "--door", door];
        let bare = eval(&home, &[&args[..], &["--unguarded"]].concat());
        assert!(numbers(&bare)[0] >= 2, "{door}: {bare}");
        assert_eq!(numbers(&bare)[1..3], [0, 0], "{door}: different entities do not clash: {bare}");
    }
    let lost = ["--only", "duplicate/refund: the answer was lost", "--door", "mcp"];
    assert_eq!(numbers(&eval(&home, &lost)), [1, 0, 0, 1]);
    assert_eq!(numbers(&eval(&home, &[&lost[..], &["--unguarded"]].concat())), [1, 1, 0, 1]);
    let again = ["--only", "repeat/refund: the answer was lost", "--door", "mcp"];
    assert_eq!(numbers(&eval(&home, &again)), [1, 0, 0, 1]);
}

#[test]
fn a_guard_that_passes_nothing_on_is_not_tried() {
    let home = Home::new();
    let only = ["eval", "--only", "lost answer/charge"];
    // Nothing listens at the discard port.
    let deaf = ["--http", "http://127.0.0.1:9/world", "--world", "127.0.0.1:0"];
    for guard in [&["--command", "true"][..], &deaf] {
        let ran = home.semel([&only[..], guard].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains("no call reached the world"), "{ran:?}");
    }
    let ran = home.semel([&only[..], &["--policy", "semel.toml"]].concat());
    assert!(ran.code == Some(2) && ran.stderr.contains("without a policy"), "{ran:?}");
}

#[test]
fn a_failure_is_printed_with_the_command_that_repeats_it() {
    let home = Home::new();
    let name = "lost answer/charge/naive/lost_after";
    let ran = home.semel(["eval", "--mcp", "env LC_ALL=C", "--only", name, "--junit", "eval.xml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let command = ran.stdout.lines().map(str::trim).find(|line| line.starts_with("semel eval"));
    assert_eq!(
        command,
        Some(format!("semel eval --mcp 'env LC_ALL=C' --only '{name}'").as_str()),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("happened otherwise                 1                   0"),
        "{}",
        ran.stdout
    );
    let junit = std::fs::read_to_string(home.work().join("eval.xml")).expect("a file");
    assert!(junit.contains("tests=\"1\" failures=\"1\"") && junit.contains("ran too often"), "{junit}");
    let quoted = home.semel(["eval", "--mcp", "guard 'open", "--only", name]);
    assert!(quoted.stderr.contains("end within a quotation"), "{}", quoted.stderr);
}

/// A model that makes the call of its task until a tool says that it worked.
fn blind_model() -> FakeServer {
    FakeServer::start(|exchange| {
        let asked: Value = serde_json::from_slice(&exchange.request.body).ok()?;
        let messages = asked["messages"].as_array()?;
        let task = messages[1]["content"].as_str()?;
        let (tool, args) =
            task.lines().nth(1)?.strip_prefix("- ")?.rsplit_once(": ")?.0.split_once(" with ")?;
        let last = messages.last()?["content"].as_str().unwrap_or_default();
        let message = match messages.len() {
            2 => json!({"tool_calls": [{"id": "c1", "function": {"name": tool, "arguments": args}}]}),
            3..10 if last.starts_with("error") => {
                json!({"tool_calls": [{"id": "c2", "function": {"name": tool, "arguments": args}}]})
            }
            _ if last.starts_with("error") => json!({"content": "UNKNOWN"}),
            _ => json!({"content": "DONE"}),
        };
        exchange.reply(200, "", &json!({"choices": [{"message": message}]}).to_string())
    })
}

#[test]
fn a_model_is_the_agent() {
    let (home, model) = (Home::new(), blind_model());
    let endpoint = format!("{}/v1/", model.url());
    let args = ["--only", "lost answer/charge", "--door", "mcp", "--model", "blind", "--endpoint", &endpoint];
    // The answer is lost after the effect, and before it.
    assert_eq!(numbers(&eval(&home, &[&args[..], &["--unguarded"]].concat())), [2, 1, 0, 2]);
    assert_eq!(numbers(&eval(&home, &args)), [2, 0, 0, 2]);
    let request = model.last();
    assert_eq!(request.head.path, "/v1/chat/completions");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(body["model"], "blind");
    let tools = body["tools"].as_array().expect("tools");
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "create_charge"), "{body}");
}

#[test]
fn an_endpoint_that_fails_ends_the_trial_with_its_words() {
    let home = Home::new();
    let server =
        FakeServer::start(|exchange| exchange.reply(401, "", "{\"error\": \"no such key as sk-s3cret\"}"));
    let url = server.url();
    let mut args = vec!["eval", "--only", "lost answer/charge", "--model", "m", "--endpoint", &url];
    let refused = home.semel(&args);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("the model cannot be asked: it answers 401"), "{}", refused.stderr);
    args.extend(["--key-env", "MODEL_KEY"]);
    let mut command = home.command(&args);
    let refused = Ran::of(command.env("MODEL_KEY", "sk-s3cret").output().expect("semel starts"));
    assert!(refused.stderr.contains("no such key as [key]"), "{}", refused.stderr);
    *args.last_mut().expect("a name") = "NO_SUCH_VARIABLE";
    let keyless = home.semel(&args);
    assert!(keyless.stderr.contains("NO_SUCH_VARIABLE is not set"), "{}", keyless.stderr);
}
