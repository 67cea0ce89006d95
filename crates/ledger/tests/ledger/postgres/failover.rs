//! A standby that lagged takes over: acknowledged claims are gone, and the ledger must say so.

use super::{before, by, noted_claim, open, store, wait};
use semel_ledger::store::{Committed, Conflict, EPOCH_CELL, Revision, Store};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::proxy::Target;
use semel_testkit::store_suite::named;
use semel_testkit::wait_until;

#[test]
fn a_standby_that_takes_over_begins_a_new_epoch() {
    let mut primary = PostgresServer::start(&[]);
    let proxy = before(&primary);
    let ledger = store(&by(&proxy));
    let commit = |word: &str, effect, epoch| {
        let mut commit = noted_claim(word, effect);
        std::sync::Arc::make_mut(&mut commit).require.cells = vec![(EPOCH_CELL, Revision(epoch))];
        wait(ledger.commit(commit)).expect("answered")
    };
    let mut standby = primary.standby();
    assert_eq!(commit("kept", 1, 0), Committed::Done);
    wait_until("the standby has it", || standby.sql("SELECT count(*) FROM semel.effect") == "1");
    standby.kill();
    assert_eq!(commit("lost", 2, 0), Committed::Done);
    primary.kill();
    proxy.lead_to(Target::Socket(standby.socket()));
    standby.start_again();
    let refused = open(&by(&proxy)).expect_err("it follows another").to_string();
    assert!(refused.contains("name the primary"), "{refused}");
    standby.promote();
    assert_eq!(wait(ledger.read(named("lost"))).expect("readable").revision, Revision::ABSENT);
    let fenced = Committed::Conflict(Conflict::Cell(EPOCH_CELL));
    assert_eq!(commit("lost", 3, 0), fenced, "its absence proves nothing any more");
    assert_eq!(wait(ledger.read(named("lost"))).expect("readable").epoch, Revision(1));
    assert_eq!(commit("lost", 3, 1), Committed::Done);
    let again = store(&by(&proxy));
    assert_eq!(wait(again.read(named("kept"))).expect("readable").epoch, Revision(1), "and only one");
    let journal = wait(ledger.journal(None, 9)).expect("readable").items;
    let kinds: Vec<_> = journal.iter().map(|(_, line)| line.kind.as_str()).collect();
    assert_eq!(kinds, ["claimed", "commits_lost", "claimed"]);
}

/// A dump that is read into another server brings rows whose ids its transactions have not reached.
#[test]
fn a_ledger_that_was_restored_elsewhere_begins_a_new_epoch_above_its_ids() {
    let (old, new) = (PostgresServer::start(&[]), PostgresServer::start(&[]));
    // Puts the transactions of the first server far ahead.
    old.sql(&"SELECT pg_current_xact_id();".repeat(5_000));
    let ledger = store(&old.url("semel"));
    assert_eq!(wait(ledger.commit(noted_claim("a", 1))).expect("answered"), Committed::Done);
    let dump = old.dump();
    new.sql(&dump);
    let restored = store(&new.url("semel"));
    assert_eq!(wait(restored.read(named("a"))).expect("readable").epoch, Revision(1));
    assert_eq!(wait(restored.commit(noted_claim("b", 2))).expect("answered"), Committed::Done);
    assert_eq!(super::noted(&restored), [1, 2]);
}
