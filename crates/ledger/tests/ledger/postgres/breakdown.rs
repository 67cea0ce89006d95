//! The server dies, or the connection is cut, at the worst moment.

use super::{before, by, noted, noted_claim, store, wait};
use crate::scene;
use semel_ledger::store::{Committed, Revision, Store};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::proxy::Moment;
use semel_testkit::store_suite::named;
use semel_testkit::wait_until;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_commit_that_was_cut_off_is_unknown_and_done_when_it_is_sent_again() {
    let server = PostgresServer::start(&[]);
    let proxy = before(&server);
    let store = store(&by(&proxy));
    let behind = Moment::Behind(b"COMMIT\0", b"COMMIT\0");
    for (effect, cut) in [(1, Moment::Before(b"COMMIT\0")), (2, behind)] {
        let word = format!("{cut:?}");
        let commit = noted_claim(&word, effect);
        proxy.cut(cut, 1);
        assert_eq!(wait(store.commit(Arc::clone(&commit))).expect("answered"), Committed::Unknown, "{cut:?}");
        assert_eq!(proxy.cuts_left(), 0);
        let landed = wait(store.read(named(&word))).expect("readable").revision;
        assert_eq!(landed == Revision(1), cut == behind, "{cut:?}");
        assert_eq!(wait(store.commit(commit)).expect("answered"), Committed::Done, "{cut:?}");
    }
    assert_eq!(noted(&store), [1, 2], "each was written once");
}

#[test]
fn a_connection_that_breaks_before_anything_was_written_is_made_anew() {
    let server = PostgresServer::start(&[]);
    let proxy = before(&server);
    let store = store(&by(&proxy));
    for (effect, cut) in [(1, Moment::Before(b"BEGIN")), (2, Moment::Behind(b"BEGIN", b"BEGIN"))] {
        proxy.cut(cut, 1);
        let commit = noted_claim(&format!("{cut:?}"), effect);
        assert_eq!(wait(store.commit(commit)).expect("answered"), Committed::Done, "{cut:?}");
        assert_eq!(proxy.cuts_left(), 0);
    }
    assert_eq!(noted(&store), [1, 2]);
}

/// Every answer is true after the server has come back: done is there, refused is not, and unknown becomes done.
#[test]
fn a_server_that_is_killed_under_load_keeps_its_word() {
    kill_under_load(PostgresServer::start(&[]));
}

/// By its own settings the server would keep acknowledged commits in its memory for a while.
#[test]
fn a_server_with_lazy_defaults_keeps_its_word_too() {
    let settings = ["synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB"];
    kill_under_load(PostgresServer::start(&settings));
}

fn kill_under_load(mut server: PostgresServer) {
    let store = Arc::new(store(&server.url("semel")));
    let runtime = scene::runtime();
    let done = Arc::new(AtomicU64::new(0));
    let senders: Vec<_> = (0..16u128)
        .map(|sender| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            runtime.spawn(async move {
                let mut sent = Vec::new();
                for n in 0.. {
                    let effect = sender << 32 | n;
                    let commit = noted_claim(&effect.to_string(), effect);
                    let answer = store.commit(Arc::clone(&commit)).await;
                    let is_done = matches!(answer, Ok(Committed::Done));
                    done.fetch_add(u64::from(is_done), Ordering::Relaxed);
                    sent.push((effect, commit, answer));
                    if !is_done {
                        return sent;
                    }
                }
                sent
            })
        })
        .collect();
    wait_until("claims are under way", || done.load(Ordering::Relaxed) > 200);
    server.kill();
    let sent: Vec<_> =
        senders.into_iter().flat_map(|sender| runtime.block_on(sender).expect("no panic")).collect();
    server.start_again();
    let mut claimed = Vec::new();
    for (effect, commit, answer) in sent {
        let revision = wait(store.read(named(&effect.to_string()))).expect("it connects anew").revision;
        match answer {
            Ok(Committed::Done) => assert_eq!(revision, Revision(1), "{effect} was acknowledged"),
            Err(error) => assert_eq!(revision, Revision::ABSENT, "{effect}: {error}"),
            Ok(_) => {}
        }
        assert_eq!(wait(store.commit(commit)).expect("answered"), Committed::Done, "{effect}");
        claimed.push(effect);
    }
    let mut noted = noted(&store);
    noted.sort_unstable();
    claimed.sort_unstable();
    assert_eq!(noted, claimed, "each was written once");
}
