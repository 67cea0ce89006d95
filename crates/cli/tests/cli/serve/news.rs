//! A client that goes away in the middle of a call: its model learns with the very next one what became of it.

use super::served::{Asked, SESSION, Served, calling};
use super::stateless::{call_in_run, cancel, serving, told};
use super::upstream::Upstream;
use crate::home::Home;
use serde_json::{Value, json};

const MISSED: &str = "Your earlier call of create_order, whose answer may not have reached you: it was done";

fn is_settled(home: &Home) {
    home.wait_until("it is settled", || {
        home.json(["ledger", "list"])["items"][0]["state"].as_str() == Some("applied")
    });
}

/// Goes away while its call is with the server, and is told of it with the next one.
fn goes_away_and_comes_back(home: &Home, call: impl Fn(u64) -> Asked) {
    let asked = call(0);
    home.wait_until("it is with the server", || home.work().join("world").exists());
    home.wait_until("its stream is open", || asked.is_answered());
    drop(asked);
    home.file("until", "");
    is_settled(home);
    let id = home.json(["ledger", "list"])["items"][0]["effect_id"].as_str().expect("an effect").to_owned();
    let told = call(1).answer();
    assert!(told.body.contains(MISSED) && told.body.contains(&id), "{told:?}");
    let next = call(2).answer();
    assert!(!next.body.contains(MISSED), "once is enough: {next:?}");
    assert_eq!(call(0).answer().outcome(), "replayed");
}

/// Leaves a call while it is with the server: the next one says that it runs, once, and after its end what became
/// of it.
fn leaves_and_hears(home: &Home, call: impl Fn(&str, u64) -> Asked, leaves: impl FnOnce(Asked)) {
    let asked = call("create_order", 0);
    home.wait_until("it is with the server", || home.work().join("world").exists());
    leaves(asked);
    let runs = call("append_note", 1).answer().body;
    assert!(runs.contains(RUNS), "{runs}");
    let next = call("append_note", 2).answer().body;
    assert!(!next.contains("Your earlier call"), "once is enough: {next}");
    home.file("until", "");
    home.wait_until("it is settled", || {
        let all = home.json(["ledger", "list"])["items"].take();
        all.as_array().expect("a list").iter().all(|effect| effect["state"] == "applied")
    });
    let ended = call("append_note", 3).answer().body;
    assert!(ended.contains(MISSED) && !ended.contains(RUNS), "{ended}");
    assert!(!call("append_note", 4).answer().body.contains("Your earlier call"), "once is enough");
    assert_eq!(call("create_order", 0).answer().outcome(), "replayed");
    let world = std::fs::read_to_string(home.work().join("world")).expect("the world");
    assert_eq!(world.lines().count(), 5, "{world}");
}

const RUNS: &str = "Your earlier call of create_order, whose answer has not reached you, is still running.";

