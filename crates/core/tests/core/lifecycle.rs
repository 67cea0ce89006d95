//! Every pair of state and event, as `spec/lifecycle.md` tables them.

use crate::scene::*;
use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::effect::{
    ATTEMPTS_KEPT, CLOCKS_DIFFER_MAX, Doubt, Effect, Evidence, InDoubt, LastSend, NotAppliedWhy, Reply,
    SEND_WITHIN, State, Verdict,
};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::lifecycle::{Alarm, Event, Lapse, keep_undo, next};
use semel_core::time::{At, Uptime};
use semel_core::undo::{Undo, UndoCall, Undone};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const SPEC: &str = include_str!("../../../../spec/lifecycle.md");

/// The columns of the table, and for each one every kind of effect that stands in it.
fn columns() -> Vec<(&'static str, Vec<Effect>)> {
    use Verdict::{Applied, NotApplied, Open, Unproven};
    let flight = |attempt: u32| State::InFlight { attempt: AttemptNo(attempt) };
    let doubt = |why: Doubt| State::InDoubt(InDoubt { since: after(Duration::from_secs(1)), why });
    let refused = NotAppliedWhy::Refused("declined".into());
    let not_applied_ones = [
        refused,
        NotAppliedWhy::Reported("exit 1".into()),
        NotAppliedWhy::NeverSent("no route".into()),
        NotAppliedWhy::AwaitingInput,
        NotAppliedWhy::Cancelled,
        NotAppliedWhy::Probed,
    ];
    let doubts = [
        Doubt::HolderDied,
        Doubt::HolderSilent,
        Doubt::DeadlinePassed,
        Doubt::Ambiguous("502".into()),
        Doubt::Epoch,
        Doubt::Reopened(reason("a mistake")),
        Doubt::WrittenByNewer,
        Doubt::Damaged,
    ];
    let by_answer = [Evidence::Accepted, Evidence::Reported, Evidence::Confirmed];
    vec![
        ("in flight", vec![effect(flight(1), &[Open])]),
        ("in flight, earlier unproven", vec![effect(flight(2), &[Unproven, Open])]),
        ("in flight, earlier success", vec![effect(flight(2), &[Applied, Open])]),
        (
            "applied",
            by_answer.map(|evidence| effect(applied(evidence, Some(2)), &[Unproven, Applied])).into(),
        ),
        ("applied, probed", vec![effect(applied(Evidence::Probed, None), &[Unproven, Unproven])]),
        ("applied, ruled", vec![effect(applied(Evidence::Ruled, None), &[Unproven, Unproven])]),
        (
            "not applied",
            not_applied_ones.map(|why| effect(not_applied(why), &[NotApplied, NotApplied])).into(),
        ),
        ("not applied, ruled", vec![effect(not_applied(NotAppliedWhy::Ruled), &[NotApplied, NotApplied])]),
        ("refuted", vec![effect(not_applied(NotAppliedWhy::Refuted("404".into())), &[Unproven, NotApplied])]),
        ("in doubt", doubts.map(|why| effect(doubt(why), &[Unproven, Unproven])).into()),
        ("forgotten", vec![effect(doubt(Doubt::Epoch), &[])]),
    ]
}

