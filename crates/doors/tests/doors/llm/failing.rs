//! Answers that are none.

use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::{FakeModelApi, RawClient};
use serde_json::Value;

/// The newest effect, with all that the ledger shows of it.
fn only_effect(stage: &Stage) -> Value {
    let listed = stage.house.effects("");
    stage.house.effect(listed[0]["effect_id"].as_str().expect("an id"))
}

/// Reads an answer that ends in the middle.
fn broken(mut client: RawClient) -> String {
    client.head();
    client.broken_chunks()
}

#[test]
fn a_stream_without_its_end_is_no_answer_and_its_retry_generates() {
    for api in FakeModelApi::ALL {
        for how in ["cut-once", "short-once"] {
            let stage = Stage::new();
            let heard = broken(stage.ask(api, &streamed(how)));
            assert!(heard.len() < api.events(1, "answer 1").concat().len());
            assert!(api.events(1, "answer 1").concat().starts_with(&heard), "{heard}");
            wait(|| stage.count("in_doubt") == 1);
            let retry = stage.answer(api, &streamed(how));
            assert_eq!(retry.body, api.events(2, "answer 2").concat(), "{how}");
            assert_eq!((stage.model.asked(), stage.count("applied")), (2, 1));
        }
    }
}

#[test]
fn a_document_that_broke_off_is_no_answer() {
    for how in ["cut-once", "cut-unframed-once"] {
        let stage = Stage::new();
        let lost = stage.answer(FakeModelApi::Chat, &request(how));
        assert_eq!(lost.status, 502, "{how}: {lost:?}");
        assert_eq!(lost.json()["is_it_safe_to_retry"], "yes");
        assert!(!lost.head.contains("x-should-retry"), "{how}: {lost:?}");
        let retry = stage.answer(FakeModelApi::Chat, &request(how));
        assert_eq!((retry.status, stage.model.asked()), (200, 2), "{how}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_passes_and_is_no_answer() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let first = stage.answer(api, &streamed("error-once"));
        assert!(first.body.contains("overloaded"), "{first:?}");
        // As agents do: not as a stream this time, and less of it.
        let mut fallback = request("error-once");
        fallback["max_tokens"] = serde_json::json!(50);
        let retry = stage.answer(api, &fallback);
        assert_eq!(retry.body, api.document(2, "answer 2").to_string());
        assert_eq!(stage.model.asked(), 2);
    }
}

#[test]
fn a_stream_that_stays_open_behind_an_error_breaks_off_with_it() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let heard = broken(stage.ask(api, &streamed("open-error-once")));
        assert!(heard.contains("overloaded"), "{heard}");
        wait(|| stage.count("in_doubt") == 1);
        assert_eq!(
            stage.answer(api, &request("open-error-once")).body,
            api.document(2, "answer 2").to_string()
        );
    }
}

/// SDKs would take a piece of a stream for the whole document.
#[test]
fn whoever_asked_for_a_document_is_not_given_a_stream_that_failed() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let mut first = stage.ask(api, &streamed("waits-error"));
        first.head();
        first.chunk();
        let twin = stage.ask(api, &request("waits-error"));
        wait(|| stage.count("in_flight") == 1);
        let twin = std::thread::spawn(move || twin.answer());
        stage.model.release();
        let twin = twin.join().expect("it is answered");
        assert!(first.chunks().contains("overloaded"));
        // It may have come too late to join, and then it is answered with what it asked for itself.
        match twin.status {
            200 => assert_eq!((twin.json()["id"].is_string(), stage.model.asked()), (true, 2), "{twin:?}"),
            status => {
                assert_eq!((status, &twin.json()["error"]["code"]), (502, &"in_doubt".into()), "{twin:?}")
            }
        }
    }
}

