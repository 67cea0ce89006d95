//! Calls that look like another effect, and successes that are no longer so (`spec/judgement.md`, sections 5 and 6).

use crate::house::{House, Script, Wish, call, code, refusal, seconds, success, unclear};
use semel_core::answer::{Code, OutcomeWord};
use semel_core::class::Class;
use semel_core::effect::Ruling;
use semel_core::ids::Reason;
use semel_core::policy::rule::Again;
use semel_gate::Gate;
use semel_gate::clock::{Clock, block_on};
use semel_ledger::rulings::RulingVerdict;
use std::sync::Arc;

/// What the first call came to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    InDoubt,
    Undelivered,
    Delivered,
    DeliveredTwoHoursAgo,
}

use First::{Delivered, DeliveredTwoHoursAgo, InDoubt, Undelivered};

fn with(members: &str) -> Wish {
    Wish::consequential().with_arguments(&format!(r#"{{"args":{{{members}}}}}"#))
}

/// A house in which a call was made, and what it came to.
fn after(first: First, wish: &Wish) -> (House, Arc<Gate>) {
    let house = House::new();
    let gate = house.gate();
    match first {
        InDoubt => drop(house.pass(&gate, wish, &Script::answers([unclear()]))),
        Undelivered => drop(house.pass(&gate, wish, &Script::succeeds())),
        Delivered | DeliveredTwoHoursAgo => drop(house.pass_delivered(&gate, wish, &Script::succeeds())),
    }
    house.wait(seconds(if first == DeliveredTwoHoursAgo { 7_200 } else { 3 }));
    (house, gate)
}

/// The code of the second call, or how it ended, and whether it was sent.
fn second(house: &House, gate: &Arc<Gate>, wish: &Wish) -> (String, bool) {
    let script = Script::answers([success()]);
    let passed = house.pass(gate, wish, &script);
    let word = code(&passed).map_or(passed.answer.outcome.word(), Code::word);
    (word.to_owned(), script.sent() == 1)
}

#[test]
fn a_call_with_the_outline_of_another_is_held_or_runs_as_specified() {
    let mail = r#""to":"ann","subject":"Hi","body":"one""#;
    let chat = r#""channel":"C1","text":"one""#;
    let table = [
        (InDoubt, mail, r#""to":"ann","subject":"Hi","body":"two""#, "in_doubt"),
        (InDoubt, chat, r#""channel":"C1","text":"two""#, "in_doubt"),
        (InDoubt, chat, r#""channel":"C2","text":"one""#, "ran"),
        (Undelivered, chat, r#""channel":"C1","text":"two""#, "lookalike"),
        (Delivered, chat, r#""channel":"C1","text":"two""#, "ran"),
        (Delivered, mail, r#""to":"ann","subject":"Hi","body":"two""#, "lookalike"),
        (Delivered, mail, r#""to":"ann","subject":"Other","body":"one""#, "ran"),
        (DeliveredTwoHoursAgo, mail, r#""to":"ann","subject":"Hi","body":"two""#, "ran"),
        (
            Delivered,
            r#""subject":"Re: Hi","thread_id":"t1","body":"one""#,
            r#""subject":"Re: Hi","thread_id":"t1","body":"two""#,
            "ran",
        ),
        (
            Delivered,
            r#""channel":"C1","text":"one","request_id":"1""#,
            r#""channel":"C1","text":"one","request_id":"2""#,
            "lookalike",
        ),
        (
            Delivered,
            r#""channel":"C1","text":"one","idempotency_key":"1""#,
            r#""channel":"C1","text":"one","idempotency_key":"2""#,
            "replayed",
        ),
        (Delivered, r#""to":"ann","amount":"$20""#, r#""to":"ann","amount":20.00"#, "lookalike"),
        (Delivered, r#""to":"ann","amount":20"#, r#""to":"ann","amount":21"#, "ran"),
        (
            Delivered,
            r#""order":"A","idempotency_key":"1","note":"one""#,
            r#""order":"A","idempotency_key":"1","note":"two""#,
            "drift",
        ),
        (Delivered, r#""order":"A","idempotency_key":"1""#, r#""order":"B","idempotency_key":"1""#, "ran"),
    ];
    for (first, one, other, expected) in table {
        let (house, gate) = after(first, &with(one));
        let (word, sent) = second(&house, &gate, &with(other));
        assert_eq!((word.as_str(), sent), (expected, expected == "ran"), "{first:?}: {one} then {other}");
    }
}

#[test]
fn a_held_call_names_a_way_out_that_works() {
    let mail = |body: &str| with(&format!(r#""to":"ann","subject":"Hi","body":"{body}""#));
    let chat = |text: &str| with(&format!(r#""channel":"C1","text":"{text}""#));
    for (first, one, other, agent_may) in [
        (InDoubt, chat("one"), chat("two"), true),
        (InDoubt, mail("one"), mail("two"), false),
        (Undelivered, mail("one"), mail("two"), true),
        (Delivered, mail("one"), mail("two"), true),
    ] {
        let (house, gate) = after(first, &one);
        let again = other.again("it is another one");
        let (word, sent) = second(&house, &gate, &again);
        assert_eq!(sent, agent_may, "{first:?}: {word}");
        if !agent_may {
            let reason = Reason::parse("it is not in the outbox").unwrap();
            let ruling = Ruling { by: "ann".into(), reason, at: house.clock.now() };
            block_on(gate.ledger.resolve(house.effect().id, RulingVerdict::NotApplied, ruling))
                .expect("it is ruled");
            assert!(second(&house, &gate, &other).1, "a person decided");
        }
    }
}

#[test]
fn what_a_person_permits_is_permitted_once() {
    let mail = |body: &str| {
        let mut wish = with(&format!(r#""to":"ann","subject":"Hi","body":"{body}""#));
        wish.rule.again = Again::Person;
        wish
    };
    let (house, gate) = after(Delivered, &mail("one"));
    let agent = mail("two").again("please");
    assert_eq!(second(&house, &gate, &agent), ("lookalike".to_owned(), false));
    let permitted = house.effect().id;
    house.wait(seconds(1));
    let reason = Reason::parse("the customer asked").unwrap();
    let ruling = Ruling { by: "ann".into(), reason, at: house.clock.now() };
    block_on(gate.ledger.permit_repeat(permitted, ruling)).expect("it is permitted");
    house.wait(seconds(1));
    assert_eq!(second(&house, &gate, &mail("two")), ("ran".to_owned(), true));
    house.wait(seconds(3));
    assert!(!second(&house, &gate, &mail("three")).1, "the permission is spent");
}

#[test]
fn two_reworded_calls_at_once_are_sent_one_after_the_other() {
    let chat = |text: &str| with(&format!(r#""channel":"C1","text":"{text}""#));
    let house = House::new();
    let gate = house.gate();
    let (other, hears) = (house.gate(), Script::succeeds());
    let clock = house.clock.clone();
    let (sneaks, twin) = (hears.clone(), chat("two"));
    // The other one is claimed and done after this one has looked around, and before its claim.
    let script = Script::succeeds().before_the_claim(move || {
        let passed = block_on(call(&other, &twin, &sneaks, &clock)).expect("the ledger is well");
        assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    });
    let passed = house.pass(&gate, &chat("one"), &script);
    assert_eq!((code(&passed), hears.sent(), script.sent()), (Some(Code::Lookalike), 1, 0));
}

#[test]
fn a_call_that_is_tried_again_after_a_refusal_is_met_by_its_reworded_twin() {
    let charge = |note: &str| with(&format!(r#""to":"ann","amount":5,"note":"{note}""#));
    let house = House::new();
    let (gate, other) = (house.gate(), house.gate());
    house.pass(&gate, &charge("one"), &Script::answers([refusal()]));
    let (sneaks, twin, clock) = (Script::succeeds(), charge("one"), house.clock.clone());
    let hears = sneaks.clone();
    // The refused one is tried again after this one has looked around, and before its claim.
    let script = Script::succeeds().before_the_claim(move || {
        block_on(call(&other, &twin, &sneaks, &clock)).expect("the ledger is well");
    });
    let passed = house.pass(&gate, &charge("two"), &script);
    assert_eq!((code(&passed), hears.sent(), script.sent()), (Some(Code::Lookalike), 1, 0));
}

#[test]
fn a_doubt_is_found_by_the_arguments_of_its_newest_attempt_and_however_old_it_is() {
    let keyed = |key, to: &str| Wish { key: Some(key), ..with(&format!(r#""to":"{to}""#)) };
    let house = House::new();
    let gate = house.gate();
    house.pass(&gate, &keyed("k1", "typo"), &Script::answers([refusal()]));
    house.pass(&gate, &keyed("k1", "ann"), &Script::answers([unclear()]));
    assert_eq!(second(&house, &gate, &keyed("k2", "ann")), ("in_doubt".to_owned(), false));

    let chat = |text: &str| with(&format!(r#""channel":"C1","text":"{text}""#));
    let house = House::new();
    let gate = house.gate();
    house.pass(&gate, &chat("hello ann"), &Script::answers([refusal()]));
    for n in 0..70 {
        house.pass_delivered(&gate, &chat(&format!("message {n}")), &Script::succeeds());
    }
    house.pass(&gate, &chat("hello ann"), &Script::answers([unclear()]));
    assert_eq!(second(&house, &gate, &chat("hello, Ann")), ("in_doubt".to_owned(), false));
}

#[test]
fn a_command_with_a_key_and_the_same_without_one_know_of_each_others_doubts() {
    let arguments = |cwd: &str| format!(r#"{{"argv":["./pay.sh","ann"]{cwd}}}"#);
    let plain =
        Wish { action: "cli:pay.sh", ..Wish::consequential().with_arguments(&arguments(r#","cwd":"/a""#)) };
    let keyed =
        Wish { action: "cli:pay.sh", key: Some("k"), ..Wish::consequential().with_arguments(&arguments("")) };
    for (first, other) in [(&plain, &keyed), (&keyed, &plain)] {
        let (house, gate) = after(InDoubt, first);
        assert_eq!(second(&house, &gate, other), ("in_doubt".to_owned(), false));
    }
    let (house, gate) = after(InDoubt, &plain);
    let elsewhere = plain.with_arguments(&arguments(r#","cwd":"/b""#));
    assert!(second(&house, &gate, &elsewhere).1, "in another directory it is another");
}

#[test]
fn a_success_that_was_removed_since_is_neither_answered_nor_run() {
    let create = || Wish { action: "mcp:tracker/create_issue", ..with(r#""repo":"r","title":"Bug""#) };
    let remove = |action, members: &str| {
        let arguments = format!(r#"{{"args":{{{members}}}}}"#);
        Wish { action, ..Wish::of(Class::Act).with_arguments(&arguments) }
    };
    for (action, members, expected) in [
        ("mcp:tracker/delete_issue", r#""repo":"r","title":"Bug","force":true"#, "superseded"),
        ("mcp:tracker/close_issue", r#""repo":"r","reason":"done""#, "superseded"),
        ("mcp:tracker/delete_issue", r#""repo":"r","title":"Another""#, "replayed"),
        ("mcp:tracker/update_issue", r#""repo":"r","title":"Bug""#, "replayed"),
        ("mcp:elsewhere/delete_issue", r#""repo":"r","title":"Bug""#, "replayed"),
        ("mcp:tracker/delete_all", "", "replayed"),
    ] {
        let (house, gate) = after(Delivered, &create());
        house.pass_delivered(&gate, &remove(action, members), &Script::succeeds());
        let (word, _) = second(&house, &gate, &create());
        assert_eq!(word, expected, "{action} {members}");
        if expected == "superseded" {
            let again = create().again("it is needed after all");
            assert_eq!(second(&house, &gate, &again), ("ran".to_owned(), true), "{action}");
            assert_eq!(second(&house, &gate, &again), ("replayed".to_owned(), false), "the same reason");
            house.wait(seconds(1));
            house.pass_heard(&gate, &again, &Script::succeeds());
            house.pass_delivered(&gate, &remove(action, members), &Script::succeeds());
            assert_eq!(second(&house, &gate, &again).0, "superseded", "the same reason, and removed again");
            let reworded =
                Wish { action: "mcp:tracker/create_issue", ..with(r#""repo":"r","title":"Bug","body":"b""#) };
            assert_eq!(second(&house, &gate, &reworded).0, "superseded", "in other words");
        }
    }
}

#[test]
fn a_removal_counts_from_its_newest_attempt_on_and_if_it_may_have_happened() {
    let create = || Wish { action: "mcp:tracker/create_issue", ..with(r#""repo":"r","title":"Bug""#) };
    let remove = Wish {
        action: "mcp:tracker/delete_issue",
        ..Wish::of(Class::Act).with_arguments(r#"{"args":{"repo":"r","title":"Bug"}}"#)
    };
    let house = House::new();
    let gate = house.gate();
    house.pass_delivered(&gate, &remove, &Script::succeeds());
    house.wait(seconds(1));
    house.pass_delivered(&gate, &create(), &Script::succeeds());
    assert_eq!(second(&house, &gate, &create()).0, "replayed");
    let house = House::new();
    let gate = house.gate();
    house.pass(&gate, &remove, &Script::answers([refusal()]));
    house.wait(seconds(1));
    house.pass_delivered(&gate, &create(), &Script::succeeds());
    house.wait(seconds(1));
    house.pass_delivered(&gate, &remove, &Script::succeeds());
    assert_eq!(second(&house, &gate, &create()).0, "superseded", "it was tried again");
    let (house, gate) = after(Delivered, &create());
    house.pass(&gate, &remove, &Script::answers([unclear()]));
    assert_eq!(second(&house, &gate, &create()).0, "superseded", "nobody knows whether it is still there");
    let (house, gate) = after(Undelivered, &create());
    house.pass_delivered(&gate, &remove, &Script::succeeds());
    assert_eq!(second(&house, &gate, &create()).0, "replayed", "the first caller never had the answer");
}
