//! What a call gets, for every combination of what bears on it. Each sentence of DESIGN is one test.

use crate::scene::*;
use semel_core::class::{Class, Tier};
use semel_core::decide::{Claiming, Decision, Past, Refusal, Replay, SentBefore, Situation, decide};
use semel_core::effect::{
    CallMark, Doubt, Effect, Evidence, InDoubt, NotAppliedWhy, PreviousSuccess, Reply, State, Verdict,
};
use semel_core::ids::{AttemptNo, IdempotencyKey, Run};
use semel_core::intent::{Ask, AskedBy, Intent, NamedBy};
use semel_core::json::Json;
use semel_core::policy::rule::{Again, Inject, InjectInto, Probe, Rule, RuleCall};
use semel_core::policy::{ActionFacts, Policy, PolicyFile};
use semel_core::time::{At, Uptime};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newest {
    Unseen,
    InFlight,
    InDoubt,
    NotApplied,
    Refuted,
    Applied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// No reason was given.
    Unasked,
    /// The reason of the newest effect.
    SameReason,
    /// The reason of an earlier effect.
    EarlierReason,
    /// A new reason, and the rule lets this caller repeat.
    Allowed,
    /// A new reason, and the rule wants a person.
    NeedsPerson,
    /// A new reason, and the rule allows nobody.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offers {
    Nothing,
    Probe,
    /// The key that we send is still honoured.
    LiveKey,
    /// It may be honoured no longer.
    OldKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallId {
    None,
    Same,
    /// That of an earlier effect.
    Earlier,
    Other,
}

/// One combination.
#[derive(Debug, Clone, Copy)]
struct Case {
    class: Class,
    newest: Newest,
    delivered: bool,
    repeat: Repeat,
    call_id: CallId,
    drift: bool,
    window_over: bool,
    caller_key: bool,
    fenced: bool,
    forgotten: bool,
    offers: Offers,
    budget_left: bool,
}

const BOTH: [bool; 2] = [false, true];

fn every_case(mut with: impl FnMut(Case)) {
    use Newest::*;
    use Repeat::*;
    for class in Class::ALL {
        for newest in [Unseen, InFlight, InDoubt, NotApplied, Refuted, Newest::Applied] {
            for repeat in [Unasked, SameReason, EarlierReason, Allowed, NeedsPerson, Never] {
                for call_id in [CallId::None, CallId::Same, CallId::Earlier, CallId::Other] {
                    for offers in [Offers::Nothing, Offers::Probe, Offers::LiveKey, Offers::OldKey] {
                        for bits in 0..(1u32 << 7) {
                            let bit = |n: u32| BOTH[(bits >> n & 1) as usize];
                            with(Case {
                                class,
                                newest,
                                repeat,
                                call_id,
                                offers,
                                delivered: bit(0),
                                drift: bit(1),
                                window_over: bit(2),
                                caller_key: bit(3),
                                fenced: bit(4),
                                forgotten: bit(5),
                                budget_left: bit(6),
                            });
                        }
                    }
                }
            }
        }
    }
}

/// What does not depend on the case.
struct Scene {
    rule: Rule,
    intent: Intent,
    drifted: Intent,
    effect: Effect,
}

const WINDOW: Duration = Duration::from_secs(3600);
const KEY_LIFE: Duration = Duration::from_secs(600);
const DELIVERED: At = CLAIMED;

fn intent(rule: &Rule, arguments: &Json) -> Intent {
    let ask = Ask::of(("tenant", "p"), "fn:charge", arguments);
    Intent::of(&ask, rule, &secret()).expect("no key is required")
}

const CALL: &str = "toolu_0000000000000001";
const EARLIER_CALL: &str = "toolu_0000000000000000";

impl Scene {
    fn set() -> Scene {
        let rule = Policy::default().rule_for(&ActionFacts::new("fn:charge", &Json::Null));
        let rule = Arc::unwrap_or_clone(rule);
        let mut effect = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
        effect.occurrence.number = 3;
        effect.occurrence.reason = Some(reason("newest"));
        effect.occurrence.earlier = vec![(2, reason("earlier"))];
        effect.attempts[0].call_id = Some(CALL.into());
        let (intent, drifted) = (intent(&rule, &arguments(1)), intent(&rule, &arguments(2)));
        effect.occurrence.calls = vec![(1, CallMark::of(EARLIER_CALL, &intent.marks))];
        effect.occurrence.before = Some(PreviousSuccess { number: 2, delivered_at: DELIVERED, uptime: None });
        Scene { intent, drifted, rule, effect }
    }

    fn decide(&mut self, case: Case) -> Decision {
        let Scene { rule, intent, drifted, effect } = self;
        rule.class = case.class;
        rule.again = match case.repeat {
            Repeat::NeedsPerson => Again::Person,
            Repeat::Never => Again::Never,
            _ => Again::Agent,
        };
        rule.budget = u32::from(case.budget_left);
        let probe = || Probe {
            call: RuleCall::Command { argv: Vec::new() },
            found: None,
            reply: None,
            quiet: QUIET,
            before: false,
        };
        rule.probe = (case.offers == Offers::Probe).then(probe);
        rule.inject = matches!(case.offers, Offers::LiveKey | Offers::OldKey).then(|| {
            let life = if case.offers == Offers::LiveKey { WINDOW * 100 } else { KEY_LIFE };
            Inject {
                into: InjectInto::Header("Idempotency-Key".into()),
                form: Default::default(),
                length: None,
                valid_for: Some(life),
            }
        });
        let intent = if case.drift { drifted } else { intent };
        intent.again = match case.repeat {
            Repeat::Unasked => None,
            Repeat::SameReason => Some(reason("newest")),
            Repeat::EarlierReason => Some(reason("earlier")),
            Repeat::Allowed | Repeat::NeedsPerson | Repeat::Never => Some(reason("new")),
        };
        intent.call_id = match case.call_id {
            CallId::None => None,
            CallId::Same => Some(CALL.into()),
            CallId::Earlier => Some(EARLIER_CALL.into()),
            CallId::Other => Some("toolu_0000000000000002".into()),
        };
        intent.named_by = if case.caller_key { NamedBy::CallerKey } else { NamedBy::Arguments };
        intent.window = (!case.caller_key).then_some(WINDOW);
        let facts = Arc::make_mut(&mut effect.facts);
        (facts.class, facts.tier) = (rule.class, rule.tier());
        effect.delivered_at = case.delivered.then_some(DELIVERED);
        let since = after(Duration::from_secs(1));
        effect.state = match case.newest {
            Newest::Unseen | Newest::InFlight => State::InFlight { attempt: AttemptNo(1) },
            Newest::InDoubt => State::InDoubt(InDoubt { since, why: Doubt::HolderDied }),
            Newest::NotApplied => not_applied(NotAppliedWhy::Refused("no".into())),
            Newest::Refuted => not_applied(NotAppliedWhy::Refuted("404".into())),
            Newest::Applied => applied(Evidence::Reported, Some(1)),
        };
        // Old keys are older than their life whether or not the window is over.
        let now = DELIVERED.plus(if case.window_over { WINDOW } else { WINDOW - Duration::from_secs(1) });
        // Only re-sends of one caller are counted for convergent calls.
        let sent = match case.newest {
            Newest::InDoubt => SentBefore::ByEarlierLook,
            _ => SentBefore::No,
        };
        let situation = Situation {
            now,
            uptime: None,
            newest_on_record: None,
            fenced: case.fenced,
            memory_boundary: None,
            forgotten_before: case.forgotten.then_some(late()),
            stands_for: None,
            reached_by_key: false,
            past: Past { sent, ..Past::default() },
        };
        let newest = (case.newest != Newest::Unseen).then_some(&*effect);
        decide(newest, intent, rule, &situation)
    }
}

impl Case {
    fn acts(&self) -> bool {
        self.class != Class::Read && !self.fenced
    }

    /// An effect of this call's intent is applied, and the order of the look has come to it.
    fn done(&self) -> bool {
        self.acts() && self.newest == Newest::Applied
    }

    fn repeats_by_class(&self) -> bool {
        self.done()
            && self.delivered
            && self.repeat == Repeat::Unasked
            && self.call_id != CallId::Same
            && !self.is_earlier_call()
            && !self.caller_key
    }

    /// The newest effect is a deliberate repeat that did not happen.
    fn failed(&self) -> bool {
        self.acts() && matches!(self.newest, Newest::NotApplied | Newest::Refuted)
    }

    /// It was an effect before the newest one.
    fn was_before(&self) -> bool {
        self.repeat == Repeat::EarlierReason || self.is_earlier_call()
    }

    /// An open effect is the newest, and this call is not an earlier one.
    fn meets(&self, newest: Newest) -> bool {
        self.acts() && self.newest == newest && !self.was_before()
    }

    /// A transport repeats the call of an earlier effect.
    fn is_earlier_call(&self) -> bool {
        self.repeat == Repeat::Unasked && self.call_id == CallId::Earlier && !self.drift
    }

    /// A repeat without a reason is answered from the record, by its key or by its class.
    fn is_answered(&self) -> bool {
        self.repeat == Repeat::Unasked
            && (self.caller_key || self.class == Class::Consequential && !self.window_over)
    }

    /// Nobody has its answer, and to send it again does no harm.
    fn is_sent_again(&self) -> bool {
        let reissued = self.repeat == Repeat::Unasked && self.call_id == CallId::Same;
        self.class == Class::Convergent && !self.delivered && !self.caller_key && !reissued
    }

    /// It wants the newest effect, which did not happen, and nothing before it.
    fn wants_what_failed(&self) -> bool {
        match self.repeat {
            Repeat::Unasked => !self.is_earlier_call() && !self.is_answered(),
            Repeat::SameReason | Repeat::Allowed => true,
            Repeat::EarlierReason | Repeat::NeedsPerson | Repeat::Never => false,
        }
    }

    fn may_be_resent(&self) -> bool {
        match self.offers {
            Offers::LiveKey => true,
            Offers::OldKey => false,
            Offers::Nothing | Offers::Probe => matches!(self.class, Class::Convergent | Class::Generate),
        }
    }

    fn repeatable(&self) -> bool {
        matches!(self.class, Class::Convergent | Class::Generate)
    }
}

fn drifts(decision: &Decision) -> bool {
    matches!(decision, Decision::Refuse(Refusal::Drift { paths }) if paths == &["args.amount"])
}

/// A sentence holds for the cases that it speaks of.
struct Sentence {
    name: &'static str,
    speaks_of: fn(&Case) -> bool,
    holds: fn(&Case, &Decision) -> bool,
}

macro_rules! sentences {
    ($($name:ident: |$case:ident| $speaks_of:expr, |$decision:ident| $holds:expr;)+) => {
        $(
            #[test]
            fn $name() {
                assert_holds(&Sentence {
                    name: stringify!($name),
                    speaks_of: |$case| $speaks_of,
                    holds: |$case, $decision| { let _ = $case; $holds },
                });
            }
        )+

        const SENTENCES: &[Sentence] = &[$(Sentence {
            name: stringify!($name),
            speaks_of: |$case| $speaks_of,
            holds: |$case, $decision| { let _ = $case; $holds },
        }),+];
    };
}

sentences! {
    a_read_always_passes_through: |case| case.class == Class::Read, |decision| *decision == Decision::Pass;

    a_cancelled_run_starts_nothing: |case| case.class != Class::Read && case.fenced,
        |decision| matches!(decision, Decision::Refuse(Refusal::Cancelled { .. }));

    an_unseen_intent_is_claimed: |case| case.acts() && case.newest == Newest::Unseen && !case.forgotten,
        |decision| *decision == Decision::Claim(Claiming::First);

    an_unseen_intent_that_may_be_forgotten_is_in_doubt:
        |case| case.acts() && case.newest == Newest::Unseen && case.forgotten,
        |decision| *decision == Decision::Unremembered;

    a_concurrent_twin_is_joined: |case| case.meets(Newest::InFlight) && !case.drift,
        |decision| *decision == Decision::Join(AttemptNo(1));

    drift_of_an_open_effect_is_refused_with_its_paths:
        |case| (case.meets(Newest::InFlight) || case.meets(Newest::InDoubt)) && case.drift,
        |decision| drifts(decision);

    a_doubt_whose_later_claim_may_be_forgotten_is_recorded_as_that:
        |case| case.meets(Newest::InDoubt) && !case.drift && case.forgotten,
        |decision| *decision == Decision::Unremembered;

    a_doubt_is_probed_or_held_and_never_blindly_repeated:
        |case| case.meets(Newest::InDoubt) && !case.drift && !case.forgotten
            && !case.may_be_resent(),
        |decision| *decision == Decision::Look;

    keyed_convergent_and_generate_are_resent_within_the_budget:
        |case| case.meets(Newest::InDoubt) && !case.drift && !case.forgotten
            && case.may_be_resent(),
        |decision| *decision == match (case.budget_left, case.offers) {
            (true, _) => Decision::Resend,
            (false, Offers::Probe) => Decision::Look,
            (false, _) => Decision::Refuse(Refusal::BudgetSpent),
        };

    a_refuted_effect_is_never_run_again_by_itself:
        |case| case.acts() && case.newest == Newest::Refuted && case.wants_what_failed(),
        |decision| *decision == Decision::Refuse(Refusal::Refuted);

    what_did_not_happen_may_run_even_corrected:
        |case| case.acts() && case.newest == Newest::NotApplied && case.wants_what_failed()
            && !case.forgotten,
        |decision| *decision == Decision::Claim(Claiming::NextAttempt);

    what_did_not_happen_is_in_doubt_if_a_later_claim_may_be_forgotten:
        |case| case.acts() && case.newest == Newest::NotApplied && case.wants_what_failed()
            && case.forgotten,
        |decision| *decision == Decision::Unremembered;

    where_a_repeat_failed_the_success_before_it_answers_who_did_not_ask_for_the_repeat:
        |case| case.failed() && case.is_answered() && !case.is_earlier_call(),
        |decision| *decision == Decision::ReplayEarlier(2, Replay::Repeat);

    where_a_repeat_failed_another_one_needs_the_same_leave:
        |case| case.failed() && matches!(case.repeat, Repeat::NeedsPerson | Repeat::Never),
        |decision| matches!(decision, Decision::Refuse(Refusal::AgainNotAllowed(_)));

    a_success_that_was_not_delivered_is_handed_over_unless_it_converges:
        |case| case.done() && !case.delivered && !case.drift && !case.was_before() && !case.is_sent_again()
            && case.repeat != Repeat::SameReason,
        |decision| *decision == Decision::Replay(Replay::Undelivered);

    what_converges_and_was_not_delivered_is_sent_again:
        |case| case.done() && case.is_sent_again() && case.repeat == Repeat::Unasked && !case.was_before(),
        |decision| *decision == Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: false });

    the_same_reason_again_is_the_same_occurrence:
        |case| case.done() && case.repeat == Repeat::SameReason && !case.drift,
        |decision| *decision == Decision::Replay(Replay::SameOccurrence);

    the_reason_of_an_earlier_effect_finds_that_effect:
        |case| case.acts() && case.newest != Newest::Unseen && case.repeat == Repeat::EarlierReason,
        |decision| *decision == Decision::ReplayEarlier(2, Replay::SameOccurrence);

    a_new_reason_opens_the_next_effect_of_a_delivered_success:
        |case| case.done() && (case.delivered || case.is_sent_again()) && case.repeat == Repeat::Allowed
            && (!case.forgotten || case.repeatable()),
        |decision| *decision == Decision::Claim(Claiming::NextEffect {
            reason: Some(reason("new")), possible_repeat: false,
        });

    a_rule_may_leave_repeats_to_a_person_or_to_nobody:
        |case| case.done() && (case.delivered || case.is_sent_again())
            && matches!(case.repeat, Repeat::NeedsPerson | Repeat::Never),
        |decision| matches!(decision, Decision::Refuse(Refusal::AgainNotAllowed(_)));

    the_same_call_id_means_that_a_transport_sent_it_again:
        |case| case.done() && case.delivered && case.repeat == Repeat::Unasked && case.call_id == CallId::Same
            && !case.drift,
        |decision| *decision == Decision::Replay(Replay::Reissue);

    the_call_id_of_an_earlier_effect_finds_that_effect:
        |case| case.acts() && case.newest != Newest::Unseen && case.is_earlier_call(),
        |decision| *decision == Decision::ReplayEarlier(1, Replay::Reissue);

    a_callers_key_replays_whatever_the_class_and_for_ever:
        |case| case.done() && case.delivered && case.repeat == Repeat::Unasked && case.caller_key
            && case.call_id != CallId::Same && !case.is_earlier_call() && !case.drift,
        |decision| *decision == Decision::Replay(Replay::Repeat);

    a_repeat_of_a_delivered_act_runs_flagged:
        |case| case.repeats_by_class() && case.class == Class::Act && !case.forgotten,
        |decision| *decision == Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: true });

    a_repeat_of_a_delivered_convergent_or_generate_runs:
        |case| case.repeats_by_class() && case.repeatable(),
        |decision| *decision == Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: false });

    a_repeat_of_a_delivered_consequential_success_is_replayed:
        |case| case.repeats_by_class() && case.class == Class::Consequential && !case.window_over && !case.drift,
        |decision| *decision == Decision::Replay(Replay::Repeat);

    after_its_window_a_consequential_repeat_runs_flagged:
        |case| case.repeats_by_class() && case.class == Class::Consequential && case.window_over && !case.forgotten,
        |decision| *decision == Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: true });

    a_next_effect_whose_claim_may_be_forgotten_is_in_doubt:
        |case| case.forgotten && !case.repeatable() && (
            case.repeats_by_class() && (case.class == Class::Act || case.window_over)
            || case.done() && case.delivered && case.repeat == Repeat::Allowed
        ),
        |decision| *decision == Decision::Unremembered;

    what_would_be_replayed_is_refused_if_it_drifted:
        |case| case.done() && case.drift && (
            !case.delivered && case.repeat != Repeat::EarlierReason && !case.is_sent_again()
            || case.repeat == Repeat::SameReason
            || case.repeat == Repeat::Unasked && (
                case.call_id == CallId::Same || case.caller_key
                || case.class == Class::Consequential && !case.window_over
            )
        ),
        |decision| drifts(decision);
}

