//! One story each.

use crate::house::*;
use semel_core::answer::{Code, EffectWord, OutcomeWord, Retry, Would};
use semel_core::class::{Class, Tier};
use semel_core::effect::{Evidence, NotAppliedWhy, Reply, SEND_WITHIN, State};
use semel_core::ids::Reason;
use semel_core::json::Path;
use semel_core::outcome::Outcome;
use semel_core::policy::rule::Rule;
use semel_core::policy::{ActionFacts, Mode, Policy, PolicyFile};
use semel_gate::agent_ruling::ReportOutcome;
use semel_gate::clock::{Clock, block_on};
use semel_gate::look::Look;
use semel_gate::upstream::ProbeAnswer;
use semel_gate::{Gate, GivenReply, Passed};
use semel_ledger::memory::InjectedFault;
use semel_ledger::rulings::RulingVerdict;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn state(house: &House) -> &'static str {
    house.effect().state.word()
}

// Joining and replaying.

#[test]
fn concurrent_twins_are_joined_and_get_the_same_reply() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(3), success());
    let calls: Vec<_> = (1..=3)
        .map(|n| house.start(n, call(&house.process(n, Mode::Guard).0, &wish, &script, &house.clock)))
        .collect();
    house.settle();
    let passed: Vec<_> = calls.iter().map(|slot| take(slot).unwrap()).collect();
    assert_eq!(script.sent(), 1);
    let joined: Vec<_> = passed.iter().filter(|p| p.answer.outcome == OutcomeWord::Joined).collect();
    assert_eq!(joined.len(), 2);
    for twin in joined {
        assert!(twin.answer.ok);
        assert_eq!(twin.answer.effect, EffectWord::Noop);
        assert_eq!(twin.reply, GivenReply::Recorded(b"reply 1".to_vec()));
    }
}

#[test]
fn whoever_says_more_than_a_twin_does_not_take_its_passing_refusal() {
    let passing = || match refusal() {
        Outcome::NotApplied { why, .. } => Outcome::NotApplied { why, reply: Reply::Unknown },
        other => other,
    };
    for (refused, twin, sends) in [
        (passing(), Script::succeeds().says_more(), 1),
        (passing(), Script::succeeds(), 0),
        (refusal(), Script::succeeds().says_more(), 0),
    ] {
        let (house, wish) = (House::new(), Wish::consequential());
        let named = Script::after(seconds(3), refused);
        house.start(1, call(&house.process(1, Mode::Guard).0, &wish, &named, &house.clock));
        let joins = house.start(2, {
            let gate = house.process(2, Mode::Guard).0;
            let (clock, call) = (house.clock.clone(), call(&gate, &wish, &twin, &house.clock));
            async move {
                clock.nap(seconds(1)).await;
                call.await
            }
        });
        house.settle();
        assert_eq!(take(&joins).unwrap().answer.ok, sends == 1);
        assert_eq!((named.sent(), twin.sent()), (1, sends));
    }
}

#[test]
fn another_process_has_the_time_to_mark_what_it_has_delivered() {
    for (delivered, sent) in [(true, 2), (false, 1)] {
        let (house, wish, script) = (House::new(), Wish::of(Class::Act), Script::succeeds());
        let (here, there) = (house.process(1, Mode::Guard).0, house.process(2, Mode::Guard).0);
        let first = house.pass(&here, &wish, &script);
        let repeat = house.start(2, call(&there, &wish, &script, &house.clock));
        let marks = house.start(1, {
            let clock = house.clock.clone();
            async move {
                clock.sleep(Duration::from_millis(20)).await;
                if delivered {
                    here.delivered(&first.delivery.expect("a success")).await.expect("the ledger is well");
                }
            }
        });
        house.settle();
        take(&marks);
        let outcome = take(&repeat).unwrap().answer.outcome;
        assert_eq!(outcome == OutcomeWord::Replayed, !delivered);
        assert_eq!(script.sent(), sent);
    }
}

#[test]
fn twins_of_a_refused_attempt_share_the_refusal() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(3), refusal());
    let gate = house.gate();
    let one = house.start(1, call(&gate, &wish, &script, &house.clock));
    let other = house.start(1, call(&gate, &wish, &script, &house.clock));
    house.settle();
    assert_eq!(script.sent(), 1);
    for slot in [one, other] {
        assert_eq!(code(&take(&slot).unwrap()), Some(Code::UpstreamRefused));
    }
}

#[test]
fn a_twin_whose_patience_ends_is_told_that_it_is_in_flight() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.wait = seconds(2);
    let script = Script::after(seconds(30), success());
    let gate = house.gate();
    let one = house.start(1, call(&gate, &wish, &script, &house.clock));
    let other = house.start(1, call(&gate, &wish, &script, &house.clock));
    house.settle();
    let mut codes = [code(&take(&one).unwrap()), code(&take(&other).unwrap())];
    codes.sort_by_key(Option::is_some);
    assert_eq!(codes, [None, Some(Code::InFlight)]);
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_repeat_of_a_delivered_success_is_replayed_without_a_durable_commit() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let before = house.memory.durable_commits();
    for _ in 0..3 {
        let passed = house.pass_delivered(&gate, &wish, &script);
        assert_eq!(passed.answer.outcome, OutcomeWord::Replayed);
        assert_eq!(passed.reply, GivenReply::Recorded(b"reply 1".to_vec()));
    }
    assert_eq!(house.memory.durable_commits(), before);
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_success_that_was_not_delivered_is_handed_over() {
    for class in [Class::Act, Class::Generate, Class::Consequential] {
        let (house, wish, script) = (House::new(), Wish::of(class), Script::succeeds());
        let gate = house.gate();
        house.pass(&gate, &wish, &script);
        house.wait(seconds(7 * 24 * 3600));
        assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed, "{class}");
        assert_eq!(script.sent(), 1);
    }
}

/// On (its answer was lost), off, on: an old answer would leave it off.
#[test]
fn what_converges_is_sent_again_also_where_its_answer_was_lost() {
    let (house, wish, script) = (House::new(), Wish::of(Class::Convergent), Script::succeeds());
    let gate = house.gate();
    for sent in 1..=2 {
        assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Ran);
        assert_eq!(script.sent(), sent);
    }
    let keyed = Wish { key: Some("set-1"), ..wish };
    house.pass(&gate, &keyed, &script);
    assert_eq!(
        house.pass(&gate, &keyed, &script).answer.outcome,
        OutcomeWord::Replayed,
        "a key is one effect"
    );
}

#[test]
fn a_repeat_of_a_delivered_act_runs_and_is_flagged() {
    let (house, wish, script) = (House::new(), Wish::of(Class::Act), Script::succeeds());
    let gate = house.gate();
    assert!(!house.pass_delivered(&gate, &wish, &script).answer.possible_repeat);
    assert!(house.pass_delivered(&gate, &wish, &script).answer.possible_repeat);
    assert_eq!(script.sent(), 2);
}

#[test]
fn a_refusal_is_not_replayed() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([refusal(), success()]);
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::UpstreamRefused));
    let passed = house.pass(&gate, &wish, &script);
    assert!(passed.answer.ok);
    assert_eq!(house.effect().attempts.len(), 2);
}

