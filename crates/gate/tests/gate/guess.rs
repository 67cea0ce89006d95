//! A gate that has seen many new calls takes the next one for new. Where it is wrong nobody notices.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::policy::Mode;
use semel_gate::GivenReply;
use semel_gate::clock::{Clock, block_on};
use semel_ledger::memory::Fault;
use semel_ledger::store::PAGE_ROWS_MAX;
use semel_testkit::simulation::executor::Process;
use semel_testkit::simulation::holders::SharedHolders;
use std::sync::Arc;

fn wish(n: usize) -> Wish {
    Wish::consequential().with_arguments(&format!(r#"{{"args":{{"invoice":{n}}}}}"#)).in_run("a")
}

/// One mail to one person, in these words or others.
fn letter(body: &str) -> Wish {
    wish(100).with_arguments(&format!(r#"{{"args":{{"to":"ann@example.com","body":"{body}"}}}}"#))
}

/// A process whose gate has come to expect new calls: twenty were, which no other process has made.
fn expectant(house: &House, process: Process) -> Arc<TestGate> {
    expectant_with_holders(house, process).0
}

fn expectant_with_holders(house: &House, process: Process) -> (Arc<TestGate>, SharedHolders) {
    let (gate, holders) = house.process(process, Mode::Guard);
    let first = 1_000 * (process as usize - 1);
    for n in first..first + 20 {
        let passed = house.pass_delivered(&gate, &wish(n), &Script::succeeds());
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    }
    (gate, holders)
}

#[test]
fn a_call_that_is_taken_for_new_is_not_looked_up() {
    let (house, script) = (House::new(), Script::succeeds());
    let gate = expectant(&house, 1);
    house.memory.inject(Fault::NotRead);
    assert_eq!(house.pass(&gate, &wish(100), &script).answer.outcome, OutcomeWord::Ran);
    house.memory.recover();
    assert_eq!((script.sent(), house.effects().len()), (1, 21));
}

#[test]
fn a_repeat_that_was_taken_for_new_is_replayed_without_a_durable_commit() {
    let house = House::new();
    let gate = expectant(&house, 1);
    let (before, script) = (house.memory.durable_commits(), Script::succeeds());
    let passed = house.pass(&gate, &wish(3), &script);
    assert_eq!(passed.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(passed.reply, GivenReply::Recorded(b"reply 1".to_vec()));
    assert_eq!((house.memory.durable_commits(), script.sent()), (before, 0));
}

#[test]
fn a_repeat_is_replayed_also_while_nothing_can_be_written_or_started() {
    let house = House::new();
    let gate = expectant(&house, 1);
    house.memory.inject(Fault::NotWritten);
    let passed = house.pass(&gate, &wish(3), &Script::succeeds());
    assert_eq!(passed.answer.outcome, OutcomeWord::Replayed);
    let gate = expectant(&house, 2);
    let passed = house.pass(&gate, &wish(3), &Script::succeeds().cannot_be_prepared());
    assert_eq!(passed.answer.outcome, OutcomeWord::Replayed);
}

#[test]
fn a_repeat_is_replayed_also_where_no_lock_is_to_be_had_for_a_claim() {
    let house = House::new();
    let (gate, holders) = expectant_with_holders(&house, 1);
    holders.shut();
    holders.let_go();
    let script = Script::succeeds();
    assert_eq!(house.pass(&gate, &wish(3), &script).answer.outcome, OutcomeWord::Replayed);
    let refused = house.try_pass(&gate, &wish(100), &script);
    assert!(refused.is_err(), "what is new cannot be claimed: {refused:?}");
    assert_eq!(script.sent(), 0);
}

#[test]
fn a_repeat_does_not_wait_for_an_upstream_that_is_far_away() {
    let house = House::new();
    let gate = expectant(&house, 1);
    let script = Script::succeeds().far().before_the_claim(|| panic!("a repeat needs no upstream"));
    assert_eq!(house.pass(&gate, &wish(3), &script).answer.outcome, OutcomeWord::Replayed);
}

#[test]
fn a_twin_in_flight_is_joined_and_not_sent_beside() {
    let house = House::new();
    let gate = expectant(&house, 1);
    let script = Script::after(seconds(3), success());
    let calls: Vec<_> =
        (0..4).map(|_| house.start(1, call(&gate, &wish(100), &script, &house.clock))).collect();
    house.settle();
    calls.iter().for_each(|slot| assert!(take(slot).unwrap().answer.ok));
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_cancelled_run_starts_nothing_that_was_taken_for_new() {
    let (house, script) = (House::new(), Script::succeeds());
    let gate = expectant(&house, 1);
    block_on(gate.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap();
    let passed = house.pass(&gate, &wish(100), &script);
    assert_eq!((code(&passed), script.sent()), (Some(Code::Cancelled), 0));
}

#[test]
fn a_lookalike_of_a_doubt_is_held_also_where_it_was_taken_for_new() {
    let house = House::new();
    let gate = expectant(&house, 1);
    house.pass(&gate, &letter("Your order has shipped."), &Script::answers([unclear()]));
    let gate = expectant(&house, 2);
    let script = Script::succeeds();
    let passed = house.pass(&gate, &letter("Good news: it has shipped!"), &script);
    assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Held, 0));
}

/// More than a page of what a store gives at once.
#[test]
fn a_lookalike_of_a_doubt_is_held_however_many_others_are_in_doubt() {
    let house = House::new();
    let gate = house.gate();
    for n in 0..PAGE_ROWS_MAX {
        let doubted = house.pass(&gate, &wish(n), &Script::answers([unclear()]));
        assert_eq!(code(&doubted), Some(Code::InDoubt));
    }
    house.pass(&gate, &letter("Your order has shipped."), &Script::answers([unclear()]));
    let script = Script::succeeds();
    let passed = house.pass(&gate, &letter("Good news: it has shipped!"), &script);
    assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Held, 0));
}

#[test]
fn a_repeat_is_replayed_beside_a_doubt_that_looks_like_it() {
    let house = House::new();
    let gate = expectant(&house, 1);
    house.pass_delivered(&gate, &letter("Your order has shipped."), &Script::succeeds());
    house.pass(&gate, &letter("Good news: it has shipped!"), &Script::answers([unclear()]));
    let script = Script::succeeds();
    let held = house.pass(&gate, &letter("It is on its way."), &script);
    assert_eq!(held.answer.outcome, OutcomeWord::Held, "and now the gate knows that something is near");
    for _ in 0..3 {
        let replayed = house.pass(&gate, &letter("Your order has shipped."), &script);
        assert_eq!(replayed.answer.outcome, OutcomeWord::Replayed);
    }
    assert_eq!(script.sent(), 0);
}

#[test]
fn calls_of_another_process_in_flight_hold_nobody_and_its_death_does() {
    let house = House::new();
    let gate = expectant(&house, 1);
    let (other, holders) = house.process(2, Mode::Guard);
    let slow = Script::after(seconds(3600), success());
    let started = house.start(2, call(&other, &letter("Your order has shipped."), &slow, &house.clock));
    let script = Script::succeeds();
    let beside = letter("Good news: it has shipped!");
    let calls: Vec<_> = (0..3)
        .map(|n| {
            let wish = if n == 0 { beside.clone() } else { wish(200 + n) };
            house.start(1, call(&gate, &wish, &script, &house.clock))
        })
        .collect();
    house.settle();
    calls.iter().for_each(|slot| assert!(take(slot).unwrap().answer.ok));
    assert!(take(&started).unwrap().answer.ok);
    assert_eq!(script.sent(), 3);
    house.start(2, call(&other, &letter("Your parcel has arrived."), &slow, &house.clock));
    house.start(0, {
        let (orders, clock) = (house.orders.clone(), house.clock.clone());
        async move {
            clock.nap(seconds(1)).await;
            orders.kill(2);
            holders.let_go();
        }
    });
    house.settle();
    for wish in [letter("It has arrived!"), letter("Look at your door.")] {
        assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Held);
    }
    assert_eq!(script.sent(), 3);
}
