//! Gates over one memory store, on a manual clock, with an upstream that follows a script.

use async_trait::async_trait;
use semel_core::answer::{Answer, Code, EffectWord};
use semel_core::class::Class;
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Effect, Evidence, NotAppliedWhy, Reply};
use semel_core::ids::{AttemptNo, IdempotencyKey, Nonce, Reason, Run};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::{Json, parse};
use semel_core::outcome::Outcome;
use semel_core::policy::rule::{Inject, InjectInto, Probe, Rule, RuleCall};
use semel_core::policy::{ActionFacts, Mode, Policy};
use semel_core::time::At;
use semel_gate::clock::{Clock, block_on};
use semel_gate::look::Look;
use semel_gate::upstream::{CallView, NotStarted, ProbeAnswer, Sending, Sent, Upstream};
use semel_gate::{BeginAnswer, Error, Gate, HandedTo, Passed};
use semel_ledger::engine_facts::EngineFacts;
use semel_ledger::memory::MemoryStore;
use semel_ledger::record::decode;
use semel_ledger::store::{
    By, Cell, Commit, Committed, Cursor, Hint, JournalLine, Latest, PAGE_ROWS_MAX, Page, Revision, Row,
    Store, Versioned,
};
use semel_ledger::{Error as LedgerError, Ledger, RecordSnapshot};
use semel_testkit::simulation::clock::ManualClock;
use semel_testkit::simulation::executor::{self, OUTSIDE, Orders, Process, step_aside};
use semel_testkit::simulation::holders::{Descriptor, Locks, SharedHolders, SimulatedHolders};
use semel_testkit::simulation::random::SharedRandom;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const TENANT: &str = "tenant";

pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub struct House {
    pub clock: ManualClock,
    pub memory: Arc<MemoryStore>,
    pub orders: Orders,
    pub locks: Locks,
    pub random: SharedRandom,
    after_commit: Arc<Mutex<Option<Hook>>>,
    cell_pause: Arc<Mutex<Duration>>,
    begun: Arc<Mutex<usize>>,
    held: HeldCommits,
    /// How far the clock of the ledger's server is ahead of the machine's uptime, in microseconds, if it has a clock.
    server_clock: Arc<Mutex<Option<i64>>>,
    /// Where the processes of this house keep what their ledger does not take, if anywhere.
    pub spool: Option<tempfile::TempDir>,
}

impl House {
    pub fn new() -> House {
        let clock = ManualClock::default();
        House {
            memory: Arc::new(MemoryStore::new(Arc::new(clock.clone()))),
            clock,
            orders: Orders::default(),
            locks: Locks::default(),
            random: SharedRandom::of(1),
            after_commit: Arc::default(),
            cell_pause: Arc::default(),
            begun: Arc::default(),
            held: HeldCommits::default(),
            server_clock: Arc::default(),
            spool: None,
        }
    }

    pub fn with_spool() -> House {
        House { spool: Some(tempfile::tempdir().expect("a directory")), ..House::new() }
    }

    /// The ledger's server has a clock of its own from now on, and it is so far ahead of this host's.
    pub fn server_clock_is_ahead(&self, seconds: i64) {
        let here = self.clock.now().0.cast_signed() - self.clock.elapsed().as_micros() as i64;
        *self.server_clock.lock().unwrap() = Some(here + seconds * 1_000_000);
    }

    /// How many commits could have been refused for want of room.
    pub fn begun(&self) -> usize {
        *self.begun.lock().unwrap()
    }

