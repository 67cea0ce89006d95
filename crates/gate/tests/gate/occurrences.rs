//! Which effect of its record a call is: repeats on purpose, calls that a transport repeats, and repeats that failed.

use crate::house::*;
use semel_core::answer::{Code, EffectWord, OutcomeWord};
use semel_core::class::Class;
use semel_core::effect::Ruling;
use semel_core::ids::{AttemptNo, Reason};
use semel_core::intent::AskedBy;
use semel_core::json::Path;
use semel_core::policy::expression::Expression;
use semel_core::policy::rule::Again;
use semel_gate::Gate;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::ProbeAnswer;
use semel_ledger::rulings::RulingVerdict;
use std::sync::Arc;

/// Repeats for these reasons in turn, each with what it gets and how often anything was sent by then.
#[track_caller]
fn assert_repeats(
    house: &House,
    (gate, wish, script): (&Arc<Gate>, &Wish, &Script),
    repeats: &[(&'static str, OutcomeWord, usize)],
) {
    for (why, outcome, sent) in repeats {
        let passed = house.pass_heard(gate, &wish.again(why), script);
        assert_eq!((passed.answer.outcome, script.sent()), (*outcome, *sent), "{why}");
    }
}

#[test]
fn a_deliberate_repeat_runs_once_per_reason() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish.again("first call, so the reason does not matter"), &script);
    assert_repeats(
        &house,
        (&gate, &wish, &script),
        &[
            ("one more", OutcomeWord::Ran, 2),
            ("one more", OutcomeWord::Replayed, 2),
            ("and another", OutcomeWord::Ran, 3),
            ("one more", OutcomeWord::Replayed, 3),
        ],
    );
    assert_eq!(house.effects().len(), 3);
}

#[test]
fn a_reason_that_was_used_is_said_to_be() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let reason = |why| house.pass_heard(&gate, &wish.again(why), &script).answer.reason.unwrap_or_default();
    assert_eq!(reason("the user asked for it"), "");
    assert!(reason("the user asked for it").contains("this reason was used already"));
    assert_eq!(reason("they asked once more"), "");
    assert!(reason("the user asked for it").contains("this reason was used already"));
    assert_eq!(script.sent(), 3);
}

