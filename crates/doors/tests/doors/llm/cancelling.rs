use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::FakeModelApi;
use serde_json::{Value, json};

const RUN: &str = "Semel-Run-Id: nightly\r\n";

fn of_run(stage: &Stage) -> Value {
    stage.house.effects("?run=nightly")[0].clone()
}

#[test]
fn a_cancelled_run_ends_its_generation_upstream_and_keeps_what_it_used() {
    for (api, used) in [
        (FakeModelApi::Chat, "tokens out; how many went in is not known"),
        (FakeModelApi::Responses, "tokens out; how many went in is not known"),
        (FakeModelApi::Messages, "after 9 tokens in"),
    ] {
        let stage = Stage::new();
        let mut asked = ask(&stage.house, api, RUN, &streamed("waits"));
        asked.head();
        asked.chunk();
        wait(|| stage.count("in_flight") == 1);
        stage.cancel("nightly");
        wait(|| of_run(&stage)["state"] == "not_applied");
        stage.model.release();
        wait(|| stage.model.abandoned() == 1);
        let why = of_run(&stage)["why"].to_string();
        assert!(why.contains("its run was cancelled") && why.contains(used), "{why}");
        let told = stage.house.run_in_words("nightly");
        assert!(told.contains(used) && told.contains(api.action()), "{told}");
        assert!(
            !told.contains("certainly did not happen") && told.contains("may have used tokens"),
            "{told}"
        );
        while let Some(chunk) = asked.chunk_if_any() {
            assert!(!chunk.is_empty(), "what was ended must not look whole");
        }
        let refused = stage.answer_with(api, RUN, &streamed("waits"));
        assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("cancelled")));
        assert_eq!(stage.model.asked(), 1);
        stage.house.rule("/runs/nightly/cancel", &json!({"lift": true}));
        assert_eq!(stage.answer_with(api, RUN, &streamed("waits")).status, 200);
    }
}

#[test]
fn whoever_waits_for_a_document_is_told_that_its_run_was_cancelled() {
    let stage = Stage::new();
    let asked = ask(&stage.house, FakeModelApi::Chat, RUN, &request("waits"));
    wait(|| stage.model.asked() == 1 && stage.count("in_flight") == 1);
    let (elsewhere, retry) = (stage.another(""), "x-stainless-retry-count: 1\r\n");
    let twins = [&stage.house, &elsewhere]
        .map(|house| ask(house, FakeModelApi::Chat, &[RUN, retry].concat(), &request("waits")));
    stage.cancel("nightly");
    let answer = asked.answer();
    assert!(answer.body.contains("It was stopped before its answer was complete"), "{answer:?}");
    for answer in std::iter::once(answer).chain(twins.map(|twin| twin.answer())) {
        let code = &answer.json()["error"]["code"];
        assert_eq!((answer.status, code), (403, &"cancelled".into()), "{answer:?}");
        assert!(answer.head.contains("x-should-retry: false"), "{answer:?}");
    }
    stage.model.release();
}

#[test]
fn another_runs_cancel_and_a_dropped_line_end_nothing() {
    let stage = Stage::new();
    let mut asked = ask(&stage.house, FakeModelApi::Chat, RUN, &streamed("waits"));
    asked.head();
    asked.chunk();
    drop(asked);
    stage.cancel("other");
    stage.model.release();
    wait(|| stage.count("applied") == 1);
    assert_eq!((stage.model.asked(), stage.model.abandoned()), (1, 0));
}

#[test]
fn an_agents_own_session_can_be_cancelled_too() {
    let stage = Stage::new();
    let headers = "x-claude-code-session-id: s-1\r\n";
    let first = ask(&stage.house, FakeModelApi::Messages, headers, &request("waits"));
    wait(|| stage.model.asked() == 1);
    stage.cancel("s-1");
    let ended = first.answer();
    assert_eq!(ended.status, 403, "{ended:?}");
    assert!(ended.json()["what_happened"].to_string().contains("the run s-1 was cancelled"), "{ended:?}");
    assert_eq!(stage.count("not_applied"), 1);
}
