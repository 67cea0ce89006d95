//! Connections that were just used and may be used again.

use super::connection::Connection;
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
    connection: Connection,
    since: Instant,
}

impl Kept {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIME_MAX
    }
}

impl Idle {
    /// The one used last that is young and open.
    pub fn take(&self) -> Option<Connection> {
        let now = crate::runtime::moment();
        loop {
            let Kept { mut connection, since } = self.lock().pop_back()?;
            if now.saturating_duration_since(since) >= IDLE_TIME_MAX {
                // All the others are older still.
                self.lock().clear();
                return None;
            }
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    pub fn put(&self, mut connection: Connection) {
        if !connection.is_ready() {
            return;
        }
        let mut connections = self.lock();
        if connections.is_empty() {
            tokio::spawn(self.clone().let_go_of_old());
        }
        if connections.len() < IDLE_MAX {
            connections.push_back(Kept { connection, since: crate::runtime::moment() });
        }
    }

    /// Nobody hears the peers of idle connections close them, so these are let go by the clock.
    async fn let_go_of_old(self) {
        loop {
            tokio::time::sleep(IDLE_TIME_MAX).await;
            let mut connections = self.lock();
            drop_old(&mut connections, crate::runtime::moment());
            if connections.is_empty() {
                return;
            }
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