    /// From then on the store takes commits and neither answers nor carries them out.
    pub fn holds_commits(&self) -> impl FnOnce() + Send + 'static {
        let held = Arc::clone(&self.held);
        move || *held.lock().unwrap() = Some(Vec::new())
    }

    /// It answers again.
    pub fn answers_again(&self) -> Vec<Arc<Commit>> {
        self.held.lock().unwrap().take().expect("it was silent")
    }

    /// Commits that it was given long ago are carried out now.
    pub fn lands_late(&self, held: Vec<Arc<Commit>>) -> Vec<Committed> {
        held.into_iter().map(|commit| block_on(self.memory.commit(commit)).expect("it is well")).collect()
    }

    /// Something that happens between a commit and its answer.
    pub fn after_next_commit(&self, hook: impl FnOnce() + Send + 'static) {
        *self.after_commit.lock().unwrap() = Some(Box::new(hook));
    }

    /// The next cell that is found was read so long ago.
    pub fn pause_after_next_cell(&self) -> impl FnOnce(Duration) + Send + 'static {
        let pause = Arc::clone(&self.cell_pause);
        move |span| *pause.lock().unwrap() = span
    }

    pub fn secret() -> Secret {
        Secret::new([7; 32])
    }

    /// A process with a gate of its own.
    pub fn process(&self, process: Process, mode: Mode) -> (Arc<Gate>, SharedHolders) {
        self.process_on(process, mode, self.spool.as_ref().map(tempfile::TempDir::path))
    }

    /// One on a host that keeps what the ledger does not take here, or nowhere.
    pub fn process_on(
        &self,
        process: Process,
        mode: Mode,
        spool: Option<&Path>,
    ) -> (Arc<Gate>, SharedHolders) {
        let holders = SharedHolders(Arc::new(SimulatedHolders::of(process, &self.locks, None)));
        let inner = Arc::clone(&self.memory);
        let (after_commit, begun) = (Arc::clone(&self.after_commit), Arc::clone(&self.begun));
        let (cell_pause, clock) = (Arc::clone(&self.cell_pause), self.clock.clone());
        let (held, server_clock) = (Arc::clone(&self.held), Arc::clone(&self.server_clock));
        let store = HookedStore { inner, after_commit, cell_pause, clock, begun, held, server_clock };
        let ledger =
            Ledger::new(Arc::new(store), Arc::new(holders.clone()), self.random.clone(), House::secret());
        let ledger = match spool {
            Some(spool) => ledger.spooled_below(spool),
            None => ledger,
        };
        (Arc::new(Gate::new(ledger, self.clock.clone(), mode)), holders)
    }

    pub fn gate(&self) -> Arc<Gate> {
        self.process(OUTSIDE, Mode::Guard).0
    }

    /// Starts a task; its result is there once [`House::settle`] has run.
    pub fn start<T: Send + 'static>(
        &self,
        process: Process,
        job: impl Future<Output = T> + Send + 'static,
    ) -> Arc<Mutex<Option<T>>> {
        let slot = Arc::new(Mutex::new(None));
        let result = Arc::clone(&slot);
        self.orders.start(process, async move {
            let done = job.await;
            *result.lock().unwrap() = Some(done);
        });
        slot
    }

    /// A process dies after this time.
    pub fn dies_after(&self, span: Duration, process: Process, holders: SharedHolders) {
        let (orders, clock) = (self.orders.clone(), self.clock.clone());
        self.start(0, async move {
            clock.nap(span).await;
            orders.kill(process);
            holders.release_lock();
        });
    }

    /// Runs everything that was started to its end.
    pub fn settle(&self) {
        executor::run(&self.orders, &self.clock, &self.random).expect("everything comes to an end");
    }

    pub fn run<T: Send + 'static>(&self, job: impl Future<Output = T> + Send + 'static) -> T {
        let slot = self.start(OUTSIDE, job);
        self.settle();
        take(&slot)
    }

    /// One call, alone, to its answer.
    pub fn pass(&self, gate: &Arc<Gate>, wish: &Wish, script: &Script) -> Passed {
        self.try_pass(gate, wish, script).expect("the ledger is well")
    }

    pub fn try_pass(&self, gate: &Arc<Gate>, wish: &Wish, script: &Script) -> Result<Passed, Error> {
        self.run(call(gate, wish, script, &self.clock))
    }

    /// A call whose answer reaches its caller.
    pub fn pass_delivered(&self, gate: &Arc<Gate>, wish: &Wish, script: &Script) -> Passed {
        let passed = self.pass(gate, wish, script);
        let delivery = passed.delivery.clone().expect("a success");
        self.deliver(gate, delivery);
        passed
    }

    /// The same, if there is anything to mark: a refusal has no mark.
    pub fn pass_heard(&self, gate: &Arc<Gate>, wish: &Wish, script: &Script) -> Passed {
        let passed = self.pass(gate, wish, script);
        if let Some(delivery) = passed.delivery.clone() {
            self.deliver(gate, delivery);
        }
        passed
    }

    fn deliver(&self, gate: &Arc<Gate>, delivery: RecordSnapshot) {
        let gate = Arc::clone(gate);
        self.run(async move { gate.delivered(&delivery).await.expect("the ledger is well") });
    }

    pub fn wait(&self, span: Duration) {
        let clock = self.clock.clone();
        self.run(async move { clock.nap(span).await });
    }

    pub fn effects(&self) -> Vec<Effect> {
        let page = block_on(self.memory.scan(By::All, None, PAGE_ROWS_MAX)).expect("the store is well");
        page.items.into_iter().map(|row| decode(row).effect).collect()
    }

    pub fn effect(&self) -> Effect {
        let mut effects = self.effects();
        assert_eq!(effects.len(), 1, "{effects:?}");
        effects.remove(0)
    }

    pub fn journal(&self) -> Vec<JournalLine> {
        let page = block_on(self.memory.journal(None, 1_000)).expect("the store is well");
        page.items.into_iter().map(|(_, line)| line).collect()
    }

    pub fn journaled(&self, kind: &str) -> usize {
        self.journal().iter().filter(|line| line.kind == kind).count()
    }

    /// A replica with what it knew takes over, and says so.
    pub fn fail_over(&self, to: &semel_ledger::memory::MemorySnapshot) {
        self.memory.fail_over_to(to);
        let (gate, now) = (self.gate(), self.clock.now());
        block_on(gate.ledger.bump_epoch("failover", now)).expect("the store is well");
    }
}

