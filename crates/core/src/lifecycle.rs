//! The one function that changes an effect's state.
//!
//! Stated in `spec/lifecycle.md`. An illegal pair is refused, never ignored.

use crate::class::{Class, Tier};
use crate::effect::{
    ATTEMPTS_KEPT, Applied, Attempt, Doubt, Effect, Evidence, Facts, InDoubt, LastSend, NotApplied,
    NotAppliedWhy, Reply, Ruling, STORM, State, Verdict,
};
use crate::effect_word::EffectWord;
use crate::identity::Marks;
use crate::ids::{AttemptNo, Nonce, OwnerId, Reason, Run};
use crate::intent::Seed;
use crate::outcome::Outcome;
use crate::time::{At, Uptime};
use crate::undo::{Undo, Undone};
use crate::word_table;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened to an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The right to make an attempt is taken.
    Claimed(NewAttempt),
    /// semel takes it again after a doubt; keyed, convergent and generate only.
    Resent(NewAttempt),
    /// The holder of an attempt brings its answer, perhaps late.
    Settled {
        attempt: AttemptNo,
        outcome: Outcome,
        at: At,
    },
    /// The attempt in flight stopped being merely slow.
    Lapsed {
        why: Lapse,
        at: At,
    },
    /// The sender of an attempt is proven unable to send any more.
    SenderGone {
        attempt: AttemptNo,
        at: At,
    },
    /// A probe found it.
    ProbedYes {
        word: EffectWord,
        reply: Reply,
        at: At,
    },
    /// A probe did not find it; counts only under rule 5.
    ProbedNo {
        quiet: Duration,
        at: At,
    },
    RuledApplied {
        ruling: Ruling,
        word: EffectWord,
        reply: Reply,
    },
    RuledNotApplied {
        ruling: Ruling,
    },
    /// A ruling is taken back.
    Reopened {
        ruling: Ruling,
    },
    Confirmed,
    Refuted {
        what: String,
        at: At,
    },
    /// The answer reached a caller.
    Delivered {
        at: At,
    },
    /// An effect of its own has taken it back.
    Undone(Undone),
    /// It may happen once more.
    RepeatPermitted {
        ruling: Ruling,
    },
    /// A deliberate repeat with this reason was answered with this effect, which had reached nobody yet.
    Adopted {
        reason: Reason,
    },
    /// The store may have lost a later claim of an effect that it holds to be in doubt or not to have happened
    /// (rule 9).
    Forgotten {
        at: At,
        epoch: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttempt {
    pub nonce: Nonce,
    pub owner: OwnerId,
    pub at: At,
    pub deadline: At,
    pub last_send: LastSend,
    pub call_id: Option<String>,
    /// Whose call it is. A later attempt may come from another run than the first.
    pub run: Option<Run>,
    /// The epoch of the store that the claim requires.
    pub epoch: u64,
    /// The fingerprint of this attempt. After a refusal a caller may have corrected it.
    pub facts: Arc<Facts>,
    pub marks: Arc<Marks>,
    pub trace: Option<u128>,
    pub uptime: Option<Uptime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lapse {
    HolderDied,
    /// Which proves nothing of its sender.
    HolderSilent,
    DeadlinePassed,
}

/// An effect after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub effect: Effect,
    pub alarm: Option<Alarm>,
}

/// News that must be told, whatever else is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// Two attempts of one effect succeeded: the loudest alarm there is.
    DuplicateDetected,
    /// A success arrived for an effect that was held to have not happened.
    Contradicted,
}

word_table!(Alarm { DuplicateDetected = "duplicate_detected", Contradicted = "contradicted" });

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an effect that is {state} cannot be {event}")]
pub struct Illegal {
    pub state: &'static str,
    pub event: &'static str,
}

impl State {
    pub fn word(&self) -> &'static str {
        match self {
            State::InFlight { .. } => "in flight",
            State::Applied(_) => "applied",
            State::NotApplied(_) => "not applied",
            State::InDoubt(_) => "in doubt",
        }
    }
}

