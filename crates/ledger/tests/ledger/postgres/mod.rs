//! The ledger on a real PostgreSQL.

mod breakdown;
mod failover;
mod fleet;
mod pooler;
mod refusals;

use crate::scene;
use semel_core::digest::Secret;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::postgres::{PostgresAddress, PostgresStore};
use semel_ledger::store::{Commit, Committed, Hint, Index, JournalLine, Revision, Store};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::proxy::{Proxy, Target};
use semel_testkit::store_suite::{claim, exercise, index, named, one, record};
use semel_testkit::wait_until;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::AsyncMessage;

fn wait<F: Future>(future: F) -> F::Output {
    scene::runtime().block_on(future)
}

fn open(url: &str) -> Result<(PostgresStore, Secret), Error> {
    wait(PostgresStore::open(PostgresAddress::parse(url)?, [7; 32]))
}

fn before(server: &PostgresServer) -> Proxy {
    Proxy::to(Target::Socket(server.socket()))
}

fn by(proxy: &Proxy) -> String {
    format!("postgres://semel@127.0.0.1:{}/postgres?schema=semel&sslmode=disable", proxy.port())
}

pub fn store(url: &str) -> PostgresStore {
    open(url).expect("it opens").0
}

/// A claim that leaves a line in the journal.
fn noted_claim(word: &str, effect: u128) -> Arc<Commit> {
    let mut commit = claim(named(word), index(effect, true));
    let (kind, data) = ("claimed".to_owned(), "{}".to_owned());
    commit.journal = vec![JournalLine { at: At(5), effect: Some(effect), run: None, kind, data }];
    Arc::new(commit)
}

/// The effects in the journal, in its order.
fn noted(store: &PostgresStore) -> Vec<u128> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = wait(store.journal(after, 100)).expect("readable");
        found.extend(page.items.iter().filter_map(|(_, line)| line.effect));
        match page.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

/// Runs it on a fresh ledger of this server each time.
fn exercise_on(url: impl Fn(&str) -> String) {
    let ledgers = AtomicUsize::new(0);
    exercise(|| (store(&url(&format!("suite_{}", ledgers.fetch_add(1, Ordering::Relaxed)))), ()));
}

#[test]
fn the_postgres_store_passes_the_suite() {
    let server = PostgresServer::start(&[]);
    exercise_on(|schema| server.url(schema));
}

/// With a database whose defaults would let both win: a snapshot from before the locks were waited for.
#[test]
fn of_two_stores_that_race_for_a_family_one_wins() {
    let settings = ["default_transaction_isolation=repeatable read", "synchronous_commit=off"];
    let server = PostgresServer::start(&settings);
    let stores = [0, 1].map(|_| Arc::new(store(&server.url("semel"))));
    let runtime = scene::runtime();
    for round in 0..50u128 {
        let family = named(&format!("family {round}"));
        let racers: Vec<_> = (0..2u128)
            .map(|racer| {
                let effect = round * 2 + racer;
                let mut commit = claim(named(&effect.to_string()), Index { family, ..index(effect, true) });
                commit.require.family_quiet = Some(family);
                let store = Arc::clone(&stores[racer as usize]);
                runtime.spawn(async move { store.commit(commit.into()).await.expect("answered") })
            })
            .collect();
        let won = racers.into_iter().map(|racer| runtime.block_on(racer).expect("no panic"));
        assert_eq!(won.filter(|answer| *answer == Committed::Done).count(), 1, "round {round}");
    }
}

#[test]
fn of_two_stores_that_race_for_a_key_one_wins() {
    let server = PostgresServer::start(&[]);
    // A name that SQL uses itself is as good as any.
    let stores = [0, 1].map(|_| Arc::new(store(&server.url("select"))));
    let runtime = scene::runtime();
    for round in 0..50u128 {
        let racers: Vec<_> = (0..16u128)
            .map(|racer| {
                let store = Arc::clone(&stores[racer as usize % 2]);
                let commit = noted_claim(&format!("round {round}"), round * 16 + racer);
                runtime.spawn(async move { store.commit(commit).await.expect("answered") })
            })
            .collect();
        let won = racers.into_iter().map(|racer| runtime.block_on(racer).expect("no panic"));
        assert_eq!(won.filter(|answer| *answer == Committed::Done).count(), 1, "round {round}");
    }
    assert_eq!(noted(&stores[0]).len(), 50);
}

/// The server keeps few locks, and a batch of many commits asks for many.
#[test]
fn a_batch_that_is_too_much_for_the_server_is_taken_apart() {
    let settings = ["max_locks_per_transaction=10", "max_connections=10"];
    let server = PostgresServer::start(&settings);
    let (store, runtime) = (Arc::new(store(&server.url("semel"))), scene::runtime());
    let senders: Vec<_> = (0..200u128)
        .map(|effect| {
            let mut commit = claim(named(&effect.to_string()), index(effect, true));
            let fences = (0..50).map(|n| (named(&format!("{effect}/{n}")), Revision::ABSENT));
            commit.require.cells = fences.collect();
            let store = Arc::clone(&store);
            runtime.spawn(async move { store.commit(commit.into()).await.expect("answered") })
        })
        .collect();
    let answers = senders.into_iter().map(|sender| runtime.block_on(sender).expect("no panic"));
    assert_eq!(answers.filter(|answer| *answer == Committed::Done).count(), 200);
}