pub fn take<T>(slot: &Arc<Mutex<Option<T>>>) -> T {
    slot.lock().unwrap().take().expect("it has come to its end")
}

pub fn call(
    gate: &Arc<Gate>,
    wish: &Wish,
    script: &Script,
    clock: &ManualClock,
) -> impl Future<Output = Result<Passed, Error>> + Send + use<> {
    let (gate, wish, script, clock) = (Arc::clone(gate), wish.clone(), script.clone(), clock.clone());
    async move {
        let says_in_full = script.lines().says_more;
        let left_alone = script.lines().left_alone;
        let look = if left_alone { Look::without_caller() } else { Look::default() };
        let intent = Intent { says_in_full, ..wish.intent() };
        let mut upstream = Actor { script, clock };
        gate.pass_in(&look, &intent, &wish.rule, &mut upstream).await
    }
}

/// An upstream that follows the script.
pub fn actor(script: &Script, clock: &ManualClock) -> impl Upstream + use<> {
    Actor { script: script.clone(), clock: clock.clone() }
}

/// A client's wish to send by itself.
pub fn begin(
    gate: &Arc<Gate>,
    wish: &Wish,
    nonce: u128,
    clock: &ManualClock,
) -> impl Future<Output = BeginAnswer> + Send + use<> {
    let (gate, wish, clock) = (Arc::clone(gate), wish.clone(), clock.clone());
    async move {
        let mut upstream = Actor { script: Script::succeeds(), clock };
        gate.begin(&wish.intent(), &wish.rule, &mut upstream, HandedTo::client(Nonce(nonce)))
            .await
            .expect("the ledger is well")
    }
}

/// What a caller wants, in words that tests change.
#[derive(Clone)]
pub struct Wish {
    pub action: &'static str,
    pub rule: Rule,
    pub arguments: String,
    pub run: Option<&'static str>,
    pub key: Option<&'static str>,
    pub again: Option<&'static str>,
    pub asked_by: AskedBy,
    pub call_id: Option<&'static str>,
}

