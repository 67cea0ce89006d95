//! Choosing the rule for one call: the first that matches, completed by the defaults.

use super::build::{Choices, Condition, Written};
use super::readings::{Reading, Readings};
use super::rule::{Again, Origin, Rule};
use super::{ActionFacts, Mode, Policy};
use crate::class::Class;
use crate::effect::Facts;
use crate::json::{Json, Object};
use crate::judgement::recognise;
use crate::redact::REDACTED;
use std::time::Duration;

/// Shorter than the 30 s and 60 s after which common clients give up on a call.
const WAIT_DEFAULT: Duration = Duration::from_secs(25);

/// An answer later than this probably met nobody: the same clients, the same reason.
const LATE_AFTER_DEFAULT: Duration = Duration::from_secs(25);

/// Clients of models wait ten minutes, and give up after five without a sign of life at the earliest.
const WAIT_GENERATE: Duration = Duration::from_secs(240);
const LATE_AFTER_GENERATE: Duration = Duration::from_secs(600);

/// Two re-sends are what the SDKs of the large APIs do.
const BUDGET_DEFAULT: u32 = 2;

/// The parts that a request may or may not have.
const PARTS: [&str; 3] = ["query", "body", "headers"];

/// How one rule fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
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
    pub(super) fn select(&self, facts: &ActionFacts<'_>, trace: &mut dyn FnMut(&Written, Tried)) -> Rule {
        let readings = Readings::of(facts, &self.upstreams);
        let mut undecided: Option<Rule> = None;
        for written in &self.rules {
            let Some(reading) = readings.for_rule(written) else {
                trace(written, Tried::OtherAction);
                continue;
            };
            let tried = written.holds(reading, facts);
            trace(written, tried.clone());
            match (tried, undecided.take()) {
                (Tried::Matched, None) => return self.complete(written, reading, facts),
                (Tried::Matched, Some(careful)) => {
                    return careful.restricted_by(&self.complete(written, reading, facts));
                }
                (Tried::Undecided { why }, None) => {
                    undecided = Some(self.undecided(written, &why, reading, facts));
                }
                (Tried::Undecided { .. }, Some(careful)) => {
                    undecided = Some(careful.restricted_by(&self.complete(written, reading, facts)));
                }
                (Tried::OtherAction | Tried::OtherArguments { .. }, so_far) => undecided = so_far,
            }
        }
        undecided.unwrap_or_else(|| {
            let (class, because) = self.class(None, facts);
            self.plain(Origin::Default, class, because)
        })
    }

    /// The class that holds for an action other than a command's, where its arguments have no say in it.
    pub fn class_of_all(&self, facts: &ActionFacts<'_>) -> Option<Class> {
        match self.rules.iter().find(|written| written.pattern.matches(facts.action)) {
            Some(written) if written.when.is_some() => None,
            written => Some(self.class(written.and_then(|written| written.class), facts).0),
        }
    }

    /// The rule that an effect was made under, whose arguments are not at hand any more: the one that stands where that
    /// one stood, if it is still about such an action; else whatever holds without arguments.
    pub fn rule_kept(&self, action: &str, origin: &str) -> Rule {
        let facts = ActionFacts::new(action, &Json::Null);
        let readings = Readings::of(&facts, &self.upstreams);
        // What its path gave away is not kept, and then its name is not what the pattern knows.
        let unknown = action.contains(REDACTED).then(|| readings.whole());
        let as_it_is_about = |written| readings.for_rule(written).or(unknown);
        let mut there = self.rules.iter().filter(|written| written.origin.to_string() == origin);
        match there.find_map(|written| Some((written, as_it_is_about(written)?))) {
            Some((written, reading)) => self.complete(written, reading, &facts),
            None => self.select(&facts, &mut |_, _| {}),
        }
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

    /// The rule that would hold if a request were spelled as the rule spells it, where that is not the one that holds.
    pub(super) fn select_nearly(&self, facts: &ActionFacts<'_>) -> Option<Rule> {
        let readings = Readings::of(facts, &self.upstreams);
        // Hardly ever there is one, and conditions are not looked at in vain.
        let last = self.rules.iter().rposition(|written| readings.nearly_for_rule(written).is_some())?;
        for written in &self.rules[..=last] {
            let (near, reading) = match (readings.for_rule(written), readings.nearly_for_rule(written)) {
                (Some(reading), _) => (false, reading),
                (None, Some(reading)) => (true, reading),
                (None, None) => continue,
            };
            match written.holds(reading, facts) {
                Tried::Matched if near => return Some(self.complete(written, reading, facts)),
                Tried::Undecided { why } if near => {
                    return Some(self.undecided(written, &why, reading, facts));
                }
                Tried::Matched | Tried::Undecided { .. } => return None,
                Tried::OtherAction | Tried::OtherArguments { .. } => {}
            }
        }
        None
    }

    /// Nobody knows whether the rule applies, so neither its leave nor its identity is used: all arguments
    /// count, and a repeat is never blind. What it forbids stays forbidden.
    fn undecided(&self, written: &Written, why: &str, reading: Reading<'_>, facts: &ActionFacts<'_>) -> Rule {
        let (class, because) = match facts.class_override {
            Some(_) => self.class(None, facts),
            None => (Class::Consequential, format!("the rule's condition could not be evaluated: {why}")),
        };
        let careful = Rule { budget: 0, ..self.plain(written.origin.clone(), class, because) };
        careful.restricted_by(&self.complete(written, reading, facts))
    }

    /// A rule that says nothing.
    fn plain(&self, origin: Origin, class: Class, class_because: String) -> Rule {
        effective(origin, class, class_because, &self.defaults)
    }

    fn complete(&self, written: &Written, reading: Reading<'_>, facts: &ActionFacts<'_>) -> Rule {
        let (class, because) = self.class(written.class, facts);
        let choices = written.choices.or(&self.defaults);
        Rule {
            effect: written.effect.clone(),
            sorting: written.sorting.clone(),
            key_required: written.key_required,
            on_disconnect: written.on_disconnect,
            unmarked: written.unmarked,
            serialize_by: written.serialize_by.clone(),
            inject: written.inject.clone().filter(|inject| inject.into.is_of(facts.action)),
            probe: written.probe.as_ref().map(|probe| reading.probe(probe)),
            confirm: written.confirm.as_ref().map(|confirm| reading.confirm(confirm)),
            undo: written.undo.as_ref().map(|undo| reading.call(undo)),
            dry_run: written.dry_run.clone(),
            refused: written.refused.clone(),
            refused_exit: written.refused_exit.clone(),
            ..effective(written.origin.clone(), class, because, &choices)
        }
    }

    fn class(&self, of_rule: Option<Class>, facts: &ActionFacts<'_>) -> (Class, String) {
        let (class, because) = match (facts.class_override, of_rule) {
            (Some(class), _) => (class, "the caller named it".to_owned()),
            (None, Some(class)) => (class, "the rule says so".to_owned()),
            (None, None) => recognise::class(facts.action, facts.annotations, facts.trusted),
        };
        if self.mode == Mode::Strict && class != Class::Read && class != Class::Consequential {
            let because = format!("mode is strict (otherwise {class}: {because})");
            return (Class::Consequential, because);
        }
        (class, because)
    }
}

