//! Requests of one client on pipes that wait for their answers.

use super::watched::Watched;
use crate::mcp::message::Id;
use std::collections::{HashMap, VecDeque};

/// Requests of one client that wait for an answer. More is a storm, or a server that never answers.
const WATCHED_MAX: usize = 50_000;

/// A request that waits for its answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    /// It waits for something that semel asks first; not a byte of it has left.
    Unsent,
    Sent(Watched),
}

/// An answer that nobody asked for reaches nobody. An id that is used twice at once, which the protocol forbids, is
/// answered twice.
#[derive(Debug, Default)]
pub struct Watch {
    waiting: HashMap<Id, VecDeque<Expected>>,
    count: usize,
}

impl Watch {
    /// `false`: too many wait.
    pub fn add(&mut self, id: &Id, waiting: Expected) -> bool {
        if self.count >= WATCHED_MAX {
            return false;
        }
        self.count += 1;
        self.waiting.entry(id.clone()).or_default().push_back(waiting);
        true
    }

    /// Takes the request that an answer of this id belongs to.
    pub fn answered(&mut self, id: &Id) -> Option<Watched> {
        match self.take(id, |waiting| *waiting != Expected::Unsent)? {
            Expected::Sent(watched) => Some(watched),
            Expected::Unsent => None,
        }
    }

    /// Semel has asked what it had to ask first. `false`: the client has given up meanwhile.
    pub fn goes_on(&mut self, id: &Id) -> bool {
        self.take(id, |waiting| *waiting == Expected::Unsent).is_some()
    }

    pub fn cancelled(&mut self, id: &Id) -> Cancelled {
        let dropped = self.waiting.remove(id).unwrap_or_default();
        self.count -= dropped.len();
        match dropped.contains(&Expected::Unsent) {
            true => Cancelled::Unsent,
            false => Cancelled::Sent,
        }
    }

    fn take(&mut self, id: &Id, wanted: impl Fn(&Expected) -> bool) -> Option<Expected> {
        let waiting = self.waiting.get_mut(id)?;
        let taken = waiting.iter().position(wanted).and_then(|at| waiting.remove(at));
        if waiting.is_empty() {
            self.waiting.remove(id);
        }
        self.count -= usize::from(taken.is_some());
        taken
    }
}

/// How far a request had come that its client gives up.
#[derive(Debug, PartialEq, Eq)]
pub enum Cancelled {
    Unsent,
    /// The server has it, or nobody knows it.
    Sent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_used_twice_is_answered_twice_and_no_more() {
        let mut watch = Watch::default();
        let id = Id::text("1");
        assert!(
            watch.add(&id, Expected::Sent(Watched::Plain))
                && watch.add(&id, Expected::Sent(Watched::Listing { first_page: true }))
        );
        assert_eq!(watch.answered(&id), Some(Watched::Plain));
        assert_eq!(watch.answered(&id), Some(Watched::Listing { first_page: true }));
        assert_eq!((watch.answered(&id), watch.count), (None, 0));
    }

    #[test]
    fn what_was_given_up_before_it_was_sent_does_not_go_on() {
        let mut watch = Watch::default();
        let id = Id::text("1");
        watch.add(&id, Expected::Unsent);
        assert_eq!(watch.answered(&id), None, "nobody can have answered it");
        assert_eq!(watch.cancelled(&id), Cancelled::Unsent);
        assert!(!watch.goes_on(&id) && watch.count == 0);
        watch.add(&id, Expected::Unsent);
        assert!(watch.goes_on(&id) && !watch.goes_on(&id));
        assert_eq!(watch.cancelled(&id), Cancelled::Sent);
    }
}
