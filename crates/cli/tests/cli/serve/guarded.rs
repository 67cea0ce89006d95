use super::served::{SESSION, Served, calling};
use crate::home::Home;
use semel_testkit::http::FakeMcpServer;
use semel_testkit::wait_until;
use serde_json::json;

fn bank() -> (Home, FakeMcpServer, Served) {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let served = Served::before(&home, &upstream.url());
    (home, upstream, served)
}

fn is_applied(home: &Home) -> bool {
    home.json(["ledger", "list", "--state", "applied"])["items"].as_array().map(Vec::len) == Some(1)
}

#[test]
fn a_repeated_charge_is_answered_from_the_record() {
    let (_home, upstream, served) = bank();
    let first = served.call("charge", json!({"amount": 1}));
    let again = served.call("charge", json!({"amount": 1}));
    assert_eq!((first.tool_outcome(), again.tool_outcome()), ("ran".into(), "replayed".into()));
    assert_eq!(first.json()["id"], 1);
    assert_eq!(upstream.effects(), 1);
    assert_eq!(served.call("charge", json!({"amount": 2})).tool_outcome(), "ran");
    assert_eq!(upstream.effects(), 2);
}

/// Nobody could be told what became of it, and it would pass the gate by.
#[test]
fn a_call_without_an_id_reaches_no_server() {
    let (_home, upstream, served) = bank();
    let mut message = calling(1, "charge", json!({"amount": 1}));
    message.as_object_mut().expect("a message").remove("id");
    let answer = served.post(&message);
    assert_eq!(answer.json()["error"]["code"], -32600);
    assert_eq!(upstream.effects(), 0);
}

