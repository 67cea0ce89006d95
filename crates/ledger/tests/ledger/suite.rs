use crate::scene;
use semel_ledger::memory::{InjectedFault, MemoryStore, Sleeper};
use semel_ledger::store::{Committed, Revision, Store};
use semel_testkit::store_suite::{claim, exercise, index, named};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

struct TokioTime;

impl Sleeper for TokioTime {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { tokio::time::sleep(span).await })
    }
}

#[test]
fn the_memory_store_passes_the_suite() {
    exercise(|| (MemoryStore::new(Arc::new(TokioTime)), ()));
}

#[test]
fn the_sqlite_store_passes_the_suite() {
    exercise(|| {
        let directory = scene::directory();
        (scene::open(&scene::place(&directory)).expect("it opens").store, directory)
    });
}

#[test]
fn the_blocking_sqlite_store_passes_the_suite() {
    exercise(|| {
        let directory = scene::directory();
        (scene::open_blocking(&scene::place(&directory)).expect("it opens").store, directory)
    });
}

#[test]
fn the_memory_store_fails_on_demand_and_forgets_at_a_failover() {
    let store = MemoryStore::new(Arc::new(TokioTime));
    let commit =
        |word: &str, effect| scene::now(store.commit(claim(named(word), index(effect, true)).into()));
    let revision = |word: &str| scene::now(store.read(named(word))).map(|found| found.revision);
    store.inject(InjectedFault::LandsUnanswered);
    store.inject(InjectedFault::VanishesUnanswered);
    store.inject(InjectedFault::NotRead);
    assert_eq!(commit("lands", 1).unwrap(), Committed::Unknown);
    assert_eq!(commit("vanishes", 2).unwrap(), Committed::Unknown);
    assert!(revision("lands").is_err());
    assert_eq!((revision("lands").unwrap(), revision("vanishes").unwrap()), (Revision(1), Revision::ABSENT));
    let before = store.snapshot();
    assert_eq!(commit("late", 3).unwrap(), Committed::Done);
    store.fail_over_to(&before);
    assert_eq!((revision("lands").unwrap(), revision("late").unwrap()), (Revision(1), Revision::ABSENT));
}
