//! Sessions of the 2025 era at one server: those that semel begins for a process, which has no HTTP, and those that a
//! remote server was seen to have.

use super::request::Owner;
use crate::caller::Caller;
use crate::mcp::connection::ClientConnection;
use crate::mcp::limits::Limits;
use semel_ledger::entropy::{Entropy, OsEntropy};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More clients at once than any machine has. Of more the one that was quiet longest is forgotten.
const SESSIONS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct Sessions(Mutex<SessionTable>);

#[derive(Debug, Default)]
struct SessionTable {
    /// An id opens a session only for the client that began it.
    by_owner: HashMap<Owner, ClientSession>,
    moment: u64,
}

#[derive(Debug)]
struct ClientSession {
    connection: Arc<ClientConnection>,
    used: u64,
}

impl Sessions {
    /// Begins a session within these limits, and gives it a name that nobody can guess.
    pub fn begin(&self, caller: Caller, limits: Arc<Limits>) -> String {
        let id = format!("{:032x}", OsEntropy.bits());
        let owner = Owner { principal: caller.whose(), session: Some(id.clone()) };
        self.find_or_begin(&owner, || ClientConnection::within(caller, limits));
        id
    }

    pub fn find(&self, owner: &Owner) -> Option<Arc<ClientConnection>> {
        let mut table = self.lock();
        table.moment += 1;
        let now = table.moment;
        let session = table.by_owner.get_mut(owner)?;
        session.used = now;
        Some(Arc::clone(&session.connection))
    }

    pub fn find_or_begin(
        &self,
        owner: &Owner,
        begin: impl FnOnce() -> ClientConnection,
    ) -> Arc<ClientConnection> {
        if let Some(connection) = self.find(owner) {
            return connection;
        }
        let mut table = self.lock();
        if table.by_owner.len() >= SESSIONS_MAX {
            let quiet = table.by_owner.iter().filter(|(_, session)| session.connection.is_idle());
            let quietest = quiet.min_by_key(|(_, session)| session.used).map(|(owner, _)| owner.clone());
            quietest.map(|owner| table.by_owner.remove(&owner));
        }
        let used = table.moment;
        let begin = || ClientSession { connection: Arc::new(begin()), used };
        Arc::clone(&table.by_owner.entry(owner.clone()).or_insert_with(begin).connection)
    }

    pub fn end(&self, owner: &Owner) -> bool {
        self.lock().by_owner.remove(owner).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// More sessions are not remembered; their ids alone protect them then.
const OWNERS_MAX: usize = 10_000;

/// The opener of each session of a remote server: knowing a session's id gives no other client a right to it.
///
/// Principals by session. `None`: the server gives it to several, so it says nothing.
#[derive(Debug, Default)]
pub struct SessionOwners(Mutex<HashMap<String, Option<String>>>);

impl SessionOwners {
    /// The server has given this client a session.
    pub fn add(&self, owner: &Owner, session: &str) {
        let mut known = self.lock();
        if known.len() >= OWNERS_MAX {
            known.clear();
        }
        let principal = known.entry(session.to_owned()).or_insert_with(|| Some(owner.principal.clone()));
        if principal.as_ref() != Some(&owner.principal) {
            *principal = None;
        }
    }

    /// A session that another process has seen opened is anybody's who knows it.
    pub fn may_use(&self, owner: &Owner) -> bool {
        let known = self.lock();
        let opened_by = owner.session.as_ref().and_then(|session| known.get(session)?.as_ref());
        opened_by.is_none_or(|principal| *principal == owner.principal)
    }

    /// Whether the server was seen to give this session to this client.
    pub fn is_of(&self, owner: &Owner) -> bool {
        owner.session.as_ref().is_some_and(|session| self.lock().contains_key(session)) && self.may_use(owner)
    }

    pub fn remove(&self, owner: &Owner) {
        owner.session.as_ref().map(|session| self.lock().remove(session));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_openers_until_it_is_closed() {
        let who = |principal: &str, session: Option<&str>| Owner {
            principal: principal.to_owned(),
            session: session.map(str::to_owned),
        };
        let opened = SessionOwners::default();
        opened.add(&who("ann", None), "s-1");
        assert!(opened.may_use(&who("ann", Some("s-1"))) && !opened.may_use(&who("bob", Some("s-1"))));
        assert!(opened.is_of(&who("ann", Some("s-1"))) && !opened.is_of(&who("ann", Some("s-2"))));
        assert!(opened.may_use(&who("bob", None)) && opened.may_use(&who("bob", Some("s-2"))));
        opened.remove(&who("ann", Some("s-1")));
        assert!(opened.may_use(&who("bob", Some("s-1"))));
        opened.add(&who("ann", None), "all");
        opened.add(&who("bob", None), "all");
        assert!(opened.may_use(&who("ann", Some("all"))) && opened.may_use(&who("bob", Some("all"))));
    }
}
