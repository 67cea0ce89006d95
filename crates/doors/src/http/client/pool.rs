//! Open connections that may be used next: those that were just used, each for its own principal, and one that has
//! carried nothing yet.

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
const FINISH_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Requests that are written to their end behind their responses, at once: each may be as large as requests can be.
const FINISHING_MAX: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Pool(Arc<SharedPool>);

#[derive(Debug)]
struct SharedPool {
    /// In the order in which they came to rest, so that the oldest are in front.
    connections: Mutex<VecDeque<IdleConnection>>,
    /// Places for requests that are still written although they were answered.
    finishing: Arc<Semaphore>,
    /// A task drops the old ones.
    is_swept: AtomicBool,
    /// A connection is being opened before it is asked for.
    is_warming: AtomicBool,
}

impl Default for SharedPool {
    fn default() -> Self {
        SharedPool {
            connections: Mutex::default(),
            finishing: Arc::new(Semaphore::new(FINISHING_MAX)),
            is_swept: AtomicBool::default(),
            is_warming: AtomicBool::default(),
        }
    }
}

#[derive(Debug)]
struct IdleConnection {
    connection: Connection,
    /// `None`: it has carried nothing.
    owner: Option<Arc<str>>,
    since: Instant,
}

impl IdleConnection {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIME_MAX
    }

    /// HTTP/1.1 cannot tell whose response comes: only a read may follow another request, of the same principal.
    fn may_carry(&self, owner: &str, is_read: bool) -> bool {
        let is_own = |known: &Arc<str>| **known == *owner && (is_read || self.connection.is_http2());
        self.owner.as_ref().is_none_or(is_own)
    }
}

impl Pool {
    /// The one used last that is young and open, and at home in this runtime.
    pub fn take(&self, owner: &str, is_read: bool) -> Option<Connection> {
        let (now, here) = (crate::runtime::moment(), Handle::current().id());
        loop {
            let mut connections = self.lock();
            drop_old(&mut connections, now);
            let fits =
                |idle: &IdleConnection| idle.connection.home() == here && idle.may_carry(owner, is_read);
            // A connection of its own is better than one that another call could need.
            let own = connections.iter().rposition(|idle| idle.owner.is_some() && fits(idle));
            let found = own.or_else(|| connections.iter().rposition(fits))?;
            let mut connection = connections.remove(found)?.connection;
            drop(connections);
            if connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Takes back a connection whose response was read.
    pub fn put(&self, mut connection: Connection, owner: Arc<str>) {
        if connection.is_reusable() {
            return self.keep(connection, Some(owner));
        }
        if connection.is_open()
            && let Ok(place) = Arc::clone(&self.0.finishing).try_acquire_owned()
        {
            // The response came before the whole request was written. Cut off here, it would be another request.
            let pool = self.clone();
            tokio::spawn(async move {
                if connection.finish(FINISH_PAUSE_MAX).await {
                    pool.keep(connection, Some(owner));
                }
                drop(place);
            });
        }
    }

    /// Takes a connection that has carried nothing, if there is no other one.
    pub fn put_spare(&self, connection: Connection) {
        let is_spare =
            |idle: &IdleConnection| idle.owner.is_none() && idle.connection.home() == connection.home();
        let has_one = self.lock().iter().any(is_spare);
        if !has_one {
            self.keep(connection, None);
        }
    }

    /// Whether a spare connection is to be opened now. Once it is there or has failed, `warmed` says so.
    pub fn begin_warming(&self) -> bool {
        let here = Handle::current().id();
        let has_one = self.lock().iter().any(|idle| idle.owner.is_none() && idle.connection.home() == here);
        !has_one && !self.0.is_warming.swap(true, Ordering::AcqRel)
    }

    pub fn warmed(&self, connection: Option<Connection>) {
        self.0.is_warming.store(false, Ordering::Release);
        if let Some(connection) = connection {
            self.put_spare(connection);
        }
    }

    /// How many requests are still written although they were answered.
    #[cfg(test)]
    pub fn finishing(&self) -> usize {
        FINISHING_MAX - self.0.finishing.available_permits()
    }

    fn keep(&self, connection: Connection, owner: Option<Arc<str>>) {
        let mut connections = self.lock();
        if connections.len() < IDLE_MAX {
            connections.push_back(IdleConnection { connection, owner, since: crate::runtime::moment() });
        }
        drop(connections);
        if !self.0.is_swept.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().sweep());
        }
    }

    /// Nobody hears the peers of idle connections close them, so these are dropped by the clock.
    async fn sweep(self) {
        loop {
            tokio::time::sleep(IDLE_TIME_MAX).await;
            let mut connections = self.lock();
            drop_old(&mut connections, crate::runtime::moment());
            if connections.is_empty() {
                // Under the lock, so that the next one to come sees it.
                self.0.is_swept.store(false, Ordering::Release);
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<IdleConnection>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_old(connections: &mut VecDeque<IdleConnection>, now: Instant) {
    while connections.front().is_some_and(|idle| idle.is_old(now)) {
        connections.pop_front();
    }
}