impl Wish {
    pub fn of(class: Class) -> Wish {
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
        let mut rule = Arc::unwrap_or_clone(rule);
        rule.class = class;
        rule.wait = seconds(25);
        Wish {
            action: "fn:charge",
            rule,
            arguments: r#"{"args":{"customer":"ann","amount":1}}"#.into(),
            run: None,
            key: None,
            again: None,
            asked_by: AskedBy::Agent,
            call_id: None,
        }
    }

    pub fn consequential() -> Wish {
        Wish::of(Class::Consequential)
    }

    pub fn probed() -> Wish {
        let mut wish = Wish::consequential();
        wish.rule.probe = Some(Probe {
            call: RuleCall::Command { argv: Vec::new() },
            found: None,
            reply: None,
            quiet: seconds(5),
            before: false,
        });
        wish
    }

    pub fn keyed(valid_for: Duration) -> Wish {
        let mut wish = Wish::consequential();
        let into = InjectInto::Header("Idempotency-Key".into());
        wish.rule.inject =
            Some(Inject { into, form: Default::default(), length: None, valid_for: Some(valid_for) });
        wish
    }

    pub fn with_arguments(&self, arguments: &str) -> Wish {
        Wish { arguments: arguments.into(), ..self.clone() }
    }

    pub fn in_run(&self, run: &'static str) -> Wish {
        Wish { run: Some(run), ..self.clone() }
    }

    pub fn again(&self, why: &'static str) -> Wish {
        Wish { again: Some(why), ..self.clone() }
    }

    pub fn intent(&self) -> Intent {
        let arguments = parse(&self.arguments).expect("valid JSON");
        let ask = Ask {
            run: self.run.map(|run| Run::named(run).expect("a run")),
            key: self.key.map(|key| IdempotencyKey::parse(key).expect("a key")),
            again: self.again.map(|why| Reason::parse(why).expect("a reason")),
            asked_by: self.asked_by,
            call_id: self.call_id.map(str::to_owned),
            ..Ask::of((TENANT, "principal"), self.action, &arguments)
        };
        Intent::of(&ask, &self.rule, &House::secret()).expect("no key is required")
    }
}

/// What the upstream will do, in order, and what it was asked.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Lines>>);

type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Lines {
    answers: VecDeque<(Duration, Outcome)>,
    probes: VecDeque<(Duration, ProbeAnswer)>,
    prepare_fails: bool,
    says_more: bool,
    left_alone: bool,
    on_prepare: Option<Hook>,
    on_send: Option<Hook>,
    child: bool,
    descriptor: Option<Descriptor>,
    signs_every: Option<Duration>,
    sent: Vec<String>,
    asked: usize,
}

pub fn success() -> Outcome {
    Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Created, reply: Reply::Kept }
}

pub fn refusal() -> Outcome {
    Outcome::NotApplied { why: NotAppliedWhy::Refused("declined".into()), reply: Reply::Kept }
}

pub fn unclear() -> Outcome {
    Outcome::InDoubt { why: "502".into(), sender_gone: false }
}

pub fn yes() -> ProbeAnswer {
    ProbeAnswer::Yes { reply: Some(b"found".to_vec()), word: None, reply_failed: None }
}

impl Script {
    /// Each attempt gets the next of these; the last one is for all that follow.
    pub fn answers(outcomes: impl IntoIterator<Item = Outcome>) -> Script {
        let script = Script::default();
        script.lines().answers = outcomes.into_iter().map(|outcome| (Duration::ZERO, outcome)).collect();
        script
    }

    pub fn after(span: Duration, outcome: Outcome) -> Script {
        let script = Script::default();
        script.lines().answers = VecDeque::from([(span, outcome)]);
        script
    }

    pub fn succeeds() -> Script {
        Script::answers([success()])
    }

