//! Every fault between the Stripe SDKs and an API for payments, with and without its help.

use super::faults::{self, Fault, Leaves};
use super::findings::Findings;
use super::sdk::{Brought, STRIPE_NODE, STRIPE_PYTHON, Sdk};
use super::stage::{CASE, Stage, token};
use super::world::{Happened, World};
use serde_json::{Value, json};

/// A charge as an agent makes it; one that fails is made again after a moment, up to three times in all.
fn charge(case: &str) -> Value {
    let args = json!({"amount": 4200, "currency": "eur", "customer": format!("cus {case}")});
    json!({"do": "charges.create", "args": args, "headers": {CASE: case}, "outer": 3, "pause_s": 0.5})
}

/// What is true of every case, whatever became of it.
fn honest(fault: &Fault, brought: &Brought, world: &World, findings: &mut Findings) -> Happened {
    let (happened, said, case) = (world.of(fault.name), brought, fault.name);
    findings.same(happened.elsewhere, 0, case, "a redirect was followed");
    findings.expect(happened.effects <= 1, case, format_args!("{happened:?} {said}"));
    if brought.ok() && fault.leaves != Leaves::Lie {
        findings.same(happened.effects, 1, case, format_args!("a success without an effect: {said}"));
        findings.expect(world.made(case, brought.id()), case, format_args!("not what was made: {said}"));
    }
    happened
}

/// The agent calls once more when all is well: nothing more happens, and it is told the same, byte for byte.
fn settled(
    fault: &Fault,
    first: &Brought,
    again: &Brought,
    before: usize,
    now: usize,
    findings: &mut Findings,
) {
    let (case, said) = (fault.name, format!("{} {}", first, again));
    findings.same(now, before, case, &said);
    if first.ok() {
        findings.expect(again.ok(), case, &said);
        findings.same(again.header("idempotent-replayed"), Some("true"), case, &said);
        findings.same(again.body(), first.body(), case, &said);
    }
}

/// The API honours keys, as Stripe does, and every call of the SDK has a key of its own.
fn an_api_that_honours_keys(sdk: Sdk) {
    let stage = Stage::new();
    let faults = faults::all();
    stage.world.tell(&json!({"keys": "honour"}));
    stage.world.tell(&faults::plan(&faults));
    let steps: Vec<Value> = faults.iter().map(|fault| charge(fault.name)).collect();
    let base = sdk.api.guarded(&stage.semel.address);
    let first = sdk.together(&stage.home, &base, &steps, &token());
    let mut findings = Findings::default();
    let mut effects = Vec::new();
    for (fault, brought) in faults.iter().zip(&first) {
        effects.push(honest(fault, brought, &stage.world, &mut findings).effects);
        // What the API itself keeps as an error cannot become a success.
        findings.expect(brought.ok() || fault.kept, fault.name, brought);
    }
    let again = sdk.together(&stage.home, &base, &steps, &token());
    for (at, fault) in faults.iter().enumerate() {
        let now = stage.world.of(fault.name).effects;
        settled(fault, &first[at], &again[at], effects[at], now, &mut findings);
    }
    findings.assert_none();
}

#[test]
fn with_keys_every_fault_leaves_one_charge_behind_the_python_sdk() {
    an_api_that_honours_keys(STRIPE_PYTHON);
}

#[test]
fn with_keys_every_fault_leaves_one_charge_behind_the_node_sdk() {
    an_api_that_honours_keys(STRIPE_NODE);
}

/// The API gives no help. The agent names its key, and what nobody knows is told so and never sent again.
fn an_api_that_gives_no_help(sdk: Sdk) {
    let stage = Stage::new();
    let faults = faults::all();
    stage.world.tell(&faults::plan(&faults));
    let keyed = |fault: &Fault| {
        let mut step = charge(fault.name);
        step["key"] = fault.name.replace(' ', "-").into();
        step
    };
    let steps: Vec<Value> = faults.iter().map(keyed).collect();
    let base = format!("http://{}/p/plain", stage.semel.address);
    let first = sdk.together(&stage.home, &base, &steps, &token());
    let (mut findings, mut effects) = (Findings::default(), Vec::new());
    // A late commit comes when the caller has long been answered.
    stage.home.wait_until("what was sent has come about", || {
        let late = faults.iter().filter(|fault| fault.name.starts_with("late"));
        late.into_iter().all(|fault| stage.world.of(fault.name).effects > 0)
    });
    for (fault, brought) in faults.iter().zip(&first) {
        let (case, said) = (fault.name, brought);
        let happened = honest(fault, brought, &stage.world, &mut findings);
        let (ok, status) = (brought.ok(), brought.status());
        match fault.leaves {
            Leaves::Answer | Leaves::Lie => findings.expect(ok && happened.requests == 1, case, said),
            // The key's own answer, unless it was sent again: a refusal may be.
            Leaves::Refusal => findings.expect(ok || status.is_some_and(|status| status < 500), case, said),
            Leaves::Doubt => {
                findings.same((ok, status), (false, Some(423)), case, said);
                findings.same((happened.requests, happened.effects), (1, fault.effects), case, said);
            }
        }
        effects.push(happened.effects);
    }
    let again = sdk.together(&stage.home, &base, &steps, &token());
    for (at, fault) in faults.iter().enumerate().filter(|(_, fault)| fault.leaves != Leaves::Refusal) {
        let now = stage.world.of(fault.name).effects;
        settled(fault, &first[at], &again[at], effects[at], now, &mut findings);
        findings.same(again[at].ok(), first[at].ok(), fault.name, &again[at]);
    }
    findings.assert_none();
}

#[test]
fn without_help_no_fault_makes_two_charges_behind_the_python_sdk() {
    an_api_that_gives_no_help(STRIPE_PYTHON);
}

#[test]
fn without_help_no_fault_makes_two_charges_behind_the_node_sdk() {
    an_api_that_gives_no_help(STRIPE_NODE);
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
