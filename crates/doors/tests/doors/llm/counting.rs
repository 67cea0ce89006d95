//! What was asked, sent, used and saved.

use super::stage::{Stage, ask, request, streamed, wait};
use semel_testkit::http::FakeModelApi;
use semel_testkit::http::fake_model::generate_two_of_five;

#[test]
fn what_joining_and_replaying_saved_is_counted_in_calls_tokens_and_money() {
    let mut stage = Stage::with("[prices.m]\ninput = 1\noutput = 10\n");
    generate_two_of_five(&stage.model, |api, headers, body| ask(&stage.house, api, headers, body));
    wait(|| stage.count("in_flight") == 0);
    let stats = stage.stats();
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
    {
        let mut cut = stage.ask(FakeModelApi::Messages, &streamed("cut-once"));
        cut.head();
        cut.broken_chunks()
    };
    wait(|| stage.count("in_doubt") == 1);
    let stats = stage.stats();
    let tokens = &stats["doors"]["llm"]["tokens"];
    assert_eq!(tokens["input"], 9, "{stats}");
    assert!(tokens["output"].as_u64().is_some_and(|output| (1..5).contains(&output)), "{stats}");
}

#[test]
fn what_a_cache_took_part_in_is_input_at_a_price_of_its_own() {
    let prices = "input = 10\noutput = 100\n";
    let apart = format!("[prices.cached]\n{prices}cache_read = 1\ncache_write = 20\n");
    // For all three APIs: ten at 10, a thousand at 1, a hundred at 20, five at 100; or all that was sent at 10.
    for (table, micros) in [(apart, 3 * 3_600), (format!("[prices.cached]\n{prices}"), 3 * 11_600)] {
        let mut stage = Stage::with(&table);
        for api in FakeModelApi::ALL {
            assert_eq!(stage.answer(api, &request("cached")).status, 200);
        }
        let stats = stage.stats();
        let llm = &stats["doors"]["llm"];
        assert_eq!((&llm["sent"], stage.model.asked()), (&3.into(), 3), "{stats}");
        assert_eq!(llm["tokens"]["input"], 3 * 1_110, "{stats}");
        let cost = llm["cost"].as_f64().map(|cost| (cost * 1e6).round());
        assert_eq!(cost, Some(f64::from(micros)), "{stats}");
    }
}

#[test]
fn repeats_that_the_budget_refuses_are_counted_as_repeats() {
    let mut stage = Stage::new();
    let statuses: Vec<u16> =
        (0..9).map(|_| stage.answer(FakeModelApi::Chat, &request("status-500")).status).collect();
    assert_eq!(statuses, [500, 500, 500, 503, 503, 503, 503, 503, 503]);
    for _ in 0..2 {
        stage.answer(FakeModelApi::Chat, &request("delivered, and wanted anew"));
    }
    let stats = stage.stats();
    let llm = &stats["doors"]["llm"];
    assert_eq!((llm["asked"].as_u64(), llm["sent"].as_u64()), (Some(11), Some(5)), "{stats}");
    assert_eq!((stage.model.asked(), llm["refused"].as_u64()), (5, Some(6)), "{stats}");
    let by_layer = serde_json::json!({"transport": 0, "sdk": 0, "agent": 6, "process": 0});
    assert_eq!(llm["repeated"], by_layer, "{stats}");
}