#[track_caller]
fn assert_holds(sentence: &Sentence) {
    let mut scene = Scene::set();
    let mut spoken_of = 0;
    every_case(|case| {
        if (sentence.speaks_of)(&case) {
            spoken_of += 1;
            let decision = scene.decide(case);
            assert!((sentence.holds)(&case, &decision), "{}: {case:?} gives {decision:?}", sentence.name);
        }
    });
    assert!(spoken_of > 0, "{} speaks of nothing", sentence.name);
}

#[test]
fn every_case_is_spoken_of() {
    every_case(|case| {
        assert!(SENTENCES.iter().any(|sentence| (sentence.speaks_of)(&case)), "nobody speaks of {case:?}");
    });
}

fn one(change: impl FnOnce(&mut Scene, &mut Situation<'_>) -> bool) -> Decision {
    let mut scene = Scene::set();
    let mut situation = Situation {
        now: late(),
        uptime: None,
        newest_on_record: None,
        fenced: false,
        memory_boundary: None,
        forgotten_before: None,
        stands_for: None,
        reached_by_key: false,
        past: Past::default(),
    };
    let known = change(&mut scene, &mut situation);
    decide(known.then_some(&scene.effect), &scene.intent, &scene.rule, &situation)
}

#[test]
fn an_intent_that_is_younger_than_the_epoch_was_not_forgotten() {
    let with = |born: At| {
        one(|scene, situation| {
            scene.intent.born_at = Some(born);
            situation.forgotten_before = Some(late());
            false
        })
    };
    assert_eq!(with(late().plus(Duration::from_secs(1))), Decision::Claim(Claiming::First));
    assert_eq!(with(late()), Decision::Unremembered);
}

#[test]
fn an_act_of_a_run_is_held_behind_its_memory_boundary_and_nothing_else_is() {
    let with = |class: Class, boundary: Option<At>, made_in: &str, asked_in: &str| {
        one(|scene, situation| {
            let run = |name| Some(Run::named(name).expect("a name"));
            scene.rule.class = class;
            scene.effect.state = applied(Evidence::Reported, Some(1));
            scene.effect.delivered_at = Some(DELIVERED);
            scene.effect.marks = Arc::clone(&scene.intent.marks);
            scene.effect.attempts[0].run = run(made_in);
            scene.intent.run = run(asked_in);
            situation.memory_boundary = boundary;
            true
        })
    };
    let behind = Some(DELIVERED.plus(Duration::from_secs(1)));
    let next = Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: true });
    assert_eq!(with(Class::Act, behind, "r1", "r1"), Decision::Refuse(Refusal::Forgotten));
    assert_eq!(with(Class::Act, None, "r1", "r1"), next, "without a boundary between");
    assert_eq!(
        with(Class::Act, Some(DELIVERED), "r1", "r1"),
        next,
        "it was told at the boundary, not before"
    );
    assert_eq!(with(Class::Act, behind, "r1", "r2"), next, "another run has forgotten nothing");
    assert!(matches!(with(Class::Convergent, behind, "r1", "r1"), Decision::Claim(_)));
}