#[test]
fn a_ledger_of_a_newer_format_is_read_and_left_as_it_is() {
    let server = PostgresServer::start(&[]);
    let before = store(&server.url("semel"));
    assert_eq!(wait(before.commit(noted_claim("k", 1))).expect("it is written"), Committed::Done);
    // Another history would begin an epoch, and does not.
    server.sql("UPDATE semel.meta SET format = 99, timeline = 'another'");
    for store in [before, store(&server.url("semel"))] {
        let refused = wait(store.commit(noted_claim("other", 2))).expect_err("it is another's").to_string();
        assert!(refused.contains("update semel"), "{refused}");
        assert!(wait(store.read(named("k"))).expect("readable").row.is_some());
    }
    assert!(store(&server.url("semel")).is_newer());
    assert_eq!(server.sql("SELECT count(*) FROM semel.effect"), "1");
    assert_eq!(server.sql("SELECT count(*) FROM semel.cell"), "0");
}

#[test]
fn two_that_found_a_ledger_at_once_share_its_secret() {
    let server = PostgresServer::start(&[]);
    let runtime = scene::runtime();
    let founders: Vec<_> = (0..8u8)
        .map(|founder| {
            let address = PostgresAddress::parse(&server.url("semel")).expect("an address");
            runtime.spawn(PostgresStore::open(address, [founder; 32]))
        })
        .collect();
    let secrets = founders
        .into_iter()
        .map(|founder| runtime.block_on(founder).expect("no panic").expect("it opens").1.check_value());
    let secrets: Vec<_> = secrets.collect();
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}

#[test]
fn a_waiter_wakes_when_another_store_writes() {
    let server = PostgresServer::start(&[]);
    let (here, there) = (store(&server.url("semel")), Arc::new(store(&server.url("semel"))));
    let (runtime, key) = (scene::runtime(), named("k"));
    runtime.block_on(here.commit(claim(key, index(1, true)).into())).expect("answered");
    for revision in 1..20 {
        let there = Arc::clone(&there);
        let waiter = runtime
            .spawn(async move { there.changed(key, Revision(revision), Duration::from_secs(60)).await });
        let settle = one(record(key, 1, revision, index(1, false)));
        assert_eq!(runtime.block_on(here.commit(settle.into())).expect("answered"), Committed::Done);
        assert_eq!(runtime.block_on(waiter).expect("no panic"), Hint::Changed);
    }
}

/// Other hosts hear of a settlement, and find it when they do.
#[test]
fn a_settlement_is_announced_once_it_can_be_read() {
    let server = PostgresServer::start(&[]);
    let (store, key) = (store(&server.url("semel")), named("k"));
    scene::runtime().block_on(async {
        let mut config = tokio_postgres::Config::new();
        config.host_path(server.directory()).port(server.port).user("semel").dbname("postgres");
        let (client, mut connection) = config.connect(tokio_postgres::NoTls).await.expect("it connects");
        let (heard, mut news) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(said) = message {
                    heard.send(said.payload().to_owned()).expect("the test waits");
                }
            }
        });
        client.batch_execute("LISTEN semel_semel").await.expect("it listens");
        store.commit(claim(key, index(1, true)).into()).await.expect("answered");
        store.commit(one(record(key, 1, 1, index(1, false))).into()).await.expect("answered");
        let first = timeout(Duration::from_secs(60), news.recv()).await.expect("it is announced");
        assert_eq!(first, Some(format!("{:016x}", key.short())), "a first claim is news to nobody");
        let found = client.query_one("SELECT revision FROM semel.effect", &[]).await.expect("a row");
        assert_eq!(found.get::<_, i64>(0), 2);
    });
}

/// Each transaction that writes has a number of its own.
#[test]
fn claims_that_come_together_share_transactions() {
    let server = PostgresServer::start(&[]);
    let store = Arc::new(store(&server.url("semel")));
    let numbers =
        || server.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())").parse::<u64>().expect("a number");
    let before = numbers();
    wait(async {
        let mut claims = tokio::task::JoinSet::new();
        for n in 0..64 {
            let store = Arc::clone(&store);
            claims
                .spawn(async move { store.commit(noted_claim(&n.to_string(), n)).await.expect("answered") });
        }
        assert_eq!(claims.join_all().await, vec![Committed::Done; 64]);
    });
    let used = numbers() - before;
    assert!(used <= 32, "64 claims took {used} transactions");
}

#[test]
fn a_line_that_commits_late_is_not_passed_over() {
    let server = PostgresServer::start(&[]);
    let store = store(&server.url("semel"));
    assert_eq!(wait(store.commit(noted_claim("first", 1))).expect("answered"), Committed::Done);
    let running = server.begin();
    assert_eq!(wait(store.commit(noted_claim("second", 2))).expect("answered"), Committed::Done);
    assert_eq!(noted(&store), [1], "a transaction that began before the second claim still runs");
    let newest = wait(store.newest_lines(1)).expect("readable").remove(0);
    assert_eq!(newest.1.effect, Some(1), "whoever goes on from here misses nothing");
    drop(running);
    wait_until("the second is shown", || noted(&store) == [1, 2]);
}
