//! Every fault between the SDKs of two model APIs and the models: one answer for each request, and no more runs of the
//! model than answers were lost.

use super::faults::{self, Fault, Leaves};
use super::findings::Findings;
use super::sdk::{
    ANTHROPIC_NODE, ANTHROPIC_PYTHON, Api, Brought, Language, OPENAI_NODE, OPENAI_PYTHON, Sdk, with_each,
};
use super::stage::{CASE, Stage, token};
use super::world::World;
use serde_json::{Value, json};

/// A request whose words are the case, so that no two cases are one.
pub fn prompt(sdk: Sdk, case: &str) -> Value {
    let messages = json!([{"role": "user", "content": case}]);
    let (what, args) = match sdk.api {
        Api::Anthropic => ("messages", json!({"messages": messages})),
        // Both of its forms, in turns.
        _ if case.len().is_multiple_of(2) => ("responses", json!({"input": case})),
        _ => ("chat", json!({"messages": messages})),
    };
    json!({"do": what, "args": args, "headers": {CASE: case}, "outer": 3})
}

/// A prompt whose answer is the canonical one of its step.
pub fn named(sdk: Sdk, case: &str) -> Value {
    let mut step = prompt(sdk, case);
    step["key"] = case.replace(' ', "-").into();
    step
}

pub fn streamed(mut step: Value) -> Value {
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

/// The step is asked for until it has its answer, then once more, then in the other form.
fn one_answer_whatever_goes_wrong(sdk: Sdk, faults: &[Fault], form: fn(Value) -> Value) {
    let stage = Stage::new();
    stage.world.tell(&faults::plan(faults));
    let steps = |fault: &Fault| {
        let step = form(named(sdk, fault.name));
        vec![step.clone(), step.clone(), other_form(step)]
    };
    let cases: Vec<Vec<Value>> = faults.iter().map(steps).collect();
    // What the model does not answer is given up by the SDK, after semel has begun to doubt it.
    let mut given_up = token();
    given_up["timeout_s"] = 6.into();
    let base = sdk.api.guarded(&stage.semel.address);
    let brought = sdk.cases(&stage.home, &base, &cases, &given_up);
    let mut findings = Findings::default();
    for (fault, calls) in faults.iter().zip(&brought) {
        let (case, [first, again, other]) = (fault.name, &calls[..]) else {
            panic!("three steps: {calls:?}")
        };
        let said = format!("{first}, then {again}, then {other}");
        findings.expect(is_whole(first) && is_whole(other), case, &said);
        findings.same((again.id(), again.body()), (first.id(), first.body()), case, &said);
        findings.same(other.id(), first.id(), case, &said);
        for repeated in [again, other] {
            findings.same(repeated.header("idempotent-replayed"), Some("true"), case, &said);
        }
        no_more_than_needed(fault, first, &stage.world, &mut findings);
    }
    findings.assert_none();
}

/// Streamed instead of whole, and the other way round.
fn other_form(mut step: Value) -> Value {
    step["stream"] = (step["stream"] != true).into();
    step
}

fn whole(step: Value) -> Value {
    step
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_openai_sdks() {
    with_each([OPENAI_PYTHON, OPENAI_NODE], |sdk| one_answer_whatever_goes_wrong(sdk, &faults::all(), whole));
}

#[test]
fn whatever_goes_wrong_a_step_has_one_answer_behind_the_anthropic_sdks() {
    with_each([ANTHROPIC_PYTHON, ANTHROPIC_NODE], |sdk| {
        one_answer_whatever_goes_wrong(sdk, &faults::all(), whole);
    });
}

/// The SDKs for Node wait for ever for the rest of a stream, with or without semel.
fn of_streams(sdk: Sdk) -> Vec<Fault> {
    let ends = |fault: &Fault| sdk.language == Language::Python || !fault.name.starts_with("silence");
    faults::of_streams().into_iter().filter(ends).collect()
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_openai_sdks() {
    with_each([OPENAI_PYTHON, OPENAI_NODE], |sdk| {
        one_answer_whatever_goes_wrong(sdk, &of_streams(sdk), streamed);
    });
}

#[test]
fn whatever_goes_wrong_with_a_stream_its_answer_is_whole_behind_the_anthropic_sdks() {
    with_each([ANTHROPIC_PYTHON, ANTHROPIC_NODE], |sdk| {
        one_answer_whatever_goes_wrong(sdk, &of_streams(sdk), streamed);
    });
}

/// Without a name a delivered answer is not reused: the caller wants another sample.
fn another_sample(sdk: Sdk) {
    let stage = Stage::new();
    let base = sdk.api.guarded(&stage.semel.address);
    let cases = ["once more", "and streamed"];
    let steps = [prompt(sdk, cases[0]), streamed(prompt(sdk, cases[1]))];
    let turns = steps.map(|step| vec![step; 2]);
    for (case, calls) in cases.iter().zip(sdk.cases(&stage.home, &base, &turns, &token())) {
        assert!(calls.iter().all(is_whole), "{case}: {calls:?}");
        assert_ne!(calls[0].id(), calls[1].id(), "{case}");
        assert_eq!(stage.world.of(case).effects, 2, "{case}");
    }
}

#[test]
fn a_delivered_answer_is_not_reused_unless_its_step_is_named() {
    with_each([OPENAI_PYTHON, ANTHROPIC_NODE], another_sample);
}
