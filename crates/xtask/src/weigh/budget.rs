//! `weight.toml`: the most that each thing may weigh, with the reason.

use crate::project::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// Instructions differ by a hair between systems, and a change should not stumble over ten lines.
const TOLERANCE_PERCENT: u64 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub name: String,
    pub value: u64,
}

impl Measured {
    pub fn new(name: impl Into<String>, value: u64) -> Measured {
        Measured { name: name.into(), value }
    }
}

#[derive(Debug)]
pub struct Budget(BTreeMap<String, BudgetLine>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetLine {
    at_most: u64,
    why: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    Over {
        name: String,
        value: u64,
        at_most: u64,
    },
    /// Nothing of this name is measured.
    Unknown {
        name: String,
    },
    /// It is measured, and nobody says how much it may be.
    Missing {
        name: String,
        value: u64,
    },
    NoReason {
        name: String,
    },
}

impl Budget {
    pub fn parse(text: &str) -> Result<Budget> {
        Ok(Budget(toml::from_str(text)?))
    }

    pub fn compare(&self, measured: &[Measured]) -> Vec<Finding> {
        let mut found = Vec::new();
        for Measured { name, value } in measured {
            let (name, value) = (name.clone(), *value);
            match self.0.get(&name) {
                None => found.push(Finding::Missing { name, value }),
                Some(BudgetLine { at_most, .. }) if value * 100 > at_most * (100 + TOLERANCE_PERCENT) => {
                    found.push(Finding::Over { name, value, at_most: *at_most });
                }
                Some(_) => {}
            }
        }
        for (name, line) in &self.0 {
            let name = name.clone();
            if !measured.iter().any(|measured| measured.name == name) {
                found.push(Finding::Unknown { name });
            } else if line.why.trim().is_empty() {
                found.push(Finding::NoReason { name });
            }
        }
        found
    }

    /// For a person: the name, what was measured, and its share of the budget.
    pub fn row(&self, measured: &Measured) -> String {
        let Measured { name, value } = measured;
        let share = match self.0.get(name) {
            Some(line) => format!("{:+.1} % to {}", change(*value, line.at_most), line.at_most),
            None => "no budget".to_owned(),
        };
        format!("{name:<48} {value:>12}  {share}")
    }
}

fn change(value: u64, at_most: u64) -> f64 {
    (value as f64 / at_most as f64 - 1.0) * 100.0
}

/// The file with the figures that were measured; everything else in it stays.
pub fn rewritten(text: &str, measured: &[Measured]) -> String {
    let line = |line: &str| {
        let known = measured.iter().find_map(|Measured { name, value }| {
            let rest = line.strip_prefix(&format!("{name:?} = {{ at_most = "))?;
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '_')?;
            Some(format!("{name:?} = {{ at_most = {value}{}", &rest[digits..]))
        });
        known.unwrap_or_else(|| line.to_owned()) + "\n"
    };
    text.lines().map(line).collect()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Over { name, value, at_most } => write!(
                f,
                "`{name}` is {value}, {:.1} % above its budget of {at_most}. Make it lighter, or raise its line in \
                 weight.toml and say why in the commit",
                change(*value, *at_most)
            ),
            Finding::Unknown { name } => {
                write!(f, "weight.toml has a line `{name}`, and nothing of that name is measured")
            }
            Finding::Missing { name, value } => {
                write!(f, "`{name}` is {value}, and weight.toml has no line for it")
            }
            Finding::NoReason { name } => write!(f, "the line `{name}` of weight.toml gives no reason"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Kept.\n\"bytes\" = { at_most = 1_000, why = \"as small as it gets\" }\n";

    fn compare(text: &str, measured: &[(&str, u64)]) -> Vec<Finding> {
        let measured: Vec<Measured> =
            measured.iter().map(|(name, value)| Measured::new(*name, *value)).collect();
        Budget::parse(text).expect("it is valid").compare(&measured)
    }

    #[test]
    fn up_to_three_percent_above_the_budget_passes_and_more_does_not() {
        assert_eq!(compare(TEXT, &[("bytes", 1)]), []);
        assert_eq!(compare(TEXT, &[("bytes", 1030)]), []);
        let found = compare(TEXT, &[("bytes", 1031)]);
        assert_eq!(found, [Finding::Over { name: "bytes".into(), value: 1031, at_most: 1000 }]);
        assert_eq!(
            found[0].to_string(),
            "`bytes` is 1031, 3.1 % above its budget of 1000. Make it lighter, or raise its line in weight.toml and \
             say why in the commit"
        );
    }

    #[test]
    fn a_line_that_nothing_measures_and_a_measure_without_a_line_are_found() {
        let found = compare(TEXT, &[("lines", 5)]);
        let missing = Finding::Missing { name: "lines".into(), value: 5 };
        assert_eq!(found, [missing, Finding::Unknown { name: "bytes".into() }]);
    }

    #[test]
    fn a_line_needs_a_reason_and_nothing_else_beside_it() {
        let text = "bytes = { at_most = 1000, why = \" \" }";
        assert_eq!(compare(text, &[("bytes", 1)]), [Finding::NoReason { name: "bytes".into() }]);
        assert!(Budget::parse("bytes = { at_most = 1000 }").is_err());
        assert!(Budget::parse("bytes = { at_most = 1000, why = \"x\", until = 2027 }").is_err());
    }

    #[test]
    fn writing_changes_the_figures_alone() {
        let written = rewritten(TEXT, &[Measured::new("bytes", 900)]);
        assert_eq!(written, TEXT.replace("1_000", "900"));
    }
}
