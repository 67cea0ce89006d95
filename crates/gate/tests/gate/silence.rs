//! A tool that hangs is a doubt within minutes, for everybody. One that shows that it works is not.

use crate::house::{House, Script, Wish, call, code, seconds, success, take};
use semel_core::answer::{Code, OutcomeWord, Retry};
use semel_core::effect::State;
use semel_gate::look::{Patience, SILENCE_MAX};
use semel_gate::{Gate, Passed};
use semel_testkit::simulation::clock::ManualClock;
use semel_testkit::simulation::executor::Process;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A caller of a door: what it has sent goes on without it.
fn patient(
    house: &House,
    process: Process,
    gate: &Arc<Gate>,
    wish: &Wish,
    script: &Script,
) -> impl Future<Output = Passed> + Send + use<> {
    let (gate, wish, script) = (Arc::clone(gate), wish.clone(), script.clone());
    let (orders, clock) = (house.orders.clone(), house.clock.clone());
    async move {
        let patience = Patience::of(&wish.rule, SILENCE_MAX);
        let looking = Arc::clone(&gate);
        gate.look_until_answered(patience, |look| {
            let answer = Arc::<Mutex<Option<Passed>>>::default();
            let (gate, wish, script, clock) = (looking.clone(), wish.clone(), script.clone(), clock.clone());
            let slot = Arc::clone(&answer);
            let upstream_clock = clock.clone();
            orders.start(process, async move {
                let mut upstream = crate::house::actor(&script, &upstream_clock);
                let passed = gate.pass_in(&look, &wish.intent(), &wish.rule, &mut upstream).await;
                *slot.lock().unwrap() = Some(passed.expect("the ledger is well"));
            });
            async move {
                loop {
                    if let Some(passed) = answer.lock().unwrap().take() {
                        return passed;
                    }
                    clock.nap(Duration::from_millis(500)).await;
                }
            }
        })
        .await
    }
}

async fn after<T>(clock: ManualClock, span: Duration, job: impl Future<Output = T>) -> T {
    clock.nap(span).await;
    job.await
}

#[test]
fn a_silent_tool_is_in_doubt_after_minutes_and_its_late_answer_counts() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(400), success());
    let gate = house.process(1, semel_core::policy::Mode::Guard).0;
    let elsewhere = house.process(2, semel_core::policy::Mode::Guard).0;
    let first = house.start(1, patient(&house, 1, &gate, &wish, &script));
    // Others, who know nothing but the ledger: while it is merely slow, and once its holder has given it up.
    let early = call(&elsewhere, &wish, &script, &house.clock);
    let early = house.start(2, after(house.clock.clone(), seconds(200), early));
    let late = call(&elsewhere, &wish, &script, &house.clock);
    let late = house.start(2, after(house.clock.clone(), seconds(310), late));
    house.settle();
    assert_eq!(code(&take(&first)), Some(Code::InDoubt));
    assert_eq!(code(&take(&early).unwrap()), Some(Code::InFlight));
    assert_eq!(code(&take(&late).unwrap()), Some(Code::InDoubt));
    assert_eq!((script.sent(), house.journaled("lapsed")), (1, 1));
    assert!(matches!(house.effect().state, State::Applied(_)), "{:?}", house.effect());
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 1);
}

#[test]
fn signs_of_life_prolong_the_wait_but_not_a_rules_timeout() {
    for (timeout, in_doubt) in [(None, false), (Some(seconds(30)), true)] {
        let (house, mut wish) = (House::new(), Wish::consequential());
        wish.rule.timeout = timeout;
        let script = Script::after(seconds(2_000), success()).shows_signs(seconds(20));
        let gate = house.process(1, semel_core::policy::Mode::Guard).0;
        let elsewhere = house.process(2, semel_core::policy::Mode::Guard).0;
        let first = house.start(1, patient(&house, 1, &gate, &wish, &script));
        let other = call(&elsewhere, &wish, &script, &house.clock);
        let other = house.start(2, after(house.clock.clone(), seconds(1_900), other));
        house.settle();
        let (first, other) = (take(&first), take(&other).unwrap());
        let (of_caller, of_other) = match in_doubt {
            true => (Some(Code::InDoubt), Some(Code::InDoubt)),
            false => (None, Some(Code::InFlight)),
        };
        assert_eq!((code(&first), code(&other)), (of_caller, of_other), "{timeout:?}");
        assert_eq!((script.sent(), house.journaled("lapsed")), (1, usize::from(in_doubt)));
        assert!(matches!(house.effect().state, State::Applied(_)));
    }
}

/// It has sent nothing itself.
#[test]
fn a_call_that_waits_for_its_twin_is_not_silent() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.wait = seconds(900);
    let script = Script::after(seconds(700), success()).shows_signs(seconds(60));
    let gate = house.process(1, semel_core::policy::Mode::Guard).0;
    let first = house.start(1, patient(&house, 1, &gate, &wish, &script));
    let twin = house.start(1, patient(&house, 1, &gate, &wish, &script));
    house.settle();
    assert!(take(&first).answer.ok && take(&twin).answer.ok);
    assert_eq!((script.sent(), house.journaled("lapsed")), (1, 0));
}

#[test]
fn a_command_has_no_deadline_while_its_process_lives() {
    let (house, wish) = (House::new(), Wish::consequential());
    let day = seconds(24 * 3600);
    let script = Script::after(3 * day, success()).by_child(None);
    let gate = house.process(1, semel_core::policy::Mode::Guard).0;
    let elsewhere = house.process(2, semel_core::policy::Mode::Guard).0;
    let first = house.start(1, call(&gate, &wish, &script, &house.clock));
    let other = call(&elsewhere, &wish, &script, &house.clock);
    let other = house.start(2, after(house.clock.clone(), 2 * day, other));
    house.settle();
    assert!(take(&first).unwrap().answer.ok);
    let other = take(&other).unwrap();
    assert_eq!(code(&other), Some(Code::InFlight));
    assert!(!other.answer.trouble.unwrap().what_happened.contains("until"), "it has no deadline to tell");
    assert_eq!((script.sent(), house.journaled("lapsed")), (1, 0));
}

#[test]
fn after_the_third_wait_the_caller_is_told_to_tell_the_user() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.wait = seconds(2);
    let script = Script::after(seconds(60), success());
    let gate = house.gate();
    let first = house.start(1, call(&gate, &wish, &script, &house.clock));
    let waits = {
        let tries: Vec<_> = (0..3).map(|_| call(&gate, &wish, &script, &house.clock)).collect();
        let clock = house.clock.clone();
        house.start(1, async move {
            clock.nap(Duration::from_millis(1)).await;
            let mut told = Vec::new();
            for one in tries {
                told.push(one.await.unwrap().answer.trouble.expect("it is in flight"));
            }
            told
        })
    };
    house.settle();
    assert!(take(&first).unwrap().answer.ok);
    let id = house.effect().id.to_string();
    let told: Vec<bool> = take(&waits)
        .into_iter()
        .map(|trouble| {
            assert_eq!((trouble.code, trouble.is_it_safe_to_retry), (Code::InFlight, Retry::Wait));
            trouble.next_step.starts_with("Tell the user") && trouble.next_step.contains(&id)
        })
        .collect();
    assert_eq!(told, [false, false, true]);
    assert_eq!(script.sent(), 1);
}
