//! Whatever happens, in whatever order.

use crate::scene::*;
use proptest::prelude::*;
use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::effect::{Effect, NotAppliedWhy, Reply, State, Verdict};
use semel_core::ids::AttemptNo;
use semel_core::lifecycle::{Alarm, Event, Lapse, next};
use semel_core::time::At;
use std::sync::Arc;
use std::time::Duration;

/// An event as a choice, so that it can speak of attempts that are there.
#[derive(Debug, Clone)]
enum Choice {
    Claim,
    Resend,
    Settle { which: usize, how: u8 },
    Lapse { died: bool },
    Gone { which: usize },
    Probe { yes: bool },
    Rule { applied: bool },
    Reopen,
    Confirm,
    Refute,
    Deliver,
    Release,
    Adopt,
    Forget,
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        3 => Just(Choice::Claim),
        3 => Just(Choice::Resend),
        6 => (0..6usize, 0..4u8).prop_map(|(which, how)| Choice::Settle { which, how }),
        3 => any::<bool>().prop_map(|died| Choice::Lapse { died }),
        1 => (0..6usize).prop_map(|which| Choice::Gone { which }),
        2 => any::<bool>().prop_map(|yes| Choice::Probe { yes }),
        2 => any::<bool>().prop_map(|applied| Choice::Rule { applied }),
        1 => Just(Choice::Reopen),
        1 => Just(Choice::Confirm),
        1 => Just(Choice::Refute),
        1 => Just(Choice::Deliver),
        1 => Just(Choice::Release),
        1 => Just(Choice::Adopt),
        1 => Just(Choice::Forget),
    ]
}

fn event(choice: &Choice, effect: &Effect, now: At) -> Event {
    let attempt = |which: usize| match effect.attempts.get(which % effect.attempts.len().max(1)) {
        Some(attempt) if which < 5 => attempt.number,
        _ => AttemptNo(1_000),
    };
    let (word, reply) = (EffectWord::Created, Reply::Unknown);
    let ruling = semel_core::effect::Ruling { at: now, ..ruling() };
    let new = semel_core::lifecycle::NewAttempt { at: now, ..new_attempt() };
    match *choice {
        Choice::Claim => Event::Claimed(new),
        Choice::Resend => Event::Resent(new),
        Choice::Settle { which, how } => {
            let outcome = match how {
                0 | 1 => success(),
                2 => refusal(),
                _ => unclear(),
            };
            Event::Settled { attempt: attempt(which), outcome, at: now }
        }
        Choice::Lapse { died: true } => Event::Lapsed { why: Lapse::HolderDied, at: now },
        Choice::Lapse { died: false } => Event::Lapsed { why: Lapse::DeadlinePassed, at: now },
        Choice::Gone { which } => Event::SenderGone { attempt: attempt(which), at: now },
        Choice::Probe { yes: true } => Event::ProbedYes { word, reply, at: now },
        Choice::Probe { yes: false } => Event::ProbedNo { quiet: QUIET, at: now },
        Choice::Rule { applied: true } => Event::RuledApplied { ruling, word, reply },
        Choice::Rule { applied: false } => Event::RuledNotApplied { ruling },
        Choice::Reopen => Event::Reopened { ruling },
        Choice::Confirm => Event::Confirmed,
        Choice::Refute => Event::Refuted { what: "404".into(), at: now },
        Choice::Deliver => Event::Delivered { at: now },
        Choice::Release => Event::RepeatPermitted { ruling },
        Choice::Adopt => Event::Adopted { reason: ruling.reason },
        Choice::Forget => Event::Forgotten { at: now, epoch: effect.epoch + 1 },
    }
}

fn tier() -> impl Strategy<Value = (Tier, Class)> {
    let tiers =
        prop_oneof![Just(Tier::Opaque), Just(Tier::Probed), Just(Tier::Keyed), Just(Tier::Convergent)];
    (tiers, prop_oneof![Just(Class::Consequential), Just(Class::Act), Just(Class::Generate)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_sequence_of_events_breaks_the_rules(
        (tier, class) in tier(),
        steps in prop::collection::vec((choice(), 0..20_000u64), 1..40),
    ) {
        let mut effect = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
        let facts = Arc::make_mut(&mut effect.facts);
        (facts.tier, facts.class) = (tier, class);
        let mut now = CLAIMED;
        for (choice, millis) in &steps {
            now = now.plus(Duration::from_millis(*millis));
            let event = event(choice, &effect, now);
            let Ok(step) = next(&effect, &event) else { continue };
            check(&effect, &event, &step.effect, step.alarm)?;
            effect = step.effect;
        }
    }
}

fn check(before: &Effect, event: &Event, after: &Effect, alarm: Option<Alarm>) -> Result<(), TestCaseError> {
    // Numbers only grow, and one attempt at most is open: the one in flight.
    let numbers: Vec<u32> = after.attempts.iter().map(|attempt| attempt.number.0).collect();
    prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    let open: Vec<AttemptNo> =
        after.attempts.iter().filter(|a| a.verdict == Verdict::Open).map(|a| a.number).collect();
    match after.state {
        State::InFlight { attempt } => prop_assert_eq!(open, vec![attempt]),
        _ => prop_assert!(open.is_empty(), "{open:?} with {:?}", after.state),
    }

    // What happened stays so, unless a confirm disproves it or a ruling is taken back.
    if matches!(before.state, State::Applied(_)) && !matches!(after.state, State::Applied(_)) {
        prop_assert!(matches!(event, Event::Refuted { .. } | Event::Reopened { .. }), "{event:?}");
    }

    // Nothing becomes free to run again without proof.
    let free = |state: &State| matches!(state, State::NotApplied(not) if !matches!(not.why, NotAppliedWhy::Refuted(_)));
    if free(&after.state) && !free(&before.state) {
        match event {
            Event::Settled { .. } => {
                prop_assert!(after.attempts.iter().all(|attempt| attempt.verdict == Verdict::NotApplied));
            }
            Event::ProbedNo { quiet, at } => prop_assert!(before.may_believe_no(*quiet, *at)),
            Event::RuledNotApplied { .. } => {}
            other => prop_assert!(false, "{other:?} made it free"),
        }
    }

    // Any success makes it applied, as soon as no attempt is in flight.
    let succeeded = after.attempts.iter().any(|attempt| attempt.verdict == Verdict::Applied);
    if succeeded && !matches!(after.state, State::InFlight { .. }) {
        prop_assert!(matches!(after.state, State::Applied(_)), "{:?}", after);
    }

    // The loudest alarm has its reason.
    if alarm == Some(Alarm::DuplicateDetected) {
        let successes = after.attempts.iter().filter(|attempt| attempt.verdict == Verdict::Applied).count();
        prop_assert!(successes > 1);
        prop_assert!(!matches!(after.facts.tier, Tier::Keyed | Tier::Convergent));
        prop_assert!(!matches!(after.facts.class, Class::Convergent | Class::Generate));
    }

    // A delivered mark is on an applied effect alone, and does not move.
    if after.delivered_at.is_some() && before.delivered_at.is_some() {
        prop_assert_eq!(after.delivered_at, before.delivered_at);
    }

    // What is written reads back.
    let text = serde_json::to_vec(after).expect("an effect is written");
    prop_assert_eq!(&serde_json::from_slice::<Effect>(&text).expect("and reads back"), after);
    Ok(())
}
