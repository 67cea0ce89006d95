//! A policy names sameness; it never makes the past unseen (rule 18). The call stays as it is, and the policy or the
//! caller's way of naming it changes between two tries.

use crate::house::{House, Script, Wish, code, refusal, seconds, success, unclear, yes};
use semel_core::answer::OutcomeWord;
use semel_core::class::Class;
use semel_core::effect::{Ruling, State};
use semel_core::ids::Reason;
use semel_core::json::Path;
use semel_core::normalise::Normaliser;
use semel_core::policy::rule::ScopeChoice;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::ProbeAnswer;
use semel_ledger::rulings::RulingVerdict;

const ORDER: &str = r#"{"args":{"order":"1001","total":49,"note":"first try"}}"#;
const REWORDED: &str = r#"{"args":{"order":"1001","total":49,"note":"second try"}}"#;
const OTHER: &str = r#"{"args":{"order":"1002","total":49,"note":"first try"}}"#;

fn paths(texts: &[&str]) -> Vec<Path> {
    texts.iter().map(|text| Path::parse(text).expect("a path")).collect()
}

fn without_rule(class: Class) -> Wish {
    Wish::of(class).with_arguments(ORDER)
}

fn change(mut wish: Wish, edit: impl FnOnce(&mut Wish)) -> Wish {
    edit(&mut wish);
    wish.rule.sorting = wish.rule.sorting.numbered();
    wish
}

/// The rule that the documents recommend: a key, and a note that may be reworded.
fn by_order() -> Wish {
    change(without_rule(Class::Consequential), |wish| {
        wish.rule.sorting.key = paths(&["args.order"]);
        wish.rule.sorting.content = paths(&["args.note"]);
    })
}

fn everywhere() -> Wish {
    change(by_order(), |wish| wish.rule.scope = Some(ScopeChoice::Global))
}

/// The same call before and after each kind of edit.
fn edits() -> Vec<(&'static str, Wish, Wish)> {
    let plain = || without_rule(Class::Act);
    let sorted = |content: &[&str], volatile: &[&str]| {
        change(plain(), |wish| {
            wish.rule.sorting.content = paths(content);
            wish.rule.sorting.volatile = paths(volatile);
        })
    };
    vec![
        ("a key is added", plain(), by_order()),
        ("a key is added to what was consequential", without_rule(Class::Consequential), by_order()),
        ("the rule is removed", by_order(), plain()),
        ("content alone", plain(), sorted(&["args.note"], &[])),
        ("volatile alone", plain(), sorted(&[], &["args.note"])),
        (
            "a normaliser alone",
            plain(),
            change(plain(), |wish| {
                let note = Path::parse("args.note").expect("a path");
                wish.rule.sorting.normalize = vec![(note, vec![Normaliser::Trim])];
            }),
        ),
        (
            "another key",
            by_order(),
            change(by_order(), |wish| wish.rule.sorting.key = paths(&["args.total"])),
        ),
        ("the caller names it", plain(), change(plain(), |wish| wish.key = Some("invoice-1001"))),
        ("the caller names it no more", change(plain(), |wish| wish.key = Some("invoice-1001")), plain()),
        ("a key is added, in a run", plain().in_run("r1"), by_order().in_run("r1")),
        ("a key is added, in another run", plain().in_run("r1"), by_order().in_run("r2")),
        ("the scope is widened", by_order().in_run("r1"), everywhere().in_run("r1")),
        ("the scope is narrowed", everywhere().in_run("r1"), by_order().in_run("r1")),
    ]
}

#[test]
fn a_doubt_stays_a_doubt_whatever_becomes_of_the_policy() {
    for (edit, before, after) in edits() {
        let house = House::new();
        let first = Script::answers([unclear()]);
        house.pass(&house.gate(), &before, &first);
        let second = Script::succeeds();
        let passed = house.pass(&house.gate(), &after, &second);
        assert_eq!((first.sent(), second.sent()), (1, 0), "{edit}");
        assert_eq!(code(&passed).expect("it is held").word(), "in_doubt", "{edit}");
        assert_eq!(passed.answer.effect_id, Some(house.effect().id), "{edit}");
        let advice = format!("{:?}", passed.answer);
        assert!(!advice.contains("again WHY") && !advice.contains("semel_again"), "{edit}: {advice}");
        // Nor does a reason start what may have happened.
        let again = house.pass(&house.gate(), &after.again("I am sure"), &second);
        assert_eq!((second.sent(), again.answer.outcome), (0, OutcomeWord::Held), "{edit}");
    }
}

#[test]
fn a_call_in_flight_is_joined_under_its_new_name() {
    for (edit, before, after) in edits() {
        let house = House::new();
        let (first, second) = (Script::after(seconds(2), success()), Script::succeeds());
        let gate = house.gate();
        let one = house.start(0, crate::house::call(&gate, &before, &first, &house.clock));
        let two = house.start(0, crate::house::call(&gate, &after, &second, &house.clock));
        house.settle();
        let answers = [one, two].map(|slot| crate::house::take(&slot).expect("the ledger is well").answer.ok);
        // Whichever came first was sent, and the other has its answer.
        assert_eq!((first.sent() + second.sent(), answers), (1, [true, true]), "{edit}");
    }
}

