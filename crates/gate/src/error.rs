//! What keeps the gate itself from doing its job.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger failed before anything was sent.
    #[error("{0}")]
    Ledger(#[from] semel_ledger::Error),
}