#[test]
fn a_callers_key_that_is_a_version_7_uuid_tells_when_the_intent_was_born() {
    let rule = Scene::set().rule;
    let key = IdempotencyKey::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let arguments = arguments(1);
    let ask = Ask { key: Some(key), ..Ask::of(("t", "p"), "fn:charge", &arguments) };
    let intent = Intent::of(&ask, &rule, &secret()).unwrap();
    assert_eq!(intent.born_at, Some(At::from_millis(0x0189_0a5d_ac96)));
    assert_eq!(intent.named_by, NamedBy::CallerKey);
    assert_eq!(intent.window, None);
}

/// Class and window let everything else run: only what the key stands for keeps it.
#[test]
fn what_a_key_stands_for_answers_it_after_the_window_too() {
    let with = |change: &dyn Fn(&mut Scene, &mut Situation<'_>)| {
        one(|scene, situation| {
            scene.rule.class = Class::Act;
            scene.intent.window = Some(Duration::ZERO);
            scene.effect.state = applied(Evidence::Reported, Some(1));
            scene.effect.delivered_at = Some(CLAIMED);
            scene.effect.occurrence.number = 2;
            situation.stands_for = Some(2);
            change(scene, situation);
            true
        })
    };
    let runs = |decision: Decision| matches!(decision, Decision::Claim(Claiming::NextEffect { .. }));
    assert_eq!(with(&|_, _| {}), Decision::Replay(Replay::Reissue));
    assert!(runs(with(&|_, situation| situation.stands_for = None)), "without it the same call runs");
    assert_eq!(
        with(&|_, situation| situation.stands_for = Some(1)),
        Decision::ReplayEarlier(1, Replay::Reissue)
    );
    assert_eq!(
        with(&|_, situation| situation.fenced = true),
        Decision::Refuse(Refusal::Cancelled { prevents: false })
    );
    assert!(runs(with(&|scene, _| {
        scene.rule.again = Again::Agent;
        scene.intent.again = Some(reason("new"));
    })));
}

