//! What is different for the class *generate*.

use crate::scene::{CLAIMED, after, arguments, effect, new_attempt, refusal, secret, success, unclear};
use semel_core::answer::Retry;
use semel_core::class::Class;
use semel_core::decide::{Decision, Past, Refusal, Situation, decide};
use semel_core::effect::{ATTEMPTS_KEPT, Doubt, Effect, InDoubt, STORM, State, Verdict};
use semel_core::ids::AttemptNo;
use semel_core::intent::{Ask, Intent};
use semel_core::lifecycle::{Event, NewAttempt, next};
use semel_core::policy::{ActionFacts, Policy, Rule};
use semel_core::wording;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn generation(state: State, verdicts: &[Verdict]) -> Effect {
    let mut effect = effect(state, verdicts);
    Arc::make_mut(&mut effect.facts).class = Class::Generate;
    effect
}

fn doubtful(attempts: usize) -> Effect {
    let why = Doubt::Ambiguous("HTTP 503".into());
    generation(State::InDoubt(InDoubt { since: CLAIMED, why }), &vec![Verdict::Unproven; attempts])
}

fn rule() -> Rule {
    Arc::unwrap_or_clone(Policy::default().rule_for(&ActionFacts::new("llm:openai/responses", &arguments(1))))
}

fn decided(effect: &Effect, after_claims: Duration) -> Decision {
    let arguments = arguments(1);
    let ask = Ask::of(("tenant", "p"), "fn:charge", &arguments);
    let intent = Intent::of(&ask, &rule(), &secret()).expect("no key is required");
    let situation = Situation {
        now: after(after_claims),
        uptime: None,
        newest_on_record: None,
        fenced: false,
        memory_boundary: None,
        forgotten_before: None,
        stands_for: None,
        reached_by_key: false,
        past: Past::default(),
    };
    decide(Some(effect), &intent, &rule(), &situation)
}

#[test]
fn the_budget_caps_a_storm_and_is_there_again_after_it() {
    let spent = Decision::Refuse(Refusal::BudgetSpent);
    assert_eq!(decided(&doubtful(1), SECOND), Decision::Resend);
    assert_eq!(decided(&doubtful(2), SECOND), Decision::Resend);
    assert_eq!(decided(&doubtful(3), SECOND), spent);
    assert_eq!(decided(&doubtful(3), STORM - SECOND), spent);
    assert_eq!(decided(&doubtful(3), STORM), Decision::Resend);
    let mut convergent = doubtful(3);
    Arc::make_mut(&mut convergent.facts).class = Class::Convergent;
    let rule = Rule { class: Class::Convergent, ..rule() };
    assert_eq!(convergent.resends(), rule.budget, "only a generation forgets what it has spent");
}

#[test]
fn the_first_whole_answer_is_the_answer_even_while_a_newer_attempt_is_in_flight() {
    let state = State::InFlight { attempt: AttemptNo(2) };
    let resent = generation(state, &[Verdict::Unproven, Verdict::Open]);
    let settled = |attempt, outcome, seconds| Event::Settled {
        attempt: AttemptNo(attempt),
        outcome,
        at: after(SECOND * seconds),
    };
    let first = next(&resent, &settled(1, success(), 5)).expect("it may").effect;
    assert!(matches!(&first.state, State::Applied(applied) if applied.by == Some(AttemptNo(1))));
    for outcome in [success(), refusal(), unclear()] {
        let step = next(&first, &settled(2, outcome, 6)).expect("it may");
        assert_eq!((&step.effect.state, step.alarm), (&first.state, None));
    }
    for outcome in [refusal(), unclear()] {
        let step = next(&resent, &settled(1, outcome, 5)).expect("it may");
        assert_eq!(
            step.effect.state, resent.state,
            "a failure of an older attempt says nothing of the newer one"
        );
    }
}

#[test]
fn attempts_of_storms_that_are_over_are_let_go() {
    let full = doubtful(ATTEMPTS_KEPT);
    let resent = |seconds: u32| {
        let new = NewAttempt { at: after(SECOND * seconds), ..new_attempt() };
        next(&full, &Event::Resent(new)).expect("it may").effect
    };
    assert_eq!(resent(1).attempts.len(), ATTEMPTS_KEPT + 1, "these still count");
    let later = resent(3_600);
    assert_eq!(later.attempts.len(), ATTEMPTS_KEPT);
    assert_eq!(
        later.newest_attempt().map(|attempt| attempt.number),
        Some(AttemptNo(ATTEMPTS_KEPT as u32 + 1))
    );
    let mut act = full.clone();
    Arc::make_mut(&mut act.facts).class = Class::Act;
    let new = NewAttempt { at: after(SECOND * 3_600), ..new_attempt() };
    let kept = next(&act, &Event::Resent(new)).expect("it may").effect;
    assert_eq!(
        kept.attempts.len(),
        ATTEMPTS_KEPT + 1,
        "an unproven attempt of anything else is never dropped"
    );
}

#[test]
fn clients_of_models_are_patient_and_a_rule_may_say_otherwise() {
    assert!(rule().wait >= Duration::from_secs(120) && rule().late_after >= Duration::from_secs(600));
    let other = Policy::default().rule_for(&ActionFacts::new("fn:charge", &arguments(1)));
    assert_eq!((other.wait, other.late_after), (SECOND * 25, SECOND * 25));
}

#[test]
fn a_lost_answer_may_be_asked_for_again() {
    let lost = wording::in_doubt(&doubtful(1));
    assert_eq!(lost.is_it_safe_to_retry, Retry::Yes);
    assert!(lost.what_happened.contains("HTTP 503") && lost.next_step.starts_with("Ask again"), "{lost:?}");
    let spent = wording::budget_spent(&doubtful(3));
    assert_eq!(spent.is_it_safe_to_retry, Retry::Wait);
    assert!(spent.next_step.contains("Wait a minute"), "{spent:?}");
}
