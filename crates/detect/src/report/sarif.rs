//! SARIF 2.1.0, which code hosts show beside a change.

use super::headline;
use crate::audit::AuditReport;
use crate::audit::finding::{AuditFinding, FindingCall, FindingLevel};
use serde_json::{Value, json};

pub fn document(report: &AuditReport) -> Value {
    let rules = FindingLevel::ALL.map(|level| {
        json!({
            "id": level.word(),
            "shortDescription": { "text": description(level) },
            "defaultConfiguration": { "level": severity(level) },
        })
    });
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "semel audit", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    })
}

fn description(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Proven => "An effect ran twice",
        FindingLevel::Likely => "An effect probably ran twice",
        FindingLevel::Possible => "Two effects may be one",
    }
}

fn severity(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Proven => "error",
        FindingLevel::Likely => "warning",
        FindingLevel::Possible => "note",
    }
}

fn result(finding: &AuditFinding) -> Value {
    let location = |call: &FindingCall| {
        json!({ "physicalLocation": {
            "artifactLocation": { "uri": call.file },
            "region": { "startLine": call.line },
        } })
    };
    let related = finding.calls.iter().enumerate().map(|(id, call)| {
        let mut place = location(call);
        place["id"] = json!(id);
        place["message"] = json!({ "text": format!("this call {}", call.ending.word()) });
        place
    });
    // The call that repeats is where something went wrong.
    let place = finding.calls.last().map(location);
    json!({
        "ruleId": finding.level.word(),
        "level": severity(finding.level),
        "message": { "text": format!("{} {}: {}. Probably {}. To prevent it, {}.", finding.action, finding.subject, headline(finding), finding.layer.in_words(), finding.prevention) },
        "locations": place.into_iter().collect::<Vec<_>>(),
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}
