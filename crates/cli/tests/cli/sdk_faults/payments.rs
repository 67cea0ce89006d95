//! Every fault between the Stripe SDKs and an API for payments, with and without its help.

use super::faults::{self, Fault, Leaves};
use super::findings::Findings;
use super::sdk::{Brought, STRIPE_NODE, STRIPE_PYTHON, Sdk, with_each};
use super::stage::{CASE, Stage, token};
use super::world::{Happened, World};
use serde_json::{Value, json};

/// A charge as an agent makes it; one that fails is made again after a moment, up to three times in all.
fn charge(case: &str) -> Value {
    let args = json!({"amount": 4200, "currency": "eur", "customer": format!("cus {case}")});
    json!({"do": "charges.create", "args": args, "headers": {CASE: case}, "outer": 3, "pause_s": 0.5})
}

/// What is true of every case, whatever became of it. The agent calls once more when all is well: nothing more happens,
/// and it is told the same, byte for byte.
fn honest(fault: &Fault, calls: &[Brought], world: &World, findings: &mut Findings) -> Happened {
    let (happened, case, first, again) = (world.of(fault.name), fault.name, &calls[0], &calls[1]);
    let said = format!("{happened:?}: {first}, then {again}");
    findings.same(happened.elsewhere, 0, case, "a redirect was followed");
    findings.expect(happened.effects <= 1, case, &said);
    for call in calls.iter().filter(|call| call.ok() && fault.leaves != Leaves::Lie) {
        findings.same(happened.effects, 1, case, format_args!("a success without an effect: {said}"));
        findings.expect(world.made(case, call.id()), case, format_args!("not what was made: {said}"));
    }
    if first.ok() {
        findings.expect(again.ok(), case, &said);
        findings.same(again.header("idempotent-replayed"), Some("true"), case, &said);
        findings.same(again.body(), first.body(), case, &said);
    }
    happened
}

/// The API honours keys, as Stripe does, and every call of the SDK has a key of its own.
fn an_api_that_honours_keys(sdk: Sdk) {
    let stage = Stage::new();
    let faults = faults::all();
    stage.world.tell(&json!({"keys": "honour"}));
    stage.world.tell(&faults::plan(&faults));
    let twice = |fault: &Fault| {
        let mut step = charge(fault.name);
        // The SDK would obey each Retry-After of a minute that a spent budget asks for, to no avail.
        if fault.kept {
            (step["outer"], step["retries"]) = (1.into(), 0.into());
        }
        vec![step; 2]
    };
    let cases: Vec<Vec<Value>> = faults.iter().map(twice).collect();
    let base = sdk.api.guarded(&stage.semel.address);
    let brought = sdk.cases(&stage.home, &base, &cases, &token());
    let mut findings = Findings::default();
    for (fault, calls) in faults.iter().zip(&brought) {
        honest(fault, calls, &stage.world, &mut findings);
        // What the API itself keeps as an error cannot become a success.
        findings.expect(calls[0].ok() || fault.kept, fault.name, &calls[0]);
    }
    findings.assert_none();
}

#[test]
fn with_keys_every_fault_leaves_one_charge() {
    with_each([STRIPE_PYTHON, STRIPE_NODE], an_api_that_honours_keys);
}

/// The API gives no help. The agent names its key, and what nobody knows is told so and never sent again.
fn an_api_that_gives_no_help(sdk: Sdk) {
    let stage = Stage::new();
    let faults = faults::all();
    stage.world.tell(&faults::plan(&faults));
    let keyed = |fault: &Fault| {
        let mut step = charge(fault.name);
        step["key"] = fault.name.replace(' ', "-").into();
        vec![step; 2]
    };
    let cases: Vec<Vec<Value>> = faults.iter().map(keyed).collect();
    let base = format!("http://{}/p/plain", stage.semel.address);
    let brought = sdk.cases(&stage.home, &base, &cases, &token());
    // A late commit may come when the caller has long been answered.
    stage.home.wait_until("what was sent has come about", || {
        let mut late = faults.iter().filter(|fault| fault.name.starts_with("late"));
        late.all(|fault| stage.world.of(fault.name).effects > 0)
    });
    let mut findings = Findings::default();
    for (fault, calls) in faults.iter().zip(&brought) {
        let happened = honest(fault, calls, &stage.world, &mut findings);
        let (case, said) = (fault.name, format!("{happened:?}: {}, then {}", calls[0], calls[1]));
        let statuses: Vec<Option<u64>> = calls.iter().map(Brought::status).collect();
        match fault.leaves {
            Leaves::Answer | Leaves::Lie => {
                findings.expect(calls[0].ok() && happened.requests == 1, case, &said)
            }
            // The key's own answer, unless it was sent again: a refusal may be.
            Leaves::Refusal => findings.expect(calls[1].ok() || statuses[1] < Some(500), case, &said),
            Leaves::Doubt => {
                findings.same(statuses, vec![Some(423); 2], case, &said);
                findings.same((happened.requests, happened.effects), (1, fault.effects), case, &said);
            }
        }
    }
    findings.assert_none();
}

#[test]
fn without_help_no_fault_makes_two_charges() {
    with_each([STRIPE_PYTHON, STRIPE_NODE], an_api_that_gives_no_help);
}

#[test]
fn without_semel_the_same_faults_charge_twice() {
    let stage = Stage::new();
    let faults = faults::all();
    stage.world.tell(&json!({"keys": "honour"}));
    stage.world.tell(&faults::plan(&faults));
    let steps: Vec<Value> = faults.iter().map(|fault| charge(fault.name)).collect();
    let base = STRIPE_PYTHON.api.direct(&stage.world.address);
    STRIPE_PYTHON.together(&stage.home, &base, &steps, &json!({"timeout_s": 1}));
    let twice = stage.world.happened().into_values().filter(|happened| happened.effects > 1).count();
    assert!(twice >= 3, "the faults are too weak to show anything: {:?}", stage.world.happened());
}