#[test]
fn a_caller_that_joined_gets_its_answer_even_if_the_record_has_gone_on() {
    let (house, mut wish) = (House::new(), Wish::of(Class::Act));
    wish.rule.timeout = Some(seconds(60));
    let script = Script::after(seconds(2), success());
    let (runner, sleeper) = (house.process(1, Mode::Guard).0, house.process(2, Mode::Guard).0);
    let first = house.start(1, {
        let (gate, clock, wish, script) =
            (Arc::clone(&runner), house.clock.clone(), wish.clone(), script.clone());
        async move {
            for _ in 0..2 {
                let passed = call(&gate, &wish, &script, &clock).await.unwrap();
                gate.delivered(passed.delivery.as_ref().unwrap()).await.unwrap();
            }
        }
    });
    let twin = house.start(2, {
        let (clock, call) = (house.clock.clone(), call(&sleeper, &wish, &script, &house.clock));
        async move {
            clock.nap(seconds(1)).await;
            call.await
        }
    });
    // The twin sleeps through the end of the first effect and the beginning of the second.
    house.start(0, {
        let (orders, clock) = (house.orders.clone(), house.clock.clone());
        async move {
            clock.nap(Duration::from_millis(1_500)).await;
            orders.pause(2, clock.elapsed() + seconds(10));
        }
    });
    house.settle();
    take(&first);
    let passed = take(&twin).unwrap();
    assert_eq!(passed.answer.outcome, OutcomeWord::Joined);
    assert_eq!(passed.reply, GivenReply::Recorded(b"reply 1".to_vec()));
    assert_eq!(script.sent(), 2);
}

// Doubt.

#[test]
fn an_unclear_answer_is_in_doubt_and_never_blindly_repeated() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::answers([unclear()]));
    let gate = house.gate();
    let first = house.pass(&gate, &wish, &script);
    assert_eq!((code(&first), first.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
    let second = house.pass(&gate, &wish, &script);
    assert_eq!((code(&second), second.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Held));
    assert_eq!(second.answer.effect, EffectWord::Unknown);
    assert_eq!(script.sent(), 1);
}

#[test]
fn the_death_of_a_holder_leaves_a_doubt() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(5), success());
    let (gate, holders) = house.process(1, Mode::Guard);
    house.start(1, call(&gate, &wish, &script, &house.clock));
    house.dies_after(seconds(1), 1, holders);
    house.settle();
    let passed = house.pass(&house.gate(), &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert!(passed.answer.trouble.unwrap().what_happened.contains("the process that ran it ended"));
    assert_eq!(script.sent(), 1);
    assert_eq!(house.journaled("lapsed"), 1);
}

#[test]
fn a_late_success_resolves_the_doubt() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.timeout = Some(seconds(5));
    let slow = Script::after(seconds(30), success());
    let (gate, clock) = (house.gate(), house.clock.clone());
    let first = house.start(1, call(&gate, &wish, &slow, &house.clock));
    let second = house.start(2, {
        let call = call(&house.process(2, Mode::Guard).0, &wish, &slow, &house.clock);
        async move {
            clock.nap(seconds(10)).await;
            call.await
        }
    });
    house.settle();
    assert_eq!(code(&take(&second).unwrap()), Some(Code::InDoubt));
    assert!(take(&first).unwrap().answer.ok);
    let third = house.pass(&gate, &wish, &slow);
    assert_eq!(third.answer.outcome, OutcomeWord::Replayed);
    assert_eq!(slow.sent(), 1);
}

#[test]
fn a_paused_sender_does_not_send_past_its_last_moment() {
    // The claim's commit is answered late: by then the sender's time is over, on either clock.
    for on_the_wall in [false, true] {
        let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
        let gate = house.process(1, Mode::Guard).0;
        let (orders, clock) = (house.orders.clone(), house.clock.clone());
        house.after_next_commit(move || match on_the_wall {
            true => clock.jump(11_000_000),
            false => orders.pause(1, clock.elapsed() + seconds(11)),
        });
        let slot = house.start(1, call(&gate, &wish, &script, &house.clock));
        house.settle();
        let passed = take(&slot).unwrap();
        assert_eq!(code(&passed), Some(Code::NotStarted), "{on_the_wall}");
        assert_eq!((script.sent(), state(&house)), (0, "not applied"));
    }
}

#[test]
fn a_yes_of_the_probe_answers_the_call_that_was_unclear() {
    let (house, wish) = (House::new(), Wish::probed());
    let script = Script::answers([unclear()]).probes([yes()]);
    let passed = house.pass(&house.gate(), &wish, &script);
    assert!(passed.answer.ok);
    assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    assert_eq!(passed.answer.evidence, Some(Evidence::Probed));
    assert_eq!(passed.reply, GivenReply::Recorded(b"found".to_vec()));
    assert_eq!((script.sent(), script.asked()), (1, 1));
}

#[test]
fn a_no_of_the_probe_counts_after_the_last_moment_for_sending_and_quiet() {
    let (house, wish) = (House::new(), Wish::probed());
    let script = Script::answers([unclear(), success()]).probes([ProbeAnswer::No]);
    let gate = house.gate();
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!(code(&passed), Some(Code::UpstreamRefused), "the caller decides whether to make it again");
    assert_eq!(script.sent(), 1);
    let elapsed = house.clock.elapsed();
    assert!(elapsed >= SEND_WITHIN + seconds(5) && elapsed < SEND_WITHIN + seconds(8), "{elapsed:?}");
    assert!(house.pass(&gate, &wish, &script).answer.ok);
    assert_eq!(script.sent(), 2);
}

#[test]
fn a_no_that_does_not_count_yet_leaves_the_doubt() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = seconds(3);
    let script = Script::answers([unclear()]).probes([ProbeAnswer::No]);
    let passed = house.pass(&house.gate(), &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert!(passed.answer.reason.unwrap().contains("may still be carried out"));
    assert!(script.asked() > 1);
    assert_eq!(state(&house), "in doubt");
}

#[test]
fn a_no_speaks_for_the_moment_at_which_it_was_asked() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = seconds(3);
    // Asked at once, answered long after the sender's time and quiet are over.
    let script = Script::answers([unclear()]).slow_probes([(seconds(60), ProbeAnswer::No)]);
    let passed = house.pass(&house.gate(), &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert_eq!(state(&house), "in doubt");
}

/// It has waited for a slow upstream until it died, and nobody has told that one.
#[test]
fn a_no_does_not_count_at_once_after_the_death_of_a_holder() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = seconds(3);
    let slow = Script::after(seconds(600), success());
    let (gate, holders) = house.process(1, Mode::Guard);
    house.start(1, call(&gate, &wish, &slow, &house.clock));
    house.dies_after(seconds(60), 1, holders);
    house.settle();
    let next = Script::succeeds().probes([ProbeAnswer::No]);
    let held = house.pass(&house.process(2, Mode::Guard).0, &wish, &next);
    assert_eq!((code(&held), slow.sent(), next.sent()), (Some(Code::InDoubt), 1, 0));
    house.wait(seconds(5));
    assert!(house.pass(&house.process(2, Mode::Guard).0, &wish, &next).answer.ok);
    assert_eq!(next.sent(), 1);
}

/// Rule 17: somebody of whom nothing is heard may still be at work.
#[test]
fn the_silence_of_a_holder_leaves_a_doubt_and_makes_no_no_count() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = seconds(60);
    let (gate, holders) = house.process(1, Mode::Guard);
    let slow = Script::after(seconds(300), success()).by_child(None);
    let first = house.start(1, call(&gate, &wish, &slow, &house.clock));
    let next = Script::succeeds().probes([ProbeAnswer::No]);
    let second = house.start(2, {
        let (clock, call) =
            (house.clock.clone(), call(&house.process(2, Mode::Guard).0, &wish, &next, &house.clock));
        async move {
            clock.nap(seconds(10)).await;
            let silence = holders.silence();
            let held = call.await;
            drop(silence);
            held
        }
    });
    house.settle();
    let held = take(&second).unwrap();
    assert_eq!((code(&held), next.sent()), (Some(Code::InDoubt), 0));
    assert!(held.answer.trouble.unwrap().what_happened.contains("has not been heard of"));
    assert!(take(&first).unwrap().answer.ok, "it was at work all the time");
    assert_eq!((slow.sent(), state(&house)), (1, "applied"));
}

