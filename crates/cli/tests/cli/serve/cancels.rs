//! A cancel without a session: what is guarded is finished all the same, and what is not is let go of.

use super::stateless::{call, cancel, serving};
use crate::home::Home;

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
    assert_eq!(asked.answer().outcome(), "ran", "and whoever waits gets its answer");
    let heard = std::fs::read_to_string(heard).expect("it heard something");
    assert!(!heard.contains(CANCELLED), "{heard}");
}
