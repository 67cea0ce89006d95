//! A gate whose ledger is behind a server on another machine: it asks the API of `semel serve`, sends from here, and
//! reports.
//!
//! The server decides and records; this side sends, reads the outcome and knows what it has seen. Both sides of the API
//! share [`forms`].
//!
//! It refuses to decide: whatever it is not told to send it does not send.

pub mod access;
pub mod answer;
mod begin;
mod client;
pub mod delivery;
pub mod forms;
mod held_attempt;
pub mod rule_form;
mod whoami;

pub use access::{BadAccess, ServerAccess};
pub use client::{ApiReply, Unanswered};
pub use delivery::Undelivered;
pub use held_attempt::Unsettled;
pub use whoami::ServerTrouble;

use begin::{Begun, form_of, local_intent};
use forms::WHY_CHARS_MAX;
use held_attempt::{HeldAttempt, LATE_OUTCOMES_MAX};
use semel_core::answer::{Answer, Code, OutcomeWord, Trouble};
use semel_core::class::Class;
use semel_core::digest::Digest;
use semel_core::intent::Ask;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::wording;
use semel_gate::clock::{Clock, beside};
use semel_gate::look::Look;
use semel_gate::pending_delivery::PendingDeliveries;
use semel_gate::upstream::Upstream;
use semel_gate::{GivenReply, Passed};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

#[derive(Debug)]
pub struct RemoteGate {
    pub access: ServerAccess,
    pub clock: Arc<dyn Clock>,
    pub mode: Mode,
    /// Answers of this process on their way out.
    pub pending: PendingDeliveries,
    late_outcomes: Semaphore,
}

/// A call, as its door understood it.
#[derive(Debug, Clone, Copy)]
pub struct RemoteCall<'a> {
    /// Tenant and principal in it are of no account: the token says them.
    pub ask: &'a Ask<'a>,
    pub rule: &'a Rule,
    /// The class that this one call asks for.
    pub class: Option<Class>,
}

/// The result of a call.
#[derive(Debug)]
pub struct RemotePassed {
    pub passed: Passed,
    /// The success to mark once its answer has reached the caller.
    pub undelivered: Option<Undelivered>,
    /// The outcome that the server has not taken.
    pub unsettled: Option<Unsettled>,
}

impl RemoteGate {
    pub fn new(access: ServerAccess, clock: Arc<dyn Clock>, mode: Mode) -> RemoteGate {
        let (pending, late_outcomes) = (PendingDeliveries::default(), Semaphore::new(LATE_OUTCOMES_MAX));
        RemoteGate { access, clock, mode, pending, late_outcomes }
    }

    /// Passes one call: the server joins, replays, holds or refuses it, or it is sent from here and settled there.
    pub async fn pass(&self, call: RemoteCall<'_>, look: &Look, upstream: &mut dyn Upstream) -> RemotePassed {
        let rule = call.rule;
        if rule.class == Class::Read || self.mode == Mode::Observe {
            return RemotePassed::plain(semel_gate::unrecorded(rule, upstream).await);
        }
        let intent = match local_intent(call) {
            Ok(intent) => intent,
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        let mut form = match form_of(call, false) {
            Ok(form) => form,
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        // Before the claim, as everywhere. The server may have an answer that needs no sending.
        let not_ready = upstream.prepare().await.err();
        form.not_ready = not_ready.as_ref().map(|not| not.why.chars().take(WHY_CHARS_MAX).collect());
        // A client that has read the answer of its last call means another one now.
        self.pending.settled(intent.key, &*self.clock).await;
        // The claim is younger than the first request for it.
        let (asked_at, asked_on) = (self.clock.elapsed(), self.clock.now());
        let claim = match self.begin(&form).await {
            Ok(Begun::Run(claim)) => claim,
            Ok(Begun::Answered(mut passed)) => {
                let answer = &mut passed.passed.answer;
                if answer.trouble.as_ref().is_some_and(|trouble| trouble.code == Code::NotStarted) {
                    answer.data = not_ready.map(|not| not.data).unwrap_or_default();
                }
                return passed.under(intent.key);
            }
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        if claim.claim.is_none() {
            return RemotePassed::plain(semel_gate::unrecorded(rule, upstream).await);
        }
        let timeout = Duration::from_millis(form.timeout_ms);
        let waited = Duration::from_millis(claim.waited_ms);
        let Some(held) = HeldAttempt::of(&claim, &intent, rule, asked_on.plus(waited), timeout) else {
            let why = "the server's claim cannot be read; it runs another version of semel";
            return RemotePassed::of_trouble(rule, wording::ledger_unavailable(why));
        };
        look.sends(&*self.clock);
        let silent = async {
            look.silence(&*self.clock, Duration::ZERO).await;
            self.settle_silent(&held).await;
        };
        let sent = held.send(&*self.clock, asked_at + waited, rule, look.progress(), upstream);
        let sent = beside(sent, silent).await;
        let mut passed = self.settle(&held, sent).await;
        passed.passed.answer.possible_repeat = claim.possible_repeat;
        passed.under(intent.key)
    }
}

impl RemotePassed {
    fn plain(passed: Passed) -> RemotePassed {
        RemotePassed { passed, undelivered: None, unsettled: None }
    }

    /// An answer that its caller should be known to have read.
    fn under(mut self, key: Digest) -> RemotePassed {
        let answer = &self.passed.answer;
        self.undelivered = answer.effect_id.filter(|_| answer.ok).map(|effect| Undelivered { effect, key });
        self
    }

    fn of_trouble(rule: &Rule, trouble: Trouble) -> RemotePassed {
        let answer = Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble);
        RemotePassed::plain(Passed { answer, reply: GivenReply::None, delivery: None })
    }
}
