//! An answer in the form that is asked for, whatever form it came in.

use super::stage::{Stage, request, streamed, wait};
use semel_testkit::http::FakeModelApi;
use serde_json::{Value, json};

/// Has an answer generated that reaches nobody.
fn lost(stage: &Stage, api: FakeModelApi, body: &Value) {
    let asked = stage.model.asked();
    let first = stage.ask(api, body);
    wait(|| stage.model.asked() == asked + 1);
    drop(first);
    stage.model.release();
    wait(|| stage.count("applied") == 1);
}

#[test]
fn a_stream_that_was_lost_is_given_as_a_document() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        lost(&stage, api, &streamed("waits"));
        let retry = stage.answer(api, &request("waits"));
        assert!(retry.head.contains("content-type: application/json"), "{retry:?}");
        let mut expected = api.document(1, "answer 1");
        if api == FakeModelApi::Chat {
            // Nobody asked the stream what it cost.
            expected.as_object_mut().expect("an object").remove("usage");
        }
        assert_eq!(retry.json(), expected);
        assert_eq!(stage.model.asked(), 1);
    }
}

#[test]
fn a_document_that_was_lost_is_given_as_a_stream() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        lost(&stage, api, &request("waits"));
        let retry = stage.answer(api, &streamed("waits"));
        assert!(retry.head.contains("content-type: text/event-stream"), "{retry:?}");
        let end = match api {
            FakeModelApi::Chat => "data: [DONE]\n\n",
            FakeModelApi::Responses => "event: response.completed\n",
            FakeModelApi::Messages => "event: message_stop\n",
        };
        assert!(retry.body.contains("answer 1") && retry.body.contains(end), "{retry:?}");
        assert_eq!(stage.model.asked(), 1);
    }
}

#[test]
fn a_stream_of_chat_says_what_it_cost_only_to_who_asks() {
    let stage = Stage::new();
    lost(&stage, FakeModelApi::Chat, &request("waits"));
    let mut wanting = streamed("waits");
    wanting["stream_options"] = json!({"include_usage": true});
    let step = "Semel-Step: kept\r\n";
    let retry = stage.answer(FakeModelApi::Chat, &wanting);
    assert!(retry.body.contains("\"completion_tokens\":5"), "{retry:?}");
    stage.answer_with(FakeModelApi::Chat, step, &request("m"));
    let silent = stage.answer_with(FakeModelApi::Chat, step, &streamed("m"));
    assert!(silent.body.contains("answer 2") && !silent.body.contains("usage"), "{silent:?}");
}

#[test]
fn a_stream_that_was_lost_says_what_it_cost_only_to_a_retry_that_asks() {
    for asks in [true, false] {
        let stage = Stage::new();
        let mut wanting = streamed("waits");
        wanting["stream_options"] = json!({"include_usage": true});
        lost(&stage, FakeModelApi::Chat, &wanting);
        let asked = if asks { wanting } else { streamed("waits") };
        let retry = stage.answer(FakeModelApi::Chat, &asked);
        assert!(retry.head.contains("semel-outcome: replayed"), "{retry:?}");
        assert!(retry.body.ends_with("data: [DONE]\n\n"), "{retry:?}");
        assert_eq!(retry.body.contains("prompt_tokens"), asks, "{retry:?}");
        assert_eq!(stage.model.asked(), 1);
    }
}
