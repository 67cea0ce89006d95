//! A gate as a server would have it: a ledger of any engine, lock files, a runtime; and a tool behind it that does
//! nothing.

use crate::Result;
use async_trait::async_trait;
use semel_core::answer::{EffectWord, OutcomeWord};
use semel_core::class::Class;
use semel_core::effect::{Effect, Evidence, Reply};
use semel_core::ids::{AttemptNo, IdempotencyKey};
use semel_core::intent::{Ask, Intent};
use semel_core::json::{self, Json};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{Probe, Rule};
use semel_core::policy::{ActionFacts, Mode, Policy};
use semel_core::time::{At, Uptime};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{Gate, Passed};
use semel_ledger::Ledger;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::fleet_holders::FleetHolders;
use semel_ledger::holders::FileHolders;
use semel_ledger::place::Place;
use semel_ledger::server_address::ServerAddress;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

const ACTION: &str = "fn:charge";

const COMMAND: &str = "fn:make";

/// The size of a recorded reply, here and in every denominator.
pub const REPLY_BYTES: usize = 200;

/// What a call brings along to be recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// A key of its own, as the clients of all peers send one.
    Key,
    /// Its arguments alone; semel then also looks for rewordings among what is open.
    Arguments,
}

#[derive(Debug)]
pub struct House {
    pub gate: Gate,
    rule: Arc<Rule>,
    /// Of a command that may be repeated.
    command: Arc<Rule>,
    reads: Arc<Rule>,
}

impl House {
    pub fn open(ledger: &Path) -> Result<House> {
        let clock = BenchClock(SystemClock::start());
        let options = OpenOptions::at(Place::at(ledger), clock.now());
        let OpenedStore { store, secret, .. } = SqliteStore::open(options)?;
        let holders = FileHolders::in_directory(store.place().owners());
        Ok(House::of(Ledger::new(Arc::new(store), Arc::new(holders), OsEntropy, secret), clock))
    }

    /// The ledger of this address, a path or that of a server. `here` is the directory that this host keeps for itself.
    pub fn at(address: &str, here: &Path) -> Result<House> {
        let Some(server) = ServerAddress::parse(address)? else { return House::open(Path::new(address)) };
        let now = || SystemClock::start().now();
        // The same for everybody; it seals nothing that lasts.
        let (store, secret) = block_on(server.open([7; 32], Arc::new(now)))?;
        let holders = FleetHolders::new(here, Arc::clone(&store))?;
        let clock = BenchClock(SystemClock::start());
        Ok(House::of(Ledger::new(store, Arc::new(holders), OsEntropy, secret), clock))
    }

    fn of(ledger: Ledger, clock: BenchClock) -> House {
        let arguments = arguments(0);
        let of_class = |class| {
            let facts = ActionFacts { class_override: Some(class), ..ActionFacts::new(ACTION, &arguments) };
            Policy::default().rule_for(&facts)
        };
        let (rule, reads) = (of_class(Class::Consequential), of_class(Class::Read));
        let command = of_class(Class::Act);
        House { gate: Gate::new(ledger, clock, Mode::Guard), rule, command, reads }
    }

    /// The intent of call `n` of a series. Another `n` or another series is another intent.
    pub fn intent(&self, named_by: KeySource, series: &str, n: u64) -> Intent {
        // Under another key too the very same arguments would wait for each other.
        let arguments = arguments(n);
        let key = (named_by == KeySource::Key).then(|| format!("{series}-{n}"));
        let key = key.map(|key| IdempotencyKey::parse(&key).expect("visible ASCII"));
        let ask = Ask { key, ..Ask::of((TENANT, TENANT), ACTION, &arguments) };
        Intent::of(&ask, &self.rule, self.gate.ledger.secret()).expect("the rule wants no key fields")
    }