#[test]
fn a_replay_names_what_the_call_says_otherwise() {
    let (house, mut wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    wish.rule.sorting.content = vec![Path::parse("args.text").expect("a path")];
    let gate = house.gate();
    let saying = |text: &str| wish.with_arguments(&format!(r#"{{"args":{{"to":"ann","text":"{text}"}}}}"#));
    house.pass_delivered(&gate, &saying("the code is 123"), &script);
    let reason = |text| house.pass_heard(&gate, &saying(text), &script).answer.reason.unwrap_or_default();
    let other = reason("the code is 777");
    assert!(other.contains("; your changed args.text was NOT sent"), "{other}");
    assert!(
        reason("the code is 123").ends_with("it was not run again; to repeat it, call it with again: WHY")
    );
    assert_eq!(script.sent(), 1);
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
    assert_repeats(
        &house,
        (&gate, &wish, &script),
        &[
            ("declined", OutcomeWord::Ran, 2),
            ("with another card", OutcomeWord::Ran, 3),
            ("with another card", OutcomeWord::Replayed, 3),
            ("declined", OutcomeWord::Ran, 4),
        ],
    );
}

#[test]
fn a_reason_that_was_done_before_one_that_failed_stays_done() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([success(), success(), refusal(), success()]);
    let gate = house.gate();
    house.pass_heard(&gate, &wish, &script);
    assert_repeats(
        &house,
        (&gate, &wish, &script),
        &[
            ("one more", OutcomeWord::Ran, 2),
            ("and another", OutcomeWord::Ran, 3),
            ("one more", OutcomeWord::Replayed, 3),
        ],
    );
}

#[test]
fn what_nobody_gave_a_reason_for_is_done_for_no_reason() {
    let (house, wish) = (House::new(), Wish::of(Class::Act));
    let script = Script::answers([success(), refusal(), success(), success()]);
    let gate = house.gate();
    house.pass_heard(&gate, &wish, &script);
    house.pass_heard(&gate, &wish.again("one more"), &script);
    let plain = house.pass_heard(&gate, &wish, &script);
    assert_eq!((plain.answer.outcome, script.sent()), (OutcomeWord::Ran, 3));
    let again = house.pass_heard(&gate, &wish.again("one more"), &script);
    assert_eq!((again.answer.outcome, script.sent()), (OutcomeWord::Ran, 4), "it was refused before");
}

#[test]
fn a_call_that_was_refused_is_not_answered_with_the_success_of_another() {
    let (house, wish) = (House::new(), Wish::of(Class::Act));
    let script = Script::answers([refusal(), success(), success()]);
    let gate = house.gate();
    let call = |id| Wish { call_id: Some(id), ..wish.clone() };
    for (id, sent) in [("a", 1), ("b", 2), ("a", 3)] {
        house.pass_heard(&gate, &call(id), &script);
        assert_eq!(script.sent(), sent, "{id}");
    }
    assert_eq!(house.pass_heard(&gate, &call("b"), &script).answer.outcome, OutcomeWord::Replayed);
}

#[test]
fn a_reason_that_sent_a_doubt_again_stands_for_what_became_of_it() {
    let (house, wish) = (House::new(), Wish::keyed(seconds(3600)));
    let gate = house.gate();
    let lost = Script::answers([unclear(), unclear(), unclear(), unclear(), unclear(), unclear()]);
    house.pass(&gate, &wish, &lost);
    let script = Script::succeeds();
    let mut wish = wish;
    wish.rule.budget = 100;
    house.pass_delivered(&gate, &wish.again("one more"), &script);
    let again = house.pass_delivered(&gate, &wish.again("one more"), &script);
    assert_eq!((again.answer.outcome, script.sent()), (OutcomeWord::Replayed, 1));
}

#[test]
fn a_refusal_answers_its_own_reason_and_no_other() {
    let (house, wish) = (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() });
    let script = Script::answers([success(), refusal(), success()]);
    let (gate, clock) = (house.gate(), house.clock.clone());
    let heard = |wish: &Wish| {
        let (mut intent, gate, mut upstream) = (wish.intent(), gate.clone(), actor(&script, &clock));
        intent.replay_refusals = true;
        let rule = wish.rule.clone();
        let passed = house.run(async move {
            let passed = gate.pass(&intent, &rule, &mut upstream).await.expect("the ledger is well");
            if let Some(delivery) = &passed.delivery {
                gate.delivered(delivery).await.expect("the ledger is well");
            }
            passed
        });
        (passed.answer.outcome, script.sent())
    };
    assert_eq!(heard(&wish), (OutcomeWord::Ran, 1));
    assert_eq!(heard(&wish.again("a second order")), (OutcomeWord::Ran, 2));
    assert_eq!(heard(&wish.again("a second order")), (OutcomeWord::Replayed, 2), "its refusal");
    assert_eq!(heard(&wish.again("with another card")), (OutcomeWord::Ran, 3));
}

/// What a person lets happen once more is that, also at the second try, and with whatever reason it is wanted.
#[test]
fn a_leave_that_came_to_nothing_is_not_spent_and_not_for_something_else() {
    for first in [None, Some("the second box")] {
        let (house, mut wish) = (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() });
        wish.rule.again = Again::Person;
        let script = Script::answers([success(), refusal(), success()]);
        let gate = house.gate();
        let done = house.pass_heard(&gate, &wish, &script);
        let ruling =
            Ruling { by: "ann".into(), reason: Reason::parse("two boxes").unwrap(), at: house.clock.now() };
        let (ledger, id) = (gate.clone(), done.answer.effect_id.expect("it was done"));
        house.run(
            async move { ledger.ledger.permit_repeat(id, ruling).await.expect("it may happen once more") },
        );

        house.pass_heard(&gate, &Wish { again: first, ..wish.clone() }, &script);
        let more = wish.with_arguments(r#"{"args":{"customer":"ann","amount":1000}}"#);
        assert_eq!(code(&house.pass(&gate, &more, &script)), Some(Code::Drift), "{first:?}");
        let agent = house.pass(&gate, &more.again("more"), &script);
        assert_eq!(code(&agent), Some(Code::HeldForPerson), "{first:?}");
        assert_eq!(script.sent(), 2);

        let other_words = if first.is_some() { None } else { Some("as she said") };
        let passed = house.pass_heard(&gate, &Wish { again: other_words, ..wish.clone() }, &script);
        assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Ran, 3), "{first:?}");
    }
}

