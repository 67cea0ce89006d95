//! Claims that clients take away, and what they bring back.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord};
use semel_core::class::Class;
use semel_core::outcome::Outcome;
use semel_core::policy::Mode;
use semel_gate::Gate;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::{ProbeAnswer, Sent};
use semel_gate::{BeginAnswer, ClaimHandle, ClaimHolder, GivenReply, Passed, SettleAnswer, Settlement};
use semel_ledger::memory::InjectedFault;
use semel_testkit::simulation::executor::Process;
use std::sync::Arc;

const ONE: Process = 1;

impl House {
    fn begin(&self, gate: &Arc<Gate>, wish: &Wish, nonce: u128) -> BeginAnswer {
        self.run(begin(gate, wish, nonce, &self.clock))
    }

    fn settle_with(&self, gate: &Arc<Gate>, taken: &ClaimHandle, outcome: Outcome) -> SettleAnswer {
        self.settle_saying(gate, taken, outcome, b"done")
    }

    fn settle_saying(
        &self,
        gate: &Arc<Gate>,
        taken: &ClaimHandle,
        outcome: Outcome,
        reply: &'static [u8],
    ) -> SettleAnswer {
        let (gate, taken) = (Arc::clone(gate), taken.clone());
        let ClaimHandle { effect, attempt, nonce, .. } = taken;
        let sent = Sent { reply: Some(reply.to_vec()), ..Sent::of(outcome) };
        let settlement = Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo: None };
        self.run(async move { gate.settle(settlement).await.expect("the ledger is well") })
    }
}

fn taken(begun: BeginAnswer) -> ClaimHandle {
    match begun {
        BeginAnswer::Run(taken) => *taken,
        other => panic!("{other:?}"),
    }
}

fn answered(begun: BeginAnswer) -> Passed {
    match begun {
        BeginAnswer::Answered(passed) => *passed,
        other => panic!("{other:?}"),
    }
}

fn recorded(settled: SettleAnswer) -> Passed {
    match settled {
        SettleAnswer::Recorded(passed) => *passed,
        other => panic!("{other:?}"),
    }
}

fn impatient(mut wish: Wish) -> Wish {
    wish.rule.wait = seconds(0);
    wish
}

#[test]
fn a_client_takes_the_claim_away_and_what_it_brings_answers_the_next() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    assert_eq!(house.effect().state.word(), "in flight");
    assert_eq!(code(&answered(house.begin(&gate, &wish, 8))), Some(Code::InFlight));
    let settled = recorded(house.settle_with(&gate, &claim, success()));
    assert!(settled.answer.ok && settled.answer.outcome == OutcomeWord::Ran);
    let next = answered(house.begin(&gate, &wish, 9));
    assert_eq!(next.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(next.reply, GivenReply::Recorded(b"done".to_vec()));
}

#[test]
fn a_twin_waits_for_what_the_client_brings() {
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    let twin = house.start(ONE, begin(&gate, &wish, 8, &house.clock));
    let settles = {
        let (gate, clock) = (Arc::clone(&gate), house.clock.clone());
        async move {
            clock.nap(seconds(3)).await;
            let ClaimHandle { effect, attempt, nonce, .. } = claim;
            let sent = Sent { reply: Some(b"done".to_vec()), ..Sent::of(success()) };
            gate.settle(Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo: None })
                .await
                .expect("the ledger is well")
        }
    };
    house.start(ONE, settles);
    house.settle();
    let twin = answered(take(&twin));
    assert_eq!(
        (twin.answer.outcome, twin.reply),
        (OutcomeWord::Joined, GivenReply::Recorded(b"done".to_vec()))
    );
}

