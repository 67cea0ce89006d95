//! Connections that were just used and may be used again.

use super::connection::Connection;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Common servers close after five idle seconds. A request that meets a closing connection is in doubt, so connections
/// are let go well before.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// As many callers at once keep their connections between two requests; more were a burst.
const IDLE_MAX: usize = 256;

/// A server that has answered and then takes nothing of the request for this long takes nothing more.
const REST_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Requests that are written to their end behind their answers, at once: each may be as large as requests can be.
const RESTS_MAX: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Idle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// In the order in which they came to rest, so that the oldest are in front.
    connections: Mutex<VecDeque<Kept>>,
    /// Places for requests that are still written although they were answered.
    rests: Arc<Semaphore>,
    /// Somebody lets go of the old ones.
    is_tended: AtomicBool,
}

impl Default for Shared {
    fn default() -> Self {
        let rests = Arc::new(Semaphore::new(RESTS_MAX));
        Shared { connections: Mutex::default(), rests, is_tended: AtomicBool::default() }
    }
}

#[derive(Debug)]
struct Kept {
    connection: Connection,
    since: Instant,
}

impl Kept {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIME_MAX
    }
}

impl Idle {
    /// The one used last that is young and open, and at home in this runtime.
    pub fn take(&self) -> Option<Connection> {
        let (now, here) = (crate::runtime::moment(), Handle::current().id());
        loop {
            let mut connections = self.lock();
            drop_old(&mut connections, now);
            let newest = connections.iter().rposition(|kept| kept.connection.home() == here)?;
            let mut connection = connections.remove(newest)?.connection;
            drop(connections);
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Takes one whose answer was read.
    pub fn put(&self, mut connection: Connection) {
        if connection.is_ready() {
            return self.keep(connection);
        }
        if connection.is_writing()
            && let Ok(place) = Arc::clone(&self.0.rests).try_acquire_owned()
        {
            // The answer came before the whole request was written. Cut off here, it would be another request.
            let idle = self.clone();
            tokio::spawn(async move {
                if connection.comes_to_rest(REST_PAUSE_MAX).await {
                    idle.keep(connection);
                }
                drop(place);
            });
        }
    }

    /// How many requests are still written although they were answered.
    #[cfg(test)]
    pub fn rests(&self) -> usize {
        RESTS_MAX - self.0.rests.available_permits()
    }

    fn keep(&self, connection: Connection) {
        let mut connections = self.lock();
        if connections.len() < IDLE_MAX {
            connections.push_back(Kept { connection, since: crate::runtime::moment() });
        }
        drop(connections);
        if !self.0.is_tended.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().let_go_of_old());
        }
    }

    /// Nobody hears the peers of idle connections close them, so these are let go by the clock.
    async fn let_go_of_old(self) {
        loop {
            tokio::time::sleep(IDLE_TIME_MAX).await;
            let mut connections = self.lock();
            drop_old(&mut connections, crate::runtime::moment());
            if connections.is_empty() {
                // Under the lock, so that whoever comes next sees it.
                self.0.is_tended.store(false, Ordering::Release);
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_old(connections: &mut VecDeque<Kept>, now: Instant) {
    while connections.front().is_some_and(|kept| kept.is_old(now)) {
        connections.pop_front();
    }
}
