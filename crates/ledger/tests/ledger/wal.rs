//! The write-ahead log stays short, whoever writes.

use crate::scene::{directory, now, open, open_blocking, place, runtime};
use semel_core::digest::Digest;
use semel_ledger::place::Place;
use semel_ledger::sqlite::SqliteStore;
use semel_ledger::store::{Commit, Committed, Durability, Nonce, Put, Require, Revision, Store};
use semel_testkit::store_suite::{claim, index, named};

#[test]
fn commands_that_only_write_lazily_keep_the_log_short_too() {
    let directory = directory();
    let place = place(&directory);
    drop(open_blocking(&place).expect("it is founded"));
    for revision in 0..1_000 {
        // Each is a command of its own: it opens, writes one count, and ends.
        let store = open_blocking(&place).expect("it opens").store;
        let put = Put::Cell { key: Digest([7; 32]), expected: Revision(revision), body: b"{}".to_vec() };
        let commit = Commit {
            nonce: Nonce(u128::from(revision)),
            puts: vec![put],
            require: Require::default(),
            journal: Vec::new(),
            durability: Durability::Lazy,
        };
        now(store.commit(commit.into())).expect("it is written");
    }
    let log = directory.path().join("ledger.db-wal");
    let bytes = log.metadata().map_or(0, |found| found.len());
    assert!(bytes < 3 << 20, "{bytes} bytes");
    let store = open_blocking(&place).expect("it opens").store;
    assert_eq!(now(store.cell(Digest([7; 32]))).expect("readable").expect("there").revision, Revision(1_000));
}

fn bytes(place: &Place) -> u64 {
    place.wal().metadata().map_or(0, |found| found.len())
}

fn claims(store: &SqliteStore, name: &str, id: u128) {
    let done =
        runtime().block_on(store.commit(claim(named(name), index(id, true)).into())).expect("answered");
    assert_eq!(done, Committed::Done);
}

#[test]
fn a_ledger_that_was_folded_back_is_one_file() {
    let directory = directory();
    let place = place(&directory);
    let stores = [1, 2].map(|_| open(&place).expect("it opens").store);
    for (store, n) in stores.iter().zip(1..) {
        claims(store, &n.to_string(), n);
    }
    assert!(bytes(&place) > 0);
    // Two that stop at once.
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| store.fold_back());
        }
    });
    assert_eq!(bytes(&place), 0);
    claims(&stores[0], "3", 3);
    drop(stores);
    let store = open_blocking(&place).expect("it opens").store;
    for n in 1..=3 {
        assert!(now(store.read(named(&n.to_string()))).expect("readable").row.is_some(), "{n}");
    }
}

#[test]
fn whoever_still_reads_keeps_the_log_and_its_own_view() {
    let directory = directory();
    let place = place(&directory);
    let store = open(&place).expect("it opens").store;
    claims(&store, "1", 1);
    let reader = rusqlite::Connection::open(place.database()).expect("it opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM effect").expect("readable");
    let count = || reader.query_row("SELECT count(*) FROM effect", [], |row| row.get::<_, i64>(0));
    assert_eq!(count().expect("readable"), 1);
    claims(&store, "2", 2);
    store.fold_back();
    assert!(bytes(&place) > 0);
    assert_eq!(count().expect("readable"), 1);
    reader.execute_batch("COMMIT").expect("ended");
    assert_eq!(count().expect("readable"), 2);
    store.fold_back();
    assert_eq!(bytes(&place), 0);
    assert_eq!(count().expect("readable"), 2);
}