#[test]
fn the_probe_of_a_new_rule_settles_an_old_doubt() {
    for (edit, before, after) in edits() {
        for found in [true, false] {
            let after = change(after.clone(), |wish| wish.rule.probe = Wish::probed().rule.probe);
            let house = House::new();
            house.pass(&house.gate(), &before, &Script::answers([unclear()]));
            house.wait(seconds(600));
            let answer = if found { yes() } else { ProbeAnswer::No };
            let second = Script::succeeds().probes([answer]);
            let passed = house.pass(&house.gate(), &after, &second);
            assert!(passed.answer.ok, "{edit}, {found}: {:?}", passed.answer);
            // Found, it is answered from the record; not found, it is sent for the first time.
            assert_eq!(second.sent(), usize::from(!found), "{edit}, {found}");
            assert_eq!(house.effects().iter().filter(|effect| effect.is_open()).count(), 0, "{edit}");
        }
    }
}

#[test]
fn a_ruling_answers_the_call_under_its_new_name() {
    for (edit, before, after) in edits() {
        for verdict in [RulingVerdict::Applied { reply: None }, RulingVerdict::NotApplied] {
            let is_applied = !matches!(verdict, RulingVerdict::NotApplied);
            let house = House::new();
            let gate = house.gate();
            house.pass(&gate, &before, &Script::answers([unclear()]));
            let reason = Reason::parse("looked it up").expect("a reason");
            let ruling = Ruling { by: "ann".into(), reason, at: house.clock.now() };
            block_on(gate.ledger.resolve(house.effect().id, verdict, ruling)).expect("it is ruled");
            let second = Script::succeeds();
            let passed = house.pass(&gate, &after, &second);
            assert_eq!((second.sent(), passed.answer.ok), (usize::from(!is_applied), true), "{edit}");
        }
    }
}

#[test]
fn an_answer_that_was_lost_is_handed_over_under_the_new_name() {
    for (edit, before, after) in edits() {
        let house = House::new();
        house.pass(&house.gate(), &before, &Script::succeeds());
        house.wait(seconds(30));
        let second = Script::succeeds();
        let passed = house.pass(&house.gate(), &after, &second);
        assert_eq!((second.sent(), passed.answer.ok), (0, true), "{edit}");
    }
}

#[test]
fn other_words_of_the_same_order_are_the_old_effect_once_a_rule_says_so() {
    let house = House::new();
    house.pass(&house.gate(), &without_rule(Class::Act), &Script::answers([unclear()]));
    let second = Script::succeeds();
    let reworded = by_order().with_arguments(REWORDED);
    let held = house.pass(&house.gate(), &reworded, &second);
    assert_eq!((second.sent(), code(&held).map(|code| code.word())), (0, Some("in_doubt")));
    // Without the rule nothing says that the two are one, but one of them is open.
    let house = House::new();
    house.pass(&house.gate(), &by_order(), &Script::answers([unclear()]));
    let held = house.pass(&house.gate(), &without_rule(Class::Act).with_arguments(REWORDED), &second);
    assert_eq!((second.sent(), held.answer.outcome), (0, OutcomeWord::Held));
}

#[test]
fn a_change_of_policy_holds_nothing_else() {
    for (edit, before, after) in edits() {
        let house = House::new();
        house.pass(&house.gate(), &before, &Script::answers([unclear()]));
        // With a total as its name, another order of that total is the same.
        if edit != "another key" {
            let other = Script::succeeds();
            let keyed = after.key.map(|_| "invoice-1002");
            let wish = Wish { key: keyed, ..after.with_arguments(OTHER) };
            assert!(house.pass(&house.gate(), &wish, &other).answer.ok, "{edit}");
            assert_eq!(other.sent(), 1, "{edit}");
        }
        // Of what was refused nothing happened.
        let house = House::new();
        house.pass(&house.gate(), &before, &Script::answers([refusal()]));
        let second = Script::succeeds();
        assert!(house.pass(&house.gate(), &after, &second).answer.ok, "{edit}");
        assert_eq!(second.sent(), 1, "{edit}");
    }
}

#[test]
fn a_success_that_arrived_leaves_a_new_name_free() {
    let plain = || without_rule(Class::Act);
    let named = |key| change(plain(), |wish| wish.key = Some(key));
    // A caller's key means another effect; without one, an act runs again, and the rule decides about the rest.
    for (before, after, sent) in [
        (plain(), named("a"), 1),
        (named("a"), plain(), 1),
        (named("a"), named("b"), 1),
        (plain(), by_order(), 0),
    ] {
        let house = House::new();
        house.pass_delivered(&house.gate(), &before, &Script::succeeds());
        let second = Script::succeeds();
        assert!(house.pass(&house.gate(), &after, &second).answer.ok);
        assert_eq!(second.sent(), sent);
        let applied = |state: &State| matches!(state, State::Applied(_));
        assert_eq!(house.effects().iter().filter(|effect| applied(&effect.state)).count(), 1 + sent);
    }
}
