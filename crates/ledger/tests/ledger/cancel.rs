//! Cancelled runs.

use crate::claims::{NOW, claimed, ledger, memory};
use crate::kv::block_on;
use crate::scene;
use semel_core::effect::{NotAppliedWhy, Reply};
use semel_core::ids::EffectId;
use semel_core::intent::run_key;
use semel_core::outcome::Outcome;
use semel_ledger::small_records::{Visits, cell_bytes, visits_key};
use semel_ledger::store::{Put, Revision, Store};
use semel_testkit::store_suite::one;

/// Nobody can say that nothing more will be sent for effects that no list names.
#[test]
fn a_run_that_visited_more_effects_than_are_listed_is_not_called_drained() {
    let (host, store) = (scene::directory(), memory());
    let ledger = ledger(store.clone(), host.path(), 1);
    // Retention has dropped these.
    let visits = (0..999).fold(Visits::default(), |visits, effect| visits.with(EffectId(effect)));
    let key = visits_key(ledger.secret(), run_key(ledger.secret(), "t", "second"));
    let body = cell_bytes(key, Revision(1), &visits);
    block_on(store.commit(one(Put::Cell { key, expected: Revision::ABSENT, body }).into())).expect("written");
    let refusal = Outcome::NotApplied { why: NotAppliedWhy::Refused("no".to_owned()), reply: Reply::Unknown };
    let visit_another = |word: &str| {
        for run in ["first", "second"] {
            let mut claim = claimed(&ledger, word, Some(run));
            block_on(ledger.settle(&mut claim, &refusal, None, NOW)).expect("settled");
        }
        block_on(ledger.cancel("t", "second", false, None, NOW)).expect("cancelled").drained
    };
    assert!(visit_another("the 1,000th"), "nothing of the run is open");
    assert!(!visit_another("one more"));
}