/// The rows of the table. The newest attempt is the last of the effect's own; the older one is the first of two.
fn event(row: &str, effect: &Effect) -> Event {
    let newest = effect.newest_attempt().map_or(AttemptNo(1), |attempt| attempt.number);
    let older = match effect.attempts.len() {
        2 => AttemptNo(1),
        _ => AttemptNo(77),
    };
    let settled = |attempt, outcome| Event::Settled { attempt, outcome, at: late() };
    let (word, reply) = (EffectWord::Created, Reply::Unknown);
    match row {
        "claimed" => Event::Claimed(new_attempt()),
        "resent" => Event::Resent(new_attempt()),
        "newest attempt settled applied" => settled(newest, success()),
        "newest attempt settled not applied" => settled(newest, refusal()),
        "newest attempt settled in doubt" => settled(newest, unclear()),
        "older attempt settled applied" => settled(older, success()),
        "older attempt settled not applied" => settled(older, refusal()),
        "older attempt settled in doubt" => settled(older, unclear()),
        "unknown attempt settled" => settled(AttemptNo(77), success()),
        "lapsed, holder died" => Event::Lapsed { why: Lapse::HolderDied, at: late() },
        "lapsed, holder silent" => Event::Lapsed { why: Lapse::HolderSilent, at: late() },
        "lapsed, deadline passed" => Event::Lapsed { why: Lapse::DeadlinePassed, at: late() },
        "sender gone" => Event::SenderGone { attempt: newest, at: late() },
        "sender of an unknown attempt gone" => Event::SenderGone { attempt: AttemptNo(77), at: late() },
        "probed yes" => Event::ProbedYes { word, reply, at: late() },
        "probed no, counted" => Event::ProbedNo { quiet: QUIET, at: late() },
        "probed no, too early" => Event::ProbedNo { quiet: QUIET, at: CLAIMED },
        "ruled applied" => Event::RuledApplied { ruling: ruling(), word, reply },
        "ruled not applied" => Event::RuledNotApplied { ruling: ruling() },
        "reopened" => Event::Reopened { ruling: ruling() },
        "confirmed" => Event::Confirmed,
        "refuted" => Event::Refuted { what: "404".into(), at: late() },
        "delivered" => Event::Delivered { at: late() },
        "undone" => Event::Undone(Undone { by: EffectId(7), at: late() }),
        "released" => Event::RepeatPermitted { ruling: ruling() },
        "adopted" => Event::Adopted { reason: reason("once more") },
        "forgotten" => Event::Forgotten { at: late(), epoch: 1 },
        other => panic!("no event for the row {other:?}"),
    }
}

/// The table of the specification: (event, column) to its cell. An empty cell refuses.
fn table() -> BTreeMap<(String, String), String> {
    let after_mark =
        SPEC.split("<!-- the tests of the core read this table -->").nth(1).expect("the table is there");
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = after_mark.trim_start().lines().take_while(|line| line.starts_with('|'));
    let head = cells(lines.next().expect("a table has a head"));
    let mut table = BTreeMap::new();
    for row in lines.skip(1).map(cells) {
        assert_eq!(row.len(), head.len(), "a row of the table is short: {row:?}");
        for (column, cell) in head.iter().zip(&row).skip(1) {
            let cell = if cell.is_empty() { "refused" } else { cell };
            let twice = table.insert((row[0].clone(), column.clone()), cell.to_owned());
            assert_eq!(twice, None, "{} stands twice in the table", row[0]);
        }
    }
    table
}

#[test]
fn every_pair_of_state_and_event_does_what_the_specification_says() {
    let columns: BTreeMap<_, _> = columns().into_iter().collect();
    for ((row, column), expected) in table() {
        let effects =
            columns.get(column.as_str()).unwrap_or_else(|| panic!("no effect for the column {column:?}"));
        for effect in effects {
            let step = next(effect, &event(&row, effect));
            let got = match &step {
                Err(_) => "refused",
                Ok(step) if step.effect.state == effect.state => "noted",
                Ok(step) => step.effect.state.word(),
            };
            // A confirm of what is confirmed gives the same state again.
            let same = got == "noted" && expected == effect.state.word();
            assert!(got == expected || same, "{row} on {column} ({:?}): {got}, not {expected}", effect.state);
        }
    }
}

