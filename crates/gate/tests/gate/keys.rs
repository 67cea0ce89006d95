//! What a caller's own key stands for.

use crate::house::*;
use semel_core::answer::{Code, OutcomeWord, Would};
use semel_core::class::Class;
use semel_core::json::Path;
use semel_core::policy::rule::CallerKey;
use semel_gate::clock::block_on;

#[test]
fn a_key_used_for_something_else_is_drift_and_names_what_differs() {
    let (house, script) = (House::new(), Script::succeeds());
    let wish = Wish { key: Some("order-1001"), ..Wish::consequential() };
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let amount = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    let trouble = house.pass(&gate, &amount, &script).answer.trouble.unwrap();
    assert_eq!((trouble.code, trouble.differing), (Code::Drift, vec!["args.amount".to_owned()]));
    let action = Wish { action: "fn:refund", ..wish };
    let trouble = house.pass(&gate, &action, &script).answer.trouble.unwrap();
    assert_eq!((trouble.code, trouble.differing), (Code::Drift, vec!["action".to_owned()]));
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_callers_key_can_only_add_sameness_where_the_rule_says_joins() {
    let (house, script) = (House::new(), Script::succeeds());
    let mut wish = Wish { key: Some("fresh-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let another_key = Wish { key: Some("fresh-2"), ..wish.clone() };
    assert_eq!(house.pass(&gate, &another_key, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 1);
}

/// A key that came with something of which nothing happened may come with something else: that has its own record, in which
/// its repeats are found without the key as well.
#[test]
fn a_key_that_joins_takes_no_sameness_away() {
    let house = House::new();
    let mut wish = Wish { key: Some("sdk-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let gate = house.gate();
    let script = Script::answers([refusal(), success(), success()]);
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::UpstreamRefused));
    house.pass_delivered(&gate, &bob, &script);
    for key in [Some("sdk-1"), Some("sdk-2"), None] {
        let passed = house.pass_delivered(&gate, &Wish { key, ..bob.clone() }, &script);
        assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2), "{key:?}");
    }
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::Drift), "the key is bob's now");
    let ann = house.pass_delivered(&gate, &Wish { key: None, ..wish }, &script);
    assert_eq!((ann.answer.outcome, script.sent()), (OutcomeWord::Ran, 3));
}

/// Whatever a repeat of what it stands for would get.
#[test]
fn a_key_that_stands_for_what_happened_cannot_come_with_something_else() {
    for class in [Class::Act, Class::Consequential] {
        let (house, script) = (House::new(), Script::succeeds());
        let mut wish = Wish { key: Some("sdk-1"), ..Wish::of(class) };
        wish.rule.caller_key = CallerKey::Joins;
        wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
        let bob = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
        let gate = house.gate();
        house.pass_delivered(&gate, &wish, &script);
        house.wait(seconds(7 * 24 * 3600));
        for other in [bob.clone(), bob.again("once more")] {
            assert_eq!(code(&house.pass(&gate, &other, &script)), Some(Code::Drift), "{class}");
        }
        let (dry, intent, rule) = (gate.clone(), bob.intent(), bob.rule.clone());
        let told = house.run(async move { dry.dry_run(&intent, &rule).await.expect("the ledger is well") });
        assert_eq!(told.dry_run.expect("it says what it would do").would, Would::Refuse);
        assert_eq!(script.sent(), 1);
    }
}

#[test]
fn a_key_that_came_to_stand_for_another_effect_meanwhile_sends_nothing() {
    let (house, other_script) = (House::new(), Script::succeeds());
    let mut wish = Wish { key: Some("sdk-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let (gate, clock) = (house.gate(), house.clock.clone());
    let other = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    let overtaking = call(&gate, &other, &other_script, &clock);
    let script = Script::succeeds().before_the_claim(move || {
        let passed = block_on(overtaking).expect("the ledger is well");
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    });
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::Drift));
    assert_eq!((script.sent(), other_script.sent()), (0, 1));
}
