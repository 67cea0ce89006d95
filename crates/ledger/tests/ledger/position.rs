//! A server that comes back without its data, or with older data, looks like any other, except to a host that knew it.

use crate::claims::{NOW, claimed, ledger, memory};
use crate::kv::block_on;
use crate::scene;
use semel_ledger::position::{check, remember};
use semel_ledger::store::{Revision, Store};
use semel_ledger::{Error, Ledger};
use std::path::Path;
use std::sync::Arc;

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

/// A process of a host that has used this ledger before, as a command opens it.
pub fn process(store: Arc<dyn Store>, host: &Path) -> Ledger {
    let ledger = ledger(store, host, 1);
    block_on(check(&ledger, host, ADDRESS, NOW)).expect("checked");
    ledger
}

/// Claims and settles a call of its own. The epoch in which it was found.
pub fn call(ledger: &Ledger, key: &str) -> Revision {
    use semel_core::answer::EffectWord;
    use semel_core::effect::{Evidence, Reply};
    use semel_core::outcome::Outcome;
    let mut claim = claimed(ledger, key, None);
    let (evidence, word, reply) = (Evidence::Reported, EffectWord::Created, Reply::Unknown);
    let outcome = Outcome::Applied { evidence, word, reply };
    block_on(ledger.settle(&mut claim, &outcome, None, NOW)).expect("settled");
    claim.snapshot().epoch
}

/// The epoch that a process finds when it looks at a record before it decides anything. A server may have to be found again.
pub fn epoch_of(ledger: &Ledger) -> u64 {
    let mut epoch = None;
    semel_testkit::wait_until("the ledger answers", || {
        let seen = block_on(ledger.observe(semel_core::digest::Digest([1; 32]), NOW));
        epoch = seen.ok().map(|seen| seen.epoch.0);
        epoch.is_some()
    });
    epoch.expect("it answered")
}

/// Commands come and go, and their host remembers. Others know no better than the data.
#[test]
fn a_host_remembers_how_far_a_ledger_had_come() {
    let [host, other, third] = [(); 3].map(|()| scene::directory());
    let store = memory();
    call(&process(store.clone(), host.path()), "kept");
    let old = store.snapshot();
    call(&process(store.clone(), host.path()), "lost");
    call(&process(store.clone(), third.path()), "lost too");
    let stays = process(store.clone(), third.path());
    store.fail_over_to(&old);
    assert_eq!(epoch_of(&process(store.clone(), other.path())), 0, "it has never been here");
    assert_eq!([(); 2].map(|()| epoch_of(&process(store.clone(), host.path()))), [1; 2]);
    assert_eq!([epoch_of(&stays), epoch_of(&process(store.clone(), third.path()))], [1; 2], "and only one");
    let again = store.snapshot();
    call(&stays, "lost later");
    store.fail_over_to(&again);
    assert_eq!(epoch_of(&process(store.clone(), third.path())), 2, "another loss, another epoch");
    let lines = block_on(stays.newest_lines(9)).expect("readable");
    let kinds: Vec<_> = lines.iter().map(|(_, line)| line.kind.as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "commits_lost").count(), 2, "{kinds:?}");
}