    /// A message to the one channel.
    pub fn post(&self, n: u64) -> Intent {
        let text = format!(r#"{{"args":{{"channel":"general","text":"message {n}"}}}}"#);
        let arguments = json::parse(&text).expect("written just above");
        let ask = Ask::of((TENANT, TENANT), ACTION, &arguments);
        Intent::of(&ask, &self.rule, self.gate.ledger.secret()).expect("the rule wants no key fields")
    }

    /// The one command.
    pub fn command(&self) -> Intent {
        let arguments = json::parse(r#"{"argv":["make","all"]}"#).expect("it is JSON");
        let ask = Ask::of((TENANT, TENANT), COMMAND, &arguments);
        Intent::of(&ask, &self.command, self.gate.ledger.secret()).expect("the rule wants no key fields")
    }

    /// Passes the command, which must run again.
    pub async fn repeat(&self, intent: &Intent) -> Passed {
        let passed = self.gate.pass(intent, &self.command, &mut Nothing).await.expect("the ledger works");
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran, "a command is run as often as it is asked for");
        passed
    }

    pub async fn pass(&self, intent: &Intent) -> Passed {
        self.pass_to(intent, &mut Nothing).await
    }

    pub async fn pass_to(&self, intent: &Intent, upstream: &mut dyn Upstream) -> Passed {
        self.gate.pass(intent, &self.rule, upstream).await.expect("the ledger works")
    }

    /// Passes a call that must run.
    pub async fn fresh(&self, intent: &Intent) -> Passed {
        let passed = self.pass(intent).await;
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran, "this intent was meant to be new");
        passed
    }

    /// Passes a call that must be answered from the record.
    pub async fn replay(&self, intent: &Intent) -> Passed {
        let passed = self.pass(intent).await;
        assert_eq!(passed.answer.outcome, OutcomeWord::Replayed, "this intent was meant to be known");
        passed
    }

    /// Passes a call that changes nothing.
    pub async fn read(&self, intent: &Intent) -> Passed {
        self.gate.pass(intent, &self.reads, &mut Nothing).await.expect("a read needs no ledger")
    }

    /// So far, each of them one flush however many callers shared it. Servers count their own.
    pub fn durable_commits(&self) -> u64 {
        self.gate.ledger.store().commit_times().count()
    }
}

const TENANT: &str = "bench";

fn arguments(n: u64) -> Json {
    let text = format!(r#"{{"args":{{"customer":"cus_42","invoice":{n},"amount":4900,"currency":"eur"}}}}"#);
    json::parse(&text).expect("written just above")
}

pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().enable_time().build()?)
}

/// The machine's clocks, with a sleep that leaves the thread to others.
#[derive(Debug)]
pub struct BenchClock(SystemClock);

#[async_trait]
impl Clock for BenchClock {
    fn now(&self) -> At {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn uptime(&self) -> Option<Uptime> {
        self.0.uptime()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

/// A tool that does nothing and says that it worked.
#[derive(Debug)]
pub struct Nothing;

#[async_trait]
impl Upstream for Nothing {
    async fn prepare(&mut self) -> std::result::Result<(), NotStarted> {
        Ok(())
    }

    async fn send(&mut self, _sending: Sending<'_>) -> Sent {
        success()
    }

    async fn probe(&mut self, _probe: &Probe, _effect: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: "there is nothing to ask".into() }
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _effect: &Effect, _attempt: AttemptNo) {}

    fn release(&mut self) {}
}

/// A tool that says that it has begun, and ends when it is told to.
#[derive(Debug, Default)]
pub struct Slow {
    /// What it says, and what it is told.
    pub gates: Arc<(Notify, Notify)>,
}

#[async_trait]
impl Upstream for Slow {
    async fn prepare(&mut self) -> std::result::Result<(), NotStarted> {
        Ok(())
    }

    async fn send(&mut self, _sending: Sending<'_>) -> Sent {
        self.gates.0.notify_one();
        self.gates.1.notified().await;
        success()
    }

    async fn probe(&mut self, _probe: &Probe, _effect: Option<&Effect>) -> ProbeAnswer {
        ProbeAnswer::Unknown { why: "there is nothing to ask".into() }
    }

    fn sends_while_alive(&self) -> bool {
        false
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _effect: &Effect, _attempt: AttemptNo) {}

    fn release(&mut self) {}
}

pub fn success() -> Sent {
    let outcome =
        Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Created, reply: Reply::Kept };
    Sent { reply: Some(vec![b'r'; REPLY_BYTES]), ..Sent::of(outcome) }
}
