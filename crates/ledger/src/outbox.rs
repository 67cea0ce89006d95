//! How far the journal was told to somebody outside, and who tells it: one process at a time.

use crate::Error;
use crate::entropy::nonce;
use crate::holders::Liveness;
use crate::ledger::Ledger;
use crate::small_records::cell_value;
use crate::store::{Cell, Commit, Cursor, Durability, Put, Revision};
use semel_core::digest::Digest;
use semel_core::ids::OwnerId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct OutboxState {
    /// The last line that was told, or that needed no telling.
    sent_to: Cursor,
    by: OwnerId,
}

/// The right to tell, as long as this process lives and nobody else has taken it.
#[derive(Debug)]
pub struct JournalOutbox {
    key: Digest,
    revision: Revision,
    pub sent_to: Cursor,
}

/// The line up to which it was told, if this cell says that.
pub(crate) fn sent_to(key: Digest, cell: &Cell) -> Option<Cursor> {
    cell_value(key, cell).map(|OutboxState { sent_to, .. }| sent_to)
}

impl Ledger {
    /// Takes the outbox of this name, unless a process that is known to be alive has it. The first time it begins at the journal's
    /// end: what is old is not news.
    pub async fn take_outbox(&self, name: &str) -> Result<Option<JournalOutbox>, Error> {
        let key = self.secret().mac("outbox", &[name.as_bytes()]);
        let me = self.holders().me()?;
        let (revision, kept) = self.cell::<OutboxState>(key).await?;
        let sent_to = match kept {
            Some(kept) if kept.by != me => match self.liveness([kept.by].into_iter()).await?[0] {
                Liveness::Alive => return Ok(None),
                // One that is only silent finds out when it next says how far it is.
                Liveness::Dead | Liveness::Silent => kept.sent_to,
            },
            Some(kept) => kept.sent_to,
            None => self.newest_line().await?.map_or(Cursor(0), |(cursor, _)| cursor),
        };
        let put = Put::cell(key, revision, &OutboxState { sent_to, by: me });
        let mut commit = Commit::of(nonce(self.entropy()), vec![put]);
        // Others who come now are to know that this process is alive.
        commit.require.begins = true;
        let taken = self.commit(commit).await?.is_ok();
        Ok(taken.then_some(JournalOutbox { key, revision: revision.next(), sent_to }))
    }

    /// Says how far it was told. `false`: somebody else has the outbox now. If the machine loses power, what was told
    /// last may be told again.
    pub async fn mark_sent(&self, outbox: &mut JournalOutbox, sent_to: Cursor) -> Result<bool, Error> {
        let kept = OutboxState { sent_to, by: self.holders().me()? };
        let done = self.put_cell(outbox.key, outbox.revision, &kept, Vec::new(), Durability::Lazy).await?;
        if done {
            outbox.revision = outbox.revision.next();
            outbox.sent_to = sent_to;
        }
        Ok(done)
    }
}
