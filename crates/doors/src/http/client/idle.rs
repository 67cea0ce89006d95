//! Connections that were just used and may be used again.

use super::Payload;
use hyper::client::conn::http1::SendRequest;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Common servers close after five idle seconds. A request that meets a closing connection is in doubt, so connections
/// are let go well before.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// As many callers at once keep their connections between two requests; more were a burst.
const IDLE_MAX: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct Idle {
    /// In the order in which they came to rest, so that the oldest are in front.
    connections: Arc<Mutex<VecDeque<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    sender: SendRequest<Payload>,
    since: Instant,
}

impl Kept {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIME_MAX
    }
}

impl Idle {
    /// The one used last that is young and open.
    pub fn take(&self) -> Option<SendRequest<Payload>> {
        let mut connections = self.lock();
        let now = crate::runtime::moment();
        drop_old(&mut connections, now);
        while let Some(at) = connections.iter().rposition(|kept| kept.sender.is_ready()) {
            let sender = connections.remove(at)?.sender;
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    pub fn put(&self, sender: SendRequest<Payload>) {
        let mut connections = self.lock();
        let now = crate::runtime::moment();
        drop_old(&mut connections, now);
        if !sender.is_closed() && connections.len() < IDLE_MAX {
            connections.push_back(Kept { sender, since: now });
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_old(connections: &mut VecDeque<Kept>, now: Instant) {
    while connections.front().is_some_and(|kept| kept.is_old(now)) {
        connections.pop_front();
    }
}
