use crate::scene::{self, now};
use semel_ledger::store::{Committed, Durability, Hint, Revision, Store};
use semel_testkit::store_suite::{claim, index, named, one, record};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_commit_of_another_process_wakes_ten_thousand_waiters() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let ours = Arc::new(scene::open(&place).expect("it opens").store);
    let theirs = scene::open_blocking(&place).expect("it opens").store;
    assert_eq!(
        now(theirs.commit(claim(named("k"), index(1, true)).into())).expect("answered"),
        Committed::Done
    );
    scene::runtime().block_on(async {
        let wait = |_| {
            let ours = Arc::clone(&ours);
            tokio::spawn(async move { ours.changed(named("k"), Revision(1), LONG).await })
        };
        let waiters: Vec<_> = (0..10_000).map(wait).collect();
        let other = tokio::spawn({
            let ours = Arc::clone(&ours);
            async move { ours.changed(named("other"), Revision::ABSENT, Duration::from_millis(300)).await }
        });
        tokio::time::sleep(Duration::from_millis(30)).await;
        let settled = theirs.commit(one(record(named("k"), 1, 1, index(1, false))).into()).await;
        assert_eq!(settled.expect("answered"), Committed::Done);
        for waiter in waiters {
            assert_eq!(waiter.await.expect("no panic"), Hint::Changed);
        }
        assert_eq!(other.await.expect("no panic"), Hint::TimedOut, "only the key that moved is woken");
    });
}

#[test]
fn a_blocking_waiter_sees_the_commit_of_another_process() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let ours = scene::open_blocking(&place).expect("it opens").store;
    let theirs = scene::open_blocking(&place).expect("it opens").store;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| now(ours.changed(named("k"), Revision::ABSENT, LONG)));
        assert_eq!(
            now(theirs.commit(claim(named("k"), index(1, true)).into())).expect("answered"),
            Committed::Done
        );
        assert_eq!(waiter.join().expect("no panic"), Hint::Changed);
    });
    assert_eq!(now(ours.changed(named("k"), Revision(1), Duration::from_millis(5))), Hint::TimedOut);
}

#[test]
fn a_waiter_that_goes_away_leaves_nothing_behind() {
    let directory = scene::directory();
    let store = scene::open(&scene::place(&directory)).expect("it opens").store;
    scene::runtime().block_on(async {
        for n in 0..100 {
            let waiting = store.changed(named(&n.to_string()), Revision::ABSENT, LONG);
            assert!(tokio::time::timeout(Duration::from_micros(10), waiting).await.is_err());
        }
        assert_eq!(
            store.changed(named("x"), Revision::ABSENT, Duration::from_millis(5)).await,
            Hint::TimedOut
        );
    });
}

#[test]
fn reads_lazy_commits_and_conflicts_make_no_durable_commit() {
    let directory = scene::directory();
    let store = scene::open_blocking(&scene::place(&directory)).expect("it opens").store;
    let key = named("k");
    assert_eq!(now(store.commit(claim(key, index(1, true)).into())).expect("answered"), Committed::Done);
    assert_eq!(store.durable_commits(), 1);
    for n in 1..20 {
        now(store.read(key)).expect("readable");
        let mut lazy = one(record(key, 1, n, index(1, false)));
        lazy.durability = Durability::Lazy;
        assert_eq!(now(store.commit(lazy.into())).expect("answered"), Committed::Done);
        assert!(matches!(now(store.commit(claim(key, index(2, true)).into())), Ok(Committed::Conflict(_))));
    }
    assert_eq!(store.durable_commits(), 1);
}

/// A ledger of generations alone has lazy commits only.
#[test]
fn lazy_commits_alone_do_not_let_the_log_grow_for_ever() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = scene::open_blocking(&place).expect("it opens").store;
    let mut log = place.database().as_os_str().to_owned();
    log.push("-wal");
    let mut largest = 0;
    for n in 0..3_000_u64 {
        let mut lazy = claim(named(&format!("k{n}")), index(u128::from(n) + 1, false));
        lazy.durability = Durability::Lazy;
        assert_eq!(now(store.commit(lazy.into())).expect("answered"), Committed::Done);
        largest = largest.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
    }
    assert!(largest < 32 << 20, "{largest} bytes");
    assert!(store.durable_commits() < 100, "{}", store.durable_commits());
}

/// With one thread for all of them: whoever cannot write at once must not keep it.
#[test]
fn nobody_reads_behind_callers_who_wait_for_another_process() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = Arc::new(scene::open(&place).expect("it opens").store);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
    let first = runtime.block_on(store.commit(claim(named("a"), index(1, true)).into()));
    assert_eq!(first.expect("writable"), Committed::Done);
    let other = rusqlite::Connection::open(place.database()).expect("it opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let commits: Vec<_> = (0..8_u128)
        .map(|n| {
            let (store, commit) = (Arc::clone(&store), claim(named(&n.to_string()), index(10 + n, true)));
            runtime.spawn(async move { store.commit(commit.into()).await })
        })
        .collect();
    let reader = Arc::clone(&store);
    let read = runtime.block_on(runtime.spawn(async move { reader.read(named("a")).await }));
    assert!(read.expect("it ends").expect("readable").row.is_some());
    assert!(commits.iter().all(|commit| !commit.is_finished()), "they wait, and nobody else does");
    other.execute_batch("ROLLBACK").expect("it was begun");
    for commit in commits {
        let answer = runtime.block_on(commit).expect("it ends");
        assert_eq!(answer.expect("written once the other has ended"), Committed::Done);
    }
}

/// A caller that is gone before it has committed leaves its commit to somebody who stays.
#[test]
fn a_commit_whose_caller_has_gone_lands_all_the_same() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let store = Arc::new(scene::open(&place).expect("it opens").store);
    {
        // What is in no hurry steps aside each time.
        let mut commit = claim(named("a"), index(1, true));
        commit.durability = Durability::Lazy;
        let mut commit = Box::pin(store.commit(commit.into()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(commit.as_mut().poll(&mut context).is_pending(), "it has stepped aside");
    }
    let runtime = scene::runtime();
    let landed = runtime.block_on(async {
        for _ in 0..1_000 {
            if store.read(named("a")).await.expect("readable").row.is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    });
    assert!(landed);
}
