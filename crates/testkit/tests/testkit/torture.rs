//! kill -9 at random moments, beside pauses, aborts and failing commits: several callers, one ledger, one world. Judged
//! only by the world's log, the answers that callers got, and what the ledger says afterwards.
//!
//! The ledger is a file, or lies on a server. `SEMEL_TORTURE_KILLS=20000` makes it longer, `SEMEL_TORTURE_SEED=…` repeats the draws of an earlier run.

use crate::scene::{Scene, Started, children, now, number, say, signal, sleep};
use rustix::process::Signal;
use semel_ledger::failpoint;
use semel_testkit::history::{CallRecord, HistoryCheck, Saw, Standing, Violation, judge};
use semel_testkit::ledger_server::{Engine, LedgerServer};
use semel_testkit::random::{Random, digest};
use semel_testkit::semel_process::{ProcessAnswer, RunCall, SemelProcess};
use semel_testkit::world::body;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What the ordinary test command kills.
const KILLS: u64 = 2_000;

/// Of these, the part on each server: the gate is the same, and the rest of a claim's way is another.
const PART_ON_A_SERVER: u64 = 20;

/// Callers at work at the same time.
const CALLERS: u64 = 6;

/// Keys that are being asked for at the same time; few, so that callers meet.
const KEYS_AT_ONCE: usize = 16;

/// A change arrives within a second of being sent or is refused by the world, so that this much is surely quiet.
const QUIET: &str = "1500ms";

/// What stands between the callers and the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    Semel,
    /// The canary: as if a doubt were a lease that ran out, it runs the command again.
    ReExecutesDoubts,
    /// The canary's other half: the world says that it did, and did not.
    LyingWorld,
}

#[test]
fn two_thousand_kills_leave_no_second_change_and_no_hidden_one() {
    survives(number("SEMEL_TORTURE_KILLS").unwrap_or(KILLS), None, "two_thousand_kills");
}

#[test]
fn kills_on_postgresql_leave_no_second_change_and_no_hidden_one() {
    survives_on(Engine::Postgres, "kills_on_postgresql");
}

#[test]
fn kills_on_redis_leave_no_second_change_and_no_hidden_one() {
    survives_on(Engine::Redis, "kills_on_redis");
}

#[test]
fn kills_on_etcd_leave_no_second_change_and_no_hidden_one() {
    survives_on(Engine::Etcd, "kills_on_etcd");
}

fn survives_on(engine: Engine, test: &str) {
    let kills = number("SEMEL_TORTURE_KILLS").unwrap_or(KILLS) / PART_ON_A_SERVER;
    survives(kills, Some(LedgerServer::start(engine)), test);
}

fn survives(kills: u64, server: Option<LedgerServer>, test: &str) {
    let began = now();
    let mut torture = Torture::new(seed(), kills, Runner::Semel);
    torture.scene.process.server = server.as_ref().map(LedgerServer::url);
    let outcome = torture.run();
    let counts = &outcome.counts;
    say(format_args!("{counts} in {:.0} s; seed {}", began.elapsed().as_secs_f64(), torture.seed));
    let repeat = format!(
        "repeat: SEMEL_TORTURE_SEED={} cargo test -p semel-testkit --test testkit {test}",
        torture.seed
    );
    let listed: Vec<String> = outcome.violations.iter().take(20).map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{} violations:\n{}\n{repeat}", outcome.violations.len(), listed.join("\n"));
    assert_eq!(outcome.damage, Vec::<String>::new(), "the ledger is damaged; {repeat}");
    let lacking = [torture.counts.lacking(kills), counts.lacking(kills)].concat();
    assert!(lacking.is_empty(), "the run proves too little: {}; {repeat}", lacking.join("; "));
}

#[test]
fn a_boundary_that_runs_doubts_again_is_caught() {
    let outcome = Torture::new(seed(), 160, Runner::ReExecutesDoubts).run();
    let caught =
        outcome.violations.iter().filter(|violation| violation.check == HistoryCheck::C1AtMostOnce).count();
    say(format_args!("canary, doubts run again: {caught} second changes caught in {}", outcome.counts));
    assert!(caught > 0, "the judge did not notice second changes: {:?}", outcome.violations);
}

