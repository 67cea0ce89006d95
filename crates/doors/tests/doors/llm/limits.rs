use super::stage::{Stage, request, streamed, wait};
use crate::house::House;
use semel_testkit::http::FakeModelApi;
use serde_json::json;

fn post(house: &House, path: &str, headers: &str, body: &str) -> u16 {
    house.ask(&format!("POST {path} HTTP/1.1"), headers, body).answer().status
}

#[test]
fn what_cannot_be_understood_is_refused_before_anything_is_sent() {
    let stage = Stage::new();
    let path = FakeModelApi::Chat.path();
    for body in ["", "not json", "[]", "{\"a\":1,\"a\":2}"] {
        assert_eq!(post(&stage.house, path, "Content-Length: 0\r\n", "").min(400), 400, "{body}");
        assert_eq!(
            stage.house.ask(&format!("POST {path} HTTP/1.1"), "", body).answer().status,
            400,
            "{body}"
        );
    }
    let body = request("m").to_string();
    for headers in ["Semel-Again: \r\n", "Semel-Step: \r\n", "Content-Encoding: gzip\r\n"] {
        assert_eq!(post(&stage.house, path, headers, &body), 400, "{headers}");
    }
    let large = "Content-Length: 40000000\r\n";
    assert_eq!(post(&stage.house, path, large, "{"), 413);
    assert_eq!(stage.model.asked(), 0);
}

#[test]
fn a_large_answer_is_kept_and_given_to_the_byte() {
    let stage = Stage::new();
    let step = "Semel-Step: large\r\n";
    let first = stage.answer_with(FakeModelApi::Chat, step, &streamed("long-6000000"));
    let again = stage.answer_with(FakeModelApi::Chat, step, &streamed("long-6000000"));
    assert!(first.body.len() > 6_000_000, "{} {}", first.status, &first.body[..first.body.len().min(300)]);
    assert!(
        first.body == again.body,
        "{} {} {} {}",
        first.body.len(),
        again.body.len(),
        again.status,
        &again.head
    );
    let whole = stage.answer_with(FakeModelApi::Chat, step, &request("long-6000000"));
    assert_eq!(whole.json()["choices"][0]["message"]["content"].as_str().map(str::len), Some(6_000_000));
    assert_eq!(stage.model.asked(), 1);
}

#[test]
fn an_answer_that_is_too_large_to_keep_is_given_and_not_kept() {
    let stage = Stage::new();
    let step = "Semel-Step: too large\r\n";
    for (step, body) in [(step, streamed("long-70000000")), ("Semel-Step: doc\r\n", request("long-70000000"))]
    {
        let first = stage.answer_with(FakeModelApi::Chat, step, &body);
        assert_eq!(first.status, 200);
        assert!(first.body.len() > 70_000_000, "{}", first.body.len());
        wait(|| stage.count("in_flight") == 0);
        let again = stage.answer_with(FakeModelApi::Chat, step, &body);
        assert_eq!((again.status, again.json()["error"]["code"].as_str()), (410, Some("answer_not_kept")));
    }
    assert_eq!(stage.model.asked(), 2);
}

/// There is nothing to hand over, so it is generated for whoever asks again.
#[test]
fn an_answer_that_reached_nobody_and_is_too_large_to_keep_is_generated_anew() {
    let stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("long-70000000"));
    first.head();
    drop(first);
    wait(|| stage.model.asked() == 1 && stage.count("applied") == 1);
    let again = stage.answer(FakeModelApi::Chat, &streamed("long-70000000"));
    assert_eq!((again.status, stage.model.asked()), (200, 2));
    assert!(again.body.len() > 70_000_000, "{}", again.body.len());
}

#[test]
fn a_request_with_a_large_image_passes() {
    let stage = Stage::new();
    let mut body = request("m");
    body["messages"][0]["content"] =
        json!([{"type": "image_url", "image_url": {"url": "A".repeat(20_000_000)}}]);
    let answer = stage.answer(FakeModelApi::Chat, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(stage.model.requests()[0].json(), body);
}
