use crate::scene::{self, now};
use semel_ledger::Error;
use semel_ledger::place::Place;
use semel_ledger::store::{By, Committed, Put, ReplyChange, Revision, Store};
use semel_testkit::store_suite::{claim, index, named};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A small filesystem of its own, unmounted at the end.
struct Mounted<'d>(&'d Path);

impl<'d> Mounted<'d> {
    fn new(directory: &'d Path) -> Option<Self> {
        Mounted::of_size(directory, "1m")
    }

    fn of_size(directory: &'d Path, size: &str) -> Option<Self> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "none"])
            .arg(directory)
            .output();
        mount.is_ok_and(|output| output.status.success()).then_some(Mounted(directory))
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot remount {options}");
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_full_disk_refuses_claims_loses_none_and_recovers() {
    let directory = scene::directory();
    let _mounted = Mounted::new(directory.path()).expect("only root may mount");
    let place = Place::at(directory.path().join("ledger.db"));
    let ballast = directory.path().join("ballast");
    fs::write(&ballast, vec![1; 300_000]).expect("room enough");
    let store = scene::open_blocking(&place).expect("it opens").store;
    let mut landed = Vec::new();
    let mut refused = 0;
    for n in 0..2_000u128 {
        let mut commit = claim(named(&n.to_string()), index(n, true));
        if let Put::Record { reply, .. } = &mut commit.puts[0] {
            *reply = ReplyChange::Set(vec![b'r'; 3_000]);
        }
        match now(store.commit(commit.into())) {
            Ok(Committed::Done) => landed.push(n),
            Err(Error::NotWritten { .. }) => refused += 1,
            other => panic!("a full disk gives neither doubt nor success: {other:?}"),
        }
        if refused == 5 {
            break;
        }
    }
    assert!(refused == 5 && !landed.is_empty(), "{} landed, {refused} refused", landed.len());
    let kept = |store: &semel_ledger::sqlite::SqliteStore| {
        landed.iter().all(|n| now(store.read(named(&n.to_string()))).expect("readable").row.is_some())
    };
    assert!(kept(&store), "all that was acknowledged is there");
    assert_eq!(now(store.scan(By::All, None, 500)).expect("scannable").items.len(), landed.len().min(500));

    fs::remove_file(&ballast).expect("removable");
    assert_eq!(
        now(store.commit(claim(named("after"), index(9_999, true)).into())).expect("answered"),
        Committed::Done
    );
    drop(store);
    let store = scene::open_blocking(&place).expect("it opens again").store;
    assert!(kept(&store));
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_small_disk_is_filled_by_the_database_and_not_by_its_log() {
    const DISK_BYTES: u64 = 12 << 20;
    let directory = scene::directory();
    let mounted = Mounted::of_size(directory.path(), "12m").expect("only root may mount");
    let runtime = scene::runtime();
    let place = Place::at(directory.path().join("ledger.db"));
    // As a server has it, whose log may else grow to 56 MiB.
    let store = scene::open(&place).expect("it opens").store;
    let commit = |n: u128| {
        let mut commit = claim(named(&n.to_string()), index(n, true));
        if let Put::Record { reply, .. } = &mut commit.puts[0] {
            *reply = ReplyChange::Set(vec![b'r'; 500]);
        }
        runtime.block_on(store.commit(commit.into()))
    };
    let landed = (0..).take_while(|n| commit(*n).is_ok()).count() as u128;
    let bytes = fs::metadata(place.database()).expect("it exists").len();
    assert!(bytes > DISK_BYTES * 3 / 4, "{landed} effects, {bytes} bytes");
    let knows =
        |n: u128| runtime.block_on(store.read(named(&n.to_string()))).expect("readable").row.is_some();
    assert!((0..landed).all(knows), "all that was acknowledged is there");
    mounted.remount("size=16m");
    assert_eq!(commit(landed + 1).expect("answered"), Committed::Done, "there is room again");
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
}

#[test]
#[ignore = "mounts filesystems: run it as root with --ignored"]
fn a_ledger_that_was_opened_read_only_is_written_once_it_can_be() {
    for tries_before in [false, true] {
        opened_read_only_and_written(tries_before);
    }
}

fn opened_read_only_and_written(tries_before: bool) {
    let directory = scene::directory();
    let mounted = Mounted::new(directory.path()).expect("only root may mount");
    let runtime = scene::runtime();
    let place = Place::at(directory.path().join("ledger.db"));
    let store = scene::open(&place).expect("it opens").store;
    let commit = |store: &semel_ledger::sqlite::SqliteStore, n: u128| {
        runtime.block_on(store.commit(claim(named(&n.to_string()), index(n, true)).into()))
    };
    assert_eq!(commit(&store, 1).expect("answered"), Committed::Done);
    drop(store);
    mounted.remount("ro");
    let store = scene::open(&place).expect("it opens all the same").store;
    let knows =
        |n: u128| runtime.block_on(store.read(named(&n.to_string()))).expect("readable").row.is_some();
    // Readers and the one that watches have connections of their own, and those share what was opened read-only.
    let watched =
        || runtime.block_on(store.changed(named("1"), Revision(u64::MAX), Duration::from_millis(1)));
    assert!(knows(1) && !knows(2));
    watched();
    if tries_before {
        assert!(matches!(commit(&store, 2), Err(Error::NotWritten { .. })));
        assert!(matches!(commit(&store, 2), Err(Error::NotWritten { .. })));
        assert!(knows(1) && !knows(2));
        watched();
    }
    mounted.remount("rw");
    assert_eq!(commit(&store, 2).expect("answered"), Committed::Done, "at once");
    assert!(knows(1) && knows(2));
    watched();
    drop(store);
    let store = scene::open(&place).expect("it opens again").store;
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
}

#[test]
fn a_directory_without_write_permission_is_an_error_in_words() {
    let directory = scene::directory();
    let place = Place::at(directory.path().join("inner/ledger.db"));
    fs::create_dir(place.directory()).expect("creatable");
    scene::mode(place.directory(), 0o500);
    match scene::open(&place) {
        Err(Error::Open { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied),
        // Root writes everywhere.
        other => assert!(other.is_ok(), "{other:?}"),
    }
    scene::mode(place.directory(), 0o700);
}
