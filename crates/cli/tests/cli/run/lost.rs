//! A ledger that was robbed of commits must not pass for one that never saw them.

use super::TOUCH;
use crate::home::Home;
use std::fs;

/// A ledger with some past, of which the last commits lie in the WAL alone.
fn with_a_past(home: &Home) {
    for n in 0..40 {
        assert_eq!(home.run(&["--key", &format!("old-{n}")], "true").code, Some(0));
    }
    assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
}

fn is_held(home: &Home) {
    let ran = home.run(&["--key", "k", "--json"], TOUCH);
    assert_eq!((ran.code, ran.json()["effect"].as_str()), (Some(121), Some("unknown")), "{ran:?}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_wal_that_was_deleted_or_cut_is_noticed() {
    for keep in [0, 3] {
        let home = Home::new();
        with_a_past(&home);
        let wal = home.state().join("ledger.db-wal");
        // Whether the last commits lie in the WAL alone depends on when it was folded back last; soon they do.
        let mut damaged = false;
        let noticed = (0..12).any(|n| {
            let key = format!("new-{n}");
            assert_eq!(home.run(&["--key", &key], TOUCH).code, Some(0));
            let length = wal.metadata().expect("there is a WAL").len();
            match keep {
                0 => fs::remove_file(&wal).expect("deleted"),
                _ => fs::File::options()
                    .write(true)
                    .open(&wal)
                    .and_then(|f| f.set_len(length / keep))
                    .expect("cut"),
            }
            let retried = home.run(&["--key", &key], TOUCH);
            assert!(matches!(retried.code, Some(0 | 121 | 125)), "{retried:?}");
            assert_eq!(home.effects(), n + 2, "each key has happened once");
            damaged = retried.code == Some(125);
            retried.code != Some(0)
        });
        assert!(noticed);
        if damaged {
            // The pages that were cut off belong together with those that are left: nothing is sent.
            continue;
        }
        // It is said once, and what is asked for the first time afterwards can be let through by a person.
        assert_eq!(home.semel(["ledger", "end-quarantine"]).code, Some(0));
        assert_eq!(home.run(&["--key", "afterwards"], "true").code, Some(0));
    }
}

#[test]
fn an_older_copy_that_was_put_back_is_noticed() {
    let home = Home::new();
    assert_eq!(home.run(&["--key", "first"], "true").code, Some(0));
    let copy = tempfile::tempdir().expect("a directory");
    let files = ["ledger.db", "ledger.db-wal", "ledger.secret"];
    for name in files {
        fs::copy(home.state().join(name), copy.path().join(name)).expect("copied");
    }
    with_a_past(&home);
    for name in files {
        fs::copy(copy.path().join(name), home.state().join(name)).expect("put back");
    }
    let _ = fs::remove_file(home.state().join("ledger.db-shm"));
    is_held(&home);
}

#[test]
fn a_ledger_that_lost_nothing_raises_no_alarm() {
    let home = Home::new();
    with_a_past(&home);
    for _ in 0..3 {
        assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
        assert_eq!(home.json(["ledger", "quarantine"])["number"], 1);
    }
    // Starting over on purpose, secret and all, is not a loss.
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.secret"] {
        let _ = fs::remove_file(home.state().join(name));
    }
    assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
    assert_eq!(home.json(["ledger", "quarantine"])["number"], 1);
}
