//! The limits of each caller at one server. A session has limits of its own; without one every request stands alone,
//! and no limit of a single request would hold anybody. All of one principal's have limits together: a client that may
//! begin one session may begin many.

use crate::mcp::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

#[derive(Debug, Default)]
pub struct Allowances {
    sessionless: LimitsByCaller,
    all: LimitsByCaller,
}

/// By caller, as long as something of theirs is under way or a session of theirs is there.
#[derive(Debug, Default)]
struct LimitsByCaller(Mutex<HashMap<String, Weak<Limits>>>);

impl LimitsByCaller {
    fn of(&self, whose: &str, begin: impl FnOnce() -> Limits) -> Arc<Limits> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limits) = all.get(whose).and_then(Weak::upgrade) {
            return limits;
        }
        all.retain(|_, limits| limits.strong_count() > 0);
        let limits = Arc::new(begin());
        all.insert(whose.to_owned(), Arc::downgrade(&limits));
        limits
    }
}

impl Allowances {
    /// For what comes without a session.
    pub fn of(&self, whose: &str) -> Arc<Limits> {
        self.sessionless.of(whose, || Limits::of_one(self.all_of(whose)))
    }

    /// For a session, which keeps them.
    pub fn of_session(&self, whose: &str) -> Arc<Limits> {
        Arc::new(Limits::of_one(self.all_of(whose)))
    }

    fn all_of(&self, whose: &str) -> Arc<Limits> {
        self.all.of(whose, Limits::of_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::http::server::{Credential, Holder};
    use crate::mcp::serve::http::request::limits_of;
    use semel_ledger::tokens::AccessScope;

    fn asks(allowances: &Allowances, principal: &str, credential: Credential) -> Arc<Limits> {
        allowances.of(&whose(principal, &credential))
    }

    fn whose(principal: &str, credential: &Credential) -> String {
        let caller = Caller {
            tenant: "t".into(),
            principal: principal.into(),
            run: None,
            surrounding_run: None,
            token: None,
        };
        limits_of(&caller, Some(credential))
    }

    fn holder_named(name: &str) -> Credential {
        Credential::Holder(Holder { tenant: "t".into(), subject: name.into(), scope: AccessScope::Agent })
    }

    /// Each session has as much as a client needs, and no number of them has more than a few.
    #[test]
    fn the_sessions_of_one_principal_are_bounded_together() {
        let allowances = Allowances::default();
        let session = |name: &str, credential: Credential| allowances.of_session(&whose(name, &credential));
        let calls = |limits: &Arc<Limits>| std::iter::from_fn(|| limits.call().ok()).collect::<Vec<_>>();
        let first = calls(&session("ann", holder_named("ann")));
        let more: Vec<_> = (0..100).flat_map(|_| calls(&session("ann", holder_named("ann")))).collect();
        assert!(first.len() + more.len() < 10 * first.len(), "{} and {}", first.len(), more.len());
        assert!(asks(&allowances, "ann", holder_named("ann")).call().is_err(), "also without a session");
        let late = session("ann", holder_named("ann"));
        assert!(late.call().is_err() && late.passing().is_ok());
        assert_eq!(calls(&session("bob", holder_named("bob"))).len(), first.len(), "others have their own");
        drop(more);
        assert_eq!(calls(&late).len(), first.len());
        // A credential can be made up anew for each session.
        let made_up: Vec<_> = (0..100)
            .flat_map(|n| calls(&session(&n.to_string(), Credential::Passed(n.to_string().into()))))
            .collect();
        assert!(made_up.len() < 10 * first.len());
    }

    /// The caller goes on to other things; its request is still under way.
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
        let holder = |name: &str| asks(&allowances, name, holder_named(name));
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
        for kept in [&allowances.sessionless, &allowances.all] {
            assert_eq!(kept.0.lock().unwrap().len(), 1, "who has nothing under way is forgotten");
        }
    }
}
