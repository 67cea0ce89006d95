//! Names the intent of a call as the guard would: by the policy's rule and the core's defaults.

use crate::transcript::ActionCall;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::identity::Marks;
use semel_core::ids::Reason;
use semel_core::intent::{Alike, Ask, AskedBy, Intent, KeyMissing, NamedBy};
use semel_core::policy::pack::PACKS;
use semel_core::policy::rule::RuleOrigin;
use semel_core::policy::{ActionFacts, Diagnostics, Policy, PolicyFile, Rule};
use std::sync::Arc;
use std::time::Duration;

/// The digests of an audit never leave it, so any secret serves.
const SECRET: [u8; 32] = *b"one audit compares with itself..";

#[derive(Debug)]
pub struct Judge {
    policy: Policy,
    secret: Secret,
}

/// What a repeat of a call would mean.
#[derive(Debug, Clone)]
pub enum Judgement {
    /// It changes nothing.
    Read,
    /// It converges, or only asks a model.
    Repeatable,
    Effect(Judged),
}

/// An effectful call with the keys that it is compared by.
#[derive(Debug, Clone)]
pub struct Judged {
    pub action: String,
    pub class: Class,
    pub subject: String,
    /// Equal for calls of one intent.
    pub intent: u64,
    /// Equal for calls that are compared: of one outline, or else of one intent.
    pub group: u64,
    /// The outline has a title or an amount and answers no thread: two of them are seldom meant.
    pub is_specific: bool,
    /// The server that removals are looked for at, and whether this call is one.
    pub removals: Option<u64>,
    pub is_removal: bool,
    pub marks: Arc<Marks>,
    /// How long a delivered success stands for its repeats.
    pub window: Option<Duration>,
    /// The call says itself that it repeats another on purpose.
    pub is_deliberate: bool,
}

impl Judge {
    /// Under a policy, with the shipped packs behind it.
    pub fn new(files: Vec<PolicyFile>) -> Result<Judge, Diagnostics> {
        Ok(Judge::of(with_packs(files)?))
    }

    /// Under this policy alone.
    pub fn of(policy: Policy) -> Judge {
        Judge { policy, secret: Secret::new(SECRET) }
    }

    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    pub fn rule(&self, call: &ActionCall) -> Arc<Rule> {
        self.policy.rule_for(&ActionFacts::new(&call.action, &call.arguments))
    }

    /// The intent that the gate would make of a call. `again` is the reason of a deliberate repeat.
    pub fn intent(
        &self,
        call: &ActionCall,
        rule: &Rule,
        again: Option<Reason>,
    ) -> Result<Intent, KeyMissing> {
        let ask = Ask {
            tenant: "audit",
            principal: "",
            authority: "",
            action: &call.action,
            arguments: &call.arguments,
            run: None,
            key: None,
            again,
            asked_by: AskedBy::Agent,
            call_id: None,
            live_connection: false,
            serialize_by: None,
            replay_refusals: false,
        };
        if !call.action.starts_with("cli:") {
            return Intent::of(&ask, rule, &self.secret);
        }
        let mut rule = rule.clone();
        rule.sorting.set_surroundings_aside(&call.arguments, false);
        Intent::of(&ask, &rule, &self.secret)
    }

    pub fn judge(&self, call: &ActionCall) -> Judgement {
        let rule = self.rule(call);
        match rule.class {
            Class::Read => Judgement::Read,
            Class::Convergent | Class::Generate => Judgement::Repeatable,
            // Most commands that no rule knows are builds and searches, which people run again at will.
            Class::Act if call.action.starts_with("cli:") && rule.origin == RuleOrigin::Default => {
                Judgement::Repeatable
            }
            Class::Act | Class::Consequential => {
                self.effect(call, &rule).map_or(Judgement::Repeatable, Judgement::Effect)
            }
        }
    }

    fn effect(&self, call: &ActionCall, rule: &Rule) -> Option<Judged> {
        // A rule that requires a key refuses the call at the gate; here its arguments are all that is known.
        let intent = match self.intent(call, rule, None) {
            Ok(intent) => intent,
            Err(_) => {
                let mut loose = rule.clone();
                loose.key_required = false;
                self.intent(call, &loose, None).ok()?
            }
        };
        let (group, is_specific, removals) = match intent.alike {
            // A rule's fields say what is the same, and nothing else does.
            Alike::Outline { removals, .. } if intent.named_by == NamedBy::Rule => {
                (intent.key, false, removals)
            }
            Alike::Outline { key, is_specific, is_answer, removals } => {
                (key, is_specific && !is_answer, removals)
            }
            Alike::Removal(server) => (intent.key, false, Some(server)),
            Alike::Nothing => (intent.key, false, None),
        };
        let again = call.arguments.get("args").and_then(|args| args.get("semel_again"));
        Some(Judged {
            class: rule.class,
            subject: intent.subject,
            intent: intent.key.short(),
            group: group.short(),
            is_specific,
            removals: removals.map(|digest| digest.short()),
            is_removal: matches!(intent.alike, Alike::Removal(_)),
            marks: intent.marks,
            window: intent.window,
            is_deliberate: again.is_some(),
            action: intent.action,
        })
    }
}

/// The policy of these files, with every shipped pack behind them.
pub fn with_packs(files: Vec<PolicyFile>) -> Result<Policy, Diagnostics> {
    let includes: Vec<String> = PACKS.iter().map(|pack| format!("\"pack:{}\"", pack.name)).collect();
    let packs = PolicyFile {
        path: "packs".into(),
        text: format!("version = 1\ninclude = [{}]\n", includes.join(", ")),
    };
    Policy::load(files.into_iter().chain([packs]).collect())
}
