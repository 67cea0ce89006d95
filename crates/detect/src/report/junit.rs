//! JUnit XML: a failed test case for each finding.

use super::{escaped, headline};
use crate::audit::Report;
use std::fmt::Write as _;

pub fn document(report: &Report) -> String {
    let cases = report.findings.len().max(1);
    let failures = report.findings.len();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"semel audit\" tests=\"{cases}\" failures=\"{failures}\">\n"
    );
    for finding in &report.findings {
        let name = escaped(&format!("{} {}", finding.action, finding.subject));
        let lines: Vec<String> = finding
            .calls
            .iter()
            .map(|call| format!("{}:{} {}", call.file, call.line, call.ending.word()))
            .collect();
        let _ = writeln!(
            xml,
            "  <testcase classname=\"{}\" name=\"{name}\"><failure type=\"{}\" message=\"{}\">{}</failure></testcase>",
            finding.level.word(),
            finding.level.word(),
            escaped(&headline(finding)),
            escaped(&format!("{}. To prevent it, {}.", lines.join("; "), finding.prevention)),
        );
    }
    if report.findings.is_empty() {
        xml.push_str("  <testcase classname=\"audit\" name=\"no effect ran twice\"/>\n");
    }
    xml.push_str("</testsuite>\n");
    xml
}
