//! Several handles on one file, as several processes have them; the locks between them are the same.

use crate::scene::{self, now};
use semel_ledger::sqlite::SqliteStore;
use semel_ledger::store::{By, Committed, Conflict, Store};
use semel_testkit::store_suite::{claim, index, named, one, record};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn four_writers_racing_for_the_same_keys_win_each_exactly_once() {
    const KEYS: u128 = 150;
    let directory = scene::directory();
    let place = scene::place(&directory);
    let wins = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for racer in 0..4u128 {
            let (place, wins) = (&place, &wins);
            scope.spawn(move || {
                let store = scene::open_blocking(place).expect("it opens").store;
                for n in 0..KEYS {
                    let commit = claim(named(&n.to_string()), index(racer * KEYS + n, true));
                    let won = now(store.commit(commit.into())).expect("answered") == Committed::Done;
                    wins.fetch_add(usize::from(won), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(wins.into_inner(), KEYS as usize);
    let store = scene::open(&place).expect("it opens").store;
    assert_eq!(now(store.scan(By::All, None, 500)).expect("scannable").items.len(), KEYS as usize);
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
}

#[test]
fn what_one_handle_commits_the_other_reads() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let (one, two) =
        (scene::open_blocking(&place).unwrap().store, scene::open_blocking(&place).unwrap().store);
    for n in 0..50u128 {
        let (writes, reads): (&SqliteStore, &SqliteStore) =
            if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let key = named(&n.to_string());
        assert!(now(reads.read(key)).expect("readable").row.is_none());
        assert_eq!(now(writes.commit(claim(key, index(n, true)).into())).expect("answered"), Committed::Done);
        assert!(now(reads.read(key)).expect("readable").row.is_some());
    }
}

#[test]
fn what_a_writer_remembers_ends_with_the_commit_of_another() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let ours = scene::open_blocking(&place).expect("it opens").store;
    let theirs = scene::open_blocking(&place).expect("it opens").store;
    let settle = |revision| one(record(named("k"), 1, revision, index(1, false)));
    let commit = |store: &SqliteStore, commit: semel_ledger::store::Commit| {
        now(store.commit(commit.into())).expect("answered")
    };
    assert_eq!(commit(&ours, claim(named("k"), index(1, true))), Committed::Done);
    assert_eq!(commit(&theirs, settle(1)), Committed::Done);
    assert_eq!(commit(&ours, settle(1)), Committed::Conflict(Conflict::Record), "it has moved to 2");
    assert_eq!(commit(&ours, settle(2)), Committed::Done);
    assert_eq!(commit(&ours, settle(3)), Committed::Done, "from memory");
    assert_eq!(commit(&theirs, settle(3)), Committed::Conflict(Conflict::Record));
    assert_eq!(commit(&theirs, settle(4)), Committed::Done);
    assert_eq!(commit(&ours, settle(4)), Committed::Conflict(Conflict::Record));
    // A refused commit leaves what was written before it as it was.
    assert_eq!(commit(&ours, settle(5)), Committed::Done);
}

#[test]
fn a_process_that_was_stopped_with_its_turn_does_not_stop_the_others() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let command = scene::open_blocking(&place).expect("it opens").store;
    let server = scene::open(&place).expect("it opens").store;
    let runtime = scene::runtime();
    let stopped = std::fs::File::open(place.lock_file()).expect("it is there");
    stopped.lock().expect("free");
    // The first of each waits two seconds in vain, the others do not wait at all.
    for n in 0..5u128 {
        let commit = |who: &str, effect| claim(named(&format!("{who} {n}")), index(effect, true));
        assert_eq!(now(command.commit(commit("command", n).into())).expect("answered"), Committed::Done);
        let answer = runtime.block_on(server.commit(commit("server", 100 + n).into()));
        assert_eq!(answer.expect("answered"), Committed::Done);
    }
    stopped.unlock().expect("ours");
    for n in 5..10u128 {
        let answer = runtime
            .block_on(server.commit(claim(named(&format!("server {n}")), index(100 + n, true)).into()));
        assert_eq!(answer.expect("answered"), Committed::Done);
    }
    drop(server);
    stopped.lock().expect("nobody holds a turn that nobody wants");
}

#[test]
fn a_dropped_commit_still_lands() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = std::sync::Arc::new(scene::open(&place).expect("it opens").store);
    scene::runtime().block_on(async {
        let racing = (0..200u128).map(|n| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                let commit = store.commit(claim(named(&n.to_string()), index(n, true)).into());
                let _ = tokio::time::timeout(Duration::from_micros(1), commit).await;
            })
        });
        for racer in racing.collect::<Vec<_>>() {
            racer.await.expect("no panic");
        }
    });
    drop(store);
    let store = scene::open_blocking(&place).expect("it opens").store;
    let kept = now(store.scan(By::All, None, 500)).expect("scannable").items.len();
    assert_eq!(kept, 200, "closing waits for what was queued");
}