#[test]
fn the_table_leaves_out_no_event_and_no_kind_of_state() {
    let table = table();
    let columns = columns();
    let rows: BTreeSet<&str> = table.keys().map(|(row, _)| row.as_str()).collect();
    for (column, _) in &columns {
        for row in &rows {
            assert!(
                table.contains_key(&((*row).to_owned(), (*column).to_owned())),
                "{row} on {column} is missing"
            );
        }
    }
    assert_eq!(table.len(), rows.len() * columns.len());

    let events: BTreeSet<&'static str> = rows
        .iter()
        .flat_map(|row| {
            columns.iter().flat_map(|(_, effects)| effects).map(|effect| event(row, effect).word())
        })
        .collect();
    assert_eq!(events, EVENT_WORDS.into_iter().collect(), "an event is in no row");

    let kinds: BTreeSet<&'static str> =
        columns.iter().flat_map(|(_, effects)| effects).map(|effect| kind(&effect.state)).collect();
    assert_eq!(kinds, KINDS.into_iter().collect(), "a kind of state is in no column");
}

const EVENT_WORDS: [&str; 19] = [
    "claimed",
    "resent",
    "settled_applied",
    "settled_not_applied",
    "settled_in_doubt",
    "lapsed",
    "sender_gone",
    "probed_yes",
    "probed_no",
    "ruled_applied",
    "ruled_not_applied",
    "reopened",
    "confirmed",
    "refuted",
    "delivered",
    "forgotten",
    "undone",
    "released",
    "adopted",
];

const KINDS: [&str; 22] = [
    "in doubt: damaged",
    "in flight",
    "accepted",
    "reported",
    "probed",
    "ruled",
    "confirmed",
    "not applied: refused",
    "not applied: reported",
    "not applied: never sent",
    "not applied: awaiting input",
    "not applied: cancelled",
    "not applied: probed",
    "not applied: ruled",
    "not applied: refuted",
    "in doubt: holder died",
    "in doubt: holder silent",
    "in doubt: deadline passed",
    "in doubt: ambiguous",
    "in doubt: epoch",
    "in doubt: reopened",
    "in doubt: written by newer",
];

/// Without a last arm, so that a new kind must be named here, and then tabled.
fn kind(state: &State) -> &'static str {
    match state {
        State::InFlight { .. } => "in flight",
        State::Applied(applied) => applied.evidence.word(),
        State::NotApplied(not_applied) => match not_applied.why {
            NotAppliedWhy::Refused(_) => "not applied: refused",
            NotAppliedWhy::Reported(_) => "not applied: reported",
            NotAppliedWhy::NeverSent(_) => "not applied: never sent",
            NotAppliedWhy::AwaitingInput => "not applied: awaiting input",
            NotAppliedWhy::Cancelled => "not applied: cancelled",
            NotAppliedWhy::Probed => "not applied: probed",
            NotAppliedWhy::Ruled => "not applied: ruled",
            NotAppliedWhy::Refuted(_) => "not applied: refuted",
        },
        State::InDoubt(doubt) => match doubt.why {
            Doubt::HolderDied => "in doubt: holder died",
            Doubt::HolderSilent => "in doubt: holder silent",
            Doubt::DeadlinePassed => "in doubt: deadline passed",
            Doubt::Ambiguous(_) => "in doubt: ambiguous",
            Doubt::Epoch => "in doubt: epoch",
            Doubt::Reopened(_) => "in doubt: reopened",
            Doubt::WrittenByNewer => "in doubt: written by newer",
            Doubt::Damaged => "in doubt: damaged",
        },
    }
}

fn doubtful(verdicts: &[Verdict]) -> Effect {
    let since = after(Duration::from_secs(1));
    effect(State::InDoubt(InDoubt { since, why: Doubt::HolderDied }), verdicts)
}

#[test]
fn a_refusal_names_state_and_event() {
    let in_flight = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
    let refusal = next(&in_flight, &Event::Confirmed).unwrap_err();
    assert_eq!(refusal.to_string(), "an effect that is in flight cannot be confirmed");
}

