//! The right of one request to be under way, among as many as its client's limits allow.

use std::any::Any;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Held while the request is under way. As long as there is one, its limits are there too: the next request is held to
/// the same.
pub struct Permit {
    _own: OwnedSemaphorePermit,
    /// The same among all of its principal's.
    _of_all: Option<OwnedSemaphorePermit>,
    _limits: Arc<dyn Any + Send + Sync>,
}

impl Permit {
    pub fn new(
        own: OwnedSemaphorePermit,
        of_all: Option<OwnedSemaphorePermit>,
        limits: Arc<dyn Any + Send + Sync>,
    ) -> Permit {
        Permit { _own: own, _of_all: of_all, _limits: limits }
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// There is no permit left now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;