impl Event {
    /// The stable word of the journal.
    pub fn word(&self) -> &'static str {
        match self {
            Event::Claimed(_) => "claimed",
            Event::Resent(_) => "resent",
            Event::Settled { outcome: Outcome::Applied { .. }, .. } => "settled_applied",
            Event::Settled { outcome: Outcome::NotApplied { .. }, .. } => "settled_not_applied",
            Event::Settled { outcome: Outcome::InDoubt { .. }, .. } => "settled_in_doubt",
            Event::Lapsed { .. } => "lapsed",
            Event::SenderGone { .. } => "sender_gone",
            Event::ProbedYes { .. } => "probed_yes",
            Event::ProbedNo { .. } => "probed_no",
            Event::RuledApplied { .. } => "ruled_applied",
            Event::RuledNotApplied { .. } => "ruled_not_applied",
            Event::Reopened { .. } => "reopened",
            Event::Confirmed => "confirmed",
            Event::Refuted { .. } => "refuted",
            Event::Delivered { .. } => "delivered",
            Event::Undone(_) => "undone",
            Event::RepeatPermitted { .. } => "released",
            Event::Adopted { .. } => "adopted",
            Event::Forgotten { .. } => "forgotten",
        }
    }
}

/// Applies an event to an effect.
pub fn next(effect: &Effect, event: &Event) -> Result<Transition, Illegal> {
    let mut next = effect.clone();
    let mut alarm = None;
    match (&effect.state, event) {
        (State::NotApplied(NotApplied { why, .. }), Event::Claimed(new))
            if !matches!(why, NotAppliedWhy::Refuted(_)) =>
        {
            start(&mut next, new, false);
        }
        (State::InDoubt(_), Event::Resent(new)) => start(&mut next, new, true),

        (State::InFlight { attempt: open }, Event::Settled { attempt, outcome, at }) if open == attempt => {
            note(&mut next, *attempt, outcome, *at);
            next.state = joined(&next, *attempt, outcome, *at);
            alarm = duplicates(&next);
        }
        // An older attempt answers while a newer one is in flight: noted, and joined when that one settles or lapses.
        (State::InFlight { .. }, Event::Settled { attempt, outcome, at }) if known(effect, *attempt) => {
            note(&mut next, *attempt, outcome, *at);
            // The first whole answer of a generation is its answer; a newer attempt holds nothing that it could harm.
            if let (Class::Generate, Outcome::Applied { evidence, word, reply }) =
                (effect.facts.class, outcome)
            {
                next.state = applied(*at, *evidence, Some(*attempt), *word, *reply);
            }
        }
        (State::InFlight { attempt }, Event::Lapsed { why, at }) => {
            let outcome = Outcome::InDoubt { why: String::new(), sender_gone: *why == Lapse::HolderDied };
            note(&mut next, *attempt, &outcome, *at);
            next.state = match joined(&next, *attempt, &outcome, *at) {
                State::InDoubt(_) => State::InDoubt(InDoubt { since: *at, why: Doubt::from(*why) }),
                decided => decided,
            };
        }

        (State::InDoubt(_), Event::Settled { attempt, outcome, at }) if known(effect, *attempt) => {
            note(&mut next, *attempt, outcome, *at);
            if let Outcome::Applied { evidence, word, reply } = outcome {
                next.state = applied(*at, *evidence, Some(*attempt), *word, *reply);
                alarm = duplicates(&next);
            }
        }
        (State::InDoubt(_), Event::ProbedYes { word, reply, at }) => {
            next.state = applied(*at, Evidence::Probed, None, *word, *reply);
        }
        (State::InDoubt(_), Event::ProbedNo { quiet, at }) if effect.may_believe_no(*quiet, *at) => {
            prove_not_applied(&mut next);
            next.state = not_applied(*at, NotAppliedWhy::Probed, None);
        }
        (State::InDoubt(_), Event::RuledApplied { ruling, word, reply }) => {
            next.state = State::Applied(Applied {
                at: ruling.at,
                evidence: Evidence::Ruled,
                by: None,
                word: *word,
                reply: *reply,
                ruling: Some(ruling.clone()),
            });
        }
        // After a refutation a person may open the way again; nothing else does.
        (
            State::InDoubt(_) | State::NotApplied(NotApplied { why: NotAppliedWhy::Refuted(_), .. }),
            Event::RuledNotApplied { ruling },
        ) => {
            prove_not_applied(&mut next);
            next.state = not_applied(ruling.at, NotAppliedWhy::Ruled, Some(ruling.clone()));
        }
        (State::InFlight { .. } | State::InDoubt(_), Event::SenderGone { attempt, at })
            if known(effect, *attempt) =>
        {
            mark_gone(&mut next, *attempt, *at);
        }

        (State::Applied(was), Event::Settled { attempt, outcome, at }) if known(effect, *attempt) => {
            note(&mut next, *attempt, outcome, *at);
            if let Outcome::Applied { reply, word, .. } = outcome {
                alarm = duplicates(&next);
                let lacks_reply = was.by == Some(*attempt) && was.reply == Reply::Unknown;
                if was.by.is_none() || lacks_reply {
                    // A probe or a person knew it first, or its end was seen before its output; now its own answer is
                    // known too.
                    next.state = State::Applied(Applied {
                        by: Some(*attempt),
                        reply: *reply,
                        word: *word,
                        ..was.clone()
                    });
                }
            }
        }
        (State::NotApplied(_), Event::Settled { attempt, outcome, at }) if known(effect, *attempt) => {
            note(&mut next, *attempt, outcome, *at);
            if let Outcome::Applied { evidence, word, reply } = outcome {
                next.state = applied(*at, *evidence, Some(*attempt), *word, *reply);
                alarm = Some(Alarm::Contradicted);
            }
        }

        (State::Applied(Applied { ruling: Some(_), by: None, .. }), Event::Reopened { ruling })
        | (State::NotApplied(NotApplied { ruling: Some(_), .. }), Event::Reopened { ruling }) => {
            let is_failed = |a: &&mut Attempt| matches!(a.verdict, Verdict::NotApplied | Verdict::Reported);
            for attempt in next.attempts.iter_mut().filter(is_failed) {
                // Which of them the ruling had covered is not kept apart; doubt is the safe reading for all.
                attempt.verdict = Verdict::Unproven;
            }
            next.delivered_at = None;
            next.repeat_permitted = None;
            next.state =
                State::InDoubt(InDoubt { since: ruling.at, why: Doubt::Reopened(ruling.reason.clone()) });
        }
        (State::Applied(was), Event::Confirmed) => {
            next.state = State::Applied(Applied { evidence: Evidence::Confirmed, ..was.clone() });
        }
        (State::Applied(_), Event::Refuted { what, at }) => {
            // The success is disproved: it takes part in no join any more, and its delivered mark means nothing.
            for attempt in next.attempts.iter_mut().filter(|attempt| attempt.verdict == Verdict::Applied) {
                attempt.verdict = Verdict::NotApplied;
            }
            next.delivered_at = None;
            next.undo = None;
            next.repeat_permitted = None;
            next.state = not_applied(*at, NotAppliedWhy::Refuted(what.clone()), None);
        }
        (State::Applied(_), Event::Delivered { at }) => {
            next.delivered_at.get_or_insert(*at);
        }
        // It happened, and stays on record as what it is.
        (State::Applied(_), Event::Undone(undone)) => {
            next.undone.get_or_insert(*undone);
        }
        (State::Applied(_), Event::RepeatPermitted { ruling }) => {
            next.repeat_permitted = Some(ruling.clone());
        }
        (State::Applied(_), Event::Adopted { reason }) => {
            next.occurrence.adopt(reason);
        }
        // A refuted effect is never run again by itself, so there is nothing that a lost claim could double.
        (state, Event::Forgotten { at, epoch }) if may_have_been_claimed_since(state) => {
            next.epoch = *epoch;
            next.state = State::InDoubt(InDoubt { since: *at, why: Doubt::Epoch });
        }
        (state, event) => return Err(Illegal { state: state.word(), event: event.word() }),
    }
    Ok(Transition { effect: next, alarm })
}

