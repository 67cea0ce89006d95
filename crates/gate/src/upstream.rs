//! The real tool behind, as the gate sees it.

use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::Effect;
use semel_core::ids::AttemptNo;
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::file::KeyForm;
use semel_core::policy::prices::Tokens;
use semel_core::policy::rule::{Probe, Rule};
use serde_json::Value;
use std::future::Future;
use std::time::Duration;

/// A door brings one of these for every call. It carries out and reads answers; it never decides, retries or settles.
pub trait Upstream: Send {
    /// All that can fail without leaving a doubt: finding the program, resolving, connecting, TLS.
    fn prepare(&mut self) -> impl Future<Output = Result<(), NotStarted>> + Send;

    /// Whether somebody still waits for what this call comes to.
    fn is_awaited(&self) -> bool {
        true
    }

    /// Whether this very call has sent something before: a caller that looks again after its timeout is no new one.
    fn has_sent(&self) -> bool {
        false
    }

    /// Asked right before the claim, after all that was waited for: whether its caller may still have it sent.
    fn may_still_send(&mut self) -> impl Future<Output = Result<(), NotStarted>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether what this call comes to is the first answer for its caller. Whoever looks again after a timeout gets one
    /// from that look, and the attempt that was left behind comes to another one later.
    fn answers_first(&mut self) -> bool {
        true
    }

    /// Carries out one attempt and reads its answer.
    fn send(&mut self, sending: Sending<'_>) -> impl Future<Output = Sent> + Send;

    /// What the newest attempt took, where it was a model that was asked and that is known.
    fn used(&self) -> Option<Tokens> {
        None
    }

    /// What is to be known of the newest attempt's answer where another one was first: then it is evidence alone.
    fn described(&self) -> Value {
        Value::Null
    }

    /// Asks, read-only, whether it happened. `effect` is absent when asking before the first attempt.
    fn probe(&mut self, probe: &Probe, effect: Option<&Effect>) -> impl Future<Output = ProbeAnswer> + Send;

    /// Whether a sender can act as long as it lives (a child process), rather than only within the send window.
    fn sends_while_alive(&self) -> bool;

    /// What rules see of the call and of what was last heard about it, for an undo to be filled in from. `None`:
    /// nothing.
    fn seen(&self) -> Option<Seen> {
        None
    }

    /// After an unclear answer: lets go of whatever keeps its senders from being seen as gone.
    fn let_go(&mut self);

    /// The call waits for this attempt of somebody else's, whose answer is to be its own. A door that has the answer
    /// while it comes may give it on from here.
    fn joins(&mut self, effect: &Effect, attempt: AttemptNo) {
        let _settled_is_soon_enough = (effect, attempt);
    }

    /// Whether an upstream may take this call though it has just refused the same call of somebody else, with a refusal
    /// that answers nobody else: this one says in full what that one only named.
    fn says_more_than_its_twin(&self) -> bool {
        false
    }
}

/// A call with its answer, as rules see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
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

/// What a call is sent with.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// `None` for what is not recorded, such as a read.
    pub recorded: Option<Recorded<'a>>,
    pub timeout: Option<Duration>,
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
    /// What the answer object shows as `data`.
    pub data: Value,
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
