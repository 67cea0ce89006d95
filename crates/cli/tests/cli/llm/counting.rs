//! What was asked, sent, used and saved.

use super::model::Api;
use super::stage::{Stage, ask, broken, read_to_end, request, streamed, wait};

#[test]
fn what_joining_and_replaying_saved_is_counted_in_calls_tokens_and_money() {
    let mut stage = Stage::with("[prices.m]\ninput = 1\noutput = 10\n");
    let step = "Semel-Step: one\r\n";
    for _ in 0..3 {
        stage.answer_with(Api::Messages, step, &request("m"));
    }
    let mut first = stage.ask(Api::Responses, &streamed("waits"));
    first.head();
    first.chunk();
    let mut retry = ask(&stage.served, Api::Responses, "x-stainless-retry-count: 1\r\n", &streamed("waits"));
    retry.head();
    stage.model.release();
    read_to_end(&mut first);
    read_to_end(&mut retry);
    wait(|| stage.count("in_flight") == 0);
    assert!(stage.served.stop().success());
    let stats = stage.home.json(["stats"]);
    let llm = &stats["doors"]["llm"];
    assert_eq!((&llm["asked"], &llm["sent"]), (&5.into(), &2.into()), "{stats}");
    assert_eq!((&llm["replayed"], &llm["joined"]), (&2.into(), &1.into()), "{stats}");
    assert_eq!(llm["repeated"]["sdk"], 1, "{stats}");
    // Two calls of 9 tokens in and 5 out each; three answers were not generated again.
    assert_eq!((&llm["tokens"]["input"], &llm["tokens"]["output"]), (&18.into(), &10.into()), "{stats}");
    assert_eq!((&llm["saved_tokens"]["input"], &llm["saved_tokens"]["output"]), (&27.into(), &15.into()));
    let close =
        |value: &serde_json::Value, to: f64| value.as_f64().is_some_and(|got| (got - to).abs() < 1e-9);
    assert!(close(&llm["cost"], 59e-6) && close(&llm["saved_cost"], 118e-6), "{stats}");
}

#[test]
fn what_a_stream_had_used_that_broke_off_is_counted() {
    let mut stage = Stage::new();
    broken(stage.ask(Api::Messages, &streamed("cut-once")));
    wait(|| stage.count("in_doubt") == 1);
    assert!(stage.served.stop().success());
    let stats = stage.home.json(["stats"]);
    let tokens = &stats["doors"]["llm"]["tokens"];
    assert_eq!(tokens["input"], 9, "{stats}");
    assert!(tokens["output"].as_u64().is_some_and(|output| (1..5).contains(&output)), "{stats}");
}
