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
pub struct Alias {
    /// The record of the intent that it came with.
    pub key: Digest,
    /// The effect that it was claimed for or that answered it.
    #[serde(flatten)]
    pub stands_for: KeyTarget,
}

/// An effect of a record. Its number alone does not name it: a record that retention has dropped begins to count anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTarget {
    #[serde(rename = "stands_for")]
    pub number: u32,
    pub effect: EffectId,
}

impl KeyTarget {
    pub fn of(effect: &Effect) -> KeyTarget {
        KeyTarget { number: effect.occurrence.number, effect: effect.id }
    }

    pub fn is(self, effect: &Effect) -> bool {
        self == KeyTarget::of(effect)
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

/// Whether a run may still start anything, and since when its agent may have forgotten what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    pub run: String,
    pub cancelled: bool,
    pub at: At,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The newest line of the journal when the fence was set: calls that it prevented stand behind it.
    pub journal_from: Cursor,
    /// Its memory boundary: what it was told before may be forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_boundary: Option<At>,
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
