//! What a probe could not tell, for whoever has to decide about the doubt or to mend the rule.

use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Found, Ledger};
use crate::store::Store;
use crate::{Error, journal};
use semel_core::time::At;
use serde::{Deserialize, Serialize};

/// Of one effect: a caller may ask as often as it likes, and the reasons are few.
const LINES_MAX: u32 = 8;

/// A sentence with an expression and what became of it.
const WHY_CHARS_MAX: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InVain {
    /// Nobody knows more than before.
    Probe,
    /// It happened, and what it answered could not be made of the probe's answer.
    Reply,
}

impl InVain {
    pub fn word(self) -> &'static str {
        match self {
            InVain::Probe => "probe_unclear",
            InVain::Reply => "probe_reply_failed",
        }
    }
}

/// What was last written of it, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    lines: u32,
    why: String,
}

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Journals why a question about a doubt brought nothing: once for the same reason, and only so often.
    pub async fn asked_in_vain(&self, seen: &Found, what: InVain, why: &str, now: At) -> Result<(), Error> {
        let Some(known) = &seen.newest else { return Ok(()) };
        let why: String = why.chars().take(WHY_CHARS_MAX).collect();
        let key = self.secret().mac("asked_in_vain", &[&known.effect.id.0.to_be_bytes()]);
        let (revision, asked) = self.cell::<Asked>(key).await?;
        let asked = asked.unwrap_or_default();
        if asked.why == why || asked.lines >= LINES_MAX {
            return Ok(());
        }
        let data = serde_json::json!({"why": why});
        let line = journal::note(what.word(), Some(&known.effect), known.index.run, data, now);
        let asked = Asked { lines: asked.lines + 1, why };
        // Whoever writes at the same time asks the same.
        self.put_cell(key, revision, &asked, vec![line]).await.map(drop)
    }
}
