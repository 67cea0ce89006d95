//! Whether the ledger takes a write now: only one that reached the disk tells.

use crate::Error;
use crate::ledger::{CellUpdate, Ledger};
use crate::store::Durability;
use semel_core::time::At;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct WriteCheck {
    at: At,
}

impl Ledger {
    /// Writes durably, on the path that claims take.
    pub async fn prove_ready(&self, now: At) -> Result<(), Error> {
        let key = self.secret().mac("ready", &[]);
        self.update_cell(key, Durability::Durable, |_: Option<WriteCheck>| {
            Ok(CellUpdate::Put { value: WriteCheck { at: now }, lines: Vec::new(), result: () })
        })
        .await
    }
}
