//! Servers without manners: whatever they say, nothing is done twice and no answer is lost or mixed up.

use super::door::stage::greeted;
use super::line::Line;
use super::peers::Server;
use super::{Way, assert_in_doubt, receipt, text};
use crate::home::Home;
use serde_json::{Value, json};
use std::fs::File;

fn ada() -> Value {
    json!({"customer": "ada", "amount": 3})
}

/// Calls a tool of the rogue twice, each time from a semel of its own.
fn twice(home: &Home, tool: &str, arguments: &Value) -> [Value; 2] {
    [(); 2].map(|()| Line::open(home, Way::Guarded, Server::Rogue).call(tool, arguments.clone()))
}

/// Good news is passed on and kept, however it is wrapped.
fn charges_once(tool: &str, starts: &str) {
    let home = Home::new();
    let [first, again] = twice(&home, tool, &ada());
    assert!(text(&first).starts_with(starts), "{first}");
    super::assert_replayed(&again, &first);
    assert_eq!(home.effects(), 1);
}

/// No news, or news that nobody can read, is a doubt.
fn leaves_a_doubt(tool: &str, arguments: &Value) {
    let home = Home::new();
    for result in twice(&home, tool, arguments) {
        assert_in_doubt(&result);
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn lines_that_are_no_messages_reach_nobody() {
    charges_once("charge_among_stray_lines", "charged: ");
}

#[test]
fn a_second_answer_to_one_request_reaches_nobody() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let first = client.call("charge_answered_twice", ada());
    assert!(text(&first).starts_with("first: "), "{first}");
    // `call` would notice an answer under a wrong id here.
    let other = client.call("charge", json!({"customer": "bob", "amount": 4}));
    assert!(text(&other).starts_with("charged: "), "{other}");
    assert_eq!(home.effects(), 2);
    assert_eq!(client.close().code(), Some(0));
    let journal = home.semel(["ledger", "tail", "--no-follow", "-n", "50", "--json"]).stdout;
    assert_eq!(journal.matches("\"kind\":\"answered_twice\"").count(), 1, "{journal}");
}

#[test]
fn a_refusal_at_the_end_of_a_stream_is_one() {
    let home = Home::new();
    let served = home.http(Way::Direct, Server::Rogue);
    let log = home.work().join("stderr");
    let mut command = home.program(&home.stdio_before_http(served.url()));
    let mut client = greeted(Line::to(command.stderr(File::create(&log).expect("a log"))));
    let params = json!({"name": "charge_refused_then_answered", "arguments": {"alone": true}});
    for _ in 0..5 {
        let refused = client.request("tools/call", params.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(client.close().code(), Some(0));
    let said = std::fs::read_to_string(log).expect("the log");
    assert!(said.lines().count() == 1 && said.starts_with("semel: guarding"), "{said}");
}

#[test]
fn answers_under_ids_that_nobody_used_reach_nobody() {
    charges_once("charge_answered_under_wrong_ids_first", "charged: ");
}

#[test]
fn answers_under_ids_that_the_client_might_use_are_not_taken_for_its_answer() {
    charges_once("charge_answered_under_guessed_ids_first", "charged: ");
}

#[test]
fn half_an_answer_is_none() {
    leaves_a_doubt("charge_half_answered", &ada());
}

#[test]
fn a_server_that_ends_without_a_word_leaves_a_doubt() {
    leaves_a_doubt("charge_then_die", &ada());
}

#[test]
fn an_error_that_says_timeout_leaves_a_doubt() {
    leaves_a_doubt("charge_with_a_timeout_error", &ada());
}

#[test]
fn an_error_that_says_nothing_leaves_a_doubt_where_money_is_concerned() {
    leaves_a_doubt("charge_with_an_unclear_error", &ada());
}

/// "Unexpected" is not the "expected" of a validator, and "unknown error" knows nothing.
#[test]
fn an_error_that_is_unexpected_or_unknown_leaves_a_doubt_where_money_is_concerned() {
    leaves_a_doubt("charge_with_an_unexpected_error", &ada());
    leaves_a_doubt("charge_with_an_unknown_error", &ada());
}

#[test]
fn an_internal_error_of_the_protocol_leaves_a_doubt_where_money_is_concerned() {
    leaves_a_doubt("charge_with_a_protocol_error", &ada());
}

#[test]
fn words_of_refusal_let_the_next_call_run() {
    let home = Home::new();
    for result in twice(&home, "charge_with_words_of_refusal", &ada()) {
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains("invalid amount"), "{result}");
    }
    assert_eq!(home.effects(), 2, "it was refused, so it may be tried again");
}

#[test]
fn bytes_that_are_no_text_are_not_passed_off_as_an_answer_and_not_sent_again() {
    let home = Home::new();
    let [first, again] = twice(&home, "charge_in_invalid_utf8", &ada());
    assert!(text(&first).contains("charged: ch_") || first["isError"] == true, "{first}");
    assert_ne!(receipt(&again)["outcome"], "ran", "{again}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn numbers_escapes_and_unknown_members_come_through_as_they_were_sent() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    client.ask("tools/call", json!({"name": "charge_in_odd_bytes", "arguments": ada()}));
    let (_, bytes) = client.read_answer().expect("the call is answered");
    let line = String::from_utf8(bytes).expect("text");
    for kept in [
        "\"big\":123456789012345678901234567890",
        "\"exact\":1.10",
        "\"tiny\":1e-400",
        "caf\\u00e9 \\ud83d\\ude00",
        "\"novel\":{\"b\":1,\"a\":2}",
        "\"example.org/kept\":[1.0]",
    ] {
        assert!(line.contains(kept), "{kept} was lost in {line}");
    }
    let replayed = {
        client.ask("tools/call", json!({"name": "charge_in_odd_bytes", "arguments": ada()}));
        String::from_utf8(client.read_answer().expect("the repeat is answered").1).expect("text")
    };
    assert!(replayed.contains("\"big\":123456789012345678901234567890"), "{replayed}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_result_against_its_own_schema_comes_through_as_it_is() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let result = client.call("charge_against_its_schema", ada());
    assert_eq!(result["structuredContent"], json!({"total": "many"}), "{result}");
    assert_eq!(home.effects(), 1);
}

/// Annotations are hints of an untrusted party: they may add protection, and take none away by themselves.
#[test]
fn a_server_that_says_it_only_reads_is_not_believed_where_its_tool_is_named_after_money() {
    charges_once("charge_though_it_reads", "charged: ");
}

/// And the operator's rule stands above them.
#[test]
fn a_rule_stands_above_a_server_that_says_it_only_reads() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n[[rule]]\nmatch = \"mcp:billing/charge_though_it_reads\"\nclass = \"consequential\"\n",
    );
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    client.request("tools/list", json!({}));
    let first = client.call("charge_though_it_reads", ada());
    super::assert_replayed(&client.call("charge_though_it_reads", ada()), &first);
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_question_of_the_server_under_the_clients_own_id_is_answered_and_mixed_up_with_nothing() {
    charges_once("charge_after_a_question", "charged, and heard: ");
}

#[test]
fn an_answer_that_comes_late_is_the_answer_to_the_repeat() {
    let home = Home::new();
    let arguments = json!({"customer": "ada", "amount": 3, "until": home.work().join("until")});
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let first = client.ask("tools/call", json!({"name": "charge_answered_late", "arguments": arguments}));
    home.wait_until("the server has charged", || home.effects() == 1);
    // The client gives up waiting, as SDKs do after a minute; the effect is not undone by that.
    let gone = json!({"requestId": first, "reason": "Request timed out"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone}));
    let again = client.ask("tools/call", json!({"name": "charge_answered_late", "arguments": arguments}));
    home.file("until", "");
    let answer = loop {
        let (answer, _) = client.read_answer().expect("the repeat is answered");
        if answer["id"] == again {
            break answer;
        }
        assert_eq!(answer["id"], first, "nobody else was asked: {answer}");
    };
    assert!(text(&answer["result"]).contains("late: ch_"), "{answer}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_frame_of_many_megabytes_is_passed_on_or_told_as_too_large_and_never_sent_again() {
    let home = Home::new();
    let arguments = json!({"customer": "ada", "amount": 3, "megabytes": 40});
    let [first, again] = twice(&home, "charge_with_a_giant_frame", &arguments);
    let whole = text(&first).len() >= 40 << 20;
    assert!(whole || first["isError"] == true, "{}", receipt(&first));
    assert_ne!(receipt(&again)["outcome"], "ran");
    assert_eq!(home.effects(), 1);
}

/// The effect is in flight for as long as its task, and the client gets the handle at once.
#[test]
fn a_call_that_became_a_task_is_one_effect_however_often_it_is_sent() {
    let home = Home::new();
    let until = home.work().join("until");
    let arguments = json!({"customer": "ada", "amount": 3, "until": until});
    let params = json!({"name": "charge_as_a_task", "arguments": arguments, "task": {"ttl": 60000}});
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let first = client.request("tools/call", params.clone());
    let task = first["result"]["task"]["taskId"].as_str().expect("a handle").to_owned();
    let state = client.request("tasks/get", json!({"taskId": task}));
    assert_eq!(state["result"]["status"], "working", "{state}");
    let again = client.ask("tools/call", params);
    home.file("until", "");
    let (answer, _) = client.read_answer().expect("the repeat is answered");
    assert_eq!(answer["id"], again, "{answer}");
    assert_eq!(answer["result"]["task"]["taskId"].as_str(), Some(task.as_str()), "{answer}");
    let result = client.request("tasks/result", json!({"taskId": task}));
    assert!(text(&result["result"]).starts_with("charged as a task: "), "{result}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_frame_larger_than_any_message_may_be_leaves_a_doubt() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let arguments = json!({"customer": "ada", "amount": 3, "megabytes": 129});
    assert_in_doubt(&client.call("charge_with_a_giant_frame", arguments.clone()));
    assert_in_doubt(&client.call("charge_with_a_giant_frame", arguments));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_missing() {
    let home = Home::new();
    let ran = home.semel(["mcp", "--name", "billing", "--", "no-such-server"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("no-such-server"), "{ran:?}");
    assert!(ran.stdout.is_empty(), "nothing but messages goes to stdout: {ran:?}");
}