    pub fn probes(self, answers: impl IntoIterator<Item = ProbeAnswer>) -> Script {
        self.slow_probes(answers.into_iter().map(|answer| (Duration::ZERO, answer)))
    }

    pub fn slow_probes(self, answers: impl IntoIterator<Item = (Duration, ProbeAnswer)>) -> Script {
        self.lines().probes = answers.into_iter().collect();
        self
    }

    pub fn cannot_be_prepared(self) -> Script {
        self.lines().prepare_fails = true;
        self
    }

    /// Its upstream is gone after the first attempt, until [`Script::is_back`].
    pub fn ends_once_sent(self) -> Script {
        let lines = Arc::downgrade(&self.0);
        self.while_sending(move || {
            if let Some(lines) = lines.upgrade() {
                lines.lock().unwrap().prepare_fails = true;
            }
        })
    }

    pub fn is_back(&self) {
        self.lines().prepare_fails = false;
    }

    /// The call says in full what its twin may only have named.
    pub fn says_more(self) -> Script {
        self.lines().says_more = true;
        self
    }

    /// Whoever asked has gone by the time that the answer is lost.
    pub fn left_alone(self) -> Script {
        self.lines().left_alone = true;
        self
    }

    /// Something that happens between the look at the ledger and the claim.
    pub fn before_the_claim(self, hook: impl FnOnce() + Send + 'static) -> Script {
        self.lines().on_prepare = Some(Box::new(hook));
        self
    }

    /// Its tool shows so often that it is at work.
    pub fn shows_signs(self, every: Duration) -> Script {
        self.lines().signs_every = Some(every);
        self
    }

    pub fn while_sending(self, hook: impl FnOnce() + Send + 'static) -> Script {
        self.lines().on_send = Some(Box::new(hook));
        self
    }

    /// A child process does it, which holds its parent's lock until the script lets it end.
    pub fn by_child(self, descriptor: Option<Descriptor>) -> Script {
        self.lines().child = true;
        self.lines().descriptor = descriptor;
        self
    }

    pub fn child_ends(&self) {
        self.lines().descriptor = None;
    }

    pub fn sent(&self) -> usize {
        self.lines().sent.len()
    }

    pub fn keys(&self) -> Vec<String> {
        self.lines().sent.clone()
    }

    pub fn asked(&self) -> usize {
        self.lines().asked
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.0.lock().unwrap()
    }
}

fn next<T: Clone>(queue: &mut VecDeque<T>, what: &str) -> T {
    match queue.len() {
        0 => panic!("the script has no {what}"),
        1 => queue[0].clone(),
        _ => queue.pop_front().expect("there are several"),
    }
}

/// One call's upstream.
struct Actor {
    script: Script,
    clock: ManualClock,
}

#[async_trait]
impl Upstream for Actor {
    async fn prepare(&mut self) -> Result<(), NotStarted> {
        let hook = self.script.lines().on_prepare.take();
        if let Some(hook) = hook {
            hook();
        }
        match self.script.lines().prepare_fails {
            true => Err(NotStarted { why: "no route".into(), data: Value::Null }),
            false => Ok(()),
        }
    }

    async fn send(&mut self, sending: Sending<'_>) -> Sent {
        let (span, outcome) = {
            let mut lines = self.script.lines();
            let key = sending.recorded.map_or("", |recorded| recorded.idempotency_key);
            lines.sent.push(key.to_owned());
            next(&mut lines.answers, "answer")
        };
        let hook = self.script.lines().on_send.take();
        if let Some(hook) = hook {
            hook();
        }
        let (until, signs_every) = (self.clock.elapsed() + span, self.script.lines().signs_every);
        while let Some(left) = until.checked_sub(self.clock.elapsed()).filter(|left| !left.is_zero()) {
            self.clock.nap(signs_every.map_or(left, |every| every.min(left))).await;
            if signs_every.is_some() {
                sending.progress.note(&self.clock);
            }
        }
        let number = self.script.sent();
        let reply = match &outcome {
            Outcome::Applied { .. } => Some(format!("reply {number}").into_bytes()),
            Outcome::NotApplied { .. } => Some(b"declined".to_vec()),
            Outcome::InDoubt { .. } => None,
        };
        Sent { reply, data: Value::from(number), ..Sent::of(outcome) }
    }

