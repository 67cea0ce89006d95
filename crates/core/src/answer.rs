//! The answer: the same object on every door. Stated in `spec/answer.md`.

use crate::class::Tier;
use crate::effect::Evidence;
pub use crate::effect_word::EffectWord;
use crate::identity::IntentDigest;
use crate::ids::{AttemptNo, EffectId};
use crate::word_table;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    pub ok: bool,
    pub effect: EffectWord,
    pub outcome: OutcomeWord,
    #[schemars(with = "Option<String>")]
    pub effect_id: Option<EffectId>,
    #[schemars(with = "Option<u32>")]
    pub attempt: Option<AttemptNo>,
    pub tier: Tier,
    pub evidence: Option<Evidence>,
    pub reason: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
    /// The effect that took this one back since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub undone_by: Option<EffectId>,
    /// Same identity as an earlier, delivered success; it ran because its class says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub possible_repeat: bool,
    /// The ledger may lose its newest entries in a crash of its server, and this one with them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub best_effort: bool,
    pub data: Value,
}

impl Answer {
    /// An answer about no effect yet, with nothing more to say.
    pub fn plain(ok: bool, effect: EffectWord, outcome: OutcomeWord, tier: Tier) -> Answer {
        Answer {
            ok,
            effect,
            outcome,
            effect_id: None,
            attempt: None,
            tier,
            evidence: None,
            reason: None,
            trouble: None,
            dry_run: None,
            undone_by: None,
            possible_repeat: false,
            best_effort: false,
            data: Value::Null,
        }
    }

    /// An answer that is not ok, about no effect yet.
    pub fn of_trouble(tier: Tier, outcome: OutcomeWord, trouble: Trouble) -> Answer {
        let unknown = matches!(trouble.code, Code::InDoubt | Code::BudgetSpent);
        let effect = if unknown { EffectWord::Unknown } else { EffectWord::None };
        Answer { trouble: Some(trouble), ..Answer::plain(false, effect, outcome, tier) }
    }

    /// Takes over what the tool's own dry run says: its reason, its changes and, unless a rule names the effect, its
    /// word for that.
    pub fn take_own_dry_run(&mut self, said: Value, ruled: Option<EffectWord>) {
        let word = said["effect"].as_str().and_then(EffectWord::parse_foreseen);
        if let Some(word) = ruled.map(EffectWord::would).or(word) {
            self.effect = word;
        }
        self.reason = said["reason"].as_str().map(str::to_owned).or(self.reason.take());
        if let Some(dry_run) = &mut self.dry_run {
            dry_run.changes = match said["changes"].as_array() {
                Some(changes) => changes.clone(),
                None => vec![said],
            };
        }
    }
}

/// Present when not ok. In this order: did it run; may I try again; what do I do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trouble {
    pub code: Code,
    pub what_happened: String,
    pub is_it_safe_to_retry: Retry,
    pub next_step: String,
    pub human_next_step: String,
    /// Argument paths that differ, for drift and lookalikes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DryRun {
    pub would: Would,
    #[schemars(with = "String")]
    pub intent_digest: IntentDigest,
    pub rule: String,
    pub changes: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Would {
    Run,
    Replay,
    Wait,
    Hold,
    Refuse,
}

/// semel's treatment of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    Ran,
    Replayed,
    Joined,
    Held,
    Refused,
    DryRun,
}

word_table!(OutcomeWord {
    Ran = "ran", Replayed = "replayed", Joined = "joined", Held = "held", Refused = "refused", DryRun = "dry_run",
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    Yes,
    No,
    Wait,
}

/// Why a call was not answered with success. Stable for ever; one page each in `docs/errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    InFlight,
    Drift,
    InDoubt,
    KeyRequired,
    Cancelled,
    BudgetSpent,
    Refuted,
    HeldForPerson,
    Lookalike,
    Superseded,
    CannotUndo,
    UpstreamRefused,
    NotStarted,
    LedgerUnavailable,
    PolicyInvalid,
}

word_table!(Code {
    InFlight = "in_flight", Drift = "drift", InDoubt = "in_doubt", KeyRequired = "key_required",
    Cancelled = "cancelled", BudgetSpent = "budget_spent", Refuted = "refuted", HeldForPerson = "held_for_person",
    Lookalike = "lookalike", Superseded = "superseded", CannotUndo = "cannot_undo",
    UpstreamRefused = "upstream_refused", NotStarted = "not_started", LedgerUnavailable = "ledger_unavailable",
    PolicyInvalid = "policy_invalid",
});

impl Code {
    pub fn retry(self) -> Retry {
        match self {
            Code::InFlight | Code::BudgetSpent => Retry::Wait,
            Code::UpstreamRefused | Code::NotStarted | Code::LedgerUnavailable => Retry::Yes,
            Code::Drift
            | Code::InDoubt
            | Code::KeyRequired
            | Code::Cancelled
            | Code::Refuted
            | Code::HeldForPerson
            | Code::Lookalike
            | Code::Superseded
            | Code::CannotUndo
            | Code::PolicyInvalid => Retry::No,
        }
    }

    /// The exit status of `semel run`; `None` where the command's own stands (or, for `not_started`, 125 to 127).
    pub fn exit(self) -> Option<u8> {
        match self {
            Code::KeyRequired
            | Code::Cancelled
            | Code::BudgetSpent
            | Code::Refuted
            | Code::HeldForPerson
            | Code::Lookalike
            | Code::Superseded
            | Code::CannotUndo => Some(120),
            Code::InDoubt => Some(121),
            Code::InFlight => Some(122),
            Code::Drift => Some(123),
            Code::LedgerUnavailable | Code::PolicyInvalid => Some(125),
            Code::UpstreamRefused | Code::NotStarted => None,
        }
    }
}