fn effective(origin: Origin, class: Class, class_because: String, choices: &Choices) -> Rule {
    let (wait, late_after) = match class {
        Class::Generate => (WAIT_GENERATE, LATE_AFTER_GENERATE),
        _ => (WAIT_DEFAULT, LATE_AFTER_DEFAULT),
    };
    Rule {
        origin,
        class,
        class_because,
        effect: None,
        scope: choices.scope,
        sorting: Default::default(),
        key_required: false,
        caller_key: choices.caller_key.unwrap_or_default(),
        again: choices.again.unwrap_or_default(),
        rulings: choices.rulings.unwrap_or_default(),
        failure: choices.failure.unwrap_or_default(),
        on_disconnect: Default::default(),
        unmarked: Default::default(),
        budget: choices.budget.unwrap_or(BUDGET_DEFAULT),
        timeout: choices.timeout,
        wait: choices.wait.unwrap_or(wait),
        window: choices.window,
        late_after: choices.late_after.unwrap_or(late_after),
        serialize_by: None,
        inject: None,
        own_key: None,
        probe: None,
        confirm: None,
        undo: None,
        dry_run: None,
        refused: None,
        refused_exit: Vec::new(),
    }
}

impl Written {
    fn holds(&self, reading: Reading<'_>, facts: &ActionFacts<'_>) -> Tried {
        match &self.when {
            None => Tried::Matched,
            Some(Condition::Equal(pairs)) => {
                let differs = pairs.iter().find(|(path, expected)| {
                    !path.find(facts.arguments).iter().any(|(_, value)| *value == expected)
                });
                match differs {
                    None => Tried::Matched,
                    Some((path, expected)) => {
                        Tried::OtherArguments { condition: format!("{path} = {}", expected.canonical()) }
                    }
                }
            }
            Some(Condition::Expression(expression)) => {
                let action = Json::str(reading.action);
                let mut variables = vec![("action", &action)];
                variables.extend(facts.arguments.as_object().into_iter().flat_map(|object| object.iter()));
                // What a request does not have is empty, so that a condition can ask for it.
                let empty = Json::Object(Object::new());
                if facts.action.starts_with("http:") {
                    let absent = PARTS.iter().filter(|part| facts.arguments.get(part).is_none());
                    variables.extend(absent.map(|part| (*part, &empty)));
                }
                match expression.eval_bool(&variables) {
                    Ok(true) => Tried::Matched,
                    Ok(false) => Tried::OtherArguments { condition: expression.source().to_owned() },
                    Err(error) => Tried::Undecided { why: error.to_string() },
                }
            }
        }
    }
}
