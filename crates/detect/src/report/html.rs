//! One page that needs nothing else: the numbers, a timeline, and for each finding the calls that lead to one intent.

use super::{escaped, headline};
use crate::audit::finding::{AuditFinding, FindingLevel};
use crate::audit::tracker::RemarkKind;
use crate::audit::{AuditReport, ReportedRemark};
use crate::ending::Ending;
use semel_core::time::At;
use std::fmt::Write as _;

/// How many findings are drawn. The table of a browser is slow beyond that.
const DRAWN_MAX: usize = 500;

const STYLE: &str = "\
:root{--ink:#1c1e21;--faint:#6b7280;--line:#e5e7eb;--paper:#fff;--proven:#c0362c;--likely:#c77700;--possible:#3b6ea8;--ok:#3f8f5f}\
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#9aa0a6;--line:#3c4043;--paper:#202124}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.5rem}.numbers{display:flex;flex-wrap:wrap;gap:1.5rem}\
.numbers b{display:block;font-size:1.6rem}.numbers span{color:var(--faint)}\
article{border:1px solid var(--line);border-radius:8px;padding:1rem;margin:1rem 0}\
.level{font-weight:600;text-transform:uppercase;font-size:.8rem;letter-spacing:.05em}\
.proven{color:var(--proven)}.likely{color:var(--likely)}.possible{color:var(--possible)}\
code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}svg{width:100%;height:auto}\
text{fill:var(--ink);font:12px system-ui,sans-serif}.faint,text.faint{color:var(--faint);fill:var(--faint)}";

pub fn page(report: &AuditReport) -> String {
    let mut html = String::new();
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>semel audit</title><style>{STYLE}</style></head><body><h1>semel audit</h1>"
    );
    numbers(&mut html, report);
    timeline(&mut html, &report.findings);
    let _ = write!(html, "<h2>Findings</h2>");
    if report.findings.is_empty() {
        html.push_str("<p>No effect ran twice.</p>");
    }
    for finding in report.findings.iter().take(DRAWN_MAX) {
        article(&mut html, finding);
    }
    if report.findings.len() > DRAWN_MAX {
        let _ = write!(
            html,
            "<p class=\"faint\">{} more are in the JSON report.</p>",
            report.findings.len() - DRAWN_MAX
        );
    }
    remarks(&mut html, &report.remarks);
    skipped(&mut html, report);
    html.push_str("</body></html>\n");
    html
}

fn numbers(html: &mut String, report: &AuditReport) {
    html.push_str("<div class=\"numbers\">");
    for (number, words) in [
        (report.sessions, "sessions"),
        (report.tool_calls, "tool calls"),
        (report.effects, "that change something"),
        (report.count(FindingLevel::Proven), "proven duplicates"),
        (report.count(FindingLevel::Likely), "likely duplicates"),
        (report.count(FindingLevel::Possible), "possible duplicates"),
        (report.blind_retries, "blind retries"),
        (report.verified_retries, "retries after a look"),
    ] {
        let _ = write!(html, "<div><b>{number}</b><span>{words}</span></div>");
    }
    html.push_str("</div>");
}

/// A row for each finding, a dot for each of its calls.
fn timeline(html: &mut String, findings: &[AuditFinding]) {
    const ROWS_MAX: usize = 60;
    let times: Vec<At> =
        findings.iter().flat_map(|finding| finding.calls.iter().filter_map(|call| call.at)).collect();
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return };
    let span = last.since(*first).as_secs_f64().max(1.0);
    let rows: Vec<&AuditFinding> = findings.iter().take(ROWS_MAX).collect();
    let height = rows.len() * 18 + 30;
    let _ = write!(
        html,
        "<h2>Timeline</h2><svg viewBox=\"0 0 900 {height}\" role=\"img\" aria-label=\"Calls over time\">"
    );
    for (row, finding) in rows.iter().enumerate() {
        let y = row * 18 + 12;
        let colour = finding.level.word();
        let x = |at: At| 10.0 + at.since(*first).as_secs_f64() / span * 880.0;
        let known: Vec<f64> = finding.calls.iter().filter_map(|call| call.at).map(x).collect();
        if let (Some(from), Some(to)) = (known.first(), known.last()) {
            let _ = write!(
                html,
                "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"var(--{colour})\" stroke-width=\"2\"/>"
            );
        }
        for (call, at) in finding.calls.iter().filter_map(|call| Some((call, call.at?))) {
            let fill = if call.ending == Ending::Applied {
                format!("var(--{colour})")
            } else {
                "var(--paper)".to_owned()
            };
            let _ = write!(
                html,
                "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"4\" fill=\"{fill}\" stroke=\"var(--{colour})\"><title>{} {at}</title></circle>",
                x(at),
                escaped(&finding.action),
            );
        }
    }
    let y = height - 6;
    let _ = write!(
        html,
        "<text class=\"faint\" x=\"10\" y=\"{y}\">{first}</text><text class=\"faint\" x=\"890\" y=\"{y}\" text-anchor=\"end\">{last}</text></svg>"
    );
}

