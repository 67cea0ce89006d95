//! A lock file beside the database, so that processes take turns. It is a matter of fairness only: whoever ignores
//! it (a `sqlite3` shell, say) is still kept apart by `BEGIN IMMEDIATE`, which alone decides who writes.

use super::clock;
use crate::place::Place;
use std::fs::File;
use std::time::Duration;

/// A process that was stopped while it held its turn must not stop the others. After this long they go on without.
const TURN_WAIT: Duration = Duration::from_secs(2);

const NAP: Duration = Duration::from_micros(40);
const NAP_MAX: Duration = Duration::from_micros(400);

#[derive(Debug)]
pub(super) struct Sidecar {
    file: Option<File>,
    held: bool,
    /// The last wait was in vain: until the lock is free again it is only looked at, not waited for.
    stuck: bool,
}

impl Sidecar {
    /// Without the file there is no fairness, and everything else works.
    pub(super) fn open(place: &Place) -> Sidecar {
        Sidecar { file: place.open_or_create(&place.lock_file()).ok(), held: false, stuck: false }
    }

    pub(super) fn take_turn(&mut self) {
        let Some(file) = &self.file else { return };
        let mut nap = NAP;
        let mut waited = Duration::ZERO;
        while !self.held {
            match file.try_lock() {
                Ok(()) => (self.held, self.stuck) = (true, false),
                Err(std::fs::TryLockError::WouldBlock) if !self.stuck && waited < TURN_WAIT => {
                    clock::sleep(nap);
                    waited += nap;
                    nap = (nap * 2).min(NAP_MAX);
                }
                Err(_) => {
                    self.stuck = true;
                    return;
                }
            }
        }
    }

    pub(super) fn end_turn(&mut self) {
        if std::mem::take(&mut self.held) {
            let _ = self.file.as_ref().map(File::unlock);
        }
    }
}
