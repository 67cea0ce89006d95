use super::model::Api;
use super::stage::{Stage, read_to_end, read_until, request, streamed, wait};

#[test]
fn an_answer_passes_as_it_came() {
    let stage = Stage::new();
    let document = stage.answer(Api::Chat, &request("m"));
    assert_eq!(document.status, 200, "{document:?}");
    assert_eq!(document.body, Api::Chat.document(1, "answer 1").to_string());
    assert!(document.head.contains("semel-outcome: ran") && document.head.contains("x-request-id: req_1"));
    let stream = stage.answer(Api::Chat, &streamed("m2"));
    assert_eq!(stream.body, Api::Chat.events(2, "answer 2").concat());
    assert!(stream.head.contains("content-type: text/event-stream"), "{stream:?}");
    let heard = &stage.model.heard()[0];
    assert_eq!(
        (heard.path(), heard.header("authorization")),
        ("/v1/chat/completions", Some("Bearer sk-test"))
    );
}

#[test]
fn a_twin_joins_the_stream_from_its_first_byte_while_it_comes() {
    let stage = Stage::new();
    let mut first = stage.ask(Api::Chat, &streamed("waits"));
    first.head();
    let begun = read_until(&mut first, "answ");
    let mut twin = stage.ask(Api::Chat, &streamed("waits"));
    let head = twin.head().to_ascii_lowercase();
    assert!(head.contains("semel-outcome: joined"), "{head}");
    assert_eq!(read_until(&mut twin, "answ"), begun);
    stage.model.release();
    let whole = Api::Chat.events(1, "answer 1").concat();
    assert_eq!(begun.clone() + &read_to_end(&mut first), whole);
    assert_eq!(begun + &read_to_end(&mut twin), whole);
    assert_eq!(stage.model.asked(), 1);
}

#[test]
fn a_delivered_answer_is_not_reused() {
    let stage = Stage::new();
    let answers: Vec<String> = (0..3).map(|_| stage.answer(Api::Chat, &streamed("m")).body).collect();
    assert_eq!(stage.model.asked(), 3);
    assert!(answers[2].contains("chatcmpl-3"), "{answers:?}");
}

#[test]
fn an_answer_that_reached_nobody_is_handed_over_to_the_retry_whole() {
    let stage = Stage::new();
    let mut first = stage.ask(Api::Chat, &streamed("waits"));
    first.head();
    read_until(&mut first, "answ");
    drop(first);
    stage.model.release();
    wait(|| stage.count("applied") == 1);
    let retry = stage.answer(Api::Chat, &streamed("waits"));
    assert_eq!(retry.body, Api::Chat.events(1, "answer 1").concat());
    assert!(retry.head.contains("semel-outcome: replayed"), "{retry:?}");
    assert!(
        retry.head.contains("idempotent-replayed: true") && !retry.head.contains("set-cookie"),
        "{retry:?}"
    );
    assert_eq!(stage.model.asked(), 1);
    // Now it has been delivered.
    stage.answer(Api::Chat, &streamed("waits"));
    assert_eq!(stage.model.asked(), 2);
}
