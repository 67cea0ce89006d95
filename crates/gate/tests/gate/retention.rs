//! What is dropped after its time, and what is not.

use crate::house::*;
use semel_core::answer::OutcomeWord;
use semel_core::class::Class;
use semel_core::effect::Ruling;
use semel_core::ids::Reason;
use semel_core::json::Path;
use semel_core::policy::Retention;
use semel_core::policy::rule::{CallerKey, ScopeChoice};
use semel_core::time::At;
use semel_gate::GivenReply;
use semel_gate::clock::{Clock, block_on};
use semel_gate::upstream::ProbeAnswer;
use semel_ledger::rulings::RulingVerdict;
use semel_ledger::store::Store;

const DAY: u64 = 24 * 3600;

fn retention(facts_days: u64, windows_days: u64) -> Retention {
    Retention {
        replies: seconds(DAY),
        facts: seconds(facts_days * DAY),
        windows: seconds(windows_days * DAY),
    }
}

#[test]
fn a_pruned_reply_is_answered_as_no_longer_kept() {
    let (house, wish, script) =
        (House::new(), Wish { key: Some("k"), ..Wish::consequential() }, Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    house.wait(seconds(2 * 24 * 3600));
    let report =
        block_on(gate.ledger.prune(retention(1, 1), house.clock.now(), house.clock.uptime())).unwrap();
    assert_eq!((report.replies_dropped, report.facts_dropped), (1, 0));
    let passed = house.pass(&gate, &wish, &script);
    assert!(passed.answer.ok);
    assert!(passed.answer.reason.unwrap().contains("its reply is no longer kept"));
    assert_eq!((passed.reply, script.sent()), (GivenReply::None, 1));
}

/// Nobody is known to have got it; a month later nobody waits for its bytes.
#[test]
fn the_reply_of_a_success_that_reached_nobody_is_pruned_and_its_fact_stays() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    house.wait(seconds(2 * DAY));
    let prune =
        || block_on(gate.ledger.prune(retention(1, 1), house.clock.now(), house.clock.uptime())).unwrap();
    let report = prune();
    assert_eq!((report.replies_dropped, report.facts_dropped), (1, 0));
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((passed.answer.outcome, passed.reply), (OutcomeWord::Replayed, GivenReply::None));
    assert!(passed.answer.reason.unwrap().contains("its reply is no longer kept"));
    house.wait(seconds(2 * DAY));
    assert_eq!((prune().facts_dropped, house.effects().len(), script.sent()), (0, 1, 1));
}

/// Whether its record has gone on meanwhile or not.
#[test]
fn a_second_answer_is_evidence_in_the_journal() {
    for goes_on in [false, true] {
        let (house, mut wish) = (House::new(), Wish::of(Class::Generate));
        wish.rule.timeout = Some(seconds(5));
        let (gate, slow) = (house.gate(), Script::after(seconds(60), success()));
        let late = house.start(1, call(&gate, &wish, &slow, &house.clock));
        // Of the two attempts the later one answers first.
        let quick = Script::succeeds();
        let retry = house.start(2, {
            let (gate, wish, script, clock) =
                (gate.clone(), wish.clone(), quick.clone(), house.clock.clone());
            async move {
                clock.nap(seconds(10)).await;
                let passed = call(&gate, &wish, &script, &clock).await.expect("the ledger is well");
                if let (true, Some(found)) = (goes_on, &passed.delivery) {
                    gate.ledger.delivered(found, clock.now()).await.expect("the ledger is well");
                    call(&gate, &wish, &script, &clock).await.expect("the ledger is well");
                }
                passed
            }
        });
        house.settle();
        assert!(take(&late).unwrap().answer.ok && take(&retry).answer.ok);
        assert_eq!((slow.sent(), quick.sent()), (1, 1 + usize::from(goes_on)));
        assert_eq!(house.journaled("second_answer"), 1);
    }
}

#[test]
fn a_fact_stays_for_as_long_as_any_policy_on_its_ledger_answers_repeats() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    let prune = |retention| {
        block_on(gate.ledger.prune_if_due(retention, house.clock.now(), house.clock.uptime())).unwrap()
    };
    prune(retention(1, 1));
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(prune(retention(400, 7)), None, "it is not due, and says how long its facts must stay");
    house.wait(seconds(3 * DAY));
    assert_eq!(prune(retention(1, 1)).unwrap().facts_dropped, 0);
    house.wait(seconds(2 * DAY));
    assert_eq!(prune(retention(1, 1)).unwrap().facts_dropped, 0);
    assert_eq!(house.effects().len(), 1);
    for n in 0..3 {
        house.wait(seconds(2 * DAY));
        // Retention waits for a ledger that is in use.
        let other = wish.with_arguments(&format!(r#"{{"args":{{"customer":"bob","amount":{n}}}}}"#));
        house.pass_delivered(&gate, &other, &script);
        prune(retention(1, 1));
    }
    assert_eq!(house.effects().len(), 3, "only the first is old enough");
}

#[test]
fn a_clock_that_is_far_past_the_newest_line_prunes_nothing_by_itself() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    let kept = retention(1, 1);
    let prune = || block_on(gate.ledger.prune_if_due(kept, house.clock.now(), None)).unwrap();
    prune();
    house.pass_delivered(&gate, &wish, &script);
    house.clock.jump(365 * DAY as i64 * 1_000_000);
    let now = house.clock.now();
    assert!(block_on(gate.ledger.far_behind(now)).unwrap().is_some());
    assert_eq!((prune(), house.effects().len()), (None, 1));
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 1, "a retry does not run");
}