/// Semel before a server of two tools, of which one waits, and the headers of a session with it.
fn in_session(home: &Home) -> (Served, String) {
    let tools =
        ["create_order", "append_note"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    let calls = json!({"create_order": {"until": home.work().join("until")}});
    let (served, _) =
        told(home, &json!({"pages": [json!({"tools": tools}).to_string()], "calls": calls}), "");
    let accepts = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let greeted = served.ask("POST", accepts, &hello.to_string()).answer();
    let session = greeted.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id"));
    let session = session.unwrap_or_else(|| panic!("no session: {greeted:?}")).trim();
    (served, format!("{accepts}{session}\r\n"))
}

fn call_in(served: &Served, headers: &str, tool: &str, number: u64) -> Asked {
    let params: Value = json!({"name": tool, "arguments": {"order": number}});
    let call = json!({"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": params});
    served.ask("POST", headers, &call.to_string())
}

#[test]
fn in_a_session_it_is_told_with_the_next_call_of_the_session() {
    let home = Home::new();
    let (served, headers) = in_session(&home);
    goes_away_and_comes_back(&home, |order| call_in(&served, &headers, "create_order", order));
}

/// Each answer after the first would have told of those before it, and nobody heard it either.
#[test]
fn of_several_answers_that_nobody_heard_each_is_told() {
    let home = Home::new();
    let (served, headers) = in_session(&home);
    let asked = [0, 1, 2].map(|order| call_in(&served, &headers, "create_order", order));
    home.wait_until("their streams are open", || asked.iter().all(Asked::is_answered));
    drop(asked);
    home.file("until", "");
    home.wait_until("they are settled", || {
        home.json(["ledger", "list", "--state", "applied"])["items"].as_array().map(Vec::len) == Some(3)
    });
    let told = call_in(&served, &headers, "append_note", 3).answer();
    assert_eq!(told.body.matches(MISSED).count(), 3, "{told:?}");
    let next = call_in(&served, &headers, "append_note", 4).answer();
    assert!(!next.body.contains("Your earlier call"), "{next:?}");
}

#[test]
fn in_a_session_the_next_call_says_that_it_runs() {
    let home = Home::new();
    let (served, headers) = in_session(&home);
    leaves_and_hears(&home, |tool, number| call_in(&served, &headers, tool, number), drop);
}

/// Semel before a server of the stateless era with the same two tools.
fn stateless(home: &Home) -> Served {
    let tools =
        ["create_order", "append_note"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    let calls = json!({"create_order": {"until": home.work().join("until")}});
    let pages = [json!({"tools": tools}).to_string()];
    told(home, &json!({"era": "stateless", "pages": pages, "calls": calls}), "").0
}

#[test]
fn without_a_session_the_next_call_of_the_run_says_that_it_runs() {
    let home = Home::new();
    let served = stateless(&home);
    let call = |tool: &str, number: u64| call_in_run(&served, tool, json!({"order": number}), "nightly");
    leaves_and_hears(&home, call, drop);
}

#[test]
fn without_a_session_a_cancelled_call_that_is_left_says_the_same() {
    let home = Home::new();
    let served = stateless(&home);
    let call = |tool: &str, number: u64| call_in_run(&served, tool, json!({"order": number}), "nightly");
    leaves_and_hears(&home, call, |asked| {
        assert_eq!(cancel(&served).status, 202);
        drop(asked);
    });
}

/// Another client of the same token may have meant a call of its own by that id.
#[test]
fn without_a_session_a_cancelled_call_answers_whoever_still_reads() {
    let home = Home::new();
    let served = stateless(&home);
    let call = |tool: &str, number: u64| call_in_run(&served, tool, json!({"order": number}), "nightly");
    let asked = call("create_order", 0);
    home.wait_until("it is with the server", || home.work().join("world").exists());
    assert_eq!(cancel(&served).status, 202);
    assert!(call("append_note", 1).answer().body.contains(RUNS));
    home.file("until", "");
    assert_eq!(asked.answer().outcome(), "ran");
    assert!(!call("append_note", 2).answer().body.contains("Your earlier call"), "it has its answer");
}

#[test]
fn before_a_remote_server_the_next_call_says_that_it_runs() {
    let (home, upstream) = (Home::new(), Upstream::start());
    let served = Served::before(&home, &upstream.url());
    let call = |tool: &str, amount: u64| {
        let message = calling(amount, tool, json!({"amount": amount}));
        served.ask("POST", SESSION, &message.to_string())
    };
    let mut asked = call("charge_streamed", 0);
    asked.head();
    assert!(asked.chunk().contains("warm"));
    drop(asked);
    let runs = call("charge", 1).answer().body;
    assert!(
        runs.contains("call of charge_streamed, whose answer has not reached you, is still running"),
        "{runs}"
    );
    upstream.release();
    home.wait_until("it is settled", || {
        let all = home.json(["ledger", "list"])["items"].take();
        all.as_array().expect("a list").iter().all(|effect| effect["state"] == "applied")
    });
    let ended = call("charge", 2).answer().body;
    assert!(
        ended.contains("call of charge_streamed, whose answer may not have reached you: it was done"),
        "{ended}"
    );
    assert_eq!(upstream.effects(), 3);
}

#[test]
fn without_a_session_it_is_told_with_the_next_call_of_the_run() {
    let home = Home::new();
    let (served, _) = serving(&home, "create_order", "");
    goes_away_and_comes_back(&home, |order| {
        call_in_run(&served, "create_order", json!({"order": order}), "nightly")
    });
    let other = call_in_run(&served, "create_order", json!({"order": "x"}), "another").answer();
    assert!(!other.body.contains(MISSED), "{other:?}");
}

/// One token of semel's and one name of a run may come with the credentials of many.
#[test]
fn the_news_of_one_account_are_not_told_to_another() {
    let (home, upstream) = (Home::new(), Upstream::start());
    let served = Served::before(&home, &upstream.url());
    let call = |of: &str, arguments: Value| {
        let mut message = calling(1, "charge", arguments);
        message["params"]["_meta"]["dev.semel/run-id"] = "nightly".into();
        served.ask("POST", &format!("{SESSION}Authorization: Bearer {of}\r\n"), &message.to_string())
    };
    let asked = call("ann", json!({"amount": 0, "waits": true}));
    home.wait_until("it is with the server", || upstream.effects() == 1);
    drop(asked);
    upstream.release();
    is_settled(&home);
    let [bob, ann] = ["bob", "ann"].map(|of| call(of, json!({"amount": 1})).answer().body);
    assert!(!bob.contains("Your earlier call"), "{bob}");
    assert!(ann.contains("Your earlier call of charge"), "{ann}");
    assert_eq!(upstream.effects(), 3);
}

/// The server has begun its answer, so the client has a part of it.
#[test]
fn a_stream_that_its_client_closed_in_the_middle_is_told_with_the_next_call() {
    let (home, upstream) = (Home::new(), Upstream::start());
    let served = Served::before(&home, &upstream.url());
    let call = |amount: u64| {
        let message = calling(amount, "charge_streamed", json!({"amount": amount}));
        served.ask("POST", SESSION, &message.to_string())
    };
    let mut asked = call(0);
    asked.head();
    assert!(asked.chunk().contains("warm"));
    drop(asked);
    upstream.release();
    is_settled(&home);
    let told = call(1).answer().body;
    assert!(told.contains("Your earlier call of charge_streamed"), "{told}");
    assert!(!call(2).answer().body.contains("Your earlier call"));
    assert_eq!((call(0).answer().outcome(), upstream.effects()), ("replayed".into(), 3));
}

/// Answers that are on their way are not told beside one another.
#[test]
fn whoever_reads_its_answers_is_told_of_none() {
    let (home, upstream) = (Home::new(), Upstream::start());
    let served = Served::before(&home, &upstream.url());
    let call = |amount: u64, tool: &str| {
        served.ask("POST", SESSION, &calling(amount, tool, json!({"amount": amount})).to_string())
    };
    let streamed: Vec<Asked> = (0..4).map(|amount| call(amount, "charge_streamed")).collect();
    home.wait_until("they are with the server", || upstream.effects() == 4);
    upstream.release();
    let answers = (4..8).map(|amount| call(amount, "charge")).chain(streamed);
    for answer in answers.collect::<Vec<_>>().into_iter().map(Asked::answer) {
        assert!(!answer.body.contains("Your earlier call"), "{answer:?}");
    }
}
