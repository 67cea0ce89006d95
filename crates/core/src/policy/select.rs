//! Choosing the rule for one call: the first that matches, completed by the defaults.

use super::compile::{BECAUSE_OF_RULE, RuleCondition, RuleEntry};
use super::rule::{Again, Rule, RuleOrigin};
use super::{ActionFacts, Mode, Policy};
use crate::class::Class;
use crate::effect::Facts;
use crate::json::{Json, Object};
use crate::judgement::recognise;
use crate::redact::REDACTED;
use std::borrow::Cow;
use std::sync::Arc;

/// The parts that a request may or may not have.
const PARTS: [&str; 3] = ["query", "body", "headers"];

/// How one rule fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchResult {
    Matched,
    /// `match` does not cover the action.
    OtherAction,
    /// `match` does, `when` does not hold.
    OtherArguments {
        condition: String,
    },
    /// `when` could not be evaluated.
    Undecided {
        why: String,
    },
}

impl Policy {
    pub(super) fn select(
        &self,
        facts: &ActionFacts<'_>,
        trace: &mut dyn FnMut(&RuleEntry, MatchResult),
    ) -> Arc<Rule> {
        let name = matched_name(facts);
        let mut undecided: Option<Rule> = None;
        for entry in &self.rules {
            if !entry.pattern.matches(&name) {
                trace(entry, MatchResult::OtherAction);
                continue;
            }
            let tried = entry.holds(facts);
            trace(entry, tried.clone());
            match (tried, undecided.take()) {
                (MatchResult::Matched, None) => return self.complete(entry, facts),
                (MatchResult::Matched, Some(careful)) => {
                    return Arc::new(careful.restricted_by(&self.complete(entry, facts)));
                }
                (MatchResult::Undecided { why }, None) => {
                    undecided = Some(self.undecided(entry, &why, facts))
                }
                (MatchResult::Undecided { .. }, Some(careful)) => {
                    undecided = Some(careful.restricted_by(&self.complete(entry, facts)));
                }
                (MatchResult::OtherAction | MatchResult::OtherArguments { .. }, so_far) => undecided = so_far,
            }
        }
        Arc::new(undecided.unwrap_or_else(|| {
            let (class, because) = self.class(None, facts);
            self.defaults.rule(RuleOrigin::Default, class, because)
        }))
    }

    /// The class that holds for an action other than a command's, where its arguments have no say in it.
    pub fn class_of_all(&self, facts: &ActionFacts<'_>) -> Option<Class> {
        match self.rules.iter().find(|entry| entry.pattern.matches(facts.action)) {
            Some(entry) if entry.when.is_some() => None,
            entry => Some(self.class(entry.and_then(|entry| entry.class), facts).0),
        }
    }

    /// The rule that an effect was made under, whose arguments are not at hand any more: the one that stands where that
    /// one stood, if it is still about such an action; else whatever holds without arguments.
    pub fn rule_kept(&self, action: &str, origin: &str) -> Arc<Rule> {
        let facts = ActionFacts::new(action, &Json::Null);
        let mut there = self.rules.iter().filter(|entry| entry.rule.origin.to_string() == origin);
        let about_it = there.clone().find(|entry| entry.pattern.matches(action));
        // A name of which a secret was redacted is not the name that the pattern knows.
        let about_it = about_it.or_else(|| there.next_back().filter(|_| action.contains(REDACTED)));
        match about_it {
            Some(entry) => self.complete(entry, &facts),
            None => self.select(&facts, &mut |_, _| {}),
        }
    }

    /// Whether a call of such an action may still be read as this effect's was. Conditions and the rest of a command line
    /// are not at hand, so any rule that may apply will do.
    pub fn still_reads(&self, facts: &Facts) -> bool {
        if facts.caller_key || facts.undoes.is_some() {
            return true;
        }
        let is_command = facts.action.starts_with("cli:");
        // Arguments that no pattern spells out.
        let any_line = format!("{} \u{1}", facts.action);
        for entry in &self.rules {
            let applies = entry.pattern.matches(if is_command { &any_line } else { &facts.action });
            let may_apply = applies || (is_command && entry.pattern.may_match(&facts.action));
            if may_apply && entry.rule.sorting.reading == facts.reading {
                return true;
            }
            if applies && entry.when.is_none() {
                return false;
            }
        }
        facts.reading == 0
    }