/// Keeps how an effect can be taken back, if this event is what it rests on.
pub fn keep_undo(effect: &mut Effect, event: &Event, undo: Undo) {
    let State::Applied(applied) = &effect.state else { return };
    let rests_on_it = match event {
        Event::Settled { attempt, .. } => applied.by == Some(*attempt),
        Event::ProbedYes { .. } => true,
        _ => false,
    };
    if rests_on_it {
        effect.undo = Some(undo);
    }
}

impl Effect {
    /// The first claim of an intent that nobody has seen: `unseen --claim--> InFlight(attempt 1)`.
    pub fn claimed(seed: Seed, new: &NewAttempt) -> Effect {
        let mut effect = opened(seed, State::InFlight { attempt: AttemptNo(1) }, new.at, new.epoch);
        start(&mut effect, new, false);
        effect
    }

    /// `unseen --epoch, import--> InDoubt`: the store may have forgotten a claim of this intent.
    pub fn forgotten(seed: Seed, at: At, epoch: u64) -> Effect {
        opened(seed, State::InDoubt(InDoubt { since: at, why: Doubt::Epoch }), at, epoch)
    }
}

fn opened(Seed { id, occurrence, facts, marks }: Seed, state: State, at: At, epoch: u64) -> Effect {
    Effect {
        id,
        occurrence,
        facts,
        marks,
        attempts: Vec::new(),
        state,
        opened_at: at,
        epoch,
        delivered_at: None,
        undo: None,
        undone: None,
        refusals: 0,
        repeat_permitted: None,
    }
}

