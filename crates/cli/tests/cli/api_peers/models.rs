//! Every fault between the SDKs of two model APIs and the models: one answer for each request, and no more runs of the
//! model than answers were lost.

use super::faults::{self, Fault, Leaves};
use super::findings::Findings;
use super::sdk::{ANTHROPIC_NODE, ANTHROPIC_PYTHON, Api, Brought, OPENAI_NODE, OPENAI_PYTHON, Sdk};
use super::stage::{CASE, Stage, token};
use super::world::World;
use serde_json::{Value, json};

/// A request whose words are the case, so that no two cases are one.
pub fn prompt(sdk: Sdk, case: &str) -> Value {
    let messages = json!([{"role": "user", "content": case}]);
    let (what, args) = match sdk.api {
        Api::Anthropic => ("messages", json!({"messages": messages})),
        // Both of its forms, in turns.
        _ if case.len() % 2 == 0 => ("responses", json!({"input": case})),
        _ => ("chat", json!({"messages": messages})),
    };
    json!({"do": what, "args": args, "headers": {CASE: case}, "outer": 3})
}

/// A prompt whose answer is the canonical one of its step.
fn named(sdk: Sdk, case: &str) -> Value {
    let mut step = prompt(sdk, case);
    step["key"] = case.replace(' ', "-").into();
    step
}

fn streamed(mut step: Value) -> Value {
    step["stream"] = true.into();
    step
}

/// All of an answer, and nothing of another's.
pub fn is_whole(brought: &Brought) -> bool {
    let (id, value) = (brought.id().unwrap_or_default(), brought.value());
    let number = id.rsplit(['-', '_']).next().unwrap_or_default();
    let ended = ["stop", "completed", "end_turn"].iter().any(|end| value["finish"] == *end);
    brought.ok() && ended && value["text"] == format!("once and only once: answer {number}")
}

/// How often a model must have run: once more for each answer that was lost.
fn runs(fault: &Fault) -> usize {
    match fault.leaves {
        Leaves::Answer | Leaves::Lie => fault.effects,
        Leaves::Refusal | Leaves::Doubt => fault.effects + 1,
    }
}

fn no_more_than_needed(fault: &Fault, brought: &Brought, world: &World, findings: &mut Findings) {
    let (happened, case, said) = (world.of(fault.name), fault.name, brought);
    findings.same(happened.elsewhere, 0, case, "a redirect was followed");
    let answered = matches!(fault.leaves, Leaves::Answer | Leaves::Lie);
    let needed = happened.requests <= 2 - usize::from(answered) && happened.effects <= runs(fault);
    findings.expect(needed, case, format_args!("{happened:?} {said}"));
    if fault.leaves != Leaves::Lie {
        findings.expect(world.made(case, brought.id()), case, format_args!("nobody said that: {said}"));
    }
}

fn one_answer_whatever_goes_wrong(sdk: Sdk, faults: &[Fault], form: fn(Value) -> Value) {
    let stage = Stage::new();
    stage.world.tell(&faults::plan(faults));
    let steps: Vec<Value> = faults.iter().map(|fault| form(named(sdk, fault.name))).collect();
    let base = sdk.api.guarded(&stage.semel.address);
    let mut findings = Findings::default();
    let first = sdk.together(&stage.home, &base, &steps, &token());
    for (fault, brought) in faults.iter().zip(&first) {
        findings.expect(is_whole(brought), fault.name, brought);
        no_more_than_needed(fault, brought, &stage.world, &mut findings);
    }
    // The step has its answer now, in either form.
    let before = stage.world.happened();
    let again = sdk.together(&stage.home, &base, &steps, &token());
    let other: Vec<Value> = steps.iter().map(other_form).collect();
    let other = sdk.together(&stage.home, &base, &other, &token());
    for (at, fault) in faults.iter().enumerate().filter(|(at, _)| first[*at].ok()) {
        let (case, first, again, other) = (fault.name, &first[at], &again[at], &other[at]);
        findings.same((again.id(), again.body()), (first.id(), first.body()), case, again);
        findings.same(again.header("idempotent-replayed"), Some("true"), case, again);
        findings.expect(
            is_whole(other) && other.id() == first.id(),
            case,
            format_args!("{} {}", first, other),
        );
        findings.same(stage.world.of(case), before[case].clone(), case, "a canonical answer needs no model");
    }
    findings.assert_none();
}

/// Streamed instead of whole, and the other way round.
fn other_form(step: &Value) -> Value {
    let mut other = step.clone();
    other["stream"] = (step["stream"] != true).into();
    other
}

fn whole(step: Value) -> Value {
    step
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_openai_sdk_for_python() {
    one_answer_whatever_goes_wrong(OPENAI_PYTHON, &faults::all(), whole);
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_openai_sdk_for_node() {
    one_answer_whatever_goes_wrong(OPENAI_NODE, &faults::all(), whole);
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_anthropic_sdk_for_python() {
    one_answer_whatever_goes_wrong(ANTHROPIC_PYTHON, &faults::all(), whole);
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_anthropic_sdk_for_node() {
    one_answer_whatever_goes_wrong(ANTHROPIC_NODE, &faults::all(), whole);
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_openai_sdk_for_python() {
    one_answer_whatever_goes_wrong(OPENAI_PYTHON, &faults::of_streams(), streamed);
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_openai_sdk_for_node() {
    one_answer_whatever_goes_wrong(OPENAI_NODE, &faults::of_streams(), streamed);
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_anthropic_sdk_for_python() {
    one_answer_whatever_goes_wrong(ANTHROPIC_PYTHON, &faults::of_streams(), streamed);
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_anthropic_sdk_for_node() {
    one_answer_whatever_goes_wrong(ANTHROPIC_NODE, &faults::of_streams(), streamed);
}

/// Without a name a delivered answer is not reused: the caller wants another sample.
fn another_sample(sdk: Sdk) {
    let stage = Stage::new();
    let base = sdk.api.guarded(&stage.semel.address);
    let cases = ["once more", "and streamed"];
    let steps = [prompt(sdk, cases[0]), streamed(prompt(sdk, cases[1]))];
    let first = sdk.together(&stage.home, &base, &steps, &token());
    let again = sdk.together(&stage.home, &base, &steps, &token());
    for ((case, first), again) in cases.iter().zip(&first).zip(&again) {
        assert!(is_whole(first) && is_whole(again), "{case}: {} {}", first, again);
        assert_ne!(first.id(), again.id(), "{case}");
        assert_eq!(stage.world.of(case).effects, 2, "{case}");
    }
}

#[test]
fn a_delivered_answer_is_not_reused_unless_its_step_is_named() {
    another_sample(OPENAI_PYTHON);
    another_sample(ANTHROPIC_NODE);
}
