//! Holders of attempts, and whether they are still alive (rule 17).

use crate::Error;
use crate::owner::{Group, OwnerLock, is_alive};
use async_trait::async_trait;
use semel_core::ids::OwnerId;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a holder: a process, with the children that act for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// Proven to be gone: it sends nothing any more. Time alone never proves that.
    Dead,
    /// Not heard of. It may be gone, cut off, or asleep, and may still send.
    Silent,
}

#[async_trait]
pub trait Holders: fmt::Debug + Send + Sync + 'static {
    /// This process, registered before its first claim.
    fn me(&self) -> Result<OwnerId, Error>;

    /// Tells the state of each owner, in their order.
    async fn liveness(&self, owners: &[OwnerId]) -> Result<Vec<Liveness>, Error>;

    /// Children started from now on keep this process's claims alive with them.
    fn inheritable(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Children started from now on do not.
    fn seal(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The process groups that act for this process, from now on.
    fn acts_through(&self, _groups: &[Group]) -> Result<(), Error> {
        Ok(())
    }

    /// Lets go of this process's name, so that the end of the children that inherited it can be seen. A later claim takes
    /// a new one.
    fn release_lock(&self) {}

    /// Tidies away the names of processes that are gone, a bounded number at a time. Housekeeping: what cannot be
    /// tidied is left.
    fn sweep(&self) {}
}

/// Holders of a ledger that processes of one machine share: each locks a file of its own. A lock dies with its process,
/// so nobody is ever silent here.
#[derive(Debug)]
pub struct FileHolders {
    directory: PathBuf,
    /// The upper half of all ids in this directory, where ids of other machines come along too.
    tag: Option<u64>,
    mine: Mutex<Option<OwnerLock>>,
}

/// A day's killed processes on a busy machine; the rest waits for tomorrow.
const SWEEP_MAX: usize = 10_000;

impl FileHolders {
    pub fn in_directory(directory: PathBuf) -> Self {
        FileHolders { directory, tag: None, mine: Mutex::new(None) }
    }

    pub(crate) fn tagged(directory: PathBuf, tag: u64) -> Self {
        FileHolders { directory, tag: Some(tag), mine: Mutex::new(None) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnerLock>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Holders for FileHolders {
    fn me(&self) -> Result<OwnerId, Error> {
        let mut mine = self.lock();
        match &*mine {
            Some(lock) => Ok(lock.id()),
            None => {
                let lock = match self.tag {
                    None => OwnerLock::take(&self.directory),
                    Some(tag) => OwnerLock::take_tagged(&self.directory, tag),
                };
                Ok(mine.insert(lock?).id())
            }
        }
    }

    async fn liveness(&self, owners: &[OwnerId]) -> Result<Vec<Liveness>, Error> {
        // Asking the file about ourselves would find our own lock, but only by opening it.
        let me = self.lock().as_ref().map(OwnerLock::id);
        let of = |owner: &OwnerId| match me == Some(*owner) || is_alive(&self.directory, *owner)? {
            true => Ok(Liveness::Alive),
            false => Ok(Liveness::Dead),
        };
        owners.iter().map(of).collect()
    }

    fn inheritable(&self) -> Result<(), Error> {
        self.lock().as_mut().map_or(Ok(()), OwnerLock::inheritable)
    }

    fn acts_through(&self, groups: &[Group]) -> Result<(), Error> {
        self.lock().as_ref().map_or(Ok(()), |lock| lock.acts_through(groups))
    }

    fn seal(&self) -> Result<(), Error> {
        self.lock().as_mut().map_or(Ok(()), OwnerLock::seal)
    }

    fn release_lock(&self) {
        if let Some(lock) = self.lock().take() {
            // Whether it is still held is asked again by the next reader.
            let _held_by_a_child = lock.release();
        }
    }

    fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        let ids =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str().and_then(OwnerLock::id_of_name));
        let me = self.lock().as_ref().map(OwnerLock::id);
        for id in ids.filter(|id| me != Some(*id)).take(SWEEP_MAX) {
            let _left_if_not_known = is_alive(&self.directory, id);
        }
    }
}
