//! The tool behind the gate, and the network to it.

use super::Sabotage;
use super::beneath::StoreBeneath;
use super::clock::ManualClock;
use super::executor::{OUTSIDE, Orders};
use super::holders::SharedHolders;
use super::random::SharedRandom;
use super::tally::EventTally;
use super::world::{CallIdentity, EffectPlace, HonouredKey, SimulatedWorld};
use async_trait::async_trait;
use semel_core::answer::EffectWord;
use semel_core::digest::Digest;
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::ids::AttemptNo;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Probe;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_ledger::store::By;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The longest that a request travels, and the longest that a change takes to be seen by a probe. Together they are
/// shorter than [`QUIET`], as a rule's author must see to.
const TRAVEL_MILLIS: u64 = 2_000;
const LAG: Duration = Duration::from_secs(1);
pub const QUIET: Duration = Duration::from_secs(5);

/// A child process may think about it for this long before it acts.
const CHILD_MILLIS: u64 = 40_000;

/// After this long a connection is reset, if nothing else gave up before.
const RESET_AFTER: Duration = Duration::from_secs(45);

/// Of a hundred attempts, how many meet which fate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fates {
    pub request_lost: u64,
    pub answer_lost: u64,
    pub ambiguous: u64,
    pub late_answer: u64,
    pub refused: u64,
    pub never_sent: u64,
    pub probe_unknown: u64,
    /// Requests take their time. Without it, what is sent is done at once.
    pub slow: bool,
    /// The upstream answers a key as it did before, also with a refusal.
    pub refusals_stick: bool,
}

#[derive(Debug)]
pub struct SimulatedUpstream {
    pub world: SimulatedWorld,
    pub clock: ManualClock,
    pub random: SharedRandom,
    pub tally: EventTally,
    pub orders: Orders,
    pub holders: SharedHolders,
    pub fates: Fates,
    pub broken: Option<Sabotage>,
    /// Where the record of an effect is looked up: a caller's key may lead to another one than its intent.
    pub store: StoreBeneath,
    /// The record that this call is about.
    pub key: Digest,
    pub names: Vec<CallIdentity>,
    /// The upstream honours keys for this long.
    pub honours: Option<Duration>,
    /// A child process does it, not a request.
    pub child: bool,
    /// What the last attempt of this call got.
    pub got: Option<Vec<u8>>,
}

/// Where an answer is left for whoever still waits for it.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<(Option<UpstreamWord>, Option<Waker>)>>);

#[derive(Debug, Clone, Copy)]
enum UpstreamWord {
    Done(u64),
    Refused,
    /// A gateway in between says that it does not know.
    Unclear,
}