impl From<Lapse> for Doubt {
    fn from(lapse: Lapse) -> Self {
        match lapse {
            Lapse::HolderDied => Doubt::HolderDied,
            Lapse::HolderSilent => Doubt::HolderSilent,
            Lapse::DeadlinePassed => Doubt::DeadlinePassed,
        }
    }
}

fn may_have_been_claimed_since(state: &State) -> bool {
    match state {
        State::NotApplied(not_applied) => !matches!(not_applied.why, NotAppliedWhy::Refuted(_)),
        State::InDoubt(_) => true,
        State::InFlight { .. } | State::Applied(_) => false,
    }
}

fn known(effect: &Effect, attempt: AttemptNo) -> bool {
    effect.attempt(attempt).is_some()
}

fn start(effect: &mut Effect, new: &NewAttempt, resend: bool) {
    let number = AttemptNo(effect.newest_attempt().map_or(1, |attempt| attempt.number.0 + 1));
    // The end of an old attempt of a generation is nobody's concern once its storm is over.
    let is_repeatable = matches!(effect.facts.class, Class::Generate | Class::Convergent);
    let reported = effect.attempts.iter().filter(|attempt| attempt.verdict == Verdict::Reported).count();
    let droppable = |attempt: &Attempt| match attempt.verdict {
        Verdict::NotApplied => true,
        // That one of them may have been carried out has to stay known.
        Verdict::Reported => reported > 1,
        Verdict::Unproven => is_repeatable && new.at.since(attempt.claimed_at) >= STORM,
        Verdict::Open | Verdict::Applied => false,
    };
    if effect.attempts.len() >= ATTEMPTS_KEPT
        && let Some(oldest) = effect.attempts.iter().position(droppable)
    {
        effect.attempts.remove(oldest);
    }
    // Most effects have one, and thousands may wait at once.
    effect.attempts.reserve_exact(1);
    effect.attempts.push(Attempt {
        number,
        nonce: new.nonce,
        owner: new.owner,
        claimed_at: new.at,
        deadline: new.deadline,
        last_send: new.last_send,
        verdict: Verdict::Open,
        resend,
        call_id: new.call_id.clone(),
        run: new.run.clone(),
        epoch: new.epoch,
        gone_at: None,
        trace: new.trace,
        uptime: new.uptime,
    });
    if matches!(&effect.state, State::NotApplied(NotApplied { why: NotAppliedWhy::Refused(_), .. })) {
        effect.refusals += 1;
    }
    // An effect stays with the run that opened it, and with the keys that led to it; who made an attempt stands on the
    // attempt.
    let (run, by_joining_key) =
        (effect.facts.run.clone(), effect.facts.by_joining_key || new.facts.by_joining_key);
    effect.facts = match run == new.facts.run && by_joining_key == new.facts.by_joining_key {
        true => Arc::clone(&new.facts),
        false => Arc::new(Facts { run, by_joining_key, ..Facts::clone(&new.facts) }),
    };
    effect.marks = Arc::clone(&new.marks);
    effect.epoch = new.epoch;
    effect.undo = None;
    effect.state = State::InFlight { attempt: number };
}

/// Writes what is now proven of an attempt. A success is never taken back, a late failure overwrites no success.
fn note(effect: &mut Effect, number: AttemptNo, outcome: &Outcome, at: At) {
    let Some(attempt) = effect.attempts.iter_mut().find(|attempt| attempt.number == number) else { return };
    match outcome {
        Outcome::Applied { .. } => attempt.verdict = Verdict::Applied,
        Outcome::NotApplied { why: NotAppliedWhy::Reported(_), .. }
            if attempt.verdict != Verdict::Applied =>
        {
            attempt.verdict = Verdict::Reported
        }
        Outcome::NotApplied { .. } if attempt.verdict != Verdict::Applied => {
            attempt.verdict = Verdict::NotApplied
        }
        Outcome::InDoubt { sender_gone, .. } => {
            if attempt.verdict == Verdict::Open {
                attempt.verdict = Verdict::Unproven;
            }
            if *sender_gone {
                attempt.gone_at.get_or_insert(at);
            }
        }
        Outcome::NotApplied { .. } => {}
    }
}