    /// Why nobody can let an effect happen once more, where its rule says so.
    pub fn never_again(&self, facts: &Facts) -> Option<String> {
        if facts.undoes.is_some() {
            return Some("it takes something back, which is done once".to_owned());
        }
        let rule = self.rule_kept(&facts.action, &facts.rule);
        let never = rule.again == Again::Never;
        never.then(|| format!("{} says again = \"never\", so no call runs once more", rule.origin))
    }

    /// Nobody knows whether the rule applies, so neither its permissions nor its identity is used: all arguments
    /// count, and a repeat is never blind. What it forbids stays forbidden.
    fn undecided(&self, entry: &RuleEntry, why: &str, facts: &ActionFacts<'_>) -> Rule {
        let (class, because) = match facts.class_override {
            Some(_) => self.class(None, facts),
            None => {
                let because = format!("the rule's condition could not be evaluated: {why}");
                (Class::Consequential, because.into())
            }
        };
        let plain = self.defaults.rule(entry.rule.origin.clone(), class, because);
        Rule { budget: 0, ..plain }.restricted_by(&self.complete(entry, facts))
    }

    /// The compiled rule where it holds as it is, else a copy with what this call's own facts make of it.
    fn complete(&self, entry: &RuleEntry, facts: &ActionFacts<'_>) -> Arc<Rule> {
        let (class, because) = self.class(entry.class, facts);
        let mut rule = Arc::clone(&entry.rule);
        if (class, &because) != (rule.class, &rule.class_because) {
            let own = Arc::make_mut(&mut rule);
            (own.class, own.class_because) = (class, because);
            own.converges &= self.mode != Mode::Strict;
            (own.wait, own.late_after) = (entry.choices.wait(class), entry.choices.late_after(class));
        }
        if rule.inject.as_ref().is_some_and(|inject| !inject.into.is_of(facts.action)) {
            Arc::make_mut(&mut rule).inject = None;
        }
        rule
    }

    fn class(&self, of_rule: Option<Class>, facts: &ActionFacts<'_>) -> (Class, Cow<'static, str>) {
        let (class, because) = match (facts.class_override, of_rule) {
            (Some(class), _) => (class, "the caller named it".into()),
            (None, Some(class)) => (class, BECAUSE_OF_RULE),
            (None, None) => {
                let (class, because) = recognise::class(facts.action, facts.annotations, facts.trusted);
                (class, because.into())
            }
        };
        if self.mode == Mode::Strict && class != Class::Read && class != Class::Consequential {
            let because = format!("mode is strict (otherwise {class}: {because})");
            return (Class::Consequential, because.into());
        }
        (class, because)
    }
}

/// The name that patterns are matched against: the action, and for commands all arguments after the program's name.
fn matched_name<'a>(facts: &ActionFacts<'a>) -> Cow<'a, str> {
    let argv = facts.arguments.get("argv").and_then(Json::as_array);
    let (true, Some([_, arguments @ ..])) = (facts.action.starts_with("cli:"), argv) else {
        return Cow::Borrowed(facts.action);
    };
    let mut name = facts.action.to_owned();
    for argument in arguments {
        name.push(' ');
        name.push_str(argument.as_str().unwrap_or_default());
    }
    Cow::Owned(name)
}

impl RuleEntry {
    fn holds(&self, facts: &ActionFacts<'_>) -> MatchResult {
        match &self.when {
            None => MatchResult::Matched,
            Some(RuleCondition::Equal(pairs)) => {
                let differs = pairs.iter().find(|(path, expected)| {
                    !path.find(facts.arguments).iter().any(|(_, value)| *value == expected)
                });
                match differs {
                    None => MatchResult::Matched,
                    Some((path, expected)) => MatchResult::OtherArguments {
                        condition: format!("{path} = {}", expected.canonical()),
                    },
                }
            }
            Some(RuleCondition::Expression(expression)) => {
                let action = Json::str(facts.action);
                let mut variables = vec![("action", &action)];
                variables.extend(facts.arguments.as_object().into_iter().flat_map(|object| object.iter()));
                // A missing part of a request is empty, so that a condition can ask for it.
                let empty = Json::Object(Object::new());
                if facts.action.starts_with("http:") {
                    let absent = PARTS.iter().filter(|part| facts.arguments.get(part).is_none());
                    variables.extend(absent.map(|part| (*part, &empty)));
                }
                match expression.eval_bool(&variables) {
                    Ok(true) => MatchResult::Matched,
                    Ok(false) => MatchResult::OtherArguments { condition: expression.source().to_owned() },
                    Err(error) => MatchResult::Undecided { why: error.to_string() },
                }
            }
        }
    }
}