impl Slot {
    fn leave(&self, word: UpstreamWord) {
        let waker = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            slot.0 = Some(word);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The answer, or nothing if it does not come in time.
    async fn wait(&self, clock: &ManualClock, patience: Duration) -> Option<UpstreamWord> {
        let mut nap = pin!(clock.nap(patience));
        std::future::poll_fn(|context| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(word) = slot.0 {
                return Poll::Ready(Some(word));
            }
            slot.1 = Some(context.waker().clone());
            nap.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

impl SimulatedUpstream {
    fn place_of(&self, effect: &Effect) -> EffectPlace {
        let page = block_on(self.store.scan(By::Effect(effect.id.0), None, 1));
        let row = page.expect("the store is well").items.into_iter().next();
        row.map_or((self.key, effect.occurrence.number), |row| (row.key, row.ordinal))
    }

    /// One request on its way, whatever becomes of whoever sent it.
    fn dispatch(
        &self,
        place: EffectPlace,
        key: Option<HonouredKey>,
        names: Vec<CallIdentity>,
        run: Option<String>,
        slot: Slot,
    ) {
        let (world, clock, fates) = (self.world.clone(), self.clock.clone(), self.fates);
        let lost = self.random.percent(fates.request_lost);
        let refuses = self.random.percent(fates.refused);
        let unanswered = self.random.percent(fates.answer_lost);
        let unclear = self.random.percent(fates.ambiguous);
        let late = self.random.percent(fates.late_answer);
        let travel = match (self.child, fates.slow) {
            (true, true) => self.random.millis(1, CHILD_MILLIS),
            (false, true) => self.random.millis(0, TRAVEL_MILLIS),
            (_, false) => Duration::ZERO,
        };
        let back = if late { self.random.millis(10_000, 90_000) } else { self.random.millis(0, 800) };
        for (happens, what) in [
            (lost, "request lost"),
            (refuses, "refused"),
            (unanswered, "answer lost"),
            (unclear, "unclear answer"),
            (late, "answer late"),
        ] {
            if happens {
                self.tally.count(what);
            }
        }
        let descriptor = self.child.then(|| self.holders.inherited());
        let child = self.child;
        let job = async move {
            if !travel.is_zero() {
                clock.nap(travel).await;
            }
            let refuses = match &key {
                Some(key) if fates.refusals_stick && !lost => world.refuses(key, refuses, clock.elapsed()),
                _ => refuses,
            };
            let word = match (lost, refuses) {
                (true, _) => None,
                (false, true) => Some(UpstreamWord::Refused),
                (false, false) => {
                    if child {
                        world.acted(run, clock.elapsed());
                    }
                    Some(UpstreamWord::Done(world.apply(place, key.as_ref(), &names, clock.elapsed())))
                }
            };
            drop(descriptor);
            clock.nap(back).await;
            match word {
                Some(_) if unclear => slot.leave(UpstreamWord::Unclear),
                Some(word) if !unanswered => slot.leave(word),
                _ => {}
            }
        };
        // A child may die with its parent or survive it; a request on the wire always does.
        let dies_too = self.child && self.random.percent(50);
        self.orders.start(if dies_too { self.holders.process } else { OUTSIDE }, job);
    }
}

#[async_trait]
impl Upstream for SimulatedUpstream {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        // A run may be cancelled and drained while a connection is made.
        let longest = if self.random.percent(10) { 5_000 } else { 50 };
        self.clock.nap(self.random.millis(0, longest)).await;
        match self.random.percent(self.fates.never_sent) {
            true => Err(NotStarted { why: "no route".into(), data: Value::Null }),
            false => Ok(()),
        }
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        self.got = None;
        if self.random.percent(self.fates.never_sent) {
            self.tally.count("never sent");
            let why = NotAppliedWhy::NeverSent("connection refused".into());
            return Sent::of(Outcome::NotApplied { why, reply: Reply::Unknown });
        }
        let recorded = sending.recorded.expect("the simulation sends nothing that is not recorded");
        let place = self.place_of(recorded.effect);
        let attempt = recorded.effect.newest_attempt();
        let run = attempt.and_then(|attempt| attempt.run.as_ref()).map(|run| run.id.clone());
        // A doubt is sent again for whoever wanted it; whoever does so has asked for it by a name of its own, or not.
        let resent = attempt.is_some_and(|attempt| attempt.resend);
        let names: Vec<_> =
            self.names.iter().filter(|name| !(resent && **name == CallIdentity::Plain)).cloned().collect();
        let key =
            self.honours.map(|valid_for| HonouredKey { key: recorded.idempotency_key.to_owned(), valid_for });
        self.world.acted(run.clone(), self.clock.elapsed());
        let slot = Slot::default();
        self.dispatch(place, key.clone(), names.clone(), run.clone(), slot.clone());
        // Some answers are waited for past the timeout: nothing is killed, and they still count.
        let timeout = sending.timeout.filter(|_| self.random.percent(60)).unwrap_or(RESET_AFTER);
        let mut word = slot.wait(&self.clock, timeout).await;
        if word.is_none() && self.broken == Some(Sabotage::HiddenResend) {
            self.tally.count("hidden resend");
            self.dispatch(place, key, names, run, slot.clone());
            word = slot.wait(&self.clock, timeout).await;
        }
        match word {
            Some(UpstreamWord::Done(serial)) => {
                let reply = json!({"serial": serial}).to_string().into_bytes();
                self.got = Some(reply.clone());
                let evidence = if self.random.percent(10) { Evidence::Accepted } else { Evidence::Reported };
                let outcome = Outcome::Applied { evidence, word: EffectWord::Created, reply: Reply::Kept };
                Sent { reply: Some(reply), data: json!({"serial": serial}), ..Sent::of(outcome) }
            }
            Some(UpstreamWord::Refused) => {
                let outcome = Outcome::NotApplied {
                    why: NotAppliedWhy::Refused("declined".into()),
                    reply: Reply::Kept,
                };
                Sent { reply: Some(b"declined".to_vec()), data: json!("declined"), ..Sent::of(outcome) }
            }
            Some(UpstreamWord::Unclear) | None => {
                let why = if word.is_some() { "502" } else { "no answer" };
                // It was sent once and is not sent again by this sender; a child that runs on is another matter.
                let sender_gone = !self.child && self.random.percent(50);
                Sent::of(Outcome::InDoubt { why: why.into(), sender_gone })
            }
        }
    }

    async fn probe(&mut self, _probe: &Probe, effect: Option<&Effect>) -> ProbeAnswer {
        self.clock.nap(self.random.millis(0, 300)).await;
        let unknown = self.random.percent(self.fates.probe_unknown);
        let found = match effect {
            Some(effect) => self.world.done(self.place_of(effect)).first().copied(),
            None => self.world.any_of(self.key),
        };
        let lag = if self.fates.slow { LAG } else { Duration::ZERO };
        let seen = found.filter(|done| done.at + lag <= self.clock.elapsed());
        // The answer may be old when it comes.
        self.clock.nap(self.random.millis(0, if self.fates.slow { 9_000 } else { 10 })).await;
        if self.broken == Some(Sabotage::LyingProbe) && self.random.percent(70) {
            return ProbeAnswer::No;
        }
        match (unknown, seen) {
            (true, _) => {
                self.tally.count("probe could not tell");
                ProbeAnswer::Unknown { why: "truncated page".into() }
            }
            (false, Some(done)) => {
                let reply = json!({"serial": done.reply}).to_string().into_bytes();
                ProbeAnswer::Yes { reply: Some(reply), word: Some(EffectWord::Created), reply_failed: None }
            }
            (false, None) => ProbeAnswer::No,
        }
    }

    fn sends_while_alive(&self) -> bool {
        self.child
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {
        if self.child {
            self.holders.release_lock();
        }
    }
}
