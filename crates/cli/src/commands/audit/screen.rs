//! The report of an audit on one screen.

use crate::output::counted;
use crate::terminal_text;
use owo_colors::{OwoColorize, Style};
use semel_core::time::in_words;
use semel_detect::audit::AuditReport;
use semel_detect::audit::finding::{AuditFinding, FindingLevel};
use semel_detect::audit::tracker::RemarkKind;
use std::fmt::Write as _;

/// How many findings the screen shows.
const SHOWN_MAX: usize = 20;
/// How many calls of one finding it shows.
const CALLS_SHOWN_MAX: usize = 4;
const SUBJECT_CHARACTERS: usize = 60;

/// "23 sessions, 4,112 tool calls, 3 effects ran twice, 2 look like it."
pub fn summary(report: &AuditReport) -> String {
    let proven = report.count(FindingLevel::Proven);
    let likely = report.count(FindingLevel::Likely) + report.count(FindingLevel::Possible);
    let twice = match (proven, likely) {
        (0, 0) if report.effects == 0 && report.without_arguments > 0 => {
            "nothing could be compared".to_owned()
        }
        (0, 0) => "no effect ran twice".to_owned(),
        (0, likely) => format!("{} to have run twice", plural(likely, "effect seems", "effects seem")),
        (proven, 0) => format!("{} twice", plural(proven, "effect ran", "effects ran")),
        (proven, likely) => {
            format!(
                "{} twice, {} like it",
                plural(proven, "effect ran", "effects ran"),
                plural(likely, "looks", "look")
            )
        }
    };
    let sessions = plural(report.sessions, "session", "sessions");
    format!("{sessions}, {}, {twice}.", plural(report.tool_calls, "tool call", "tool calls"))
}

pub fn screen(report: &AuditReport) -> String {
    let mut text = format!("{}\n", summary(report).bold());
    for finding in report.findings.iter().take(SHOWN_MAX) {
        text.push('\n');
        text.push_str(&shown(finding));
    }
    let hidden = report.counts.values().sum::<u64>().saturating_sub(SHOWN_MAX as u64);
    if hidden > 0 {
        let _ = writeln!(text, "\n{} more; --as html --output FILE shows all.", grouped(hidden));
    }
    text.push_str(&beside(report));
    text
}

pub fn shown(finding: &AuditFinding) -> String {
    let style = match finding.level {
        FindingLevel::Proven => Style::new().red().bold(),
        FindingLevel::Likely => Style::new().yellow().bold(),
        FindingLevel::Possible => Style::new().cyan(),
    };
    let subject = terminal_text::shortened(&finding.subject, SUBJECT_CHARACTERS);
    let level = finding.level.word().to_uppercase();
    let mut text = format!(
        "{}  {} {subject}\n",
        format!("{level:<8}").style(style),
        terminal_text::line(&finding.action)
    );
    let gap = finding.gap.map_or_else(String::new, |gap| format!(", {} apart", in_words(gap)));
    let _ = writeln!(text, "          {} calls{gap}: {}.", finding.calls.len(), finding.why);
    for call in finding.calls.iter().take(CALLS_SHOWN_MAX) {
        let at = call.at.map_or_else(String::new, |at| format!("  {at}"));
        let _ = writeln!(
            text,
            "          {}:{}{at}  {}",
            terminal_text::line(&call.file),
            call.line,
            call.ending.word()
        );
    }
    let _ = writeln!(
        text,
        "          Probably {}. To prevent it, {}.",
        finding.layer.in_words(),
        terminal_text::line(&finding.prevention)
    );
    text
}

fn beside(report: &AuditReport) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    let retries = report.blind_retries + report.verified_retries;
    if retries > 0 {
        line(format!(
            "\n{} after a lost answer: {} checked first.",
            plural(retries, "retry", "retries"),
            grouped(report.verified_retries),
        ));
    }
    if report.without_arguments > 0 {
        line(format!(
            "\n{} not compared: nobody recorded the arguments.",
            plural(
                report.without_arguments,
                "call that changes something was",
                "calls that change something were"
            ),
        ));
    }
    let remarks = |kind: RemarkKind| report.remarks.iter().filter(move |remark| remark.kind == kind);
    for (kind, words) in [
        (RemarkKind::EffectAfterStop, "An effect happened after the user had stopped the agent"),
        (RemarkKind::ClaimWithoutEffect, "The model claimed a success, and every try had failed"),
    ] {
        for remark in remarks(kind).take(5) {
            let (action, file) = (terminal_text::line(&remark.action), terminal_text::line(&remark.file));
            line(format!("{words}: {action} at {file}:{}.", remark.line));
        }
    }
    let skipped = &report.skipped;
    if skipped.lines + skipped.files > 0 {
        line(format!(
            "\n{} and {} could not be read:",
            plural(skipped.lines, "line", "lines"),
            plural(skipped.files, "file", "files")
        ));
        for named in skipped.named.iter().take(5) {
            line(format!("  {}", terminal_text::line(named)));
        }
    }
    text
}

fn plural(count: u64, one: &str, many: &str) -> String {
    match usize::try_from(count) {
        Ok(small @ 0..=999) => counted(small, one, many),
        _ => format!("{} {many}", grouped(count)),
    }
}

/// `4,112`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
