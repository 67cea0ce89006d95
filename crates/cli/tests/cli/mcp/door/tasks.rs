//! Results that are not final: tasks of both eras, and questions that come first.

use super::stage::{Stage, listing, stateless};
use crate::mcp::line::Line;
use crate::mcp::{assert_in_doubt, assert_replayed, receipt, text};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
enum Era {
    Of2025,
    Of2026,
}

const ERAS: [Era; 2] = [Era::Of2025, Era::Of2026];

impl Era {
    fn stage(self, does: Value) -> Stage {
        self.stage_of("consequential", does)
    }

    fn stage_of(self, class: &str, mut does: Value) -> Stage {
        let (era, task) = match self {
            Era::Of2025 => ("session", "2025"),
            Era::Of2026 => ("stateless", "2026"),
        };
        does["task"] = task.into();
        does["until"] = "until".into();
        let stage = Stage::telling(
            json!({"era": era, "pages": [listing(&["create_order"])], "calls": {"create_order": does}}),
        );
        stage.rule("create_order", &format!("class = \"{class}\"\nwait = \"30ms\""))
    }

    fn open(self, stage: &Stage) -> Line {
        match self {
            Era::Of2025 => stage.open(),
            Era::Of2026 => stage.open_stateless(),
        }
    }

    fn params(self) -> Value {
        match self {
            Era::Of2025 => json!({"name": "create_order", "arguments": {}, "task": {"ttl": 60000}}),
            Era::Of2026 => json!({"name": "create_order", "arguments": {}, "_meta": stateless()}),
        }
    }

    /// Asks the server for the task; `true`: until it has told the end.
    fn ask(self, line: &mut Line, handle: &Value, to_the_end: bool) -> Value {
        let mut question = json!({"taskId": self.id(handle)});
        if matches!(self, Era::Of2026) {
            question["_meta"] = stateless();
        }
        let state = line.request("tasks/get", question.clone());
        match self {
            Era::Of2025 if to_the_end => line.request("tasks/result", question),
            _ => state,
        }
    }

    fn id(self, result: &Value) -> Value {
        match self {
            Era::Of2025 => result["task"]["taskId"].clone(),
            Era::Of2026 => result["taskId"].clone(),
        }
    }
}

fn state(stage: &Stage) -> Value {
    stage.recorded()[0]["state"].clone()
}

#[test]
fn the_handle_comes_at_once_and_the_effect_settles_when_the_task_has_ended() {
    for era in ERAS {
        let stage = era.stage(json!({}));
        let mut line = era.open(&stage);
        let handle = line.call_with(era.params());
        assert_eq!(era.id(&handle), stage.world()[0]["id"], "{handle}");
        assert_eq!(state(&stage), "in_flight", "{era:?}");
        // A repeat while it runs does not run: it is the same task.
        let repeat = line.call_with(era.params());
        assert_eq!(era.id(&repeat), era.id(&handle), "{repeat}");
        assert_ne!(repeat["isError"], true, "{repeat}");
        // The client's own questions pass.
        let asked = era.ask(&mut line, &handle, false);
        assert_eq!(asked["result"]["status"], "working", "{asked}");
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
        let again = line.call_with(era.params());
        assert_eq!(
            (&receipt(&again)["outcome"], era.id(&again)),
            (&"replayed".into(), era.id(&handle)),
            "{again}"
        );
        assert_eq!(stage.world().len(), 1);
    }
}

/// A handle is for whoever can ask with it.
#[test]
fn a_repeat_that_cannot_use_the_handle_is_told_that_the_task_still_runs() {
    for era in ERAS {
        let stage = era.stage(json!({}));
        let mut line = era.open(&stage);
        line.call_with(era.params());
        if matches!(era, Era::Of2025) {
            let plain = line.call_with(json!({"name": "create_order", "arguments": {}}));
            assert_eq!(receipt(&plain)["code"], "in_flight", "it wants no task: {plain}");
        }
        // The server of another process knows nothing of it.
        let elsewhere = era.open(&stage).call_with(era.params());
        assert_eq!(receipt(&elsewhere)["code"], "in_flight", "{elsewhere}");
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
        assert_eq!(stage.world().len(), 1);
    }
}

/// The one that waited has its answer, and does not begin again by itself.
#[test]
fn a_repeat_that_got_the_handle_of_a_task_sends_nothing_when_that_has_failed() {
    for era in ERAS {
        let stage =
            era.stage(json!({"ends": "failed", "error": {"code": -32602, "message": "invalid order"}}));
        let mut line = era.open(&stage);
        let handle = line.call_with(era.params());
        assert_eq!(era.id(&line.call_with(era.params())), era.id(&handle));
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "not_applied");
        assert!(line.close().success());
        assert_eq!(stage.world().len(), 1, "{era:?}");
    }
}

