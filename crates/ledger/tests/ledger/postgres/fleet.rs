//! Holders of several hosts: locks prove a death on their own host alone.

use super::{store, wait};
use semel_ledger::fleet_holders::FleetHolders;
use semel_ledger::holders::{Holders, Liveness};
use semel_testkit::postgres_server::PostgresServer;
use semel_testkit::wait_until;
use std::sync::Arc;

#[test]
fn a_holder_of_another_host_falls_silent_and_is_never_dead() {
    let server = PostgresServer::start(&[]);
    let directories = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
    let hosts = [0, 1].map(|host| {
        let store = Arc::new(store(&server.url("semel")));
        FleetHolders::new(directories[host].path(), store).expect("it has a place")
    });
    let known = |asking: usize, owner| wait(hosts[asking].liveness(&[owner])).expect("readable")[0];
    let owner = hosts[0].me().expect("it has a lock");
    assert_eq!([known(0, owner), known(1, owner)], [Liveness::Alive; 2]);
    let beats = || server.sql("SELECT count(*) FROM semel.holder");
    wait_until("its first beat has come", || beats() == "1");
    assert_eq!(known(1, owner), Liveness::Alive);
    // Its process is gone, and with it the lock; the store still beats until its host is cut off too.
    hosts[0].release_lock();
    // A process that another test has just forked keeps it until it becomes its program.
    wait_until("its lock is gone", || known(0, owner) == Liveness::Dead);
    assert_eq!(known(1, owner), Liveness::Alive);
    let [first, second] = hosts;
    drop(first);
    server.sql("UPDATE semel.holder SET beat = beat - interval '1 minute'");
    let seen = wait(second.liveness(&[owner])).expect("readable");
    assert_eq!(seen, [Liveness::Silent]);
}
