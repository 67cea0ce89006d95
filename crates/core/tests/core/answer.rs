//! The answer object, as `spec/answer.md` states it.

use crate::scene::*;
use semel_core::answer::{Answer, Code, EffectWord, OutcomeWord, Retry, Trouble};
use semel_core::class::Tier;
use semel_core::effect::{Doubt, Effect, Evidence, InDoubt, NotAppliedWhy, State, Verdict};
use semel_core::ids::AttemptNo;
use semel_core::intent::KeyMissing;
use semel_core::policy::rule::Again;
use semel_core::wording;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const SPEC: &str = include_str!("../../../../spec/answer.md");

fn rows(heading: &str) -> Vec<Vec<String>> {
    let section = SPEC.split(heading).nth(1).unwrap_or_else(|| panic!("{heading} is there"));
    let table =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn exit_codes_and_advice_on_retrying_are_as_specified() {
    let rows = rows("## Codes");
    let listed: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(listed, Code::ALL.map(Code::word));
    for row in &rows {
        let code = Code::parse(&row[0]).expect("a code");
        let exit = code.exit().map_or_else(|| row[3].clone(), |exit| exit.to_string());
        assert_eq!(exit, row[3], "{code}");
        if code.exit().is_none() {
            assert!(row[3].contains("own") || row[3].contains("125"), "{code}: {}", row[3]);
        }
        let retry = match code.retry() {
            Retry::Yes => "yes",
            Retry::No => "no",
            Retry::Wait => "wait",
        };
        assert_eq!(retry, row[5], "{code}");
        assert_eq!(serde_json::to_value(code).unwrap(), Value::from(code.word()));
    }
}

fn plain(ok: bool, trouble: Option<Trouble>) -> Answer {
    Answer {
        ok,
        effect: EffectWord::Created,
        outcome: OutcomeWord::Ran,
        effect_id: None,
        attempt: Some(AttemptNo(1)),
        tier: Tier::Opaque,
        evidence: Some(Evidence::Reported),
        reason: None,
        trouble,
        dry_run: None,
        undone_by: None,
        possible_repeat: false,
        best_effort: false,
        data: Value::Null,
    }
}

#[test]
fn every_field_of_the_specification_is_there_when_it_should_be() {
    let keys = |answer: &Answer| -> Vec<String> {
        let value = serde_json::to_value(answer).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    };
    let (good, bad) =
        (keys(&plain(true, None)), keys(&plain(false, Some(wording::not_started("no such program")))));
    for row in rows("## Fields") {
        let (field, present) = (&row[0], row[2].as_str());
        let (in_good, in_bad) = (good.contains(field), bad.contains(field));
        match present {
            "always" => assert!(in_good && in_bad, "{field}"),
            "when not ok" => assert!(!in_good && in_bad, "{field}"),
            _ => assert!(!in_good && !in_bad, "{field}"),
        }
    }
}

#[test]
fn effect_words_are_as_specified_and_only_some_may_be_said() {
    let listed = rows("## Effect words");
    let words: Vec<&str> = listed.iter().flat_map(|row| row[0].split(", ")).collect();
    for word in EffectWord::SAYABLE {
        assert!(words.contains(&word.word()), "{word}");
        assert_eq!(EffectWord::parse(word.word()), Some(word));
        assert!(word.would().word().starts_with("would_"));
    }
    assert!(words.contains(&"unknown"));
    assert_eq!(EffectWord::parse("unknown"), None);
    assert_eq!(EffectWord::parse("would_create"), None);
}

fn in_doubt() -> Effect {
    let why = Doubt::Ambiguous("the connection was reset".into());
    effect(State::InDoubt(InDoubt { since: late(), why }), &[Verdict::Unproven])
}

fn every_trouble() -> Vec<Trouble> {
    let doubt = in_doubt();
    let running = effect(State::InFlight { attempt: AttemptNo(1) }, &[Verdict::Open]);
    let refused = effect(not_applied(NotAppliedWhy::Refused("declined".into())), &[Verdict::NotApplied]);
    let reported = effect(not_applied(NotAppliedWhy::Reported("exit 1".into())), &[Verdict::NotApplied]);
    let awaiting = effect(not_applied(NotAppliedWhy::AwaitingInput), &[Verdict::NotApplied]);
    let probed = effect(not_applied(NotAppliedWhy::Probed), &[Verdict::NotApplied]);
    let refuted = effect(not_applied(NotAppliedWhy::Refuted("404".into())), &[Verdict::NotApplied]);
    let done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    let missing = KeyMissing { wanted: vec!["args.invoice".into()], missing: vec!["args.invoice".into()] };
    vec![
        wording::in_doubt(&doubt),
        wording::lookalike(&doubt, vec!["args.body".into()], true, Again::Person),
        wording::lookalike(&done, vec!["args.request_id".into()], true, Again::Agent),
        wording::superseded(&done, done.id, "mcp:x/delete", Again::Agent, false),
        wording::in_flight(&running, late(), Duration::from_secs(25)),
        wording::turn_taken(Some(&running)),
        wording::turn_taken(None),
        wording::drift(&done, vec!["args.amount".into()], false),
        wording::drift(&done, Vec::new(), false),
        wording::cancelled("release-42", None),
        wording::ended("release-42"),
        wording::budget_spent(&doubt),
        wording::refuted(&refuted),
        wording::again_not_allowed(&done, Again::Person),
        wording::again_not_allowed(&done, Again::Never),
        wording::upstream_refused(&refused),
        wording::upstream_refused(&reported),
        wording::upstream_refused(&awaiting),
        wording::upstream_refused(&probed),
        wording::not_started("no such program"),
        wording::key_required(&missing),
        wording::key_required(&KeyMissing { wanted: Vec::new(), missing: Vec::new() }),
        wording::ledger_unavailable("disk full"),
        wording::undo_by_hand(&done),
        wording::undo_needs_ruling(&doubt),
    ]
}

#[test]
fn every_trouble_answers_all_three_questions() {
    for trouble in every_trouble() {
        assert!(!trouble.what_happened.is_empty(), "{:?}", trouble.code);
        assert!(!trouble.next_step.is_empty(), "{:?}", trouble.code);
        assert!(!trouble.human_next_step.is_empty(), "{:?}", trouble.code);
        assert_eq!(trouble.is_it_safe_to_retry, trouble.code.retry());
    }
}

#[test]
fn a_rule_that_requires_a_key_and_names_no_fields_asks_for_a_key() {
    let trouble = wording::key_required(&KeyMissing { wanted: Vec::new(), missing: Vec::new() });
    assert_eq!(trouble.what_happened, "Not run: the rule requires a key, and the call has none.");
    let next = "Call it with a key: one name for this effect, the same at every retry.";
    assert_eq!(trouble.next_step, next);
}

#[test]
fn only_what_is_proven_is_said_not_to_have_happened() {
    let told = |why, action: &str| {
        let mut effect = effect(not_applied(why), &[Verdict::NotApplied]);
        Arc::make_mut(&mut effect.facts).action = action.into();
        let trouble = wording::upstream_refused(&effect);
        assert_eq!((trouble.code, trouble.is_it_safe_to_retry), (Code::UpstreamRefused, Retry::Yes));
        format!("{} {}", trouble.what_happened, trouble.next_step)
    };
    let reported = || NotAppliedWhy::Reported("exit 1".into());
    assert_eq!(
        told(reported(), "cli:sh"),
        "The command failed (exit 1). Whether it changed anything is not known. It may run again, because nothing \
         says that it must happen only once; give it a `--key` to change that."
    );
    for action in ["cli:sh", "mcp:a/b", "http:POST a/b"] {
        assert!(!told(reported(), action).contains("not happen"), "{action}");
    }
    for why in [NotAppliedWhy::Refused("no".into()), NotAppliedWhy::Probed, NotAppliedWhy::Ruled] {
        assert!(told(why, "cli:sh").starts_with("It did not happen"));
    }
}

#[test]
fn nobody_is_sent_to_an_error_that_nobody_wrote() {
    for (why, has_an_error) in [
        (NotAppliedWhy::Refused("declined".into()), true),
        (NotAppliedWhy::Probed, false),
        (NotAppliedWhy::Ruled, false),
        (NotAppliedWhy::AwaitingInput, false),
    ] {
        let trouble = wording::upstream_refused(&effect(not_applied(why), &[Verdict::NotApplied]));
        assert_eq!(trouble.next_step.contains("error"), has_an_error, "{trouble:?}");
        assert!(trouble.next_step.contains("again"), "{trouble:?}");
    }
}

/// Models read every sentence of it, also the one for people.
#[test]
fn no_sentence_names_the_command_that_rules() {
    for trouble in every_trouble() {
        let text = format!("{} {} {}", trouble.what_happened, trouble.next_step, trouble.human_next_step);
        for ruling in ["ledger resolve", "ledger reopen", "ledger allow-repeat", "ledger undo", "--lift"] {
            assert!(!text.contains(ruling), "{text}");
        }
    }
}

#[test]
fn no_sentence_advises_changing_the_arguments_and_none_calls_a_doubt_failed() {
    for trouble in every_trouble() {
        let text = format!("{} {}", trouble.what_happened, trouble.next_step).to_lowercase();
        for advice in
            ["different argument", "other argument", "change the argument", "another key and", "rephrase"]
        {
            assert!(!text.contains(advice), "{text}");
        }
        if trouble.code == Code::InDoubt {
            assert!(!text.contains("failed"), "{text}");
        }
    }
}

#[test]
fn a_replay_says_when_and_how_well_it_is_known() {
    let now = late().plus(Duration::from_secs(40));
    for (evidence, word) in [
        (Evidence::Accepted, "accepted, not confirmed"),
        (Evidence::Reported, "done"),
        (Evidence::Probed, "a check found 61 min ago that it was done"),
        (Evidence::Ruled, "marked as done"),
    ] {
        let text = wording::done_before(&effect(applied(evidence, None), &[]), now);
        assert!(text.starts_with(word), "{text}");
        assert!(text.contains("it was not run again"), "{text}");
    }
}

#[test]
fn a_replay_right_away_counts_no_seconds() {
    for (evidence, words) in [
        (Evidence::Reported, "just done;"),
        (Evidence::Probed, "a check found just now that it was done;"),
        (Evidence::Accepted, "accepted, not confirmed, just now;"),
    ] {
        let text = wording::done_before(&effect(applied(evidence, None), &[]), after(Duration::from_secs(1)));
        assert!(text.starts_with(words), "{text}");
    }
}

#[test]
fn a_lookalike_and_a_drift_name_what_differs() {
    let lookalike = wording::lookalike(&in_doubt(), vec!["args.body".into()], true, Again::Agent);
    assert_eq!((lookalike.code, &lookalike.differing[..]), (Code::InDoubt, &["args.body".to_owned()][..]));
    assert!(lookalike.what_happened.ends_with("It differs only in args.body."), "{lookalike:?}");
    let among_others = wording::lookalike(&in_doubt(), vec!["args.body".into()], false, Again::Agent);
    assert!(among_others.what_happened.ends_with("It differs in args.body."), "{among_others:?}");
    let drift = wording::drift(&in_doubt(), vec!["action".into(), "args.amount".into()], false);
    assert_eq!(drift.code, Code::Drift);
    assert!(drift.what_happened.contains("action, args.amount"), "{}", drift.what_happened);
}

#[test]
fn what_happened_twice_and_what_was_only_accepted_are_not_told_as_done() {
    let told = |evidence, verdicts: &[Verdict]| {
        let effect = effect(applied(evidence, Some(1)), verdicts);
        let State::Applied(applied) = &effect.state else { panic!("it was applied") };
        wording::how_applied(&effect, applied)
    };
    assert_eq!(told(Evidence::Reported, &[Verdict::Applied]), "done (reported)");
    assert_eq!(told(Evidence::Accepted, &[Verdict::Applied]), "accepted, not confirmed");
    let twice = told(Evidence::Reported, &[Verdict::Applied, Verdict::Applied]);
    assert!(twice.starts_with("HAPPENED TWICE (duplicate_detected)"), "{twice}");
}

#[test]
fn a_drift_from_what_has_no_answer_yet_points_to_no_result() {
    let mut done = effect(applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    let next = |effect: &Effect| wording::drift(effect, vec!["args.amount".into()], false).next_step;
    assert!(!next(&in_doubt()).contains("use its result") && !next(&done).contains("use its result"));
    done.delivered_at = Some(done.opened_at);
    assert!(next(&done).contains("use its result") && next(&done).contains(wording::OR_TELL));
}

#[test]
fn a_drift_speaks_of_a_key_only_where_the_caller_gave_one() {
    let by_rule = in_doubt();
    let mut by_key = by_rule.clone();
    Arc::make_mut(&mut by_key.facts).caller_key = true;
    for (effect, said) in [(by_rule, false), (by_key, true)] {
        let drift = wording::drift(&effect, vec!["args.amount".into()], false);
        assert_eq!(drift.what_happened.contains("the same key"), said, "{}", drift.what_happened);
        assert_eq!(drift.next_step.contains("another key"), said, "{}", drift.next_step);
    }
}