/// Rule 4: any success makes it applied; "not applied" needs every attempt proven so; anything else is in doubt.
fn joined(effect: &Effect, settled: AttemptNo, outcome: &Outcome, at: At) -> State {
    if let Outcome::Applied { evidence, word, reply } = outcome {
        return applied(at, *evidence, Some(settled), *word, *reply);
    }
    if let Some(earlier) = effect.attempts.iter().find(|attempt| attempt.verdict == Verdict::Applied) {
        // Its answer came while a newer attempt was in flight. It was noted then, and its reply was put where an
        // effect's reply is: a large one is not there, like one that was dropped.
        return applied(at, Evidence::Reported, Some(earlier.number), EffectWord::Updated, Reply::Kept);
    }
    match outcome {
        Outcome::NotApplied { why, reply } if !effect.has_unproven() => {
            let was_reported = effect.attempts.iter().any(|attempt| attempt.verdict == Verdict::Reported);
            // A refusal of this attempt proves nothing of one that only reported its failure.
            let why = match why {
                NotAppliedWhy::Refused(what) | NotAppliedWhy::NeverSent(what) if was_reported => {
                    NotAppliedWhy::Reported(what.clone())
                }
                why => why.clone(),
            };
            State::NotApplied(NotApplied { at, why, reply: *reply, ruling: None })
        }
        Outcome::NotApplied { .. } => State::InDoubt(InDoubt {
            since: at,
            why: Doubt::Ambiguous(
                "this attempt was refused, but an earlier one may have been carried out".into(),
            ),
        }),
        Outcome::InDoubt { why, .. } => {
            State::InDoubt(InDoubt { since: at, why: Doubt::Ambiguous(why.clone()) })
        }
        Outcome::Applied { .. } => unreachable!("a success was answered above"),
    }
}

fn applied(at: At, evidence: Evidence, by: Option<AttemptNo>, word: EffectWord, reply: Reply) -> State {
    State::Applied(Applied { at, evidence, by, word, reply, ruling: None })
}

fn not_applied(at: At, why: NotAppliedWhy, ruling: Option<Ruling>) -> State {
    State::NotApplied(NotApplied { at, why, reply: Reply::Unknown, ruling })
}

fn prove_not_applied(effect: &mut Effect) {
    for attempt in effect.attempts.iter_mut().filter(|attempt| attempt.verdict == Verdict::Unproven) {
        attempt.verdict = Verdict::NotApplied;
    }
}

fn mark_gone(effect: &mut Effect, number: AttemptNo, at: At) {
    if let Some(attempt) = effect.attempts.iter_mut().find(|attempt| attempt.number == number) {
        attempt.gone_at.get_or_insert(at);
    }
}

/// Two successes are two effects in the world, unless the upstream itself made the second one a no-op.
pub fn duplicates(effect: &Effect) -> Option<Alarm> {
    if is_repeatable(effect) {
        return None;
    }
    let successes = effect.attempts.iter().filter(|attempt| attempt.verdict == Verdict::Applied).count();
    (successes > 1).then_some(Alarm::DuplicateDetected)
}

/// The meaning of an answer for an attempt that its effect has dropped (see [`ATTEMPTS_KEPT`]): that attempt
/// was proven not to have happened.
pub fn alarm_of_dropped(effect: &Effect, event: &Event) -> Option<Alarm> {
    let Event::Settled { outcome: Outcome::Applied { .. }, .. } = event else { return None };
    match effect.state {
        State::Applied(_) => (!is_repeatable(effect)).then_some(Alarm::DuplicateDetected),
        _ => Some(Alarm::Contradicted),
    }
}

/// Whether a second success is what the upstream made a no-op, or a new sample.
fn is_repeatable(effect: &Effect) -> bool {
    let facts = &effect.facts;
    matches!(facts.tier, Tier::Keyed | Tier::Convergent)
        || matches!(facts.class, Class::Convergent | Class::Generate)
}
