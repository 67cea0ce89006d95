//! A server that comes back without its data looks like a new one, except to a host that knew it.

use crate::claims::{NOW, ledger, memory};
use crate::kv::block_on;
use crate::scene;
use semel_ledger::known_ledger::{check, remember};
use semel_ledger::{Error, Ledger};
use std::path::Path;

const ADDRESS: &str = "redis://h";

fn is_checked(ledger: &Ledger, host: &Path, address: &str) -> Result<u64, Error> {
    block_on(check(ledger, host, address, NOW))?;
    Ok(block_on(ledger.epoch())?.0.0)
}

#[test]
fn another_ledger_in_a_known_place_begins_one_epoch_however_many_hosts_notice_it() {
    let hosts = [scene::directory(), scene::directory()];
    let epoch =
        |ledger: &Ledger, host: usize| is_checked(ledger, hosts[host].path(), ADDRESS).expect("checked");
    let known = ledger(memory(), hosts[0].path(), 1);
    assert_eq!([0, 1, 0, 1].map(|host| epoch(&known, host)), [0; 4]);
    let emptied = ledger(memory(), hosts[0].path(), 2);
    assert_eq!([0, 1, 0, 1].map(|host| epoch(&emptied, host)), [1; 4]);
    let lines = block_on(emptied.newest_lines(9)).expect("readable");
    assert_eq!(lines.iter().map(|(_, line)| line.kind.as_str()).collect::<Vec<_>>(), ["commits_lost"]);
    let again = ledger(memory(), hosts[0].path(), 3);
    assert_eq!(epoch(&again, 1), 1, "another loss, another epoch");
}

#[test]
fn a_ledger_that_was_brought_to_a_known_place_begins_none() {
    let host = scene::directory();
    let [old, new] = [1, 2].map(|secret| ledger(memory(), host.path(), secret));
    assert_eq!(is_checked(&old, host.path(), ADDRESS).expect("checked"), 0);
    remember(&new, host.path(), ADDRESS).expect("written");
    assert_eq!(is_checked(&new, host.path(), ADDRESS).expect("checked"), 0);
    assert_eq!(
        is_checked(&old, host.path(), "redis://elsewhere").expect("checked"),
        0,
        "known by its address"
    );
}

/// Else the next process would take the new ledger for the known one.
#[test]
fn an_epoch_that_cannot_be_written_leaves_the_old_ledger_known() {
    use semel_ledger::memory::InjectedFault;
    let host = scene::directory();
    is_checked(&ledger(memory(), host.path(), 1), host.path(), ADDRESS).expect("checked");
    let store = memory();
    let emptied = ledger(store.clone(), host.path(), 2);
    store.inject(InjectedFault::NotWritten);
    is_checked(&emptied, host.path(), ADDRESS).expect_err("nobody may use it");
    assert_eq!(is_checked(&emptied, host.path(), ADDRESS).expect("checked"), 1);
}
