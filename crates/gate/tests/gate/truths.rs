//! Successes whose truth is asked for.

use crate::house::{House, Script, Wish, seconds};
use async_trait::async_trait;
use semel_core::effect::{Evidence, State};
use semel_core::policy::expression::Expression;
use semel_core::policy::rule::{Confirm, RuleCall};
use semel_gate::confirm::{Confirmed, Witness};
use semel_testkit::simulation::clock::ManualClock;
use std::sync::Arc;

struct Says(bool);

#[async_trait]
impl Witness for Says {
    async fn ask(&mut self) -> Result<bool, String> {
        Ok(self.0)
    }

    fn name(&self) -> String {
        "somebody".into()
    }
}

/// Says no at first, and takes longer for that than the rule's time; then yes.
struct SaysNoSlowly {
    clock: ManualClock,
    asked: u32,
}

#[async_trait]
impl Witness for SaysNoSlowly {
    async fn ask(&mut self) -> Result<bool, String> {
        self.asked += 1;
        if self.asked == 1 {
            self.clock.nap(seconds(5)).await;
        }
        Ok(self.asked > 1)
    }

    fn name(&self) -> String {
        "somebody".into()
    }
}

#[test]
fn a_no_that_was_asked_for_early_refutes_nothing_however_late_it_comes() {
    let ok = Expression::compile("true").expect("it is an expression");
    let confirm = Confirm { call: RuleCall::Command { argv: Vec::new() }, ok, within: seconds(2) };
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    let done = house.pass(&gate, &wish, &Script::succeeds()).delivery.expect("it was done");
    let mut witness = SaysNoSlowly { clock: house.clock.clone(), asked: 0 };
    let asked = house.run(async move { gate.confirm(&confirm, &done, &mut witness).await });
    assert_eq!(asked.expect("the ledger is well"), Confirmed::Yes);
}

/// A replica may lag behind what another has shown to somebody else.
#[test]
fn what_one_has_seen_to_be_true_another_does_not_refute() {
    let ok = Expression::compile("true").expect("it is an expression");
    let confirm = Confirm { call: RuleCall::Command { argv: Vec::new() }, ok, within: seconds(2) };
    for (second, became) in [(false, Confirmed::AsReported), (true, Confirmed::Yes)] {
        let (house, wish) = (House::new(), Wish::consequential());
        let gate = house.gate();
        let done = house.pass(&gate, &wish, &Script::succeeds()).delivery.expect("it was done");
        for (says, became) in [(true, Confirmed::Yes), (second, became)] {
            let (gate, confirm, done) = (Arc::clone(&gate), confirm.clone(), done.clone());
            let asked = house.run(async move { gate.confirm(&confirm, &done, &mut Says(says)).await });
            assert_eq!(asked.expect("the ledger is well"), became);
        }
        let confirmed =
            |state: &State| matches!(state, State::Applied(done) if done.evidence == Evidence::Confirmed);
        assert!(confirmed(&house.effect().state), "{:?}", house.effect().state);
    }
}
