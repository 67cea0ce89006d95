//! Which effect of its record a call is: repeats on purpose, calls that a transport repeats, and repeats that failed.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::class::Class;
use semel_core::intent::AskedBy;
use semel_core::policy::rule::Again;

#[test]
fn a_deliberate_repeat_runs_once_per_reason() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish.again("first call, so the reason does not matter"), &script);
    for (why, outcome, sent) in [
        ("one more", OutcomeWord::Ran, 2),
        ("one more", OutcomeWord::Replayed, 2),
        ("and another", OutcomeWord::Ran, 3),
        ("one more", OutcomeWord::Replayed, 3),
    ] {
        let passed = house.pass_delivered(&gate, &wish.again(why), &script);
        assert_eq!((passed.answer.outcome, script.sent()), (outcome, sent), "{why}");
    }
    assert_eq!(house.effects().len(), 3);
}

#[test]
fn a_repeat_is_held_while_the_newest_effect_is_open() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::answers([unclear()]));
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    assert_eq!(code(&house.pass(&gate, &wish.again("please"), &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_rule_that_leaves_repeats_to_a_person_holds_an_agent() {
    for (again, asked_by, runs) in [
        (Again::Person, AskedBy::Agent, false),
        (Again::Person, AskedBy::Person, true),
        (Again::Never, AskedBy::Person, false),
    ] {
        let (house, mut wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
        wish.rule.again = again;
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        let passed = house.pass(&gate, &Wish { asked_by, ..wish.again("please") }, &script);
        if runs {
            assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
        } else {
            assert_eq!(
                (code(&passed), passed.answer.outcome),
                (Some(Code::HeldForPerson), OutcomeWord::Held)
            );
        }
    }
}

#[test]
fn a_call_that_a_transport_repeats_finds_its_own_effect_however_many_came_after_it() {
    let (house, wish, script) = (House::new(), Wish::of(Class::Act), Script::succeeds());
    let gate = house.gate();
    let call = |id| Wish { call_id: Some(id), ..wish.clone() };
    let first = house.pass_delivered(&gate, &call("a"), &script);
    for (id, outcome, sent) in [
        ("b", OutcomeWord::Ran, 2),
        ("a", OutcomeWord::Replayed, 2),
        ("c", OutcomeWord::Ran, 3),
        ("b", OutcomeWord::Replayed, 3),
    ] {
        let passed = house.pass_delivered(&gate, &call(id), &script);
        assert_eq!((passed.answer.outcome, script.sent()), (outcome, sent), "{id}");
    }
    let again = house.pass_delivered(&gate, &call("a"), &script);
    assert_eq!(again.answer.effect_id, first.answer.effect_id);
}

/// The second order was declined. That is no reason to send the first one again.
#[test]
fn a_repeat_that_failed_does_not_open_the_success_before_it() {
    let plain = Wish::consequential();
    for wish in [plain.clone(), Wish { key: Some("order-1"), ..plain }] {
        let script = Script::answers([success(), refusal(), success()]);
        let house = House::new();
        let gate = house.gate();
        let first = house.pass_heard(&gate, &wish, &script);
        let declined = house.pass_heard(&gate, &wish.again("a second order"), &script);
        assert_eq!(code(&declined), Some(Code::UpstreamRefused));

        let plain = house.pass_heard(&gate, &wish, &script);
        assert_eq!((plain.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2));
        assert_eq!(plain.answer.effect_id, first.answer.effect_id);

        let retried = house.pass_heard(&gate, &wish.again("a second order"), &script);
        assert_eq!((retried.answer.outcome, script.sent()), (OutcomeWord::Ran, 3));
    }
}

#[test]
fn a_reason_that_took_the_place_of_one_that_failed_is_known_by_its_retry() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([success(), refusal(), success(), success()]);
    let gate = house.gate();
    house.pass_heard(&gate, &wish, &script);
    for (why, outcome, sent) in [
        ("declined", OutcomeWord::Ran, 2),
        ("with another card", OutcomeWord::Ran, 3),
        ("with another card", OutcomeWord::Replayed, 3),
        ("declined", OutcomeWord::Ran, 4),
    ] {
        let passed = house.pass_heard(&gate, &wish.again(why), &script);
        assert_eq!((passed.answer.outcome, script.sent()), (outcome, sent), "{why}");
    }
}

#[test]
fn a_reason_that_was_done_before_one_that_failed_stays_done() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([success(), success(), refusal(), success()]);
    let gate = house.gate();
    house.pass_heard(&gate, &wish, &script);
    for (why, outcome, sent) in [
        ("one more", OutcomeWord::Ran, 2),
        ("and another", OutcomeWord::Ran, 3),
        ("one more", OutcomeWord::Replayed, 3),
    ] {
        let passed = house.pass_heard(&gate, &wish.again(why), &script);
        assert_eq!((passed.answer.outcome, script.sent()), (outcome, sent), "{why}");
    }
}
