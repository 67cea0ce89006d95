//! What is different for the class *generate*.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::class::Class;
use semel_core::effect::State;
use semel_core::policy::Mode;
use semel_gate::GivenReply;
use semel_gate::clock::Clock;

fn generation() -> Wish {
    Wish::of(Class::Generate)
}

#[test]
fn a_generation_that_failed_is_sent_again_by_the_next_call_and_not_by_its_own() {
    let (house, wish) = (House::new(), generation());
    let script = Script::answers([unclear()]);
    let gate = house.gate();
    for sent in 1..=3 {
        let passed = house.pass(&gate, &wish, &script);
        assert_eq!((code(&passed), passed.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
        assert_eq!(script.sent(), sent);
    }
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::BudgetSpent));
    assert_eq!(script.sent(), 3);
    house.wait(seconds(60));
    house.pass(&gate, &wish, &script);
    assert_eq!(script.sent(), 4, "the storm is over");
}

#[test]
fn whoever_joined_a_generation_that_failed_is_told_so_and_sends_nothing() {
    let (house, wish) = (House::new(), generation());
    let script = Script::after(seconds(3), unclear());
    let calls: Vec<_> = (1..=3)
        .map(|n| house.start(n, call(&house.process(n, Mode::Guard).0, &wish, &script, &house.clock)))
        .collect();
    house.settle();
    for slot in &calls {
        assert_eq!(code(&take(slot).unwrap()), Some(Code::InDoubt));
    }
    assert_eq!(script.sent(), 1);
}

#[test]
fn whoever_waits_for_a_holder_that_died_generates_by_itself() {
    let (house, wish) = (House::new(), generation());
    let (lost, script) = (Script::after(seconds(3_600), success()), Script::succeeds());
    let (gate, holders) = house.process(1, Mode::Guard);
    let doomed = house.start(1, call(&gate, &wish, &lost, &house.clock));
    let twin = house.start(2, {
        let (clock, call) =
            (house.clock.clone(), call(&house.process(2, Mode::Guard).0, &wish, &script, &house.clock));
        async move {
            clock.nap(seconds(1)).await;
            call.await
        }
    });
    house.dies_after(seconds(2), 1, holders);
    house.settle();
    assert!(doomed.lock().unwrap().is_none());
    assert!(take(&twin).unwrap().answer.ok);
    assert_eq!((lost.sent(), script.sent()), (1, 1));
}

#[test]
fn the_first_whole_answer_is_everybodys_even_if_a_newer_attempt_is_in_flight() {
    let (house, mut wish) = (House::new(), generation());
    wish.rule.timeout = Some(seconds(10));
    let (slow, script) = (Script::after(seconds(30), success()), Script::after(seconds(30), success()));
    let gate = house.gate();
    let first = house.start(1, call(&gate, &wish, &slow, &house.clock));
    let retry = house.start(1, {
        let (clock, call) = (house.clock.clone(), call(&gate, &wish, &script, &house.clock));
        async move {
            clock.nap(seconds(11)).await;
            call.await
        }
    });
    house.settle();
    let (first, retry) = (take(&first).unwrap(), take(&retry).unwrap());
    assert_eq!((first.answer.outcome, &first.reply), (OutcomeWord::Ran, &GivenReply::Live));
    assert_eq!((slow.sent(), script.sent()), (1, 1));
    assert_eq!(retry.reply, GivenReply::Recorded(b"reply 1".to_vec()), "not its own");
    let effect = house.effect();
    assert!(matches!(&effect.state, State::Applied(applied) if applied.by.is_some_and(|by| by.0 == 1)));
    assert_eq!((house.journaled("settled_applied"), house.journaled("duplicate_detected")), (2, 0));
}

#[test]
fn a_generation_waits_for_no_disk_unless_its_step_has_a_name() {
    let (house, wish, script) = (House::new(), generation(), Script::succeeds());
    let gate = house.gate();
    let before = house.memory.durable_commits();
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(house.memory.durable_commits(), before);
    house.pass_delivered(&gate, &Wish { key: Some("step"), ..wish.clone() }, &script);
    assert_eq!(house.memory.durable_commits(), before + 2, "the claim and the settlement");
    house.pass_delivered(&gate, &Wish::of(Class::Act).with_arguments(r#"{"args":{"x":1}}"#), &script);
    assert_eq!(house.memory.durable_commits(), before + 4);
}

#[test]
fn two_runs_may_ask_for_the_same_at_once() {
    let (house, wish) = (House::new(), generation());
    let script = Script::after(seconds(3), success());
    let gate = house.gate();
    let started = house.clock.now();
    let calls = ["a", "b"].map(|run| house.start(1, call(&gate, &wish.in_run(run), &script, &house.clock)));
    house.settle();
    for slot in &calls {
        assert_eq!(take(slot).unwrap().answer.outcome, OutcomeWord::Ran);
    }
    assert_eq!(script.sent(), 2);
    assert!(house.clock.now().since(started) < seconds(6), "side by side");
}
