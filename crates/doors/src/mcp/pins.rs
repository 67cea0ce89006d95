//! Whether a tool still is what it was when it was first used.

use super::in_words::InWords;
use super::server::Server;
use super::tools::Definition;
use crate::runtime::ServedGate;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::pins::{Offered, Pinned};
use std::io::Write as _;
use std::sync::Arc;

/// Recalls what is pinned before a listing comes: what has changed since is not shown. A ledger that cannot be read
/// holds every call, so what a listing says without it does no harm.
pub async fn recall(gate: &ServedGate, server: &Server) {
    if let Ok(pins) = gate.ledger.pins(server.pins()).await {
        server.accepts(pins.0.into_iter().map(|(tool, pin)| (tool, pin.hash)).collect());
    }
}

/// Asks the ledger once for each definition: one that was found unchanged is not asked for again.
pub async fn check(
    gate: &ServedGate,
    server: &Server,
    definition: &Arc<Definition>,
    now: At,
) -> Result<Pinned, Error> {
    let shown = server.shown(definition);
    let (tool, hash) = (&definition.name, shown.hash);
    if server.is_pinned(tool, hash) {
        return Ok(Pinned::Same);
    }
    let InWords { text, bytes } = &shown.in_words;
    let offered = Offered { hash, text, text_bytes: *bytes };
    let pinned = gate.ledger.pin(server.pins(), tool, offered, now).await?;
    match pinned {
        Pinned::Same => server.pinned(tool, hash),
        // Asked for again each time, since somebody may accept it; told once.
        Pinned::Changed if server.tells_of_change(tool, hash) => {
            let name = &server.name;
            let _nobody_listens = writeln!(
                std::io::stderr(),
                "semel: the definition of {name}/{tool} has changed since its first use; see `semel policy accept`"
            );
        }
        Pinned::Changed => {}
    }
    Ok(pinned)
}
