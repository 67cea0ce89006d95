//! `spec/golden/shell.txt`: command lines as agents write them, each with its judgement.

use semel_core::policy::{Policy, PolicyFile};
use semel_core::shell::{DenialReason, Judgement, judge};

const LINES: &str = include_str!("../../../../spec/golden/shell.txt");

/// The judgement in the words of the golden lines.
fn words(judgement: &Judgement) -> String {
    let names = |names: &[String]| names.join(", ");
    match judgement {
        Judgement::Pass => "pass".to_owned(),
        Judgement::Bracket(guarded) => {
            let doubt = if guarded.is_known { "" } else { "?" };
            format!("{}{doubt} {}", guarded.rule.class, guarded.name)
        }
        Judgement::Deny(denial) => {
            let reason = match denial.reason {
                DenialReason::Place => "alone",
                DenialReason::Several => "each alone",
                DenialReason::Unreadable => "unreadable",
            };
            format!("{reason}: {}", names(&denial.names))
        }
    }
}

fn policy(text: &str) -> Policy {
    let file = PolicyFile { path: "semel.toml".into(), text: text.to_owned() };
    Policy::load(vec![file]).unwrap_or_else(|found| panic!("{found}")).for_shell()
}

/// The judgements and lines of the golden file.
fn golden() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in LINES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("> ").or(line.strip_prefix('>')) {
            Some(more) => {
                let (_, command) = found.last_mut().expect("a line before its next lines");
                command.push('\n');
                command.push_str(more);
            }
            None => {
                let (judgement, command) = line.split_once(" $ ").unwrap_or_else(|| panic!("{line}"));
                found.push((judgement.trim().to_owned(), command.to_owned()));
            }
        }
    }
    found
}

#[test]
fn the_golden_lines_are_judged_as_they_say() {
    let policy = policy("version = 1");
    let golden = golden();
    let wrong: Vec<String> = golden
        .iter()
        .map(|(expected, line)| (expected, line, words(&judge(line, "/work", &policy))))
        .filter(|(expected, _, found)| *expected != found)
        .map(|(expected, line, found)| format!("{line}\n    should be {expected}\n    but is    {found}"))
        .collect();
    assert!(golden.len() >= 300, "{}", golden.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), golden.len(), wrong.join("\n"));
}