#[test]
fn a_person_may_repeat_where_an_agent_may_not() {
    let with = |asked_by: AskedBy, again: Again| {
        one(|scene, _| {
            scene.rule.again = again;
            scene.rule.class = Class::Consequential;
            scene.intent.again = Some(reason("new"));
            scene.intent.asked_by = asked_by;
            scene.effect.state = applied(Evidence::Reported, Some(1));
            scene.effect.delivered_at = Some(CLAIMED);
            true
        })
    };
    let next = Decision::Claim(Claiming::NextEffect { reason: Some(reason("new")), possible_repeat: false });
    assert_eq!(with(AskedBy::Person, Again::Person), next);
    assert_eq!(with(AskedBy::Agent, Again::Agent), next);
    for (asked_by, again) in
        [(AskedBy::Agent, Again::Person), (AskedBy::Agent, Again::Never), (AskedBy::Person, Again::Never)]
    {
        assert_eq!(with(asked_by, again), Decision::Refuse(Refusal::AgainNotAllowed(again)));
    }
}

/// `--class consequential` on an action of which a rule says that it converges.
#[test]
fn a_stricter_class_holds_the_doubts_of_what_converges_and_answers_no_repeat_from_the_record() {
    let with = |converges, delivered_at, state| {
        one(|scene, _| {
            (scene.rule.class, scene.rule.converges) = (Class::Consequential, converges);
            (scene.effect.state, scene.effect.delivered_at) = (state, delivered_at);
            true
        })
    };
    let done = || applied(Evidence::Reported, Some(1));
    let next = Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: false });
    assert_eq!(with(true, Some(late()), done()), next);
    assert_eq!(with(true, None, done()), next, "its old answer would hide what is new");
    assert_eq!(with(false, Some(late()), done()), Decision::Replay(Replay::Repeat));
    let doubt = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
    assert_eq!(with(true, None, doubt), Decision::Look);
}

