//! The write-ahead log stays short, whoever writes.

use crate::scene::{directory, now, open_blocking, place};
use semel_core::digest::Digest;
use semel_ledger::store::{Commit, Durability, Nonce, Put, Require, Revision, Store};

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
        now(store.commit(commit)).expect("it is written");
    }
    let log = directory.path().join("ledger.db-wal");
    let bytes = log.metadata().map_or(0, |found| found.len());
    assert!(bytes < 3 << 20, "{bytes} bytes");
    let store = open_blocking(&place).expect("it opens").store;
    assert_eq!(now(store.cell(Digest([7; 32]))).expect("readable").expect("there").revision, Revision(1_000));
}
