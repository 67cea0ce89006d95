//! Many seeds of the simulation, and proof that its checks can object.

use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::server_address::ServerAddress;
use semel_testkit::ledger_server::{Engine, LedgerServer};
use semel_testkit::simulation::{Sabotage, simulate, simulate_on};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

/// Enough to meet every kind of trouble many times, and few enough for every test run.
const SEEDS: u64 = 2_000;

/// Each seed runs on one thread; several seeds need not wait for each other.
const WORKERS: u64 = 4;

#[allow(
    clippy::disallowed_methods,
    reason = "how many seeds to run is asked of the environment, in tests alone"
)]
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_seed_keeps_the_promise() {
    let (first, seeds) = match from_environment("SEMEL_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, from_environment("SEMEL_SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let reports = thread::scope(|scope| {
        let workers = (0..WORKERS).map(|worker| {
            let mine = (first + worker..first + seeds).step_by(WORKERS as usize);
            scope.spawn(move || mine.map(|seed| simulate(seed, None)).collect::<Vec<_>>())
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker ends")).collect::<Vec<_>>()
    });
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut broken: Vec<(u64, Vec<String>)> = Vec::new();
    for report in reports {
        for (what, count) in report.counts {
            *seen.entry(what).or_default() += count;
        }
        if !report.violations.is_empty() {
            // One seed is run to see why.
            let story = if seeds == 1 { report.story } else { Vec::new() };
            broken.push((report.seed, report.violations.into_iter().chain(story).collect()));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {seeds} seeds: {:#?}\nrepeat with: SEMEL_SIM_SEED={} cargo test -p semel-gate --test gate every_seed",
        broken.len(),
        &broken[..broken.len().min(10)],
        broken[0].0,
    );
    if seeds >= SEEDS {
        for (what, least) in MUST_BE_SEEN {
            let count = seen.get(what).copied().unwrap_or(0);
            assert!(count >= *least, "{what} was seen {count} times, not {least}; all: {seen:#?}");
        }
    }
}

/// A run in which these did not happen proves nothing.
const MUST_BE_SEEN: &[(&str, u64)] = &[
    ("crash", 200),
    ("power cut", 100),
    ("pause", 100),
    ("silence", 100),
    ("lapsed by silence", 50),
    ("clock jump", 50),
    ("failover", 50),
    ("store outage", 100),
    ("cancel", 200),
    ("drained", 100),
    ("commit landed unanswered", 100),
    ("commit landed and was sent again", 100),
    ("commit vanished unanswered", 100),
    ("commit refused", 100),
    ("read failed", 100),
    ("request lost", 100),
    ("answer lost", 200),
    ("answer late", 100),
    ("unclear answer", 100),
    ("refused", 200),
    ("never sent", 100),
    ("probe could not tell", 20),
    ("ran", 1_000),
    ("replayed", 500),
    ("joined", 100),
    ("answered in doubt", 200),
    ("answered in flight", 50),
    ("answered drift", 20),
    ("answered lookalike", 50),
    ("answered cancelled", 50),
    ("lapsed", 200),
    ("late settlement", 20),
    ("probed yes", 100),
    ("probed no", 20),
    ("resent", 100),
    ("forgotten", 20),
    ("prevented", 20),
];

/// A few of the same seeds on each server: what stands between the verbs and the disk is another there.
const SEEDS_ON_A_SERVER: u64 = 30;

fn seeds_keep_the_promise_on(engine: Engine) {
    let server = LedgerServer::start(engine);
    let seeds = from_environment("SEMEL_SIM_SEEDS").map_or(SEEDS_ON_A_SERVER, |seeds| seeds / 100);
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 0..seeds {
        let address = ServerAddress::parse(&server.url_of(&format!("seed_{seed}")));
        let address = address.expect("an address").expect("of a server");
        let (store, _) = block_on(address.open([7; 32], Arc::new(|| At(1)))).expect("it opens");
        let report = simulate_on(seed, store);
        let found = (&report.violations, &report.story);
        assert!(report.violations.is_empty(), "{engine:?}, seed {seed}: {found:#?}");
        for (what, count) in report.counts {
            *seen.entry(what).or_default() += count;
        }
    }
    for what in ["crash", "commit landed unanswered", "answer lost", "ran", "replayed", "lapsed"] {
        assert!(seen.contains_key(what), "{what} was never seen: {seen:#?}");
    }
}

#[test]
fn seeds_keep_the_promise_on_postgresql() {
    seeds_keep_the_promise_on(Engine::Postgres);
}

#[test]
fn seeds_keep_the_promise_on_redis() {
    seeds_keep_the_promise_on(Engine::Redis);
}

#[test]
fn seeds_keep_the_promise_on_etcd() {
    seeds_keep_the_promise_on(Engine::Etcd);
}

/// The first seed that shows it is enough.
#[track_caller]
fn assert_caught(broken: Sabotage, by: &str) {
    let mut objections = (0..1_000).flat_map(|seed| simulate(seed, Some(broken)).violations);
    assert!(objections.any(|violation| violation.starts_with(by)), "{broken:?} was not caught by {by}");
}

#[test]
fn an_upstream_that_sends_again_by_itself_is_caught() {
    assert_caught(Sabotage::HiddenResend, "at most once");
}

#[test]
fn pronouncing_live_holders_dead_is_caught() {
    assert_caught(Sabotage::LivePronouncedDead, "at most once");
}

#[test]
fn pronouncing_silent_holders_dead_is_caught() {
    assert_caught(Sabotage::SilentPronouncedDead, "at most once");
}

#[test]
fn a_probe_that_says_no_without_looking_is_caught() {
    assert_caught(Sabotage::LyingProbe, "at most once");
}

#[test]
fn a_failover_without_an_epoch_is_caught() {
    assert_caught(Sabotage::EpochMissed, "at most once");
}

#[test]
fn a_store_that_ignores_fences_is_caught() {
    assert_caught(Sabotage::FenceIgnored, "drained is final");
}

#[test]
fn a_store_that_syncs_nothing_is_caught() {
    assert_caught(Sabotage::NothingSynced, "at most once");
}

#[test]
fn a_record_that_forgets_what_came_before_is_caught() {
    assert_caught(Sabotage::PastDropped, "one name, one effect");
}
