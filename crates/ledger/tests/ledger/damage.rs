use crate::scene::{self, now};
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{FORMAT, OpenOptions, SqliteStore};
use semel_ledger::store::{Committed, Store};
use semel_testkit::store_suite::{claim, index, named};
use std::fs;

/// A closed ledger of some hundred effects, all of it in the database file and none in the WAL.
fn written(place: &Place) {
    let store = scene::open_blocking(place).expect("it opens").store;
    for n in 0..300u128 {
        let commit = claim(named(&n.to_string()), index(n, true));
        assert_eq!(now(store.commit(commit.into())).expect("answered"), Committed::Done);
    }
    drop(store);
    let connection = rusqlite::Connection::open(place.database()).expect("it opens");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("folded back");
}

fn meddle(place: &Place, sql: &str) {
    rusqlite::Connection::open(place.database()).expect("it opens").execute_batch(sql).expect("meddled");
}

#[test]
fn a_file_that_is_no_database_is_damaged() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    let _ = fs::remove_file(place.wal());
    let _ = fs::remove_file(place.shm());
    fs::write(place.database(), vec![b'x'; 8192]).expect("writable");
    assert!(matches!(scene::open(&place), Err(Error::Damaged { .. })));
}

#[test]
fn a_truncated_file_is_never_taken_for_a_smaller_ledger() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    let whole = fs::metadata(place.database()).expect("it exists").len();
    fs::File::options().write(true).open(place.database()).and_then(|f| f.set_len(whole / 2)).expect("cut");
    let opened = match scene::open_blocking(&place) {
        Err(error) => return assert!(matches!(error, Error::Damaged { .. }), "{error}"),
        Ok(opened) => opened.store,
    };
    let complaints = opened.integrity_check();
    assert!(complaints.is_err() || !complaints.unwrap().is_empty());
    let lost = (0..300u128)
        .filter(|n| now(opened.read(named(&n.to_string()))).is_ok_and(|found| found.row.is_none()));
    assert_eq!(lost.count(), 0, "a claim that cannot be read is an error, never an unseen intent");
}

#[test]
fn a_scribbled_page_is_found_by_the_integrity_check() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    let mut bytes = fs::read(place.database()).expect("readable");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 2048].fill(0xa5);
    fs::write(place.database(), bytes).expect("writable");
    match scene::open_blocking(&place).and_then(|opened| opened.store.integrity_check()) {
        Ok(complaints) => assert!(!complaints.is_empty()),
        Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
    }
}

#[test]
fn a_sound_ledger_has_no_complaints() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    let store = scene::open(&place).expect("it opens").store;
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
    meddle(&place, "DELETE FROM open WHERE id = 7");
    assert_eq!(store.integrity_check().expect("checkable").len(), 1);
    meddle(&place, "INSERT INTO delivery VALUES(999, 2, x'00', x'00')");
    assert_eq!(store.integrity_check().expect("checkable").len(), 2);
}

#[test]
fn a_ledger_of_an_older_format_is_refused_and_left_as_it_is() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    meddle(&place, "UPDATE meta SET format = 1, min_reader = 1, min_writer = 1");
    let read_only = OpenOptions { read_only: true, ..OpenOptions::at(place.clone(), At(1_000_000)) };
    for options in [read_only, OpenOptions::at(place.clone(), At(1_000_000))] {
        assert!(matches!(SqliteStore::open(options), Err(Error::TooOld { has: 1, needs: FORMAT, .. })));
    }
}

#[test]
fn a_newer_format_is_refused_as_far_as_it_asks_for() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    written(&place);
    meddle(&place, "UPDATE meta SET format = 9, min_writer = 8");
    assert!(matches!(scene::open(&place), Err(Error::TooNew { needs: 8, has: FORMAT, .. })));
    let read_only = OpenOptions { read_only: true, ..OpenOptions::at(place.clone(), At(1_000_000)) };
    let store = SqliteStore::open(read_only.clone()).expect("it may be read").store;
    assert!(matches!(
        scene::runtime().block_on(store.commit(claim(named("x"), index(999, true)).into())),
        Err(Error::NotWritten { .. })
    ));
    meddle(&place, "UPDATE meta SET min_reader = 9");
    assert!(matches!(SqliteStore::open(read_only), Err(Error::TooNew { needs: 9, .. })));
}

#[test]
fn a_database_of_someone_else_is_left_alone() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    place.found_secret().expect("a secret");
    meddle(&place, "CREATE TABLE theirs(x)");
    scene::mode(place.database(), 0o600);
    assert!(matches!(scene::open(&place), Err(Error::Damaged { .. })));
}

#[test]
fn claims_are_not_written_to_a_file_that_was_moved_away() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    let aside = directory.path().join("aside.db");
    fs::rename(place.database(), &aside).expect("movable");
    let commit = || now(store.commit(claim(named("k"), index(1, true)).into()));
    assert!(matches!(commit(), Err(Error::NotWritten { .. })));
    fs::rename(&aside, place.database()).expect("movable");
    assert_eq!(commit().expect("answered"), Committed::Done);
}

#[test]
fn claims_are_not_written_to_a_wal_that_was_taken_away() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    let commit = |name: &str, id| now(store.commit(claim(named(name), index(id, true)).into()));
    assert_eq!(commit("first", 1).expect("answered"), Committed::Done);
    let aside = directory.path().join("aside.wal");
    fs::rename(place.wal(), &aside).expect("movable");
    assert!(matches!(commit("second", 2), Err(Error::NotWritten { .. })));
    fs::rename(&aside, place.wal()).expect("movable");
    assert_eq!(commit("second", 2).expect("answered"), Committed::Done);
    // Somebody deletes it, and another process begins a new one: the two would no longer see each other's claims.
    fs::remove_file(place.wal()).expect("removable");
    fs::write(place.wal(), "").expect("writable");
    assert!(matches!(commit("third", 3), Err(Error::NotWritten { .. })));
}

#[test]
fn claims_are_not_written_by_the_index_of_a_wal_that_others_no_longer_share() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    let commit = |name: &str, id| now(store.commit(claim(named(name), index(id, true)).into()));
    assert_eq!(commit("first", 1).expect("answered"), Committed::Done);
    fs::remove_file(place.shm()).expect("removable");
    assert!(matches!(commit("second", 2), Err(Error::NotWritten { .. })));
    // Another process makes an index of its own.
    meddle(&place, "UPDATE meta SET barrier = barrier + 1");
    assert!(matches!(commit("second", 2), Err(Error::NotWritten { .. })));
    drop(store);
    let store = scene::open_blocking(&place).expect("it opens").store;
    assert!(now(store.read(named("first"))).expect("readable").row.is_some());
    assert_eq!(
        now(store.commit(claim(named("second"), index(2, true)).into())).expect("answered"),
        Committed::Done
    );
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
}
