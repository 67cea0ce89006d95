//! The limits of one client at one server. More is a storm, or a server that never answers.

use super::guarded_calls::GuardedCalls;
use super::message::MESSAGE_BYTES_MAX;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Guarded calls at once.
pub const CALLS_MAX: usize = 2_000;

/// Requests that pass as they came and wait for their answers.
const PASSED_MAX: usize = 2_000;

/// Streams that listen to what a server says of its own accord. Each may hold some of that for a slow reader.
const LISTENING_MAX: usize = 1_000;

/// Room for large calls: as much as the largest message takes, so that each finds room once others have ended.
const ROOM_KIB: usize = MESSAGE_BYTES_MAX.div_ceil(1024);

/// Smaller calls need no room: no large one stands in their way.
const LARGE_BYTES: usize = 1 << 20;

/// All sessions of one principal may have as much under way together as so many clients: an agent has a few, and a
/// client that begins one session after the other has no more for it.
const CLIENTS_OF_ONE: usize = 4;

/// The right of one request to be under way. As long as there is one, its limits are there too: the next request is
/// held to the same.
#[derive(Debug)]
pub struct Permit {
    _own: OwnedSemaphorePermit,
    /// The same among all of its principal's.
    _of_all: Option<OwnedSemaphorePermit>,
    _limits: Arc<Limits>,
}

/// There is no permit left now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Several connections may share one: of a client without a session every request has a connection of its own.
#[derive(Debug)]
pub struct Limits {
    calls: Arc<Semaphore>,
    passed: Arc<Semaphore>,
    listening: Arc<Semaphore>,
    /// In KiB.
    room: Arc<Semaphore>,
    /// Limits that it shares with others.
    all: Option<Arc<Limits>>,
    /// Guarded calls that are under way.
    pub guarded: GuardedCalls,
}

impl Default for Limits {
    fn default() -> Self {
        Limits::of_clients(1, None)
    }
}

impl Limits {
    /// Those of all clients of one principal together.
    pub fn of_all() -> Limits {
        Limits::of_clients(CLIENTS_OF_ONE, None)
    }

    /// Those of one client, which has no more than is left of these.
    pub fn of_one(all: Arc<Limits>) -> Limits {
        Limits::of_clients(1, Some(all))
    }

    fn of_clients(count: usize, all: Option<Arc<Limits>>) -> Limits {
        let of = |each: usize| Arc::new(Semaphore::new(count * each));
        Limits {
            calls: of(CALLS_MAX),
            passed: of(PASSED_MAX),
            listening: of(LISTENING_MAX),
            room: of(ROOM_KIB),
            all,
            guarded: GuardedCalls::default(),
        }
    }

    pub fn call(self: &Arc<Self>) -> Result<Permit, Full> {
        self.take(|limits| &limits.calls, 1)
    }

    pub fn passing(self: &Arc<Self>) -> Result<Permit, Full> {
        self.take(|limits| &limits.passed, 1)
    }

    pub fn listening(self: &Arc<Self>) -> Result<Permit, Full> {
        self.take(|limits| &limits.listening, 1)
    }

    /// Room for a call of this size, if it needs any.
    pub fn room_for(self: &Arc<Self>, bytes: usize) -> Result<Option<Permit>, Full> {
        if bytes <= LARGE_BYTES {
            return Ok(None);
        }
        self.take(|limits| &limits.room, u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)).map(Some)
    }

    fn take(self: &Arc<Self>, of: fn(&Limits) -> &Arc<Semaphore>, count: u32) -> Result<Permit, Full> {
        let permit = |limits: &Limits| Arc::clone(of(limits)).try_acquire_many_owned(count).map_err(|_| Full);
        let own = permit(self)?;
        let of_all = self.all.as_deref().map(permit).transpose()?;
        Ok(Permit { _own: own, _of_all: of_all, _limits: Arc::clone(self) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_request_has_a_limit_of_its_own() {
        let limits = Arc::new(Limits::default());
        let listening: Vec<_> = std::iter::from_fn(|| limits.listening().ok()).collect();
        let passing: Vec<_> = std::iter::from_fn(|| limits.passing().ok()).collect();
        assert_eq!((listening.len(), passing.len()), (LISTENING_MAX, PASSED_MAX));
        assert!(limits.call().is_ok() && limits.room_for(MESSAGE_BYTES_MAX).is_ok());
        drop((listening, passing));
        assert!(limits.listening().is_ok() && limits.passing().is_ok());
    }
}
