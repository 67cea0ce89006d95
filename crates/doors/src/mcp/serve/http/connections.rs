//! The clients of one server, as far as they can be told apart: by their session, within their principal.

use super::resumable::Owner;
use crate::caller::Caller;
use crate::mcp::connection::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions that are remembered. One that is forgotten only loses its longer window and its news.
const SESSIONS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Connections(Mutex<HashMap<Owner, Arc<Connection>>>);

impl Connections {
    /// The client's own. Without a session every request stands alone.
    pub fn of(&self, owner: &Owner, caller: Caller) -> Arc<Connection> {
        // A header names the run of one request, so such a request stands alone too.
        if owner.session.is_none() || caller.run.is_some() {
            return Arc::new(Connection::over_http(caller));
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(owner) && all.len() >= SESSIONS_MAX {
            all.retain(|_, connection| !connection.is_idle());
        }
        let connection = all.entry(owner.clone()).or_insert_with(|| Arc::new(Connection::over_http(caller)));
        Arc::clone(connection)
    }

    pub fn known(&self, owner: &Owner) -> Option<Arc<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned()
    }

    pub fn forget(&self, owner: &Owner) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}
