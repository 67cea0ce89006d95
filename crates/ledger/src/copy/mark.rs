//! The mark of a copy: how far it has come, and who may use it.

use super::CopyPlan;
use crate::Error;
use crate::command_key::CommandKey;
use crate::ledger::Ledger;
use crate::store::{COPY_CELL, Cursor};
use semel_core::digest::Digest;
use semel_core::time::At;
use serde::{Deserialize, Serialize};

/// The mark of a ledger that is a copy of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyMark {
    /// The address of the original, without a password.
    pub from: String,
    pub stage: CopyStage,
}

impl CopyMark {
    pub fn new(plan: &CopyPlan, stage: CopyStage) -> CopyMark {
        CopyMark { from: plan.from.clone(), stage }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyStage {
    /// Nobody uses it before it is complete.
    Copying(Position),
    Complete {
        at: At,
    },
    /// It is read, and never written to: calls that came after it are not in it.
    Backup {
        at: At,
        command: Option<CommandKey>,
    },
}

/// How far a copy has come. Cursors are those of the ledger that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// So many rows of the page behind this cursor.
    Effects {
        after: Option<Cursor>,
        done: usize,
    },
    Lines {
        after: Option<Cursor>,
    },
    Cells {
        after: Option<Digest>,
    },
}

impl Ledger {
    pub async fn copy_mark(&self) -> Result<Option<CopyMark>, Error> {
        Ok(self.cell(COPY_CELL).await?.1)
    }

    /// Refuses a ledger that is not all there, and to write to a backup.
    pub async fn refuse_partial(&self, ledger: &str, writes: bool) -> Result<(), Error> {
        let ledger = || ledger.to_owned();
        match self.copy_mark().await? {
            Some(CopyMark { stage: CopyStage::Copying(_), from, .. }) => {
                Err(Error::UnfinishedCopy { ledger: ledger(), from })
            }
            Some(CopyMark { stage: CopyStage::Backup { .. }, .. }) if writes => {
                Err(Error::IsBackup { ledger: ledger() })
            }
            _ => Ok(()),
        }
    }
}