#[test]
fn the_next_attempt_gets_the_next_number_and_its_own_marks() {
    let refused = effect(not_applied(NotAppliedWhy::Refused("no".into())), &[Verdict::NotApplied]);
    let new = semel_core::lifecycle::NewAttempt { marks: marks(2), ..new_attempt() };
    let step = next(&refused, &Event::Claimed(new)).unwrap();
    assert_eq!(step.effect.state, State::InFlight { attempt: AttemptNo(2) });
    assert_eq!(step.effect.marks, marks(2));
    assert!(!step.effect.newest_attempt().unwrap().resend);
    let step = next(&doubtful(&[Verdict::Unproven]), &Event::Resent(new_attempt())).unwrap();
    assert!(step.effect.newest_attempt().unwrap().resend);
    assert_eq!(step.effect.resends(), 1);
}

#[test]
fn a_late_refusal_proves_its_attempt_and_leaves_the_doubt() {
    let doubt = doubtful(&[Verdict::Unproven]);
    let settled = Event::Settled { attempt: AttemptNo(1), outcome: refusal(), at: late() };
    let step = next(&doubt, &settled).unwrap();
    assert_eq!(step.effect.state, doubt.state);
    assert_eq!(step.effect.attempts[0].verdict, Verdict::NotApplied);
}

#[test]
fn a_late_failure_overwrites_no_success() {
    let done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    for outcome in [refusal(), unclear()] {
        let step = next(&done, &Event::Settled { attempt: AttemptNo(1), outcome, at: late() }).unwrap();
        assert_eq!(step.effect.state, done.state);
        assert_eq!(step.effect.attempts[0].verdict, Verdict::Applied);
    }
}

#[test]
fn two_successes_raise_the_alarm_where_they_are_two_effects_in_the_world() {
    let tiers = [Tier::Opaque, Tier::Probed, Tier::Keyed, Tier::Transactional, Tier::Convergent];
    for (tier, class) in tiers.into_iter().flat_map(|tier| Class::ALL.map(|class| (tier, class))) {
        let mut done = effect(applied(Evidence::Reported, Some(2)), &[Verdict::Unproven, Verdict::Applied]);
        let facts = Arc::make_mut(&mut done.facts);
        (facts.tier, facts.class) = (tier, class);
        let late_success = Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() };
        let alarm = next(&done, &late_success).unwrap().alarm;
        let harmless = matches!(tier, Tier::Keyed | Tier::Convergent)
            || matches!(class, Class::Convergent | Class::Generate);
        assert_eq!(alarm, (!harmless).then_some(Alarm::DuplicateDetected), "{tier:?} {class:?}");
    }
}

#[test]
fn a_success_of_what_did_not_happen_is_applied_and_contradicts() {
    let denied = effect(not_applied(NotAppliedWhy::Probed), &[Verdict::NotApplied]);
    let step =
        next(&denied, &Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() }).unwrap();
    assert_eq!(step.effect.state.word(), "applied");
    assert_eq!(step.alarm, Some(Alarm::Contradicted));
}

#[test]
fn a_late_success_gives_a_probed_one_its_reply_and_keeps_its_evidence() {
    let probed = effect(applied(Evidence::Probed, None), &[Verdict::Unproven]);
    let step =
        next(&probed, &Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() }).unwrap();
    let State::Applied(applied) = &step.effect.state else { panic!("{:?}", step.effect.state) };
    assert_eq!(
        (applied.by, applied.reply, applied.evidence),
        (Some(AttemptNo(1)), Reply::Kept, Evidence::Probed)
    );
    assert_eq!(step.alarm, None);
}

#[test]
fn an_older_success_waits_for_the_attempt_in_flight_and_then_counts() {
    let resent = effect(State::InFlight { attempt: AttemptNo(2) }, &[Verdict::Unproven, Verdict::Open]);
    let noted =
        next(&resent, &Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() }).unwrap();
    assert_eq!(noted.effect.state, resent.state);
    for event in [
        Event::Settled { attempt: AttemptNo(2), outcome: refusal(), at: late() },
        Event::Settled { attempt: AttemptNo(2), outcome: unclear(), at: late() },
        Event::Lapsed { why: Lapse::HolderDied, at: late() },
    ] {
        let State::Applied(applied) = next(&noted.effect, &event).unwrap().effect.state else {
            panic!("{event:?}")
        };
        assert_eq!(applied.by, Some(AttemptNo(1)));
    }
}

