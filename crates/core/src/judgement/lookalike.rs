//! Compares a consequential call with another effect of its outline: it may run, waits for its end, or is held.

use crate::effect::{Effect, State};
use crate::intent::{Alike, AskedBy, Intent, NamedBy};
use crate::policy::rule::{Again, Rule};
use crate::time::Clocks;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookalike {
    /// Both may happen.
    MayRun,
    /// The other one is running, and its end tells.
    Wait,
    /// It may be the same thing again.
    Held {
        /// The arguments that differ.
        paths: Vec<String>,
        /// Says who may start it all the same.
        until: Again,
    },
}

/// `spent`: another effect with this outline was begun after a person had let `other` happen once more.
pub fn compare(intent: &Intent, rule: &Rule, other: &Effect, spent: bool, clocks: &Clocks) -> Lookalike {
    let Alike::Outline { is_specific, is_answer, .. } = intent.alike else { return Lookalike::MayRun };
    // A caller's key and a rule's fields say what is the same. But SDKs make up a key for each call, so the very same
    // arguments under another key wait as long as nobody knows about the first.
    let by_arguments = intent.named_by == NamedBy::Arguments;
    let difference = other.marks.difference(&intent.marks);
    // Under a key a command is the same wherever it is run.
    let is_place = |path: &String| path == "cwd" || path == "argv[0]";
    let differs = match by_arguments {
        true => !other.facts.caller_key && difference.paths.iter().any(is_place),
        false => !difference.paths.iter().all(is_place),
    };
    if differs {
        return Lookalike::MayRun;
    }
    let until = match &other.state {
        // One lost message must not block a channel; two payments are seldom meant.
        State::InFlight { .. } | State::InDoubt(_) => {
            rule.again.max(if is_specific { Again::Person } else { Again::Agent })
        }
        State::Applied(_) if by_arguments && other.undone.is_none() => {
            let claimed = other.newest_attempt().and_then(|newest| newest.uptime);
            let age = other.delivered_at.map(|delivered| clocks.shortest_since(delivered, claimed));
            let is_over = age.is_some_and(|age| intent.window.is_some_and(|window| age >= window));
            let is_likely =
                other.delivered_at.is_none() || difference.stamps_alone || (is_specific && !is_answer);
            if is_over || !is_likely {
                return Lookalike::MayRun;
            }
            rule.again
        }
        _ => return Lookalike::MayRun,
    };
    let is_permitted = match until {
        Again::Agent => intent.again.is_some(),
        Again::Person => {
            let by_person = intent.again.is_some() && intent.asked_by == AskedBy::Person;
            by_person || (other.repeat_permitted.is_some() && !spent)
        }
        Again::Never => false,
    };
    match other.state {
        _ if is_permitted => Lookalike::MayRun,
        State::InFlight { .. } => Lookalike::Wait,
        // Under a key the place of a command is no difference.
        _ => Lookalike::Held { paths: if by_arguments { difference.paths } else { Vec::new() }, until },
    }
}
