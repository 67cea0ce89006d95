//! The gate of this process, for code that calls its tools itself.

use crate::call::begin::BeginRequest;
use crate::call::reply::{reply_of, word_of};
use crate::call::settle::SettleForm;
use crate::ledger_address::{LedgerAddress, Purpose};
use crate::policy_files::{self, Unusable};
use crate::runtime::RuntimeClock;
use crate::settings::Settings;
use crate::{BadSetting, Error};
use async_trait::async_trait;
use semel_core::answer::{Answer, OutcomeWord};
use semel_core::class::Tier;
use semel_core::effect::{Effect, NotAppliedWhy, Reply, State};
use semel_core::ids::{AttemptNo, EffectId, Nonce};
use semel_core::intent::Intent;
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_core::policy::Policy;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::time::At;
use semel_core::wording;
use semel_gate::clock::block_on;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{
    BeginAnswer, ClaimHandle, ClaimHolder, Gate, GivenReply, HandedTo, Passed, SettleAnswer, Settlement,
};
use semel_ledger::entropy::{Entropy, OsEntropy};
use semel_ledger::rulings::Probed;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The tenant of a machine's own ledger, and the principal of whoever calls from it. There is no credential to take them
/// from.
pub const LOCAL: &str = "local";

/// How long after the last possible sending a probe's no begins to count, where nobody says.
const QUIET: Duration = Duration::from_secs(5);

/// How often answers are tried again that the ledger could not take; and after how many of these times counts are written,
/// and retention is looked at, which the ledger itself says when it is due.
const CARES_EVERY: Duration = Duration::from_secs(1);
const COUNTS_AFTER: u32 = 5;
const RETENTION_AFTER: u32 = 3600;

/// How long a process that ends waits for the marks of its answers. One that is lost means undelivered, which is safe.
const LAST_MARKS_MAX: Duration = Duration::from_secs(1);

const MARK_LOOKS_EVERY: Duration = Duration::from_millis(1);

/// A ledger in this process, and the policy that holds here. Clones share both.
#[derive(Debug, Clone)]
pub struct Semel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    gate: Gate,
    policy: Policy,
    run_id: Option<String>,
    directory: PathBuf,
    /// Answers whose marks are on their way.
    unmarked: AtomicUsize,
    /// Always there, but while it is dropped.
    runtime: Option<Runtime>,
}

/// The answer to a request to act.
#[derive(Debug)]
pub enum Begun {
    /// Act now, then settle.
    Run(Right),
    /// Act; nothing is recorded, and there is nothing to settle. A read, or observe mode.
    Unrecorded(Tier),
    /// Do not act: it was done before, and this is its answer.
    Done(Done),
    /// Do not act, and this is why.
    Held(Box<Answer>),
}

/// An effect that is on record as applied.
#[derive(Debug)]
pub struct Done {
    /// The answer, which says by whom and when.
    pub answer: Box<Answer>,
    /// As it was recorded. `None`: it is not known, and the answer's reason says why.
    pub reply: Option<Vec<u8>>,
}

/// The right to make one attempt. One that is dropped settles by itself: as never sent before [`Right::act`], and as a
/// doubt after it.
#[must_use]
#[derive(Debug)]
pub struct Right {
    semel: Semel,
    handle: ClaimHandle,
    action: String,
    rule: Arc<Rule>,
    acts: bool,
    is_settled: bool,
}

impl Semel {
    /// The ledger and the policy that the environment and the working directory name, as for every command.
    pub fn open() -> Result<Semel, Error> {
        Semel::of(&Settings::read()?)
    }

    /// Those that these settings name.
    pub fn of(settings: &Settings) -> Result<Semel, Error> {
        let policy = policy_files::load(settings, None).map_err(|unusable| match unusable {
            Unusable::File(bad) => Error::Setting(bad),
            Unusable::Content(found) => Error::Policy(found.render(false)),
        })?;
        let address = LedgerAddress::of(settings, None, None)?;
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("semel").enable_time().build();
        let runtime =
            runtime.map_err(|error| BadSetting::new(format!("no thread could be started: {error}")))?;
        let clock = RuntimeClock::start();
        let ledger = {
            let _within = runtime.enter();
            address.open(settings, &clock, Purpose::Server)?
        };
        let gate = Gate::new(ledger, clock, policy.mode);
        let (run_id, directory) = (settings.run_id(None), address.directory());
        let shared = Arc::new(Shared {
            gate,
            policy,
            run_id,
            directory,
            unmarked: AtomicUsize::new(0),
            runtime: Some(runtime),
        });
        let cared_for = Arc::downgrade(&shared);
        let semel = Semel(shared);
        semel.runtime().spawn(async move {
            for turn in 1_u32.. {
                tokio::time::sleep(CARES_EVERY).await;
                let Some(shared) = cared_for.upgrade() else { return };
                let gate = &shared.gate;
                gate.settle_pending().await;
                // What could not be written now is written the next time.
                if turn % COUNTS_AFTER == 0 {
                    let _later = gate.write_counts().await;
                }
                if turn % RETENTION_AFTER == 0 {
                    let (now, uptime) = (gate.clock.now(), gate.clock.uptime());
                    let _later = gate.ledger.prune_if_due(shared.policy.retention, now, uptime).await;
                }
            }
        });
        Ok(semel)
    }

