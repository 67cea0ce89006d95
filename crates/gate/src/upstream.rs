//! The real tool behind, as the gate sees it.

use crate::look::Progress;
use async_trait::async_trait;
use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::Effect;
use semel_core::ids::AttemptNo;
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::prices::TokenUsage;
use semel_core::policy::rule::KeyForm;
use semel_core::policy::rule::{Probe, Rule};
use serde_json::Value;
use std::time::Duration;

/// A door brings one of these for every call. It carries out and reads answers; it never decides, retries or settles.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// All that can fail without leaving a doubt: finding the program, resolving, connecting, TLS, and whether the
    /// caller's token still holds. Called right before each claim, again if the claim was lost to a race.
    async fn prepare(&mut self) -> Result<(), NotStarted>;

    /// Carries out one attempt and reads its answer.
    async fn send(&mut self, sending: Sending<'_>) -> Sent;

    /// Asks, read-only, whether it happened. `effect` is absent when asking before the first attempt.
    async fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer;

    /// Whether a sender can act as long as it lives (a child process), rather than only within the send window.
    fn sends_while_alive(&self) -> bool;

    /// The call and its last answer as rules see them, for filling in an undo. `None`: there is nothing to see.
    fn view(&self) -> Option<CallView>;

    /// After an unclear answer: releases whatever keeps its senders from being seen as gone.
    fn release(&mut self);

    /// The call waits for this attempt of another call, whose answer is to be its own. A door that has the answer while
    /// it comes may give it on from here.
    fn join(&mut self, effect: &Effect, attempt: AttemptNo);
}

/// A call with its answer, as rules see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallView {
    /// One object: `args`, `argv`, `body`, …, and `reply`.
    pub places: Json,
    /// Where a command of the rule's would run.
    pub cwd: String,
}

/// Nothing was started, and this is why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    pub why: String,
    pub data: Value,
}

/// The inputs of a send.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// `None` for what is not recorded, such as a read.
    pub recorded: Option<Recorded<'a>>,
    pub timeout: Option<Duration>,
    /// Where it notes each sign that its tool is at work.
    pub progress: &'a Progress,
}

impl Sending<'_> {
    /// Whether a failure that proves nothing is a doubt. What is not recorded has no key.
    pub fn must_happen_once(&self, rule: &Rule) -> bool {
        self.recorded.map_or(rule.class == Class::Consequential, |sent| sent.effect.facts.must_happen_once())
    }
}

/// The attempt that is sent.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    pub effect: &'a Effect,
    pub attempt: AttemptNo,
    /// One per effect, not per attempt.
    pub idempotency_key: &'a str,
}

/// An attempt's answer, as the door read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub outcome: Outcome,
    /// The reply to record. `None` when it is too large or there is none; the outcome says which.
    pub reply: Option<Vec<u8>>,
    /// Shown as `data` in the answer object.
    pub data: Value,
    /// The tokens that a model used, where that is known.
    pub tokens: Option<TokenUsage>,
    /// Kept with the attempt where another one was first: then its answer is evidence alone.
    pub description: Value,
}

impl Sent {
    /// An attempt of which only the outcome is to be kept.
    pub fn of(outcome: Outcome) -> Sent {
        Sent { outcome, reply: None, data: Value::Null, tokens: None, description: Value::Null }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeAnswer {
    Yes {
        reply: Option<Vec<u8>>,
        word: Option<EffectWord>,
        /// Why the reply could not be made of what was found, fit to be written.
        reply_failed: Option<String>,
    },
    No,
    /// An error, a truncated page, an expression that fails.
    Unknown {
        /// Fit to be written.
        why: String,
    },
}

/// The idempotency key that goes upstream, as the rule wants it written. It depends on the intent and the occurrence,
/// so that it outlives attempts, restarts and even a lost ledger, as long as the secret is there. Only what semel has
/// seen refused is tried again under another one: many upstreams would repeat their refusal to the old one for a day.
pub fn upstream_key(
    secret: &Secret,
    intent_key: Digest,
    occurrence: u32,
    refusals: u64,
    rule: &Rule,
) -> String {
    let occurrence = occurrence.to_be_bytes();
    let effect = match refusals {
        0 => secret.mac("upstream", &[&intent_key.0, &occurrence]),
        refusals => secret.mac("upstream", &[&intent_key.0, &occurrence, &refusals.to_be_bytes()]),
    };
    match rule.sent_key() {
        Some(inject) => inject.key(effect),
        None => KeyForm::Text.write(effect),
    }
}
