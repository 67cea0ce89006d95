//! A client that drops a stream at its half: the generation goes on, and whoever asks again gets all of it.

use super::models::{is_whole, prompt};
use super::sdk::{ANTHROPIC_NODE, ANTHROPIC_PYTHON, OPENAI_NODE, OPENAI_PYTHON, Sdk, with_each};
use super::stage::{Stage, token};
use serde_json::{Value, json};

/// The client leaves after so many events.
const HALF: usize = 4;

fn stream(sdk: Sdk, case: &str) -> Value {
    let mut step = prompt(sdk, case);
    (step["stream"], step["outer"]) = (true.into(), 1.into());
    step
}

fn abandoned(sdk: Sdk, case: &str) -> Value {
    let mut step = stream(sdk, case);
    step["abandon_after"] = HALF.into();
    step
}

fn dropped_at_half(sdk: Sdk) {
    let stage = Stage::patient();
    let base = sdk.api.guarded(&stage.semel.address);
    let cases = ["joined", "joined as JSON", "with fewer tokens"];
    for case in cases {
        stage.world.fail(case, json!({"stream": {"pause_ms": 100}}));
    }
    let mut as_json = prompt(sdk, cases[1]);
    as_json["outer"] = 1.into();
    let mut fewer = stream(sdk, cases[2]);
    let limit = if fewer["do"] == "responses" { "max_output_tokens" } else { "max_tokens" };
    fewer["args"][limit] = 50.into();
    let seconds = [stream(sdk, cases[0]), as_json, fewer];
    let turns: Vec<Vec<Value>> =
        cases.iter().zip(seconds).map(|(case, second)| vec![abandoned(sdk, case), second]).collect();
    for (case, turn) in cases.iter().zip(sdk.cases(&stage.home, &base, &turns, &token())) {
        assert_eq!(turn[0].value()["abandoned"], true, "{sdk}, {case}: {}", turn[0]);
        assert!(is_whole(&turn[1]), "{sdk}, {case}: {}", turn[1]);
        let happened = stage.world.of(case);
        assert_eq!(
            (happened.requests, happened.effects, happened.gone),
            (1, 1, 0),
            "{sdk}, {case}: {}",
            turn[1]
        );
    }
    // Read to its end though nobody asks again, and kept for whoever does later.
    let turn = [abandoned(sdk, "later")];
    stage.world.fail("later", json!({"hold": "rest", "stream": {"hold_after": HALF + 1}}));
    sdk.together(&stage.home, &base, &turn, &token());
    stage.world.release("rest");
    stage.home.wait_until("the generation is over", || {
        let request = stage.world.received("later")[0]["request"].clone();
        stage.world.log().iter().any(|line| line["at"] == "answered" && line["request"] == request)
    });
    let later = sdk.together(&stage.home, &base, &[stream(sdk, "later")], &token()).remove(0);
    assert!(is_whole(&later), "{}", later);
    let happened = stage.world.of("later");
    assert_eq!((happened.requests, happened.effects, happened.gone), (1, 1, 0), "{sdk}: {}", later);
}

#[test]
fn a_stream_dropped_at_half_is_served_whole_to_the_retry_behind_the_openai_sdks() {
    with_each([OPENAI_PYTHON, OPENAI_NODE], dropped_at_half);
}

#[test]
fn a_stream_dropped_at_half_is_served_whole_to_the_retry_behind_the_anthropic_sdks() {
    with_each([ANTHROPIC_PYTHON, ANTHROPIC_NODE], dropped_at_half);
}
