//! The clients of one server, as far as they can be told apart: by their session, within their principal.

use super::owner::Owner;
use crate::caller::Caller;
use crate::mcp::connection::Connection;
use crate::mcp::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions that are remembered. One that is forgotten only loses its longer window.
const SESSIONS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Connections(Mutex<HashMap<Owner, Arc<Connection>>>);

impl Connections {
    /// The client's own. Without a session every request stands alone, within these limits.
    pub fn of(&self, owner: &Owner, caller: Caller, limits: Arc<Limits>) -> Arc<Connection> {
        if owner.session.is_none() {
            return Arc::new(Connection::within(caller, limits));
        }
        let session = self.session(owner, &caller, limits);
        // A header names the run of one request, so such a request stands alone too.
        match caller.run {
            None => session,
            Some(_) => Arc::new(Connection::within(caller, Arc::clone(&session.limits))),
        }
    }

    fn session(&self, owner: &Owner, caller: &Caller, limits: Arc<Limits>) -> Arc<Connection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(owner) && all.len() >= SESSIONS_MAX {
            all.retain(|_, connection| !connection.is_idle());
        }
        let begun =
            || Arc::new(Connection::within(Caller { run: None, token: None, ..caller.clone() }, limits));
        Arc::clone(all.entry(owner.clone()).or_insert_with(begun))
    }

    pub fn known(&self, owner: &Owner) -> Option<Arc<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned()
    }

    pub fn forget(&self, owner: &Owner) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}
