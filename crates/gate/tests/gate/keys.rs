//! What a caller's own key stands for.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord, Would};
use semel_core::class::Class;
use semel_core::effect::Ruling;
use semel_core::ids::Reason;
use semel_core::json::Path;
use semel_core::policy::rule::CallerKey;
use semel_gate::Passed;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::ProbeAnswer;
use semel_ledger::rulings::RulingVerdict;
use semel_testkit::simulation::clock::ManualClock;
use std::sync::Arc;
use std::time::Duration;

/// What is one by its customer, whatever key it comes with.
fn joining(class: Class, key: &'static str) -> Wish {
    let mut wish = Wish { key: Some(key), ..Wish::of(class) };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    wish
}

/// Longer than any window.
const LATER: Duration = Duration::from_secs(7 * 24 * 3600);

#[test]
fn a_key_used_for_something_else_is_drift_and_names_what_differs() {
    let (house, script) = (House::new(), Script::succeeds());
    let wish = Wish { key: Some("order-1001"), ..Wish::consequential() };
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let amount = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    let trouble = house.pass(&gate, &amount, &script).answer.trouble.unwrap();
    assert_eq!((trouble.code, trouble.differing), (Code::Drift, vec!["args.amount".to_owned()]));
    let action = Wish { action: "fn:refund", ..wish };
    let trouble = house.pass(&gate, &action, &script).answer.trouble.unwrap();
    assert_eq!((trouble.code, trouble.differing), (Code::Drift, vec!["action".to_owned()]));
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_callers_key_can_only_add_sameness_where_the_rule_says_joins() {
    let (house, script) = (House::new(), Script::succeeds());
    let wish = joining(Class::Consequential, "fresh-1");
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let another_key = Wish { key: Some("fresh-2"), ..wish.clone() };
    assert_eq!(house.pass(&gate, &another_key, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 1);
}

/// A key that came with something of which nothing happened may come with something else: that has its own record, in
/// which its repeats are found without the key as well.
#[test]
fn a_key_that_joins_takes_no_sameness_away() {
    let house = House::new();
    let wish = joining(Class::Consequential, "sdk-1");
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let gate = house.gate();
    let script = Script::answers([refusal(), success(), success()]);
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::UpstreamRefused));
    house.pass_delivered(&gate, &bob, &script);
    for key in [Some("sdk-1"), Some("sdk-2"), None] {
        let passed = house.pass_delivered(&gate, &Wish { key, ..bob.clone() }, &script);
        assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2), "{key:?}");
    }
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::Drift), "the key is bob's now");
    let ann = house.pass_delivered(&gate, &Wish { key: None, ..wish }, &script);
    assert_eq!((ann.answer.outcome, script.sent()), (OutcomeWord::Ran, 3));
}

/// Whatever a repeat of what it stands for would get.
#[test]
fn a_key_that_stands_for_what_happened_cannot_come_with_something_else() {
    for class in [Class::Act, Class::Consequential] {
        let (house, script) = (House::new(), Script::succeeds());
        let wish = joining(class, "sdk-1");
        let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        house.wait(LATER);
        for other in [bob.clone(), bob.again("once more")] {
            assert_eq!(code(&house.pass(&gate, &other, &script)), Some(Code::Drift), "{class}");
        }
        let told = dry_run(&gate, &bob, &Script::default(), &house.clock);
        assert_eq!(told.dry_run.expect("it says what it would do").would, Would::Refuse);
        assert_eq!(script.sent(), 1);
    }
}

#[test]
fn a_key_that_came_to_stand_for_another_effect_meanwhile_sends_nothing() {
    let (house, other_script) = (House::new(), Script::succeeds());
    let wish = joining(Class::Consequential, "sdk-1");
    let (gate, clock) = (house.gate(), house.clock.clone());
    let other = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let overtaking = call(&gate, &other, &other_script, &clock);
    let script = Script::succeeds().before_the_claim(move || {
        let passed = block_on(overtaking).expect("the ledger is well");
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    });
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::Drift));
    assert_eq!((script.sent(), other_script.sent()), (0, 1));
}

