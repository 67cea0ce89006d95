//! `settle`: what became of an attempt that code made itself.

use super::BadCall;
use super::reply::{REPLY_BYTES_MAX, encode_json, redact_why, word_of};
use schemars::JsonSchema;
use semel_core::answer::EffectWord;
use semel_core::effect::{Evidence, NotAppliedWhy, Reply};
use semel_core::outcome::Outcome;
use semel_core::policy::Rule;
use semel_gate::upstream::Sent;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Of the outcome, as the ledger keeps it: a sentence or two.
pub const WHY_CHARS_MAX: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(rename = "Settle")]
#[allow(missing_docs, reason = "a comment would be part of the schema")]
pub struct SettleForm {
    /// What `begin` gave.
    #[schemars(regex(pattern = r"^cl_[0-9A-HJKMNP-TV-Z]{26}_[0-9]{1,10}_[0-9a-f]{32}$"))]
    pub claim: String,
    #[allow(missing_docs, reason = "a comment would be part of the schema")]
    pub outcome: SettledWord,
    /// What it answered, for whoever asks next. Null is an answer too.
    #[serde(default, deserialize_with = "even_null")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub reply: Option<Box<RawValue>>,
    /// What it did: created, updated, deleted, sent, noop or none.
    pub effect: Option<DoneWord>,
    /// The upstream has taken it and not done it yet.
    #[serde(default)]
    pub accepted: bool,
    /// Why it was not applied, or why nobody knows.
    #[schemars(length(max = WHY_CHARS_MAX))]
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "a comment would be part of the schema")]
pub enum SettledWord {
    /// It happened.
    Applied,
    /// It certainly did not.
    NotApplied,
    /// It may have happened.
    InDoubt,
    /// It certainly did not yet: its tool waits for somebody's answer, and is called again with that.
    AwaitingInput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "a comment would be part of the schema")]
pub enum DoneWord {
    Created,
    Updated,
    Deleted,
    Sent,
    Noop,
    None,
}

/// Serde would read null as no member at all.
fn even_null<'de, D: Deserializer<'de>>(reply: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(reply).map(Some)
}

impl From<DoneWord> for EffectWord {
    fn from(word: DoneWord) -> EffectWord {
        match word {
            DoneWord::Created => EffectWord::Created,
            DoneWord::Updated => EffectWord::Updated,
            DoneWord::Deleted => EffectWord::Deleted,
            DoneWord::Sent => EffectWord::Sent,
            DoneWord::Noop => EffectWord::Noop,
            DoneWord::None => EffectWord::None,
        }
    }
}

impl SettleForm {
    /// What became of the attempt, as the gate takes it.
    pub fn sent(self, rule: &Rule) -> Result<Sent, BadCall> {
        let why = self.why.unwrap_or_default();
        if why.chars().count() > WHY_CHARS_MAX {
            return Err(BadCall::new(format!("why has at most {WHY_CHARS_MAX} characters")));
        }
        let why = redact_why(why, rule);
        let mut reply = self
            .reply
            .as_deref()
            .map(|reply| encode_json(reply.get().as_bytes(), rule))
            .transpose()
            .map_err(BadCall::new)?;
        let recorded = match reply.as_ref().map(Vec::len) {
            None => Reply::Unknown,
            Some(bytes) if bytes > REPLY_BYTES_MAX => {
                reply = None;
                Reply::TooLarge(bytes as u64)
            }
            Some(_) => Reply::Kept,
        };
        let outcome = match self.outcome {
            SettledWord::Applied => Outcome::Applied {
                evidence: if self.accepted { Evidence::Accepted } else { Evidence::Reported },
                word: self.effect.map_or(word_of(rule), EffectWord::from),
                reply: recorded,
            },
            SettledWord::NotApplied => {
                Outcome::NotApplied { why: NotAppliedWhy::Refused(why), reply: recorded }
            }
            SettledWord::AwaitingInput => {
                Outcome::NotApplied { why: NotAppliedWhy::AwaitingInput, reply: recorded }
            }
            SettledWord::InDoubt => {
                reply = None;
                Outcome::InDoubt { why, sender_gone: true }
            }
        };
        Ok(Sent { reply, ..Sent::of(outcome) })
    }
}