#[test]
fn a_refuted_success_takes_part_in_no_join_any_more() {
    let mut done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    done.delivered_at = Some(late());
    let refuted = next(&done, &Event::Refuted { what: "404".into(), at: late() }).unwrap().effect;
    assert_eq!(refuted.delivered_at, None);
    let ruled = next(&refuted, &Event::RuledNotApplied { ruling: ruling() }).unwrap().effect;
    let again = next(&ruled, &Event::Claimed(new_attempt())).unwrap().effect;
    let settled = |outcome| Event::Settled { attempt: AttemptNo(2), outcome, at: late() };
    assert_eq!(next(&again, &settled(refusal())).unwrap().effect.state.word(), "not applied");
    let success = next(&again, &settled(success())).unwrap();
    assert_eq!((success.effect.state.word(), success.alarm), ("applied", None));
}

#[test]
fn reopening_makes_attempts_unproven_and_the_answer_undelivered() {
    let mut ruled = effect(not_applied(NotAppliedWhy::Ruled), &[Verdict::NotApplied]);
    ruled.delivered_at = Some(late());
    let step = next(&ruled, &Event::Reopened { ruling: ruling() }).unwrap();
    assert_eq!(step.effect.attempts[0].verdict, Verdict::Unproven);
    assert_eq!(step.effect.delivered_at, None);
}

#[test]
fn only_the_first_delivery_is_marked() {
    let done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    let once = next(&done, &Event::Delivered { at: CLAIMED }).unwrap().effect;
    let twice = next(&once, &Event::Delivered { at: late() }).unwrap().effect;
    assert_eq!(twice.delivered_at, Some(CLAIMED));
}

#[test]
fn a_no_counts_only_when_nobody_can_send_any_more_and_it_has_been_quiet() {
    let mut doubt = doubtful(&[Verdict::Unproven]);
    let moment = Duration::from_micros(1);
    let silent = SEND_WITHIN + QUIET;
    assert!(!doubt.may_believe_no(QUIET, after(silent - moment)));
    assert!(doubt.may_believe_no(QUIET, after(silent)));
    // Seen to be gone earlier than its last moment: from then.
    doubt.attempts[0].gone_at = Some(after(Duration::from_secs(2)));
    assert!(doubt.may_believe_no(QUIET, after(Duration::from_secs(7))));
    assert!(!doubt.may_believe_no(QUIET, after(Duration::from_secs(7) - moment)));
    // A child acts as long as it lives.
    doubt.attempts[0].last_send = LastSend::WhileAlive;
    doubt.attempts[0].gone_at = None;
    assert!(!doubt.may_believe_no(QUIET, late()));
    doubt.attempts[0].gone_at = Some(late());
    assert!(doubt.may_believe_no(QUIET, late().plus(QUIET)));
}

#[test]
fn only_the_death_of_a_holder_proves_that_its_sender_is_gone() {
    let flight = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
    for (why, gone_at) in
        [(Lapse::HolderDied, Some(late())), (Lapse::HolderSilent, None), (Lapse::DeadlinePassed, None)]
    {
        let lapsed = next(&flight, &Event::Lapsed { why, at: late() }).unwrap().effect;
        assert_eq!((lapsed.attempts[0].gone_at, lapsed.state.word()), (gone_at, "in doubt"), "{why:?}");
    }
}

#[test]
fn a_no_must_count_for_every_unproven_attempt() {
    let mut doubt = doubtful(&[Verdict::Unproven, Verdict::Unproven]);
    doubt.attempts[1].last_send = LastSend::By(late());
    assert!(!doubt.may_believe_no(QUIET, late()));
    assert!(doubt.may_believe_no(QUIET, late().plus(QUIET)));
    doubt.attempts[1].verdict = Verdict::NotApplied;
    assert!(doubt.may_believe_no(QUIET, late()));
}