/// A repeat for a reason of its own, with other arguments, uses no leave; and what it leaves behind is not one.
#[test]
fn a_leave_does_not_pass_to_something_else() {
    let (house, wish) = (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() });
    let script = Script::answers([success(), refusal(), success()]);
    let gate = house.gate();
    let done = house.pass_heard(&gate, &wish, &script);
    let ruling =
        Ruling { by: "ann".into(), reason: Reason::parse("two boxes").unwrap(), at: house.clock.now() };
    let (ledger, id) = (gate.clone(), done.answer.effect_id.expect("it was done"));
    house.run(async move { ledger.ledger.permit_repeat(id, ruling).await.expect("it may happen once more") });
    let more = wish.with_arguments(r#"{"args":{"customer":"ann","amount":1000}}"#);
    house.pass_heard(&gate, &more.again("more"), &script);
    assert_eq!(code(&house.pass(&gate, &more, &script)), Some(Code::Drift));
    assert_eq!(script.sent(), 2);
}

/// Another repeat is under way. It fails, and that is not what became of the success before it.
#[test]
fn who_waited_for_a_repeat_that_failed_is_answered_with_its_own_success() {
    let (house, wish) = (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() });
    let gate = house.gate();
    let first = house.pass_delivered(&gate, &wish, &Script::succeeds());
    let slow = Script::after(seconds(3), refusal());
    let repeat = house.start(1, call(&gate, &wish.again("a second order"), &slow, &house.clock));
    let plain = house.start(1, call(&gate, &wish, &slow, &house.clock));
    house.settle();
    assert_eq!(code(&take(&repeat).unwrap()), Some(Code::UpstreamRefused));
    let plain = take(&plain).unwrap();
    assert_eq!(
        (plain.answer.outcome, plain.answer.effect_id),
        (OutcomeWord::Replayed, first.answer.effect_id)
    );
    assert_eq!(slow.sent(), 1);
}

#[test]
fn a_call_that_was_done_waits_for_no_other_under_way() {
    let (house, wish) = (House::new(), Wish::of(Class::Act));
    let gate = house.gate();
    let wishing = |id| Wish { call_id: Some(id), ..wish.clone() };
    let first = house.pass_delivered(&gate, &wishing("a"), &Script::succeeds());
    let lost = Script::answers([unclear()]);
    house.pass(&gate, &wishing("b"), &lost);
    let again = house.pass(&gate, &wishing("a"), &lost);
    assert_eq!(
        (again.answer.outcome, again.answer.effect_id),
        (OutcomeWord::Replayed, first.answer.effect_id)
    );
}

#[test]
fn a_reason_that_was_done_cannot_come_with_something_else() {
    let (house, wish, script) =
        (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() }, Script::succeeds());
    let gate = house.gate();
    for wish in [wish.clone(), wish.again("second"), wish.again("third")] {
        house.pass_delivered(&gate, &wish, &script);
    }
    let other = wish.with_arguments(r#"{"args":{"customer":"ann","amount":1000}}"#).again("second");
    let passed = house.pass(&gate, &other, &script);
    let trouble = passed.answer.trouble.as_ref().expect("it is refused");
    assert_eq!((trouble.code, script.sent()), (Code::Drift, 3));
    assert!(trouble.what_happened.contains("args.amount"), "{trouble:?}");
}

/// Its truth was asked for, and the answer came when the record had gone on.
#[test]
fn a_success_that_was_disproved_later_answers_nobody_any_more() {
    let (house, wish) = (House::new(), Wish { key: Some("order-1"), ..Wish::consequential() });
    let script = Script::answers([success(), refusal()]);
    let gate = house.gate();
    let done = house.pass_heard(&gate, &wish, &script);
    house.pass_heard(&gate, &wish.again("a second order"), &script);
    assert!(house.pass(&gate, &wish, &script).answer.ok, "as it was reported");
    let (asking, found, at) = (gate.clone(), done.delivery.clone().expect("a success"), house.clock.now());
    let disproved = house.run(async move { asking.ledger.refute(&found, "404".into(), at).await });
    assert!(disproved.expect("the ledger is well"));
    let plain = house.pass(&gate, &wish, &script);
    assert_eq!((code(&plain), plain.answer.effect_id), (Some(Code::Refuted), done.answer.effect_id));
    assert_eq!(script.sent(), 2);
}

/// It found the first one, which was there all along.
#[test]
fn a_yes_that_may_speak_of_an_earlier_effect_leaves_the_doubt() {
    for (found, clears) in [(None, false), (Some("resp.at >= attempt.started"), true)] {
        let (house, mut wish) = (House::new(), Wish::probed());
        wish.rule.probe.as_mut().expect("it is probed").found =
            found.map(|found| Expression::compile(found).expect("CEL"));
        let script = Script::answers([success(), unclear()]).probes([yes(), yes()]);
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        let again = house.pass(&gate, &wish.again("one more"), &script);
        assert_eq!((again.answer.ok, script.sent()), (clears, 2), "{found:?}");
        assert_eq!(code(&again).is_none(), clears, "{found:?}");
    }
}

