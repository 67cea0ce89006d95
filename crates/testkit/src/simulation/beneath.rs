//! The store beneath all simulated troubles: in memory, or on a real server.

use semel_ledger::memory::{MemorySnapshot, MemoryStore};
use semel_ledger::store::Store;
use std::ops::Deref;
use std::sync::Arc;

/// A server is asked while the clock stands still, so that a seed means the same on each. It loses nothing.
#[derive(Debug, Clone)]
pub enum StoreBeneath {
    Memory(Arc<MemoryStore>),
    Server(Arc<dyn Store>),
}

impl StoreBeneath {
    pub fn as_store(&self) -> Arc<dyn Store> {
        match self {
            StoreBeneath::Memory(memory) => Arc::<MemoryStore>::clone(memory),
            StoreBeneath::Server(store) => Arc::clone(store),
        }
    }

    pub fn cut_power(&self) {
        if let StoreBeneath::Memory(memory) = self {
            memory.cut_power();
        }
    }

    pub fn snapshot(&self) -> Option<MemorySnapshot> {
        match self {
            StoreBeneath::Memory(memory) => Some(memory.snapshot()),
            StoreBeneath::Server(_) => None,
        }
    }

    pub fn fail_over_to(&self, snapshot: &MemorySnapshot) {
        if let StoreBeneath::Memory(memory) = self {
            memory.fail_over_to(snapshot);
        }
    }
}

impl Deref for StoreBeneath {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        match self {
            StoreBeneath::Memory(memory) => &**memory,
            StoreBeneath::Server(store) => &**store,
        }
    }
}
