use crate::scene;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::error::Unsafe;
use semel_ledger::place::Place;
use semel_ledger::sqlite::{LedgerPast, OpenOptions, SqliteStore};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

fn refusal(place: &Place) -> Unsafe {
    match scene::open(place) {
        Err(Error::Unsafe { why, .. }) => why,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_new_ledger_is_readable_by_its_owner_alone() {
    let directory = scene::directory();
    let place = Place::at(directory.path().join("state/semel/ledger.db"));
    let opened = scene::open(&place).expect("it opens");
    assert_eq!(opened.past, LedgerPast::New);
    assert_eq!(mode_of(place.directory()), 0o700);
    for file in
        [place.database().to_owned(), place.wal(), place.shm(), place.secret_file(), place.lock_file()]
    {
        assert_eq!(mode_of(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_second_opening_keeps_secret_and_past() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let first = scene::open(&place).expect("it opens").secret;
    let second = scene::open(&place).expect("it opens");
    assert_eq!((second.past, second.secret.expose()), (LedgerPast::Kept, first.expose()));
}

#[test]
fn a_symbolic_link_is_refused_wherever_it_stands() {
    for which in
        [Place::secret_file as fn(&Place) -> _, Place::wal, Place::lock_file, |p| p.database().to_owned()]
    {
        let directory = scene::directory();
        let place = scene::place(&directory);
        let elsewhere = directory.path().join("elsewhere");
        fs::write(&elsewhere, "").expect("writable");
        scene::mode(&elsewhere, 0o600);
        symlink(&elsewhere, which(&place)).expect("linkable");
        assert_eq!(refusal(&place), Unsafe::Symlink);
    }
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    for mode in [0o770, 0o703, 0o1777] {
        let directory = scene::directory();
        scene::mode(directory.path(), mode);
        assert!(matches!(refusal(&scene::place(&directory)), Unsafe::WritableByOthers { .. }), "{mode:o}");
    }
}

#[test]
fn a_ledger_or_secret_that_others_can_read_or_write_is_refused() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    drop(scene::open(&place).expect("it opens"));
    for file in [place.database().to_owned(), place.secret_file(), place.wal()] {
        scene::mode(&file, 0o640);
        assert!(matches!(refusal(&place), Unsafe::ReadableByOthers { .. }));
        scene::mode(&file, 0o602);
        assert!(matches!(refusal(&place), Unsafe::WritableByOthers { .. }));
        scene::mode(&file, 0o600);
    }
    scene::open(&place).expect("it opens again");
}

#[test]
fn a_directory_in_the_place_of_the_ledger_is_refused() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    fs::create_dir(place.database()).expect("creatable");
    assert_eq!(refusal(&place), Unsafe::NotAFile);
}

#[test]
#[ignore = "gives a file away: run it as root with --ignored"]
fn a_ledger_of_another_user_is_refused() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    drop(scene::open(&place).expect("it opens"));
    std::os::unix::fs::chown(place.database(), Some(12_345), None).expect("only root gives files away");
    assert_eq!(refusal(&place), Unsafe::ForeignOwner { uid: 12_345 });
}

#[test]
fn a_path_that_collides_with_its_own_secret_is_refused() {
    let directory = scene::directory();
    assert!(scene::open(&Place::at(directory.path().join("ledger.secret"))).is_err());
    assert!(scene::open(&Place::at(directory.path().join(".."))).is_err());
}

#[test]
fn racing_first_processes_agree_on_one_secret() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let secrets = std::thread::scope(|scope| {
        let racing = (0..8).map(|_| scope.spawn(|| *place.found_secret().expect("a secret").expose()));
        racing
            .collect::<Vec<_>>()
            .into_iter()
            .map(|racer| racer.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    assert!(secrets.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "nothing is left aside");
}

#[test]
fn of_racing_first_openings_all_succeed_and_one_founds_the_ledger() {
    for _ in 0..10 {
        let directory = scene::directory();
        let place = scene::place(&directory);
        let pasts = std::thread::scope(|scope| {
            let racing = (0..8).map(|_| scope.spawn(|| scene::open_blocking(&place).expect("it opens").past));
            racing
                .collect::<Vec<_>>()
                .into_iter()
                .map(|racer| racer.join().expect("no panic"))
                .collect::<Vec<_>>()
        });
        assert_eq!(pasts.iter().filter(|past| **past == LedgerPast::New).count(), 1);
        assert!(
            !pasts.contains(&LedgerPast::MayBeLost),
            "a secret made a moment ago is no lost ledger: {pasts:?}"
        );
    }
}

#[test]
fn a_ledger_that_vanished_while_its_secret_stayed_may_have_lost_claims() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    drop(scene::open(&place).expect("it opens"));
    for file in [place.database().to_owned(), place.wal(), place.shm()] {
        fs::remove_file(file).expect("it was there");
    }
    assert_eq!(scene::open(&place).expect("it opens").past, LedgerPast::MayBeLost);
}

#[test]
fn a_ledger_without_its_secret_or_with_another_one_is_not_opened() {
    let directory = scene::directory();
    let place = scene::place(&directory);
    drop(scene::open(&place).expect("it opens"));
    fs::remove_file(place.secret_file()).expect("it was there");
    assert!(matches!(scene::open(&place), Err(Error::SecretMissing { .. })));
    place.found_secret().expect("a new secret");
    assert!(matches!(scene::open(&place), Err(Error::WrongSecret { .. })));
    fs::write(place.secret_file(), "not a secret").expect("writable");
    assert!(matches!(scene::open(&place), Err(Error::Damaged { .. })));
}

#[test]
fn reading_only_creates_nothing() {
    let directory = scene::directory();
    let place = Place::at(directory.path().join("state/ledger.db"));
    let read_only = OpenOptions { read_only: true, ..OpenOptions::at(place.clone(), At(1_000_000)) };
    assert!(matches!(SqliteStore::open(read_only.clone()), Err(Error::Open { .. })));
    assert!(!place.directory().exists());
    drop(scene::open(&place).expect("it opens"));
    SqliteStore::open(read_only).expect("it opens for reading");
}
