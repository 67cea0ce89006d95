//! The opener of each session of a remote server: knowing a session's id gives no other client a right to it.

use super::request::Owner;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More sessions are not remembered; their ids alone protect them then.
const SESSIONS_MAX: usize = 10_000;

/// Principals by session. `None`: the server gives it to several, so it says nothing.
#[derive(Debug, Default)]
pub struct SessionOwners(Mutex<HashMap<String, Option<String>>>);

impl SessionOwners {
    /// The server has given this client a session.
    pub fn add(&self, owner: &Owner, session: &str) {
        let mut known = self.lock();
        if known.len() >= SESSIONS_MAX {
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
