//! A copy of a whole ledger, over stores whose answers get lost, and of things that an engine alone knows.

use crate::kv::SECRET;
use crate::{claims, scene};
use semel_core::digest::{Digest, Secret};
use semel_core::time::At;
use semel_ledger::copy::{CopyPlan, CopyPurpose, CopyReport, copy};
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::kv::MemoryKv;
use semel_ledger::memory::{InjectedFault, MemoryStore};
use semel_ledger::small_records::cell_value;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::store::{
    By, COPY_CELL, Commit, Committed, Cursor, Durability, EPOCH_CELL, JournalLine, Put, Revision, Store,
};
use semel_ledger::{Error, Ledger};
use semel_testkit::store_suite::{claim, index, named, one, record};
use std::sync::Arc;
use tempfile::TempDir;

/// A ledger over a store, on a host of its own.
struct Place<S> {
    store: Arc<S>,
    ledger: Ledger,
    _host: TempDir,
}

impl<S: Store> Place<S> {
    fn of(store: Arc<S>) -> Place<S> {
        let host = scene::directory();
        let ledger = claims::ledger(Arc::clone(&store) as Arc<dyn Store>, host.path(), SECRET[0]);
        Place { store, ledger, _host: host }
    }

    fn done(&self, commit: Commit) {
        assert_eq!(wait(self.store.commit(commit.into())).expect("it is written"), Committed::Done);
    }

    fn note(&self, n: u64) {
        let line =
            JournalLine { at: At(n), effect: None, run: None, kind: format!("line {n}"), data: "{}".into() };
        wait(self.ledger.note(line, Durability::Lazy)).expect("it is written");
    }

    fn lines(&self) -> Vec<(Cursor, JournalLine)> {
        wait(self.store.journal(None, 1_000)).expect("readable").items
    }

    fn effects(&self, by: By) -> Vec<u128> {
        let rows = wait(self.store.scan(by, None, 500)).expect("readable").items;
        rows.iter().map(|row| row.index.effect).collect()
    }
}

fn memory() -> Place<MemoryStore> {
    Place::of(claims::memory())
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    crate::kv::block_on(future)
}

fn copied(from: &Ledger, to: &Ledger, purpose: CopyPurpose) -> Result<CopyReport, Error> {
    let plan = CopyPlan { from: "the old one".to_owned(), purpose, now: At(9_000_000) };
    wait(copy(from, to, &plan, &mut |_| ()))
}

#[test]
fn a_copy_whose_commits_go_unanswered_loses_and_doubles_nothing() {
    let (from, to) = (memory(), memory());
    for n in 0..45 {
        from.done(claim(named(&n.to_string()), index(n, false)));
        from.note(u64::try_from(n).expect("small"));
    }
    for _ in 0..4 {
        to.store.inject(InjectedFault::LandsUnanswered);
        to.store.inject(InjectedFault::VanishesUnanswered);
        to.store.inject(InjectedFault::LandsThenConflicts);
    }
    // Now and then it is cut off, and goes on.
    to.store.inject(InjectedFault::NotWritten);
    assert!(copied(&from.ledger, &to.ledger, CopyPurpose::Move).is_err());
    assert!(matches!(wait(to.ledger.refuse_partial("it", false)), Err(Error::UnfinishedCopy { .. })));
    let report = copied(&from.ledger, &to.ledger, CopyPurpose::Move).expect("it goes on");
    assert!(report.is_new && report.resumed);
    assert_eq!(to.effects(By::All), (0..45).collect::<Vec<u128>>(), "in their order");
    assert_eq!(to.lines(), from.lines());
    wait(to.ledger.refuse_partial("it", true)).expect("it is complete");
    assert!(!copied(&from.ledger, &to.ledger, CopyPurpose::Move).expect("it is there").is_new);
}

#[test]
fn what_retention_has_left_of_a_record_is_copied_as_it_is() {
    let (from, to) = (memory(), memory());
    let key = named("k");
    for n in 1..=6u32 {
        from.done(one(record(key, n, u64::from(n) - 1, index(u128::from(n), false))));
    }
    for n in [1, 2, 4] {
        from.done(one(Put::Forget { key, ordinal: n, expected: Revision(u64::from(n)) }));
    }
    copied(&from.ledger, &to.ledger, CopyPurpose::Move).expect("it is copied");
    assert_eq!(to.effects(By::Record(key)), [3, 5, 6]);
    let revision = wait(to.store.read(key)).expect("readable").revision;
    to.done(one(record(key, 7, revision.0, index(7, true))));
    assert_eq!(to.effects(By::Record(key)), [3, 5, 6, 7]);
}

