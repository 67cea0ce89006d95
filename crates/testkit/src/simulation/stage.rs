//! All that one simulation consists of, and its three acts.

use super::Sabotage;
use super::beneath::StoreBeneath;
use super::clock::ManualClock;
use super::executor::{OUTSIDE, Orders, Process};
use super::holders::{Lie, Locks, SharedHolders, SimulatedHolders};
use super::plan::{PlannedCall, SimulationPlan, TENANT, secret};
use super::random::SharedRandom;
use super::store::{ShakyStore, StoreTrouble};
use super::tally::EventTally;
use super::upstream::{Fates, SimulatedUpstream};
use super::world::{EffectPlace, SimulatedWorld};
use semel_core::answer::{Code, OutcomeWord};
use semel_core::digest::Digest;
use semel_core::effect::{Ruling, State};
use semel_core::ids::{EffectId, Nonce, Reason};
use semel_core::intent::Intent;
use semel_core::policy::Mode;
use semel_core::policy::rule::Rule;
use semel_gate::clock::{Clock, block_on};
use semel_gate::look::Progress;
use semel_gate::upstream::{Recorded, Sending, Upstream};
use semel_gate::{BeginAnswer, ClaimHolder, Gate, GivenReply, HandedTo, Passed, SettleAnswer, Settlement};
use semel_ledger::Ledger;
use semel_ledger::memory::MemoryStore;
use semel_ledger::record::decode;
use semel_ledger::rulings::RulingVerdict;
use semel_ledger::store::{By, PAGE_ROWS_MAX, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub struct Simulation {
    pub plan: SimulationPlan,
    pub random: SharedRandom,
    pub broken: Option<Sabotage>,
    pub clock: ManualClock,
    pub orders: Orders,
    pub locks: Locks,
    pub world: SimulatedWorld,
    pub tally: EventTally,
    pub store: StoreBeneath,
    pub trouble: StoreTrouble,
    pub given: Mutex<Vec<GivenAnswer>>,
    /// From the promise that nothing more will be sent, to the end of the time in which it is watched.
    pub drains: Mutex<Vec<RunSpan>>,
    /// From when lifting a fence was begun until it was done, or given up.
    pub lifts: Mutex<Vec<RunSpan>>,
    /// By slot.
    pub living: Mutex<BTreeMap<usize, LivingProcess>>,
    pub progress: Mutex<BTreeMap<(usize, usize), usize>>,
    last_process: AtomicU32,
}

/// One that runs, what keeps its claims alive, and its gate.
pub type LivingProcess = (Process, SharedHolders, Arc<Gate>);

/// One answer, as its caller got it.
#[derive(Debug, Clone)]
pub struct GivenAnswer {
    pub template: usize,
    pub key: Digest,
    pub effect: Option<EffectId>,
    /// The place that a success speaks of.
    pub place: Option<EffectPlace>,
    pub ok: bool,
    pub outcome: OutcomeWord,
    pub code: Option<Code>,
    pub reply: Option<Vec<u8>>,
    /// How often the world had been changed when the answer was given.
    pub done_then: usize,
}

/// A span of time in which something holds for a run.
#[derive(Debug, Clone)]
pub struct RunSpan {
    pub run: String,
    pub from: Duration,
    pub until: Duration,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulation {
    pub fn set(
        plan: SimulationPlan,
        random: SharedRandom,
        broken: Option<Sabotage>,
        server: Option<Arc<dyn Store>>,
    ) -> Simulation {
        let clock = ManualClock::default();
        let memory = || StoreBeneath::Memory(Arc::new(MemoryStore::new(Arc::new(clock.clone()))));
        Simulation {
            plan,
            random,
            broken,
            orders: Orders::default(),
            locks: Locks::default(),
            world: SimulatedWorld::default(),
            tally: EventTally::default(),
            store: server.map_or_else(memory, StoreBeneath::Server),
            trouble: StoreTrouble::default(),
            given: Mutex::default(),
            drains: Mutex::default(),
            lifts: Mutex::default(),
            living: Mutex::default(),
            progress: Mutex::default(),
            last_process: AtomicU32::new(OUTSIDE),
            clock,
        }
    }

    /// Act one: agents work.
    pub fn work(self: &Arc<Self>) {
        self.trouble.set(self.plan.store_faults_percent);
        for process in 0..self.plan.processes.len() {
            self.start_process(process);
        }
    }

    /// Act two: all is well again, and everybody who ever wanted something wants it once more.
    pub fn calm(self: &Arc<Self>) {
        self.trouble.set(0);
        self.call_everything();
    }

    /// Act three: a person has ruled truthfully on what is still in doubt, and everybody calls a last time.
    pub fn ruled(self: &Arc<Self>) {
        let stage = Arc::clone(self);
        self.orders.start(OUTSIDE, async move {
            stage.rule().await;
            stage.call_everything();
        });
    }

    /// At the end of an act the store is well, and every process writes down what it still owes.
    pub fn write_rest(self: &Arc<Self>) {
        self.trouble.set(0);
        for (process, _, gate) in lock(&self.living).values().cloned() {
            self.orders.start(process, async move { gate.settle_pending().await });
        }
    }

    /// Every process ends, and its lock with it.
    pub fn everybody_leaves(&self) {
        for (_, (_, holders, _)) in std::mem::take(&mut *lock(&self.living)) {
            holders.release_lock();
        }
    }

    pub fn start_process(self: &Arc<Self>, slot: usize) {
        let process = self.last_process.fetch_add(1, Ordering::Relaxed) + 1;
        let (gate, holders) = self.gate(process);
        lock(&self.living).insert(slot, (process, holders.clone(), Arc::clone(&gate)));
        for agent in 0..self.plan.processes[slot].len() {
            let (stage, gate, holders) = (Arc::clone(self), Arc::clone(&gate), holders.clone());
            self.orders.start(process, async move { stage.agent(slot, agent, &gate, &holders).await });
        }
    }

    /// Its memory is gone, its requests on the wire are not.
    pub fn crash(&self, slot: usize) {
        if let Some((process, holders, _)) = lock(&self.living).remove(&slot) {
            self.orders.kill(process);
            holders.release_lock();
        }
    }

    pub fn gate(&self, process: Process) -> (Arc<Gate>, SharedHolders) {
        let lies = match self.broken {
            Some(Sabotage::LivePronouncedDead) => Some(Lie::EverybodyElseIsDead),
            Some(Sabotage::SilentPronouncedDead) => Some(Lie::TheSilentAreDead),
            _ => None,
        };
        let holders = SharedHolders(Arc::new(SimulatedHolders::of(process, &self.locks, lies)));
        let store = ShakyStore {
            inner: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            tally: self.tally.clone(),
            trouble: self.trouble.clone(),
            broken: self.broken,
        };
        let ledger = Ledger::new(Arc::new(store), Arc::new(holders.clone()), self.random.clone(), secret());
        let gate = Gate::new(ledger, self.clock.clone(), Mode::Guard);
        (Arc::new(gate), holders)
    }

    /// An agent works through its list; after a crash it goes on with the call that it had not finished.
    async fn agent(&self, slot: usize, agent: usize, gate: &Gate, holders: &SharedHolders) {
        let calls = &self.plan.processes[slot][agent];
        loop {
            let next = *lock(&self.progress).entry((slot, agent)).or_default();
            let Some(call) = calls.get(next) else { return };
            self.clock.nap(call.pause).await;
            for _ in 0..3 {
                match self.call(call, gate, holders, self.plan.fates).await {
                    Some(given) if given.ok => break,
                    // Refused, held, unreachable: an agent that does not give up yet.
                    _ => self.clock.nap(self.random.millis(100, 4_000)).await,
                }
            }
            *lock(&self.progress).entry((slot, agent)).or_default() = next + 1;
        }
    }

    async fn call(
        &self,
        call: &PlannedCall,
        gate: &Gate,
        holders: &SharedHolders,
        fates: Fates,
    ) -> Option<GivenAnswer> {
        let template = &self.plan.templates[call.template];
        let (intent, rule) = (template.intent(call), template.rule(call));
        let mut upstream = SimulatedUpstream {
            world: self.world.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            tally: self.tally.clone(),
            orders: self.orders.clone(),
            holders: holders.clone(),
            fates,
            broken: self.broken,
            store: self.store.clone(),
            key: intent.key,
            names: template.names(&intent),
            honours: rule.inject.as_ref().and_then(|inject| inject.valid_for),
            child: self.plan.children,
            got: None,
        };
        let passed = match template.away {
            true => self.carry_away(gate, &intent, &rule, &mut upstream).await,
            false => gate.pass(&intent, &rule, &mut upstream).await.ok(),
        };
        let Some(passed) = passed else {
            self.tally.count("ledger unavailable");
            return None;
        };
        let given = self.note(call.template, intent.key, &passed, upstream.got);
        if call.arrives
            && let Some(delivery) = &passed.delivery
        {
            // A mark that is lost means undelivered, which is safe.
            let _mark = gate.delivered(delivery).await;
        }
        Some(given)
    }

    /// A caller that sends by itself.
    async fn carry_away(
        &self,
        gate: &Gate,
        intent: &Intent,
        rule: &Rule,
        upstream: &mut SimulatedUpstream,
    ) -> Option<Passed> {
        let nonce = Nonce(u128::from(self.random.next()));
        let taken = match gate.begin(intent, rule, upstream, HandedTo::client(nonce)).await.ok()? {
            BeginAnswer::Run(taken) => *taken,
            BeginAnswer::Answered(passed) => return Some(*passed),
            BeginAnswer::Unrecorded => unreachable!("nothing in the simulation is a read"),
        };
        let page = block_on(self.store.scan(By::Effect(taken.effect.0), None, 1));
        let row = page.expect("the store is well").items.into_iter().next()?;
        let known = decode(row);
        let recorded = Recorded {
            effect: &known.effect,
            attempt: taken.attempt,
            idempotency_key: &taken.idempotency_key,
        };
        self.tally.count("sent by a client");
        let sent = upstream
            .send(Sending { recorded: Some(recorded), timeout: rule.timeout, progress: &Progress::default() })
            .await;
        for _ in 0..4 {
            let (effect, attempt, sent) = (taken.effect, taken.attempt, sent.clone());
            let settlement = Settlement {
                effect,
                attempt,
                nonce: taken.nonce,
                holder: ClaimHolder::Client,
                sent,
                undo: None,
            };
            match gate.settle(settlement).await {
                Ok(SettleAnswer::Recorded(passed)) => return Some(*passed),
                Ok(SettleAnswer::Otherwise(_) | SettleAnswer::NoSuchClaim) => return None,
                Err(_) => self.clock.nap(self.random.millis(500, 4_000)).await,
            }
        }
        None
    }

    fn record_of(&self, effect: EffectId) -> Option<Digest> {
        let page = block_on(self.store.scan(By::Effect(effect.0), None, 1));
        page.expect("the store is well").items.first().map(|row| row.key)
    }

    fn note(&self, template: usize, key: Digest, passed: &Passed, live: Option<Vec<u8>>) -> GivenAnswer {
        let answer = &passed.answer;
        // A caller's key may lead to another record than its intent.
        let delivered = passed.delivery.as_ref();
        let place = delivered.and_then(|found| Some((found.key, found.effect()?.occurrence.number)));
        let code = answer.trouble.as_ref().map(|trouble| trouble.code);
        let done_then = match place {
            Some(place) => self.world.done(place).len(),
            // A probe that goes first tells of what the call's own intent has done.
            None => {
                let records = answer.effect_id.and_then(|id| self.record_of(id)).into_iter().chain([key]);
                usize::from(records.into_iter().any(|record| self.world.any_of(record).is_some()))
            }
        };
        let reply = match &passed.reply {
            GivenReply::Live => live,
            GivenReply::Recorded(bytes) => Some(bytes.clone()),
            GivenReply::None => None,
        };
        self.tally.count(match (answer.outcome, code) {
            (OutcomeWord::Ran, None) => "ran",
            (OutcomeWord::Replayed, _) => "replayed",
            (OutcomeWord::Joined, _) => "joined",
            (_, Some(Code::InDoubt)) => "answered in doubt",
            (_, Some(Code::InFlight)) => "answered in flight",
            (_, Some(Code::Drift)) => "answered drift",
            (_, Some(Code::Lookalike)) => "answered lookalike",
            (_, Some(Code::Cancelled)) => "answered cancelled",
            (_, Some(Code::BudgetSpent)) => "answered budget spent",
            (_, Some(Code::UpstreamRefused)) => "answered refused",
            (_, Some(Code::NotStarted)) => "answered not started",
            _ => "answered otherwise",
        });
        let given = GivenAnswer {
            template,
            key,
            effect: answer.effect_id,
            place,
            ok: answer.ok,
            outcome: answer.outcome,
            code,
            reply,
            done_then,
        };
        lock(&self.given).push(given.clone());
        given
    }

    fn call_everything(self: &Arc<Self>) {
        let process = self.last_process.fetch_add(1, Ordering::Relaxed) + 1;
        let (gate, holders) = self.gate(process);
        lock(&self.living).insert(usize::MAX, (process, holders.clone(), Arc::clone(&gate)));
        let stage = Arc::clone(self);
        self.orders.start(process, async move {
            for run in super::plan::RUNS {
                let _ = gate.ledger.cancel(TENANT, run, true, None, stage.clock.now()).await;
            }
            // Whatever was still on its way has arrived.
            stage.clock.nap(Duration::from_secs(120)).await;
            for call in stage.plan.processes.iter().flatten().flatten() {
                stage.call(&call.plain(), &gate, &holders, Fates::default()).await;
            }
        });
    }

    async fn rule(&self) {
        let (gate, _holders) = self.gate(OUTSIDE);
        let page = gate.ledger.list(By::Open, None, PAGE_ROWS_MAX).await.expect("the store is well again");
        for (key, known) in page.items {
            if !matches!(known.effect.state, State::InDoubt(_)) {
                continue;
            }
            let happened = !self.world.done((key, known.effect.occurrence.number)).is_empty();
            let verdict =
                if happened { RulingVerdict::Applied { reply: None } } else { RulingVerdict::NotApplied };
            self.tally.count(if happened { "ruled applied" } else { "ruled not applied" });
            let reason = Reason::parse("looked it up").expect("a reason");
            let ruling = Ruling { by: "person".into(), reason, at: self.clock.now() };
            gate.ledger.resolve(known.effect.id, verdict, ruling).await.expect("a doubt can be ruled on");
        }
    }
}