    async fn probe(&mut self, _: &Probe, _: Option<&Effect>) -> ProbeAnswer {
        let (span, answer) = {
            let mut lines = self.script.lines();
            lines.asked += 1;
            next(&mut lines.probes, "probe")
        };
        if !span.is_zero() {
            self.clock.nap(span).await;
        }
        answer
    }

    fn sends_while_alive(&self) -> bool {
        self.script.lines().child
    }

    fn view(&self) -> Option<CallView> {
        None
    }

    fn join(&mut self, _: &Effect, _: AttemptNo) {}

    fn release(&mut self) {}
}

/// What would become of a call.
pub fn dry_run(gate: &Gate, wish: &Wish, script: &Script, clock: &ManualClock) -> Answer {
    let mut actor = Actor { script: script.clone(), clock: clock.clone() };
    block_on(gate.dry_run(&wish.intent(), &wish.rule, &mut actor)).expect("the ledger is well")
}

pub fn code(passed: &Passed) -> Option<Code> {
    passed.answer.trouble.as_ref().map(|trouble| trouble.code)
}

/// The memory store, and a place where something can happen in between.
pub struct HookedStore {
    inner: Arc<MemoryStore>,
    after_commit: Arc<Mutex<Option<Hook>>>,
    cell_pause: Arc<Mutex<Duration>>,
    clock: ManualClock,
    begun: Arc<Mutex<usize>>,
    held: HeldCommits,
    server_clock: Arc<Mutex<Option<i64>>>,
}

/// Commits that got no answer, while the store gives none.
type HeldCommits = Arc<Mutex<Option<Vec<Arc<Commit>>>>>;

impl fmt::Debug for HookedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl Store for HookedStore {
    async fn read(&self, key: Digest) -> Result<Versioned, LedgerError> {
        self.inner.read(key).await
    }

    async fn cell(&self, key: Digest) -> Result<Option<Cell>, LedgerError> {
        let found = self.inner.cell(key).await?;
        if found.is_some() {
            let pause = std::mem::take(&mut *self.cell_pause.lock().unwrap());
            if !pause.is_zero() {
                self.clock.nap(pause).await;
            }
        }
        Ok(found)
    }

    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, LedgerError> {
        *self.begun.lock().unwrap() += usize::from(commit.require.begins);
        let is_held = self.held.lock().unwrap().as_mut().map(|held| held.push(Arc::clone(&commit)));
        if is_held.is_some() {
            return std::future::pending().await;
        }
        let done = self.inner.commit(commit).await;
        let hook = self.after_commit.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
            step_aside().await;
        }
        done
    }

    async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, LedgerError> {
        self.inner.scan(by, after, limit).await
    }

    async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, LedgerError> {
        self.inner.latest(of, before, limit).await
    }

    async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, LedgerError> {
        self.inner.journal(after, limit).await
    }

    async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, LedgerError> {
        self.inner.newest_lines(limit).await
    }

    async fn cell_keys(&self) -> Result<Vec<Digest>, LedgerError> {
        self.inner.cell_keys().await
    }

    async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, LedgerError> {
        self.inner.reply(key, ordinal).await
    }

    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, LedgerError> {
        let server_clock = *self.server_clock.lock().unwrap();
        let there = server_clock.map(|origin| origin + self.clock.elapsed().as_micros() as i64);
        let clock_ahead_ms = there.map(|there| (there - now.0.cast_signed()) / 1_000);
        Ok(EngineFacts { clock_ahead_ms, ..self.inner.describe(now).await? })
    }

    async fn changed(&self, key: Digest, since: Revision, wait: Duration) -> Hint {
        self.inner.changed(key, since, wait).await
    }
}
