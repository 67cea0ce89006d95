//! Events for counting and tracing. An observer cannot change anything.

use semel_core::answer::Answer;
use semel_core::call_metadata::CallMetadata;
use semel_core::effect::{Attempt, Effect};
use semel_core::intent::Intent;
use semel_core::outcome::Outcome;
use semel_core::policy::prices::TokenUsage;
use semel_core::retry_origin::RetryOrigin;
use semel_core::time::At;
use std::fmt;
use std::time::Duration;

/// Called on the path of every call, so it must be quick and must not wait.
pub trait Observer: Send + Sync + fmt::Debug {
    fn observe(&self, event: &GateEvent<'_>);
}

#[derive(Debug)]
pub enum GateEvent<'a> {
    /// The right to make an attempt was taken, durably; that took this long.
    Claimed { took: Duration },
    /// An attempt goes out.
    Sent { intent: &'a Intent },
    /// An attempt has its answer, and it is recorded.
    Settled(&'a SettlementEvent<'a>),
    /// A call has its answer, the first one if it comes to several.
    Answered(&'a AnswerEvent<'a>),
    /// A client took a claim away; `again` if it had it before, and who repeated the call, if it is a repeat.
    Begun { intent: &'a Intent, again: bool, repeated_by: Option<RetryOrigin> },
    /// A call got no answer, because the ledger could not be asked. Nothing was sent.
    Failed { intent: &'a Intent },
    /// A read, or a call in observe mode: it was sent and is not recorded.
    PassedThrough { intent: &'a Intent },
}

#[derive(Debug)]
pub struct SettlementEvent<'a> {
    /// After the settlement.
    pub effect: &'a Effect,
    pub attempt: &'a Attempt,
    pub outcome: &'a Outcome,
    pub at: At,
    /// Two attempts of one effect succeeded.
    pub duplicate: bool,
    /// How long recording took.
    pub took: Duration,
    /// Of the call that made the attempt, unless a client took the claim away.
    pub metadata: Option<&'a CallMetadata>,
    /// The tokens that a model used for it.
    pub used: Option<TokenUsage>,
}

#[derive(Debug)]
pub struct AnswerEvent<'a> {
    pub intent: &'a Intent,
    pub answer: &'a Answer,
    /// When the call came.
    pub came: At,
    pub at: At,
    /// The layer that repeated it, if it is a repeat.
    pub repeated_by: Option<RetryOrigin>,
    /// Its timeout has passed, and it has its answer from another look: its own attempt goes on.
    pub looked_again: bool,
    /// The attempt whose answer it got, or that keeps it waiting.
    pub original: Option<(&'a Effect, &'a Attempt)>,
}
