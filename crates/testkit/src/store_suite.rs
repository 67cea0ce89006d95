//! One suite that every engine passes: what the ledger above a [`Store`] may rely on.

use semel_core::digest::Digest;
use semel_core::time::At;
use semel_ledger::entropy::{OsEntropy, nonce};
use semel_ledger::store::{
    Against, Body, By, COPY_CELL, Card, Commit, Committed, Conflict, Cursor, Durability, EPOCH_CELL, Hint,
    Index, JournalLine, Latest, OwnerId, Part, Put, ReplyChange, Revision, Row, SeenAlike, Store,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Runs every case on a fresh, empty store. `make` gives one, and what must live as long as it does.
///
/// `S` must wake its waiters by itself; a store in blocking mode is exercised through threads alone.
pub fn exercise<S: Store, G>(make: impl Fn() -> (S, G)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime for the suite");
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {$({
            // Shown by the test runner only when a case fails.
            #[allow(clippy::print_stdout, reason = "names the case that failed")]
            { println!("store suite: {}", stringify!($case)); }
            let (store, guard) = make();
            runtime.block_on($case(Arc::new(store)));
            drop(guard);
        })*};
    }
    cases![
        an_unseen_key_reads_as_absent,
        a_claim_reads_back_whole,
        a_second_claim_of_the_same_key_conflicts_and_writes_nothing,
        an_overwrite_needs_the_newest_revision,
        an_ordinal_that_skips_one_is_refused_for_good,
        the_next_ordinal_becomes_the_newest_and_older_ones_stay,
        an_older_row_is_written_at_its_own_revision,
        parts_are_written_alone_and_read_together,
        replies_are_set_kept_and_dropped,
        cells_count_their_writes,
        a_cell_that_was_deleted_begins_again,
        the_keys_of_all_cells_are_listed_once_and_in_order,
        only_a_copy_leaves_out_the_effects_that_retention_dropped,
        a_required_cell_that_moved_conflicts,
        the_epoch_is_the_revision_of_its_cell,
        a_record_and_a_turn_land_together_or_not_at_all,
        a_reply_grows_shrinks_and_goes_as_it_is_told,
        one_commit_cannot_write_a_row_twice,
        a_commit_that_has_landed_is_done_when_it_is_sent_again,
        a_nonce_alone_proves_nothing,
        a_family_with_an_open_relative_is_not_quiet,
        a_row_that_looks_alike_and_was_not_seen_is_a_conflict,
        a_settled_relative_leaves_the_family_quiet,
        a_forgotten_row_is_gone_with_its_reply,
        an_open_row_cannot_be_forgotten,
        scans_find_what_they_are_asked_for,
        scans_page_in_order_of_insertion,
        the_latest_come_first_and_page_backwards,
        rows_that_changed_before_an_instant_are_found_page_by_page,
        the_journal_keeps_the_order_of_commits,
        a_commit_that_conflicts_leaves_no_journal_line,
        lazy_commits_are_read_at_once,
        large_bodies_survive,
        a_commit_wakes_those_who_wait_for_its_key,
        a_waiter_that_comes_late_is_told_at_once,
        a_waiter_without_news_hears_that_its_time_is_up,
        of_many_claims_of_one_key_exactly_one_wins,
        of_many_relatives_exactly_one_wins,
        many_writers_of_many_keys_all_land,
    ];
}

/// A digest of a word, for keys, families and runs.
pub fn named(word: &str) -> Digest {
    Digest::of(&[word.as_bytes()])
}

/// The columns of an effect that belongs to no run and has a family of its own.
pub fn index(effect: u128, open: bool) -> Index {
    Index {
        effect,
        run: None,
        family: named(&format!("family {effect}")),
        alike: None,
        content: 0,
        open,
        owner: open.then_some(OwnerId(7)),
        opened_at: At(1_000 + (effect as u64 & 0xffff)),
        changed_at: At(100_000 + (effect as u64 & 0xffff)),
    }
}

/// A durable commit of one put.
pub fn one(put: Put) -> Commit {
    Commit::of(nonce(&OsEntropy), vec![put])
}

/// The first claim of a record.
pub fn claim(key: Digest, index: Index) -> Commit {
    one(record(key, 1, 0, index))
}

/// A write of (key, ordinal) at the expected revision, with a body that says which one it was.
pub fn record(key: Digest, ordinal: u32, expected: u64, index: Index) -> Put {
    let (body, index) = (body(&format!("body {ordinal} at {expected}")), Box::new(index));
    let (expected, against, changed) = (Revision(expected), Against::Newest, Part::Fixed);
    Put::Record { key, ordinal, expected, against, index, body, changed, reply: ReplyChange::Keep }
}

/// A body that says one thing in both its parts, and has no mark.
fn body(words: &str) -> Body {
    let bytes = words.as_bytes();
    Body { fixed: bytes.into(), state: bytes.to_vec(), delivery: Vec::new() }
}

/// The same write, of these parts alone.
fn changing(put: Put, part: Part) -> Put {
    match put {
        Put::Record { key, ordinal, expected, against, index, body, reply, .. } => {
            Put::Record { key, ordinal, expected, against, index, body, changed: part, reply }
        }
        other => other,
    }
}

