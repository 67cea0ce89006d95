//! Guarded calls that are under way, by whoever made them and the id that they gave them. What was sent is finished
//! (rule 12), so a cancel of one of these goes no further; who stands alone, without a session, has no other record.

use crate::mcp::message::Id;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Counts = HashMap<(String, Id), usize>;

#[derive(Debug, Clone, Default)]
pub struct Guarding(Arc<Mutex<Counts>>);

/// One call, until it is dropped.
#[derive(Debug)]
pub struct UnderWay {
    call: (String, Id),
    of: Guarding,
}

impl Guarding {
    pub fn begin(&self, principal: &str, id: &Id) -> UnderWay {
        let call = (principal.to_owned(), id.clone());
        *self.lock().entry(call.clone()).or_default() += 1;
        UnderWay { call, of: self.clone() }
    }

    pub fn has(&self, principal: &str, id: &Id) -> bool {
        self.lock().contains_key(&(principal.to_owned(), id.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.of.lock();
        if let Some(count) = counts.get_mut(&self.call) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.call);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_under_way_until_the_last_of_its_name_has_ended() {
        let (guarding, id) = (Guarding::default(), Id::text("1"));
        let (one, two) = (guarding.begin("ann", &id), guarding.begin("ann", &id));
        assert!(
            guarding.has("ann", &id) && !guarding.has("bob", &id) && !guarding.has("ann", &Id::text("2"))
        );
        drop(one);
        assert!(guarding.has("ann", &id));
        drop(two);
        assert!(!guarding.has("ann", &id));
    }
}
