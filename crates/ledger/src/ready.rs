//! Whether the ledger takes a write now: only one that reached the disk tells.

use crate::Error;
use crate::entropy::Entropy;
use crate::holders::Holders;
use crate::ledger::{Ledger, RACES_MAX};
use crate::store::Store;
use semel_core::time::At;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    at: At,
}

impl<S: Store, H: Holders, E: Entropy> Ledger<S, H, E> {
    /// Writes durably, on the path that claims take.
    pub async fn prove_ready(&self, now: At) -> Result<(), Error> {
        let key = self.secret().mac("ready", &[]);
        for _ in 0..RACES_MAX {
            let (revision, _) = self.cell::<Asked>(key).await?;
            if self.put_cell(key, revision, &Asked { at: now }, Vec::new()).await? {
                return Ok(());
            }
        }
        Err(Error::NotWritten { what: "others were always faster".into() })
    }
}