/// The same write of that very row, whatever came after it.
fn against_itself(put: Put) -> Put {
    match put {
        Put::Record { key, ordinal, expected, index, body, changed, reply, .. } => {
            Put::Record { key, ordinal, expected, against: Against::Itself, index, body, changed, reply }
        }
        other => other,
    }
}

/// The same write, with a reply.
pub fn with_reply(put: Put, change: ReplyChange) -> Put {
    match put {
        Put::Record { key, ordinal, expected, against, index, body, changed, .. } => {
            Put::Record { key, ordinal, expected, against, index, body, changed, reply: change }
        }
        other => other,
    }
}

fn cell(key: Digest, expected: u64, body: &str) -> Put {
    Put::Cell { key, expected: Revision(expected), body: body.as_bytes().to_vec() }
}

fn line(kind: &str) -> JournalLine {
    JournalLine {
        at: At(5),
        effect: Some(1),
        run: Some(named("run")),
        kind: kind.to_owned(),
        data: "{}".to_owned(),
    }
}

async fn done<S: Store>(store: &S, commit: Commit) {
    assert_eq!(store.commit(commit.into()).await.expect("the commit is answered"), Committed::Done);
}

async fn conflict<S: Store>(store: &S, commit: Commit) -> Conflict {
    match store.commit(commit.into()).await.expect("the commit is answered") {
        Committed::Conflict(conflict) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn newest<S: Store>(store: &S, key: Digest) -> Row {
    store.read(key).await.expect("readable").row.expect("a row")
}

async fn effects<S: Store>(store: &S, by: By) -> Vec<u128> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(by, after, 2).await.expect("scannable");
        assert!(page.items.len() <= 2, "a page is no longer than asked for");
        found.extend(page.items.iter().map(|row| row.index.effect));
        match page.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

async fn an_unseen_key_reads_as_absent<S: Store>(store: Arc<S>) {
    let found = store.read(named("unseen")).await.expect("readable");
    assert_eq!((found.revision, found.row, found.epoch), (Revision::ABSENT, None, Revision::ABSENT));
    assert_eq!(store.cell(named("unseen")).await.expect("readable"), None);
    assert_eq!(store.reply(named("unseen"), 1).await.expect("readable"), None);
}

async fn a_claim_reads_back_whole<S: Store>(store: Arc<S>) {
    let key = named("k");
    let index = Index { run: Some(named("run")), ..index(u128::MAX - 3, true) };
    done(&*store, claim(key, index.clone())).await;
    let found = store.read(key).await.expect("readable");
    assert_eq!(found.revision, Revision(1));
    let row = Row { key, ordinal: 1, revision: Revision(1), index, body: body("body 1 at 0"), reply: None };
    assert_eq!(found.row, Some(row));
}

async fn a_second_claim_of_the_same_key_conflicts_and_writes_nothing<S: Store>(store: Arc<S>) {
    let key = named("k");
    done(&*store, claim(key, index(1, true))).await;
    assert_eq!(conflict(&*store, claim(key, index(2, true))).await, Conflict::Record);
    assert_eq!(newest(&*store, key).await.index.effect, 1);
    assert_eq!(effects(&*store, By::All).await, [1]);
}

async fn an_overwrite_needs_the_newest_revision<S: Store>(store: Arc<S>) {
    let key = named("k");
    done(&*store, claim(key, index(1, true))).await;
    done(&*store, one(record(key, 1, 1, index(1, false)))).await;
    assert_eq!(conflict(&*store, one(record(key, 1, 1, index(1, true)))).await, Conflict::Record);
    assert_eq!(conflict(&*store, one(record(key, 1, 3, index(1, true)))).await, Conflict::Record);
    let row = newest(&*store, key).await;
    assert_eq!((row.revision, row.index.open, row.body), (Revision(2), false, body("body 1 at 1")));
}

async fn an_ordinal_that_skips_one_is_refused_for_good<S: Store>(store: Arc<S>) {
    let key = named("k");
    for ordinal in [0, 2] {
        assert!(store.commit(one(record(key, ordinal, 0, index(1, true))).into()).await.is_err());
    }
    done(&*store, claim(key, index(1, false))).await;
    assert!(store.commit(one(record(key, 3, 1, index(2, true))).into()).await.is_err());
    assert_eq!(effects(&*store, By::All).await, [1]);
}

async fn the_next_ordinal_becomes_the_newest_and_older_ones_stay<S: Store>(store: Arc<S>) {
    let key = named("k");
    done(&*store, claim(key, index(1, false))).await;
    for ordinal in 2..=5 {
        done(&*store, one(record(key, ordinal, u64::from(ordinal) - 1, index(u128::from(ordinal), false))))
            .await;
    }
    let row = newest(&*store, key).await;
    assert_eq!((row.ordinal, row.revision), (5, Revision(5)));
    assert_eq!(effects(&*store, By::Record(key)).await, [1, 2, 3, 4, 5]);
    for (ordinal, effect) in [(1, Some(1)), (3, Some(3)), (5, Some(5)), (6, None)] {
        let found = store.occurrence(key, ordinal).await.expect("readable");
        assert_eq!(found.map(|row| row.index.effect), effect);
    }
    assert_eq!(conflict(&*store, one(record(key, 2, 2, index(2, false)))).await, Conflict::Record);
}

async fn an_older_row_is_written_at_its_own_revision<S: Store>(store: Arc<S>) {
    let (key, run) = (named("k"), Some(named("run")));
    let of = |effect, open| Index { run, alike: Some(named("alike")), ..index(effect, open) };
    done(&*store, one(with_reply(record(key, 1, 0, of(1, false)), ReplyChange::Set(b"one".to_vec())))).await;
    done(&*store, one(record(key, 2, 1, of(2, true)))).await;
    done(&*store, one(record(key, 3, 2, of(3, false)))).await;
    let older = |ordinal, expected, effect| against_itself(record(key, ordinal, expected, of(effect, false)));
    let write = one(changing(older(1, 1, 1), Part::State));
    done(&*store, write.clone()).await;
    done(&*store, write).await;
    assert_eq!(conflict(&*store, one(older(1, 1, 1))).await, Conflict::Record);
    assert_eq!(conflict(&*store, one(older(4, 0, 4))).await, Conflict::Record, "it inserts nothing");
    done(&*store, one(older(2, 2, 2))).await;
    let row = newest(&*store, key).await;
    assert_eq!((row.ordinal, row.revision, row.body), (3, Revision(3), body("body 3 at 2")));
    assert_eq!(store.reply(key, 1).await.expect("readable").as_deref(), Some(&b"one"[..]));
    let rows = store.scan(By::Record(key), None, 9).await.expect("scannable").items;
    let found: Vec<_> = rows.iter().map(|row| (row.ordinal, row.revision.0, row.index.open)).collect();
    assert_eq!(found, [(1, 2, false), (2, 3, false), (3, 3, false)]);
    let state = String::from_utf8(rows[0].body.state.clone()).expect("words");
    assert_eq!(state, "body 1 at 1");
    assert_eq!(
        (effects(&*store, By::Open).await, effects(&*store, By::Run(named("run"))).await.len()),
        (vec![], 3)
    );
    done(&*store, one(older(3, 3, 3))).await;
    assert_eq!(newest(&*store, key).await.revision, Revision(4), "the newest row is also itself");
    done(&*store, one(record(key, 4, 4, of(4, true)))).await;
}

async fn parts_are_written_alone_and_read_together<S: Store>(store: Arc<S>) {
    let key = named("k");
    let fixed = b"body 1 at 0";
    let write = |expected, open, part| {
        let mut put = changing(record(key, 1, expected, index(1, open)), part);
        let Put::Record { body, .. } = &mut put else { unreachable!("a record") };
        body.fixed = fixed[..].into();
        put
    };
    let read = async |revision: u64, state: &str, mark: &str, open: bool| {
        let row = newest(&*store, key).await;
        assert_eq!((row.revision, row.index.open, &*row.body.fixed), (Revision(revision), open, &fixed[..]));
        let words = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("words");
        assert_eq!((words(&row.body.state), words(&row.body.delivery)), (state.to_owned(), mark.to_owned()));
        let rows = store.scan(By::All, None, 9).await.expect("scannable").items;
        assert_eq!(rows, [Row { reply: None, ..row }]);
    };
    done(&*store, one(write(0, true, Part::Fixed))).await;
    read(1, "body 1 at 0", "", true).await;
    let settle = with_reply(write(1, false, Part::State), ReplyChange::Set(b"reply".to_vec()));
    done(&*store, one(settle)).await;
    read(2, "body 1 at 1", "", false).await;
    // Engines in one piece write the state again, so it is said again.
    let mut mark = write(2, false, Part::Delivery);
    if let Put::Record { body, .. } = &mut mark {
        (body.state, body.delivery) = (b"body 1 at 1".to_vec(), b"delivered".to_vec());
    }
    let mark = one(mark);
    done(&*store, mark.clone()).await;
    done(&*store, mark).await;
    read(3, "body 1 at 1", "delivered", false).await;
    assert_eq!(newest(&*store, key).await.reply.as_deref(), Some(&b"reply"[..]));
    done(&*store, one(write(3, false, Part::State))).await;
    read(4, "body 1 at 3", "", false).await;
    assert_eq!(newest(&*store, key).await.reply.as_deref(), Some(&b"reply"[..]));
    done(&*store, one(write(4, false, Part::Fixed))).await;
    read(5, "body 1 at 4", "", false).await;
    assert_eq!(newest(&*store, key).await.reply.as_deref(), Some(&b"reply"[..]));
    done(&*store, one(with_reply(write(5, true, Part::Fixed), ReplyChange::Drop))).await;
    read(6, "body 1 at 5", "", true).await;
    assert_eq!(newest(&*store, key).await.reply, None);
}

async fn replies_are_set_kept_and_dropped<S: Store>(store: Arc<S>) {
    let key = named("k");
    let set = |n: u64, change| one(with_reply(record(key, 1, n, index(1, false)), change));
    done(&*store, set(0, ReplyChange::Set(b"first".to_vec()))).await;
    done(&*store, set(1, ReplyChange::Keep)).await;
    assert_eq!(newest(&*store, key).await.reply.as_deref(), Some(&b"first"[..]));
    assert_eq!(store.reply(key, 1).await.expect("readable").as_deref(), Some(&b"first"[..]));
    done(&*store, set(2, ReplyChange::Set(b"second".to_vec()))).await;
    assert_eq!(newest(&*store, key).await.reply.as_deref(), Some(&b"second"[..]));
    assert!(
        store.scan(By::All, None, 9).await.expect("scannable").items[0].reply.is_none(),
        "scans leave replies out"
    );
    done(&*store, one(record(key, 2, 3, index(2, true)))).await;
    assert_eq!(newest(&*store, key).await.reply, None, "the next effect has no reply yet");
    assert_eq!(store.reply(key, 1).await.expect("readable").as_deref(), Some(&b"second"[..]));
    done(&*store, one(with_reply(record(key, 2, 4, index(2, false)), ReplyChange::Drop))).await;
    assert_eq!(store.reply(key, 2).await.expect("readable"), None);
}

async fn cells_count_their_writes<S: Store>(store: Arc<S>) {
    let key = named("turn");
    done(&*store, one(cell(key, 0, "a"))).await;
    assert_eq!(conflict(&*store, one(cell(key, 0, "b"))).await, Conflict::Cell(key));
    done(&*store, one(cell(key, 1, "c"))).await;
    let found = store.cell(key).await.expect("readable").expect("a cell");
    assert_eq!((found.revision, found.body), (Revision(2), b"c".to_vec()));
}

async fn a_cell_that_was_deleted_begins_again<S: Store>(store: Arc<S>) {
    let (turn, key) = (named("turn"), named("k"));
    done(&*store, one(cell(turn, 0, "held"))).await;
    let gone = |expected| Put::ForgetCell { key: turn, expected: Revision(expected) };
    assert_eq!(conflict(&*store, one(gone(2))).await, Conflict::Cell(turn));
    let mut settle = claim(key, index(1, false));
    settle.puts.push(gone(1));
    let waiting = Arc::clone(&store);
    let waits =
        tokio::spawn(async move { waiting.changed(turn, Revision(1), Duration::from_secs(30)).await });
    tokio::task::yield_now().await;
    done(&*store, settle.clone()).await;
    assert_eq!(waits.await.expect("no panic"), Hint::Changed);
    assert_eq!(store.cell(turn).await.expect("readable"), None);
    done(&*store, settle).await;
    assert_eq!(conflict(&*store, one(gone(1))).await, Conflict::Cell(turn));
    done(&*store, one(cell(turn, 0, "again"))).await;
    assert_eq!(store.cell(turn).await.expect("readable").expect("a cell").revision, Revision(1));
}

async fn the_keys_of_all_cells_are_listed_once_and_in_order<S: Store>(store: Arc<S>) {
    assert_eq!(store.cell_keys().await.expect("readable"), []);
    let mut keys: Vec<Digest> = (0..300).map(|n| named(&format!("cell {n}"))).collect();
    keys.push(EPOCH_CELL);
    for key in &keys {
        done(&*store, one(cell(*key, 0, "a"))).await;
    }
    done(&*store, one(cell(keys[7], 1, "b"))).await;
    done(&*store, claim(named("a record"), index(1, true))).await;
    keys.sort_unstable();
    assert_eq!(store.cell_keys().await.expect("readable"), keys);
}

async fn only_a_copy_leaves_out_the_effects_that_retention_dropped<S: Store>(store: Arc<S>) {
    let key = named("k");
    let copied = |ordinal, expected, mark, effect| {
        let mut commit = one(record(key, ordinal, expected, index(effect, false)));
        commit.puts.push(cell(COPY_CELL, mark, "a mark"));
        commit
    };
    done(&*store, copied(3, 0, 0, 3)).await;
    done(&*store, copied(7, 1, 1, 7)).await;
    assert!(store.commit(copied(5, 2, 2, 5).into()).await.is_err(), "nothing is put before a later one");
    assert!(store.commit(one(record(key, 9, 2, index(9, false))).into()).await.is_err(), "this is no copy");
    let row = newest(&*store, key).await;
    assert_eq!((row.ordinal, row.revision), (7, Revision(2)));
    assert_eq!(effects(&*store, By::Record(key)).await, [3, 7]);
    done(&*store, one(record(key, 8, 2, index(8, true)))).await;
    assert_eq!(effects(&*store, By::Record(key)).await, [3, 7, 8]);
}

async fn a_required_cell_that_moved_conflicts<S: Store>(store: Arc<S>) {
    let (fence, key) = (named("fence"), named("k"));
    let mut commit = claim(key, index(1, true));
    commit.require.cells = vec![(fence, Revision::ABSENT)];
    done(&*store, one(cell(fence, 0, "cancelled"))).await;
    assert_eq!(conflict(&*store, commit.clone()).await, Conflict::Cell(fence));
    assert_eq!(store.read(key).await.expect("readable").row, None);
    commit.require.cells = vec![(fence, Revision(1))];
    done(&*store, commit).await;
}

async fn the_epoch_is_the_revision_of_its_cell<S: Store>(store: Arc<S>) {
    done(&*store, claim(named("k"), index(1, true))).await;
    for epoch in 0..3 {
        done(&*store, one(cell(EPOCH_CELL, epoch, "bumped"))).await;
    }
    for key in ["k", "unseen"] {
        assert_eq!(store.read(named(key)).await.expect("readable").epoch, Revision(3));
    }
}

async fn a_record_and_a_turn_land_together_or_not_at_all<S: Store>(store: Arc<S>) {
    let (key, turn) = (named("k"), named("turn"));
    let both = |expected| {
        let mut commit = claim(key, index(1, true));
        commit.puts.push(cell(turn, expected, "held"));
        commit
    };
    assert_eq!(conflict(&*store, both(4)).await, Conflict::Cell(turn));
    assert_eq!(store.read(key).await.expect("readable").row, None);
    done(&*store, both(0)).await;
    assert_eq!(store.cell(turn).await.expect("readable").expect("a cell").revision, Revision(1));
    assert_eq!(newest(&*store, key).await.revision, Revision(1));
}

async fn a_reply_grows_shrinks_and_goes_as_it_is_told<S: Store>(store: Arc<S>) {
    let key = named("k");
    let mut revision = 0;
    for length in [0, 1, 100_000, 1_024, 1_025, 300, 2_000_000, 0] {
        let reply = vec![b'r'; length];
        for (change, kept) in [
            (ReplyChange::Set(reply.clone()), Some(&reply)),
            (ReplyChange::Keep, Some(&reply)),
            (ReplyChange::Drop, None),
            (ReplyChange::Keep, None),
            (ReplyChange::Set(reply.clone()), Some(&reply)),
        ] {
            let open = change == ReplyChange::Drop;
            done(&*store, one(with_reply(record(key, 1, revision, index(1, open)), change))).await;
            revision += 1;
            let row = store.read(key).await.unwrap().row.unwrap();
            assert_eq!(row.reply.as_ref(), kept, "{length} bytes");
            assert_eq!(store.reply(key, 1).await.unwrap().as_ref(), kept, "{length} bytes");
        }
    }
    done(&*store, one(Put::DropReply { key, ordinal: 1 })).await;
    assert_eq!(store.read(key).await.unwrap().row.unwrap().reply, None);
    done(&*store, one(with_reply(record(key, 1, revision, index(1, false)), ReplyChange::Keep))).await;
    assert_eq!(store.reply(key, 1).await.unwrap(), None);
}

async fn one_commit_cannot_write_a_row_twice<S: Store>(store: Arc<S>) {
    let mut commit = claim(named("k"), index(1, true));
    commit.puts.push(record(named("k"), 2, 1, index(2, true)));
    assert!(store.commit(commit.into()).await.is_err());
    assert!(effects(&*store, By::All).await.is_empty());
}

async fn a_commit_that_has_landed_is_done_when_it_is_sent_again<S: Store>(store: Arc<S>) {
    let (key, turn, fence) = (named("k"), named("turn"), named("fence"));
    let mut commit = claim(key, index(1, true));
    commit.puts.push(cell(turn, 0, "held"));
    commit.journal = vec![line("claimed")];
    commit.require.cells = vec![(fence, Revision::ABSENT)];
    assert_eq!(wins(&store, std::iter::repeat_n(commit.clone(), 64)).await, 64);
    // It has landed, so what it required then matters no more.
    done(&*store, one(cell(fence, 0, "cancelled"))).await;
    done(&*store, commit.clone()).await;
    assert_eq!(newest(&*store, key).await.revision, Revision(1));
    assert_eq!(store.cell(turn).await.expect("readable").expect("a cell").revision, Revision(1));
    assert_eq!(store.journal(None, 9).await.expect("readable").items.len(), 1, "it was written once");
    done(&*store, one(record(key, 1, 1, index(1, false)))).await;
    assert_eq!(conflict(&*store, commit).await, Conflict::Record, "others have written since");
}

async fn a_nonce_alone_proves_nothing<S: Store>(store: Arc<S>) {
    let turn = named("turn");
    let mut first = claim(named("a"), index(1, true));
    first.puts.push(cell(turn, 0, "held by a"));
    let mut second = claim(named("b"), index(2, true));
    second.puts.push(cell(turn, 0, "held by b"));
    second.nonce = first.nonce;
    let other = Commit { nonce: nonce(&OsEntropy), ..first.clone() };
    done(&*store, first).await;
    assert_eq!(conflict(&*store, other).await, Conflict::Record);
    assert_eq!(conflict(&*store, second.clone()).await, Conflict::Cell(turn));
    assert_eq!(store.read(named("b")).await.expect("readable").row, None);
    second.puts[1] = cell(turn, 1, "held by b");
    done(&*store, second).await;
    assert_eq!(newest(&*store, named("b")).await.index.effect, 2);
}

async fn a_family_with_an_open_relative_is_not_quiet<S: Store>(store: Arc<S>) {
    let family = named("family");
    let relative = |effect| Index { family, ..index(effect, true) };
    let quiet = |key: &str, effect| {
        let mut commit = claim(named(key), relative(effect));
        commit.require.family_quiet = Some(family);
        commit
    };
    done(&*store, quiet("a", 1)).await;
    assert_eq!(conflict(&*store, quiet("b", 2)).await, Conflict::Family(named("a")));
    let mut own = one(record(named("a"), 1, 1, relative(1)));
    own.require.family_quiet = Some(family);
    done(&*store, own).await;
    let mut no_record = one(cell(named("turn"), 0, ""));
    no_record.require.family_quiet = Some(family);
    assert_eq!(conflict(&*store, no_record).await, Conflict::Family(named("a")));
}

async fn a_row_that_looks_alike_and_was_not_seen_is_a_conflict<S: Store>(store: Arc<S>) {
    let outline = named("outline");
    let like = |effect, open| Index { alike: Some(outline), ..index(effect, open) };
    let seeing = |key: &str, effect, seen: SeenAlike| {
        let mut commit = claim(named(key), like(effect, true));
        commit.require.alike = Some((outline, seen));
        commit
    };
    let look = async || SeenAlike::of(&store.cards(outline).await.expect("readable"));
    done(&*store, seeing("a", 1, SeenAlike::default())).await;
    assert_eq!(conflict(&*store, seeing("b", 2, SeenAlike::default())).await, Conflict::Alike);
    let first = look().await;
    done(&*store, seeing("b", 2, first)).await;
    assert_eq!(conflict(&*store, seeing("c", 3, first)).await, Conflict::Alike);
    done(&*store, claim(named("d"), Index { alike: Some(named("another")), ..index(4, true) })).await;
    done(&*store, one(record(named("a"), 1, 1, like(1, false)))).await;
    let seen = look().await;
    // An older row that is tried again is one more that runs, or has run.
    done(&*store, one(record(named("a"), 1, 2, like(1, true)))).await;
    assert_eq!(conflict(&*store, seeing("c", 3, seen)).await, Conflict::Alike);
    let later = Index { content: 5, ..like(1, false) };
    done(&*store, one(record(named("a"), 1, 3, later.clone()))).await;
    assert_eq!(conflict(&*store, seeing("c", 3, seen)).await, Conflict::Alike);
    // A mark of delivery is in nobody's way.
    let seen = look().await;
    let mut mark = record(named("a"), 1, 4, later);
    if let Put::Record { body, changed, .. } = &mut mark {
        (body.delivery, *changed) = (b"mark".to_vec(), Part::Delivery);
    }
    done(&*store, one(mark)).await;
    assert_eq!(look().await, seen);
    let cards = store.cards(outline).await.expect("readable");
    let told = |card: &Card| (card.key, card.ordinal, card.content, card.open, card.delivered);
    let expected = [(named("b"), 1, 0, true, false), (named("a"), 1, 5, false, true)];
    assert_eq!(cards.iter().map(told).collect::<Vec<_>>(), expected);
    done(&*store, seeing("c", 3, look().await)).await;
    let alike = store.latest(Latest::Alike(outline), None, 2).await.expect("readable");
    let effects: Vec<u128> = alike.items.iter().map(|(_, row)| row.index.effect).collect();
    assert_eq!(effects, [3, 2], "newest first");
}

async fn a_settled_relative_leaves_the_family_quiet<S: Store>(store: Arc<S>) {
    let family = named("family");
    let relative = |effect, open| Index { family, ..index(effect, open) };
    done(&*store, claim(named("a"), relative(1, true))).await;
    done(&*store, one(record(named("a"), 1, 1, relative(1, false)))).await;
    let mut commit = claim(named("b"), relative(2, true));
    commit.require.family_quiet = Some(family);
    done(&*store, commit).await;
    done(&*store, one(record(named("a"), 1, 2, relative(1, true)))).await;
    let mut commit = one(record(named("b"), 1, 1, relative(2, true)));
    commit.require.family_quiet = Some(family);
    assert_eq!(
        conflict(&*store, commit).await,
        Conflict::Family(named("a")),
        "a reopened effect counts again"
    );
}

async fn a_forgotten_row_is_gone_with_its_reply<S: Store>(store: Arc<S>) {
    let key = named("k");
    done(&*store, one(with_reply(record(key, 1, 0, index(1, false)), ReplyChange::Set(b"r".to_vec())))).await;
    done(&*store, one(record(key, 2, 1, index(2, false)))).await;
    let forget = |ordinal, expected| one(Put::Forget { key, ordinal, expected: Revision(expected) });
    assert_eq!(
        conflict(&*store, forget(1, 2)).await,
        Conflict::Record,
        "its own revision counts, not the newest"
    );
    done(&*store, forget(1, 1)).await;
    assert_eq!(conflict(&*store, forget(1, 1)).await, Conflict::Record);
    assert_eq!(store.reply(key, 1).await.expect("readable"), None);
    assert_eq!(effects(&*store, By::Record(key)).await, [2]);
    done(&*store, forget(2, 2)).await;
    assert_eq!(store.read(key).await.expect("readable").revision, Revision::ABSENT);
    assert!(effects(&*store, By::Effect(2)).await.is_empty());
    done(&*store, claim(key, index(3, true))).await;
    assert_eq!(newest(&*store, key).await.reply, None, "no reply is inherited");
}

async fn an_open_row_cannot_be_forgotten<S: Store>(store: Arc<S>) {
    let key = named("k");
    done(&*store, claim(key, index(1, true))).await;
    assert!(store.commit(one(Put::Forget { key, ordinal: 1, expected: Revision(1) }).into()).await.is_err());
    assert_eq!(effects(&*store, By::Open).await, [1]);
}

async fn scans_find_what_they_are_asked_for<S: Store>(store: Arc<S>) {
    let run = named("run");
    for effect in 1..=6u128 {
        let index = Index {
            run: (effect % 2 == 0).then_some(run),
            owner: Some(OwnerId(effect % 3)),
            ..index(effect, true)
        };
        done(&*store, claim(named(&effect.to_string()), index)).await;
    }
    let settled = Index { run: Some(run), ..index(2, false) };
    done(&*store, one(record(named("2"), 1, 1, settled))).await;
    assert_eq!(effects(&*store, By::All).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(effects(&*store, By::Run(run)).await, [2, 4, 6]);
    assert_eq!(effects(&*store, By::Open).await, [1, 3, 4, 5, 6]);
    assert_eq!(effects(&*store, By::Owner(OwnerId(0))).await, [3, 6]);
    assert_eq!(effects(&*store, By::Owner(OwnerId(2))).await, [5], "a settled row has no owner");
    assert_eq!(effects(&*store, By::Effect(5)).await, [5]);
    assert_eq!(effects(&*store, By::Record(named("4"))).await, [4]);
    assert!(effects(&*store, By::Effect(99)).await.is_empty());
    assert!(effects(&*store, By::Run(named("other"))).await.is_empty());
}

async fn scans_page_in_order_of_insertion<S: Store>(store: Arc<S>) {
    for effect in 1..=7u128 {
        done(&*store, claim(named(&effect.to_string()), index(effect, true))).await;
    }
    let first = store.scan(By::All, None, 7).await.expect("scannable");
    assert_eq!((first.items.len(), first.next), (7, None), "a page that is just full has no next one");
    let first = store.scan(By::Open, None, 3).await.expect("scannable");
    done(&*store, one(record(named("5"), 1, 1, index(5, false)))).await;
    let rest = store.scan(By::Open, first.next, 100).await.expect("scannable");
    assert_eq!(rest.items.iter().map(|row| row.index.effect).collect::<Vec<_>>(), [4, 6, 7]);
    assert_eq!(store.scan(By::All, Some(Cursor(u64::MAX)), 3).await.expect("scannable").items, []);
}

async fn the_latest_come_first_and_page_backwards<S: Store>(store: Arc<S>) {
    let run = named("run");
    for effect in 1..=7u128 {
        let index = Index { run: (effect % 2 == 0).then_some(run), ..index(effect, true) };
        done(&*store, claim(named(&effect.to_string()), index)).await;
    }
    done(&*store, one(record(named("5"), 1, 1, index(5, false)))).await;
    for (of, expected) in [
        (Latest::All, &[7, 6, 5, 4, 3, 2, 1][..]),
        (Latest::Open, &[7, 6, 4, 3, 2, 1]),
        (Latest::Run(run), &[6, 4, 2]),
        (Latest::Run(named("other")), &[]),
    ] {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = store.latest(of, before, 3).await.expect("readable");
            assert!(page.items.len() <= 3 && page.items.windows(2).all(|pair| pair[0].0 > pair[1].0));
            found.extend(page.items.iter().map(|(_, row)| row.index.effect));
            let last = page.items.last().map(|(cursor, _)| *cursor);
            assert!(page.next.is_none() || page.next == last, "the next page begins after the last row");
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{of:?}");
    }
    let all = store.latest(Latest::All, None, 7).await.expect("readable");
    assert_eq!((all.items.len(), all.next), (7, None), "a page that is just full has no next one");
    let fifth = all.items[2].0;
    let rest = store.latest(Latest::All, Some(fifth), 9).await.expect("readable");
    assert_eq!(rest.items.iter().map(|(_, row)| row.index.effect).collect::<Vec<_>>(), [4, 3, 2, 1]);
}

async fn rows_that_changed_before_an_instant_are_found_page_by_page<S: Store>(store: Arc<S>) {
    for effect in 1..=6u128 {
        let changed_at = if effect % 2 == 0 { At(100) } else { At(200) };
        let index = Index { opened_at: At(50), changed_at, ..index(effect, false) };
        done(&*store, claim(named(&effect.to_string()), index)).await;
    }
    assert_eq!(effects(&*store, By::ChangedBefore(At(200))).await, [2, 4, 6]);
    assert_eq!(effects(&*store, By::ChangedBefore(At(u64::MAX))).await, [1, 2, 3, 4, 5, 6]);
    assert!(effects(&*store, By::ChangedBefore(At(100))).await.is_empty());
}

async fn the_journal_keeps_the_order_of_commits<S: Store>(store: Arc<S>) {
    for n in 0..5 {
        let mut commit = one(cell(named("c"), n, ""));
        commit.journal = vec![line(&format!("a{n}")), line(&format!("b{n}"))];
        done(&*store, commit).await;
    }
    let (mut kinds, mut after) = (Vec::new(), None);
    loop {
        let page = store.journal(after, 3).await.expect("readable");
        assert!(page.items.windows(2).all(|pair| pair[0].0 < pair[1].0), "cursors grow");
        kinds.extend(page.items.iter().map(|(_, line)| line.kind.clone()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(kinds, ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]);
    assert_eq!(store.journal(None, 1).await.expect("readable").items[0].1, line("a0"));
    let newest = store.newest_lines(3).await.expect("readable");
    let words: Vec<&str> = newest.iter().map(|(_, line)| line.kind.as_str()).collect();
    assert_eq!(words, ["b4", "a4", "b3"]);
    let (end, before) = (newest[0].0, newest[2].0);
    assert_eq!(store.journal(Some(before), 3).await.expect("readable").items.len(), 2);
    assert!(store.journal(Some(end), 1).await.expect("readable").items.is_empty(), "{end:?} is the end");
}

async fn a_commit_that_conflicts_leaves_no_journal_line<S: Store>(store: Arc<S>) {
    let mut commit = one(cell(named("c"), 3, ""));
    commit.journal = vec![line("never")];
    assert_eq!(conflict(&*store, commit).await, Conflict::Cell(named("c")));
    assert!(store.journal(None, 9).await.expect("readable").items.is_empty());
}

async fn lazy_commits_are_read_at_once<S: Store>(store: Arc<S>) {
    done(&*store, claim(named("k"), index(1, false))).await;
    let mut commit = one(record(named("k"), 1, 1, index(1, false)));
    commit.durability = Durability::Lazy;
    done(&*store, commit).await;
    assert_eq!(newest(&*store, named("k")).await.revision, Revision(2));
    done(&*store, one(record(named("k"), 1, 2, index(1, false)))).await;
}

async fn large_bodies_survive<S: Store>(store: Arc<S>) {
    let reply: Vec<u8> = (0..3_000_000u32).map(|n| (n * 31 % 251) as u8).collect();
    let put = with_reply(record(named("k"), 1, 0, index(1, false)), ReplyChange::Set(reply.clone()));
    done(&*store, one(put)).await;
    assert!(newest(&*store, named("k")).await.reply == Some(reply));
}

async fn a_commit_wakes_those_who_wait_for_its_key<S: Store>(store: Arc<S>) {
    let (key, turn) = (named("k"), named("turn"));
    done(&*store, claim(key, index(1, true))).await;
    let wait = |key, since| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.changed(key, Revision(since), Duration::from_secs(30)).await })
    };
    let waiting: Vec<_> = (0..50).map(|_| wait(key, 1)).chain([wait(turn, 0)]).collect();
    tokio::task::yield_now().await;
    done(&*store, one(record(key, 1, 1, index(1, false)))).await;
    done(&*store, one(cell(turn, 0, "free"))).await;
    for waiter in waiting {
        assert_eq!(waiter.await.expect("no panic"), Hint::Changed);
    }
}

async fn a_waiter_that_comes_late_is_told_at_once<S: Store>(store: Arc<S>) {
    done(&*store, claim(named("k"), index(1, true))).await;
    assert_eq!(store.changed(named("k"), Revision::ABSENT, Duration::from_secs(30)).await, Hint::Changed);
}

async fn a_waiter_without_news_hears_that_its_time_is_up<S: Store>(store: Arc<S>) {
    done(&*store, claim(named("k"), index(1, true))).await;
    assert_eq!(store.changed(named("k"), Revision(1), Duration::from_millis(15)).await, Hint::TimedOut);
    assert_eq!(store.changed(named("unseen"), Revision::ABSENT, Duration::ZERO).await, Hint::TimedOut);
}

/// How often the world would have changed: the commits that said `Done`.
async fn wins<S: Store>(store: &Arc<S>, commits: impl Iterator<Item = Commit>) -> usize {
    let racing = commits.map(|commit| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.commit(commit.into()).await.expect("answered") })
    });
    let mut wins = 0;
    for racer in racing.collect::<Vec<_>>() {
        wins += usize::from(racer.await.expect("no panic") == Committed::Done);
    }
    wins
}

