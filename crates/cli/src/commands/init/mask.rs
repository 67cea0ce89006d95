//! A configuration as it may be shown: its form, its names, and of its texts only those that semel writes itself.
//! Configurations hold credentials, and no list of their forms is ever complete.

use super::edit::ParseProblem;
use super::format::Format;
use std::collections::BTreeSet;

pub const MASK: &str = "***";

/// The document with every text and every comment masked but the `shown` texts.
pub fn masked(text: &str, format: Format, shown: &BTreeSet<String>) -> Result<String, ParseProblem> {
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for scalar in format.scalars(text)? {
        masked.push_str(&between(&text[end..scalar.range.start], format));
        masked.push_str(match &scalar.text {
            Some(value) if !value.is_empty() && !shown.contains(value) => "\"***\"",
            _ => &text[scalar.range.clone()],
        });
        end = scalar.range.end;
    }
    masked.push_str(&between(&text[end..], format));
    Ok(masked)
}

/// Punctuation as it is, comments without their words.
fn between(text: &str, format: Format) -> String {
    let mut shown = text.to_owned();
    for comment in format.comments_between(text) {
        let mask = match &comment[..comment.len().min(2)] {
            "/*" => format!("/* {MASK} */"),
            "//" => format!("// {MASK}"),
            _ => format!("# {MASK}"),
        };
        shown = shown.replacen(comment, &mask, 1);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_semel_writes_is_shown() {
        let shown = BTreeSet::from(["semel".to_owned(), "mcp".to_owned()]);
        let text = r#"{
  // the old one was hunter2
  "mcpServers": {
    "a": { "command": "semel", /* hunter2 */ "args": ["mcp", "hunter2", "${TOKEN}"], "timeout": 5, "x": "" }
  }
}"#;
        let expected = r#"{
  // ***
  "mcpServers": {
    "a": { "command": "semel", /* *** */ "args": ["mcp", "***", "***"], "timeout": 5, "x": "" }
  }
}"#;
        assert_eq!(masked(text, Format::Json, &shown).expect("readable"), expected);
        let text = "# hunter2\n[mcp_servers.a]\ncommand = \"semel\" # hunter2\nenv = { K = 'hunter2' }\n";
        let expected = "# ***\n[mcp_servers.a]\ncommand = \"semel\" # ***\nenv = { K = \"***\" }\n";
        assert_eq!(masked(text, Format::Toml, &shown).expect("readable"), expected);
    }
}
