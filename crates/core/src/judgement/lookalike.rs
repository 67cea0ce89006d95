//! Compares a call with another effect of its outline: it is that effect, may run, waits for its end, or is held.

use crate::class::Class;
use crate::effect::{Effect, State};
use crate::ids::Run;
use crate::intent::{Alike, AskedBy, Intent, NamedBy};
use crate::policy::rule::{Again, Rule, ScopeChoice};
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
        /// No other does, in any spelling.
        is_all: bool,
        /// Says who may start it all the same.
        until: Again,
    },
}

/// Whether a call is this effect, which has another identity because the policy or the caller's way of naming it was
/// another one: it has the same arguments, or the call's own rule tells the two apart by none that differs.
pub fn is_the_same(intent: &Intent, rule: &Rule, other: &Effect) -> bool {
    let (by_key, was_by_key) = (intent.named_by == NamedBy::CallerKey, other.facts.caller_key);
    // One identity in two scopes: another policy set the scope of the other one.
    if other.facts.digest == intent.digest && is_in_scope(intent, rule, other) {
        return true;
    }
    let is_read_alike = other.facts.reading == rule.sorting.reading && by_key == was_by_key;
    if is_read_alike || (by_key && was_by_key) {
        // The same policy gave them two names.
        return false;
    }
    // A caller that names its calls means another one once this one was answered; and a header was not kept.
    let is_over = matches!(other.state, State::Applied(_)) && other.delivered_at.is_some();
    if is_over
        && (by_key || rule.sorting.ruled_headers().next().is_some() || !is_in_scope(intent, rule, other))
    {
        return false;
    }
    let tells_apart = |leaf: &str| intent.named_by != NamedBy::Rule || rule.sorting.tells_apart_by(leaf);
    other.marks.says_the_same(&intent.marks, tells_apart)
}

/// Whether the scope of the call is that of the effect as well.
fn is_in_scope(intent: &Intent, rule: &Rule, other: &Effect) -> bool {
    let named = |run: &Option<Run>| run.as_ref().filter(|run| run.named).map(|run| run.id.clone());
    rule.scope == Some(ScopeChoice::Global) || named(&intent.run) == named(&other.facts.run)
}

/// `spent`: another effect with this outline was begun after a person had let `other` happen once more.
pub fn compare(intent: &Intent, rule: &Rule, other: &Effect, spent: bool, clocks: &Clocks) -> Lookalike {
    let Alike::Outline { is_specific, is_answer, .. } = intent.alike else { return Lookalike::MayRun };
    let is_consequential = rule.class == Class::Consequential || other.facts.class == Class::Consequential;
    // Under another policy the two may have been one.
    let was_read_otherwise = other.is_open()
        && other.facts.reading != rule.sorting.reading
        && [rule.class, other.facts.class].iter().all(|class| *class != Class::Convergent);
    if !(is_consequential || was_read_otherwise) || !is_in_scope(intent, rule, other) {
        return Lookalike::MayRun;
    }
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
            let by_person = is_specific || was_read_otherwise || !by_arguments;
            rule.again.max(if by_person { Again::Person } else { Again::Agent })
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
        _ => {
            // What another rule has sorted otherwise, or spelled otherwise before it was compared, may be the same.
            let read_alike = rule.sorting.reading == other.facts.reading;
            let paths = if by_arguments && read_alike { difference.paths } else { Vec::new() };
            // A command reads files and variables besides.
            let is_known = rule.sorting.reading == 0 && !intent.action.starts_with("cli:");
            let is_all = difference.is_all && is_known && !paths.is_empty();
            Lookalike::Held { paths, is_all, until }
        }
    }
}