/// Whatever was written by the wrong clock meanwhile.
#[test]
fn a_fact_is_as_young_as_the_clock_says_that_makes_it_youngest() {
    let (house, wish, script) = (House::new(), Wish::consequential().in_run("r"), Script::succeeds());
    let gate = house.gate();
    let other = wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#);
    house.pass_delivered(&gate, &wish, &script);
    house.clock.jump(365 * DAY as i64 * 1_000_000);
    house.pass_delivered(&gate, &other, &script);
    let prune = || {
        let pruned = gate.ledger.prune(retention(1, 1), house.clock.now(), house.clock.uptime());
        let report = block_on(pruned).unwrap();
        (report.replies_dropped, report.facts_dropped)
    };
    assert_eq!(prune(), (0, 0));
    house.wait(seconds(DAY - 1));
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(script.sent(), 2);
    house.wait(seconds(2));
    assert_eq!(prune(), (0, 2));
}

#[test]
fn a_clock_that_leaps_makes_retention_forget_nothing() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    let kept = retention(30, 1);
    let now = house.clock.now();
    let prune = |at: At| block_on(gate.ledger.prune_if_due(kept, at, house.clock.uptime())).unwrap();
    prune(now);
    house.pass_delivered(&gate, &wish, &script);
    let wrong = now.plus(seconds(500 * DAY));
    for hours in 0..48 {
        prune(wrong.plus(seconds(hours * 3600)));
        prune(wrong.plus(seconds(hours * 3600)));
    }
    assert_eq!(house.effects().len(), 1);
    // The right clock and the wrong one by turns.
    for _ in 0..40 {
        prune(wrong);
        prune(now);
    }
    assert_eq!(house.effects().len(), 1);
}

#[test]
fn what_was_dropped_is_not_dropped_again() {
    let (house, wish, script) =
        (House::new(), Wish { key: Some("k"), ..Wish::consequential() }, Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    house.wait(seconds(2 * DAY));
    let dropped = || {
        block_on(gate.ledger.prune(retention(1, 1), house.clock.now(), house.clock.uptime()))
            .unwrap()
            .replies_dropped
    };
    assert_eq!((dropped(), dropped()), (1, 0));
}

/// Once its fact is gone, the number that it had is given again.
#[test]
fn a_key_that_joins_means_its_effect_for_as_long_as_that_is_kept_and_never_anothers() {
    let (house, script) = (House::new(), Script::succeeds());
    let mut wish = Wish { key: Some("sdk-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let bob = Wish { key: None, ..wish.with_arguments(r#"{"args":{"customer":"bob","amount":1}}"#) };
    let answered = Wish { key: Some("sdk-2"), ..bob.clone() };
    let gate = house.gate();
    for wish in [&wish, &bob, &answered] {
        house.pass_delivered(&gate, wish, &script);
    }
    assert_eq!(script.sent(), 2);
    house.wait(seconds(3 * DAY));
    for wish in [&wish, &answered] {
        let passed = house.pass(&gate, wish, &script);
        assert_eq!(
            (passed.answer.outcome, script.sent()),
            (OutcomeWord::Replayed, 2),
            "after the window too"
        );
    }
    let report =
        block_on(gate.ledger.prune(retention(1, 1), house.clock.now(), house.clock.uptime())).unwrap();
    assert_eq!(report.facts_dropped, 2);
    house.pass_delivered(&gate, &bob, &script);
    house.wait(seconds(2 * DAY));
    let passed = house.pass_delivered(&gate, &answered, &script);
    assert_eq!(
        (passed.answer.outcome, script.sent()),
        (OutcomeWord::Ran, 4),
        "what it stood for is forgotten"
    );
}

/// A run that tries what another one began, a key that joins, and a probe that cannot tell: each leaves a cell.
#[test]
fn what_stands_beside_an_effect_goes_after_it() {
    let (house, mut wish) = (House::new(), Wish { key: Some("sdk-1"), ..Wish::probed() });
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    wish.rule.scope = Some(ScopeChoice::Global);
    wish.rule.wait = seconds(0);
    let cannot_say = ProbeAnswer::Unknown { why: "it is down".into() };
    let script = Script::answers([refusal(), unclear()]).probes([cannot_say]);
    let gate = house.gate();
    house.pass(&gate, &wish.in_run("one"), &script);
    house.pass(&gate, &wish.in_run("two"), &script);
    let cells = || block_on(house.memory.cell_keys()).unwrap().len();
    let prune = |days: std::ops::Range<u64>| {
        for day in days {
            block_on(gate.ledger.prune(retention(40, 1), house.clock.now().plus(seconds(day * DAY)), None))
                .unwrap();
        }
        (cells(), house.effects().len())
    };
    assert_eq!(prune(0..40), (3, 1), "a doubt keeps all that is known of it");
    let reason = Reason::parse("looked").unwrap();
    let ruling = Ruling { by: "ann".into(), reason, at: house.clock.now() };
    block_on(gate.ledger.resolve(house.effect().id, RulingVerdict::NotApplied, ruling)).unwrap();
    assert_eq!(prune(0..40), (2, 1), "nobody asks about it any more");
    assert_eq!((prune(41..80), script.sent()), ((0, 0), 2));
}

#[test]
fn whoever_makes_what_a_key_was_refused_the_key_means_it() {
    let (house, script) = (House::new(), Script::answers([refusal(), success(), success()]));
    let mut wish = Wish { key: Some("sdk-1"), ..Wish::consequential() };
    wish.rule.caller_key = CallerKey::Joins;
    wish.rule.sorting.key = vec![Path::parse("args.customer").unwrap()];
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    house.pass_delivered(&gate, &Wish { key: None, ..wish.clone() }, &script);
    house.wait(seconds(3 * DAY));
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((passed.answer.outcome, script.sent()), (OutcomeWord::Replayed, 2));
}
