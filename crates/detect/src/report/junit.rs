//! JUnit XML: a failed test case for each finding.

use super::{escaped, headline};
use crate::audit::AuditReport;
use crate::audit::finding::AuditFinding;
use std::fmt::Write as _;

pub fn document(report: &AuditReport) -> String {
    let mut named: Vec<(String, Option<String>)> = report.findings.iter().map(case).collect();
    if named.is_empty() {
        named.push(("no effect ran twice".to_owned(), None));
    }
    cases("semel audit", &named)
}

/// Test cases by name, each with why it failed.
pub fn cases(suite: &str, named: &[(String, Option<String>)]) -> String {
    let failures = named.iter().filter(|(_, why)| why.is_some()).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">\n",
        escaped(suite),
        named.len()
    );
    for (name, why) in named {
        let name = escaped(name);
        let _ = match why {
            None => writeln!(xml, "  <testcase name=\"{name}\"/>"),
            Some(why) => {
                writeln!(
                    xml,
                    "  <testcase name=\"{name}\"><failure message=\"{}\"/></testcase>",
                    escaped(why)
                )
            }
        };
    }
    xml.push_str("</testsuite>\n");
    xml
}

fn case(finding: &AuditFinding) -> (String, Option<String>) {
    let lines: Vec<String> = finding
        .calls
        .iter()
        .map(|call| format!("{}:{} {}", call.file, call.line, call.ending.word()))
        .collect();
    let why = format!(
        "{}: {}. {}. To prevent it, {}.",
        finding.level.word(),
        headline(finding),
        lines.join("; "),
        finding.prevention
    );
    (format!("{} {}", finding.action, finding.subject), Some(why))
}
