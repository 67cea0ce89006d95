//! Clients that go away in the middle, and come back.

use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::FakeModelApi;

#[test]
fn an_answer_that_reached_nobody_is_handed_over_to_the_retry_whole() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let mut first = stage.ask(api, &streamed("waits"));
        first.head();
        first.chunk();
        drop(first);
        stage.model.release();
        wait(|| stage.count("applied") == 1);
        let retry = stage.answer(api, &streamed("waits"));
        assert_eq!(retry.body, api.events(1, "answer 1").concat(), "to the byte");
        let head = &retry.head;
        assert!(
            head.contains("semel-outcome: replayed") && head.contains("idempotent-replayed: true"),
            "{head}"
        );
        assert!(head.contains("x-request-id: req_1") && !head.contains("set-cookie"), "{head}");
        assert_eq!(stage.model.asked(), 1);
        // Now it has been delivered.
        stage.answer(api, &streamed("waits"));
        assert_eq!(stage.model.asked(), 2);
    }
}

/// Official clients hang up there, without waiting for the end of the body.
#[test]
fn a_client_that_closes_at_the_terminal_event_has_its_answer_and_the_next_is_a_fresh_one() {
    const ROUNDS: usize = 20;
    let stage = Stage::new();
    for (api, terminal) in [
        (FakeModelApi::Chat, "[DONE]"),
        (FakeModelApi::Responses, "response.completed"),
        (FakeModelApi::Messages, "message_stop"),
    ] {
        let before = stage.model.asked();
        for round in 1..=ROUNDS {
            let mut asked = stage.ask(api, &streamed("m"));
            let head = asked.head().to_ascii_lowercase();
            assert!(head.contains("semel-outcome: ran"), "{api:?} {round}: {head}");
            asked.chunks_until(terminal);
            drop(asked);
        }
        assert_eq!(stage.model.asked() - before, ROUNDS, "{api:?}");
    }
}

#[test]
fn a_client_that_gave_up_on_a_document_gets_it_when_it_asks_again() {
    let stage = Stage::new();
    let first = stage.ask(FakeModelApi::Chat, &request("waits"));
    wait(|| stage.model.asked() == 1);
    drop(first);
    stage.model.release();
    wait(|| stage.count("applied") == 1);
    let retry = stage.answer(FakeModelApi::Chat, &request("waits"));
    assert_eq!(retry.body, FakeModelApi::Chat.document(1, "answer 1").to_string());
    assert_eq!((stage.model.asked(), stage.model.abandoned()), (1, 0));
}

#[test]
fn a_retry_after_half_a_stream_joins_what_still_comes() {
    let stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunks_until("answ");
    drop(first);
    let mut retry = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    assert!(retry.head().to_ascii_lowercase().contains("semel-outcome: joined"));
    retry.chunks_until("answ");
    stage.model.release();
    retry.chunks_until("[DONE]");
    assert_eq!(stage.model.asked(), 1);
}

#[test]
fn a_stream_breaks_off_with_its_token_and_the_generation_does_not() {
    let stage = Stage::new();
    let made = stage.house.rule("/tokens", &serde_json::json!({"scope": "agent"})).json();
    let (token, id) = (made["token"].as_str().expect("a token"), made["id"].as_str().expect("an id"));
    let header = format!("Semel-Token: {token}\r\n");
    let mut first = ask(&stage.house, FakeModelApi::Chat, &header, &streamed("waits"));
    wait(|| stage.model.asked() == 1);
    stage.house.operate("DELETE", &format!("/tokens/{id}"), None);
    first.head();
    let heard = first.broken_chunks();
    assert!(!heard.contains("[DONE]"), "{heard}");
    stage.model.release();
    wait(|| stage.count("applied") == 1);
    assert_eq!((stage.model.asked(), stage.model.abandoned()), (1, 0));
}

/// By then its SDK has given up, and asks again.
#[test]
fn a_document_that_comes_too_late_is_handed_over_to_the_retry() {
    let stage = Stage::with("[[rule]]\nmatch = \"llm:openai/*\"\nlate_after = \"1ms\"\n");
    let late = stage.ask(FakeModelApi::Chat, &request("waits"));
    wait(|| stage.model.asked() == 1 && stage.count("in_flight") == 1);
    stage.model.release();
    assert_eq!(late.answer().status, 200);
    let retry = stage.answer(FakeModelApi::Chat, &request("waits"));
    assert_eq!(
        (retry.body, stage.model.asked()),
        (FakeModelApi::Chat.document(1, "answer 1").to_string(), 1)
    );
}

#[test]
fn a_rule_can_end_what_nobody_reads() {
    let stage = Stage::with("[[rule]]\nmatch = \"llm:openai/*\"\non_disconnect = \"stop\"\n");
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunk();
    let mut twin = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    twin.head();
    twin.chunk();
    drop(first);
    // Somebody still reads it.
    assert_eq!(stage.count("in_flight"), 1);
    drop(twin);
    wait(|| stage.count("not_applied") == 1);
    stage.model.release();
    wait(|| stage.model.abandoned() == 1);
    let again = stage.answer(FakeModelApi::Chat, &streamed("waits"));
    assert_eq!((again.body, stage.model.asked()), (FakeModelApi::Chat.events(2, "answer 2").concat(), 2));
}

#[test]
fn a_server_that_is_told_to_stop_lets_a_generation_end() {
    let mut stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunk();
    let releasing = stage.model.clone();
    let release = std::thread::spawn(move || {
        std::thread::park_timeout(std::time::Duration::from_millis(200));
        releasing.release();
    });
    stage.house.stop();
    release.join().expect("it ran");
    assert!(first.chunks_until("[DONE]").contains("er 1"));
    stage.house = stage.another("");
    assert_eq!(stage.count("applied"), 1);
}