#[test]
fn a_world_that_lies_is_caught() {
    let outcome = Torture::new(seed(), 20, Runner::LyingWorld).run();
    let caught = outcome
        .violations
        .iter()
        .filter(|violation| violation.check == HistoryCheck::C2SuccessIsTrue)
        .count();
    say(format_args!("canary, lying world: {caught} false successes caught in {}", outcome.counts));
    assert!(caught > 0, "the judge did not notice false successes: {:?}", outcome.violations);
}

/// The first calls of a new ledger race to found it, and die while they do.
#[test]
fn kills_while_a_ledger_is_founded_leave_one_that_works() {
    const ROUNDS: u64 = 60;
    const CALLERS: u64 = 4;
    const LONGEST_MICROS: u64 = 40_000;
    let (scene, seed) = (Scene::new(), seed());
    let mut random = Random::new(seed);
    let (mut kills, mut successes, mut doubts) = (0, 0, 0);
    for round in 0..ROUNDS {
        let key = format!("round-{round}");
        let state = scene.directory.path().join(format!("state-{round}"));
        let process = SemelProcess { state, ..scene.process.clone() };
        let ask = RunCall { key: &key, json: true, wait: Some("5s"), ..RunCall::default() };
        let calls: Vec<Started> = (0..CALLERS).map(|_| Started::new(process.command(&ask))).collect();
        let mut seen = Vec::new();
        for call in calls {
            sleep(Duration::from_micros(random.below(LONGEST_MICROS / CALLERS)));
            if random.chance(75) && is_running(call.id()) && signal(call.id(), Signal::KILL) {
                kills += 1;
            }
            seen.push(call.finish(true).saw);
        }
        seen.push(process.call(&ask).expect("semel starts").saw);
        let last = seen.last().expect("one was just made");
        let log = scene.world.log().expect("the world's log can be read");
        let truth = log.get(&key).map(|happened| Saw::Success { body: body(&happened[0].id) });
        let context = || format!("round {round}, SEMEL_TORTURE_SEED={seed}: {seen:?}, {truth:?}");
        assert!(scene.changes(&key) <= 1, "{}", context());
        match last {
            Saw::Success { .. } => successes += 1,
            Saw::InDoubt => doubts += 1,
            _ => panic!("it does not come to rest: {}", context()),
        }
        let successful = |saw: &&Saw| matches!(saw, Saw::Success { .. });
        assert!(seen.iter().filter(successful).all(|saw| Some(saw) == truth.as_ref()), "{}", context());
        assert_eq!(damage(&process), Vec::<String>::new(), "{}", context());
    }
    say(format_args!(
        "founding: {ROUNDS} ledgers, {kills} kills; {successes} applied, {doubts} in doubt; seed {seed}"
    ));
    // On a fast machine most callers have ended before they are killed.
    assert!(
        kills >= ROUNDS / 3 && successes >= ROUNDS / 3,
        "the run is vacuous: {kills} kills, {successes} successes"
    );
}

fn seed() -> u64 {
    number("SEMEL_TORTURE_SEED").unwrap_or_else(|| {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one("seed") >> 16
    })
}

struct Torture {
    scene: Scene,
    seed: u64,
    kills_wanted: u64,
    runner: Runner,
    keys: Mutex<Keys>,
    history: Mutex<Vec<CallRecord>>,
    /// Orders the beginnings and ends of calls.
    tick: AtomicU64,
    /// Mean time of a call that nobody killed, so that kills fall into its whole length on any machine.
    mean_nanos: AtomicU64,
    counts: Tallies,
}

struct Keys {
    live: Vec<LiveKey>,
    born: usize,
}

struct LiveKey {
    name: String,
    calls_left: u64,
}

/// How a call is ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    /// `semel` alone: the command lives on and finishes.
    Wrapper,
    /// `semel` and then what it had started.
    Tree,
    /// The command alone: `semel` sees it die.
    Command,
}

#[derive(Default)]
struct Tallies {
    calls: AtomicU64,
    killed_wrapper: AtomicU64,
    killed_tree: AtomicU64,
    killed_command: AtomicU64,
    /// Kills of `semel` while its command ran.
    killed_in_flight: AtomicU64,
    paused: AtomicU64,
    /// Calls in which a crash point did what it was set to.
    struck: AtomicU64,
}

struct Outcome {
    counts: Counts,
    violations: Vec<Violation>,
    damage: Vec<String>,
}

