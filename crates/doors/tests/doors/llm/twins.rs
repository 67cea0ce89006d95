//! Two processes on one ledger.

use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::FakeModelApi;

#[test]
fn a_twin_in_another_process_gets_the_finished_answer_in_its_own_form() {
    for api in FakeModelApi::ALL {
        let stage = Stage::new();
        let another = stage.another("");
        // The step lets a twin that comes late get the same answer all the same.
        let step = "Semel-Step: one\r\n";
        let mut first = ask(&stage.house, api, step, &streamed("waits"));
        first.head();
        first.chunk();
        let (stream, document) =
            (ask(&another, api, step, &streamed("waits")), ask(&another, api, step, &request("waits")));
        stage.model.release();
        first.chunks();
        let (stream, document) = (stream.answer(), document.answer());
        assert_eq!(stream.body, api.events(1, "answer 1").concat());
        assert!(document.json().to_string().contains("answer 1"), "{document:?}");
        assert_eq!(stage.model.asked(), 1);
    }
}

#[test]
fn an_answer_that_one_process_lost_is_handed_over_by_another() {
    let mut stage = Stage::new();
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunk();
    drop(first);
    stage.model.release();
    wait(|| stage.count("applied") == 1);
    stage.house.stop();
    let another = stage.another("");
    let retry = ask(&another, FakeModelApi::Chat, "", &streamed("waits")).answer();
    assert_eq!(retry.body, FakeModelApi::Chat.events(1, "answer 1").concat());
    assert_eq!(stage.model.asked(), 1);
}

#[test]
fn whoever_waits_for_longer_than_the_rule_allows_is_told_to_come_back() {
    let policy = "[[rule]]\nmatch = \"llm:**\"\nwait = \"50ms\"\n";
    let stage = Stage::with(policy);
    let another = stage.another(policy);
    let mut first = stage.ask(FakeModelApi::Chat, &streamed("waits"));
    first.head();
    first.chunk();
    let busy = ask(&another, FakeModelApi::Chat, "", &request("waits")).answer();
    assert_eq!((busy.status, busy.json()["code"].as_str()), (409, Some("in_flight")));
    assert!(busy.head.contains("retry-after-ms: ") && !busy.head.contains("x-should-retry"), "{busy:?}");
    stage.model.release();
}

#[test]
fn two_runs_may_ask_the_same_thing_at_once() {
    let stage = Stage::new();
    let asked: Vec<_> = ["a", "b"]
        .map(|run| {
            ask(&stage.house, FakeModelApi::Chat, &format!("Semel-Run-Id: {run}\r\n"), &streamed("waits"))
        })
        .into();
    wait(|| stage.model.asked() == 2);
    stage.model.release();
    for mut asked in asked {
        assert!(asked.head().to_ascii_lowercase().contains("semel-outcome: ran"));
        asked.chunks();
    }
}
