//! People hear of a doubt without a server: from `semel run` and from `semel mcp`.

use super::webhook::{self, Listener, SECRET};
use crate::home::{Home, Ran};
use crate::mcp::line::Line;
use crate::mcp::peers::Server;
use crate::mcp::{Way, assert_in_doubt};
use serde_json::{Value, json};

/// One line of `told` for each message.
const TELL: &str = "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> told; echo >> told\"]\n";

fn told(home: &Home) -> Vec<Value> {
    let told = std::fs::read_to_string(home.work().join("told")).unwrap_or_default();
    told.lines().map(|line| serde_json::from_str(line).expect("a message is JSON")).collect()
}

fn ids(home: &Home) -> Vec<String> {
    let id = |message: &Value| message["data"]["effect"]["effect_id"].as_str().expect("an id").to_owned();
    told(home).iter().map(id).collect()
}

#[test]
fn a_doubt_of_a_command_is_told_once_and_its_repeats_are_not() {
    let home = Home::new();
    home.doubt("old");
    home.file("semel.toml", TELL);
    assert_eq!(home.run(&["--key", "fine"], "echo fine").code, Some(0));
    assert_eq!(told(&home).len(), 0);
    let script = ["--key", "k", "--", "sh", "-c", "kill -9 $$", "sh", "--password", "hunter2hunter2"];
    let semel = || home.semel([&["run", "--json"][..], &script[..]].concat());
    let first = semel();
    assert_eq!((first.code, first.stderr.as_str()), (Some(121), ""), "{first:?}");
    let id = first.json()["effect_id"].as_str().expect("an id").to_owned();
    assert_eq!(ids(&home), [id.as_str()], "and what is old is no news");
    assert_eq!((semel().code, ids(&home).len()), (Some(121), 1), "a call that joins the doubt");
    assert_eq!(ids(&home), [id.as_str()]);
    let message = &told(&home)[0];
    let data = &message["data"];
    assert_eq!((&message["type"], &data["door"]), (&json!("effect.in_doubt"), &json!("cli")), "{message}");
    assert_eq!(data["show"], format!("semel ledger show {id}"));
    assert_eq!((&data["effect"]["state"], &data["effect"]["class"]), (&json!("in_doubt"), &json!("act")));
    assert!(
        data["text"].as_str().is_some_and(|text| text.contains("signal 9") && text.contains(&id)),
        "{data}"
    );
    assert!(!message.to_string().contains("hunter2"), "{message}");
    let another = home.doubt("another");
    assert_eq!(ids(&home), [id, another]);
}

#[test]
fn a_command_that_died_with_semel_is_told_by_the_semel_that_is_asked_next() {
    let home = Home::new();
    home.file("semel.toml", TELL);
    let run = || home.run(&["--key", "killed"], "kill -9 $PPID");
    assert_eq!((run().code, told(&home).len()), (None, 0));
    assert_eq!((run().code, told(&home).len()), (Some(121), 1));
    assert_eq!((run().code, told(&home).len()), (Some(121), 1));
}

#[test]
fn an_address_is_told_from_a_command_and_what_it_missed_is_told_with_the_next_doubt() {
    let home = Home::new();
    let port = webhook::port();
    home.file(
        "semel.toml",
        &format!("[notify]\nurl = \"http://127.0.0.1:{port}/hook\"\nsecret_env = \"HOOK\"\n"),
    );
    let doubt = |key: &str| {
        let mut command = home.command(["run", "--json", "--key", key, "--", "sh", "-c", "kill -9 $$"]);
        let ran = Ran::of(command.env("HOOK", SECRET).output().expect("semel starts"));
        assert_eq!(ran.code, Some(121), "{ran:?}");
        (ran.json()["effect_id"].as_str().expect("an id").to_owned(), ran.stderr)
    };
    let (missed, said) = doubt("missed");
    assert!(said.contains(&format!("the webhook http://127.0.0.1:{port} cannot be told")), "{said}");
    let waits = Ran::of(home.command(["doctor"]).env("HOOK", SECRET).output().expect("semel starts"));
    assert!(waits.stdout.contains("is still to be told of doubts"), "{waits:?}");
    let _listener = Listener::start(&home, port, 0);
    let (next, said) = doubt("next");
    assert_eq!(said, "");
    let told: Vec<String> = webhook::told(&home).into_iter().map(|(_, id)| id).collect();
    assert_eq!(told, [missed, next]);
}

#[test]
fn a_command_that_hangs_keeps_nobody_waiting() {
    let home = Home::new();
    let hangs = "[notify]\ncommand = [\"sh\", \"-c\", \"cat >> told; echo >> told; echo $$ > pid; exec sleep 1000\"]\n";
    home.file("semel.toml", hangs);
    let id = home.doubt("k");
    assert_eq!(ids(&home), [id.as_str()]);
    let pid = std::fs::read_to_string(home.work().join("pid")).expect("it runs").trim().to_owned();
    let ended = home.program(&["kill".to_owned(), pid]).status().expect("kill starts");
    assert!(ended.success(), "it was left alone");
    assert_eq!(home.semel(["run", "--key", "k", "--", "sh", "-c", "kill -9 $$"]).code, Some(121));
    assert_eq!(ids(&home), [id]);
}

#[test]
fn a_command_that_fails_is_reported_and_changes_nothing_else() {
    for (command, why) in [
        ("[\"sh\", \"-c\", \"echo x >> told; exit 3\"]", "the command sh failed (exit 3)"),
        ("[\"./missing\"]", "cannot be started (there is no program ./missing)"),
    ] {
        let home = Home::new();
        home.file("semel.toml", &format!("[notify]\ncommand = {command}\n"));
        let run = || home.run(&["--json", "--key", "k"], "kill -9 $$");
        let ran = run();
        assert_eq!((ran.code, &ran.json()["code"]), (Some(121), &json!("in_doubt")));
        assert!(ran.stderr.contains(why) && ran.stderr.contains("is not told"), "{ran:?}");
        assert_eq!((run().code, run().stderr.as_str()), (Some(121), ""), "it is not tried again");
        let doctor = home.semel(["doctor"]);
        let named = doctor.stdout.lines().find(|line| line.contains("notify")).expect("it is checked");
        assert!(named.starts_with("warn") && doctor.code == Some(0), "{named}");
    }
}

#[test]
fn a_doubt_at_the_mcp_door_is_told_once_for_all_its_callers() {
    let home = Home::new();
    home.file("semel.toml", TELL);
    for _ in 0..2 {
        let mut client = Line::open(&home, Way::Guarded, Server::Python);
        assert_in_doubt(&client.call("die_after_charge", json!({"customer": "ada", "amount": 3})));
        home.wait_until("it is told", || !told(&home).is_empty());
        client.close();
    }
    let told = told(&home);
    assert_eq!((told.len(), &told[0]["data"]["door"]), (1, &json!("mcp")), "{told:?}");
}