#[derive(Debug, Default)]
struct Counts {
    calls: u64,
    kills: u64,
    by_kind: [u64; 3],
    killed_in_flight: u64,
    paused: u64,
    struck: u64,
    keys: usize,
    changes: usize,
    successes: usize,
    in_doubt: usize,
    in_flight: usize,
    not_applied: usize,
    unavailable: usize,
    applied_at_the_end: usize,
    in_doubt_at_the_end: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [wrapper, tree, command] = self.by_kind;
        write!(
            f,
            "{} kills (wrapper {wrapper}, tree {tree}, command {command}; {} while the command ran), {} pauses, \
             {} crash points struck, {} calls, \
             {} keys, {} changes; answers: {} success, {} in doubt, {} in flight, {} not applied, {} unavailable; \
             at the end {} applied, {} in doubt",
            self.kills,
            self.killed_in_flight,
            self.paused,
            self.struck,
            self.calls,
            self.keys,
            self.changes,
            self.successes,
            self.in_doubt,
            self.in_flight,
            self.not_applied,
            self.unavailable,
            self.applied_at_the_end,
            self.in_doubt_at_the_end,
        )
    }
}

impl Tallies {
    fn kills(&self) -> u64 {
        let Tallies { killed_wrapper, killed_tree, killed_command, .. } = self;
        [killed_wrapper, killed_tree, killed_command].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Which kinds of trouble the run has met too seldom. It goes on until this is empty: a short run may have met no rare kind.
    fn lacking(&self, kills: u64) -> Vec<String> {
        let few = |what: &str, is: &AtomicU64, needed: u64| too_few(what, is.load(Ordering::Relaxed), needed);
        let needed = [
            too_few("kills of a live process", self.kills(), kills),
            few("kills of the wrapper", &self.killed_wrapper, kills / 10),
            few("kills of the tree", &self.killed_tree, kills / 10),
            few("kills of the command", &self.killed_command, kills / 100),
            few("kills while the command ran", &self.killed_in_flight, kills / 20),
            few("pauses", &self.paused, kills / 100),
            few("crash points struck", &self.struck, kills / 100),
        ];
        needed.into_iter().flatten().collect()
    }
}

impl Counts {
    /// Which answers and final states the run has seen too seldom.
    fn lacking(&self, kills: u64) -> Vec<String> {
        let few = |what: &str, is: usize, needed: u64| too_few(what, is as u64, needed);
        let needed = [
            few("keys", self.keys, kills / 20),
            few("answers in doubt", self.in_doubt, kills / 100),
            few("doubts at the end", self.in_doubt_at_the_end, kills / 100),
            few("answers of success", self.successes, kills / 10),
            few("refusals", self.not_applied, kills / 150),
            few("keys applied", self.applied_at_the_end, self.keys as u64 / 2),
        ];
        let mut reasons: Vec<String> = needed.into_iter().flatten().collect();
        if self.unavailable * 100 > self.successes.max(1) {
            reasons.push(format!("the ledger was unavailable {} times", self.unavailable));
        }
        reasons
    }
}

fn too_few(what: &str, is: u64, needed: u64) -> Option<String> {
    (is < needed).then(|| format!("{what}: {is} of {needed}"))
}

impl Torture {
    fn new(seed: u64, kills_wanted: u64, runner: Runner) -> Torture {
        Torture {
            scene: Scene::new(),
            seed,
            kills_wanted,
            runner,
            keys: Mutex::new(Keys { live: Vec::new(), born: 0 }),
            history: Mutex::default(),
            tick: AtomicU64::new(1),
            mean_nanos: AtomicU64::new(60_000_000),
            counts: Tallies::default(),
        }
    }

