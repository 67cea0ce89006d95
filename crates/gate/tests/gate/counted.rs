//! What was asked, sent and saved, counted beside the world's own count.

use crate::house::*;
use semel_core::class::Class;
use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::{Clock, block_on};
use semel_gate::counts::{Counter, DoorKind, Usage};
use semel_ledger::counts::{CountKey, Day};
use semel_ledger::memory::InjectedFault;
use std::sync::Arc;

fn counted(gate: &Gate, counter: Counter) -> u64 {
    gate.counts.total(DoorKind::Fn, counter)
}

fn all(gate: &Gate, counters: &[Counter]) -> Vec<u64> {
    counters.iter().map(|counter| counted(gate, *counter)).collect()
}

#[test]
fn nine_calls_and_one_effect_are_counted_as_such() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(3), success());
    let gate = house.gate();
    let calls: Vec<_> = (0..4).map(|_| house.start(1, call(&gate, &wish, &script, &house.clock))).collect();
    house.settle();
    calls.iter().for_each(|slot| assert!(take(slot).unwrap().answer.ok));
    for _ in 0..5 {
        house.pass_delivered(&gate, &wish, &script);
    }
    use Counter::{Applied, Asked, InDoubt, Joined, Ran, Replayed, Sent};
    assert_eq!(all(&gate, &[Asked, Sent, Applied, Ran, Joined, Replayed, InDoubt]), [9, 1, 1, 1, 3, 5, 0]);
    assert_eq!(counted(&gate, Sent), script.sent() as u64, "the upstream's own count");
    assert_eq!(counted(&gate, Counter::Agent), 8);
}

#[test]
fn doubts_refusals_and_what_the_ledger_cannot_answer_are_counted() {
    use Counter::{Applied, Asked, Held, InDoubt, NotApplied, Ran, Refused, Sent};
    let (house, wish) = (House::new(), Wish::probed());
    let gate = house.gate();
    let script = Script::answers([unclear()]).probes([yes()]);
    house.pass(&gate, &wish, &script);
    assert_eq!(all(&gate, &[Asked, Sent, InDoubt, Applied, Ran]), [1, 1, 1, 1, 1], "a probe cleared it");
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    let script = Script::answers([refusal(), unclear()]);
    house.pass(&gate, &wish, &script);
    house.pass(&gate, &wish, &script);
    house.pass(&gate, &wish, &script);
    assert_eq!(all(&gate, &[Asked, Sent, NotApplied, InDoubt, Held]), [3, 2, 1, 1, 1]);
    house.memory.inject(InjectedFault::NotRead);
    assert!(house.try_pass(&gate, &wish, &script).is_err());
    assert_eq!(all(&gate, &[Asked, Refused, Sent]), [4, 1, 2]);
}

#[test]
fn a_deadline_that_passes_and_a_holder_that_dies_are_counted_as_doubts() {
    use Counter::{Applied, Held, InDoubt, Ran, Sent};
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.timeout = Some(seconds(5));
    let (gate, script) = (house.gate(), Script::after(seconds(30), success()));
    let slow = house.start(1, call(&gate, &wish, &script, &house.clock));
    let twin = house.start(2, {
        let (clock, call) = (house.clock.clone(), call(&gate, &wish, &script, &house.clock));
        async move {
            clock.nap(seconds(10)).await;
            call.await
        }
    });
    house.settle();
    assert!(!take(&twin).unwrap().answer.ok && take(&slow).unwrap().answer.ok);
    assert_eq!(
        all(&gate, &[Sent, Ran, Held, InDoubt, Applied]),
        [1, 1, 1, 1, 1],
        "its late answer cleared it"
    );
    assert_eq!(script.sent(), 1);
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::after(seconds(30), success()));
    let (dies, holders) = house.process(1, Mode::Guard);
    house.start(1, call(&dies, &wish, &script, &house.clock));
    house.dies_after(seconds(1), 1, holders);
    house.settle();
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    house.pass(&gate, &wish, &script);
    assert_eq!(all(&gate, &[InDoubt, Held, Sent]), [1, 2, 0], "whoever writes it down counts it, once");
}

