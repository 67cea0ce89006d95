//! How far the journal was told to somebody outside, and who tells it: one process at a time.

use crate::Error;
use crate::entropy::nonce;
use crate::holders::Liveness;
use crate::ledger::Ledger;
use crate::small_records::cell_value;
use crate::store::{Cell, Commit, Cursor, Durability, JOURNAL_PAGE_MAX, Put, Revision};
use semel_core::digest::Digest;
use semel_core::ids::{EffectId, OwnerId};
use semel_core::time::At;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OutboxState {
    by: OwnerId,
    #[serde(flatten)]
    progress: OutboxProgress,
}

/// How far it was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxProgress {
    /// The last line that was told, or that needed no telling.
    pub sent_to: Cursor,
    /// Effects that were told and have not come to an end by that line: further lines about them are no news.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<EffectId>,
    /// The newest message that was given up, if none was taken since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<OutboxFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxFailure {
    pub about: EffectId,
    pub at: At,
    pub why: String,
}

/// The right to tell, as long as this process lives and nobody else has taken it.
#[derive(Debug)]
pub struct JournalOutbox {
    key: Digest,
    revision: Revision,
    pub progress: OutboxProgress,
}

/// The line up to which it was told, if this cell says that.
pub(crate) fn sent_to(key: Digest, cell: &Cell) -> Option<Cursor> {
    cell_value(key, cell).map(|OutboxState { progress, .. }| progress.sent_to)
}

impl Ledger {
    /// Takes the outbox of this name, unless a process that is known to be alive has it. The first time it begins at the journal's
    /// end: what is old is not news.
    pub async fn take_outbox(&self, name: &str) -> Result<Option<JournalOutbox>, Error> {
        self.take_outbox_before(name, None).await
    }

    /// The same for a process that looks only once something has happened to this effect: the first time it begins before the
    /// effect's lines.
    pub async fn take_outbox_before(
        &self,
        name: &str,
        effect: Option<EffectId>,
    ) -> Result<Option<JournalOutbox>, Error> {
        let key = self.outbox_key(name);
        let me = self.holders().me()?;
        let (revision, kept) = self.cell::<OutboxState>(key).await?;
        let progress = match kept {
            Some(kept) if kept.by != me => match self.liveness([kept.by].into_iter()).await?[0] {
                Liveness::Alive => return Ok(None),
                // One that is only silent finds out when it next says how far it is.
                Liveness::Dead | Liveness::Silent => kept.progress,
            },
            Some(kept) => kept.progress,
            None => OutboxProgress { sent_to: self.line_before(effect).await?, ..OutboxProgress::default() },
        };
        let put = Put::cell(key, revision, &OutboxState { progress: progress.clone(), by: me });
        let mut commit = Commit::of(nonce(self.entropy()), vec![put]);
        // Others who come now are to know that this process is alive.
        commit.require.begins = true;
        let taken = self.commit(commit).await?.is_ok();
        Ok(taken.then_some(JournalOutbox { key, revision: revision.next(), progress }))
    }

    /// The newest line, or the one before the first of the newest ones that is about this effect.
    async fn line_before(&self, effect: Option<EffectId>) -> Result<Cursor, Error> {
        let lines = self.newest_lines(if effect.is_some() { JOURNAL_PAGE_MAX } else { 1 }).await?;
        let about = |id: &EffectId| {
            let own = lines.iter().rev().find(|(_, line)| line.effect == Some(id.0));
            own.map(|(cursor, _)| Cursor(cursor.0.saturating_sub(1)))
        };
        let newest = || lines.first().map_or(Cursor(0), |(cursor, _)| *cursor);
        Ok(effect.as_ref().and_then(about).unwrap_or_else(newest))
    }

    /// How far it was told, whoever tells it. `None`: nobody has begun.
    pub async fn outbox(&self, name: &str) -> Result<Option<OutboxProgress>, Error> {
        let (_, kept) = self.cell::<OutboxState>(self.outbox_key(name)).await?;
        Ok(kept.map(|kept| kept.progress))
    }

    /// Writes down how far it was told. `false`: somebody else has the outbox now. If the machine loses power, what was told
    /// last may be told again.
    pub async fn mark_sent(&self, outbox: &mut JournalOutbox) -> Result<bool, Error> {
        let kept = OutboxState { progress: outbox.progress.clone(), by: self.holders().me()? };
        let done = self.put_cell(outbox.key, outbox.revision, &kept, Vec::new(), Durability::Lazy).await?;
        if done {
            outbox.revision = outbox.revision.next();
        }
        Ok(done)
    }

    fn outbox_key(&self, name: &str) -> Digest {
        self.secret().mac("outbox", &[name.as_bytes()])
    }
}
