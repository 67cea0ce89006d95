//! An answer of the server, read back.

use semel_core::answer::{Answer, Code, DryRun, EffectWord, OutcomeWord, Retry, Trouble, Would};
use semel_core::class::Tier;
use semel_core::effect::Evidence;
use semel_core::identity::IntentDigest;
use semel_core::ids::{AttemptNo, EffectId};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
struct AnswerForm {
    ok: bool,
    effect: EffectWord,
    outcome: String,
    effect_id: Option<EffectId>,
    attempt: Option<AttemptNo>,
    tier: Tier,
    evidence: Option<Evidence>,
    reason: Option<String>,
    code: Option<String>,
    what_happened: Option<String>,
    is_it_safe_to_retry: Option<String>,
    next_step: Option<String>,
    human_next_step: Option<String>,
    #[serde(default)]
    differing: Vec<String>,
    would: Option<String>,
    intent_digest: Option<IntentDigest>,
    rule: Option<String>,
    #[serde(default)]
    changes: Vec<Value>,
    undone_by: Option<EffectId>,
    #[serde(default)]
    possible_repeat: bool,
    #[serde(default)]
    best_effort: bool,
    #[serde(default)]
    data: Value,
}

/// `None`: it is no answer object, or one of a semel that has words which this one does not know.
pub fn read(value: &Value) -> Option<Answer> {
    let form = AnswerForm::deserialize(value).ok()?;
    let trouble = match form.code {
        None => None,
        Some(code) => Some(Trouble {
            code: Code::parse(&code)?,
            what_happened: form.what_happened?,
            is_it_safe_to_retry: match form.is_it_safe_to_retry?.as_str() {
                "yes" => Retry::Yes,
                "no" => Retry::No,
                "wait" => Retry::Wait,
                _ => return None,
            },
            next_step: form.next_step.unwrap_or_default(),
            human_next_step: form.human_next_step.unwrap_or_default(),
            differing: form.differing,
        }),
    };
    let dry_run = match form.would {
        None => None,
        Some(would) => Some(DryRun {
            would: match would.as_str() {
                "run" => Would::Run,
                "replay" => Would::Replay,
                "wait" => Would::Wait,
                "hold" => Would::Hold,
                "refuse" => Would::Refuse,
                _ => return None,
            },
            intent_digest: form.intent_digest?,
            rule: form.rule?,
            changes: form.changes,
        }),
    };
    Some(Answer {
        ok: form.ok,
        effect: form.effect,
        outcome: OutcomeWord::parse(&form.outcome)?,
        effect_id: form.effect_id,
        attempt: form.attempt,
        tier: form.tier,
        evidence: form.evidence,
        reason: form.reason,
        trouble,
        dry_run,
        undone_by: form.undone_by,
        possible_repeat: form.possible_repeat,
        best_effort: form.best_effort,
        data: form.data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_core::digest::Digest;

    #[test]
    fn every_answer_reads_back_as_it_was() {
        let plain = Answer::plain(true, EffectWord::Created, OutcomeWord::Ran, Tier::Keyed);
        let mut answers = vec![Answer {
            effect_id: EffectId::parse("ef_01J8ZQ6Y7N3V0R8Q4T5W6X7Y8Z"),
            attempt: Some(AttemptNo(2)),
            evidence: Some(Evidence::Accepted),
            reason: Some("why".into()),
            possible_repeat: true,
            best_effort: true,
            ..plain.clone()
        }];
        for code in Code::ALL {
            let trouble = Trouble {
                code,
                what_happened: "what".into(),
                is_it_safe_to_retry: code.retry(),
                next_step: "next".into(),
                human_next_step: "human".into(),
                differing: vec!["args.a".into()],
            };
            answers.push(Answer::of_trouble(Tier::Opaque, OutcomeWord::Held, trouble));
        }
        for would in [Would::Run, Would::Replay, Would::Wait, Would::Hold, Would::Refuse] {
            let digest = IntentDigest(Digest::of(&[b"a"]));
            let dry_run =
                DryRun { would, intent_digest: digest, rule: "r".into(), changes: vec![Value::from(1)] };
            answers.push(Answer { dry_run: Some(dry_run), ..plain.clone() });
        }
        for answer in answers {
            let value = serde_json::to_value(&answer).expect("JSON");
            assert_eq!(read(&value), Some(answer));
        }
        assert_eq!(read(&serde_json::json!({"title": "Bad Gateway"})), None);
    }
}