#[test]
fn events_come_at_once_and_the_answer_after_them() {
    let (_home, upstream, served) = bank();
    let message = calling(7, "charge_streamed", json!({"amount": 1}));
    let mut asked = served.ask("POST", SESSION, &message.to_string());
    let head = asked.head().to_ascii_lowercase();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let mut heard = String::new();
    while !heard.contains("notifications/progress") {
        heard.push_str(&asked.chunk());
    }
    assert!(heard.contains(": warm\n") && heard.contains(r#""progressToken":"t""#), "{heard}");
    assert_eq!(upstream.effects(), 1);
    upstream.release();
    loop {
        let chunk = asked.chunk();
        if chunk.is_empty() {
            break;
        }
        heard.push_str(&chunk);
    }
    assert!(heard.contains(r#""id":7"#) && heard.contains("charged 1"), "{heard}");
}

/// As a document and as an event, each with its receipt.
#[test]
fn a_result_of_fifty_megabytes_is_held_once() {
    const LARGE: usize = 50 << 20;
    for tool in ["charge", "charge_streamed"] {
        let (_home, upstream, served) = bank();
        upstream.release();
        let before = served.memory_peak();
        let answer = served.call(tool, json!({"amount": 1, "bytes": LARGE}));
        assert!(answer.body.len() > LARGE && answer.body.contains("dev.semel/receipt"), "{}", answer.head);
        let grown = (served.memory_peak() - before) << 10;
        assert!(grown < LARGE as u64 * 3 / 2, "{tool}: {grown} bytes");
    }
}

#[test]
fn a_client_that_leaves_does_not_stop_what_was_sent_and_gets_it_when_it_comes_again() {
    let (home, upstream, served) = bank();
    let message = calling(1, "charge", json!({"amount": 1, "waits": true}));
    let asked = served.ask("POST", SESSION, &message.to_string());
    wait_until("it is with the server", || upstream.effects() == 1);
    drop(asked);
    upstream.release();
    wait_until("it is settled", || is_applied(&home));
    let again = served.call("charge", json!({"amount": 1, "waits": true}));
    assert_eq!((again.tool_outcome(), upstream.effects()), ("replayed".into(), 1));
}

/// The server ends its stream behind a priming event; semel takes it up again, and the client's own stays open.
#[test]
fn a_polled_call_is_one_stream_without_ids_to_its_client() {
    let (home, upstream, served) = bank();
    let asked = served.ask("POST", SESSION, &calling(1, "charge_polled", json!({"amount": 1})).to_string());
    home.wait_until("it is with the server", || upstream.effects() == 1);
    upstream.release();
    let answer = asked.answer();
    assert!(!answer.body.contains("id: call-") && !answer.body.contains("retry:"), "{answer:?}");
    assert!(answer.body.contains("charged 1") && answer.body.contains("dev.semel/receipt"), "{answer:?}");
    assert_eq!(upstream.effects(), 1);
}

#[test]
fn a_polled_call_whose_client_leaves_is_settled_all_the_same() {
    let (home, upstream, served) = bank();
    let asked = served.ask("POST", SESSION, &calling(1, "charge_polled", json!({"amount": 1})).to_string());
    home.wait_until("it is with the server", || upstream.effects() == 1);
    drop(asked);
    upstream.release();
    wait_until("it is settled", || is_applied(&home));
    let again = served.call("charge_polled", json!({"amount": 1}));
    assert_eq!((again.tool_outcome(), upstream.effects()), ("replayed".into(), 1));
}

#[test]
fn a_refusal_before_the_server_reaches_the_client_as_it_is() {
    let (home, upstream, served) = bank();
    let refused = served.call("charge_refused", json!({}));
    assert_eq!((refused.status, refused.body.as_str()), (401, "who are you?"));
    assert!(refused.head.contains("www-authenticate: Bearer resource_metadata="), "{refused:?}");
    assert_eq!(upstream.effects(), 0);
    let listed = home.json(["ledger", "list"]);
    assert_eq!(listed["items"][0]["state"], "not_applied", "{listed}");
}

/// Whoever stands before the server may answer in its stead, in its form and with the call's id.
#[test]
fn an_answer_with_a_status_that_leaves_it_open_is_in_doubt_whatever_it_says() {
    for (status, says) in [
        (404, json!("Session not found")),
        (408, json!("invalid")),
        (500, json!("not found")),
        // A result, as if all were well.
        (500, json!(null)),
        (502, json!("Invalid response")),
        (504, json!("upstream not found")),
    ] {
        for tool in ["charge", "tweak"] {
            let (_home, upstream, served) = bank();
            let arguments = json!({"fails": status, "says": says});
            let first = served.call(tool, arguments.clone());
            let code = |answer: &semel_testkit::http::Response| {
                answer.json()["result"]["_meta"]["dev.semel/receipt"]["code"].clone()
            };
            match status {
                // The client learns that it needs another session. Of what is not consequential only that is held for
                // it which can be known when it comes again: most sessions are lost before the call.
                404 => assert_eq!((first.status, first.body.as_str()), (404, ""), "{first:?}"),
                _ => assert_eq!(code(&first), "in_doubt", "{status}: {first:?}"),
            }
            if tool == "tweak" && status == 404 {
                continue;
            }
            assert_eq!(code(&served.call(tool, arguments)), "in_doubt", "{status}");
            assert_eq!(upstream.effects(), 1, "{status} {tool}");
        }
    }
}

/// Whoever loses its session opens another one and sends the call again, under the same id of the model's or key.
#[test]
fn what_can_be_known_again_is_not_sent_again_after_a_lost_session_whatever_its_class() {
    for known_by in [
        json!({"_meta": {"claudecode/toolUseId": "toolu_1"}}),
        json!({"_meta": {"callId": "call_1"}}),
        json!({"idempotencyKey": "k-1"}),
    ] {
        let (_home, upstream, served) = bank();
        let mut call = calling(1, "tweak", json!({"fails": 404, "says": "Session not found"}));
        for (name, value) in known_by.as_object().expect("an object") {
            call["params"][name] = value.clone();
        }
        let send = || served.ask("POST", SESSION, &call.to_string()).answer();
        assert_eq!(send().status, 404);
        let again = send();
        assert_eq!(again.json()["result"]["isError"], true, "{known_by}: {again:?}");
        assert_eq!(upstream.effects(), 1, "{known_by}");
    }
}

/// One token of semel's may come with the credentials of many.
#[test]
fn the_same_call_for_two_accounts_is_two_effects() {
    let (_home, upstream, served) = bank();
    let message = calling(1, "charge", json!({"amount": 1})).to_string();
    let call = |of: &str| {
        let headers = format!("{SESSION}Authorization: Bearer {of}\r\n");
        served.ask("POST", &headers, &message).answer().tool_outcome()
    };
    assert_eq!([call("ann"), call("bob"), call("ann"), call("bob")], ["ran", "ran", "replayed", "replayed"]);
    assert_eq!(upstream.effects(), 2);
}

#[test]
fn what_a_server_lists_to_one_takes_no_protection_from_another() {
    let (_home, upstream, served) = bank();
    let ask = |of: &str, message: &serde_json::Value| {
        let headers = format!("{SESSION}Authorization: Bearer {of}\r\n");
        served.ask("POST", &headers, &message.to_string()).answer()
    };
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let tweak = calling(1, "tweak", json!({}));
    ask("ada", &list);
    ask("xenia", &list);
    assert_eq!(ask("xenia", &tweak).tool_outcome(), serde_json::Value::Null, "to her it is a read");
    assert_eq!(ask("ada", &tweak).tool_outcome(), "ran", "to her it is not");
    assert_eq!(upstream.effects(), 2);
}

#[test]
fn a_server_that_is_told_to_stop_lets_calls_settle() {
    let (home, upstream, mut served) = bank();
    let message = calling(1, "charge", json!({"amount": 1, "waits": true}));
    let asked = served.ask("POST", SESSION, &message.to_string());
    wait_until("it is with the server", || upstream.effects() == 1);
    let releasing = upstream.clone();
    let release = std::thread::spawn(move || {
        std::thread::park_timeout(std::time::Duration::from_millis(200));
        releasing.release();
    });
    let status = served.stop();
    release.join().expect("it ran");
    assert!(status.success(), "{status:?}");
    assert!(asked.answer().body.contains("charged 1"), "the answer still goes out");
    let listed = home.json(["ledger", "list"]);
    assert_eq!(listed["items"][0]["state"], "applied", "{listed}");
}

#[test]
fn a_run_that_was_cancelled_starts_nothing() {
    let (home, upstream, served) = bank();
    home.json(["cancel", "nightly"]);
    let message = calling(1, "charge", json!({"amount": 1})).to_string();
    let answer = served.ask("POST", &format!("{SESSION}Semel-Run-Id: nightly\r\n"), &message).answer();
    assert_eq!(answer.json()["result"]["_meta"]["dev.semel/receipt"]["code"], "cancelled", "{answer:?}");
    assert_eq!(upstream.effects(), 0);
    assert!(upstream.requests().iter().all(|heard| heard.header("semel-run-id").is_none()));
}
