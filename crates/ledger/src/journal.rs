//! The append-only history: one line for every transition, in the commit that makes it.

use crate::store::JournalLine;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::lifecycle::{Alarm, Event, Lapse};
use semel_core::outcome::Outcome;
use semel_core::time::At;
use serde_json::{Value, json};

pub fn line(event: &Event, effect: &Effect, run: Option<Digest>, at: At) -> JournalLine {
    JournalLine {
        at,
        effect: Some(effect.id.0),
        run,
        kind: event.word().to_owned(),
        data: details(event, effect).to_string(),
    }
}

pub fn alarm(alarm: Alarm, effect: &Effect, run: Option<Digest>, at: At) -> JournalLine {
    JournalLine { at, effect: Some(effect.id.0), run, kind: alarm.word().to_owned(), data: "{}".into() }
}

/// A line about something that did not change an effect: a refusal, a cancel, an epoch.
pub fn note(kind: &str, effect: Option<&Effect>, run: Option<Digest>, data: Value, at: At) -> JournalLine {
    JournalLine {
        at,
        effect: effect.map(|effect| effect.id.0),
        run,
        kind: kind.to_owned(),
        data: data.to_string(),
    }
}

fn details(event: &Event, effect: &Effect) -> Value {
    let state = state_word(&effect.state);
    match event {
        Event::Claimed(_) | Event::Resent(_) => json!({
            "state": state,
            "attempt": effect.newest_attempt().map(|attempt| attempt.number),
            "action": effect.facts.action,
            "subject": effect.facts.subject,
            "occurrence": effect.occurrence.number,
        }),
        Event::Settled { attempt, outcome, .. } => match outcome {
            Outcome::Applied { evidence, word, .. } => {
                json!({"state": state, "attempt": attempt, "evidence": evidence, "effect": word})
            }
            Outcome::NotApplied { why, .. } => json!({"state": state, "attempt": attempt, "why": why}),
            Outcome::InDoubt { why, .. } => json!({"state": state, "attempt": attempt, "why": why}),
        },
        Event::Lapsed { why, .. } => {
            let why = match why {
                Lapse::HolderDied => "holder_died",
                Lapse::DeadlinePassed => "deadline_passed",
            };
            json!({"state": state, "why": why})
        }
        Event::SenderGone { attempt, .. } => json!({"state": state, "attempt": attempt}),
        Event::RuledApplied { ruling, .. }
        | Event::RuledNotApplied { ruling }
        | Event::Reopened { ruling } => {
            json!({"state": state, "by": ruling.by, "reason": ruling.reason})
        }
        Event::Refuted { what, .. } => json!({"state": state, "what": what}),
        Event::ProbedYes { .. }
        | Event::ProbedNo { .. }
        | Event::Confirmed
        | Event::Forgotten { .. }
        | Event::Delivered { .. } => json!({"state": state}),
    }
}

/// The state in the stable form of JSON documents.
pub fn state_word(state: &State) -> &'static str {
    match state {
        State::InFlight { .. } => "in_flight",
        State::Applied(_) => "applied",
        State::NotApplied(_) => "not_applied",
        State::InDoubt(_) => "in_doubt",
    }
}
