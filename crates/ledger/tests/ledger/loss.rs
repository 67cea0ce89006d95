//! An older state that is put back, and how whoever has the ledger open hears of it.

use crate::scene::{self, now};
use semel_core::time::At;
use semel_ledger::place::Place;
use semel_ledger::small_records::{Epoch, cell_value};
use semel_ledger::sqlite::{LedgerPast, SqliteStore};
use semel_ledger::store::{
    Commit, Committed, Conflict, Durability, EPOCH_CELL, JournalLine, Require, Revision, Store,
};
use semel_testkit::store_suite::{claim, index, named};

/// The first claim of a record by somebody who has read that there is none, in this epoch.
fn claim_in(epoch: Revision, name: &str, id: u128) -> Commit {
    let line = JournalLine {
        at: At(5_000_000 + id as u64),
        effect: Some(id),
        run: None,
        kind: "claimed".to_owned(),
        data: "{}".to_owned(),
    };
    let require = Require { cells: vec![(EPOCH_CELL, epoch)], ..Require::default() };
    Commit { require, journal: vec![line], ..claim(named(name), index(id, true)) }
}

fn commit(store: &SqliteStore, commit: Commit) -> Committed {
    now(store.commit(commit.into())).expect("answered")
}

fn epoch(store: &SqliteStore) -> Option<(Revision, Epoch)> {
    let cell = now(store.cell(EPOCH_CELL)).expect("readable")?;
    Some((cell.revision, cell_value(EPOCH_CELL, &cell).expect("an epoch")))
}

/// What `.restore` of a copy with so many effects does: the same file, written through SQLite.
fn put_back(place: &Place, effects: u32) {
    let connection = rusqlite::Connection::open(place.database()).expect("it opens");
    connection
        .execute_batch(&format!(
            "BEGIN IMMEDIATE; DELETE FROM effect WHERE id > {effects}; DELETE FROM open WHERE id > {effects}; \
             DELETE FROM journal WHERE id > {effects}; DELETE FROM cell; COMMIT"
        ))
        .expect("written");
}

#[test]
fn an_older_state_put_back_under_a_running_process_begins_an_epoch_before_anything_is_claimed() {
    for lazy in [false, true] {
        let directory = scene::directory();
        let place = scene::place(&directory);
        let store = scene::open_blocking(&place).expect("it opens").store;
        for n in 1..=4 {
            let done = commit(&store, claim_in(Revision::ABSENT, &n.to_string(), n));
            assert_eq!(done, Committed::Done);
        }
        put_back(&place, 2);
        let durability = if lazy { Durability::Lazy } else { Durability::Durable };
        let again = Commit { durability, ..claim_in(Revision::ABSENT, "4", 14) };
        assert_eq!(commit(&store, again), Committed::Conflict(Conflict::Cell(EPOCH_CELL)), "lazy: {lazy}");
        let (revision, begun) = epoch(&store).expect("one has begun");
        assert!(begun.since >= At(5_000_014), "no earlier than whoever noticed: {begun:?}");
        assert_eq!(commit(&store, claim_in(revision, "5", 15)), Committed::Done);
        assert_eq!(epoch(&store).map(|(revision, _)| revision), Some(revision), "one loss, one epoch");
        drop(store);
        let opened = scene::open_blocking(&place).expect("it opens");
        assert_eq!(opened.past, LedgerPast::Kept, "it was dealt with");
    }
}

#[test]
fn the_commit_of_a_running_process_hides_no_loss_from_those_that_come_later() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    for n in 1..=4 {
        assert_eq!(commit(&store, claim_in(Revision::ABSENT, &n.to_string(), n)), Committed::Done);
    }
    put_back(&place, 2);
    // It requires no epoch, so nothing keeps it from being written.
    let count = Commit { require: Require::default(), ..claim_in(Revision::ABSENT, "other", 20) };
    assert_eq!(commit(&store, count), Committed::Done);
    drop(store);
    let later = scene::open_blocking(&place).expect("it opens").store;
    assert_eq!(
        commit(&later, claim_in(Revision::ABSENT, "4", 14)),
        Committed::Conflict(Conflict::Cell(EPOCH_CELL))
    );
    assert!(epoch(&later).is_some());
}

#[test]
fn what_others_commit_in_turn_is_no_loss() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let stores = [0, 1].map(|_| scene::open_blocking(&place).expect("it opens").store);
    for n in 0..40_u128 {
        let store = &stores[n as usize % 2];
        assert_eq!(commit(store, claim_in(Revision::ABSENT, &n.to_string(), n)), Committed::Done);
    }
    assert_eq!(epoch(&stores[0]), None);
}

/// A log that is cut or damaged can lose the very commit that tied the ledger to its secret.
#[test]
fn a_ledger_that_lost_the_tie_to_its_secret_does_not_pass_for_a_new_one() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    assert_eq!(commit(&store, claim_in(Revision::ABSENT, "1", 1)), Committed::Done);
    drop(store);
    let connection = rusqlite::Connection::open(place.database()).expect("it opens");
    let cut = "DELETE FROM effect; DELETE FROM open; DELETE FROM journal; UPDATE meta SET secret_check = x''";
    connection.execute_batch(cut).expect("written");
    drop(connection);
    let opened = scene::open_blocking(&place).expect("it opens");
    assert_eq!(opened.past, LedgerPast::MayBeLost);
    let again = commit(&opened.store, claim_in(Revision::ABSENT, "1", 2));
    assert_eq!(again, Committed::Conflict(Conflict::Cell(EPOCH_CELL)));
}
