//! The line between semel and an API ends at byte n, before an official SDK: some n always, every n with
//! `SEMEL_EVERY_BYTE=1`, as `cargo xtask test --long` says it.

use super::bytes::is_every_byte_wanted;
use super::findings::Findings;
use super::models::{is_whole, named, streamed};
use super::sdk::{
    ANTHROPIC_NODE, ANTHROPIC_PYTHON, Brought, OPENAI_NODE, OPENAI_PYTHON, STRIPE_NODE, STRIPE_PYTHON, Sdk,
    with_each,
};
use super::stage::{CASE, Stage, token};
use super::world::Happened;
use serde_json::{Value, json};

/// Places of each direction, where not all are tried.
const SOME: usize = 24;

/// A driver takes its plan as one argument, which has a limit.
const CASES_AT_ONCE: usize = 60;

/// Which way the bytes go of which so many arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Request(usize),
    Response(usize),
}

impl Cut {
    /// Cases of one length, so that byte n is the same byte for all of them.
    fn case(self) -> String {
        match self {
            Cut::Request(n) => format!("to {n:06}"),
            Cut::Response(n) => format!("of {n:06}"),
        }
    }

    fn plan(self) -> Value {
        let how = |n: usize| if n.is_multiple_of(2) { "close" } else { "reset" };
        match self {
            Cut::Request(n) => json!({"case": self.case(), "cut_request": n, "how": how(n)}),
            Cut::Response(n) => json!({"case": self.case(), "cut_response": n, "how": how(n)}),
        }
    }

    /// How often the exchange that is cut changes the world.
    fn effects(self) -> usize {
        usize::from(matches!(self, Cut::Response(_)))
    }
}

/// All of them, or some from the first to the last.
fn places(whole: usize) -> Vec<usize> {
    match is_every_byte_wanted() {
        true => (0..whole).collect(),
        false => (0..SOME).map(|n| n * (whole - 1) / (SOME - 1)).collect(),
    }
}

/// What the SDK does in a case, and where.
struct Doing {
    sdk: Sdk,
    base: String,
    step: fn(Sdk, &str) -> Value,
}

impl Doing {
    fn charge(stage: &Stage, sdk: Sdk) -> Doing {
        let step = |_, case: &str| {
            let args = json!({"amount": 4200, "currency": "eur", "customer": format!("cus {case}")});
            let key = case.replace(' ', "-");
            json!({"do": "charges.create", "args": args, "headers": {CASE: case}, "key": key})
        };
        // An API that gives no help.
        Doing { sdk, base: format!("http://{}/p/plain", stage.semel.address), step }
    }

    fn generation(stage: &Stage, sdk: Sdk) -> Doing {
        Doing { sdk, base: sdk.api.guarded(&stage.semel.address), step: named }
    }

    fn streamed(stage: &Stage, sdk: Sdk) -> Doing {
        let step = |sdk, case: &str| streamed(named(sdk, case));
        Doing { sdk, base: sdk.api.guarded(&stage.semel.address), step }
    }

    /// Each case twice in turn.
    fn cases(&self, stage: &Stage, cases: &[String]) -> Vec<Vec<Brought>> {
        let cases: Vec<Vec<Value>> = cases.iter().map(|case| vec![(self.step)(self.sdk, case); 2]).collect();
        self.sdk.cases(&stage.home, &self.base, &cases, &token())
    }
}

/// Calls `judge` with what each cut came to: what the caller got twice, and what happened.
fn cut_everywhere(
    make: fn(&Stage, Sdk) -> Doing,
    sdk: Sdk,
    judge: fn(Cut, &[Brought], &Happened, &mut Findings),
) {
    let stage = Stage::new();
    let doing = make(&stage, sdk);
    let whole = Cut::Request(999_999).case();
    let first = doing.cases(&stage, std::slice::from_ref(&whole));
    assert!(first[0].iter().all(Brought::ok), "{sdk}: {first:?}");
    let log = stage.world.log();
    let bytes = |at: &str| {
        let line = log.iter().find(|line| line["at"] == at && line["bytes"].is_u64());
        let bytes = line.and_then(|line| line["bytes"].as_u64()).expect("the log says how long it was");
        usize::try_from(bytes).expect("it is short")
    };
    let requests = places(bytes("received")).into_iter().map(Cut::Request);
    let responses = places(bytes("answered")).into_iter().map(Cut::Response);
    let mut findings = Findings::default();
    for cuts in requests.chain(responses).collect::<Vec<_>>().chunks(CASES_AT_ONCE) {
        let plans: Vec<Value> = cuts.iter().map(|cut| cut.plan()).collect();
        stage.world.tell(&json!({"next": plans}));
        let cases: Vec<String> = cuts.iter().map(|cut| cut.case()).collect();
        let brought = doing.cases(&stage, &cases);
        let happened = stage.world.happened();
        for (cut, calls) in cuts.iter().zip(&brought) {
            let happened = happened.get(&cut.case()).cloned().unwrap_or_default();
            judge(*cut, calls, &happened, &mut findings);
        }
    }
    findings.assert_none();
}

/// The API gives no help, so nobody knows; it is said so, and nothing is sent again.
fn is_in_doubt(cut: Cut, calls: &[Brought], happened: &Happened, findings: &mut Findings) {
    let (case, said) = (cut.case(), format!("{happened:?}: {}, then {}", calls[0], calls[1]));
    let statuses: Vec<Option<u64>> = calls.iter().map(Brought::status).collect();
    findings.same(statuses, vec![Some(423); 2], &case, &said);
    findings.same((happened.requests, happened.effects), (1, cut.effects()), &case, &said);
}

/// A generation may be run again where its answer was lost; the step has one answer all the same.
fn has_one_answer(cut: Cut, calls: &[Brought], happened: &Happened, findings: &mut Findings) {
    let (case, said) = (cut.case(), format!("{happened:?}: {}, then {}", calls[0], calls[1]));
    findings.expect(is_whole(&calls[0]), &case, &said);
    findings.same((calls[1].id(), calls[1].body()), (calls[0].id(), calls[0].body()), &case, &said);
    findings.same(calls[1].header("idempotent-replayed"), Some("true"), &case, &said);
    let runs = cut.effects() + 1;
    findings.expect(happened.requests <= 2 && happened.effects <= runs, &case, &said);
}

#[test]
fn a_charge_whose_line_ends_at_any_byte_is_in_doubt_behind_the_stripe_sdks() {
    with_each([STRIPE_PYTHON, STRIPE_NODE], |sdk| cut_everywhere(Doing::charge, sdk, is_in_doubt));
}

#[test]
fn a_step_whose_line_ends_at_any_byte_has_one_answer_behind_the_openai_sdks() {
    with_each([OPENAI_PYTHON, OPENAI_NODE], |sdk| cut_everywhere(Doing::generation, sdk, has_one_answer));
}

#[test]
fn a_step_whose_line_ends_at_any_byte_has_one_answer_behind_the_anthropic_sdks() {
    with_each([ANTHROPIC_PYTHON, ANTHROPIC_NODE], |sdk| {
        cut_everywhere(Doing::generation, sdk, has_one_answer);
    });
}

#[test]
fn a_stream_whose_line_ends_at_any_byte_is_whole_behind_the_sdks() {
    with_each([OPENAI_PYTHON, ANTHROPIC_NODE], |sdk| cut_everywhere(Doing::streamed, sdk, has_one_answer));
}