#[test]
fn an_action_of_which_a_rule_says_that_it_converges_does_so_under_any_class_but_not_in_strict_mode() {
    let converges = |mode: &str, class_override| {
        let text = format!("mode = \"{mode}\"\n[[rule]]\nmatch = \"fn:push\"\nclass = \"convergent\"\n");
        let facts = ActionFacts { class_override, ..ActionFacts::new("fn:push", &Json::Null) };
        let file = PolicyFile { path: "semel.toml".into(), text };
        let rule = Policy::load(vec![file]).expect("a policy").rule_for(&facts);
        (rule.class, rule.converges)
    };
    let stricter = Some(Class::Consequential);
    assert_eq!(converges("guard", None), (Class::Convergent, true));
    assert_eq!(converges("guard", stricter), (Class::Consequential, true));
    assert_eq!(converges("strict", stricter), (Class::Consequential, false));
}

#[test]
fn what_a_person_released_happens_once_more_and_is_still_what_it_was() {
    let with = |change: &dyn Fn(&mut Scene)| {
        one(|scene, _| {
            scene.rule.again = Again::Person;
            scene.rule.class = Class::Consequential;
            scene.effect.state = applied(Evidence::Reported, Some(1));
            scene.effect.delivered_at = Some(late());
            scene.effect.repeat_permitted = Some(ruling());
            change(scene);
            true
        })
    };
    let next = |reason| Decision::Claim(Claiming::NextEffect { reason, possible_repeat: false });
    assert_eq!(with(&|_| {}), next(None));
    assert_eq!(with(&|scene| scene.intent.again = Some(reason("new"))), next(Some(reason("new"))));
    assert_eq!(with(&|scene| scene.effect.repeat_permitted = None), Decision::Replay(Replay::Repeat));
    // Who has not seen its answer gets that first; a transport's second sending is no second wish.
    assert_eq!(with(&|scene| scene.effect.delivered_at = None), Decision::Replay(Replay::Undelivered));
    let reissued = with(&|scene| {
        scene.intent.call_id = Some("c".into());
        scene.effect.attempts[0].call_id = Some("c".into());
    });
    assert_eq!(reissued, Decision::Replay(Replay::Reissue));
    let drifted = with(&|scene| scene.effect.marks = marks(9));
    assert!(matches!(drifted, Decision::Refuse(Refusal::Drift { .. })), "{drifted:?}");
    assert_eq!(with(&|scene| scene.rule.again = Again::Never), Decision::Replay(Replay::Repeat));
}