    fn run(&self) -> Outcome {
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                scope.spawn(move || {
                    self.torture(Random::new(self.seed ^ digest(&format!("caller {caller}"))))
                });
            }
        });
        self.settle_down();
        let log = self.scene.world.log().expect("the world's log can be read");
        let standings = self.standings();
        let mut violations = judge(&log, &self.history(), &standings);
        let ends = self.ask_all_once_more();
        let log = self.scene.world.log().expect("the world's log can be read");
        let standings = self.standings();
        for violation in judge(&log, &self.history(), &standings) {
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
        if self.runner == Runner::Semel {
            violations.extend(
                ends.iter().filter_map(|(key, last)| self.unfinished(key, last, log.contains_key(key))),
            );
        }
        let damage = damage(&self.scene.process);
        Outcome { counts: self.count(&log, &standings), violations, damage }
    }

    /// Probed keys must end applied, opaque ones applied or in doubt.
    fn unfinished(&self, key: &str, last: &ProcessAnswer, happened: bool) -> Option<Violation> {
        let what = match &last.saw {
            Saw::Success { .. } if happened => return None,
            Saw::InDoubt if !is_probed(key) => return None,
            _ => format!("asked without kills it ends as {last:?}"),
        };
        Some(Violation { check: HistoryCheck::C4ChangeIsKnown, key: key.to_owned(), what })
    }

    /// One caller: asks, is killed, asks again.
    fn torture(&self, mut random: Random) {
        while !self.has_enough() {
            let key = self.next_key(&mut random);
            let twins = if random.chance(25) { 2 } else { 1 };
            let calls: Vec<InFlight> = (0..twins).map(|_| self.start(&key, &mut random)).collect();
            for call in calls {
                self.end(&key, call, &mut random);
            }
        }
    }

    fn next_key(&self, random: &mut Random) -> String {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        while keys.live.len() < KEYS_AT_ONCE {
            let name = format!("key-{}", keys.born);
            keys.born += 1;
            keys.live.push(LiveKey { name, calls_left: 3 + random.below(5) });
        }
        let place = random.below(KEYS_AT_ONCE as u64) as usize;
        let key = &mut keys.live[place];
        let name = key.name.clone();
        key.calls_left -= 1;
        if key.calls_left == 0 {
            keys.live.swap_remove(place);
        }
        name
    }

    /// One crash point of the gate or the store, at one of its first hits.
    fn failpoints(&self, random: &mut Random) -> String {
        let on_file = self.scene.process.server.is_none();
        let fits = |name: &&&str| name.starts_with("gate.") || on_file && name.starts_with("sqlite.");
        let points: Vec<_> = failpoint::NAMES.iter().filter(fits).collect();
        let point = points[random.below(points.len() as u64) as usize];
        let action = ["abort", "error", "pause(20)"][random.below(3) as usize];
        format!("{point}={action}@{}", 1 + random.below(3))
    }

    fn start(&self, key: &str, random: &mut Random) -> InFlight {
        let json = random.chance(75);
        let wait = ["0s", "50ms", "1s"][random.below(3) as usize];
        let moods = self.seed.to_string();
        let touch = self.touch(&moods);
        let often = if self.is_short() { 30 } else { 10 };
        let failpoints = random.chance(often).then(|| self.failpoints(random));
        let pause = random.chance(8).then(|| pause(random));
        // A pause that outlives this brings the deadline to pass while the owner lives, and its answer comes late.
        let timeout = pause.and(Some("400ms"));
        let ask = RunCall {
            json,
            wait: Some(wait),
            touch: &touch,
            timeout,
            failpoints: failpoints.as_deref(),
            ..ask(key)
        };
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let began = self.tick();
        let started = now();
        let process = Started::new(self.scene.process.command(&ask));
        let kill = random.chance(80).then(|| {
            let kind = match random.below(10) {
                0..5 => Kill::Wrapper,
                5..9 => Kill::Tree,
                _ => Kill::Command,
            };
            let mean = Duration::from_nanos(self.mean_nanos.load(Ordering::Relaxed));
            (kind, mean * u32::try_from(random.below(1_000)).unwrap_or(0) / 1_000)
        });
        InFlight { process, json, began, started, pause, kill: kill.filter(|_| pause.is_none()) }
    }

    fn end(&self, key: &str, call: InFlight, random: &mut Random) {
        let InFlight { process, json, began, started, pause, kill } = call;
        if let Some((after, span)) = pause {
            sleep(after.saturating_sub(started.elapsed()));
            if is_running(process.id()) && signal(process.id(), Signal::STOP) {
                self.counts.paused.fetch_add(1, Ordering::Relaxed);
                sleep(span);
                signal(process.id(), Signal::CONT);
            }
        }
        if let Some((kind, after)) = kill {
            sleep(after.saturating_sub(started.elapsed()));
            let aims = self.is_short() && random.chance(30);
            if aims || kind == Kill::Command {
                wait_for_command(process.id());
                sleep(Duration::from_millis(random.below(20)));
            }
            self.kill(process.id(), kind);
        }
        let answered = process.finish(json);
        if answered.stderr.contains("failpoint ") {
            self.counts.struck.fetch_add(1, Ordering::Relaxed);
        }
        if kill.is_none() && pause.is_none() && matches!(answered.saw, Saw::Success { .. }) {
            let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX).min(500_000_000);
            let mean = self.mean_nanos.load(Ordering::Relaxed);
            self.mean_nanos.store(mean - mean / 16 + took / 16, Ordering::Relaxed);
        }
        let saw = match (self.runner, answered.saw) {
            (Runner::ReExecutesDoubts, Saw::InDoubt) => self.re_execute(key),
            (_, saw) => saw,
        };
        self.remember(key, began, saw);
    }

    /// What a queue with leases does when the holder of a job is gone.
    fn re_execute(&self, key: &str) -> Saw {
        let moods = self.seed.to_string();
        let touch = self.touch(&moods);
        let output = self.scene.process.bare(&RunCall { touch: &touch, ..ask(key) }).output();
        let output = output.expect("semel-touch starts");
        match output.status.success() {
            true => Saw::Success { body: String::from_utf8_lossy(&output.stdout).into_owned() },
            false => Saw::InDoubt,
        }
    }

    fn kill(&self, semel: u32, kind: Kill) {
        let started = children(semel);
        let killed = match kind {
            Kill::Command => {
                // Only what it had when we looked; none is no kill.
                started.first().is_some_and(|command| signal(*command, Signal::KILL))
            }
            Kill::Wrapper | Kill::Tree => is_running(semel) && signal(semel, Signal::KILL),
        };
        if !killed {
            return;
        }
        let count = match kind {
            Kill::Wrapper => &self.counts.killed_wrapper,
            Kill::Tree => &self.counts.killed_tree,
            Kill::Command => &self.counts.killed_command,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if kind != Kill::Command && !started.is_empty() {
            self.counts.killed_in_flight.fetch_add(1, Ordering::Relaxed);
        }
        if kind == Kill::Tree {
            for child in started {
                signal(child, Signal::KILL);
            }
        }
    }

    fn touch<'a>(&self, moods: &'a str) -> Vec<&'a str> {
        match self.runner {
            Runner::LyingWorld => vec!["--mode", "lie"],
            _ => vec!["--moods", moods],
        }
    }

    /// A kind that never comes ends the run too.
    fn has_enough(&self) -> bool {
        self.counts.kills() >= 3 * self.kills_wanted || self.counts.lacking(self.kills_wanted).is_empty()
    }

    /// Then it aims at what is rare, to meet it at all.
    fn is_short(&self) -> bool {
        self.kills_wanted < KILLS
    }

    fn tick(&self) -> u64 {
        self.tick.fetch_add(1, Ordering::SeqCst)
    }

    fn remember(&self, key: &str, began: u64, saw: Saw) {
        let call = CallRecord { key: key.to_owned(), began, ended: self.tick(), saw };
        self.history.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn history(&self) -> Vec<CallRecord> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn born(&self) -> Vec<String> {
        let born = self.keys.lock().unwrap_or_else(PoisonError::into_inner).born;
        (0..born).map(|number| format!("key-{number}")).collect()
    }

    /// Commands that outlived their wrapper may still be at work: their naps and the life of a request bound that.
    fn settle_down(&self) {
        sleep(Duration::from_millis(1_500));
    }

    fn standings(&self) -> BTreeMap<String, Standing> {
        let asked = self.for_all(&self.born(), |key| {
            let moods = self.seed.to_string();
            let touch = self.touch(&moods);
            let standing = self.scene.process.standing(&RunCall { touch: &touch, ..ask(key) });
            standing
                .expect("semel starts")
                .unwrap_or_else(|what| panic!("{key} cannot be asked about: {what}"))
        });
        asked.into_iter().collect()
    }

    /// Nobody is killed any more. What was refused is asked for again, as an agent would.
    fn ask_all_once_more(&self) -> Vec<(String, ProcessAnswer)> {
        const TRIES: usize = 20;
        self.for_all(&self.born(), |key| {
            let moods = self.seed.to_string();
            let touch = self.touch(&moods);
            // An attempt that was refused after its deadline leaves a doubt without an unproven sender. A probe's
            // "no" then counts after the time that any sender has, which is ten seconds.
            let ask = RunCall { json: true, wait: Some("20s"), touch: &touch, ..ask(key) };
            for tries in 1.. {
                let began = self.tick();
                let last = self.scene.process.call(&ask).expect("semel starts");
                self.remember(key, began, last.saw.clone());
                if !matches!(last.saw, Saw::NotApplied { .. }) || tries == TRIES {
                    return last;
                }
            }
            unreachable!("the tries are counted")
        })
    }

    fn for_all<T: Send>(&self, keys: &[String], ask: impl Fn(&str) -> T + Sync) -> Vec<(String, T)> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = ask(key);
                        results.lock().unwrap_or_else(PoisonError::into_inner).push((key.clone(), result));
                    }
                });
            }
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, log: &semel_testkit::world::WorldLog, standings: &BTreeMap<String, Standing>) -> Counts {
        let history = self.history();
        let saw = |matching: fn(&Saw) -> bool| history.iter().filter(|call| matching(&call.saw)).count();
        let stands = |wanted| standings.values().filter(|standing| **standing == wanted).count();
        let tally = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            calls: tally(&self.counts.calls),
            kills: self.counts.kills(),
            by_kind: [
                tally(&self.counts.killed_wrapper),
                tally(&self.counts.killed_tree),
                tally(&self.counts.killed_command),
            ],
            killed_in_flight: tally(&self.counts.killed_in_flight),
            paused: tally(&self.counts.paused),
            struck: tally(&self.counts.struck),
            keys: standings.len(),
            changes: log.values().map(Vec::len).sum(),
            successes: saw(|saw| matches!(saw, Saw::Success { .. })),
            in_doubt: saw(|saw| matches!(saw, Saw::InDoubt)),
            in_flight: saw(|saw| matches!(saw, Saw::InFlight)),
            not_applied: saw(|saw| matches!(saw, Saw::NotApplied { .. })),
            unavailable: saw(|saw| matches!(saw, Saw::Unavailable { why } if !why.contains("failpoint"))),
            applied_at_the_end: stands(Standing::Applied),
            in_doubt_at_the_end: stands(Standing::InDoubt),
        }
    }
}

