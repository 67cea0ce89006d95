//! An effect in JSON: one form, wherever effects are listed, shown or exported.

use schemars::JsonSchema;
use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::digest::Digest;
use semel_core::effect::{Attempt, Effect, Evidence, Reply, State, Verdict};
use semel_core::identity::IntentDigest;
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::undo::Undo;
use semel_core::wording;
use semel_ledger::Ledger;
use semel_ledger::journal::state_word;
use semel_ledger::ledger::KeptReply;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Effect")]
pub struct EffectJson {
    #[schemars(with = "String")]
    pub effect_id: EffectId,
    pub action: String,
    pub subject: String,
    pub class: Class,
    pub tier: Tier,
    /// `in_flight`, `applied`, `not_applied` or `in_doubt`.
    pub state: &'static str,
    pub evidence: Option<Evidence>,
    pub why: Option<String>,
    pub effect: EffectWord,
    pub run: Option<String>,
    pub occurrence: u32,
    pub attempts: Vec<AttemptJson>,
    pub opened_at: String,
    pub changed_at: String,
    pub delivered_at: Option<String>,
    pub caller_key: bool,
    #[schemars(with = "String")]
    pub intent_digest: IntentDigest,
    pub rule: String,
    pub reply: ReplyKept,
    /// How it can be taken back, or why it cannot; null where its rule does not say.
    pub undo: Option<UndoJson>,
    /// It was taken back.
    pub undone: Option<UndoneJson>,
    /// It takes another effect back.
    pub undoes: Option<UndoesJson>,
    /// Somebody lets it happen once more.
    pub released: Option<ReleasedJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Released")]
pub struct ReleasedJson {
    pub by: String,
    pub reason: String,
    pub at: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Undo")]
pub struct UndoJson {
    pub call: Option<String>,
    pub why_not: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Undone")]
pub struct UndoneJson {
    #[schemars(with = "String")]
    pub by: EffectId,
    pub at: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Undoes")]
pub struct UndoesJson {
    #[schemars(with = "String")]
    pub effect_id: EffectId,
    pub by: String,
    pub reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptJson {
    #[schemars(with = "u32")]
    pub number: AttemptNo,
    pub claimed_at: String,
    /// Set by its rule or its caller. Without one its holder watches it.
    pub deadline: Option<String>,
    pub verdict: Verdict,
    pub resend: bool,
}

/// What is left of the upstream's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKept {
    Kept,
    /// It was recorded, and retention has dropped it since.
    Pruned,
    /// It was recorded, and its bytes have changed since.
    Damaged,
    Unknown,
    TooLarge,
}

impl EffectJson {
    pub fn of(effect: &Effect, reply: ReplyKept) -> Self {
        let (evidence, word) = match &effect.state {
            State::Applied(applied) => (Some(applied.evidence), applied.word),
            State::InDoubt(_) => (None, EffectWord::Unknown),
            State::InFlight { .. } | State::NotApplied(_) => (None, EffectWord::None),
        };
        EffectJson {
            effect_id: effect.id,
            action: effect.facts.action.clone(),
            subject: effect.facts.subject.clone(),
            class: effect.facts.class,
            tier: effect.facts.tier,
            state: state_word(&effect.state),
            evidence,
            why: why(effect),
            effect: word,
            run: effect.facts.run.as_ref().map(|run| run.id.clone()),
            occurrence: effect.occurrence.number,
            attempts: effect.attempts.iter().map(AttemptJson::of).collect(),
            opened_at: effect.opened_at.to_string(),
            changed_at: effect.changed_at().to_string(),
            delivered_at: effect.delivered_at.map(|at| at.to_string()),
            caller_key: effect.facts.caller_key,
            intent_digest: effect.facts.digest,
            rule: effect.facts.rule.clone(),
            reply,
            undo: effect.undo.as_ref().map(|undo| match undo {
                Undo::By(call) => UndoJson { call: Some(call.to_string()), why_not: None },
                Undo::Not(why) => UndoJson { call: None, why_not: Some(why.clone()) },
            }),
            undone: effect.undone.map(|undone| UndoneJson { by: undone.by, at: undone.at.to_string() }),
            undoes: effect.facts.undoes.as_ref().map(|undoes| UndoesJson {
                effect_id: undoes.effect,
                by: undoes.by.clone(),
                reason: undoes.reason.as_str().to_owned(),
            }),
            released: effect.repeat_permitted.as_ref().map(|ruling| ReleasedJson {
                by: ruling.by.clone(),
                reason: ruling.reason.as_str().to_owned(),
                at: ruling.at.to_string(),
            }),
        }
    }

    /// With a look at whether the reply is still there.
    pub async fn read(ledger: &Ledger, key: Digest, effect: &Effect) -> Result<Self, semel_ledger::Error> {
        reply(ledger, key, effect).await.map(|(kept, _)| EffectJson::of(effect, kept))
    }
}

impl AttemptJson {
    fn of(attempt: &Attempt) -> Self {
        AttemptJson {
            number: attempt.number,
            claimed_at: attempt.claimed_at.to_string(),
            deadline: attempt.timeout_at().map(|at| at.to_string()),
            verdict: attempt.verdict,
            resend: attempt.resend,
        }
    }
}

/// Why it is not, or not known to be, applied.
pub fn why(effect: &Effect) -> Option<String> {
    match &effect.state {
        State::InDoubt(doubt) => Some(wording::why_in_doubt(&doubt.why)),
        State::NotApplied(not_applied) => Some(wording::why_not_applied(&not_applied.why)),
        State::InFlight { .. } | State::Applied(_) => None,
    }
}

/// The rest of an effect's reply, and the bytes where there are any.
pub async fn reply(
    ledger: &Ledger,
    key: Digest,
    effect: &Effect,
) -> Result<(ReplyKept, Option<Vec<u8>>), semel_ledger::Error> {
    let said = match &effect.state {
        State::Applied(applied) => applied.reply,
        State::NotApplied(not_applied) => not_applied.reply,
        State::InFlight { .. } | State::InDoubt(_) => Reply::Unknown,
    };
    Ok(match said {
        Reply::Unknown => (ReplyKept::Unknown, None),
        Reply::TooLarge(_) => (ReplyKept::TooLarge, None),
        Reply::Kept => match ledger.reply(key, effect.occurrence.number).await? {
            Some(KeptReply::Whole(bytes)) => (ReplyKept::Kept, Some(bytes)),
            Some(KeptReply::Damaged) => (ReplyKept::Damaged, None),
            None => (ReplyKept::Pruned, None),
        },
    })
}
