//! The report of a door for people.

use super::DoorReport;
use owo_colors::OwoColorize;
use semel_detect::eval::score::{Numbers, ScenarioResult};
use std::fmt::Write as _;

/// How many failing scenarios the screen names.
const NAMED_MAX: usize = 15;

pub fn shown(report: &DoorReport) -> String {
    let Numbers { scenarios, ran_twice, lost, wrongly_suppressed, honestly_reported, verified, sent_again } =
        report.numbers;
    let title = format!("{} at the {} door, {scenarios} scenarios", report.guard, report.door);
    let mut text = format!("{}\n", title.bold());
    for (name, value) in [
        ("ran twice", ran_twice.to_string()),
        ("lost", lost.to_string()),
        ("wrongly suppressed", wrongly_suppressed.to_string()),
        ("honestly reported", honestly_reported.to_string()),
        ("verified before retry", format!("{verified} of {sent_again}")),
    ] {
        let _ = writeln!(text, "  {name:<24}{value}");
    }
    let _ = writeln!(text, "\n  {:<24}{:>12}{:>20}", "", "told done", "told otherwise");
    for (name, is_as_wanted) in [("happened as wanted", true), ("happened otherwise", false)] {
        let count = |is_done: bool| {
            let of = |result: &&ScenarioResult| {
                result.is_as_wanted() == is_as_wanted && (result.told == "done") == is_done
            };
            report.results.iter().filter(of).count()
        };
        let _ = writeln!(text, "  {name:<24}{:>12}{:>20}", count(true), count(false));
    }
    let mut failing: Vec<&ScenarioResult> =
        report.results.iter().filter(|result| !result.is_right() || result.lost).collect();
    failing.sort_by_key(|result| result.is_right());
    for result in failing.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "\n  {}: {}", result.name, wrong(result));
        let _ = writeln!(text, "    {}", repeat_command(report, result));
    }
    if failing.len() > NAMED_MAX {
        let _ = writeln!(text, "\n  {} more; --json lists all", failing.len() - NAMED_MAX);
    }
    text
}

/// The command that runs one scenario again.
fn repeat_command(report: &DoorReport, result: &ScenarioResult) -> String {
    let own = ["semel", "eval"].into_iter().chain(report.options.iter().map(String::as_str));
    let words = own.chain(["--only", result.name.as_str()]);
    shlex::try_join(words).unwrap_or_else(|_| "semel eval".to_owned())
}

pub fn wrong(result: &ScenarioResult) -> String {
    let what = match result {
        ScenarioResult { ran_twice: true, .. } => "ran too often",
        ScenarioResult { wrongly_suppressed: true, .. } => "a repeat that was meant did not run",
        ScenarioResult { honest: false, .. } => "the agent got a false report",
        _ => "did not happen in the end, as the agent was told",
    };
    format!("{what} (intended {}, happened {}, told {})", result.intended, result.happened, result.told)
}
