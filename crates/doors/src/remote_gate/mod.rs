//! A gate whose ledger is behind a server elsewhere: it asks the API of `semel serve`, sends from here, and reports.
//!
//! The server decides and records; this side sends, reads the outcome and knows what it has seen. Both sides of the API
//! share [`forms`].
//!
//! It refuses to decide: whatever it is not told to send it does not send.

pub mod access;
pub mod answer;
mod client;
pub mod forms;
mod held_attempt;
pub mod rule_form;

pub use access::{BadAccess, ServerAccess};
pub use client::{ApiReply, Unanswered};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forms::{CallClaim, CallForm, DeliveredAnswer, DeliveredForm, Whoami};
use held_attempt::HeldAttempt;
use http::StatusCode;
use rule_form::RuleForm;
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::class::Class;
use semel_core::digest::{Digest, Secret};
use semel_core::ids::EffectId;
use semel_core::intent::{Ask, Intent};
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::pending_delivery::PendingDeliveries;
use semel_gate::upstream::Upstream;
use semel_gate::{GivenReply, Passed};
use semel_ledger::entropy::{Entropy, OsEntropy};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long after its first failure a call is asked for again before it is given up. A try that is under way is not cut
/// short: one that is never answered takes the wait and [`ANSWER_TAKES_MAX`]. Longer would only hide the trouble from the
/// caller; a server that is restarted is back within it, mostly.
const BEGIN_PATIENCE: Duration = Duration::from_secs(5);

/// How long a caller waits while its outcome is brought again and again: losing it costs a doubt. The last try may take
/// [`ANSWER_TAKES_MAX`] beyond it.
const SETTLE_PATIENCE: Duration = Duration::from_secs(20);

/// How long a process that lives on brings an outcome whose caller has its answer. By then its claim has ended, mostly.
const LATE_PATIENCE: Duration = Duration::from_secs(3600);

/// Each may hold a reply of the largest size.
const LATE_OUTCOMES_MAX: usize = 8;

const LATE_PAUSE_MAX: Duration = Duration::from_secs(30);

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Beyond the wait that was asked for.
const ANSWER_TAKES_MAX: Duration = Duration::from_secs(15);

/// Nobody sees a laptop die, so its claim ends by time alone. Most commands end within an hour; the outcome of a longer
/// one still counts, and only looks like a doubt in between.
const DEADLINE: Duration = Duration::from_secs(3600);
const DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The server keeps no request waiting for longer.
const WAIT_MAX: Duration = Duration::from_secs(60);

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

/// An outcome to be brought by [`RemoteGate::settle_late`].
#[derive(Debug)]
pub struct Unsettled {
    form: Bytes,
}

/// A success on record at the server whose caller has not read it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undelivered {
    pub effect: EffectId,
    /// The same for equal calls of this process.
    pub key: Digest,
}

/// The server's answer to the request to send.
enum Begun {
    Run(Box<CallClaim>),
    Answered(Box<RemotePassed>),
}

impl RemoteGate {
    pub fn new(access: ServerAccess, clock: Arc<dyn Clock>, mode: Mode) -> RemoteGate {
        let (pending, late_outcomes) = (PendingDeliveries::default(), Semaphore::new(LATE_OUTCOMES_MAX));
        RemoteGate { access, clock, mode, pending, late_outcomes }
    }