/// Whoever repeats it on purpose knows that it is there.
#[test]
fn a_probe_that_goes_before_does_not_stand_against_a_deliberate_repeat() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.probe.as_mut().expect("it is probed").before = true;
    let script = Script::succeeds().probes([ProbeAnswer::No, yes(), yes()]);
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    assert_repeats(&house, (&gate, &wish, &script), &[("one more", OutcomeWord::Ran, 2)]);
    let other = house.pass(&gate, &wish.with_arguments(r#"{"n": 2}"#).again("not the first?"), &script);
    assert_eq!((other.answer.effect, script.sent()), (EffectWord::Noop, 2), "semel did not do that one");
}

/// Some agents count their calls, from the beginning in each conversation.
#[test]
fn a_call_id_that_is_a_count_means_the_same_call_for_an_hour() {
    for (id, runs) in [
        ("call_0", true),
        ("7", true),
        ("functions.adjust_inventory:12", true),
        ("toolu_01A09q90qw90lq917835lq9", false),
        ("D681PevKs", false),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", false),
    ] {
        let (house, mut wish, script) = (House::new(), Wish::of(Class::Act), Script::succeeds());
        wish.call_id = Some(id);
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        let again = house.pass_delivered(&gate, &wish, &script);
        assert_eq!((again.answer.outcome, script.sent()), (OutcomeWord::Replayed, 1), "{id}");
        house.wait(seconds(24 * 3600));
        house.pass_delivered(&gate, &wish, &script);
        assert_eq!(script.sent() == 2, runs, "{id}");
    }
}

#[test]
fn the_hour_of_a_counted_call_id_is_its_own() {
    let (house, wish, script) = (House::new(), Wish::of(Class::Act), Script::succeeds());
    let gate = house.gate();
    for (id, wait, sent) in [("1", 0, 1), ("2", 50, 2), ("1", 5, 2), ("1", 50, 3)] {
        house.wait(seconds(wait * 60));
        house.pass_delivered(&gate, &Wish { call_id: Some(id), ..wish.clone() }, &script);
        assert_eq!(script.sent(), sent, "{id} after {wait} minutes");
    }
}

/// Somebody ruled that it had not happened, and so many refused attempts came after it that it is no longer listed.
#[test]
fn a_late_answer_of_an_attempt_that_was_let_go_of_is_no_loss() {
    for (last, alarm) in [(refusal(), "contradicted"), (success(), "duplicate_detected")] {
        let (house, mut wish) = (House::new(), Wish::consequential());
        (wish.rule.timeout, wish.rule.wait) = (Some(seconds(60)), seconds(0));
        let gate = house.gate();
        let slow = Script::after(seconds(300), success());
        house.start(1, call(&gate, &wish, &slow, &house.clock));
        let quick = Script::answers(std::iter::repeat_n(refusal(), 19).chain([last]));
        let (ruling_gate, clock, script) = (Arc::clone(&gate), house.clock.clone(), quick.clone());
        let retries = async move {
            clock.sleep(seconds(61)).await;
            let next = || call(&ruling_gate, &wish, &script, &clock);
            let doubt = next().await.expect("the ledger is well");
            assert_eq!(code(&doubt), Some(Code::InDoubt));
            let id = doubt.answer.effect_id.expect("it is known");
            let reason = Reason::parse("it is not there").expect("a reason");
            let ruling = Ruling { by: "person".into(), reason, at: clock.now() };
            ruling_gate
                .ledger
                .resolve(id, RulingVerdict::NotApplied, ruling)
                .await
                .expect("there is a doubt");
            for _ in 0..20 {
                next().await.expect("the ledger is well");
            }
        };
        house.start(1, retries);
        house.settle();
        assert_eq!((slow.sent(), quick.sent()), (1, 20));
        assert!(house.effect().attempt(AttemptNo(1)).is_none(), "it was let go of");
        assert_eq!(house.journaled(alarm), 1, "{alarm}");
        let (_, epoch) = block_on(gate.ledger.epoch()).expect("the ledger is well");
        assert!(epoch.is_none(), "nothing was lost: {epoch:?}");
    }
}
