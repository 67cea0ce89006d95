//! Retries upon retries: an SDK that tries three times, below a framework that calls it three times.

use super::models::{is_whole, prompt};
use super::sdk::{
    ANTHROPIC_NODE, ANTHROPIC_PYTHON, Api, Brought, OPENAI_NODE, OPENAI_PYTHON, STRIPE_NODE, STRIPE_PYTHON,
    Sdk, with_each,
};
use super::stage::{CASE, Stage, token};
use super::world::header;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn charge(case: &str) -> Value {
    let args = json!({"amount": 100, "currency": "eur", "customer": format!("cus {case}")});
    json!({"do": "charges.create", "args": args, "headers": {CASE: case}})
}

fn step(sdk: Sdk, case: &str) -> Value {
    if sdk.api == Api::Stripe { charge(case) } else { prompt(sdk, case) }
}

/// Nobody waits long enough for the answer, nine times. Then somebody does.
fn nine_tries(sdk: Sdk) {
    let stage = Stage::patient();
    let base = sdk.api.guarded(&stage.semel.address);
    stage.world.fail("nine", json!({"hold": "later"}));
    let mut hasty = token();
    hasty["timeout_s"] = 0.3.into();
    let mut nine = step(sdk, "nine");
    nine["outer"] = 3.into();
    let given_up = sdk.together(&stage.home, &base, &[nine], &hasty).remove(0);
    assert!(!given_up.ok() && given_up.attempts().len() == 9, "{sdk}: {}", given_up);
    assert_eq!(stage.world.of("nine").requests, 1, "{sdk}");
    stage.world.release("later");
    let answered = sdk.together(&stage.home, &base, &[step(sdk, "nine")], &token()).remove(0);
    assert!(answered.ok() && stage.world.made("nine", answered.id()), "{sdk}: {}", answered);
    let happened = stage.world.of("nine");
    assert_eq!((happened.requests, happened.effects, happened.gone), (1, 1, 0), "{sdk}");
}

#[test]
fn three_by_three_tries_of_a_charge_are_one_call_upstream() {
    with_each([STRIPE_PYTHON, STRIPE_NODE], nine_tries);
}

#[test]
fn three_by_three_tries_of_a_prompt_are_one_call_upstream() {
    with_each([OPENAI_PYTHON, OPENAI_NODE, ANTHROPIC_PYTHON, ANTHROPIC_NODE], nine_tries);
}

/// Under the name of the upstream as a host, which is all that the SDK for Node can be told.
#[test]
fn one_key_for_two_charges_is_the_sdks_own_idempotency_error() {
    let stage = Stage::new();
    stage.world.tell(&json!({"keys": "honour"}));
    let port = stage.semel.address.rsplit(':').next().expect("a port");
    let by_host = format!("http://stripe.localhost:{port}");
    let by_path = Api::Stripe.guarded(&stage.semel.address);
    for (sdk, base, class) in
        [(STRIPE_PYTHON, by_path, "IdempotencyError"), (STRIPE_NODE, by_host, "StripeIdempotencyError")]
    {
        let case = sdk.to_string();
        let charge = |amount: u32| {
            let mut step = charge(&case);
            step["key"] = case.replace(' ', "-").into();
            step["args"]["amount"] = amount.into();
            step
        };
        let calls = sdk.in_turn(&stage.home, &base, &[charge(100), charge(200)], &token());
        assert!(calls[0].ok(), "{sdk}: {}", calls[0]);
        let error = &calls[1].0["error"];
        assert_eq!((error["class"].as_str(), calls[1].attempts().len()), (Some(class), 1), "{sdk}: {error}");
        assert_eq!(stage.world.of(&case).effects, 1, "{sdk}");
    }
}

/// A model that is down stays down, and is not asked nine times by each of many callers.
#[test]
fn a_storm_of_retries_ends_at_the_budget() {
    let stage = Stage::with("4s", "[[rule]]\nmatch = \"llm:*\"\nbudget = 2\n");
    for sdk in [OPENAI_PYTHON, ANTHROPIC_NODE] {
        let case = sdk.to_string();
        stage.world.fail(&case, json!({"status": 500, "times": 0}));
        let base = sdk.api.guarded(&stage.semel.address);
        let storm = sdk.together(&stage.home, &base, &[prompt(sdk, &case)], &token()).remove(0);
        assert!(!storm.ok(), "{sdk}: {}", storm);
        let requests = stage.world.of(&case).requests;
        assert!((1..=3).contains(&requests), "{sdk}: {requests} requests: {}", storm);
    }
}

