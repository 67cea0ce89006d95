//! Lines of the journal, for `tail`, `show` and `doctor`.

use crate::terminal_text;
use semel_core::ids::EffectId;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;
use semel_ledger::store::{JOURNAL_PAGE_MAX, JournalLine};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
pub struct LineJson {
    pub at: String,
    pub kind: String,
    pub effect_id: Option<EffectId>,
    pub data: Value,
}

impl LineJson {
    pub fn of(line: &JournalLine) -> Self {
        LineJson {
            at: line.at.to_string(),
            kind: line.kind.clone(),
            effect_id: line.effect.map(EffectId),
            data: serde_json::from_str(&line.data).unwrap_or_else(|_| Value::from(line.data.as_str())),
        }
    }

    /// The rest of the line beside its kind, as `name=value`.
    pub fn details(&self) -> String {
        let Value::Object(members) = &self.data else { return terminal_text::line(&self.data.to_string()) };
        let pairs = members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        terminal_text::line(&pairs.collect::<Vec<_>>().join(" "))
    }
}

/// The journal of one effect, oldest first.
pub fn of_effect(ledger: &Ledger, id: EffectId) -> anyhow::Result<Vec<LineJson>> {
    let mut lines = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(ledger.journal(after, JOURNAL_PAGE_MAX))?;
        let own = page.items.iter().filter(|(_, line)| line.effect == Some(id.0));
        lines.extend(own.map(|(_, line)| LineJson::of(line)));
        match page.next {
            None => return Ok(lines),
            next => after = next,
        }
    }
}