/// A record that nothing happened in is nobody's: in another run it is that run's own effect, which answers that run's
/// other keys too.
#[test]
fn what_was_refused_in_one_run_and_made_in_another_is_the_others() {
    let (house, script) = (House::new(), Script::answers([refusal(), success(), success()]));
    let wish = joining(Class::Consequential, "sdk-1");
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &wish.in_run("a"), &script)), Some(Code::UpstreamRefused));
    house.pass_delivered(&gate, &wish.in_run("b"), &script);
    for key in [Some("sdk-1"), Some("sdk-2"), None] {
        let passed = house.pass_delivered(&gate, &Wish { key, ..wish.in_run("b") }, &script);
        assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2), "{key:?}");
    }
    let passed = house.pass_delivered(&gate, &wish.in_run("a"), &script);
    assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2), "the key is run b's now");
}

#[test]
fn a_key_of_which_nothing_happened_stands_for_what_answers_it() {
    let (house, script) = (House::new(), Script::answers([refusal(), success(), success()]));
    let wish = joining(Class::Consequential, "sdk-1");
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let cy = wish.with_arguments(r#"{"args":{"customer":"cy","amount":1}}"#);
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::UpstreamRefused));
    house.pass_delivered(&gate, &Wish { key: Some("bobs"), ..bob.clone() }, &script);
    house.pass_delivered(&gate, &bob, &script);
    assert_eq!(code(&house.pass(&gate, &cy, &script)), Some(Code::Drift));
    house.wait(LATER);
    assert_eq!(house.pass(&gate, &bob, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 2);
}