#[test]
fn a_refusal_passes_as_it_is_and_is_not_remembered() {
    let stage = Stage::new();
    for status in [400, 401, 429] {
        let model = format!("{status}-once");
        let before = stage.model.asked();
        let body = if before == 0 { request(&model) } else { request(&status.to_string()) };
        let refused = stage.answer(FakeModelApi::Chat, &body);
        assert_eq!(refused.status, status);
        assert_eq!(refused.json()["error"]["message"], format!("no, {}", before + 1));
        assert!(refused.head.contains("retry-after-ms: 5"), "{refused:?}");
        let retry = stage.answer(FakeModelApi::Chat, &body);
        assert_eq!(stage.model.asked(), before + 2, "{retry:?}");
    }
    assert_eq!(stage.count("in_doubt"), 0);
}

#[test]
fn a_failing_upstream_is_seen_as_it_is_and_the_retry_goes_through() {
    for status in [500, 503, 529] {
        let stage = Stage::new();
        let model = format!("{status}-once");
        let failed = stage.answer(FakeModelApi::Messages, &streamed(&model));
        assert_eq!((failed.status, failed.json()["error"]["message"].as_str()), (status, Some("no, 1")));
        let retry = stage.answer(FakeModelApi::Messages, &streamed(&model));
        assert_eq!(retry.body, FakeModelApi::Messages.events(2, "answer 2").concat());
        assert_eq!(stage.model.asked(), 2);
    }
}

#[test]
fn a_connection_that_is_lost_before_an_answer_began_can_be_tried_again() {
    let stage = Stage::new();
    let lost = stage.answer(FakeModelApi::Responses, &request("silent-once"));
    assert_eq!((lost.status, lost.json()["code"].as_str()), (502, Some("in_doubt")));
    assert!(stage.answer(FakeModelApi::Responses, &request("silent-once")).body.contains("answer 2"));
}

#[test]
fn a_storm_of_retries_is_capped() {
    let stage = Stage::new();
    for n in 1..=3 {
        let failed = stage.answer(FakeModelApi::Chat, &request("503")).json();
        assert_eq!(failed["error"]["message"], format!("no, {n}"), "the API's own");
    }
    for _ in 0..7 {
        let capped = stage.answer(FakeModelApi::Chat, &request("503"));
        assert_eq!((capped.status, capped.json()["code"].as_str()), (503, Some("budget_spent")));
        let head = &capped.head;
        assert!(head.contains("x-should-retry: false") && head.contains("retry-after: 60"), "{head}");
    }
    assert_eq!(stage.model.asked(), 3);
}