#[test]
fn a_generation_that_reached_nobody_and_is_not_kept_is_generated_anew() {
    let with = |class, kept| {
        one(|scene, _| {
            scene.rule.class = class;
            scene.effect.state = applied(Evidence::Reported, Some(1));
            if let State::Applied(applied) = &mut scene.effect.state {
                applied.reply = kept;
            }
            true
        })
    };
    let anew = Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: false });
    assert_eq!(with(Class::Generate, Reply::TooLarge(1)), anew);
    assert_eq!(with(Class::Generate, Reply::Kept), Decision::Replay(Replay::Undelivered));
    assert_eq!(with(Class::Consequential, Reply::TooLarge(1)), Decision::Replay(Replay::Undelivered));
}

#[test]
fn what_was_sent_before_decides_whether_it_can_be_sent_again() {
    let with = |now_keyed: bool| {
        one(|scene, _| {
            scene.rule.budget = 3;
            if now_keyed {
                let into = InjectInto::Header("Idempotency-Key".into());
                scene.rule.inject =
                    Some(Inject { into, form: Default::default(), length: None, valid_for: None });
            } else {
                scene.rule.class = Class::Convergent;
            }
            scene.effect.state = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
            true
        })
    };
    // The attempts of the record carried no key, and nobody had said that a repeat changes nothing.
    assert_eq!(with(true), Decision::Look);
    assert_eq!(with(false), Decision::Look);
}

