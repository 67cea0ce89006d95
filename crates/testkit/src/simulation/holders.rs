//! Who is alive, in a simulation: a process, or a child that inherited its lock.

use super::executor::Process;
use async_trait::async_trait;
use semel_core::ids::OwnerId;
use semel_ledger::Error;
use semel_ledger::holders::{Holders, Liveness};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many descriptors of each lock are open.
#[derive(Debug, Clone, Default)]
pub struct Locks(Arc<Mutex<LockTable>>);

#[derive(Debug, Default)]
struct LockTable {
    open: BTreeMap<OwnerId, u32>,
    /// Those that nobody hears of, dead or not.
    silent: BTreeSet<OwnerId>,
    last: u128,
}

impl Locks {
    fn table(&self) -> MutexGuard<'_, LockTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open descriptor of a lock. Dropping it is what a death looks like.
#[derive(Debug)]
pub struct Descriptor {
    locks: Locks,
    owner: OwnerId,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        let left = table.open.get(&self.owner).map_or(0, |open| open - 1);
        match left {
            0 => drop(table.open.remove(&self.owner)),
            left => drop(table.open.insert(self.owner, left)),
        }
    }
}

/// What rule 17 forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    EverybodyElseIsDead,
    TheSilentAreDead,
}

/// The holders as one process sees them.
#[derive(Debug)]
pub struct SimulatedHolders {
    pub process: Process,
    locks: Locks,
    mine: Mutex<Option<Descriptor>>,
    /// The directory of locks cannot be written.
    shut: AtomicBool,
    lies: Option<Lie>,
}

impl SimulatedHolders {
    pub fn of(process: Process, locks: &Locks, lies: Option<Lie>) -> Self {
        SimulatedHolders {
            process,
            locks: locks.clone(),
            mine: Mutex::default(),
            shut: AtomicBool::new(false),
            lies,
        }
    }

    /// From now on no new lock is to be had.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::Relaxed);
    }

    /// A child's own descriptor of the lock that this process has now.
    pub fn inherited(&self) -> Option<Descriptor> {
        let mine = self.mine.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = mine.as_ref()?.owner;
        *self.locks.table().open.entry(owner).or_default() += 1;
        Some(Descriptor { locks: self.locks.clone(), owner })
    }

    /// From now on others hear nothing of this process, which goes on all the same, until the guard is dropped.
    pub fn silence(&self) -> Option<Silence> {
        let mine = self.mine.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = mine.as_ref()?.owner;
        self.locks.table().silent.insert(owner);
        Some(Silence { locks: self.locks.clone(), owner })
    }

    /// The process dies, or lets go so that the end of its children can be seen.
    pub fn release_lock(&self) {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A holder that nobody hears of.
#[derive(Debug)]
pub struct Silence {
    locks: Locks,
    owner: OwnerId,
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.locks.table().silent.remove(&self.owner);
    }
}

/// A gate and its upstreams look at one set of holders.
#[derive(Debug, Clone)]
pub struct SharedHolders(pub Arc<SimulatedHolders>);

impl std::ops::Deref for SharedHolders {
    type Target = SimulatedHolders;

    fn deref(&self) -> &SimulatedHolders {
        &self.0
    }
}

#[async_trait]
impl Holders for SharedHolders {
    fn me(&self) -> Result<OwnerId, Error> {
        let mut mine = self.mine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(descriptor) = &*mine {
            return Ok(descriptor.owner);
        }
        if self.shut.load(Ordering::Relaxed) {
            return Err(Error::NotWritten { what: "no lock is to be had".to_owned() });
        }
        let mut table = self.locks.table();
        table.last += 1;
        let owner = OwnerId(table.last);
        table.open.insert(owner, 1);
        *mine = Some(Descriptor { locks: self.locks.clone(), owner });
        Ok(owner)
    }

    async fn liveness(&self, owners: &[OwnerId]) -> Result<Vec<Liveness>, Error> {
        let mine = self.mine.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|mine| mine.owner);
        let table = self.locks.table();
        let of = |owner: &OwnerId| match (table.silent.contains(owner), self.lies) {
            _ if mine == Some(*owner) => Liveness::Alive,
            (_, Some(Lie::EverybodyElseIsDead)) | (true, Some(Lie::TheSilentAreDead)) => Liveness::Dead,
            (true, None) => Liveness::Silent,
            (false, _) if table.open.contains_key(owner) => Liveness::Alive,
            (false, _) => Liveness::Dead,
        };
        Ok(owners.iter().map(of).collect())
    }
}