#[test]
fn who_repeats_is_told_apart() {
    use Counter::{Agent, Process, Sdk, Transport};
    let (house, mut wish) = (House::new(), Wish::of(Class::Act));
    wish.call_id = Some("call_1");
    let (gate, script) = (house.gate(), Script::succeeds());
    house.pass_delivered(&gate, &wish, &script);
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(all(&gate, &[Transport, Sdk, Agent, Process]), [1, 0, 0, 0], "the same call id came again");
    wish.call_id = None;
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(all(&gate, &[Transport, Sdk, Agent, Process]), [1, 0, 1, 0], "it ran, and may be a repeat");
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(3), success());
    let gates = [1, 2].map(|process| house.process(process, Mode::Guard).0);
    let calls = [1, 2].map(|n| house.start(n as _, call(&gates[n - 1], &wish, &script, &house.clock)));
    house.settle();
    calls.iter().for_each(|slot| assert!(take(slot).unwrap().answer.ok));
    assert_eq!(gates.iter().map(|gate| counted(gate, Process)).sum::<u64>(), 1);
    // What a door knows better is believed.
    let gate = house.gate();
    let mut intent = wish.intent();
    intent.metadata.retries = 1;
    let (passing, rule, clock) = (Arc::clone(&gate), wish.rule.clone(), house.clock.clone());
    house.run(async move {
        let mut upstream = actor(&Script::succeeds(), &clock);
        passing.pass(&intent, &rule, &mut upstream).await.expect("the ledger is well");
    });
    assert_eq!(all(&gate, &[Sdk, Agent]), [1, 0]);
}

#[test]
fn claims_that_clients_take_away_are_counted_too() {
    use Counter::{Applied, Asked, Ran, Replayed, Sent};
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    house.run(begin(&gate, &wish, 7, &house.clock));
    house.run(begin(&gate, &wish, 7, &house.clock));
    assert_eq!(all(&gate, &[Asked, Ran, Sent, Replayed, Applied]), [2, 1, 1, 1, 0]);
}

#[test]
fn counts_of_all_processes_add_up_in_the_ledger_without_a_durable_write() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gates = [1, 2, 3].map(|process| house.process(process, Mode::Guard).0);
    for gate in &gates {
        house.pass_delivered(gate, &wish, &script);
    }
    let before = house.memory.durable_commits();
    gates[0].counts.used(TENANT, Usage { input_tokens: 10, output_tokens: 2, cost_nanos: 5 });
    for gate in &gates {
        block_on(gate.write_counts()).expect("the store is well");
        block_on(gate.write_counts()).expect("nothing is new, so nothing is written");
    }
    assert_eq!(house.memory.durable_commits(), before);
    let day = Day::of(house.clock.now());
    let ledger = &house.gate().ledger;
    let tally =
        block_on(ledger.counts(CountKey { tenant: TENANT, door: "fn", day })).expect("the store is well");
    assert_eq!((tally["asked"], tally["sent"], tally["replayed"]), (3, 1, 2));
    assert_eq!(block_on(ledger.total("fn")).expect("the store is well"), tally);
    house.wait(seconds(2 * 86_400));
    house.pass_delivered(&gates[0], &wish, &script);
    block_on(gates[0].write_counts()).expect("the store is well");
    let total = block_on(ledger.total("fn")).expect("the store is well");
    assert_eq!((total["asked"], total["sent"]), (4, script.sent() as u64), "whatever the day");
    let tally =
        block_on(ledger.counts(CountKey { tenant: TENANT, door: "llm", day })).expect("the store is well");
    assert_eq!((tally["input_tokens"], tally["cost_nanos"]), (10, 5));
    let counted = block_on(ledger.counted()).expect("the store is well");
    assert_eq!(counted, [("tenant".to_owned(), "fn".to_owned()), ("tenant".to_owned(), "llm".to_owned())]);
}

#[test]
fn counts_that_could_not_be_written_are_written_the_next_time() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    house.memory.inject(InjectedFault::NotWritten);
    assert!(block_on(gate.write_counts()).is_err());
    block_on(gate.write_counts()).expect("the store is well again");
    let under = CountKey { tenant: TENANT, door: "fn", day: Day::of(house.clock.now()) };
    assert_eq!(block_on(gate.ledger.counts(under)).expect("the store is well")["asked"], 1);
}
