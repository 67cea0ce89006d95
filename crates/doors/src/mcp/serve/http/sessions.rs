//! Sessions of the 2025 era that semel itself keeps, for a server that has no HTTP.

use super::owner::Owner;
use crate::caller::Caller;
use crate::mcp::connection::Connection;
use crate::mcp::limits::Limits;
use semel_ledger::entropy::{Entropy, OsEntropy};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More clients at once than any machine has. Of more the one that was quiet longest must begin anew.
const SESSIONS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Sessions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// An id opens a session only for whoever began it.
    by_owner: HashMap<Owner, Session>,
    moment: u64,
}

#[derive(Debug)]
struct Session {
    connection: Arc<Connection>,
    used: u64,
}

impl Sessions {
    /// Begins a session within these limits, and gives it a name that nobody can guess.
    pub fn begin(&self, caller: Caller, limits: Arc<Limits>) -> String {
        let id = format!("{:032x}", OsEntropy.bits());
        let owner = Owner { principal: caller.whose(), session: Some(id.clone()) };
        let mut state = self.lock();
        if state.by_owner.len() >= SESSIONS_MAX {
            let quiet = state.by_owner.iter().filter(|(_, session)| session.connection.is_idle());
            let quietest = quiet.min_by_key(|(_, session)| session.used).map(|(owner, _)| owner.clone());
            quietest.map(|owner| state.by_owner.remove(&owner));
        }
        state.moment += 1;
        let session =
            Session { connection: Arc::new(Connection::within(caller, limits)), used: state.moment };
        state.by_owner.insert(owner, session);
        id
    }

    pub fn find(&self, owner: &Owner) -> Option<Arc<Connection>> {
        let mut state = self.lock();
        state.moment += 1;
        let now = state.moment;
        let session = state.by_owner.get_mut(owner)?;
        session.used = now;
        Some(Arc::clone(&session.connection))
    }

    pub fn end(&self, owner: &Owner) -> bool {
        self.lock().by_owner.remove(owner).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
