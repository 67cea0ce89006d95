//! Names the intent of a call as the guard would: by the policy's rule and the core's defaults.

use crate::ending::Ending;
use crate::transcript::ActionCall;
use semel_core::class::Class;
use semel_core::digest::Secret;
use semel_core::identity::Marks;
use semel_core::ids::Reason;
use semel_core::intent::{Alike, Ask, Intent, KeyMissing, NamedBy};
use semel_core::json::Json;
use semel_core::judgement::superseded;
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
    /// It converges, and removes something.
    Removal(Removal),
    Effect(Judged),
    /// It changes something, and nobody recorded its arguments.
    NotComparable,
}

/// The server that a removal belongs to, and the thing that it removes.
#[derive(Debug, Clone)]
pub struct Removal {
    pub server: u64,
    /// The marks that name it.
    pub named: Vec<u64>,
}

/// How long a lost call is held against a later one. A job that runs each day is no retry of yesterday's.
const OPEN_FOR: Duration = Duration::from_secs(20 * 3600);

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
    /// The server that removals of the thing made are looked for at.
    pub removals: Option<u64>,
    /// The call is a removal itself.
    pub removal: Option<Removal>,
    pub marks: Arc<Marks>,
    /// How long a delivered success stands for its repeats.
    pub window: Option<Duration>,
    /// The call says itself that it repeats another on purpose.
    pub is_deliberate: bool,
}

impl Judged {
    /// Whether a call of the same intent, so much later, is a new effect and no repeat of this one.
    pub fn is_over(&self, ending: Ending, age: Option<Duration>) -> bool {
        let window = if ending == Ending::Applied { self.window } else { Some(OPEN_FOR) };
        age.zip(window).is_some_and(|(age, window)| age >= window)
    }
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
        let ask = Ask { again, ..Ask::of(("audit", ""), &call.action, &call.arguments) };
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
            Class::Convergent if superseded::removes(&call.action) => {
                let removal = self.effect(call, &rule).and_then(|judged| judged.removal);
                removal.map_or(Judgement::Repeatable, Judgement::Removal)
            }
            Class::Convergent | Class::Generate => Judgement::Repeatable,
            // Most commands that no rule knows are builds and searches, which people run again at will.
            Class::Act if call.action.starts_with("cli:") && rule.origin == RuleOrigin::Default => {
                Judgement::Repeatable
            }
            Class::Act | Class::Consequential if call.arguments.get("args") == Some(&Json::Null) => {
                Judgement::NotComparable
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
        let (mut group, mut is_specific, mut removals, mut removal) = (intent.key, false, None, None);
        match intent.alike {
            Alike::Outline { key, is_specific: specific, is_answer, removals: server, .. }
                if rule.class == Class::Consequential =>
            {
                removals = server.map(|server| server.short());
                // A rule's fields say what is the same, and nothing else does.
                if intent.named_by != NamedBy::Rule {
                    (group, is_specific) = (key, specific && !is_answer);
                }
            }
            Alike::Removal { key: server, .. } => {
                let named = superseded::naming_marks(&self.secret, &intent.marks);
                removal = Some(Removal { server: server.short(), named });
            }
            Alike::Outline { .. } | Alike::Nothing => {}
        }
        let again = call.arguments.get("args").and_then(|args| args.get("semel_again"));
        Some(Judged {
            class: rule.class,
            subject: intent.subject,
            intent: intent.key.short(),
            group: group.short(),
            is_specific,
            removals,
            removal,
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
