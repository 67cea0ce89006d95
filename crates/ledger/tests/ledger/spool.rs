//! Answers that wait on their host.

use crate::claims::{NOW, claimed, ledger, memory};
use crate::kv::block_on;
use crate::scene;
use semel_core::effect::{Applied, Evidence, Reply, State};
use semel_core::effect_word::EffectWord;
use semel_core::outcome::Outcome;
use semel_ledger::memory::InjectedFault;

fn success() -> Outcome {
    Outcome::Applied { evidence: Evidence::Reported, word: EffectWord::Created, reply: Reply::Kept }
}

#[test]
fn of_a_reply_that_is_too_large_to_wait_the_fact_survives() {
    let (host, store) = (scene::directory(), memory());
    let large = vec![b'r'; 9 * 1024 * 1024];
    let claim = claimed(&ledger(store.clone(), host.path(), 1), "k", None);
    let key = claim.key();
    let kept = ledger(store.clone(), host.path(), 1).spool(&claim, &success(), Some(&large), NOW);
    kept.expect("it is on the disk");
    let next = ledger(store, host.path(), 1);
    block_on(next.import_all(NOW)).expect("imported");
    let found = block_on(next.find(key)).expect("readable");
    let State::Applied(Applied { reply, .. }) = &found.effect().expect("it was claimed").state else {
        panic!("it is known: {found:?}")
    };
    assert_eq!((*reply, found.reply), (Reply::TooLarge(large.len() as u64), None));
}

#[test]
fn an_import_stops_where_the_store_is_gone_and_only_there() {
    let (host, store) = (scene::directory(), memory());
    let ledger = ledger(store.clone(), host.path(), 1);
    for n in 0..3 {
        let claim = claimed(&ledger, &format!("k{n}"), None);
        ledger.spool(&claim, &success(), Some(b"done"), NOW).expect("it is on the disk");
    }
    let waiting = || ledger.spooled().expect("readable").waiting.len();
    store.inject(InjectedFault::NotWritten);
    store.inject(InjectedFault::NotRead);
    block_on(ledger.import_all(NOW)).expect_err("the store is gone");
    assert_eq!(waiting(), 3, "it was asked once");
    store.inject(InjectedFault::NotWritten);
    block_on(ledger.import_all(NOW)).expect_err("one was refused");
    assert_eq!(waiting(), 1, "and held up no other");
    block_on(ledger.import_all(NOW)).expect("imported");
    assert_eq!(waiting(), 0);
}
