//! Lines of the journal, for `tail`, `show` and `doctor`.

use crate::terminal_text;
use semel_core::effect::Effect;
use semel_core::ids::EffectId;
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;
use semel_ledger::store::{Cursor, JOURNAL_PAGE_MAX, JournalLine, Page};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

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

/// The clocks of hosts differ by less.
const CLOCK_MARGIN: Duration = Duration::from_hours(1);

/// The journal of one effect, oldest first: from about when it was opened on, for lines are written in order of time.
pub fn of_effect(ledger: &Ledger, effect: &Effect) -> anyhow::Result<Vec<LineJson>> {
    let last = block_on(ledger.newest_line())?.map_or(Cursor(0), |(last, _)| last);
    let read = |after, limit| Ok(block_on(ledger.journal(after, limit))?);
    let lines = lines_of(effect.id, effect.opened_at, last, read)?;
    Ok(lines.iter().map(LineJson::of).collect())
}

type LinePage = Page<(Cursor, JournalLine)>;

fn lines_of(
    id: EffectId,
    opened_at: At,
    last: Cursor,
    mut read: impl FnMut(Option<Cursor>, usize) -> anyhow::Result<LinePage>,
) -> anyhow::Result<Vec<JournalLine>> {
    let since = At(opened_at.0.saturating_sub(CLOCK_MARGIN.as_micros() as u64));
    let (Cursor(mut early), Cursor(mut late)) = (Cursor(0), last);
    while late.saturating_sub(early) > JOURNAL_PAGE_MAX as u64 {
        let middle = early + (late - early) / 2;
        match read(Some(Cursor(middle)), 1)?.items.first() {
            Some((found, line)) if line.at < since => early = found.0,
            _ => late = middle,
        }
    }
    let found = lines_after(id, (early > 0).then_some(Cursor(early)), &mut read)?;
    // A clock that was set back leads astray. Then its first line is missing.
    if early > 0 && !found.iter().any(|line| line.kind == "claimed") {
        return lines_after(id, None, &mut read);
    }
    Ok(found)
}

fn lines_after(
    id: EffectId,
    mut after: Option<Cursor>,
    read: &mut impl FnMut(Option<Cursor>, usize) -> anyhow::Result<LinePage>,
) -> anyhow::Result<Vec<JournalLine>> {
    let mut lines = Vec::new();
    loop {
        let page = read(after, JOURNAL_PAGE_MAX)?;
        lines.extend(page.items.into_iter().map(|(_, line)| line).filter(|line| line.effect == Some(id.0)));
        match page.next {
            None => return Ok(lines),
            next => after = next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// The lines found in a journal that has one of the effect each tenth of it, and how many lines were read.
    fn found(journal: &[JournalLine], opened_at: u64) -> (usize, usize) {
        let mut lines_read = 0;
        let read = |after: Option<Cursor>, limit: usize| {
            let from = after.map_or(0, |Cursor(after)| after as usize);
            let to = (from + limit).min(journal.len());
            lines_read += to - from;
            let items = (from..to).map(|n| (Cursor(n as u64 + 1), journal[n].clone())).collect();
            Ok(Page { items, next: (to < journal.len()).then_some(Cursor(to as u64)) })
        };
        let last = Cursor(journal.len() as u64);
        let lines = lines_of(EffectId(7), At(opened_at), last, read).unwrap();
        (lines.len(), lines_read)
    }

    #[test]
    fn the_lines_of_an_effect_are_read_from_its_beginning_on() {
        let line = |n: u64| {
            let effect = Some(if n % 10_000 == 5_000 && n > 80_000 { 7 } else { 8 });
            let kind = if n == 85_000 { "claimed" } else { "probed" }.to_owned();
            JournalLine { at: At(n * SECOND), effect, run: None, kind, data: "{}".to_owned() }
        };
        let mut journal: Vec<JournalLine> = (0..100_000).map(line).collect();
        let (lines, lines_read) = found(&journal, 85_000 * SECOND);
        assert_eq!(lines, 2);
        assert!(lines_read < 25_000, "{lines_read}");
        // Somebody's clock was wrong for a while.
        journal[86_000..].iter_mut().for_each(|line| line.at = At(SECOND));
        assert_eq!(found(&journal, 85_000 * SECOND).0, 2);
        assert_eq!(found(&journal[..90_000], 85_000 * SECOND).0, 1);
        assert_eq!(found(&[], SECOND).0, 0);
    }
}
