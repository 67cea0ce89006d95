//! Steps that their caller names: one answer for ever.

use super::stage::{Stage, request, streamed};
use semel_testkit::http::FakeModelApi;

#[test]
fn a_named_step_has_one_answer_for_ever_and_over_restarts() {
    for name in ["Semel-Step: plan-3\r\n", "Idempotency-Key: \"k-1\"\r\n", "Idempotency-Key: k-1\r\n"] {
        let mut stage = Stage::new();
        let first = stage.answer_with(FakeModelApi::Chat, name, &request("m"));
        for _ in 0..3 {
            let again = stage.answer_with(FakeModelApi::Chat, name, &request("m"));
            assert_eq!(again.body, first.body);
            assert!(again.head.contains("idempotent-replayed: true"), "{again:?}");
        }
        stage.house.stop();
        let house = stage.another("");
        stage.house = house;
        let later = stage.answer_with(FakeModelApi::Chat, name, &streamed("m"));
        assert!(later.body.contains("answer 1") && later.body.ends_with("data: [DONE]\n\n"), "{later:?}");
        assert_eq!(stage.model.asked(), 1);
        assert!(stage.model.requests()[0].header("semel-step").is_none());
    }
}

#[test]
fn a_step_that_asks_for_something_else_is_drift() {
    let stage = Stage::new();
    let step = "Semel-Step: one\r\n";
    stage.answer_with(FakeModelApi::Chat, step, &request("m"));
    let mut other = request("m");
    other["messages"][0]["content"] = serde_json::json!("good bye");
    let drift = stage.answer_with(FakeModelApi::Chat, step, &other);
    assert_eq!((drift.status, drift.json()["code"].as_str()), (422, Some("drift")));
    let told = drift.json();
    assert!(told["differing"].to_string().contains("messages[0].content"), "{drift:?}");
    assert_eq!((&told["title"], &told["error"]["code"]), (&told["code"], &told["code"]));
    // Whoever names a step knows of no key.
    let what = told["what_happened"].as_str().unwrap();
    assert!(what.starts_with("Not run: the same step was used for"), "{what}");
    assert!(told["next_step"].as_str().unwrap().ends_with("Do not make up another step."), "{told}");
    assert!(!told.to_string().contains(" key"), "{told}");
    let key = "Idempotency-Key: one\r\n";
    stage.answer_with(FakeModelApi::Chat, key, &request("m"));
    let told = stage.answer_with(FakeModelApi::Chat, key, &other).json();
    assert!(told["what_happened"].as_str().unwrap().contains("the same key was used for"), "{told}");
    // Fewer tokens are no other request.
    let mut fewer = request("m");
    fewer["max_tokens"] = serde_json::json!(5);
    assert_eq!(stage.answer_with(FakeModelApi::Chat, step, &fewer).status, 200);
    assert_eq!(stage.model.asked(), 2, "the step's, and the key's");
}

#[test]
fn a_step_belongs_to_its_run_and_a_key_to_its_caller() {
    let stage = Stage::new();
    let step = |run: &str| format!("Semel-Step: 1\r\nSemel-Run-Id: {run}\r\n");
    for run in ["a", "b", "a", "b"] {
        stage.answer_with(FakeModelApi::Chat, &step(run), &request("m"));
    }
    assert_eq!(stage.model.asked(), 2);
    let key = |run: &str| format!("Idempotency-Key: 1\r\nSemel-Run-Id: {run}\r\n");
    for run in ["a", "b"] {
        stage.answer_with(FakeModelApi::Chat, &key(run), &request("m"));
    }
    assert_eq!(stage.model.asked(), 3);
}

#[test]
fn a_reason_generates_another_and_the_same_reason_does_not() {
    let stage = Stage::new();
    let step = "Semel-Step: one\r\n";
    let again = "Semel-Step: one\r\nSemel-Again: the first was too long\r\n";
    assert!(stage.answer_with(FakeModelApi::Chat, step, &request("m")).body.contains("answer 1"));
    for _ in 0..2 {
        assert!(stage.answer_with(FakeModelApi::Chat, again, &request("m")).body.contains("answer 2"));
    }
    assert_eq!(stage.model.asked(), 2);
    assert!(
        stage.answer_with(FakeModelApi::Chat, step, &request("m")).body.contains("answer 2"),
        "the newest"
    );
    let third = "Semel-Step: one\r\nSemel-Again: the second was too short\r\n";
    assert!(stage.answer_with(FakeModelApi::Chat, third, &request("m")).body.contains("answer 3"));
    for (headers, answer) in [(step, "answer 3"), (again, "answer 2"), (third, "answer 3")] {
        let given = stage.answer_with(FakeModelApi::Chat, headers, &request("m"));
        assert!(given.body.contains(answer), "{headers}: {given:?}");
    }
    assert_eq!(stage.model.asked(), 3);
}

#[test]
fn a_wish_that_nobody_knows_asks_no_model() {
    let stage = Stage::new();
    let refused = stage.answer_with(FakeModelApi::Chat, "Semel-Dryrun: 1\r\n", &request("m"));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("Semel-Dry-Run"), "{refused:?}");
    assert_eq!(stage.model.asked(), 0);
}

#[test]
fn a_dry_run_asks_no_model() {
    let stage = Stage::new();
    let would = stage.answer_with(FakeModelApi::Chat, "Semel-Dry-Run: 1\r\n", &request("m"));
    assert_eq!((would.status, would.json()["would"].as_str()), (200, Some("run")), "{would:?}");
    assert_eq!(stage.model.asked(), 0);
}