/// Rule 7: one upstream key for one effect; and an upstream refuses a key that comes with other words.
#[test]
fn a_key_protects_only_what_is_sent_under_it_as_before() {
    let with = |sent: u64, sends: u64, reworded: bool| {
        one(|scene, _| {
            scene.rule.budget = 3;
            let into = InjectInto::Header("Idempotency-Key".into());
            scene.rule.inject =
                Some(Inject { into, form: Default::default(), length: None, valid_for: None });
            scene.effect.state = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
            let facts = Arc::make_mut(&mut scene.effect.facts);
            (facts.tier, facts.upstream_key) = (Tier::Keyed, sent);
            scene.intent.upstream_key = sends;
            if reworded {
                Arc::make_mut(&mut scene.intent.marks).content =
                    Some(semel_core::digest::Digest::of(&[b"other words"]));
            }
            true
        })
    };
    assert_eq!(with(7, 7, false), Decision::Resend);
    assert_eq!(with(7, 8, false), Decision::Look, "under another key it is another effect");
    assert_eq!(with(7, 7, true), Decision::Look);
    assert_eq!(with(0, 8, false), Decision::Resend, "older records do not say");
}

#[test]
fn a_call_whose_record_vanished_after_it_was_sent_is_in_doubt() {
    let with = |sent| {
        one(|_, situation| {
            situation.past.sent = sent;
            false
        })
    };
    assert_eq!(with(SentBefore::ByEarlierLook), Decision::Unremembered);
    assert_eq!(with(SentBefore::No), Decision::Claim(Claiming::First));
}

#[test]
fn what_may_be_sent_at_any_time_is_capped_by_the_storm() {
    let with = |now: At, has_sent: bool| {
        one(|scene, situation| {
            let sent = if has_sent { SentBefore::ByEarlierLook } else { SentBefore::No };
            (situation.now, situation.past.sent) = (now, sent);
            scene.rule.class = Class::Convergent;
            scene.rule.budget = 1;
            scene.effect.state = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
            let facts = Arc::make_mut(&mut scene.effect.facts);
            (facts.class, facts.tier) = (Class::Convergent, Tier::Convergent);
            scene.effect.attempts.iter_mut().for_each(|attempt| attempt.resend = true);
            true
        })
    };
    let soon = after(Duration::from_secs(1));
    assert_eq!(with(soon, true), Decision::Refuse(Refusal::BudgetSpent));
    assert_eq!(with(after(Duration::from_secs(61)), true), Decision::Resend);
    assert_eq!(with(soon, false), Decision::Resend, "somebody wants it once more");
}

#[test]
fn a_key_is_relied_upon_only_while_it_certainly_lives() {
    let with = |now: At, attempts: bool, valid_for: Option<Duration>| {
        one(|scene, situation| {
            situation.now = now;
            scene.rule.budget = 3;
            scene.rule.inject = Some(Inject {
                into: InjectInto::Header("Idempotency-Key".into()),
                form: Default::default(),
                length: None,
                valid_for,
            });
            scene.effect.state = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
            Arc::make_mut(&mut scene.effect.facts).tier = Tier::Keyed;
            if !attempts {
                scene.effect.attempts.clear();
            }
            true
        })
    };
    let life = Some(KEY_LIFE);
    let margin = Duration::from_secs(60);
    let last = after(KEY_LIFE - margin - Duration::from_micros(1));
    assert_eq!(with(last, true, life), Decision::Resend);
    assert_eq!(with(after(KEY_LIFE - margin), true, life), Decision::Look);
    assert_eq!(with(At(CLAIMED.0 - 1), true, life), Decision::Look, "the clock went back");
    assert_eq!(
        with(last, false, life),
        Decision::Look,
        "the first claim was forgotten, and with it the key's age"
    );
    assert_eq!(with(late(), true, None), Decision::Resend, "the key is not known to end");
    assert_eq!(with(late(), false, None), Decision::Resend);
}