#[test]
fn a_probe_that_cannot_tell_leaves_the_doubt_and_says_why() {
    let (house, wish) = (House::new(), Wish::probed());
    let script = Script::answers([unclear()]).probes([ProbeAnswer::Unknown { why: "truncated page".into() }]);
    let passed = house.pass(&house.gate(), &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert_eq!(passed.answer.reason.as_deref(), Some("the probe could not tell: truncated page"));
}

#[test]
fn an_own_attempt_that_somebody_else_cleared_up_is_answered_as_what_it_was() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.class = Class::Act;
    let slow = Script::answers([unclear()]).slow_probes([(seconds(9), ProbeAnswer::No)]);
    let quick = Script::succeeds().probes([yes()]);
    let first = house.start(1, call(&house.process(1, Mode::Guard).0, &wish, &slow, &house.clock));
    let other = house.process(2, Mode::Guard).0;
    house.start(2, {
        let (gate, clock) = (Arc::clone(&other), house.clock.clone());
        let call = call(&other, &wish, &quick, &house.clock);
        async move {
            clock.nap(seconds(1)).await;
            let passed = call.await.unwrap();
            gate.delivered(passed.delivery.as_ref().unwrap()).await.unwrap();
        }
    });
    house.settle();
    let passed = take(&first).unwrap();
    assert!(passed.answer.ok, "{:?}", passed.answer);
    assert_eq!(passed.answer.outcome, OutcomeWord::Ran);
    assert_eq!((slow.sent(), quick.sent()), (1, 0));
}

#[test]
fn a_probe_that_goes_before_skips_what_is_there_and_leaves_no_record() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.probe.as_mut().unwrap().before = true;
    let script = Script::succeeds().probes([yes()]);
    let gate = house.gate();
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((passed.answer.ok, passed.answer.effect), (true, EffectWord::Noop));
    assert_eq!(passed.reply, GivenReply::Recorded(b"found".to_vec()));
    assert_eq!(script.sent(), 0);
    assert!(house.effects().is_empty());

    for answer in [ProbeAnswer::No, ProbeAnswer::Unknown { why: "error".into() }] {
        let house = House::new();
        let script = Script::succeeds().probes([answer]);
        assert!(house.pass(&house.gate(), &wish, &script).answer.ok);
        assert_eq!((script.asked(), script.sent()), (1, 1));
    }
}

#[test]
fn a_ruling_ends_a_doubt_and_reopening_brings_it_back() {
    let (house, wish, script) =
        (House::new(), Wish::consequential(), Script::answers([unclear(), success()]));
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    let id = house.effect().id;
    let ruling = |at| semel_core::effect::Ruling {
        by: "ann".into(),
        reason: semel_core::ids::Reason::parse("looked").unwrap(),
        at,
    };
    let now = house.clock.now();
    block_on(gate.ledger.resolve(id, RulingVerdict::Applied { reply: None }, ruling(now))).unwrap();
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((passed.answer.ok, passed.reply), (true, GivenReply::None));
    block_on(gate.ledger.reopen(id, ruling(now))).unwrap();
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    block_on(gate.ledger.resolve(id, RulingVerdict::NotApplied, ruling(now))).unwrap();
    assert!(house.pass(&gate, &wish, &script).answer.ok);
    assert_eq!(script.sent(), 2);
}

/// Rule 2: no change of a clock makes anything claimable.
#[test]
fn a_clock_that_jumps_forward_does_not_make_a_no_count() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = Duration::ZERO;
    let gate = house.gate();
    let script = Script::answers([unclear(), success()]).probes([ProbeAnswer::No]);
    house.pass(&gate, &wish, &script);
    house.clock.jump(3_600_000_000);
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    let restarted = house.gate();
    for gate in [&gate, &restarted] {
        house.wait(seconds(4));
        assert_eq!(code(&house.pass(gate, &wish, &script)), Some(Code::InDoubt));
    }
    assert_eq!(script.sent(), 1);
    house.wait(SEND_WITHIN);
    let told = house.pass(&restarted, &wish, &script).answer;
    assert!(told.ok, "it has been quiet for as long as the rule says, since it could last be sent");
    assert_eq!(script.sent(), 2);
}

// Sending again.

#[test]
fn convergent_effects_are_resent_within_the_budget_and_then_for_whoever_asks() {
    let (house, mut wish) = (House::new(), Wish::of(Class::Convergent));
    wish.rule.budget = 2;
    let script = Script::answers([unclear()]);
    let gate = house.gate();
    let first = house.pass(&gate, &wish, &script);
    assert_eq!((code(&first), first.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
    assert_eq!(script.sent(), 3, "the first and two re-sends");
    let second = house.pass(&gate, &wish, &script);
    assert_eq!((code(&second), second.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
    assert_eq!(script.sent(), 4, "who wants it once more gets it once, and no more re-sends in this storm");
    house.wait(seconds(61));
    house.pass(&gate, &wish, &script);
    assert_eq!(script.sent(), 6, "the storm is over, and its first is one of two");
}

/// Whoever has gone may have written something else since. To ask is another matter.
#[test]
fn what_converges_is_not_sent_again_for_nobody_but_asked_for_where_that_is_possible() {
    let left_alone = || Script::answers([unclear()]).left_alone();
    let wish = Wish::of(Class::Convergent);
    let (house, script) = (House::new(), left_alone());
    assert_eq!(code(&house.pass(&house.gate(), &wish, &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 1);

    let probed = Wish { rule: Rule { probe: Wish::probed().rule.probe, ..wish.rule.clone() }, ..wish };
    let (house, script) = (House::new(), left_alone().probes([yes()]));
    assert!(house.pass(&house.gate(), &probed, &script).answer.ok);
    assert_eq!((script.sent(), script.asked(), state(&house)), (1, 1, "applied"));

    let cannot_say = ProbeAnswer::Unknown { why: "something else is there".into() };
    let (house, script) = (House::new(), left_alone().probes([cannot_say]));
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &probed, &script)), Some(Code::InDoubt));
    assert_eq!((script.sent(), script.asked()), (1, 1));
    let next = Script::succeeds();
    assert!(house.pass(&gate, &probed, &next).answer.ok, "whoever wants it once more gets it");
    assert_eq!((next.sent(), house.journaled("duplicate_detected")), (1, 0));
}

#[test]
fn once_the_budget_is_spent_whoever_can_be_asked_is_asked() {
    let (house, mut wish) = (House::new(), Wish::keyed(seconds(600)));
    wish.rule.budget = 1;
    let gate = house.gate();
    let script = Script::answers([unclear()]).probes([yes()]);
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::BudgetSpent));
    assert_eq!((script.sent(), script.asked()), (2, 0));
    wish.rule.probe = Wish::probed().rule.probe;
    assert!(house.pass(&gate, &wish, &script).answer.ok);
    assert_eq!((script.sent(), script.asked()), (2, 1));
}

#[test]
fn a_keyed_effect_is_resent_with_the_same_key_while_the_key_lives() {
    let (house, mut wish) = (House::new(), Wish::keyed(seconds(600)));
    wish.rule.budget = 5;
    let script = Script::answers([unclear(), unclear(), success()]);
    let passed = house.pass(&house.gate(), &wish, &script);
    assert!(passed.answer.ok);
    assert_eq!((passed.answer.tier, passed.answer.attempt.map(|n| n.0)), (Tier::Keyed, Some(3)));
    // What failed may still be at work there: each time a while passes before it is sent again.
    let sent = house.effect().attempts.iter().map(|attempt| attempt.claimed_at).collect::<Vec<_>>();
    let pauses: Vec<_> = sent.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(pauses[0] >= Duration::from_millis(500) && pauses[1] >= Duration::from_secs(1), "{pauses:?}");
    let keys = script.keys();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0] && key.starts_with("semel_")));
}