#[test]
fn asking_again_with_the_same_nonce_gets_the_same_claim_and_no_other() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let asked: Vec<_> = (1..=4)
        .map(|n| house.start(n, begin(&house.process(n, Mode::Guard).0, &wish, 7, &house.clock)))
        .collect();
    house.settle();
    let claims: Vec<ClaimHandle> = asked.iter().map(|slot| taken(take(slot))).collect();
    assert!(claims.iter().all(|claim| *claim == claims[0]), "{claims:?}");
    assert_eq!(house.effect().attempts.len(), 1);
    let other = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    assert_ne!(taken(house.begin(&house.gate(), &other, 7)).effect, claims[0].effect);
}

#[test]
fn one_nonce_with_other_arguments_under_one_key_is_drift() {
    let (house, mut wish) = (House::new(), impatient(Wish::consequential()));
    wish.key = Some("order-1");
    let gate = house.gate();
    taken(house.begin(&gate, &wish, 7));
    let changed = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    assert_eq!(code(&answered(house.begin(&gate, &changed, 7))), Some(Code::Drift));
}

#[test]
fn what_is_never_brought_back_is_in_doubt_at_its_deadline_and_not_before() {
    let (house, mut wish) = (House::new(), impatient(Wish::consequential()));
    wish.rule.timeout = Some(seconds(60));
    let (gate, holders) = house.process(ONE, Mode::Guard);
    let claim = taken(house.begin(&gate, &wish, 7));
    // The server that handed it out dies; the client does not.
    holders.release_lock();
    let elsewhere = house.gate();
    house.wait(seconds(59));
    assert_eq!(code(&answered(house.begin(&elsewhere, &wish, 8))), Some(Code::InFlight));
    assert_eq!(taken(house.begin(&elsewhere, &wish, 7)), claim, "any server knows the claim");
    house.wait(seconds(2));
    assert_eq!(code(&answered(house.begin(&elsewhere, &wish, 7))), Some(Code::InDoubt));
    assert_eq!(house.effect().state.word(), "in doubt");
    let late = recorded(house.settle_with(&elsewhere, &claim, success()));
    assert!(late.answer.ok, "a late success is the truth all the same: {late:?}");
    assert_eq!(house.effect().state.word(), "applied");
}

#[test]
fn a_probes_no_is_not_believed_while_the_client_may_still_send() {
    let (house, mut wish) = (House::new(), impatient(Wish::probed()));
    wish.rule.timeout = Some(seconds(60));
    let (gate, holders) = house.process(ONE, Mode::Guard);
    taken(house.begin(&gate, &wish, 7));
    holders.release_lock();
    let elsewhere = house.gate();
    let script = Script::succeeds().probes(std::iter::repeat_n(ProbeAnswer::No, 9));
    house.wait(seconds(61));
    assert_eq!(
        code(&house.pass(&elsewhere, &wish, &script)),
        Some(Code::InDoubt),
        "its deadline was just now"
    );
    house.wait(seconds(5));
    assert!(house.pass(&elsewhere, &wish, &script).answer.ok);
    assert_eq!(script.sent(), 1);
}

#[test]
fn bringing_it_again_is_answered_alike_and_changes_nothing() {
    for outcome in [success(), refusal(), unclear()] {
        let (house, wish) = (House::new(), impatient(Wish::consequential()));
        let gate = house.gate();
        let claim = taken(house.begin(&gate, &wish, 7));
        let first = recorded(house.settle_with(&gate, &claim, outcome.clone()));
        let (state, lines) = (house.effect(), house.journal().len());
        let again = recorded(house.settle_with(&gate, &claim, outcome.clone()));
        assert_eq!(format!("{:?}", first.answer), format!("{:?}", again.answer));
        assert_eq!((house.effect(), house.journal().len()), (state, lines), "{outcome:?}");
    }
}

#[test]
fn a_success_is_not_taken_back_and_a_refusal_may_turn_out_to_be_one() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    recorded(house.settle_with(&gate, &claim, success()));
    assert!(matches!(house.settle_with(&gate, &claim, refusal()), SettleAnswer::Otherwise(_)));
    assert_eq!(house.effect().state.word(), "applied");
    let house = House::new();
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    recorded(house.settle_with(&gate, &claim, refusal()));
    recorded(house.settle_with(&gate, &claim, success()));
    assert_eq!((house.effect().state.word(), house.journaled("contradicted")), ("applied", 1));
}

