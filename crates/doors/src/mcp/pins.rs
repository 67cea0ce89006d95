//! Whether a tool still is what it was when it was first used.

use super::server::Server;
use super::tools::Definition;
use crate::runtime::ServedGate;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::pins::Pinned;

/// Asks the ledger once for each definition: one that was found unchanged is not asked for again.
pub async fn check(
    gate: &ServedGate,
    server: &Server,
    definition: &Definition,
    now: At,
) -> Result<Pinned, Error> {
    if server.is_pinned(definition) {
        return Ok(Pinned::Same);
    }
    let pinned = gate.ledger.pin(&server.name, &definition.name, definition.hash, now).await?;
    if pinned == Pinned::Same {
        server.pinned(definition);
    }
    Ok(pinned)
}