#[test]
fn epochs_keep_their_number_lines_are_found_again_and_a_damaged_cell_stays_damaged() {
    let server = MemoryKv::default();
    let from = Place::of(Arc::new(crate::kv::open(async move { Ok(server) }).expect("it opens")));
    for (n, reason) in ["one", "two", "three"].into_iter().enumerate() {
        // Rows and lines share their numbers there, so lines have others than in the copy.
        from.done(claim(named(reason), index(n as u128, false)));
        wait(from.ledger.bump_epoch(reason, At(1_000))).expect("it begins");
    }
    let outbox = wait(from.ledger.take_outbox("webhook")).expect("written").expect("nobody has it");
    wait(from.ledger.cancel("t", "r", false, None, At(2_000))).expect("it is cancelled");
    from.note(7);
    let (damaged, other) = (named("damaged"), named("moved"));
    from.done(one(Put::Cell { key: damaged, expected: Revision::ABSENT, body: b"nothing of ours".to_vec() }));
    // Sound bytes, and of another revision: in the copy they would be sound.
    let sound = semel_ledger::small_records::cell_bytes(other, Revision(1), &7);
    for (revision, body) in [(0, Vec::new()), (1, sound)] {
        from.done(one(Put::Cell { key: other, expected: Revision(revision), body }));
    }
    let to = memory();
    copied(&from.ledger, &to.ledger, CopyPurpose::Move).expect("it is copied");
    let epoch = |ledger: &Ledger| wait(ledger.epoch()).expect("readable");
    assert_eq!(epoch(&to.ledger), epoch(&from.ledger));
    assert_eq!(
        wait(to.store.cell(EPOCH_CELL)).expect("readable").map(|cell| cell.revision),
        Some(Revision(3))
    );
    for key in [damaged, other] {
        let cell = wait(to.store.cell(key)).expect("readable").expect("it is there");
        assert_eq!(cell_value::<serde_json::Value>(key, &cell), None);
    }
    let behind = |lines: &[(Cursor, JournalLine)], after: Cursor| {
        let behind = lines.iter().filter(|(cursor, _)| *cursor > after);
        behind.map(|(_, line)| line.kind.clone()).collect::<Vec<_>>()
    };
    let taken =
        wait(to.ledger.take_outbox("webhook")).expect("written").expect("its holder is on no host of ours");
    assert_ne!(taken.progress.sent_to, outbox.progress.sent_to, "the engines number differently");
    assert_eq!(behind(&to.lines(), taken.progress.sent_to), behind(&from.lines(), outbox.progress.sent_to));
    assert_eq!(behind(&to.lines(), taken.progress.sent_to), ["run_cancelled", "line 7"]);
    let fence =
        |ledger: &Ledger| wait(ledger.standing_fence("t", "r")).expect("readable").expect("it stands");
    let (theirs, ours) = (fence(&from.ledger).journal_from, fence(&to.ledger).journal_from);
    assert_eq!(behind(&to.lines(), ours), behind(&from.lines(), theirs));
}

/// A copy that is cut short before its mark must not leave an empty ledger where another one was lost.
#[test]
fn a_copy_that_was_not_begun_leaves_no_ledger_that_knows_of_no_loss() {
    let from = memory();
    from.done(claim(named("k"), index(1, false)));
    for (lost, is_own) in [(Some(SECRET), true), (Some([8; 32]), false), (None, true)] {
        let directory = scene::directory();
        let place = scene::place(&directory);
        if let Some(secret) = lost {
            let line = format!("{}\n", Digest(secret));
            std::fs::write(place.secret_file(), line).expect("written");
            scene::mode(&place.secret_file(), 0o600);
        }
        let as_copy = OpenOptions {
            copy_of: Some(Secret::new(SECRET)),
            blocking: true,
            ..OpenOptions::at(place.clone(), At(1_000_000))
        };
        let open = |options: OpenOptions| {
            let OpenedStore { store, secret, .. } = SqliteStore::open(options).expect("it opens");
            let holders = FileHolders::in_directory(directory.path().join("owners"));
            Ledger::new(Arc::new(store), Arc::new(holders), OsEntropy, secret)
        };
        drop(open(as_copy.clone()));
        let cut_short = open(OpenOptions { copy_of: None, ..as_copy.clone() });
        assert_eq!(wait(cut_short.epoch()).expect("readable").0, Revision(1));
        drop(cut_short);
        let to = open(as_copy);
        let report = copied(&from.ledger, &to, CopyPurpose::Move);
        assert_eq!(report.map(|report| report.is_new).ok(), is_own.then_some(true));
        assert_eq!(
            wait(to.epoch()).expect("readable").0,
            Revision(u64::from(!is_own)),
            "that of the original"
        );
    }
}

#[test]
fn a_restored_ledger_begins_one_epoch_and_a_backup_is_read_alone() {
    let (from, backup, restored) = (memory(), memory(), memory());
    from.done(claim(named("k"), index(1, false)));
    copied(&from.ledger, &backup.ledger, CopyPurpose::Backup { command: None }).expect("it is written");
    wait(backup.ledger.refuse_partial("it", false)).expect("it can be read");
    assert!(matches!(wait(backup.ledger.refuse_partial("it", true)), Err(Error::IsBackup { .. })));
    let nowhere = memory();
    assert!(matches!(
        copied(&backup.ledger, &nowhere.ledger, CopyPurpose::Move),
        Err(Error::IsBackup { .. })
    ));
    assert!(wait(nowhere.ledger.is_empty()).expect("readable"));
    let purpose = CopyPurpose::Restore { reason: "lost".to_owned(), command: None };
    copied(&backup.ledger, &restored.ledger, purpose).expect("it is restored");
    let (revision, epoch) = wait(restored.ledger.epoch()).expect("readable");
    let epoch = epoch.expect("one has begun");
    assert_eq!((revision, epoch.number, epoch.reason.as_str()), (Revision(1), 2, "lost"));
    assert_eq!(restored.lines().last().map(|(_, line)| line.kind.clone()).as_deref(), Some("epoch_bumped"));
    assert!(wait(restored.store.cell_keys()).expect("readable").contains(&COPY_CELL));
}
