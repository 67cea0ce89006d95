//! Connections that were just used and may be used again.

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Common servers close after five idle seconds. A request that meets a closing connection is in doubt, so connections
/// are let go well before.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// More at once than this stood idle were a burst.
const IDLE_MAX: usize = 32;

#[derive(Debug, Clone, Default)]
pub struct Idle {
    connections: Arc<Mutex<Vec<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    sender: SendRequest<Full<Bytes>>,
    since: Instant,
}

impl Idle {
    /// The one used last, if it is young and open.
    pub fn take(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut connections = self.connections.lock().expect("nothing panics while it is held");
        connections.retain(|kept| kept.since.elapsed() < IDLE_TIME_MAX && !kept.sender.is_closed());
        let ready = connections.iter().rposition(|kept| kept.sender.is_ready())?;
        Some(connections.remove(ready).sender)
    }

    pub fn put(&self, sender: SendRequest<Full<Bytes>>) {
        let mut connections = self.connections.lock().expect("nothing panics while it is held");
        if !sender.is_closed() && connections.len() < IDLE_MAX {
            connections.push(Kept { sender, since: crate::runtime::moment() });
        }
    }
}