/// A doubt under a key that lives for [`KEY_LIFE`], claimed when the machine had been up for no time.
fn keyed_doubt(scene: &mut Scene) {
    scene.rule.budget = 3;
    scene.rule.inject = Some(Inject {
        into: InjectInto::Header("Idempotency-Key".into()),
        form: Default::default(),
        length: None,
        valid_for: Some(KEY_LIFE),
    });
    scene.effect.state = State::InDoubt(InDoubt { since: CLAIMED, why: Doubt::HolderDied });
    Arc::make_mut(&mut scene.effect.facts).tier = Tier::Keyed;
    scene.effect.attempts[0].uptime = Some(up(0, Duration::ZERO));
}

fn up(boot: u32, span: Duration) -> Uptime {
    Uptime { boot, micros: span.as_micros() as u64 }
}

#[test]
fn a_key_is_as_old_as_the_clock_says_that_makes_it_oldest() {
    let with = |uptime: Option<Uptime>, newest_on_record: Option<At>| {
        one(|scene, situation| {
            keyed_doubt(scene);
            situation.now = after(Duration::from_secs(2));
            (situation.uptime, situation.newest_on_record) = (uptime, newest_on_record);
            true
        })
    };
    let over = KEY_LIFE - Duration::from_secs(60);
    assert_eq!(with(None, None), Decision::Resend);
    assert_eq!(with(Some(up(0, over)), None), Decision::Look, "the clock was set back");
    assert_eq!(with(Some(up(1, over)), None), Decision::Resend, "another boot says nothing");
    assert_eq!(with(None, Some(after(over))), Decision::Look, "the ledger has seen a later time");
    let young = Duration::from_secs(1);
    assert_eq!(with(Some(up(0, young)), Some(after(young))), Decision::Resend);
}

#[test]
fn a_keys_life_counts_from_its_first_attempt() {
    let at = |span: Duration| {
        one(|scene, situation| {
            keyed_doubt(scene);
            let mut second = crate::scene::attempt(2, Verdict::Unproven);
            second.claimed_at = after(KEY_LIFE / 2);
            second.uptime = Some(up(0, KEY_LIFE / 2));
            scene.effect.attempts.push(second);
            situation.now = after(span);
            true
        })
    };
    let margin = Duration::from_secs(60);
    assert_eq!(at(KEY_LIFE - margin - Duration::from_micros(1)), Decision::Resend);
    assert_eq!(at(KEY_LIFE - margin), Decision::Look);
}

#[test]
fn a_window_is_over_only_when_no_clock_says_otherwise() {
    let with = |uptime: Option<Uptime>| {
        one(|scene, situation| {
            scene.rule.class = Class::Consequential;
            scene.effect.state = applied(Evidence::Reported, Some(1));
            scene.effect.delivered_at = Some(DELIVERED);
            scene.effect.attempts[0].uptime = Some(up(0, Duration::ZERO));
            scene.intent.window = Some(WINDOW);
            situation.now = DELIVERED.plus(WINDOW * 365);
            situation.uptime = uptime;
            true
        })
    };
    assert_eq!(with(Some(up(0, WINDOW / 2))), Decision::Replay(Replay::Repeat), "the clock was set ahead");
    let next = Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: true });
    assert_eq!(with(Some(up(0, WINDOW))), next);
    assert_eq!(with(Some(up(1, WINDOW / 2))), next, "another boot says nothing");
    assert_eq!(with(None), next);
}

#[test]
fn a_refusal_answers_its_repeats_only_where_the_callers_kind_of_key_demands_it() {
    let with = |replays: bool, why: NotAppliedWhy, drifts: bool| {
        one(move |scene, _| {
            if drifts {
                scene.intent = scene.drifted.clone();
            }
            scene.intent.replay_refusals = replays;
            scene.effect.state = not_applied(why);
            scene.effect.occurrence.reason = None;
            true
        })
    };
    let refused = || NotAppliedWhy::Refused("no".into());
    assert_eq!(with(true, refused(), false), Decision::ReplayRefusal);
    assert!(matches!(with(true, refused(), true), Decision::Refuse(Refusal::Drift { .. })));
    assert_eq!(with(false, refused(), false), Decision::Claim(Claiming::NextAttempt));
    // What never reached the upstream was not refused by it.
    let never = NotAppliedWhy::NeverSent("down".into());
    assert_eq!(with(true, never, false), Decision::Claim(Claiming::NextAttempt));
}
