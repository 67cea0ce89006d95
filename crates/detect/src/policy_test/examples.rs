//! Tries the examples that rules carry. A wrong one is a finding at its place.

use super::rehearsal::{Rehearsal, Treatment};
use crate::ending::Ending;
use crate::judge::Judge;
use crate::transcript::ActionCall;
use semel_core::intent::Intent;
use semel_core::policy::diagnostic::{DiagnosticCode, Diagnostics};
use semel_core::policy::example::{self, ExampleCall, RuleExample};
use semel_core::policy::{PolicyFile, Rule};
use semel_core::time::At;
use std::ops::Range;

/// How many examples there are, and those that are wrong.
#[derive(Debug, Default)]
pub struct ExampleReport {
    pub tried: usize,
    pub wrong: Diagnostics,
}

pub fn test(files: &[PolicyFile], judge: &Judge) -> ExampleReport {
    let mut wrong = Diagnostics::default();
    let examples = example::of_files(files, &mut wrong);
    let tried = examples.len() + wrong.len();
    for example in &examples {
        if let Err((span, what)) = try_example(example, judge) {
            wrong.error(example.source, span, DiagnosticCode::WrongExample, what, "");
        }
    }
    ExampleReport { tried, wrong }
}

fn try_example(example: &RuleExample<'_>, judge: &Judge) -> Result<(), (Range<usize>, String)> {
    let mut rehearsal = Rehearsal::new(judge);
    let mut others: Vec<Intent> = Vec::new();
    for (number, call) in example.same.iter().chain(&example.differ).enumerate() {
        let fault = |what: String| (call.span.clone(), what);
        let ExampleCall { action, arguments, .. } = call.clone();
        let made = ActionCall { action, arguments };
        let rule = judge.rule(&made);
        check_rule(example, &rule).map_err(fault)?;
        let intent = judge.intent(&made, &rule, None).map_err(|missing| fault(missing.to_string()))?;
        if let Some(first) = others.first().filter(|_| number < example.same.len()) {
            check_same(first, &intent).map_err(fault)?;
            continue;
        }
        if others.iter().any(|other| other.key == intent.key) {
            return Err(fault("it is the same intent as another call of this example".to_owned()));
        }
        others.push(intent);
        let rehearsed = rehearsal.call(&made, At(0), |_| Ending::Applied);
        if rehearsed.treatment != Treatment::LetThrough {
            return Err(fault(format!("it does not run ({})", rehearsed.treatment.word())));
        }
    }
    Ok(())
}

fn check_same(first: &Intent, other: &Intent) -> Result<(), String> {
    let differing = || first.marks.differing(&other.marks).join(", ");
    if first.key != other.key {
        return Err(format!("it is another intent than the first call: {} differs", differing()));
    }
    if first.marks.fingerprint != other.marks.fingerprint {
        return Err(format!(
            "it is refused as drift: it has the first call's key, and {} differs",
            differing()
        ));
    }
    Ok(())
}

fn check_rule(example: &RuleExample<'_>, rule: &Rule) -> Result<(), String> {
    if rule.origin != example.rule {
        return Err(format!("another rule takes it: {}", rule.origin));
    }
    match example.class {
        Some(class) if class != rule.class => {
            Err(format!("its class is {}, because {}", rule.class, rule.class_because))
        }
        _ => Ok(()),
    }
}