/// An act that was delivered may happen again. A handle is not its answer yet.
#[test]
fn a_task_is_delivered_once_its_client_has_learnt_its_end() {
    for era in ERAS {
        for learns in [false, true] {
            let stage = era.stage_of("act", json!({}));
            let mut line = era.open(&stage);
            let handle = line.call_with(era.params());
            era.ask(&mut line, &handle, false);
            stage.file("until", "");
            stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
            if learns {
                era.ask(&mut line, &handle, true);
            }
            // However often it is given, a handle is not the answer.
            for _ in 0..if learns { 1 } else { 3 } {
                let next = line.call_with(era.params());
                assert_eq!(era.id(&next) != era.id(&handle), learns, "{era:?} {next}");
                assert_eq!(stage.world().len(), if learns { 2 } else { 1 }, "{era:?}");
            }
            if !learns {
                era.ask(&mut line, &handle, true);
                line.call_with(era.params());
                assert_eq!(stage.world().len(), 2, "{era:?}");
            }
        }
    }
}

/// Who wants no task gets what the task came to, from whichever process, and has its answer with that.
#[test]
fn a_repeat_that_wants_no_task_gets_the_end_of_one_that_has_ended() {
    for class in ["consequential", "act"] {
        let stage = Era::Of2025.stage_of(class, json!({}));
        let mut line = Era::Of2025.open(&stage);
        line.call_with(Era::Of2025.params());
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
        line.close();
        let mut line = Era::Of2025.open(&stage);
        let plain = json!({"name": "create_order", "arguments": {}});
        let made = stage.world()[0]["id"].as_str().expect("an id").to_owned();
        let repeat = line.call_with(plain.clone());
        assert_eq!(receipt(&repeat)["outcome"], "replayed", "{repeat}");
        assert!(text(&repeat).contains(&format!("done: {made}")) && repeat.get("task").is_none(), "{repeat}");
        assert_eq!(stage.world().len(), 1);
        // An act that was delivered may happen again.
        stage.tell(json!({"pages": [listing(&["create_order"])]}));
        let next = line.call_with(plain);
        let ran = class == "act";
        assert_eq!(receipt(&next)["outcome"], if ran { "ran" } else { "replayed" }, "{next}");
        assert_eq!(stage.world().len(), if ran { 2 } else { 1 });
    }
}

/// A handle is of no use to a client that has not said that it takes tasks.
#[test]
fn of_the_stateless_era_a_client_that_takes_no_tasks_gets_the_end() {
    let stage = Era::Of2026.stage_of("consequential", json!({}));
    let mut line = Era::Of2026.open(&stage);
    line.call_with(Era::Of2026.params());
    stage.file("until", "");
    stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
    let mut takes_none = Era::Of2026.params();
    takes_none["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let repeat = line.call_with(takes_none);
    assert_eq!(receipt(&repeat)["outcome"], "replayed", "{repeat}");
    assert!(text(&repeat).contains("done: ") && repeat["resultType"] != "task", "{repeat}");
    assert_eq!(stage.world().len(), 1);
}

/// Nobody can learn more of a task than its server knows.
#[test]
fn a_task_that_its_server_has_forgotten_does_not_stand_in_the_way_for_ever() {
    for era in ERAS {
        let stage = era.stage_of("act", json!({}));
        let mut line = era.open(&stage);
        let handle = line.call_with(era.params());
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
        assert!(line.close().success());
        let mut line = era.open(&stage);
        assert_eq!(era.id(&line.call_with(era.params())), era.id(&handle), "{era:?}");
        let forgotten = era.ask(&mut line, &handle, false);
        assert_eq!(forgotten["error"]["code"], -32602, "{forgotten}");
        line.call_with(era.params());
        assert_eq!(stage.world().len(), 2, "{era:?}");
    }
}

/// Its interval is for who knows nothing.
#[test]
fn semel_asks_at_once_when_a_client_has_learnt_the_end_of_a_task() {
    for era in ERAS {
        let stage = era.stage_of("act", json!({"poll": 60000}));
        let mut line = era.open(&stage);
        let handle = line.call_with(era.params());
        stage.file("until", "");
        assert_eq!(state(&stage), "in_flight", "{era:?}");
        era.ask(&mut line, &handle, true);
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
        let next = line.call_with(era.params());
        assert_eq!(stage.world().len(), 2, "{era:?} {next}");
    }
}

/// A server may know a task for longer than it has promised, and what is at work is not over.
#[test]
fn a_task_is_followed_as_long_as_its_server_says_that_it_works() {
    for era in ERAS {
        let stage = era.stage(json!({"ttl": 1}));
        let mut line = era.open(&stage);
        line.call_with(era.params());
        stage.wait_until("it was asked after its time", || stage.heard_requests("tasks/get").len() > 3);
        assert_eq!(state(&stage), "in_flight", "{era:?}");
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "applied");
    }
}

