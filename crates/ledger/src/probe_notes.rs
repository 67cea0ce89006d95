//! Notes of probes that brought nothing, for people who decide about the doubt or mend the rule.

use crate::ledger::{CellUpdate, Ledger, RecordSnapshot};
use crate::store::Durability;
use crate::{Error, journal};
use semel_core::ids::EffectId;
use semel_core::time::At;
use semel_core::word_table;
use serde::{Deserialize, Serialize};

/// Of one effect: a caller may ask as often as it likes, and the reasons are few.
const LINES_MAX: u32 = 8;

/// A sentence with an expression and what became of it.
const WHY_CHARS_MAX: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeTrouble {
    /// It could not tell.
    Probe,
    /// It found the effect, and its reply could not be made of the answer.
    Reply,
}

word_table!(ProbeTrouble { Probe = "probe_unclear", Reply = "probe_reply_failed" });

/// The last note about an effect, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeNotes {
    pub(crate) effect: EffectId,
    lines: u32,
    why: String,
}

impl Ledger {
    /// Journals why a question about a doubt brought nothing: once for the same reason, and only so often.
    pub async fn note_probe_trouble(
        &self,
        seen: &RecordSnapshot,
        what: ProbeTrouble,
        why: &str,
        now: At,
    ) -> Result<(), Error> {
        let Some(stored) = &seen.newest else { return Ok(()) };
        let why: String = why.chars().take(WHY_CHARS_MAX).collect();
        let effect = stored.effect.id;
        let key = self.secret().mac("asked_in_vain", &[&effect.0.to_be_bytes()]);
        self.update_cell(key, Durability::Durable, |notes: Option<ProbeNotes>| {
            let lines = notes.as_ref().map_or(0, |notes| notes.lines);
            if lines >= LINES_MAX || notes.is_some_and(|notes| notes.why == why) {
                return Ok(CellUpdate::Keep(()));
            }
            let data = serde_json::json!({"why": why});
            let line = journal::note(what.word(), Some(&stored.effect), stored.index.run, data, now);
            let value = ProbeNotes { effect, lines: lines + 1, why: why.clone() };
            Ok(CellUpdate::Put { value, lines: vec![line], result: () })
        })
        .await
    }
}