/// By what the machine knows, and after a reboot by what the ledger has seen.
#[test]
fn a_key_that_is_past_its_life_is_not_sent_because_the_clock_was_set_back() {
    for reboots in [false, true] {
        let (house, wish) = (House::new(), Wish::keyed(seconds(65)));
        let (gate, script) = (house.gate(), Script::answers([unclear(), success()]));
        let mut once = wish.clone();
        once.rule.budget = 0;
        house.pass(&gate, &once, &script);
        let sent = script.sent();
        house.wait(seconds(70));
        if reboots {
            let other = Wish::consequential().with_arguments(r#"{"args":{"customer":"bob"}}"#);
            house.pass_delivered(&gate, &other, &Script::succeeds());
            house.clock.reboot();
        }
        house.clock.jump(-68_000_000);
        let passed = house.pass(&house.gate(), &wish, &script);
        assert_eq!((code(&passed), script.sent()), (Some(Code::InDoubt), sent), "reboots: {reboots}");
    }
}

#[test]
fn a_keyed_effect_is_held_once_its_key_may_be_forgotten() {
    let (house, wish) = (House::new(), Wish::keyed(seconds(600)));
    let script = Script::after(seconds(541), unclear());
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 1);
}

// Turns, families, lookalikes, drift, repetition.

