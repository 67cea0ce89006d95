//! The key-value engine, on a server in memory.

use semel_core::digest::Secret;
use semel_core::time::At;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::fleet_holders::FleetHolders;
use semel_ledger::kv::{Applied, Batch, FORMAT, Group, Kv, KvFault, KvStore, MemoryKv, Template, Write};
use semel_ledger::store::{By, Commit, Committed, Conflict, Hint, OwnerId, ReplyChange, Revision, Store};
use semel_ledger::{Error, Ledger};
use semel_testkit::store_suite::{claim, exercise, index, named, one, record, with_reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

pub const SECRET: [u8; 32] = [7; 32];

/// A store on this server, from a thread that no runtime has.
pub fn open<K: Kv>(
    connect: impl Future<Output = Result<K, Error>> + Send + 'static,
) -> Result<KvStore<K>, Error> {
    let opening = KvStore::open(connect, SECRET, Arc::new(|| At(1_000_000)));
    block_on(opening).map(|(store, _)| store)
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Claims until it is told to stop, and returns the effects whose claims were acknowledged.
pub fn claim_until<K: Kv>(
    stopped: &AtomicBool,
    landed: &AtomicU64,
    store: &KvStore<K>,
    worker: u128,
) -> Vec<u128> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let effect = worker << 64 | n;
        let answer = commit(store, claim(named(&effect.to_string()), index(effect, true)));
        if answer.is_ok_and(|answer| answer == Committed::Done) {
            acknowledged.push(effect);
            landed.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}

/// Those of the acknowledged claims that the store does not have.
pub fn lost<K: Kv>(store: &KvStore<K>, acknowledged: &[u128]) -> Vec<u128> {
    let has = |effect: &u128| {
        let found = block_on(store.read(named(&effect.to_string()))).unwrap();
        found.row.is_some_and(|row| row.index.effect == *effect)
    };
    acknowledged.iter().copied().filter(|effect| !has(effect)).collect()
}

fn on(server: &MemoryKv) -> KvStore<MemoryKv> {
    let server = server.clone();
    open(async move { Ok(server) }).unwrap()
}

fn commit<K: Kv>(store: &KvStore<K>, commit: Commit) -> Result<Committed, Error> {
    block_on(store.commit(commit.into()))
}

#[test]
fn the_key_value_store_passes_the_suite() {
    exercise(|| (on(&MemoryKv::default()), ()));
}

#[test]
fn a_commit_whose_answer_is_lost_lands_once() {
    for fault in [KvFault::LandsUnanswered, KvFault::VanishesUnanswered, KvFault::Unreachable] {
        let server = MemoryKv::default();
        let store = on(&server);
        server.inject(fault);
        assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done, "{fault:?}");
        let found = block_on(store.scan(By::All, None, 9)).unwrap().items;
        assert_eq!((found.len(), found[0].revision), (1, Revision(1)), "{fault:?}");
    }
}

#[test]
fn a_line_whose_answer_is_lost_is_not_written_again() {
    let server = MemoryKv::default();
    let store = on(&server);
    let line = semel_ledger::journal::note("note", None, None, serde_json::json!({}), At(1));
    let lines = Commit { journal: vec![line], puts: Vec::new(), ..claim(named("k"), index(1, true)) };
    server.inject(KvFault::LandsUnanswered);
    assert_eq!(commit(&store, lines).unwrap(), Committed::Unknown);
    assert_eq!(block_on(store.journal(None, 9)).unwrap().items.len(), 1);
}

#[test]
fn a_server_that_stays_away_is_an_error_or_a_doubt() {
    let server = MemoryKv::default();
    let store = on(&server);
    (0..8).for_each(|_| server.inject(KvFault::Unreachable));
    assert!(commit(&store, claim(named("unsent"), index(1, true))).is_err());
    (0..8).for_each(|_| server.inject(KvFault::VanishesUnanswered));
    assert_eq!(commit(&store, claim(named("sent"), index(2, true))).unwrap(), Committed::Unknown);
    assert_eq!(commit(&store, claim(named("later"), index(3, true))).unwrap(), Committed::Done);
}

#[test]
fn another_history_of_the_server_begins_an_epoch_before_anything_is_written() {
    let server = MemoryKv::default();
    let (one_store, other) = (on(&server), on(&server));
    let epoch = |store: &KvStore<MemoryKv>| block_on(store.read(named("k"))).unwrap().epoch;
    assert_eq!(epoch(&one_store), Revision::ABSENT);
    server.change_lineage("a replica took over");
    for (store, word) in [(&one_store, "a"), (&other, "b"), (&one_store, "c")] {
        let mut claim = claim(named(word), index(u128::from(word.as_bytes()[0]), true));
        claim.require.cells = vec![(semel_ledger::store::EPOCH_CELL, Revision::ABSENT)];
        let conflict = Committed::Conflict(Conflict::Cell(semel_ledger::store::EPOCH_CELL));
        assert_eq!(commit(store, claim).unwrap(), conflict, "its epoch is over");
    }
    assert_eq!((epoch(&one_store), epoch(&other)), (Revision(1), Revision(1)), "bumped once");
    let kinds = block_on(other.journal(None, 9)).unwrap().items;
    assert_eq!(kinds.iter().map(|(_, line)| line.kind.as_str()).collect::<Vec<_>>(), ["commits_lost"]);
    server.change_lineage("restarted");
    assert_eq!(epoch(&on(&server)), Revision(2), "opening notices it too");
}

/// The settings before a restart say what it has lost, not those after it.
#[test]
fn a_restart_loses_what_was_not_on_the_disk_before_it() {
    let epoch = |server: &MemoryKv| block_on(on(server).read(named("k"))).unwrap().epoch;
    let server = MemoryKv::default();
    let store = on(&server);
    server.restart("restarted");
    assert_eq!(epoch(&server), Revision::ABSENT, "it has read everything again");
    let done =
        |word, effect| commit(&store, claim(named(word), index(effect, true))).unwrap() == Committed::Done;
    assert!(done("safe", 1), "it knows the history by now");
    server.set_forgetful(true);
    assert!(done("not on the disk", 2));
    server.set_forgetful(false);
    server.restart("restarted again");
    assert_eq!(epoch(&server), Revision(1));
    server.restart("restarted once more");
    assert_eq!(epoch(&server), Revision(1), "by now it writes to its disk first");
}

/// They would else ask the server four times a second, each for itself.
#[test]
fn those_who_wait_are_looked_for_together() {
    const WAITERS: usize = 1_000;
    let server = MemoryKv::default();
    let (ours, theirs) = (Arc::new(on(&server)), on(&server));
    server.mute();
    let key = |n: usize| named(&n.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let before = server.reads();
    runtime.block_on(async {
        let mut waiting: Vec<_> = (0..WAITERS)
            .map(|n| {
                let ours = Arc::clone(&ours);
                tokio::spawn(async move { ours.changed(key(n), Revision::ABSENT, LONG).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let late = theirs.commit(claim(key(7), index(1, true)).into()).await;
        assert_eq!(late.unwrap(), Committed::Done);
        assert_eq!(waiting.swap_remove(7).await.unwrap(), Hint::Changed);
        assert!(waiting.iter().all(|waiter| !waiter.is_finished()), "theirs have not moved");
        let own = ours.commit(claim(key(8), index(2, true)).into()).await;
        assert_eq!(own.unwrap(), Committed::Done);
        let soon = ours.changed(key(9), Revision::ABSENT, Duration::from_millis(1)).await;
        assert_eq!(soon, Hint::TimedOut);
        assert_eq!(waiting.swap_remove(8).await.unwrap(), Hint::Changed);
    });
    let asked = server.reads() - before;
    assert!(asked < 200, "{asked} questions");
}

#[test]
fn a_ledger_that_was_deleted_is_not_begun_anew_by_those_who_knew_it() {
    let server = MemoryKv::default();
    let store = on(&server);
    assert_eq!(commit(&store, claim(named("k"), index(1, true))).unwrap(), Committed::Done);
    server.flush();
    let refused = commit(&store, claim(named("k"), index(1, true))).unwrap_err().to_string();
    assert!(refused.contains("deleted from the server"), "{refused}");
    let _another = on(&server);
    assert!(commit(&store, claim(named("k"), index(1, true))).is_err(), "another ledger stands there");
}

#[test]
fn replies_that_no_row_names_are_taken_away() {
    let server = MemoryKv::default();
    let store = on(&server);
    let reply = |expected| {
        let put = record(named("k"), 1, expected, index(1, false));
        one(with_reply(put, ReplyChange::Set(vec![b'r'; 2_000_000])))
    };
    assert_eq!(commit(&store, reply(0)).unwrap(), Committed::Done);
    let values = server.values();
    assert_eq!(commit(&store, reply(0)).unwrap(), Committed::Conflict(Conflict::Record));
    assert_eq!(server.values(), values, "a commit that conflicts leaves none");
    assert_eq!(commit(&store, reply(1)).unwrap(), Committed::Done);
    assert_eq!(server.values(), values, "a reply that was replaced is gone");
}

#[test]
fn of_many_stores_that_claim_one_key_exactly_one_wins() {
    let server = MemoryKv::default();
    let stores: Vec<_> = (0..4).map(|_| on(&server)).collect();
    for round in 0..50u128 {
        let wins = std::thread::scope(|scope| {
            let racing: Vec<_> = (0..)
                .zip(&stores)
                .map(|(n, store)| {
                    let claim = claim(named(&round.to_string()), index(round * 4 + n, true));
                    scope.spawn(move || commit(store, claim).unwrap())
                })
                .collect();
            let answers = racing.into_iter().map(|racer| racer.join().unwrap());
            answers.filter(|answer| *answer == Committed::Done).count()
        });
        assert_eq!(wins, 1);
    }
}

#[test]
fn a_ledger_of_a_newer_format_is_read_and_left_as_it_is() {
    let server = MemoryKv::default();
    block_on(on(&server).commit(claim(named("k"), index(1, true)).into())).expect("it is written");
    let newer = [&(FORMAT + 1).to_be_bytes()[..], &SECRET, b"something new"].concat();
    let writes = vec![Write::Put { name: b"ledger".to_vec(), value: Template::plain(newer) }];
    let groups = [Group { writes, ..Group::default() }];
    let batch = Batch { lineage: "", groups: &groups, durable: true, moved: &[] };
    assert_eq!(block_on(server.apply(batch)), Applied::Each(vec![true]));
    // Another history would begin an epoch, and does not.
    server.change_lineage("another");
    let (store, values) = (on(&server), server.values());
    assert!(store.is_newer());
    let refused = block_on(store.commit(claim(named("other"), index(2, true)).into()));
    assert!(refused.expect_err("it is another's").to_string().contains("update semel"));
    let found = block_on(store.read(named("k"))).expect("readable");
    assert_eq!((found.revision, found.epoch), (Revision(1), Revision::ABSENT));
    assert_eq!(server.values(), values);
}

/// Two servers that start together would else tell the same news twice.
#[test]
fn a_process_that_has_just_taken_the_outbox_keeps_it() {
    let server = MemoryKv::default();
    let hosts = [crate::scene::directory(), crate::scene::directory()];
    let [one, other] = hosts.each_ref().map(|host| {
        let store: Arc<dyn Store> = Arc::new(on(&server));
        let holders = FleetHolders::new(host.path(), Arc::clone(&store)).expect("a directory");
        Ledger::new(store, Arc::new(holders), OsEntropy, Secret::new(SECRET))
    });
    assert!(block_on(one.take_outbox("webhook")).expect("answered").is_some());
    assert!(block_on(other.take_outbox("webhook")).expect("answered").is_none());
    drop(one);
    assert!(block_on(other.take_outbox("webhook")).expect("answered").is_some(), "it has ended");
}

#[test]
fn a_process_whose_mark_is_older_than_a_minute_is_silent() {
    let server = MemoryKv::default();
    let (store, owner) = (on(&server), OwnerId(7));
    store.announce(owner);
    let mut claim = claim(named("k"), index(1, true));
    claim.require.begins = true;
    assert_eq!(commit(&store, claim).expect("answered"), Committed::Done);
    for (seconds, silent) in [(59, vec![]), (61, vec![owner])] {
        let connecting = server.clone();
        let later = move || At(1_000_000 + seconds * 1_000_000);
        let opening = KvStore::open(async move { Ok(connecting) }, SECRET, Arc::new(later));
        let (other, _) = block_on(opening).expect("it opens");
        assert_eq!(block_on(other.silent(&[owner])).expect("readable"), silent, "after {seconds} s");
    }
}

#[test]
fn a_process_that_claims_is_heard_of_until_it_ends_or_falls_silent() {
    let server = MemoryKv::default();
    let (one, other) = (on(&server), on(&server));
    let silent = |owner| block_on(other.silent(&[owner])).expect("readable");
    let (here, gone) = (OwnerId(7), OwnerId(8));
    one.announce(here);
    assert_eq!(silent(here), [here], "its mark comes with its first claim");
    let mut claim = claim(named("k"), index(1, true));
    claim.require.begins = true;
    assert_eq!(commit(&one, claim).expect("answered"), Committed::Done);
    assert_eq!((silent(here), silent(gone)), (vec![], vec![gone]));
    drop(one);
    assert_eq!(silent(here), [here], "it has ended");
}
