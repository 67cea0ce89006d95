//! A whole ledger in another place: the same secret, effects, replies, journal and cells.
//!
//! A copy is commits. Each has a few rows, lines or cells, and with them [`COPY_CELL`], which says how far the copy has
//! come. So a commit that landed is never repeated, an interrupted copy goes on behind it, and everything keeps its
//! order. Until both ledgers were read once more and found the same, the mark keeps everybody else out.
//!
//! Two things change on the way. Revisions begin anew, so a cell is sealed again for the revision that it gets; the
//! epoch alone keeps its revision, because attempts remember it. And engines number the lines of the journal as they
//! like, so the cells that hold such a number (fences, outboxes) are given the one of the same line.

mod copier;
mod inventory;
mod line_numbers;
mod mark;

pub use inventory::{Inventory, Tally};
pub use mark::{CopyMark, CopyStage, Position};

use crate::Error;
use crate::command_key::CommandKey;
use crate::ledger::{Ledger, lapse_of};
use crate::record::decode;
use crate::store::{By, COPY_CELL, EPOCH_CELL, PAGE_ROWS_MAX, Put, Revision};
use copier::Copier;
use semel_core::ids::EffectId;
use semel_core::time::At;

/// Why a ledger is copied.
#[derive(Debug, Clone)]
pub enum CopyPurpose {
    /// To go on with the copy.
    Move,
    /// To keep it. The ledger may be in use meanwhile, so parts of it are of different moments.
    Backup { command: Option<CommandKey> },
    /// To go on with an older state: an epoch begins.
    Restore { reason: String, command: Option<CommandKey> },
}

#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// The address of the ledger that is copied, as people may see it.
    pub from: String,
    pub purpose: CopyPurpose,
    pub now: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyPhase {
    Effects,
    Journal,
    Cells,
    Verify,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyProgress {
    pub phase: CopyPhase,
    pub done: u64,
    /// From 0 to 1, where that is known.
    pub fraction: Option<f64>,
}

pub type OnProgress<'p> = &'p mut (dyn FnMut(CopyProgress) + Send);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyReport {
    /// `false`: it was complete before.
    pub is_new: bool,
    /// An earlier attempt was interrupted, and this one went on.
    pub resumed: bool,
    pub inventory: Inventory,
}

/// etcd takes 126 operations in a transaction, and a row can be twelve of them.
const ROWS_AT_ONCE: usize = 10;

/// Copies one ledger to another place, or goes on with it. Both have the same secret.
pub async fn copy(
    from: &Ledger,
    to: &Ledger,
    plan: &CopyPlan,
    on_progress: OnProgress<'_>,
) -> Result<CopyReport, Error> {
    let refused = |what: String| Err(Error::CopyRefused { what });
    let of = from.secret().check_value();
    if from.store.is_newer() || to.store.is_newer() {
        return refused("a newer semel has written one of the ledgers; copy with that one".to_owned());
    }
    if of != to.secret().check_value() {
        return refused("another ledger stands in the place of the copy; name an empty place".to_owned());
    }
    if matches!(plan.purpose, CopyPurpose::Move) {
        from.refuse_partial(&plan.from, true).await?;
    }
    let (revision, found) = to.cell::<CopyMark>(COPY_CELL).await?;
    let (mark, position) = match found {
        Some(CopyMark { from, .. }) if from != plan.from => {
            return refused(format!("the place holds a copy of {from}; name an empty place"));
        }
        Some(mark) => match mark.stage {
            CopyStage::Copying(position) => (mark, position),
            CopyStage::Complete { at } => {
                if from.newest_line().await?.is_some_and(|(_, line)| line.at > at) {
                    return refused(format!(
                        "{} went on after it was copied, and the copy does not know of it. Empty the place and copy \
                         again, or use the copy alone",
                        plan.from
                    ));
                }
                let inventory = Inventory::default();
                return Ok(CopyReport { is_new: false, resumed: false, inventory });
            }
            CopyStage::Backup { .. } => return refused("a backup stands there".to_owned()),
        },
        None if !to.is_empty().await? => {
            return refused("the place is not empty; name another one".to_owned());
        }
        None => {
            let position = Position::Effects { after: None, done: 0 };
            (CopyMark::new(plan, CopyStage::Copying(position)), position)
        }
    };
    if matches!(plan.purpose, CopyPurpose::Move) {
        let busy = from.in_flight(plan.now).await?;
        if let Some(first) = busy.first() {
            let count = busy.len();
            let calls = if count == 1 { "call is" } else { "calls are" };
            return refused(format!(
                "{count} {calls} in flight, effect {first} first. Stop all that use the ledger, wait until they \
                 have ended, and copy again"
            ));
        }
        let waiting = from.spooled()?.waiting.len();
        if waiting > 0 {
            let answers = if waiting == 1 { "answer waits" } else { "answers wait" };
            return refused(format!(
                "{waiting} {answers} on this host for the ledger and would stay behind. The next semel run or semel \
                 serve with it imports them; then stop it, and copy again"
            ));
        }
    }
    if from.store.holds_lines_back().await? {
        return refused(
            "another transaction on its server is open and holds back the newest lines of the journal. End it, and \
             copy again"
                .to_owned(),
        );
    }
    let read = Inventory::default();
    let resumed = revision != Revision::ABSENT;
    let mut copier = Copier { from, to, mark, revision, read, on_progress };
    if !resumed {
        // With the mark comes the epoch of the original, and before it nobody trusts an empty place.
        let epoch = to.store.cell(EPOCH_CELL).await?;
        let forget = epoch.map(|epoch| Put::ForgetCell { key: EPOCH_CELL, expected: epoch.revision });
        copier.write(forget.into_iter().collect(), Vec::new(), position).await?;
    }
    copier.run(position).await?;
    let inventory = copier.verify(&plan.purpose).await?;
    copier.finish(plan).await?;
    Ok(CopyReport { is_new: true, resumed, inventory })
}

impl Ledger {
    /// Whether there is nothing in it yet. It may have begun an epoch: then it was founded where another one was lost.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.store.scan(By::All, None, 1).await?.items.is_empty()
            && self.store.newest_lines(1).await?.is_empty()
            && self.store.cell_keys().await?.iter().all(|key| *key == EPOCH_CELL))
    }

    /// Effects that somebody is at work on just now.
    pub async fn in_flight(&self, now: At) -> Result<Vec<EffectId>, Error> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.scan(By::Open, after, PAGE_ROWS_MAX).await?;
            for effect in page.items.into_iter().map(|row| decode(row).effect) {
                if let Some(attempt) = effect.open_attempt()
                    && lapse_of(attempt, self.liveness_of(attempt).await?, now).is_none()
                {
                    found.push(effect.id);
                }
            }
            match page.next {
                None => return Ok(found),
                next => after = next,
            }
        }
    }
}