/// The repetition came to nothing, so its key is a plain call's again.
#[test]
fn a_key_of_a_refused_repetition_stands_for_the_success_that_answers_it() {
    let (house, script) = (House::new(), Script::answers([success(), refusal(), success()]));
    let wish = joining(Class::Consequential, "sdk-1");
    let other = Wish { key: Some("sdk-5"), ..wish.clone() };
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(code(&house.pass(&gate, &other.again("one more"), &script)), Some(Code::UpstreamRefused));
    house.pass_delivered(&gate, &other, &script);
    house.wait(LATER);
    assert_eq!(house.pass(&gate, &other, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 2);
}

#[test]
fn a_key_is_compared_with_the_effect_that_it_stands_for() {
    let (house, script) = (House::new(), Script::succeeds());
    let wish = joining(Class::Consequential, "sdk-1").in_run("a");
    let dearer = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    let gate = house.gate();
    let first = house.pass_delivered(&gate, &wish, &script).answer.effect_id;
    house.wait(LATER);
    house.pass_delivered(&gate, &Wish { key: Some("sdk-2"), ..dearer.clone() }, &script);
    for run in ["a", "b"] {
        let passed = house.pass(&gate, &wish.in_run(run), &script);
        assert_eq!((passed.answer.outcome, passed.answer.effect_id), (OutcomeWord::Replayed, first), "{run}");
        assert_eq!(code(&house.pass(&gate, &dearer.in_run(run), &script)), Some(Code::Drift), "{run}");
    }
    assert_eq!(script.sent(), 2);
}

#[test]
fn a_leave_is_for_what_it_was_given_for() {
    let (house, script) = (House::new(), Script::succeeds());
    let wish = joining(Class::Consequential, "sdk-1");
    let gate = house.gate();
    let id = house.pass_delivered(&gate, &wish, &script).answer.effect_id.expect("it ran");
    let answered = Wish { key: Some("sdk-2"), ..wish };
    house.pass_delivered(&gate, &answered, &script);
    house.wait(LATER);
    let ruling =
        Ruling { by: "ann".into(), reason: Reason::parse("another parcel").unwrap(), at: house.clock.now() };
    let ledger = gate.clone();
    house.run(async move { ledger.ledger.permit_repeat(id, ruling).await.expect("it may happen once more") });
    let dearer = answered.with_arguments(r#"{"args":{"customer":"ann","amount":99}}"#);
    assert_eq!(code(&house.pass(&gate, &dearer, &script)), Some(Code::Drift));
    assert_eq!(script.sent(), 1);
    assert_eq!(house.pass_delivered(&gate, &answered, &script).answer.outcome, OutcomeWord::Ran);
    assert_eq!(script.sent(), 2);
}

/// What was refused under the key is tried again while it comes with something else: the faster has it.
#[test]
fn a_key_that_is_claimed_again_meanwhile_makes_nothing_else() {
    let wish = joining(Class::Consequential, "sdk-1").in_run("a");
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    for (other, expected) in [(wish.in_run("b"), None), (bob, Some(Code::Drift))] {
        let house = House::new();
        let gate = house.gate();
        let refused = Script::answers([refusal()]);
        assert_eq!(code(&house.pass(&gate, &wish, &refused)), Some(Code::UpstreamRefused));
        let again = Script::succeeds();
        let overtaking = call(&gate, &wish, &again, &house.clock);
        let script = Script::succeeds().before_the_claim(move || {
            let passed = block_on(overtaking).expect("the ledger is well");
            assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
        });
        assert_eq!(code(&house.pass(&gate, &other, &script)), expected);
        assert_eq!((again.sent(), script.sent()), (1, 0));
    }
}

/// A call in a while.
async fn later(
    span: Duration,
    clock: ManualClock,
    call: impl Future<Output = Result<Passed, semel_gate::Error>>,
) -> Passed {
    clock.nap(span).await;
    call.await.expect("the ledger is well")
}

/// What was waited for has another record, and in that nothing has happened.
#[test]
fn whoever_waits_for_a_twin_is_not_told_what_its_key_has_come_to_stand_for() {
    let house = House::new();
    let (gate, clock) = (house.gate(), || house.clock.clone());
    let wish = joining(Class::Consequential, "sdk-1");
    let without_key = Wish { key: None, ..wish.clone() };
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let (refused, twin, others) =
        (Script::after(seconds(3), refusal()), Script::succeeds(), Script::succeeds());
    house.start(1, call(&gate, &without_key, &refused, &house.clock));
    let waits = house.start(1, later(seconds(1), clock(), call(&gate, &wish, &twin, &house.clock)));
    let takes_key = house.start(1, later(seconds(2), clock(), call(&gate, &bob, &others, &house.clock)));
    house.settle();
    assert_eq!(take(&takes_key).answer.outcome, OutcomeWord::Ran);
    let waited = take(&waits);
    assert_eq!((code(&waited), waited.answer.ok), (Some(Code::Drift), false));
    let words = waited.answer.trouble.expect("it was refused").what_happened;
    assert!(words.contains("the same key was used for"), "{words}");
    assert_eq!((refused.sent(), twin.sent(), others.sent()), (1, 0, 1));
}

/// It has sent, and its key stands for something else by the time that it knows what became of that.
#[test]
fn whoever_has_sent_is_told_what_became_of_that_whatever_its_key_stands_for_since() {
    let house = House::new();
    let (gate, clock) = (house.gate(), house.clock.clone());
    let mut wish = joining(Class::Consequential, "sdk-1");
    wish.rule.probe = Wish::probed().rule.probe;
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let looks = Script::answers([unclear()]).slow_probes([(seconds(4), ProbeAnswer::No)]);
    let others = Script::succeeds();
    let sender = house.start(1, call(&gate, &wish, &looks, &house.clock));
    let takes_key = house.start(2, {
        let (gate, others, record) = (Arc::clone(&gate), others.clone(), wish.intent().key);
        async move {
            clock.nap(seconds(1)).await;
            let now = clock.now();
            let found = gate.ledger.observe(record, now).await.expect("the ledger is well");
            let ruling = Ruling { by: "ann".into(), reason: Reason::parse("no").unwrap(), at: now };
            let id = found.effect().expect("it was sent").id;
            gate.ledger.resolve(id, RulingVerdict::NotApplied, ruling).await.expect("there is a doubt");
            call(&gate, &bob, &others, &clock).await.expect("the ledger is well")
        }
    });
    house.settle();
    assert_eq!(take(&takes_key).answer.outcome, OutcomeWord::Ran);
    let told = take(&sender).expect("the ledger is well");
    assert_eq!((code(&told), told.answer.ok), (Some(Code::UpstreamRefused), false));
    assert_eq!((looks.sent(), others.sent()), (1, 1));
}

/// The effect is its own run's, and nothing more starts there.
#[test]
fn what_a_cancelled_run_left_in_doubt_is_not_sent_again_by_another_run() {
    for just_then in [false, true] {
        let house = House::new();
        let mut wish = joining(Class::Consequential, "sdk-1");
        wish.rule.inject = Wish::keyed(seconds(3600)).rule.inject;
        wish.rule.budget = 1;
        let (gate, other, now) = (house.gate(), house.gate(), house.clock.now());
        house.pass(&gate, &wish.in_run("a"), &Script::answers([unclear()]));
        house.wait(seconds(60));
        wish.rule.budget = 3;
        let cancel = move || assert!(block_on(other.ledger.cancel(TENANT, "a", false, None, now)).is_ok());
        let retry = match just_then {
            true => Script::succeeds().before_the_claim(cancel),
            false => {
                cancel();
                Script::succeeds()
            }
        };
        let passed = house.pass(&gate, &wish.in_run("b"), &retry);
        assert_eq!((code(&passed), retry.sent()), (Some(Code::InDoubt), 0), "{just_then}");
        block_on(gate.ledger.cancel(TENANT, "a", true, None, now)).unwrap();
        let passed = house.pass(&gate, &wish.in_run("b"), &retry);
        assert_eq!((passed.answer.ok, retry.sent()), (true, 1), "once it is lifted");
    }
}

/// The run that began it is not the one that was cancelled.
#[test]
fn what_a_cancelled_run_tried_is_not_sent_again_by_another_run() {
    let house = House::new();
    let mut wish = joining(Class::Consequential, "sdk-1");
    wish.rule.inject = Wish::keyed(seconds(3600)).rule.inject;
    let gate = house.gate();
    let lost = Script::answers([unclear()]);
    for (run, budget) in [("a", 0), ("b", 1)] {
        wish.rule.budget = budget;
        house.pass(&gate, &wish.in_run(run), &lost);
        house.wait(seconds(60));
    }
    assert_eq!(lost.sent(), 2);
    wish.rule.budget = 5;
    let cancelled = block_on(gate.ledger.cancel(TENANT, "b", false, None, house.clock.now())).unwrap();
    assert_eq!((cancelled.drained, cancelled.in_doubt.len()), (true, 1));
    let retry = Script::succeeds();
    for run in ["a", "c"] {
        assert_eq!(code(&house.pass(&gate, &wish.in_run(run), &retry)), Some(Code::InDoubt), "{run}");
    }
    assert_eq!(retry.sent(), 0);
}

/// What anybody may ask for at any time is asked for by whoever does.
#[test]
fn what_a_cancelled_run_may_have_left_undone_is_done_for_others_where_that_is_harmless() {
    for class in [Class::Generate, Class::Convergent] {
        let (house, wish) = (House::new(), Wish { key: Some("step"), ..Wish::of(class) });
        let gate = house.gate();
        let mut tries_once = wish.in_run("a");
        tries_once.rule.budget = 0;
        house.pass(&gate, &tries_once, &Script::answers([unclear()]));
        block_on(gate.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap();
        let others = Script::succeeds();
        assert!(house.pass(&gate, &wish.in_run("b"), &others).answer.ok, "{class}");
        assert_eq!(others.sent(), 1);
    }
}