    /// Asks for the right to act. A caller that goes away meanwhile leaves nothing open.
    pub async fn begin(&self, request: BeginRequest) -> Result<Begun, Error> {
        let semel = self.clone();
        self.spawn(async move { semel.begin_here(&request).await }).await
    }

    /// Says what would happen, and does nothing.
    pub async fn dry_run(&self, request: BeginRequest) -> Result<Answer, Error> {
        let semel = self.clone();
        self.spawn(async move { semel.dry_run_here(&request).await }).await
    }

    pub(crate) async fn dry_run_here(&self, request: &BeginRequest) -> Result<Answer, Error> {
        let (intent, rule) = self.intent(request)?;
        let mut upstream = CallerUpstream { action: &request.action };
        Ok(self.0.gate.dry_run(&intent, &rule, &mut upstream).await?)
    }

    /// The run that the environment names.
    pub fn run_id(&self) -> Option<String> {
        self.0.run_id.clone()
    }

    fn intent(&self, request: &BeginRequest) -> Result<(Intent, Rule), Error> {
        let rule = request.rule(&self.0.policy)?;
        let ask = request.ask(LOCAL, LOCAL);
        let intent = Intent::of(&ask, &rule, self.0.gate.ledger.secret());
        let intent = intent.map_err(|missing| {
            let trouble = wording::key_required(&missing);
            Error::Held(Box::new(Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble)))
        })?;
        Ok((intent, rule))
    }

    pub(crate) async fn begin_here(&self, request: &BeginRequest) -> Result<Begun, Error> {
        let (intent, rule) = match self.intent(request) {
            Err(Error::Held(answer)) => return Ok(Begun::Held(answer)),
            intent => intent?,
        };
        let nonce = request
            .nonce
            .as_deref()
            .map(|nonce| self.0.gate.ledger.secret().mac("caller nonce", &[nonce.as_bytes()]));
        let nonce = nonce.map_or_else(|| OsEntropy.bits(), |digest| digest.first_bits());
        let to = HandedTo { holder: ClaimHolder::ThisProcess, nonce: Nonce(nonce) };
        let mut upstream = CallerUpstream { action: &request.action };
        Ok(match self.0.gate.begin(&intent, &rule, &mut upstream, to).await? {
            BeginAnswer::Unrecorded => Begun::Unrecorded(rule.tier()),
            BeginAnswer::Run(handle) => Begun::Run(Right {
                semel: self.clone(),
                handle: *handle,
                action: request.action.clone(),
                rule: Arc::new(rule),
                acts: false,
                is_settled: false,
            }),
            BeginAnswer::Answered(passed) if passed.answer.ok => {
                let Passed { answer, reply, delivery } = *passed;
                self.deliver(delivery);
                let reply = match reply {
                    GivenReply::Recorded(bytes) => Some(bytes),
                    GivenReply::Live | GivenReply::None => None,
                };
                Begun::Done(Done { answer: Box::new(answer), reply })
            }
            BeginAnswer::Answered(passed) => Begun::Held(Box::new(passed.answer)),
        })
    }

    /// Reports what a read-only look at the outside has shown of a doubt.
    pub async fn probed(&self, effect: EffectId, look: Look) -> Result<Looked, Error> {
        let semel = self.clone();
        self.spawn(async move { semel.probed_here(effect, look).await }).await
    }

    pub(crate) async fn probed_here(&self, id: EffectId, look: Look) -> Result<Looked, Error> {
        let gate = &self.0.gate;
        let (key, stored) = gate.ledger.by_id(id).await?;
        let rule = self.0.policy.rule_kept(&stored.effect.facts.action, &stored.effect.facts.rule);
        let seen = gate.ledger.find(key).await?;
        let Some(effect) = seen.effect().filter(|newest| newest.id == id) else {
            return Ok(Looked::NoDoubt);
        };
        if !matches!(effect.state, State::InDoubt(_)) {
            return Ok(Looked::NoDoubt);
        }
        let (probed, asked_at, counts) = match look {
            Look::Found { reply } => {
                let undo = crate::call::reply::undo_of(&rule, &effect.facts.action, reply.as_deref());
                (Probed::Yes { word: word_of(&rule), reply, undo }, gate.clock.now(), true)
            }
            Look::NotThere { quiet, asked_ago } => {
                let quiet = rule.probe.as_ref().map_or(quiet.unwrap_or(QUIET), |probe| probe.quiet);
                let counts = gate.may_count_no(effect, quiet).await;
                let now = gate.clock.now();
                let ago = u64::try_from(asked_ago.as_micros()).unwrap_or(u64::MAX);
                (Probed::No { quiet }, At(now.0.saturating_sub(ago)), counts)
            }
        };
        let cleared = counts && gate.ledger.probed(&seen, probed, asked_at).await?.is_some();
        Ok(if cleared { Looked::Cleared } else { Looked::TooEarly })
    }

    /// Where the ledger, or this host's part of it, keeps its files.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// The action of an effect, and the rule that it was begun under.
    pub(crate) async fn kept_rule(&self, effect: EffectId) -> Result<(String, Arc<Rule>), Error> {
        let facts = self.0.gate.ledger.by_id(effect).await?.1.effect.facts;
        let rule = self.0.policy.rule_kept(&facts.action, &facts.rule);
        Ok((facts.action.clone(), rule))
    }

    /// The answer of an effect has reached its caller.
    fn deliver(&self, delivery: Option<semel_ledger::RecordSnapshot>) {
        let Some(delivery) =
            delivery.filter(|found| found.effect().is_some_and(|effect| effect.delivered_at.is_none()))
        else {
            return;
        };
        let semel = self.clone();
        let pending = self.0.gate.pending_deliveries.begin(delivery.key);
        self.0.unmarked.fetch_add(1, Ordering::Relaxed);
        self.runtime().spawn(async move {
            // Losing the mark is safe: it means undelivered.
            let _unmarked = semel.0.gate.delivered(&delivery).await;
            drop(pending);
            semel.0.unmarked.fetch_sub(1, Ordering::Relaxed);
        });
    }

    /// Before the process ends: waits a moment for the marks of answers that were given just now. Blocks this thread.
    pub fn flush(&self) {
        let _within = self.runtime().enter();
        let clock = &self.0.gate.clock;
        let ends = clock.elapsed() + LAST_MARKS_MAX;
        block_on(async {
            while self.0.unmarked.load(Ordering::Relaxed) > 0 && clock.elapsed() < ends {
                clock.sleep(MARK_LOOKS_EVERY).await;
            }
        });
    }

    /// Records what became of an attempt. A caller that goes away meanwhile has settled all the same.
    pub(crate) async fn settle_claim(
        &self,
        claimed: Claimed,
        action: String,
        rule: Arc<Rule>,
        form: SettleForm,
    ) -> Result<Answer, Error> {
        let semel = self.clone();
        self.spawn(async move { semel.settle_here(claimed, &action, &rule, form).await }).await
    }

    pub(crate) async fn settle_here(
        &self,
        claimed: Claimed,
        action: &str,
        rule: &Rule,
        form: SettleForm,
    ) -> Result<Answer, Error> {
        let sent = form.sent(rule)?;
        self.settle(claimed, sent, rule, action).await
    }

    /// Settles a claim whose caller went away before it could act.
    pub(crate) async fn give_back(
        &self,
        claimed: Claimed,
        action: &str,
        rule: &Rule,
    ) -> Result<Answer, Error> {
        self.settle(claimed, never_sent(), rule, action).await
    }

    async fn settle(&self, claimed: Claimed, sent: Sent, rule: &Rule, action: &str) -> Result<Answer, Error> {
        let undo = match &sent.outcome {
            Outcome::Applied { .. } => crate::call::reply::undo_of(rule, action, sent.reply.as_deref()),
            Outcome::NotApplied { .. } | Outcome::InDoubt { .. } => None,
        };
        let Claimed { effect, attempt, nonce } = claimed;
        let holder = ClaimHolder::ThisProcess;
        let settlement = Settlement { effect, attempt, nonce, holder, sent, undo };
        Ok(match self.0.gate.settle(settlement).await? {
            SettleAnswer::Recorded(passed) => {
                self.deliver(passed.delivery);
                passed.answer
            }
            SettleAnswer::Otherwise(effect) => on_record(&effect),
            SettleAnswer::NoSuchClaim => {
                let trouble = wording::unrecorded("the ledger does not know this attempt any more");
                Answer::of_trouble(rule.tier(), OutcomeWord::Ran, trouble)
            }
        })
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.0.runtime.as_ref().expect("it is there until the last clone is dropped")
    }

    /// Goes on when the caller goes away: what was claimed must come to an end.
    async fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.runtime().spawn(work).await {
            Ok(done) => done,
            Err(failed) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::Closed),
            },
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The last clone may be dropped within a task, which must not wait for its runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The attempt that is settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed {
    pub(crate) effect: EffectId,
    pub(crate) attempt: AttemptNo,
    pub(crate) nonce: Nonce,
}

