//! Claims that landed and were never heard of: nobody holds their attempts, and nobody will send them.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::effect::Verdict;
use semel_core::json::Path;
use semel_core::policy::Mode;
use semel_core::policy::rule::CallerKey;
use semel_gate::clock::{Clock, block_on};
use semel_ledger::memory::InjectedFault;
use std::sync::Arc;

const ONE: u32 = 1;
const TWO: u32 = 2;

fn verdicts(house: &House) -> Vec<Verdict> {
    house.effect().attempts.iter().map(|attempt| attempt.verdict).collect()
}

/// A call whose claim landed, and which was told that nobody knows.
fn lose_claim(house: &House, gate: &Arc<semel_gate::Gate>, wish: &Wish) {
    let script = Script::succeeds();
    [InjectedFault::LandsUnanswered, InjectedFault::NotWritten]
        .into_iter()
        .for_each(|fault| house.memory.inject(fault));
    house.try_pass(gate, wish, &script).expect_err("nobody knows whether its claim landed");
    assert_eq!((script.sent(), verdicts(house)), (0, vec![Verdict::Open]));
}

#[test]
fn a_claim_that_nobody_holds_is_never_sent_and_its_retry_runs() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    lose_claim(&house, &gate, &wish);
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Ran);
    assert_eq!(script.sent(), 1);
    assert_eq!(verdicts(&house), [Verdict::NotApplied, Verdict::Applied]);
}

#[test]
fn other_processes_need_not_wait_for_a_claim_that_nobody_holds() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.process(ONE, Mode::Guard).0;
    lose_claim(&house, &gate, &wish);
    house.run(async move { gate.settle_pending().await });
    let other = house.process(TWO, Mode::Guard).0;
    assert_eq!(house.pass(&other, &wish, &script).answer.outcome, OutcomeWord::Ran);
    assert_eq!((script.sent(), verdicts(&house)), (1, vec![Verdict::NotApplied, Verdict::Applied]));
}

/// Its commit was answered with a conflict, because what it wrote beside the record had moved on meanwhile.
#[test]
fn a_claim_that_conflicts_with_itself_is_never_sent() {
    let (house, script) = (House::new(), Script::succeeds());
    let mut wish = Wish { key: Some("sdk-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let (other, alias) = (house.process(TWO, Mode::Guard).0, wish.intent().alias.expect("it joins"));
    house.memory.inject(InjectedFault::LandsUnanswered);
    house.after_next_commit(move || {
        let (seen, to) = block_on(other.ledger.alias(alias)).expect("the store is well");
        block_on(other.ledger.remember_alias(alias, seen, &to.expect("it was claimed"))).expect("it is well");
    });
    assert_eq!(house.pass(&house.gate(), &wish, &script).answer.outcome, OutcomeWord::Ran);
    assert_eq!((script.sent(), verdicts(&house)), (1, vec![Verdict::NotApplied, Verdict::Applied]));
}

#[test]
fn a_claim_whose_caller_gave_up_waiting_for_it_is_never_sent() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.holds_commits()();
    let (orders, clock) = (house.orders.clone(), house.clock.clone());
    house.start(ONE, call(&gate, &wish, &script, &house.clock));
    house.start(0, async move {
        clock.nap(seconds(1)).await;
        orders.kill(ONE);
    });
    house.settle();
    let held = house.answers_again();
    house.lands_late(held);
    assert_eq!((script.sent(), verdicts(&house)), (0, vec![Verdict::Open]));
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Ran);
    assert_eq!((script.sent(), verdicts(&house)), (1, vec![Verdict::NotApplied, Verdict::Applied]));
}

#[test]
fn a_call_that_was_dropped_after_it_had_sent_is_not_called_never_sent() {
    let (house, wish) = (House::new(), Wish::consequential());
    let (gate, slow, twin) = (house.gate(), Script::after(seconds(60), success()), Script::succeeds());
    let (orders, clock) = (house.orders.clone(), house.clock.clone());
    house.start(ONE, call(&gate, &wish, &slow, &house.clock));
    house.start(0, async move {
        clock.nap(seconds(1)).await;
        orders.kill(ONE);
    });
    house.settle();
    assert_eq!(slow.sent(), 1);
    assert_eq!(code(&house.pass(&gate, &wish, &twin)), Some(Code::InFlight));
    assert_eq!((twin.sent(), verdicts(&house)), (0, vec![Verdict::Open]));
}

/// A program that ends says so of what it has not sent, and not that it is in doubt.
#[test]
fn the_last_words_of_a_process_tell_never_sent_from_in_doubt() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let (gate, holders) = house.process(ONE, Mode::Guard);
    lose_claim(&house, &gate, &wish);
    assert_eq!(block_on(gate.ledger.lapse_own(house.clock.now())).unwrap(), 0, "none is in doubt");
    holders.release_lock();
    let passed = house.pass(&house.process(TWO, Mode::Guard).0, &wish, &script);
    assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Ran, 1));
}
