//! Reports for other programs and for browsers. The command line prints its own table.

pub mod html;
pub mod junit;
pub mod sarif;

use crate::audit::finding::AuditFinding;
use semel_core::time::in_words;

/// One line that says what was found about an action and its subject.
pub fn headline(finding: &AuditFinding) -> String {
    let gap = finding.gap.map_or_else(String::new, |gap| format!(", {} apart", in_words(gap)));
    format!("{} calls{gap}: {}", finding.calls.len(), finding.why)
}

/// Text within XML and HTML, attributes included. Control characters have no place in either.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
