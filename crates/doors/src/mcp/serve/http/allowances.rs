//! What whoever asks without a session may have under way at one server. A session has limits of its own; without one
//! every request stands alone, and no limit of a single request would hold anybody.

use crate::caller::Caller;
use crate::http::server::Credential;
use crate::mcp::limits::Limits;
use http::request::Parts;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// By whoever asks, as long as something of theirs is under way.
#[derive(Debug, Default)]
pub struct Allowances(Mutex<HashMap<String, Weak<Limits>>>);

impl Allowances {
    /// Holders of tokens have each their own. All others have one together: a credential that is not semel's can be
    /// made up anew for each request.
    pub fn of(&self, caller: &Caller, parts: &Parts) -> Arc<Limits> {
        let whose = match parts.extensions.get() {
            Some(Credential::Holder(_)) => caller.whose(),
            Some(Credential::Passed(_) | Credential::None) | None => String::new(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limits) = all.get(&whose).and_then(Weak::upgrade) {
            return limits;
        }
        all.retain(|_, limits| limits.strong_count() > 0);
        let limits = Arc::default();
        all.insert(whose, Arc::downgrade(&limits));
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::server::Holder;
    use semel_ledger::tokens::Scope;

    fn asks(allowances: &Allowances, principal: &str, credential: Credential) -> Arc<Limits> {
        let caller =
            Caller { tenant: "t".into(), principal: principal.into(), run: None, surrounding_run: None };
        let mut parts = http::Request::new(()).into_parts().0;
        parts.extensions.insert(credential);
        allowances.of(&caller, &parts)
    }

    /// Whoever has asked goes on to other things; its request is still under way.
    #[test]
    fn what_is_under_way_keeps_its_limits() {
        let allowances = Allowances::default();
        let listening: Vec<_> =
            std::iter::from_fn(|| asks(&allowances, "ann", Credential::None).listening().ok())
                .take(5_000)
                .collect();
        assert!(listening.len() < 5_000, "each request had limits of its own");
        drop(listening);
        assert!(asks(&allowances, "ann", Credential::None).listening().is_ok());
    }

    #[test]
    fn holders_have_their_own_and_all_others_one_together() {
        let allowances = Allowances::default();
        let holder = |name: &str| {
            let holder = Holder { tenant: "t".into(), subject: name.into(), scope: Scope::Agent };
            asks(&allowances, name, Credential::Holder(holder))
        };
        let (ann, bob) = (holder("ann"), holder("bob"));
        assert!(Arc::ptr_eq(&ann, &holder("ann")) && !Arc::ptr_eq(&ann, &bob));
        let made_up = |name: &str| asks(&allowances, name, Credential::Passed(name.into()));
        let one = made_up("x");
        assert!(
            Arc::ptr_eq(&one, &made_up("y")) && Arc::ptr_eq(&one, &asks(&allowances, "", Credential::None))
        );
        assert!(!Arc::ptr_eq(&one, &ann));
        drop((ann, bob, one));
        let _carl = holder("carl");
        assert_eq!(allowances.0.lock().unwrap().len(), 1, "who has nothing under way is forgotten");
    }
}