#[test]
fn different_intents_on_one_resource_take_turns() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.serialize_by = Some(Path::parse("args.customer").unwrap());
    let script = Script::after(seconds(3), success());
    let calls: Vec<_> = (1..=3)
        .map(|n| {
            let wish = wish.with_arguments(&format!(r#"{{"args":{{"customer":"ann","amount":{n}}}}}"#));
            house.start(n, call(&house.process(n, Mode::Guard).0, &wish, &script, &house.clock))
        })
        .collect();
    house.settle();
    assert!(calls.iter().all(|slot| take(slot).unwrap().answer.ok));
    assert!(house.clock.elapsed() >= seconds(9), "they overlapped: {:?}", house.clock.elapsed());
}

/// A turn that is given back is gone, and the next one looks as it did at its beginning.
#[test]
fn a_turn_that_was_seen_and_given_to_another_meanwhile_is_not_taken() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.serialize_by = Some(Path::parse("args.customer").unwrap());
    let script = Script::after(seconds(3), success());
    let wish = |n| wish.with_arguments(&format!(r#"{{"args":{{"customer":"ann","amount":{n}}}}}"#));
    let call = |n| call(&house.process(n, Mode::Guard).0, &wish(n), &script, &house.clock);
    let first = house.start(1, call(1));
    let second = house.start(2, call(2));
    let third = house.start(3, {
        let (pause, clock, call) = (house.pause_after_next_cell(), house.clock.clone(), call(3));
        async move {
            clock.nap(seconds(1)).await;
            // It reads that the first has the turn, and by the time it looks at the first, the second has it.
            pause(seconds(3));
            call.await
        }
    });
    house.settle();
    assert!([first, second, third].iter().all(|slot| take(slot).unwrap().answer.ok));
    assert!(house.clock.elapsed() >= seconds(9), "they overlapped: {:?}", house.clock.elapsed());
}

#[test]
fn who_waits_too_long_for_a_turn_is_told_who_has_it() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.serialize_by = Some(Path::parse("args.customer").unwrap());
    wish.rule.wait = seconds(1);
    let script = Script::after(seconds(30), success());
    let gate = house.gate();
    let first = house.start(1, call(&gate, &wish, &script, &house.clock));
    let other = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    let clock = house.clock.clone();
    let second = house.start(2, {
        let call = call(&house.process(2, Mode::Guard).0, &other, &script, &house.clock);
        async move {
            clock.nap(seconds(1)).await;
            call.await
        }
    });
    house.settle();
    assert!(take(&first).unwrap().answer.ok);
    let trouble = take(&second).unwrap().answer.trouble.unwrap();
    assert_eq!(trouble.code, Code::InFlight);
    assert!(trouble.what_happened.contains("has its turn on the same resource"), "{}", trouble.what_happened);
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_doubt_frees_its_turn() {
    let (house, mut wish) = (House::new(), Wish::consequential());
    wish.rule.serialize_by = Some(Path::parse("args.customer").unwrap());
    let gate = house.gate();
    house.pass(&gate, &wish, &Script::answers([unclear()]));
    let other = wish.with_arguments(r#"{"args":{"customer":"ann","amount":2}}"#);
    assert!(house.pass(&gate, &other, &Script::succeeds()).answer.ok);
}

#[test]
fn an_open_effect_holds_the_same_intent_in_every_run() {
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    house.pass(&gate, &wish.in_run("a"), &Script::answers([unclear()]));
    let script = Script::succeeds();
    let passed = house.pass(&gate, &wish.in_run("b"), &script);
    assert_eq!((code(&passed), passed.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Held));
    assert_eq!(script.sent(), 0);
}

#[test]
fn another_run_waits_for_the_same_intent_in_flight_and_then_runs_its_own() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::after(seconds(3), success());
    let one =
        house.start(1, call(&house.process(1, Mode::Guard).0, &wish.in_run("a"), &script, &house.clock));
    let two =
        house.start(2, call(&house.process(2, Mode::Guard).0, &wish.in_run("b"), &script, &house.clock));
    house.settle();
    for slot in [one, two] {
        assert_eq!(take(&slot).unwrap().answer.outcome, OutcomeWord::Ran);
    }
    assert_eq!(script.sent(), 2);
    assert!(house.clock.elapsed() >= seconds(6));
}

#[test]
fn a_lookalike_of_a_doubt_is_held_and_the_differing_path_is_named() {
    let (house, wish) = (House::new(), Wish::consequential());
    let letter = |body: &str| {
        wish.with_arguments(&format!(r#"{{"args":{{"to":"ann@example.com","body":"{body}"}}}}"#))
    };
    let gate = house.gate();
    house.pass(&gate, &letter("Your order has shipped."), &Script::answers([unclear()]));
    let script = Script::succeeds();
    let held = house.pass(&gate, &letter("Good news: it has shipped!"), &script);
    let trouble = held.answer.trouble.unwrap();
    assert!(trouble.what_happened.ends_with("It differs only in args.body."), "{}", trouble.what_happened);
    assert_eq!((trouble.code, trouble.differing), (Code::InDoubt, vec!["args.body".to_owned()]));
    assert_eq!(script.sent(), 0);
    let traced = wish.with_arguments(r#"{"args":{"to":"ann@example.com","body":"Hello","trace_id":"t1"}}"#);
    let told = house.pass(&gate, &traced, &script).answer.trouble.unwrap().what_happened;
    assert!(told.ends_with("It differs in args.body."), "something else differs too: {told}");
    let other = wish.with_arguments(r#"{"args":{"to":"bob@example.com","body":"Your order has shipped."}}"#);
    assert!(house.pass(&gate, &other, &script).answer.ok);
}

// Cancelling.

#[test]
fn what_has_happened_or_is_happening_was_not_prevented() {
    for late in [false, true] {
        let (house, wish) = (House::new(), Wish::consequential().in_run("a"));
        let gate = house.gate();
        let script = Script::answers([if late { unclear() } else { success() }]);
        house.pass(&gate, &wish, &script);
        let cancel = || block_on(gate.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap();
        cancel();
        let refused = house.pass(&gate, &wish, &script);
        assert_eq!((code(&refused), script.sent()), (Some(Code::Cancelled), 1));
        assert_eq!(cancel().prevented.len(), 0);
    }
}

#[test]
fn a_cancelled_run_starts_nothing_and_says_what_was_prevented() {
    let (house, wish, script) = (House::new(), Wish::consequential().in_run("a"), Script::succeeds());
    let gate = house.gate();
    let now = house.clock.now();
    assert!(block_on(gate.ledger.cancel(TENANT, "a", false, None, now)).unwrap().drained);
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((code(&passed), passed.answer.outcome), (Some(Code::Cancelled), OutcomeWord::Refused));
    let cancelled = block_on(gate.ledger.cancel(TENANT, "a", false, None, now)).unwrap();
    assert_eq!(cancelled.prevented.len(), 1);
    block_on(gate.ledger.cancel(TENANT, "a", true, None, now)).unwrap();
    assert!(house.pass(&gate, &wish, &script).answer.ok);
}

#[test]
fn the_fence_is_checked_in_the_claims_own_commit() {
    let (house, wish) = (House::new(), Wish::consequential().in_run("a"));
    let (gate, now) = (house.gate(), house.clock.now());
    let other = house.gate();
    let script = Script::succeeds().before_the_claim(move || {
        assert!(block_on(other.ledger.cancel(TENANT, "a", false, None, now)).unwrap().drained);
    });
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!(code(&passed), Some(Code::Cancelled));
    assert_eq!(script.sent(), 0);
    assert!(house.effects().is_empty());
}

#[test]
fn a_cancel_is_drained_only_when_no_sender_can_send_any_more() {
    let (house, wish) = (House::new(), Wish::consequential().in_run("a"));
    let gate = house.gate();
    house.pass(&gate, &wish, &Script::answers([unclear()]));
    let drained = |house: &House| {
        block_on(gate.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap().drained
    };
    assert!(!drained(&house));
    house.wait(SEND_WITHIN * 2);
    assert!(!drained(&house), "the margin is the sender's whole time again");
    house.wait(Duration::from_millis(1));
    assert!(drained(&house));
}

#[test]
fn a_cancel_sees_attempts_of_its_run_in_effects_of_other_runs() {
    let (house, gate_wish) = (House::new(), Wish { key: Some("k"), ..Wish::consequential() });
    let gate = house.gate();
    house.pass(&gate, &gate_wish.in_run("a"), &Script::answers([refusal()]));
    let slow = Script::after(seconds(5), success());
    house.start(1, call(&gate, &gate_wish.in_run("b"), &slow, &house.clock));
    let cancelled = house.start(2, {
        let (gate, clock) = (Arc::clone(&gate), house.clock.clone());
        async move {
            clock.nap(seconds(1)).await;
            gate.ledger.cancel(TENANT, "b", false, None, clock.now()).await.unwrap()
        }
    });
    house.settle();
    let cancelled = take(&cancelled);
    assert_eq!((cancelled.drained, cancelled.in_flight.len()), (false, 1));
}

#[test]
fn a_child_that_outlives_its_parent_keeps_the_run_from_being_drained() {
    let (house, wish) = (House::new(), Wish::consequential().in_run("a"));
    let (gate, holders) = house.process(1, Mode::Guard);
    let script = Script::answers([unclear()]);
    // The lock is taken by the first claim; a child started then inherits it.
    semel_ledger::holders::Holders::me(&holders).unwrap();
    let script = script.by_child(holders.inherited());
    house.pass(&gate, &wish, &script);
    holders.release_lock();
    house.wait(seconds(3600));
    let other = house.gate();
    let drained =
        || block_on(other.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap().drained;
    assert!(!drained());
    script.child_ends();
    assert!(drained());
}

// Modes and dry runs.

#[test]
fn observe_claims_nothing_and_blocks_nothing() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.process(1, Mode::Observe).0;
    for _ in 0..2 {
        let passed = house.pass(&gate, &wish, &script);
        assert_eq!((passed.answer.ok, passed.answer.outcome), (true, OutcomeWord::Ran));
    }
    assert_eq!(script.sent(), 2);
    assert!(house.effects().is_empty());
    assert_eq!(house.journaled("observed"), 2);
    assert_eq!(house.memory.durable_commits(), 0);
}

#[test]
fn observe_says_what_is_a_repeat_and_what_it_would_get() {
    let (house, script) = (House::new(), Script::succeeds());
    // Each call comes through a process of its own.
    let observed = |wish: &Wish| {
        house.pass(&house.process(1, Mode::Observe).0, wish, &script);
        let journal = house.journal();
        let line = journal.iter().rfind(|line| line.kind == "observed").expect("it is written down");
        let data: serde_json::Value = serde_json::from_str(&line.data).expect("JSON");
        (data["would"].as_str().unwrap_or_default().to_owned(), data["repeats"]["seen"].as_u64())
    };
    let charge = Wish::consequential();
    assert_eq!(observed(&charge), ("run".into(), None));
    assert_eq!(observed(&charge), ("replay".into(), Some(1)));
    assert_eq!(observed(&charge.again("one more")), ("run".into(), Some(2)));
    assert_eq!(observed(&charge.with_arguments(r#"{"n": 2}"#)), ("run".into(), None));
    let act = Wish { arguments: r#"{"n": 3}"#.into(), ..Wish::of(Class::Act) };
    assert_eq!(observed(&act), ("run".into(), None));
    assert_eq!(observed(&act), ("run".into(), Some(1)), "it runs, and is a repeat");
    house.wait(seconds(25 * 3600));
    assert_eq!(observed(&charge), ("run".into(), None), "its window is over");
    assert_eq!(script.sent(), 7);
}

#[test]
fn observe_goes_on_when_the_ledger_is_in_trouble() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    house.memory.inject(InjectedFault::NotRead);
    assert!(house.pass(&house.process(1, Mode::Observe).0, &wish, &script).answer.ok);
}

#[test]
fn strict_makes_every_action_that_is_no_read_consequential() {
    let file = PolicyFile { path: "semel.toml".into(), text: "version = 1\nmode = \"strict\"\n".into() };
    let policy = Policy::load(vec![file]).unwrap();
    assert_eq!(policy.mode, Mode::Strict);
    let (house, script) = (House::new(), Script::succeeds());
    let mut wish = Wish::of(Class::Act);
    let poke = ActionFacts::new("fn:poke", &semel_core::json::Json::Null);
    wish.rule = Arc::unwrap_or_clone(policy.rule_for(&poke));
    let gate = house.process(1, policy.mode).0;
    house.pass_delivered(&gate, &wish, &script);
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    let read = policy.rule_for(&ActionFacts::new("fn:get_thing", &semel_core::json::Json::Null));
    assert_eq!(read.class, Class::Read);
}

#[test]
fn reads_pass_and_leave_no_trace_even_when_the_ledger_is_down() {
    let (house, wish, script) = (House::new(), Wish::of(Class::Read), Script::succeeds());
    let gate = house.gate();
    for _ in 0..3 {
        house.memory.inject(InjectedFault::NotRead);
        let passed = house.pass(&gate, &wish, &script);
        assert_eq!((passed.answer.ok, passed.answer.effect), (true, EffectWord::None));
    }
    assert_eq!((script.sent(), house.memory.durable_commits()), (3, 0));
}

#[test]
fn a_dry_run_says_what_would_happen_and_writes_nothing() {
    let (house, wish) = (House::new(), Wish::consequential().in_run("a"));
    let gate = house.gate();
    let dry = |wish: &Wish| dry_run(&gate, wish, &Script::default(), &house.clock);
    let would = |wish: &Wish| dry(wish).dry_run.unwrap().would;
    let answer = dry(&wish);
    assert_eq!((answer.outcome, answer.effect), (OutcomeWord::DryRun, EffectWord::WouldUpdate));
    assert_eq!(would(&wish), Would::Run);
    assert!(house.effects().is_empty() && house.journal().is_empty());

    house.pass_delivered(&gate, &wish, &Script::succeeds());
    let before = (house.journal().len(), house.effects());
    assert_eq!((would(&wish), dry(&wish).effect), (Would::Replay, EffectWord::WouldNoop));
    assert_eq!((house.journal().len(), house.effects()), before);

    let doubtful = wish.with_arguments(r#"{"args":{"customer":"bob"}}"#);
    house.pass(&gate, &doubtful, &Script::answers([unclear()]));
    assert_eq!(would(&doubtful), Would::Hold);
    block_on(gate.ledger.cancel(TENANT, "a", false, None, house.clock.now())).unwrap();
    assert_eq!(would(&wish), Would::Refuse);
}

#[test]
fn a_dry_run_asks_what_the_call_would_ask_first() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.probe.as_mut().unwrap().before = true;
    let (gate, unknown) = (house.gate(), ProbeAnswer::Unknown { why: "error".into() });
    for (answer, would) in [(yes(), Would::Replay), (ProbeAnswer::No, Would::Run), (unknown, Would::Run)] {
        let script = Script::default().probes([answer]);
        let told = dry_run(&gate, &wish, &script, &house.clock);
        assert_eq!(told.dry_run.unwrap().would, would);
        assert_eq!(told.effect == EffectWord::WouldNoop, would == Would::Replay);
        assert_eq!((script.asked(), script.sent()), (1, 0));
    }
    assert!(house.effects().is_empty() && house.journal().is_empty());

    let doubtful = Script::answers([unclear()]).probes([ProbeAnswer::Unknown { why: "error".into() }]);
    house.pass(&gate, &wish, &doubtful);
    let asked = Script::default().probes([yes()]);
    let would = dry_run(&gate, &wish, &asked, &house.clock).dry_run.unwrap().would;
    assert_eq!((would, asked.asked()), (Would::Hold, 0), "a doubt is no question of what is there");
}

#[test]
fn a_dry_run_says_what_a_claim_would_come_upon() {
    let house = House::new();
    let letter = |body: &str| {
        let arguments = format!(r#"{{"args":{{"to":"ann@example.com","body":"{body}"}}}}"#);
        Wish::consequential().with_arguments(&arguments).in_run("a")
    };
    let wish = letter("Your order has shipped.");
    let (elsewhere, reworded) = (wish.in_run("b"), letter("Good news: it has shipped!"));
    let (here, there) = (house.process(1, Mode::Guard).0, house.process(2, Mode::Guard).0);
    let clock = house.clock.clone();
    let would = move || {
        [&elsewhere, &reworded]
            .map(|wish| dry_run(&here, wish, &Script::default(), &clock).dry_run.unwrap().would)
    };
    assert_eq!(would(), [Would::Run, Would::Run]);
    let (asks, seen) = (would.clone(), Arc::new(Mutex::new(None)));
    let sees = Arc::clone(&seen);
    let script = Script::answers([unclear()]).while_sending(move || *sees.lock().unwrap() = Some(asks()));
    house.pass(&there, &wish, &script);
    assert_eq!(take(&seen), [Would::Wait, Would::Wait], "while it runs");
    let before = house.journal().len();
    assert_eq!((would(), house.journal().len()), ([Would::Hold, Would::Hold], before), "it is in doubt");
}

// A ledger in trouble.

#[test]
fn with_the_ledger_unreachable_nothing_is_sent() {
    for fault in [InjectedFault::NotRead, InjectedFault::NotWritten] {
        let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
        house.memory.inject(fault);
        assert!(house.try_pass(&house.gate(), &wish, &script).is_err(), "{fault:?}");
        assert_eq!(script.sent(), 0);
    }
}

#[test]
fn only_a_claim_may_be_refused_for_want_of_room_and_every_claim_may() {
    for class in [Class::Consequential, Class::Act, Class::Convergent, Class::Generate] {
        let house = House::new();
        house.pass_delivered(&house.gate(), &Wish::of(class), &Script::succeeds());
        assert_eq!(house.begun(), 1, "{class:?}");
    }
}

#[test]
fn a_claim_whose_commit_went_unanswered_is_recognised_by_its_nonce() {
    for fault in LOST_ANSWERS {
        let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
        house.memory.inject(fault);
        // Not recognised, it would be taken for another's, and waited for.
        assert_eq!(house.pass(&house.gate(), &wish, &script).answer.outcome, OutcomeWord::Ran, "{fault:?}");
        assert_eq!((script.sent(), house.journaled("claimed")), (1, 1), "{fault:?}");
    }
}

const LOST_ANSWERS: [InjectedFault; 3] =
    [InjectedFault::LandsUnanswered, InjectedFault::LandsThenConflicts, InjectedFault::VanishesUnanswered];

#[test]
fn a_settlement_whose_commit_went_unanswered_is_recognised() {
    for fault in LOST_ANSWERS {
        let (house, wish) = (House::new(), Wish::consequential());
        let memory = Arc::clone(&house.memory);
        let script = Script::succeeds().while_sending(move || memory.inject(fault));
        assert!(house.pass(&house.gate(), &wish, &script).answer.ok);
        assert_eq!(house.journaled("settled_applied"), 1, "{fault:?}");
    }
}

#[test]
fn a_reported_failure_whose_commit_went_unanswered_is_journaled_once() {
    let (house, wish) = (House::new(), Wish::of(Class::Act));
    let memory = Arc::clone(&house.memory);
    let why = NotAppliedWhy::Reported("it broke".into());
    let script =
        Script::answers([Outcome::NotApplied { why, reply: Reply::Kept }]).while_sending(move || {
            [InjectedFault::LandsUnanswered, InjectedFault::NotWritten]
                .into_iter()
                .for_each(|fault| memory.inject(fault));
        });
    assert!(!house.pass(&house.gate(), &wish, &script).answer.ok);
    assert_eq!((script.sent(), house.journaled("settled_not_applied"), state(&house)), (1, 1, "not applied"));
}

#[test]
fn an_answer_that_could_not_be_recorded_is_in_doubt_and_no_success() {
    let (house, wish) = (House::new(), Wish::consequential());
    let memory = Arc::clone(&house.memory);
    let script = Script::succeeds()
        .while_sending(move || (0..1_000).for_each(|_| memory.inject(InjectedFault::NotWritten)));
    let gate = house.gate();
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((code(&passed), passed.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
    assert!(passed.answer.trouble.unwrap().what_happened.contains("could not be recorded"));
    assert_eq!(script.sent(), 1);
    assert_eq!(state(&house), "in flight", "its holder lives; it lapses with it");
    let owing = Arc::clone(&gate);
    house.run(async move { owing.settle_pending().await });
    assert_eq!(state(&house), "in flight", "the ledger is still in trouble");
    house.memory.recover();
    let owing = Arc::clone(&gate);
    house.run(async move { owing.settle_pending().await });
    assert_eq!(state(&house), "applied", "it was owed until the ledger was well again");
    assert_eq!(house.pass(&gate, &wish, &script).reply, GivenReply::Recorded(b"reply 1".to_vec()));
    assert_eq!(script.sent(), 1);
}

#[test]
fn an_answer_that_cannot_be_recorded_holds_up_no_other() {
    let house = House::new();
    let gate = house.gate();
    for customer in ["ann", "bob"] {
        let wish =
            Wish::consequential().with_arguments(&format!(r#"{{"args":{{"customer":"{customer}"}}}}"#));
        let memory = Arc::clone(&house.memory);
        let script = Script::succeeds()
            .while_sending(move || (0..1_000).for_each(|_| memory.inject(InjectedFault::NotWritten)));
        assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
        house.memory.recover();
    }
    house.memory.inject(InjectedFault::NotWritten);
    let owing = Arc::clone(&gate);
    house.run(async move { owing.settle_pending().await });
    assert_eq!(house.journaled("settled_applied"), 1, "the first was refused, the second is recorded");
    house.run(async move { gate.settle_pending().await });
    assert_eq!(house.journaled("settled_applied"), 2);
}

/// Nothing may be told as not sent by a look that cannot see what an earlier look of the same call did.
#[test]
fn a_ledger_that_fails_after_an_earlier_look_has_sent_leaves_a_doubt() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::answers([unclear()]));
    let (gate, memory, clock) = (house.gate(), Arc::clone(&house.memory), house.clock.clone());
    let (asked, sends) = (wish.clone(), script.clone());
    let passed = house.run(async move {
        let look = Look::default();
        let mut upstream = actor(&sends, &clock);
        let first = gate.pass_in(&look, &asked.intent(), &asked.rule, &mut upstream).await;
        assert_eq!(code(&first.expect("the ledger is well")), Some(Code::InDoubt));
        (0..1_000).for_each(|_| memory.inject(InjectedFault::NotRead));
        gate.pass_in(&look, &asked.intent(), &asked.rule, &mut upstream).await
    });
    let passed = passed.expect("an answer, not the ledger's trouble");
    assert_eq!((code(&passed), passed.answer.outcome), (Some(Code::InDoubt), OutcomeWord::Ran));
    assert_eq!(script.sent(), 1);
}

#[test]
fn an_agents_no_counts_only_once_nothing_can_be_sent_any_more() {
    let (house, wish) = (House::new(), Wish::consequential());
    let gate = house.gate();
    assert_eq!(code(&house.pass(&gate, &wish, &Script::answers([unclear()]))), Some(Code::InDoubt));
    let report = |happened: bool| {
        let (gate, effect) = (Arc::clone(&gate), house.effect());
        let reason = Reason::parse("I looked").expect("a reason");
        house.run(async move { gate.report(&effect, happened, reason).await }).expect("the ledger is well")
    };
    assert_eq!(report(false), ReportOutcome::TooSoon);
    house.wait(seconds(3_600));
    assert_eq!(report(false), ReportOutcome::Recorded);
    assert_eq!(report(false), ReportOutcome::NotInDoubt);
}

#[test]
fn what_cannot_be_prepared_leaves_no_doubt_and_no_record() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::succeeds().cannot_be_prepared();
    assert_eq!(code(&house.pass(&house.gate(), &wish, &script)), Some(Code::NotStarted));
    assert!(house.effects().is_empty());
}

#[test]
fn why_a_probe_did_not_tell_is_on_record_once_and_briefly() {
    let unknown = |why: &str| ProbeAnswer::Unknown { why: why.into() };
    let (house, wish) = (House::new(), Wish::probed());
    let gate = house.gate();
    let script = Script::answers([unclear()]).probes([unknown("No such key: invoice")]);
    for _ in 0..3 {
        assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    }
    let lines: Vec<_> = house.journal().into_iter().filter(|line| line.kind == "probe_unclear").collect();
    assert_eq!((script.asked(), lines.len()), (3, 1), "the same is said once");
    assert!(lines[0].data.contains("could not tell: No such key: invoice"), "{}", lines[0].data);
    assert_eq!(lines[0].effect, Some(house.effect().id.0));
    for n in 0..50 {
        house.pass(&gate, &wish, &Script::default().probes([unknown(&format!("{n}").repeat(9_000))]));
    }
    let lines: Vec<_> = house.journal().into_iter().filter(|line| line.kind == "probe_unclear").collect();
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|line| line.data.len() < 600));
    assert_eq!((script.sent(), state(&house)), (1, "in doubt"));
}

#[test]
fn a_reply_that_could_not_be_made_of_what_was_found_is_on_record() {
    let failed = Some("`resp[0]` failed: an index is out of bounds".to_owned());
    let (house, wish) = (House::new(), Wish::probed());
    let found = ProbeAnswer::Yes { reply: None, word: None, reply_failed: failed };
    let script = Script::answers([unclear()]).probes([found]);
    assert!(house.pass(&house.gate(), &wish, &script).answer.ok, "it happened all the same");
    assert_eq!((house.journaled("probe_reply_failed"), house.journaled("probed_yes")), (1, 1));
    assert_eq!(script.sent(), 1);
}

#[test]
fn a_doubt_that_the_next_call_settles_asks_for_that_call() {
    for (wish, why) in [
        (Wish::keyed(seconds(24 * 3600)), "under the same key, so it happens once"),
        (Wish::of(Class::Convergent), "doing it twice leaves the same result as doing it once"),
    ] {
        let (house, script) = (House::new(), Script::answers([unclear(), success()]).ends_once_sent());
        let gate = house.gate();
        let lost = house.pass(&gate, &wish, &script).answer.trouble.expect("it is in doubt");
        assert_eq!((lost.code, lost.is_it_safe_to_retry), (Code::InDoubt, Retry::Wait));
        assert!(
            lost.next_step.contains("call it again, unchanged") && lost.next_step.contains(why),
            "{lost:?}"
        );
        assert!(!lost.next_step.contains("Do not call it again"), "{lost:?}");
        assert_eq!(script.sent(), 1);
        // Whoever obeys is answered.
        script.is_back();
        assert!(house.pass(&gate, &wish, &script).answer.ok);
        assert_eq!(script.sent(), 2);
    }
    // Nothing but a look settles what has no key.
    let (house, script) = (House::new(), Script::answers([unclear()]).ends_once_sent());
    let lost = house.pass(&house.gate(), &Wish::consequential(), &script).answer.trouble.expect("a doubt");
    assert_eq!(lost.is_it_safe_to_retry, Retry::No);
    assert!(lost.next_step.starts_with("Do not call it again"), "{lost:?}");
}

// A store that may have lost claims.

#[test]
fn after_an_epoch_a_known_effect_is_not_sent_again_by_its_key() {
    let (house, wish) = (House::new(), Wish::keyed(seconds(24 * 3600)));
    let script = Script::answers([refusal(), success(), success()]);
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    let before = house.memory.snapshot();
    // Refused once, it is tried under another key; and the store forgets that.
    assert!(house.pass_delivered(&gate, &wish, &script).answer.ok);
    house.fail_over(&before);
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 2);
}

#[test]
fn after_an_epoch_an_unseen_intent_is_in_doubt_until_that_is_accepted() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.fail_over(&house.memory.snapshot());
    assert_eq!(code(&house.pass(&gate, &wish, &script)), Some(Code::InDoubt));
    assert!(house.effect().attempts.is_empty());
    block_on(gate.ledger.accept_epoch("a test", house.clock.now())).unwrap();
    let other = wish.with_arguments(r#"{"args":{"customer":"bob"}}"#);
    assert!(house.pass(&gate, &other, &script).answer.ok);
}

#[test]
fn after_an_epoch_a_refusal_may_have_been_followed_by_a_lost_claim() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([refusal(), success()]);
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    let old = house.memory.snapshot();
    assert!(house.pass(&gate, &wish, &script).answer.ok);
    house.fail_over(&old);
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert_eq!(script.sent(), 2);
    assert_eq!(house.journaled("forgotten"), 1);
}

#[test]
fn after_an_epoch_the_next_effect_may_have_been_claimed_already() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let gate = house.gate();
    house.pass_delivered(&gate, &wish, &script);
    let old = house.memory.snapshot();
    house.pass_delivered(&gate, &wish.again("one more"), &script);
    house.fail_over(&old);
    assert_eq!(house.pass(&gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    assert_eq!(code(&house.pass(&gate, &wish.again("one more"), &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 2);
    assert_eq!(house.effects().len(), 2);
}

#[test]
fn an_answer_whose_claim_was_lost_is_evidence_and_no_success() {
    let (house, wish) = (House::new(), Wish::consequential());
    let old = house.memory.snapshot();
    let (memory, gate, now) = (Arc::clone(&house.memory), house.gate(), house.clock.now());
    let script = Script::succeeds().while_sending(move || {
        memory.fail_over_to(&old);
        block_on(gate.ledger.bump_epoch("failover", now)).unwrap();
    });
    let passed = house.pass(&house.gate(), &wish, &script);
    assert_eq!(code(&passed), Some(Code::InDoubt));
    assert_eq!(house.journaled("late_answer"), 1);
    assert!(house.effects().is_empty());
    assert_eq!(code(&house.pass(&house.gate(), &wish, &script)), Some(Code::InDoubt));
    assert_eq!(script.sent(), 1);
}

#[test]
fn an_answer_does_not_settle_an_attempt_that_only_has_its_number() {
    let (house, wish) = (House::new(), Wish::consequential());
    let old = house.memory.snapshot();
    let (memory, other, now) =
        (Arc::clone(&house.memory), house.process(2, Mode::Guard).0, house.clock.now());
    let (twin, orders, clock) = (wish.clone(), house.orders.clone(), house.clock.clone());
    let running = Script::after(seconds(20), success());
    let theirs = running.clone();
    let script = Script::after(seconds(5), refusal()).while_sending(move || {
        memory.fail_over_to(&old);
        block_on(other.ledger.bump_epoch("failover", now)).unwrap();
        block_on(other.ledger.accept_epoch("a test", now)).unwrap();
        let call = call(&other, &twin, &theirs, &clock);
        orders.start(2, async move { drop(call.await) });
    });
    let first = house.pass(&house.process(1, Mode::Guard).0, &wish, &script);
    assert_eq!(code(&first), Some(Code::InDoubt), "a refusal of the lost attempt frees nothing");
    assert_eq!(state(&house), "applied");
    assert_eq!((script.sent(), running.sent()), (1, 1));
}

/// The effect is the same, and so is the number of the attempt: the nonce alone tells them apart.
#[test]
fn an_answer_does_not_settle_another_attempt_of_its_own_effect() {
    let (house, wish) = (House::new(), Wish::consequential());
    house.pass(&house.gate(), &wish, &Script::answers([refusal()]));
    let old = house.memory.snapshot();
    let (memory, other, now) =
        (Arc::clone(&house.memory), house.process(2, Mode::Guard).0, house.clock.now());
    let (orders, clock) = (house.orders.clone(), house.clock.clone());
    let (running, third) = (Script::after(seconds(20), success()), Script::succeeds());
    let (twin, theirs) = (call(&other, &wish, &running, &clock), call(&other, &wish, &third, &clock));
    let script = Script::after(seconds(5), refusal()).while_sending(move || {
        memory.fail_over_to(&old);
        block_on(other.ledger.bump_epoch("failover", now)).unwrap();
        block_on(other.ledger.accept_epoch("a person", now)).unwrap();
        orders.start(2, async move { drop(twin.await) });
        orders.start(2, async move {
            clock.nap(seconds(10)).await;
            drop(theirs.await);
        });
    });
    let first = house.pass(&house.process(1, Mode::Guard).0, &wish, &script);
    assert_eq!(code(&first), Some(Code::InDoubt), "a refusal of the lost attempt frees nothing");
    assert_eq!((state(&house), house.effect().attempts.len()), ("applied", 2));
    assert_eq!((script.sent(), running.sent(), third.sent()), (1, 1, 0));
}

/// Of a server with the same name and the same history: nobody says so but those who have seen more of it.
#[test]
fn older_data_that_is_put_back_begins_an_epoch_for_whoever_has_seen_more_of_it() {
    let (house, wish, script) = (House::new(), Wish::consequential(), Script::succeeds());
    let [gate, other] = [1, 2].map(|process| house.process(process, Mode::Guard).0);
    house.pass_delivered(&gate, &wish, &script);
    let old = house.memory.snapshot();
    let lost = wish.with_arguments(r#"{"args":{"customer":"bob"}}"#);
    house.pass_delivered(&gate, &lost, &script);
    house.pass_delivered(&other, &wish.with_arguments(r#"{"args":{"customer":"eve"}}"#), &script);
    house.memory.fail_over_to(&old);
    for gate in [&gate, &other, &house.gate()] {
        assert_eq!(code(&house.pass(gate, &lost, &script)), Some(Code::InDoubt));
        assert_eq!(house.pass(gate, &wish, &script).answer.outcome, OutcomeWord::Replayed);
    }
    assert_eq!((script.sent(), house.journaled("commits_lost")), (3, 1));
    block_on(gate.ledger.accept_epoch("a person", house.clock.now())).unwrap();
    let another = old_again(&house, &gate, &wish.with_arguments(r#"{"args":{"customer":"joe"}}"#), &script);
    assert_eq!(code(&another), Some(Code::InDoubt), "another loss, another epoch");
    assert_eq!((script.sent(), house.journaled("commits_lost")), (4, 2));
}

/// Runs a call and puts back what was before it; then the call comes again.
fn old_again(house: &House, gate: &Arc<Gate>, wish: &Wish, script: &Script) -> Passed {
    let old = house.memory.snapshot();
    assert!(house.pass_delivered(gate, wish, script).answer.ok);
    house.memory.fail_over_to(&old);
    house.pass(gate, wish, script)
}

#[test]
fn what_a_probe_found_in_another_epoch_does_not_count() {
    let (house, mut wish) = (House::new(), Wish::probed());
    wish.rule.wait = Duration::ZERO;
    let gate = house.gate();
    house.pass(&gate, &wish, &Script::answers([unclear()]).probes([ProbeAnswer::No]));
    house.wait(seconds(60));
    let key = wish.intent().key;
    let seen = block_on(gate.ledger.find(key)).unwrap();
    let asked_at = house.clock.now();
    house.fail_over(&house.memory.snapshot());
    let no = semel_ledger::rulings::Probed::No { quiet: seconds(5) };
    assert!(block_on(gate.ledger.probed(&seen, no, asked_at)).unwrap().is_none());
    assert_eq!(state(&house), "in doubt");
}

#[test]
fn a_forgotten_refusals_reply_is_never_handed_out_as_a_success() {
    let (house, wish) = (House::new(), Wish::consequential());
    let script = Script::answers([refusal()]);
    let gate = house.gate();
    house.pass(&gate, &wish, &script);
    house.fail_over(&house.memory.snapshot());
    house.pass(&gate, &wish, &script);
    let ruling = semel_core::effect::Ruling {
        by: "ann".into(),
        reason: semel_core::ids::Reason::parse("looked").unwrap(),
        at: house.clock.now(),
    };
    block_on(gate.ledger.resolve(house.effect().id, RulingVerdict::Applied { reply: None }, ruling)).unwrap();
    let State::Applied(applied) = house.effect().state else { panic!("it was ruled applied") };
    assert_eq!(applied.reply, Reply::Unknown);
    let passed = house.pass(&gate, &wish, &script);
    assert_eq!((passed.answer.ok, passed.reply), (true, GivenReply::None));
}

#[test]
fn a_child_whose_claim_was_lost_gets_a_day_before_a_no_counts() {
    for (child, probes_count) in [(false, true), (true, false)] {
        let (house, mut wish) = (House::new(), Wish::probed());
        wish.rule.wait = seconds(60);
        let gate = house.gate();
        house.fail_over(&house.memory.snapshot());
        let script = Script::succeeds().probes([ProbeAnswer::No]);
        let script = if child { script.by_child(None) } else { script };
        let passed = house.pass(&gate, &wish, &script);
        assert_eq!(passed.answer.ok, probes_count, "{:?}", passed.answer);
    }
}