impl Claimed {
    fn of(handle: &ClaimHandle) -> Claimed {
        Claimed { effect: handle.effect, attempt: handle.attempt, nonce: handle.nonce }
    }
}

/// What a look at the outside has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is there. This always counts.
    Found {
        /// What it would have answered, where that is known.
        reply: Option<Vec<u8>>,
    },
    /// It is not there. This counts once nothing can be sent for it any more, and `quiet` after.
    NotThere {
        /// How long what was sent may stay unseen.
        quiet: Option<Duration>,
        /// How long ago the outside was asked.
        asked_ago: Duration,
    },
}

/// The result of such a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// The doubt is settled.
    Cleared,
    /// A no that does not count yet: it may still be carried out.
    TooEarly,
    /// Nothing is in doubt, or not any more.
    NoDoubt,
}

impl Right {
    /// The effect, whose attempt this is.
    pub fn handle(&self) -> &ClaimHandle {
        &self.handle
    }

    /// From now on its effect may happen.
    pub fn act(&mut self) {
        self.acts = true;
    }

    /// Spends the right. The answer of a refusal or a doubt is not ok.
    pub async fn settle(mut self, form: SettleForm) -> Result<Answer, Error> {
        self.is_settled = true;
        let (action, rule) = (self.action.clone(), Arc::clone(&self.rule));
        self.semel.settle_claim(Claimed::of(&self.handle), action, rule, form).await
    }