fn article(html: &mut String, finding: &AuditFinding) {
    let level = finding.level.word();
    let _ = write!(
        html,
        "<article><div class=\"level {level}\">{level}</div><code>{}</code><p>{}</p>",
        escaped(&format!("{} {}", finding.action, finding.subject)),
        escaped(&headline(finding)),
    );
    fan_in(html, finding);
    let _ = write!(
        html,
        "<p>Probably {}. To prevent it, {}.</p></article>",
        escaped(finding.layer.in_words()),
        escaped(&finding.prevention).replace('`', ""),
    );
}

/// The calls on the left, the one intent in the middle, the effects that came of it on the right.
fn fan_in(html: &mut String, finding: &AuditFinding) {
    const CALLS_DRAWN: usize = 12;
    let calls: Vec<_> = finding.calls.iter().take(CALLS_DRAWN).collect();
    let height = calls.len() * 28 + 12;
    let middle = height / 2;
    let colour = finding.level.word();
    let _ =
        write!(html, "<svg viewBox=\"0 0 900 {height}\" role=\"img\" aria-label=\"Calls of one intent\">");
    for (row, call) in calls.iter().enumerate() {
        let y = row * 28 + 18;
        let place = format!("{}:{}", short(&call.file), call.line);
        let at = call.at.map_or_else(String::new, |at| format!(" {at}"));
        let _ = write!(
            html,
            "<path d=\"M380 {y} C450 {y} 450 {middle} 510 {middle}\" fill=\"none\" stroke=\"var(--{colour})\"/>\
             <text x=\"0\" y=\"{}\">{}<tspan class=\"faint\">{at}</tspan></text>",
            y + 4,
            escaped(&place),
        );
        let (word, paint) = match call.ending {
            Ending::Applied => ("happened", colour),
            Ending::InDoubt | Ending::Unanswered | Ending::HeldInDoubt => ("may have happened", "likely"),
            Ending::Refused | Ending::Failed => ("did not succeed", "ok"),
        };
        let _ = write!(
            html,
            "<path d=\"M530 {middle} C590 {middle} 590 {y} 650 {y}\" fill=\"none\" stroke=\"var(--{paint})\"/>\
             <circle cx=\"656\" cy=\"{y}\" r=\"5\" fill=\"var(--{paint})\"/><text x=\"668\" y=\"{}\">{word}</text>",
            y + 4,
        );
    }
    let _ = write!(html, "<circle cx=\"520\" cy=\"{middle}\" r=\"9\" fill=\"var(--{colour})\"/></svg>");
}

/// The end of a long path.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn remarks(html: &mut String, remarks: &[ReportedRemark]) {
    if remarks.is_empty() {
        return;
    }
    html.push_str("<h2>Beside them</h2><ul>");
    for remark in remarks.iter().take(DRAWN_MAX) {
        let words = match remark.kind {
            RemarkKind::EffectAfterStop => "an effect after the user had stopped the agent",
            RemarkKind::ClaimWithoutEffect => "the model claimed a success, and every try had failed",
        };
        let _ = write!(
            html,
            "<li>{words}: <code>{}</code> at <code>{}:{}</code></li>",
            escaped(&remark.action),
            escaped(&remark.file),
            remark.line
        );
    }
    html.push_str("</ul>");
}

fn skipped(html: &mut String, report: &AuditReport) {
    let skipped = &report.skipped;
    if skipped.lines + skipped.files == 0 {
        return;
    }
    let _ = write!(html, "<h2>Not read</h2><p>{} lines and {} files.</p><ul>", skipped.lines, skipped.files);
    for named in &skipped.named {
        let _ = write!(html, "<li><code>{}</code></li>", escaped(named));
    }
    html.push_str("</ul>");
}