#[test]
fn only_the_very_claim_settles() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    let forged = ClaimHandle { nonce: semel_core::ids::Nonce(8), ..claim.clone() };
    assert!(matches!(house.settle_with(&gate, &forged, success()), SettleAnswer::NoSuchClaim));
    let unknown = ClaimHandle { effect: semel_core::ids::EffectId(1), ..claim };
    assert!(matches!(house.settle_with(&gate, &unknown, success()), SettleAnswer::NoSuchClaim));
    assert_eq!(house.effect().state.word(), "in flight");
    // What a process sends itself cannot be settled from outside, whoever knows its nonce.
    let script = Script::after(seconds(9), success());
    let other = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let passes = house.start(ONE, call(&gate, &other, &script, &house.clock));
    let sniffs = {
        let (gate, clock, memory) = (Arc::clone(&gate), house.clock.clone(), Arc::clone(&house.memory));
        async move {
            use semel_ledger::store::{By, Store};
            clock.nap(seconds(3)).await;
            let page = memory.scan(By::All, None, 9).await.expect("the store is well");
            let row = page.items.into_iter().nth(1).expect("the second effect");
            let effect = semel_ledger::record::decode(row).effect;
            let open = effect.open_attempt().expect("it is in flight").clone();
            let sent = Sent::of(refusal());
            let settlement = Settlement {
                effect: effect.id,
                attempt: open.number,
                nonce: open.nonce,
                holder: ClaimHolder::Client,
                sent,
                undo: None,
            };
            gate.settle(settlement).await.expect("the ledger is well")
        }
    };
    let sniffed = house.start(ONE, sniffs);
    house.settle();
    assert!(matches!(take(&sniffed), SettleAnswer::NoSuchClaim));
    assert!(take(&passes).unwrap().answer.ok);
}

#[test]
fn after_a_refusal_the_next_claim_is_the_next_attempt_and_the_older_one_is_fenced() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let gate = house.gate();
    let first = taken(house.begin(&gate, &wish, 7));
    recorded(house.settle_with(&gate, &first, refusal()));
    let second = taken(house.begin(&gate, &wish, 8));
    assert_eq!((second.effect, second.attempt.0), (first.effect, 2));
    assert_eq!(second.idempotency_key, first.idempotency_key, "one per effect");
    recorded(house.settle_with(&gate, &second, success()));
    let late = recorded(house.settle_with(&gate, &first, success()));
    assert!(late.answer.reason.is_some_and(|reason| reason.contains("duplicate_detected")));
    assert_eq!(house.journaled("duplicate_detected"), 1);
}

/// It landed and its answer was lost, so it is tried again; and then its holder brings it once more.
#[test]
fn the_loudest_alarm_is_given_to_each_who_brings_the_answer_that_raised_it() {
    let (house, wish) = (House::new(), impatient(Wish::consequential()));
    let gate = house.gate();
    let first = taken(house.begin(&gate, &wish, 7));
    recorded(house.settle_with(&gate, &first, refusal()));
    let second = taken(house.begin(&gate, &wish, 8));
    recorded(house.settle_with(&gate, &second, success()));
    [InjectedFault::LandsUnanswered, InjectedFault::NotWritten]
        .into_iter()
        .for_each(|fault| house.memory.inject(fault));
    for brought in ["once", "again"] {
        let late = recorded(house.settle_with(&gate, &first, success()));
        let reason = late.answer.reason.unwrap_or_default();
        assert!(reason.contains("duplicate_detected"), "{brought}: {reason:?}");
    }
    assert_eq!(house.journaled("duplicate_detected"), 1);
}