/// One call that has been started.
struct InFlight {
    process: Started,
    json: bool,
    began: u64,
    started: std::time::Instant,
    /// Stopped after the first span, for the second.
    pause: Option<(Duration, Duration)>,
    kill: Option<(Kill, Duration)>,
}

/// Every second key can be asked about.
fn is_probed(key: &str) -> bool {
    digest(key).is_multiple_of(2)
}

fn ask(key: &str) -> RunCall<'_> {
    RunCall { key, probe_quiet: is_probed(key).then_some(QUIET), ..RunCall::default() }
}

/// When to stop it, and for how long: mostly a little, sometimes past its deadline.
fn pause(random: &mut Random) -> (Duration, Duration) {
    let span = if random.chance(20) { 450 + random.below(200) } else { random.below(60) };
    (Duration::from_millis(random.below(60)), Duration::from_millis(span))
}

/// Until it has started its command, or has ended without one.
fn wait_for_command(semel: u32) {
    while is_running(semel) && children(semel).is_empty() {
        sleep(Duration::from_millis(1));
    }
}

/// A zombie that nobody has waited for takes signals too, and is no live process.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// What `semel doctor --full` says about the ledger's integrity, unless all is well.
fn damage(process: &SemelProcess) -> Vec<String> {
    let mut doctor = process.semel();
    doctor.args(["--json", "doctor", "--full"]);
    let output = doctor.output().expect("semel starts");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let items = document["items"].as_array().map_or(&[][..], Vec::as_slice);
    let bad = items.iter().filter(|item| matches!(item["check"].as_str(), Some("integrity" | "ledger")));
    let mut complaints: Vec<String> =
        bad.filter(|item| item["status"] != "ok").map(ToString::to_string).collect();
    // A server looks after its own pages.
    if process.server.is_none() && !items.iter().any(|item| item["check"] == "integrity") {
        complaints.push(format!("the doctor did not look: {document}"));
    }
    complaints
}