#[test]
fn whoever_joined_gets_the_error_of_the_one_that_was_sent() {
    let stage = Stage::new();
    let attempts: Vec<_> = (0..5).map(|_| stage.ask(FakeModelApi::Chat, &request("waits-400"))).collect();
    for attempt in attempts {
        let answer = attempt.answer();
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits-cut"));
    first.head();
    first.chunk();
    let mut twins: Vec<_> =
        (0..3).map(|_| ask(&stage.house, FakeModelApi::Chat, "", &streamed("waits-cut"))).collect();
    // Whoever has a head has joined.
    twins.iter_mut().for_each(|twin| drop(twin.head()));
    let before = stage.model.asked();
    let reading: Vec<_> =
        twins.into_iter().map(|mut twin| std::thread::spawn(move || twin.broken_chunks())).collect();
    wait(|| stage.count("in_flight") == 1);
    stage.model.release();
    for twin in reading {
        twin.join().expect("cut, like the first");
    }
    assert_eq!(stage.model.asked(), before, "a failure before all eyes is not sent again by itself");
}

#[test]
fn a_model_that_cannot_be_reached_leaves_nothing_behind() {
    let stage = Stage::with("[upstream.nowhere]\nurl = \"http://127.0.0.1:9\"\nspeaks = \"openai\"\n");
    let answer =
        stage.house.ask("POST /p/nowhere/v1/responses HTTP/1.1", "", &request("m").to_string()).answer();
    assert_eq!((answer.status, answer.json()["code"].as_str()), (502, Some("not_started")));
    assert!(stage.house.effects("").is_empty());
}

#[test]
fn of_two_answers_the_first_whole_one_is_the_answer_and_the_other_is_evidence() {
    let stage = Stage::with("[[rule]]\nmatch = \"llm:**\"\ntimeout = \"2s\"\n");
    let step = "Semel-Step: one\r\n";
    let mut slow = ask(&stage.house, FakeModelApi::Messages, step, &streamed("drips"));
    slow.head();
    slow.chunk();
    wait(|| stage.count("in_doubt") == 1);
    let retry = ask(&stage.house, FakeModelApi::Messages, step, &request("drips"));
    wait(|| stage.model.asked() == 2);
    stage.model.release_first(1);
    assert!(slow.chunks().contains("message_stop"), "the late answer is the first whole one");
    wait(|| stage.count("applied") == 1);
    stage.model.release();
    let retry = retry.answer();
    assert_eq!(retry.json(), FakeModelApi::Messages.document(1, "answer 1"), "and so it is everybody's");
    let again = stage.answer_with(FakeModelApi::Messages, step, &streamed("drips"));
    let without_comments = again.body.replace(": still here\n\n", "");
    assert_eq!(without_comments, FakeModelApi::Messages.events(1, "answer 1").concat());
    let shown = only_effect(&stage);
    let journal = stage.house.journal();
    let count = |of: &str| journal.iter().filter(|(kind, _)| kind == of).count();
    assert_eq!((count("settled_applied"), count("duplicate_detected")), (2, 0), "{journal:?}");
    assert_eq!(stage.model.asked(), 2);
    assert!(!shown["reply_summary"].to_string().contains("answer 2"), "it is nobody's answer");
    let (_, second) = journal.iter().find(|(kind, _)| kind == "second_answer").expect("a line about it");
    assert_eq!(
        (second["attempt"].as_u64(), second["about"]["status"].as_u64()),
        (Some(2), Some(200)),
        "{second}"
    );
    assert_eq!((&second["about"]["model"], &second["about"]["output_tokens"]), (&"drips".into(), &5.into()));
    assert!(second["bytes"].is_u64() && second["sha256"].is_string(), "{second}");
}

#[test]
fn a_credential_that_an_api_repeats_is_not_written_down() {
    for (how, status) in [("echo-401", 401), ("echo-500", 500)] {
        let stage = Stage::new();
        let mut asked = request(how);
        asked["mcp_servers"] = serde_json::json!([{"authorization_token": "sk-tested"}]);
        let failed = stage.answer(FakeModelApi::Chat, &asked);
        assert!(failed.body.contains("Bearer sk-test") || status == 500, "{failed:?}");
        let shown = only_effect(&stage).to_string();
        assert!(shown.contains(&format!("HTTP {status}")) && !shown.contains("sk-test"), "{shown}");
        assert!(!stage.home.holds("sk-test"));
    }
}

#[test]
fn what_a_rule_calls_secret_of_an_answer_is_neither_kept_nor_told() {
    let rule = "[[rule]]\nmatch = \"llm:openai/*\"\nsecret = [\"reply.error.message\", \"reply.choices\"]\n";
    for how in ["400", "500", "fine"] {
        for stream in [false, true] {
            let stage = Stage::with(rule);
            let mut asked = request(how);
            asked["stream"] = stream.into();
            let mut answer = stage.ask(FakeModelApi::Chat, &asked);
            answer.head();
            let body = answer.chunks();
            let secret = if how == "fine" { "assistant" } else { "no, 1" };
            assert!(body.contains(secret), "{how}: who asked is given it: {body}");
            let shown = only_effect(&stage).to_string();
            assert!(!shown.contains(secret), "{how}: {shown}");
            assert!(!stage.home.holds(secret), "{how}, streamed {stream}");
            assert_eq!(stage.model.asked(), 1);
        }
    }
}
