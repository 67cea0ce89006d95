//! A standby that lagged takes over: acknowledged claims are gone, and the ledger must say so.

use super::{before, by, noted_claim, open, store, wait};
use crate::{position, scene};
use semel_core::time::At;
use semel_ledger::clock_skew;
use semel_ledger::postgres::{PostgresAddress, PostgresStore};
use semel_ledger::store::{Committed, Conflict, EPOCH_CELL, Revision, Store};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::proxy::Target;
use semel_testkit::store_suite::named;
use semel_testkit::wait_until;
use std::cell::Cell;
use std::time::Duration;

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

/// The server is the same, and its transactions count on: only the tables are others.
#[test]
fn a_dump_that_was_put_back_begins_a_new_epoch() {
    let server = PostgresServer::start(&[]);
    let ledger = store(&server.url("semel"));
    assert_eq!(wait(ledger.commit(noted_claim("kept", 1))).expect("answered"), Committed::Done);
    let dump = server.dump();
    assert_eq!(wait(ledger.commit(noted_claim("lost", 2))).expect("answered"), Committed::Done);
    server.sql("DROP SCHEMA semel CASCADE");
    server.sql(&dump);
    let mut again = noted_claim("lost", 3);
    std::sync::Arc::make_mut(&mut again).require.cells = vec![(EPOCH_CELL, Revision::ABSENT)];
    let fenced = Committed::Conflict(Conflict::Cell(EPOCH_CELL));
    assert_eq!(wait(ledger.commit(again)).expect("answered"), fenced, "its absence proves nothing any more");
    let another = store(&server.url("semel"));
    assert_eq!(wait(another.read(named("kept"))).expect("readable").epoch, Revision(1), "and only one");
    assert_eq!(super::noted(&another), [1]);
}

/// As a copy of its disk does: of the rows, those are gone that came later.
#[test]
fn rows_that_are_gone_begin_an_epoch_for_a_host_that_saw_them() {
    let (server, host) = (PostgresServer::start(&[]), scene::directory());
    let store = std::sync::Arc::new(store(&server.url("semel")));
    let ledger = position::process(store.clone(), host.path());
    position::call(&ledger, "kept");
    let last = server.sql("SELECT max(id) FROM semel.journal");
    position::call(&ledger, "lost");
    server.sql(&format!(
        "DELETE FROM semel.effect WHERE id > {last}; DELETE FROM semel.journal WHERE id > {last}"
    ));
    assert_eq!(position::epoch_of(&ledger), 1);
    assert_eq!(position::epoch_of(&position::process(store, host.path())), 1, "and only one");
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

/// All keys come from the secret: with another one, each process would know its own calls alone.
#[test]
fn a_store_writes_nothing_to_a_ledger_that_was_founded_in_the_place_of_its_own() {
    let server = PostgresServer::start(&[]);
    let old = store(&server.url("semel"));
    assert_eq!(wait(old.commit(noted_claim("a", 1))).expect("answered"), Committed::Done);
    server.sql("DROP SCHEMA semel CASCADE");
    let address = PostgresAddress::parse(&server.url("semel")).expect("an address");
    let (new, _) = wait(PostgresStore::open(address, [8; 32])).expect("it opens");
    assert_eq!(wait(new.commit(noted_claim("b", 2))).expect("answered"), Committed::Done);
    let refused = wait(old.commit(noted_claim("c", 3))).expect_err("another ledger").to_string();
    assert!(refused.contains("another one stands there"), "{refused}");
    assert_eq!(super::noted(&new), [2]);
}

#[test]
fn a_host_whose_clock_is_far_from_the_servers_is_refused() {
    let server = PostgresServer::start(&[]);
    let ledger = store(&server.url("semel"));
    let micros = server.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    let now = At(micros.parse().expect("a number"));
    let check = |asked_at, answered_at| {
        let next = Cell::new(asked_at);
        wait(clock_skew::check(&ledger, "postgres://…", || next.replace(answered_at)))
    };
    let (early, late) = (At(now.0 - 60_000_000), now.plus(Duration::from_secs(60)));
    check(now, now).expect("it is the server's own");
    check(early, now).expect("its answer was a minute on its way");
    for (wrong, word) in [(late, "ahead"), (early, "behind")] {
        let refused = check(wrong, wrong).expect_err("too far").to_string();
        assert!(refused.contains(word) && refused.contains("NTP"), "{refused}");
    }
}
