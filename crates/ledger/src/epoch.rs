//! The epoch of a ledger: begun where it may have forgotten claims, and accepted by a person.

use crate::command_key::CommandKey;
use crate::ledger::{CellUpdate, Ledger, RACES_MAX};
use crate::small_records::Epoch;
use crate::store::{Durability, EPOCH_CELL, Revision};
use crate::{Error, journal};
use semel_core::time::At;

impl Ledger {
    /// Starts a new epoch: the store may have forgotten claims made before now.
    pub async fn bump_epoch(&self, reason: &str, now: At) -> Result<Epoch, Error> {
        self.bump_epoch_once(reason, None, now).await.map(|(epoch, _)| epoch)
    }

    /// The same under a key. `false`: the present epoch was begun under it.
    pub async fn bump_epoch_once(
        &self,
        reason: &str,
        command: Option<CommandKey>,
        now: At,
    ) -> Result<(Epoch, bool), Error> {
        self.change_epoch("epoch_bumped", None, now, |epoch| match epoch {
            Some(epoch) if CommandKey::is_repeat(command, epoch.command)? => Ok(epoch),
            epoch => Ok(Epoch { command, ..Epoch::after(epoch.as_ref(), reason, now) }),
        })
        .await
    }

    /// The same, unless the present epoch was begun for this very reason.
    pub(crate) async fn bump_epoch_for(&self, reason: &str, now: At) -> Result<(), Error> {
        let change = |epoch: Option<Epoch>| match epoch {
            Some(epoch) if epoch.reason == reason => Ok(epoch),
            epoch => Ok(Epoch::after(epoch.as_ref(), reason, now)),
        };
        self.change_epoch("commits_lost", None, now, change).await.map(drop)
    }

    /// The same, unless another epoch has begun since the one that was `seen`.
    pub(crate) async fn bump_epoch_after(&self, seen: Revision, reason: &str, now: At) -> Result<(), Error> {
        for _ in 0..RACES_MAX {
            let (revision, epoch) = self.epoch().await?;
            if revision > seen {
                return Ok(());
            }
            let epoch = Epoch::after(epoch.as_ref(), reason, now);
            let data = serde_json::json!({"number": epoch.number, "reason": reason});
            let lines = vec![journal::note("commits_lost", None, None, data, now)];
            if self.put_cell(EPOCH_CELL, revision, &epoch, lines, Durability::Durable).await? {
                return Ok(());
            }
        }
        Err(Error::NotWritten { what: "other processes keep changing the epoch of the ledger".to_owned() })
    }

    /// Ends the quarantine: somebody vouches that nothing older will be retried. `false`: it was ended before.
    pub async fn accept_epoch(&self, by: &str, now: At) -> Result<(Epoch, bool), Error> {
        let first = || Epoch { number: 1, since: now, reason: "first".into(), accepted: true, command: None };
        self.change_epoch("epoch_accepted", Some(by), now, |epoch| {
            Ok(epoch.map_or_else(first, |epoch| Epoch { accepted: true, ..epoch }))
        })
        .await
    }

    /// `false`: it stays as it is.
    async fn change_epoch(
        &self,
        kind: &str,
        by: Option<&str>,
        now: At,
        change: impl Fn(Option<Epoch>) -> Result<Epoch, Error>,
    ) -> Result<(Epoch, bool), Error> {
        self.update_cell(EPOCH_CELL, Durability::Durable, |epoch: Option<Epoch>| {
            let value = change(epoch.clone())?;
            if epoch.as_ref() == Some(&value) {
                return Ok(CellUpdate::Keep((value, false)));
            }
            let mut data = serde_json::json!({"number": value.number, "reason": value.reason});
            if let Some(by) = by {
                data["by"] = by.into();
            }
            let lines = vec![journal::note(kind, None, None, data, now)];
            Ok(CellUpdate::Put { result: (value.clone(), true), value, lines })
        })
        .await
    }
}
