//! Failures of the gate itself.

use semel_core::intent::Intent;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger failed before anything was sent.
    #[error("{0}")]
    Ledger(#[from] semel_ledger::Error),
}

impl Error {
    /// A call lost too many races in a row.
    pub(crate) fn spinning(intent: &Intent) -> Error {
        let what = format!("record {} changes all the time", intent.key);
        Error::Ledger(semel_ledger::Error::NotWritten { what })
    }
}