#[test]
fn a_clock_that_was_set_forward_makes_no_attempt_older_than_the_machine_says() {
    let uptime = |micros: u64| Some(Uptime { boot: 1, micros });
    let mut doubt = doubtful(&[Verdict::Unproven]);
    let sends_for = Duration::from_secs(60);
    doubt.attempts[0].last_send = LastSend::By(doubt.attempts[0].claimed_at.plus(sends_for));
    doubt.attempts[0].uptime = uptime(5);
    assert!(doubt.may_believe_no(QUIET, late().plus(sends_for + QUIET)), "by the wall clock it is old");
    let old = 5 + (sends_for + QUIET).as_micros() as u64;
    assert!(!doubt.has_been_quiet(QUIET, late(), uptime(old - 1)));
    assert!(doubt.has_been_quiet(QUIET, late(), uptime(old)));
}

#[test]
fn a_clock_of_another_machine_may_be_ahead_of_the_senders() {
    let here = Some(Uptime { boot: 2, micros: 1 });
    let mut doubt = doubtful(&[Verdict::Unproven]);
    doubt.attempts[0].uptime = Some(Uptime { boot: 1, micros: 5 });
    let silent = after(SEND_WITHIN + QUIET + CLOCKS_DIFFER_MAX);
    assert!(doubt.has_been_quiet(QUIET, silent, here));
    assert!(!doubt.has_been_quiet(QUIET, At(silent.0 - 1), here));
    doubt.attempts[0].gone_at = Some(CLAIMED);
    assert!(doubt.has_been_quiet(QUIET, CLAIMED, here), "a lock has told that it is gone");
}

#[test]
fn a_forgotten_claim_gets_the_time_of_any_sender_from_when_its_loss_was_seen() {
    for verdicts in [&[][..], &[Verdict::NotApplied], &[Verdict::Unproven]] {
        let known = doubtful(verdicts);
        let lost = next(&known, &Event::Forgotten { at: late(), epoch: 3 }).unwrap().effect;
        assert_eq!(lost.epoch, 3);
        let silent = SEND_WITHIN + QUIET;
        assert!(!lost.may_believe_no(QUIET, late().plus(silent - Duration::from_micros(1))));
        assert!(lost.may_believe_no(QUIET, late().plus(silent)));
    }
}

#[test]
fn a_record_is_whole_in_the_epoch_of_its_claims() {
    let epoch_of = |effect: &mut Effect, claimed: u64, seen: u64| {
        effect.attempts.iter_mut().for_each(|attempt| attempt.epoch = claimed);
        effect.epoch = seen;
    };
    let mut doubt = doubtful(&[Verdict::Unproven]);
    epoch_of(&mut doubt, 1, 2);
    assert!(doubt.is_whole_in(2), "its loss was recorded in this epoch");
    assert!(!doubt.is_whole_in(3));
    let mut done = effect(applied(Evidence::Probed, None), &[Verdict::Unproven]);
    epoch_of(&mut done, 1, 2);
    assert!(!done.is_whole_in(2), "the next effect may have been claimed in the first epoch");
    epoch_of(&mut done, 2, 2);
    assert!(done.is_whole_in(2));
    done.attempts[0].resend = true;
    assert!(!done.is_whole_in(2), "a resend proves nothing about what came before");
    let running = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
    assert!(running.is_whole_in(9), "its holder answers for it");
}