#[test]
fn a_task_that_failed_in_words_of_refusal_may_be_tried_again() {
    for era in ERAS {
        let stage =
            era.stage(json!({"ends": "failed", "error": {"code": -32602, "message": "invalid order"}}));
        let mut line = era.open(&stage);
        line.call_with(era.params());
        stage.file("until", "");
        stage.wait_until("the task's end is recorded", || state(&stage) == "not_applied");
        line.call_with(era.params());
        assert_eq!(stage.world().len(), 2, "{era:?}");
    }
}

/// Whoever stops half-way may have done half.
#[test]
fn a_task_that_was_cancelled_or_failed_without_a_reason_is_in_doubt() {
    for era in ERAS {
        for does in [
            json!({"ends": "cancelled"}),
            json!({"ends": "failed", "error": {"code": -1, "message": "oops"}}),
        ] {
            let stage = era.stage(does);
            let mut line = era.open(&stage);
            line.call_with(era.params());
            stage.file("until", "");
            stage.wait_until("the task's end is recorded", || state(&stage) == "in_doubt");
            assert_in_doubt(&line.call_with(era.params()));
            assert_eq!(stage.world().len(), 1, "{era:?}");
        }
    }
}

#[test]
fn a_clients_cancel_of_its_task_reaches_the_server() {
    for era in ERAS {
        let stage = era.stage(json!({}));
        let mut line = era.open(&stage);
        let handle = line.call_with(era.params());
        let mut cancel = json!({"taskId": era.id(&handle)});
        if matches!(era, Era::Of2026) {
            cancel["_meta"] = stateless();
        }
        let said = line.request("tasks/cancel", cancel.clone());
        assert_eq!(said["result"]["status"], "cancelled", "{said}");
        let heard = stage.heard_requests("tasks/cancel");
        assert!(heard.len() == 1 && heard[0]["params"] == cancel, "{heard:?}");
        // Whoever stops half-way may have done half.
        stage.wait_until("the task's end is recorded", || state(&stage) == "in_doubt");
        assert_eq!(stage.world().len(), 1, "{era:?}");
    }
}

#[test]
fn a_question_that_comes_first_settles_nothing_and_the_continuation_is_the_one_effect() {
    let input = json!({"inputRequests": {"sure": {"method": "elicitation/create", "params": {}}}, "requestState": "s-1"});
    let told = json!({"era": "stateless", "pages": [listing(&["create_order"])], "calls": {"create_order": {"input": input}}});
    let stage = Stage::telling(told);
    let mut line = stage.open_stateless();
    let first = json!({"name": "create_order", "arguments": {"order": "1"}, "_meta": stateless()});
    let asked = line.call_with(first.clone());
    assert_eq!(
        (&asked["resultType"], &asked["requestState"]),
        (&"input_required".into(), &"s-1".into()),
        "{asked}"
    );
    let said = receipt(&asked)["what_happened"].to_string();
    assert!(said.contains("not happened yet") && said.contains("waits for input"), "{asked}");
    assert!(!receipt(&asked)["next_step"].to_string().contains("error"), "{asked}");
    assert_eq!(state(&stage), "not_applied");
    // Asked once more, it asks once more.
    assert_eq!(line.call_with(first.clone())["resultType"], "input_required");
    let mut next = first.clone();
    next["inputResponses"] = json!({"sure": {"action": "accept"}});
    next["requestState"] = "s-1".into();
    let done = line.call_with(next.clone());
    assert_eq!(receipt(&done)["outcome"], "ran", "{done}");
    assert!(text(&done).starts_with("done: "), "{done}");
    let heard = stage.heard_calls().pop().expect("it was called");
    assert_eq!((&heard["requestState"], &heard["inputResponses"]), (&"s-1".into(), &next["inputResponses"]));
    for repeat in [next, first] {
        assert_replayed(&line.call_with(repeat), &done);
    }
    assert_eq!(stage.world().len(), 1);
}

/// SEP-3182 keeps continuations out of a key's replay.
#[test]
fn a_question_under_a_key_is_not_replayed_as_its_answer() {
    let input = json!({"inputRequests": {}, "requestState": "s-1"});
    let told = json!({"era": "stateless", "pages": [listing(&["create_order"])], "calls": {"create_order": {"input": input}}});
    let stage = Stage::telling(told);
    let mut line = stage.open_stateless();
    let mut call =
        json!({"name": "create_order", "arguments": {}, "_meta": stateless(), "idempotencyKey": "k-1"});
    assert_eq!(line.call_with(call.clone())["resultType"], "input_required");
    call["inputResponses"] = json!({});
    assert_eq!(receipt(&line.call_with(call.clone()))["outcome"], "ran");
    assert_eq!(receipt(&line.call_with(call))["outcome"], "replayed");
    assert_eq!(stage.world().len(), 1);
}