    /// The right as a text, for code that settles later: see [`Semel::ask`].
    pub(crate) fn take_away(mut self) -> (ClaimHandle, String) {
        self.is_settled = true;
        (self.handle.clone(), std::mem::take(&mut self.action))
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let outcome = match self.acts {
            true => Outcome::InDoubt {
                why: "the code that called it was stopped before it had its answer".to_owned(),
                // A part of it may go on in another task or thread.
                sender_gone: false,
            },
            false => never_sent().outcome,
        };
        let (semel, claimed, action) = (self.semel.clone(), Claimed::of(&self.handle), self.action.clone());
        let rule = Arc::clone(&self.rule);
        self.semel.runtime().spawn(async move {
            // What cannot be written now is a doubt at the claim's deadline, or at the end of this process.
            let _lapses = semel.settle(claimed, Sent::of(outcome), &rule, &action).await;
        });
    }
}

fn never_sent() -> Sent {
    let why = NotAppliedWhy::NeverSent("the caller went away before it was called".to_owned());
    Sent::of(Outcome::NotApplied { why, reply: Reply::Unknown })
}

/// The answer to a settlement that says something else than the record.
fn on_record(effect: &Effect) -> Answer {
    let tier = effect.facts.tier;
    match &effect.state {
        State::Applied(applied) => Answer {
            effect_id: Some(effect.id),
            reason: Some("it is on record as applied; a settlement cannot take a success back".to_owned()),
            ..Answer::plain(true, applied.word, OutcomeWord::Ran, tier)
        },
        _ => Answer {
            effect_id: Some(effect.id),
            ..Answer::of_trouble(tier, OutcomeWord::Ran, wording::refuted(effect))
        },
    }
}

/// Code that calls its tool itself: nothing is sent from here.
#[derive(Debug)]
struct CallerUpstream<'a> {
    action: &'a str,
}

#[async_trait]
impl Upstream for CallerUpstream<'_> {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        Ok(())
    }

    async fn send(&mut self, _: Sending<'_>) -> Sent {
        unreachable!("the caller of {} sends by itself", self.action)
    }

    /// The questions of a policy are asked by the command `semel`, which has their clients.
    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        let why = "the question of its rule is asked by the command semel alone".to_owned();
        ProbeAnswer::Unknown { why }
    }

    fn sends_while_alive(&self) -> bool {
        true
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}

impl Done {
    /// The reply as JSON; null where it is not known.
    pub fn data(&self) -> Json {
        reply_of(self.reply.as_deref())
    }
}
