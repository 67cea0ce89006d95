//! A claim of the server's in our hands: its call is sent once, and the outcome goes to the server.

use super::client::{ANSWER_TAKES_MAX, PAUSE_FIRST, PAUSE_MAX, bytes_of};
use super::forms::{CallClaim, CallOutcome, SettlementForm, WHY_CHARS_MAX};
use super::{RemoteGate, RemotePassed, answer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use semel_core::answer::{Answer, Code, OutcomeWord, Trouble};
use semel_core::effect::{Effect, LastSend, NotAppliedWhy, Occurrence, Reply, SEND_WITHIN, State};
use semel_core::ids::{AttemptNo, EffectId, Nonce, OwnerId};
use semel_core::intent::Intent;
use semel_core::lifecycle::NewAttempt;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Rule;
use semel_core::time::At;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::look::Progress;
use semel_gate::upstream::{Recorded, Sending, Sent, Upstream};
use semel_gate::{GivenReply, Passed, SEND_MARGIN};
use std::sync::Arc;
use std::time::Duration;

/// How long a caller waits while its outcome is sent to the server again and again: losing it costs a doubt. The last
/// try may take [`ANSWER_TAKES_MAX`] beyond it.
const SETTLE_PATIENCE: Duration = Duration::from_secs(20);

/// How long a process that lives on sends an outcome whose caller has its answer. By then its claim has ended, mostly.
const LATE_PATIENCE: Duration = Duration::from_secs(3600);

const LATE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Each may hold a reply of the largest size.
pub(super) const LATE_OUTCOMES_MAX: usize = 8;

#[derive(Debug)]
pub struct HeldAttempt {
    claim: String,
    effect: Effect,
    attempt: AttemptNo,
    idempotency_key: String,
    /// When it lapses, by our own clock: a little early.
    deadline: At,
    timeout: Duration,
}

impl HeldAttempt {
    /// `claimed_on`: no later than the server took the claim. `None`: the claim cannot be read.
    pub fn of(
        claim: &CallClaim,
        intent: &Intent,
        rule: &Rule,
        claimed_on: At,
        timeout: Duration,
    ) -> Option<HeldAttempt> {
        let id = EffectId::parse(claim.effect_id.as_deref()?)?;
        let attempt = AttemptNo(claim.attempt?);
        let occurrence = Occurrence {
            number: claim.occurrence,
            reason: None,
            earlier: Vec::new(),
            calls: Vec::new(),
            before: None,
            by_permission: false,
        };
        let deadline = claimed_on.plus(timeout);
        let mut seed = intent.seed(id, occurrence, rule);
        // The server's own rule may be the stricter one.
        let facts = Arc::make_mut(&mut seed.facts);
        (facts.class, facts.tier) = (claim.class, claim.tier);
        let new = NewAttempt {
            nonce: Nonce(0),
            owner: OwnerId::AWAY,
            at: claimed_on,
            deadline,
            last_send: LastSend::By(claimed_on.plus(SEND_WITHIN.min(timeout))),
            call_id: intent.call_id.clone(),
            run: intent.run.clone(),
            epoch: 0,
            facts: Arc::clone(&seed.facts),
            marks: Arc::clone(&intent.marks),
            trace: None,
            uptime: None,
        };
        let mut effect = Effect::claimed(seed, &new);
        effect.attempts.iter_mut().for_each(|first| first.number = attempt);
        effect.state = State::InFlight { attempt };
        Some(HeldAttempt {
            claim: claim.claim.clone()?,
            effect,
            attempt,
            idempotency_key: claim.idempotency_key.clone()?,
            deadline,
            timeout,
        })
    }

    /// Sends it, unless its time is over. `claimed_at`: no later than the server took the claim, by the clock that
    /// nobody can set.
    pub async fn send(
        &self,
        clock: &dyn Clock,
        claimed_at: Duration,
        rule: &Rule,
        progress: &Progress,
        upstream: &mut dyn Upstream,
    ) -> Sent {
        let never = |why: String| {
            Sent::of(Outcome::NotApplied { why: NotAppliedWhy::NeverSent(why), reply: Reply::Unknown })
        };
        // Once more: the server may have made it wait, and connections age.
        if let Err(not_started) = upstream.prepare().await {
            return Sent { data: not_started.data, ..never(not_started.why) };
        }
        // Both clocks: one of them may have stood still while the machine slept.
        let margin = SEND_MARGIN.min(self.timeout / 2);
        let late = clock.now().plus(margin) > self.deadline
            || clock.elapsed().saturating_sub(claimed_at) + margin > self.timeout;
        if late {
            return never("this process was paused past its last moment for sending".into());
        }
        let recorded =
            Recorded { effect: &self.effect, attempt: self.attempt, idempotency_key: &self.idempotency_key };
        upstream.send(Sending { recorded: Some(recorded), timeout: rule.timeout, progress }).await
    }

    fn form(&self, sent: &Sent) -> SettlementForm {
        let said = |why: &str| why.chars().take(WHY_CHARS_MAX).collect::<String>();
        let plain = |outcome, why: String| SettlementForm {
            claim: self.claim.clone(),
            outcome,
            effect: None,
            evidence: None,
            why,
            reply_base64: sent.reply.as_deref().map(|reply| STANDARD.encode(reply)),
            reply_bytes: None,
        };
        let too_large = |reply: &Reply| match reply {
            Reply::TooLarge(bytes) => Some(*bytes),
            _ => None,
        };
        match &sent.outcome {
            Outcome::Applied { evidence, word, reply } => SettlementForm {
                effect: Some(*word),
                evidence: Some(*evidence),
                reply_bytes: too_large(reply),
                ..plain(CallOutcome::Applied, String::new())
            },
            Outcome::NotApplied { why, reply } => {
                let (outcome, why) = match why {
                    NotAppliedWhy::Refused(why) => (CallOutcome::Refused, said(why)),
                    NotAppliedWhy::Reported(why) => (CallOutcome::Reported, said(why)),
                    NotAppliedWhy::NeverSent(why) => (CallOutcome::NeverSent, said(why)),
                    NotAppliedWhy::AwaitingInput => (CallOutcome::AwaitingInput, String::new()),
                    // No sender says so.
                    NotAppliedWhy::Cancelled
                    | NotAppliedWhy::Probed
                    | NotAppliedWhy::Ruled
                    | NotAppliedWhy::Refuted(_) => (CallOutcome::InDoubt, String::new()),
                };
                SettlementForm { reply_bytes: too_large(reply), ..plain(outcome, why) }
            }
            Outcome::InDoubt { why, .. } => {
                SettlementForm { reply_base64: None, ..plain(CallOutcome::InDoubt, said(why)) }
            }
        }
    }

    /// The server does not know the outcome, and nobody is told that it does.
    fn unrecorded(&self, sent: Sent, why: &str) -> RemotePassed {
        if matches!(sent.outcome, Outcome::NotApplied { why: NotAppliedWhy::NeverSent(_), .. }) {
            let mut trouble = wording::ledger_unavailable(&format!(
                "{why}; the server holds this call as in flight until its deadline"
            ));
            trouble.next_step = "Call it again later, unchanged.".into();
            return self.refused(sent, trouble);
        }
        let mut trouble = wording::in_doubt(&self.effect);
        trouble.what_happened = format!(
            "It was sent and answered, but the answer could not be recorded: {why}. The server holds it as in flight \
             until its deadline, and then in doubt."
        );
        self.refused(sent, trouble)
    }

    fn refused(&self, sent: Sent, trouble: Trouble) -> RemotePassed {
        let answer = Answer {
            effect_id: Some(self.effect.id),
            attempt: Some(self.attempt),
            data: sent.data,
            ..Answer::of_trouble(self.effect.facts.tier, OutcomeWord::Ran, trouble)
        };
        RemotePassed::plain(Passed { answer, reply: GivenReply::None, delivery: None })
    }
}

/// An outcome that the server has not taken, for [`RemoteGate::settle_late`].
#[derive(Debug)]
pub struct Unsettled {
    form: Bytes,
}

impl RemoteGate {
    /// Sends the outcome to the server, again and again until it has it or patience ends.
    pub(super) async fn settle(&self, held: &HeldAttempt, sent: Sent) -> RemotePassed {
        let form = bytes_of(&held.form(&sent));
        match self.send_outcome(&form, SETTLE_PATIENCE, PAUSE_MAX).await {
            OutcomeReply::Answer(answer) => settled(self.at_the_server(*answer), sent),
            OutcomeReply::Refused(why) => self.unrecorded(held, sent, &why),
            OutcomeReply::Unavailable(why) => {
                RemotePassed { unsettled: Some(Unsettled { form }), ..self.unrecorded(held, sent, &why) }
            }
        }
    }

    fn unrecorded(&self, held: &HeldAttempt, sent: Sent, why: &str) -> RemotePassed {
        let mut passed = held.unrecorded(sent, why);
        passed.passed.answer = self.at_the_server(passed.passed.answer);
        passed
    }

    /// Its upstream gives no sign of life: a doubt, until its answer comes. Losing this leaves it in flight up to its
    /// deadline.
    pub(super) async fn settle_silent(&self, held: &HeldAttempt) {
        let why = "it has not answered, and shows no progress".to_owned();
        let form = held.form(&Sent::of(Outcome::InDoubt { why, sender_gone: false }));
        let _in_flight_unless_taken = self.send_outcome(&bytes_of(&form), SETTLE_PATIENCE, PAUSE_MAX).await;
    }

    /// Goes on sending an outcome whose caller has its answer. It counts however late it comes.
    pub async fn settle_late(&self, unsettled: Unsettled) {
        let Ok(_permit) = self.late_outcomes.try_acquire() else { return };
        let _recorded_or_in_doubt = self.send_outcome(&unsettled.form, LATE_PATIENCE, LATE_PAUSE_MAX).await;
    }

    async fn send_outcome(&self, form: &Bytes, patience: Duration, pause_max: Duration) -> OutcomeReply {
        let patience_ends = self.clock.elapsed() + patience;
        let mut pause = PAUSE_FIRST;
        loop {
            let why = match self.access.post("/calls/settle", form.clone(), ANSWER_TAKES_MAX).await {
                // The ledger behind it may be back in a moment.
                Ok(reply) if reply.is_transient() || reply.status == StatusCode::SERVICE_UNAVAILABLE => {
                    reply.detail()
                }
                Ok(reply) => {
                    return match answer::read(&reply.body) {
                        Some(answer) => OutcomeReply::Answer(Box::new(answer)),
                        None => OutcomeReply::Refused(reply.detail()),
                    };
                }
                Err(unanswered) => unanswered.why().to_owned(),
            };
            if self.clock.elapsed() > patience_ends {
                return OutcomeReply::Unavailable(why);
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(pause_max);
        }
    }
}

/// The answer of the server to an outcome.
enum OutcomeReply {
    Answer(Box<Answer>),
    /// It will say the same again.
    Refused(String),
    Unavailable(String),
}

/// The server's answer, with what only the sender has.
fn settled(answer: Answer, sent: Sent) -> RemotePassed {
    let is_own = match (&sent.outcome, &answer.trouble) {
        (Outcome::Applied { .. }, None) => true,
        (Outcome::NotApplied { .. }, Some(trouble)) => {
            matches!(trouble.code, Code::UpstreamRefused | Code::NotStarted)
        }
        _ => false,
    };
    let reply = if is_own { GivenReply::Live } else { GivenReply::None };
    let answer = Answer { data: sent.data, ..answer };
    RemotePassed::plain(Passed { answer, reply, delivery: None })
}