async fn of_many_claims_of_one_key_exactly_one_wins<S: Store>(store: Arc<S>) {
    for round in 0..20u128 {
        let key = named(&format!("round {round}"));
        let claims = (0..64).map(|n| claim(key, index(round * 64 + n, true)));
        assert_eq!(wins(&store, claims).await, 1);
    }
    assert_eq!(effects(&*store, By::All).await.len(), 20);
}

async fn of_many_relatives_exactly_one_wins<S: Store>(store: Arc<S>) {
    let family = named("family");
    let claims = (0..64u128).map(|n| {
        let mut commit = claim(named(&n.to_string()), Index { family, ..index(n, true) });
        commit.require.family_quiet = Some(family);
        commit
    });
    assert_eq!(wins(&store, claims).await, 1);
    assert_eq!(effects(&*store, By::Open).await.len(), 1);
}

async fn many_writers_of_many_keys_all_land<S: Store>(store: Arc<S>) {
    let writers = (0..64u128).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0..10 {
                let (key, effect) = (named(&format!("{writer}/{n}")), writer * 10 + n);
                done(&*store, claim(key, index(effect, true))).await;
                let settled =
                    with_reply(record(key, 1, 1, index(effect, false)), ReplyChange::Set(b"r".to_vec()));
                done(&*store, one(settled)).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let all: BTreeSet<_> = effects(&*store, By::All).await.into_iter().collect();
    assert_eq!(all, (0..640).collect());
    assert!(effects(&*store, By::Open).await.is_empty());
}
