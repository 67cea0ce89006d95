//! The re-send that two agents were seen to make: the session is gone after the effect, so they open a new one and
//! send the call again, with the model's own call id and a new JSON-RPC id.

use super::peers::Server;
use super::post::Post;
use super::{Way, assert_in_doubt, assert_replayed, receipt, text};
use crate::home::Home;
use semel_testkit::http::Response;
use serde_json::{Value, json};

/// What each of the two sends with a tool call, as far as it names the call.
const CLAUDE_CODE: &str = "claudecode/toolUseId";
const CODEX: &str = "callId";

fn meta(agent: &str, call: &str) -> Value {
    // The progress token changes with each sending, so it must not make two of one.
    json!({agent: call, "progressToken": call.len()})
}

fn ada() -> Value {
    json!({"customer": "ada", "amount": 3})
}

/// Sends, opens a new session, and sends again under another JSON-RPC id.
fn send_twice(url: &str, tool: &str, agent: &str) -> [Response; 2] {
    let mut client = Post::opened(url);
    let first = client.call(2, tool, &ada(), &meta(agent, "toolu_1"));
    client.initialize();
    let again = client.call(1, tool, &ada(), &json!({agent: "toolu_1", "progressToken": 9}));
    [first, again]
}

#[test]
fn without_semel_a_session_lost_after_the_effect_charges_twice() {
    for agent in [CLAUDE_CODE, CODEX] {
        let home = Home::new();
        let served = home.http(Way::Direct, Server::Rogue);
        let [first, again] = send_twice(served.url(), "charge_then_404", agent);
        assert_eq!((first.status, again.status), (404, 200));
        assert!(text(&again.tool_result()).starts_with("charged: "), "{again:?}");
        assert_eq!(home.effects(), 2);
    }
}

#[test]
fn a_session_lost_after_the_effect_charges_once() {
    for agent in [CLAUDE_CODE, CODEX] {
        let home = Home::new();
        let served = home.http(Way::Guarded, Server::Rogue);
        let [_, again] = send_twice(served.url(), "charge_then_404", agent);
        assert_in_doubt(&again.tool_result());
        assert_eq!(home.effects(), 1);
    }
}

#[test]
fn whatever_breaks_after_the_effect_it_is_done_once_and_told_as_a_doubt() {
    for tool in ["charge_then_reset", "charge_then_502", "charge_then_503", "charge_then_cut_stream"] {
        let home = Home::new();
        let direct = home.http(Way::Direct, Server::Rogue);
        send_twice(direct.url(), tool, CODEX);
        assert_eq!(home.effects(), 2, "{tool} without semel");

        let home = Home::new();
        let guarded = home.http(Way::Guarded, Server::Rogue);
        let [first, again] = send_twice(guarded.url(), tool, CODEX);
        assert_in_doubt(&first.tool_result());
        assert_in_doubt(&again.tool_result());
        assert_eq!(home.effects(), 1, "{tool}");
    }
}

/// The second sending finds the first one at work, and shares its answer.
#[test]
fn a_client_that_hangs_up_and_sends_again_gets_the_answer_of_the_first_sending() {
    for (way, effects) in [(Way::Direct, 2), (Way::Guarded, 1)] {
        let home = Home::new();
        let served = home.http(way, Server::Rogue);
        let client = Post::opened(served.url());
        let until = home.work().join("until");
        let arguments = json!({"customer": "ada", "amount": 3, "until": until});
        let call = |id| Post::calling(id, "charge_answered_late", &arguments, &meta(CLAUDE_CODE, "toolu_1"));
        drop({
            let connection = client.post(&call(1));
            home.wait_until("the first sending has its effect", || home.effects() == 1);
            connection
        });
        let again = client.post(&call(2));
        home.file("until", "");
        let result = again.answer_so_far().tool_result();
        assert!(text(&result).contains("charged: ch_"), "{result}");
        assert_eq!(home.effects(), effects, "{way:?}");
    }
}

/// Appending a note is no matter of consequence: the model may do it twice, and a transport may not.
#[test]
fn one_call_of_the_model_is_one_effect_and_two_calls_are_two() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Python);
    let note = json!({"note": "called back"});
    let send = |id: u64, call: &str| {
        let client = Post::opened(served.url());
        client.call(id, "append_note", &note, &meta(CLAUDE_CODE, call)).tool_result()
    };
    let first = send(1, "toolu_1");
    assert_replayed(&send(2, "toolu_1"), &first);
    assert_eq!(home.effects(), 1);
    let second = send(3, "toolu_2");
    assert_eq!(receipt(&second)["outcome"], "ran", "{second}");
    assert_eq!(home.effects(), 2);
    assert_replayed(&send(4, "toolu_1"), &first);
    assert_replayed(&send(5, "toolu_2"), &second);
    assert_eq!(home.effects(), 2);
}

/// Money is: a new call of the model with the same arguments is still answered from the record.
#[test]
fn a_new_call_id_does_not_make_a_charge_another_intent() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Python);
    let client = Post::opened(served.url());
    let first = client.call(1, "charge", &ada(), &meta(CODEX, "call_1")).tool_result();
    assert_replayed(&client.call(2, "charge", &ada(), &meta(CODEX, "call_2")).tool_result(), &first);
    assert_eq!(home.effects(), 1);
    let said_why = json!({"customer": "ada", "amount": 3, "semel_again": "the second month"});
    let repeat = client.call(3, "charge", &said_why, &meta(CODEX, "call_3")).tool_result();
    assert_eq!(receipt(&repeat)["outcome"], "ran", "{repeat}");
    assert_eq!(home.effects(), 2);
}
