//! The small things beside records: turns, callers' keys, fences and visits of runs, the epoch, retention's progress.

use crate::checksum;
use crate::command_key::CommandKey;
use crate::store::{Cell, Cursor, Revision};
use semel_core::digest::{Digest, Secret};
use semel_core::effect::Effect;
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::time::At;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The attempt that has its turn on a resource. Without this cell the resource is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub key: Digest,
    pub occurrence: u32,
    pub attempt: AttemptNo,
}

/// Where a caller's own key leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredAlias", into = "StoredAlias")]
pub struct Alias {
    /// The record of the intent that it came with.
    pub key: Digest,
    /// The effect that it was claimed for or that answered it. Older ledgers do not say.
    pub stands_for: Option<KeyTarget>,
}

/// An effect of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTarget {
    pub number: u32,
    /// Where it is known: a record that retention has dropped begins to count anew.
    pub effect: Option<EffectId>,
}

impl KeyTarget {
    pub fn of(effect: &Effect) -> KeyTarget {
        KeyTarget { number: effect.occurrence.number, effect: Some(effect.id) }
    }

    /// Whether it is this one, as far as is known.
    pub fn is(self, effect: &Effect) -> bool {
        self.number == effect.occurrence.number && self.effect.is_none_or(|id| id == effect.id)
    }
}

/// The first form was the record's key alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredAlias {
    Record(Digest),
    Effect {
        key: Digest,
        stands_for: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<EffectId>,
    },
}

impl From<StoredAlias> for Alias {
    fn from(stored: StoredAlias) -> Alias {
        match stored {
            StoredAlias::Record(key) => Alias { key, stands_for: None },
            StoredAlias::Effect { key, stands_for: number, effect } => {
                Alias { key, stands_for: Some(KeyTarget { number, effect }) }
            }
        }
    }
}

impl From<Alias> for StoredAlias {
    fn from(Alias { key, stands_for }: Alias) -> StoredAlias {
        match stands_for {
            None => StoredAlias::Record(key),
            Some(KeyTarget { number, effect }) => StoredAlias::Effect { key, stands_for: number, effect },
        }
    }
}

/// The bytes of a cell: JSON and a checksum.
pub fn cell_bytes(key: Digest, revision: Revision, value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("a cell has only string keys");
    checksum::seal(&[&key.0, &revision.0.to_be_bytes()], json)
}

/// The value of a cell. `None`: it is damaged.
pub fn cell_value<T: DeserializeOwned>(key: Digest, cell: &Cell) -> Option<T> {
    let json = checksum::open(&[&key.0, &cell.revision.0.to_be_bytes()], &cell.body)?;
    serde_json::from_slice(json).ok()
}

/// Whether a run may still start anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    pub run: String,
    pub cancelled: bool,
    pub at: At,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The newest line of the journal when the fence was set: calls that it prevented stand behind it.
    pub journal_from: Cursor,
}

/// Effects that a run has tried although another run began them: cancelling the run looks at them too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visits {
    pub effects: Vec<EffectId>,
    /// There were too many to name.
    pub more: bool,
}

/// A cell is read and written whole.
const VISITS_MAX: usize = 1_000;

impl Visits {
    pub fn with(mut self, effect: EffectId) -> Visits {
        match self.effects.len() < VISITS_MAX {
            true => self.effects.push(effect),
            false => self.more = true,
        }
        self
    }

    pub fn knows(&self, effect: EffectId) -> bool {
        self.more && self.effects.len() >= VISITS_MAX || self.effects.contains(&effect)
    }
}

pub fn visits_key(secret: &Secret, run_key: Digest) -> Digest {
    secret.mac("visits", &[&run_key.0])
}

pub fn fence_key(secret: &Secret, run_key: Digest) -> Digest {
    secret.mac("fence", &[&run_key.0])
}

/// When and why the store may have forgotten claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    pub number: u64,
    pub since: At,
    pub reason: String,
    /// Somebody said that nothing older can be retried any more.
    pub accepted: bool,
    /// The command that began it, where it came under a key. A later epoch forgets it: a retry that comes after that
    /// holds calls once more, which is the safe side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandKey>,
}

/// Agents resume within a day; after that an unseen intent counts as new again.
pub const QUARANTINE: Duration = Duration::from_secs(24 * 3600);

impl Epoch {
    /// The epoch that follows. A ledger that never bumped is in its first.
    pub fn after(previous: Option<&Epoch>, reason: &str, now: At) -> Epoch {
        let number = previous.map_or(2, |epoch| epoch.number + 1);
        Epoch { number, since: now, reason: reason.to_owned(), accepted: false, command: None }
    }

    /// The instant before which claims may have been forgotten, while that still matters.
    pub fn forgotten_before(&self, now: At) -> Option<At> {
        (!self.accepted && now < self.since.plus(QUARANTINE)).then_some(self.since)
    }
}

/// How far retention has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionProgress {
    /// The time that it last went by.
    pub at: At,
    /// The clock of the process that ran it; the same, unless that had leapt.
    #[serde(default)]
    pub clock: Option<At>,
    /// The longest window of all whose policies this ledger has served, in microseconds: their facts stay for so long.
    #[serde(default)]
    pub windows: u64,
}

pub fn pruned_key(secret: &Secret) -> Digest {
    secret.mac("pruned", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_every_form_that_it_was_ever_written_in() {
        let key = serde_json::to_value(Digest([7; 32])).unwrap();
        let read = |stored: serde_json::Value| {
            let alias: Alias = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(&alias).unwrap(), stored, "and written as it was");
            assert_eq!(alias.key, Digest([7; 32]));
            alias.stands_for
        };
        assert_eq!(read(key.clone()), None);
        let stands_for = KeyTarget { number: 2, effect: None };
        assert_eq!(read(serde_json::json!({"key": key, "stands_for": 2})), Some(stands_for));
        let stands_for = KeyTarget { effect: Some(EffectId(9)), ..stands_for };
        let stored = serde_json::json!({"key": key, "stands_for": 2, "effect": EffectId(9).to_string()});
        assert_eq!(read(stored), Some(stands_for));
    }
}
