//! A tool's own account of its effect, in its output.

use semel_core::answer::EffectWord;
use serde_json::Value;

/// A tool's own account is short; longer output is data.
const BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolAccount {
    pub effect: Option<EffectWord>,
    /// It took it and has not done it yet.
    pub only_accepted: bool,
}

/// The account in an output that is an object.
pub fn read(output: &[u8]) -> ToolAccount {
    let text = std::str::from_utf8(output).unwrap_or_default().trim();
    if !text.starts_with('{') || text.len() > BYTES_MAX {
        return ToolAccount::default();
    }
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let status = value["status"].as_str().unwrap_or_default().to_ascii_lowercase();
    ToolAccount {
        effect: value["effect"].as_str().and_then(EffectWord::parse),
        only_accepted: matches!(status.as_str(), "queued" | "accepted" | "pending" | "scheduled"),
    }
}