#[test]
fn proven_attempts_are_dropped_beyond_the_limit_and_unproven_ones_never() {
    let mut busy = effect(not_applied(NotAppliedWhy::Refused("no".into())), &[Verdict::NotApplied]);
    for round in 2..=40 {
        busy = next(&busy, &Event::Claimed(new_attempt())).unwrap().effect;
        let attempt = AttemptNo(round);
        busy = next(&busy, &Event::Settled { attempt, outcome: refusal(), at: late() }).unwrap().effect;
    }
    assert_eq!(busy.attempts.len(), ATTEMPTS_KEPT);
    let mut doubt = doubtful(&[Verdict::Unproven]);
    for round in 2..=40 {
        doubt = next(&doubt, &Event::Resent(new_attempt())).unwrap().effect;
        let attempt = AttemptNo(round);
        doubt = next(&doubt, &Event::Settled { attempt, outcome: unclear(), at: late() }).unwrap().effect;
    }
    assert_eq!(doubt.attempts.len(), 40);
}

fn refund() -> Undo {
    Undo::By(UndoCall::Command { argv: vec!["refund".into(), "ch_1".into()], cwd: "/".into() })
}

#[test]
fn an_undo_is_kept_with_the_answer_that_the_effect_rests_on() {
    let flight = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
    let settled = Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() };
    let mut done = next(&flight, &settled).unwrap().effect;
    keep_undo(&mut done, &settled, refund());
    assert!(done.undoable().is_some());
    // The second success of a duplicate is not the one that is on record.
    let both = effect(applied(Evidence::Reported, Some(2)), &[Verdict::Unproven, Verdict::Applied]);
    let other = Event::Settled { attempt: AttemptNo(1), outcome: success(), at: late() };
    let mut twice = next(&both, &other).unwrap().effect;
    keep_undo(&mut twice, &other, refund());
    assert_eq!(twice.undo, None);
    let refused = Event::Settled { attempt: AttemptNo(1), outcome: refusal(), at: late() };
    let mut not = next(&flight, &refused).unwrap().effect;
    keep_undo(&mut not, &refused, refund());
    assert_eq!(not.undo, None);
}

#[test]
fn what_was_undone_or_did_not_happen_cannot_be_undone() {
    let mut done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    done.undo = Some(refund());
    let undone = Undone { by: EffectId(7), at: late() };
    let after = next(&done, &Event::Undone(undone)).unwrap().effect;
    assert_eq!((after.undone, after.undoable()), (Some(undone), None));
    assert!(matches!(after.state, State::Applied(_)), "it happened all the same");
    let again = Undone { by: EffectId(8), at: late() };
    assert_eq!(next(&after, &Event::Undone(again)).unwrap().effect.undone, Some(undone), "the first counts");
    let refuted = next(&done, &Event::Refuted { what: "404".into(), at: late() }).unwrap().effect;
    assert_eq!((refuted.undo.clone(), refuted.undoable()), (None, None));
}

/// A gateway gives up before what stands behind it does.
#[test]
fn a_no_does_not_count_until_it_has_been_quiet_since_the_answer_was_lost() {
    let lost = CLAIMED.plus(Duration::from_secs(17));
    for (why, counts_from) in [
        (Doubt::Ambiguous("the connection broke".into()), lost),
        (Doubt::DeadlinePassed, lost),
        // It has waited until it died, and its upstream does not know.
        (Doubt::HolderDied, lost),
        // Nobody has waited for anything: the last moment for sending is what counts.
        (Doubt::Reopened(reason("no")), CLAIMED.plus(SEND_WITHIN)),
    ] {
        let mut effect = effect(State::InDoubt(InDoubt { since: lost, why }), &[Verdict::Unproven]);
        effect.attempts[0].claimed_at = CLAIMED;
        effect.attempts[0].last_send = LastSend::By(CLAIMED.plus(SEND_WITHIN));
        effect.attempts[0].gone_at = None;
        let just_before = At(counts_from.plus(QUIET).0 - 1);
        assert!(!effect.may_believe_no(QUIET, just_before), "{:?}", effect.state);
        assert!(effect.may_believe_no(QUIET, counts_from.plus(QUIET)), "{:?}", effect.state);
    }
}
