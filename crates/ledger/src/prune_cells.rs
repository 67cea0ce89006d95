//! Cells that stand beside an effect: a joining key's and a run's visits go after its fact, the notes of its probes after
//! its doubt.

use crate::Error;
use crate::ledger::Ledger;
use crate::probe_notes::ProbeNotes;
use crate::small_records::{Alias, Visits, cell_value};
use crate::store::{Cell, Put};
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::ids::EffectId;
use semel_core::time::At;

/// Of all cells, so many parts are looked at in turn, one a day: nothing says which of them have become useless.
const PARTS: u64 = 32;

const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

impl Ledger {
    /// Drops those cells of today's part that nobody can need. What another process writes meanwhile stays.
    pub(crate) async fn prune_cells(&self, now: At) -> Result<(), Error> {
        let today = |key: &Digest| u64::from(key.0[0]) % PARTS == now.0 / DAY_MICROS % PARTS;
        for key in self.store.cell_keys().await?.into_iter().filter(today) {
            let Some(cell) = self.store.cell(key).await? else { continue };
            if self.is_useless(key, &cell).await? {
                self.prune_commit(vec![Put::ForgetCell { key, expected: cell.revision }]).await?;
            }
        }
        Ok(())
    }

    /// The name of a cell does not tell its kind; the members of its value do.
    async fn is_useless(&self, key: Digest, cell: &Cell) -> Result<bool, Error> {
        if let Some(notes) = cell_value::<ProbeNotes>(key, cell) {
            return Ok(self.known(notes.effect).await?.is_none_or(|effect| !effect.is_open()));
        }
        let effects = match (cell_value::<Alias>(key, cell), cell_value::<Visits>(key, cell)) {
            (Some(alias), _) => vec![alias.stands_for.effect],
            // One that has more cannot name them.
            (None, Some(visits)) if !visits.more => visits.effects,
            (None, _) => return Ok(false),
        };
        for id in effects {
            if self.known(id).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn known(&self, id: EffectId) -> Result<Option<Effect>, Error> {
        match self.by_id(id).await {
            Ok((_, stored)) => Ok(Some(stored.effect)),
            Err(Error::NoSuchEffect(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
