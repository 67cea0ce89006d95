//! Real processes that die or fail at a failpoint. The child is this test binary, told what to do by its environment.

use crate::scene::{self, now};
use semel_ledger::failpoint;
use semel_ledger::place::Place;
use semel_ledger::store::{By, Committed, Store};
use semel_testkit::store_suite::{claim, index, named};
use std::path::Path;
use std::process::{Command, Output};

const FAILPOINTS: &str = "SEMEL_TEST_FAILPOINTS";
const LEDGER: &str = "SEMEL_TEST_LEDGER";

/// Claims the keys 0 to 9 and prints what it heard, one line each.
#[test]
#[ignore = "run by the other tests, as a child process"]
#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a child that is told and tells what to do"
)]
fn child() {
    let Ok(ledger) = std::env::var(LEDGER) else { return };
    let store = scene::open_blocking(&Place::at(ledger)).expect("it opens").store;
    failpoint::install(&std::env::var(FAILPOINTS).unwrap_or_default()).expect("a specification");
    for n in 0..10u128 {
        let heard = now(store.commit(claim(named(&n.to_string()), index(n, true)).into()));
        println!(
            "\nclaim {n} {}",
            heard.map_or_else(|_| "NotWritten".to_owned(), |heard| format!("{heard:?}"))
        );
    }
}

fn run_child(ledger: &Path, failpoints: &str) -> Output {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(LEDGER, ledger)
        .env(FAILPOINTS, failpoints)
        .output()
        .expect("a child")
}

/// What the child heard about each claim, and which of them the ledger now has.
fn aftermath(failpoints: &str) -> (bool, Vec<String>, Vec<u128>) {
    let directory = scene::directory();
    let place = scene::place(&directory);
    let output = run_child(place.database(), failpoints);
    let text = String::from_utf8_lossy(&output.stdout);
    let heard = text.lines().filter_map(|line| line.strip_prefix("claim ")).map(str::to_owned).collect();
    let store = scene::open_blocking(&place).expect("it opens after the crash").store;
    let rows = now(store.scan(By::All, None, 500)).expect("scannable").items;
    assert_eq!(store.integrity_check().expect("checkable"), Vec::<String>::new());
    (output.status.success(), heard, rows.iter().map(|row| row.index.effect).collect())
}

#[test]
fn without_failpoints_the_child_claims_all() {
    let (survived, heard, kept) = aftermath("");
    assert!(survived);
    assert!(heard.len() == 10 && heard.iter().all(|line| line.ends_with("Done")), "{heard:?}");
    assert_eq!(kept, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_death_before_the_commit_loses_only_what_nobody_was_told() {
    for point in ["sqlite.before_begin", "sqlite.after_begin", "sqlite.before_commit"] {
        let (survived, heard, kept) = aftermath(&format!("{point}=abort@4"));
        assert!(!survived);
        assert_eq!((heard.len(), kept), (3, vec![0, 1, 2]), "{point}");
    }
}

#[test]
fn a_death_after_the_commit_keeps_what_it_could_not_tell() {
    let (survived, heard, kept) = aftermath("sqlite.after_commit=abort@4");
    assert!(!survived);
    assert_eq!((heard.len(), kept), (3, vec![0, 1, 2, 3]));
}

#[test]
fn an_error_before_the_commit_writes_nothing_and_the_next_claim_works() {
    for point in ["sqlite.before_begin", "sqlite.after_begin", "sqlite.before_commit"] {
        let (survived, heard, kept) = aftermath(&format!("{point}=error@4"));
        assert!(survived);
        assert_eq!(heard[3], "3 NotWritten", "{point}");
        assert_eq!(heard.iter().filter(|line| line.ends_with("Done")).count(), 9);
        assert!(!kept.contains(&3) && kept.len() == 9);
    }
}

#[test]
fn an_error_of_the_commit_itself_is_unknown_and_the_next_claim_works() {
    let (survived, heard, kept) = aftermath("sqlite.commit_unknown=error@4");
    assert!(survived);
    assert_eq!(heard[3], format!("3 {:?}", Committed::Unknown));
    assert_eq!(heard.iter().filter(|line| line.ends_with("Done")).count(), 9);
    assert_eq!(kept.len(), 10, "this one had landed");
}
