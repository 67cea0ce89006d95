//! More claims than the disk takes: the last are refused before anything is written, and settlements go first.

use crate::scene::{directory, open, place, runtime};
use semel_core::digest::Digest;
use semel_ledger::Error;
use semel_ledger::store::{Commit, Committed, Durability, Nonce, Put, Require, Revision, Store};
use semel_testkit::store_suite::{index, record};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn claim(number: u128) -> Commit {
    let put = record(Digest::of(&[&number.to_be_bytes()]), 1, 0, index(number, true));
    let require = Require { begins: true, ..Require::default() };
    Commit {
        nonce: Nonce(number),
        puts: vec![put],
        require,
        journal: Vec::new(),
        durability: Durability::Durable,
    }
}

fn settlement() -> Commit {
    let put = Put::Cell { key: Digest([9; 32]), expected: Revision::ABSENT, body: b"{}".to_vec() };
    let (nonce, require) = (Nonce(1), Require::default());
    Commit { nonce, puts: vec![put], require, journal: Vec::new(), durability: Durability::Durable }
}

#[test]
fn overload_is_refused_before_the_claim_and_what_was_sent_is_settled_first() {
    const CLAIMS: usize = 3_000;
    let directory = directory();
    let place = place(&directory);
    let store = Arc::new(open(&place).expect("it is founded").store);
    let runtime = runtime();
    // Somebody else writes for a long time.
    let other = rusqlite::Connection::open(place.database()).expect("a second connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let (landed, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let claims: Vec<_> = (0..CLAIMS)
        .map(|number| {
            let (store, landed, refused) = (Arc::clone(&store), Arc::clone(&landed), Arc::clone(&refused));
            runtime.spawn(async move {
                match store.commit(claim(number as u128 + 1).into()).await {
                    Ok(Committed::Done) => landed.fetch_add(1, Ordering::SeqCst),
                    Err(Error::Overloaded) => refused.fetch_add(1, Ordering::SeqCst),
                    other => panic!("{other:?}"),
                };
            })
        })
        .collect();
    // Those who are refused are told at once, while the others wait.
    while refused.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let (settling, settled_after) = (Arc::clone(&store), Arc::clone(&landed));
    let settled = runtime.spawn(async move {
        let done = settling.commit(settlement().into()).await.expect("a settlement is never refused");
        assert_eq!(done, Committed::Done);
        settled_after.load(Ordering::SeqCst)
    });
    other.execute_batch("ROLLBACK").expect("it lets go");
    let before_it = runtime.block_on(settled).expect("it is settled");
    runtime.block_on(async {
        for claim in claims {
            claim.await.expect("it comes to an end");
        }
    });
    let (landed, refused) = (landed.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert_eq!(landed + refused, CLAIMS);
    assert!(refused > 0 && landed >= 1_024, "{landed} landed, {refused} were refused");
    assert!(before_it < landed, "{before_it} of {landed} claims went before it");
    let rows = runtime.block_on(store.scan(semel_ledger::store::By::All, None, 500)).expect("readable");
    assert!(rows.next.is_some());
}