/// An agent that lost track calls its tool three times, and the SDK gives each call a key of its own.
fn three_calls(sdk: Sdk) {
    let stage = Stage::new();
    stage.world.tell(&json!({"keys": "honour"}));
    let base = sdk.api.guarded(&stage.semel.address);
    let calls = vec![charge("thrice"); 3];
    let in_turn = sdk.in_turn(&stage.home, &base, &calls, &token());
    let at_once = sdk.together(&stage.home, &base, &vec![charge("at once"); 3], &token());
    for (case, calls) in [("thrice", &in_turn), ("at once", &at_once)] {
        let same: BTreeSet<(Option<&str>, &str)> =
            calls.iter().map(|call| (call.id(), call.body())).collect();
        assert!(calls.iter().all(Brought::ok) && same.len() == 1, "{sdk}, {case}: {calls:?}");
        let happened = stage.world.of(case);
        assert_eq!((happened.requests, happened.effects), (1, 1), "{sdk}, {case}");
    }
    assert_eq!(in_turn[1].header("idempotent-replayed"), Some("true"), "{:?}", in_turn[1]);
    // Another amount is another charge.
    let mut other = charge("thrice");
    other["args"]["amount"] = 101.into();
    assert!(sdk.in_turn(&stage.home, &base, &[other], &token())[0].ok());
    assert_eq!(stage.world.of("thrice").effects, 2);
}

#[test]
fn three_calls_with_three_keys_of_the_sdks_own_are_one_charge() {
    with_each([STRIPE_PYTHON, STRIPE_NODE], three_calls);
}

#[test]
fn without_semel_three_calls_are_three_charges() {
    let stage = Stage::new();
    stage.world.tell(&json!({"keys": "honour"}));
    let base = STRIPE_NODE.api.direct(&stage.world.address);
    STRIPE_NODE.in_turn(&stage.home, &base, &vec![charge("thrice"); 3], &json!({}));
    assert_eq!(stage.world.of("thrice").effects, 3);
}

/// The key that goes upstream is one for all attempts of an effect, whatever the SDK sent.
#[test]
fn a_charge_that_is_sent_again_has_the_key_that_it_had() {
    let stage = Stage::new();
    stage.world.tell(&json!({"keys": "honour"}));
    stage.world.fail("again", json!({"cut_response": 0}));
    stage.world.fail("again", json!({"cut_response": 0}));
    let base = Api::Stripe.guarded(&stage.semel.address);
    let mut call = charge("again");
    call["outer"] = 3.into();
    let brought = STRIPE_PYTHON.together(&stage.home, &base, &[call], &token()).remove(0);
    assert!(brought.ok(), "{}", brought);
    let received = stage.world.received("again");
    let keys: BTreeSet<_> = received.iter().map(|request| header(request, "idempotency-key")).collect();
    assert!(received.len() == 3 && keys.len() == 1 && !keys.contains(&None), "{received:?}");
    assert_eq!(stage.world.of("again").effects, 1);
}

/// Nothing but the base URL changes for a user.
#[test]
fn an_sdk_needs_nothing_but_another_base_url() {
    let stage = Stage::new();
    for sdk in [OPENAI_PYTHON, OPENAI_NODE, ANTHROPIC_PYTHON, ANTHROPIC_NODE, STRIPE_PYTHON, STRIPE_NODE] {
        let case = sdk.to_string();
        let base = sdk.api.guarded(&stage.semel.address);
        let brought = sdk.together(&stage.home, &base, &[step(sdk, &case)], &json!({})).remove(0);
        assert!(brought.ok(), "{sdk}: {}", brought);
        if sdk.api != Api::Stripe {
            assert!(is_whole(&brought), "{case}: {}", brought);
        }
        assert_eq!(stage.world.of(&case).effects, 1, "{sdk}");
        // The upstream gets the caller's own key, and nothing of semel's.
        let received = stage.world.received(&case).remove(0);
        assert!(header(&received, "authorization").is_some_and(|key| key.contains("test")), "{received}");
        let own = received["headers"].to_string().to_lowercase();
        assert!(!own.contains("semel-"), "{received}");
    }
}
