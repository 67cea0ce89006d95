//! A cancel without a session: what is guarded is finished all the same, and what is not is let go of.

use super::stateless::{call, call_in_run, cancel, serving};
use crate::home::Home;
use serde_json::json;

const CANCELLED: &str = "notifications/cancelled";

/// Its server says nothing more to it, and neither client nor semel would ever let go of the stream.
#[test]
fn a_read_that_was_cancelled_has_no_stream_any_more() {
    let home = Home::new();
    let (served, heard) = serving(&home, "get_order", "");
    let asked = call(&served, "get_order");
    home.wait_until("its stream is open", || asked.is_answered());
    assert_eq!(cancel(&served).status, 202);
    let ended = asked.answer();
    assert!(ended.head.contains("text/event-stream") && !ended.body.contains("data:"), "{ended:?}");
    home.wait_until("the server was told", || {
        std::fs::read_to_string(&heard).is_ok_and(|heard| heard.contains(CANCELLED))
    });
}

#[test]
fn a_cancel_of_a_guarded_call_reaches_no_server_in_the_stateless_era() {
    let home = Home::new();
    let (served, heard) = serving(&home, "create_order", "");
    let asked = call(&served, "create_order");
    home.wait_until("it is with the server", || home.work().join("world").exists());
    home.wait_until("its client is told that it goes on", || asked.is_answered());
    assert_eq!(cancel(&served).status, 202);
    home.file("until", "");
    assert_eq!(asked.answer().tool_outcome(), "ran", "and whoever waits gets its answer");
    let heard = std::fs::read_to_string(heard).expect("it heard something");
    assert!(!heard.contains(CANCELLED), "{heard}");
}

/// Rule 12, for a server on pipes that many clients share.
#[test]
fn a_client_that_leaves_in_the_middle_of_a_call_gets_its_answer_when_it_comes_again() {
    let home = Home::new();
    let (served, _) = serving(&home, "create_order", "");
    let order = || call_in_run(&served, "create_order", json!({"order": 1}), "nightly");
    let asked = order();
    home.wait_until("it is with the server", || home.work().join("world").exists());
    home.wait_until("its stream is open", || asked.is_answered());
    drop(asked);
    home.file("until", "");
    home.wait_until("it is settled", || {
        home.json(["ledger", "list"])["items"][0]["state"].as_str() == Some("applied")
    });
    assert_eq!(order().answer().tool_outcome(), "replayed");
    let world = std::fs::read_to_string(home.work().join("world")).expect("the world");
    assert_eq!(world.lines().count(), 1, "{world}");
}