    /// Passes one call: the server joins, replays, holds or refuses it, or it is sent from here and settled there.
    pub async fn pass(&self, call: RemoteCall<'_>, upstream: &mut dyn Upstream) -> RemotePassed {
        let rule = call.rule;
        if rule.class == Class::Read || self.mode == Mode::Observe {
            return RemotePassed::plain(semel_gate::unrecorded(rule, upstream).await);
        }
        let intent = match local_intent(call) {
            Ok(intent) => intent,
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        let form = match form_of(call, false) {
            Ok(form) => form,
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        // A client that has read the answer of its last call means another one now.
        self.pending.settled(intent.key, &*self.clock).await;
        // The claim is younger than the first request for it.
        let (asked_at, asked_on) = (self.clock.elapsed(), self.clock.now());
        let claim = match self.begin(&form).await {
            Ok(Begun::Run(claim)) => claim,
            Ok(Begun::Answered(passed)) => return passed.under(intent.key),
            Err(trouble) => return RemotePassed::of_trouble(rule, trouble),
        };
        if claim.claim.is_none() {
            return RemotePassed::plain(semel_gate::unrecorded(rule, upstream).await);
        }
        let timeout = Duration::from_millis(form.timeout_ms);
        let waited = Duration::from_millis(claim.waited_ms);
        let Some(held) = HeldAttempt::of(&claim, &intent, rule, asked_on.plus(waited), timeout) else {
            let why = "the server's claim cannot be read; it runs another semel";
            return RemotePassed::of_trouble(rule, wording::ledger_unavailable(why));
        };
        let sent = held.send(&*self.clock, asked_at + waited, rule, upstream).await;
        let mut passed = self.settle(&held, sent).await;
        passed.passed.answer.possible_repeat = claim.possible_repeat;
        passed.under(intent.key)
    }

    /// Says what would happen, and sends nothing.
    pub async fn dry_run(&self, call: RemoteCall<'_>) -> Result<Answer, Trouble> {
        local_intent(call)?;
        let form = form_of(call, true)?;
        match self.begin(&form).await? {
            Begun::Answered(answered) if answered.passed.answer.dry_run.is_some() => {
                Ok(answered.passed.answer)
            }
            Begun::Answered(answered) => match answered.passed.answer.trouble {
                Some(trouble) => Err(trouble),
                None => Err(wording::ledger_unavailable("the server's answer is no dry run")),
            },
            Begun::Run(_) => Err(wording::ledger_unavailable("the server took a dry run for a call")),
        }
    }

    /// The answer has reached its caller. Losing the mark is safe: it means undelivered.
    pub async fn delivered(&self, effect: EffectId) -> Result<(), String> {
        let form = DeliveredForm { effect_id: effect.to_string() };
        let reply = self.access.post("/calls/delivered", bytes_of(&form), ANSWER_TAKES_MAX).await;
        let reply = reply.map_err(|unanswered| unanswered.why().to_owned())?;
        match DeliveredAnswer::deserialize(&reply.body) {
            Ok(_) if reply.status.is_success() => Ok(()),
            _ => Err(reply.detail()),
        }
    }

    /// Who the server takes us for.
    pub async fn whoami(&self) -> Result<Whoami, ServerTrouble> {
        let reply =
            self.access.get("/whoami", ANSWER_TAKES_MAX).await.map_err(|unanswered| {
                match unanswered.is_for_good() {
                    true => ServerTrouble::Setting(untrusted(unanswered.why())),
                    false => ServerTrouble::Away(unanswered.why().to_owned()),
                }
            })?;
        match Whoami::deserialize(&reply.body) {
            Ok(whoami) if reply.status.is_success() => Ok(whoami),
            _ if reply.is_for_now() => Err(ServerTrouble::Away(reply.detail())),
            _ => Err(ServerTrouble::Setting(refusal(&self.access, &reply))),
        }
    }

    async fn begin(&self, form: &CallForm) -> Result<Begun, Trouble> {
        let body = bytes_of(form);
        let within = Duration::from_millis(form.wait_ms) + ANSWER_TAKES_MAX;
        let (mut pause, mut failing_since) = (PAUSE_FIRST, None);
        let mut perhaps_claimed = false;
        loop {
            let why = match self.access.post("/calls/begin", body.clone(), within).await {
                Ok(reply) if reply.is_for_now() => reply.detail(),
                Ok(reply) => return self.read_begun(reply),
                Err(unanswered) if unanswered.is_for_good() => {
                    return Err(wording::not_started(&untrusted(unanswered.why())));
                }
                Err(unanswered) => {
                    perhaps_claimed |= matches!(unanswered, Unanswered::Lost(_));
                    unanswered.why().to_owned()
                }
            };
            let now = self.clock.elapsed();
            if now > *failing_since.get_or_insert(now) + BEGIN_PATIENCE {
                let claimed = match perhaps_claimed && !form.dry_run {
                    true => {
                        "; the server may hold a claim of this call until its deadline, and hold its repeats"
                    }
                    false => "",
                };
                return Err(wording::ledger_unavailable(&format!("{why}{claimed}")));
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// A person looks at the ledger where it is.
    fn at_the_server(&self, mut answer: Answer) -> Answer {
        if let Some(trouble) = &mut answer.trouble
            && trouble.human_next_step.starts_with("semel ledger")
        {
            trouble.human_next_step = format!("{} (at {})", trouble.human_next_step, self.access);
        }
        answer
    }

    fn read_begun(&self, reply: ApiReply) -> Result<Begun, Trouble> {
        if reply.status.is_success() && reply.body["outcome"] == "run" {
            let claim = CallClaim::deserialize(&reply.body);
            let unread =
                |_| wording::ledger_unavailable("the server's claim cannot be read; it runs another semel");
            return claim.map(|claim| Begun::Run(Box::new(claim))).map_err(unread);
        }
        let Some(answer) = answer::read(&reply.body).map(|answer| self.at_the_server(answer)) else {
            return Err(wording::not_started(&refusal(&self.access, &reply)));
        };
        let bytes = reply.body["reply_base64"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let reply = bytes.map_or(GivenReply::None, GivenReply::Recorded);
        let passed = Passed { answer, reply, delivery: None };
        Ok(Begun::Answered(Box::new(RemotePassed::plain(passed))))
    }
}

/// Why a server is of no use, before anything was asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTrouble {
    /// It cannot be reached now.
    Away(String),
    /// It will not be otherwise until somebody changes a setting.
    Setting(String),
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

fn untrusted(why: &str) -> String {
    format!("{why}; SEMEL_SERVER_CA names a file with the certificate that vouches for it")
}

/// A refusal that is about no effect.
fn refusal(access: &ServerAccess, reply: &ApiReply) -> String {
    let what = match reply.status {
        StatusCode::UNAUTHORIZED => {
            "it does not know the token: SEMEL_TOKEN is wrong, revoked or expired".to_owned()
        }
        StatusCode::NOT_FOUND if reply.body["title"].is_null() => {
            "there is no semel serve at that address, or an older one".to_owned()
        }
        _ => reply.detail(),
    };
    format!("the server {access} refuses: {what}")
}

fn bytes_of(form: &impl serde::Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(form).expect("forms have string keys"))
}

/// The call as this side sees it. Its keys are of no use to anybody: the server's secret is not here.
fn local_intent(call: RemoteCall<'_>) -> Result<Intent, Trouble> {
    Intent::of(call.ask, call.rule, &Secret::new([0; 32])).map_err(|missing| wording::key_required(&missing))
}

fn form_of(call: RemoteCall<'_>, dry_run: bool) -> Result<CallForm, Trouble> {
    let RemoteCall { ask, rule, class } = call;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let arguments = RawValue::from_string(ask.arguments.canonical());
    let arguments = arguments.map_err(|error| wording::not_started(&error.to_string()))?;
    Ok(CallForm {
        action: ask.action.to_owned(),
        arguments,
        rule: RuleForm::of(rule),
        authority: ask.authority.to_owned(),
        class,
        key: ask.key.as_ref().map(|key| key.as_str().to_owned()),
        run: ask.run.as_ref().map(|run| run.id.clone()),
        run_inferred: ask.run.as_ref().is_some_and(|run| !run.named),
        again: ask.again.as_ref().map(|again| again.as_str().to_owned()),
        call_id: ask.call_id.clone(),
        live_connection: ask.live_connection,
        serialize_by: ask.serialize_by.clone().or_else(|| rule.resource(ask.arguments)),
        replay_refusals: ask.replay_refusals,
        nonce: format!("{:032x}", OsEntropy.bits()),
        timeout_ms: millis(rule.timeout.unwrap_or(DEADLINE).min(DEADLINE_MAX)).max(1),
        wait_ms: millis(rule.wait.min(WAIT_MAX)),
        dry_run,
    })
}
