//! The append-only history: one line for every transition, in the commit that makes it.

use crate::store::JournalLine;
use semel_core::answer::EffectWord;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, State};
use semel_core::ids::{AttemptNo, EffectId, Reason};
use semel_core::lifecycle::{Alarm, Event, Lapse};
use semel_core::outcome::Outcome;
use semel_core::subject::in_short;
use semel_core::time::At;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

pub fn line(event: &Event, effect: &Effect, run: Option<Digest>, at: At) -> JournalLine {
    JournalLine {
        at,
        effect: Some(effect.id.0),
        run,
        kind: event.word().to_owned(),
        data: serde_json::to_string(&details(event, effect)).expect("details have only string keys"),
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

/// The details of a line, beside its kind. Written straight into text: a tree of values would cost more than the line.
#[derive(Serialize, Default)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<AttemptNo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<EffectWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a Reason>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undoes: Option<EffectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undone_by: Option<EffectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<JournalReason<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JournalReason<'a> {
    NotApplied(&'a NotAppliedWhy),
    Words(&'a str),
}

fn details<'a>(event: &'a Event, effect: &'a Effect) -> Details<'a> {
    let only = Details { state: state_word(&effect.state), ..Details::default() };
    match event {
        Event::Claimed(_) | Event::Resent(_) => Details {
            attempt: effect.newest_attempt().map(|attempt| attempt.number),
            action: Some(&effect.facts.action),
            subject: Some(in_short(&effect.facts.subject)),
            occurrence: Some(effect.occurrence.number),
            undoes: effect.facts.undoes.as_ref().map(|undoes| undoes.effect),
            by: effect.facts.undoes.as_ref().map(|undoes| undoes.by.as_str()),
            reason: effect.facts.undoes.as_ref().map(|undoes| &undoes.reason),
            ..only
        },
        Event::Settled { attempt, outcome, .. } => {
            let only = Details { attempt: Some(*attempt), ..only };
            match outcome {
                Outcome::Applied { evidence, word, .. } => {
                    Details { evidence: Some(*evidence), effect: Some(*word), ..only }
                }
                Outcome::NotApplied { why, .. } => {
                    Details { why: Some(JournalReason::NotApplied(why)), ..only }
                }
                Outcome::InDoubt { why, .. } => Details { why: Some(JournalReason::Words(why)), ..only },
            }
        }
        Event::Lapsed { why, .. } => {
            let why = match why {
                Lapse::HolderDied => "holder_died",
                Lapse::HolderSilent => "holder_silent",
                Lapse::DeadlinePassed => "deadline_passed",
            };
            Details { why: Some(JournalReason::Words(why)), ..only }
        }
        Event::SenderGone { attempt, .. } => Details { attempt: Some(*attempt), ..only },
        Event::RuledApplied { ruling, .. }
        | Event::RuledNotApplied { ruling }
        | Event::Reopened { ruling }
        | Event::RepeatPermitted { ruling } => {
            Details { by: Some(&ruling.by), reason: Some(&ruling.reason), ..only }
        }
        Event::Adopted { reason } => Details { reason: Some(reason), ..only },
        Event::Refuted { what, .. } => Details { what: Some(what), ..only },
        Event::Undone(undone) => Details { undone_by: Some(undone.by), ..only },
        Event::ProbedYes { .. }
        | Event::ProbedNo { .. }
        | Event::Confirmed
        | Event::Forgotten { .. }
        | Event::Delivered { .. } => only,
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