/// It came while a newer attempt was in flight, of which nobody heard again, or nothing good.
#[test]
fn the_reply_of_an_older_attempt_is_kept() {
    for newer in [None, Some(refusal()), Some(unclear())] {
        let (house, mut wish) = (House::new(), impatient(Wish::keyed(seconds(24 * 3600))));
        wish.rule.timeout = Some(seconds(60));
        let gate = house.gate();
        let first = taken(house.begin(&gate, &wish, 7));
        house.wait(seconds(61));
        let second = taken(house.begin(&gate, &wish, 8));
        assert_eq!((second.effect, second.attempt.0), (first.effect, 2));
        house.settle_saying(&gate, &first, success(), b"charge 1");
        match newer.clone() {
            Some(outcome) => drop(house.settle_saying(&gate, &second, outcome, b"no")),
            None => house.wait(seconds(61)),
        }
        let next = answered(house.begin(&gate, &wish, 9));
        assert_eq!(next.reply, GivenReply::Recorded(b"charge 1".to_vec()), "{newer:?}");
        assert_eq!((next.answer.ok, next.answer.outcome), (true, OutcomeWord::Replayed), "{newer:?}");
    }
}

#[test]
fn a_cancelled_run_hands_out_nothing_and_is_not_drained_while_a_client_may_send() {
    let (house, wish) = (House::new(), impatient(Wish::consequential().in_run("r")));
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    let cancel = || {
        let now = house.clock.now();
        block_on(gate.ledger.cancel(TENANT, "r", false, None, now)).expect("the ledger is well")
    };
    let cancelled = cancel();
    assert_eq!((cancelled.in_flight.len(), cancelled.drained), (1, false));
    assert_eq!(code(&answered(house.begin(&gate, &wish, 7))), Some(Code::Cancelled));
    recorded(house.settle_with(&gate, &claim, success()));
    let cancelled = cancel();
    assert_eq!((cancelled.applied.len(), cancelled.drained), (1, true));
}

#[test]
fn a_record_that_has_gone_on_still_answers_who_brings_the_older_effect_again() {
    let (house, wish) = (House::new(), impatient(Wish::of(Class::Act)));
    let gate = house.gate();
    let first = taken(house.begin(&gate, &wish, 7));
    let settled = recorded(house.settle_with(&gate, &first, success()));
    let (delivery, marks) = (settled.delivery.clone().expect("a success"), Arc::clone(&gate));
    house.run(async move { marks.delivered(&delivery).await.expect("the ledger is well") });
    let second = taken(house.begin(&gate, &wish, 8));
    assert!(second.possible_repeat && second.effect != first.effect);
    let again = recorded(house.settle_with(&gate, &first, success()));
    assert_eq!(again.answer.effect_id, Some(first.effect));
    assert_eq!(house.journaled("late_answer"), 0, "it was no news");
    recorded(house.settle_with(&gate, &second, success()));
}

#[test]
fn reads_and_what_is_only_observed_are_handed_no_claim() {
    let house = House::new();
    assert!(matches!(house.begin(&house.gate(), &Wish::of(Class::Read), 7), BeginAnswer::Unrecorded));
    let (observing, _) = house.process(ONE, Mode::Observe);
    assert!(matches!(house.begin(&observing, &Wish::consequential(), 7), BeginAnswer::Unrecorded));
    assert!(house.effects().is_empty());
    assert_eq!(house.journaled("observed"), 1);
}

/// A request that a network has held up comes after its caller has sent it again, settled and gone.
#[test]
fn a_begin_that_arrives_after_its_settlement_gets_the_outcome_and_holds_up_nobody() {
    let (house, wish) = (House::new(), impatient(Wish::of(Class::Act)));
    let gate = house.gate();
    let claim = taken(house.begin(&gate, &wish, 7));
    let delivery = recorded(house.settle_with(&gate, &claim, success())).delivery.expect("a success");
    let marks = Arc::clone(&gate);
    house.run(async move { marks.delivered(&delivery).await.expect("the ledger is well") });
    let late = answered(house.begin(&gate, &wish, 7));
    assert_eq!(late.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(taken(house.begin(&gate, &wish, 8)).occurrence, 2, "another call of this class runs");
}
