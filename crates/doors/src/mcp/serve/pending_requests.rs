//! Requests of one client on pipes that wait for their answers.

use super::answer_check::AnswerCheck;
use crate::mcp::id::Id;
use std::collections::{HashMap, VecDeque};

/// Requests of one client that wait for an answer. More is a storm, or a server that never answers.
const PENDING_MAX: usize = 50_000;

/// A request that waits for its answer.
#[derive(Debug, PartialEq, Eq)]
pub enum PendingRequest {
    /// It waits for something that semel asks first; not a byte of it has left.
    Unsent,
    Sent(AnswerCheck),
}

/// An answer that belongs to no request is dropped. An id that is used twice at once, which the protocol forbids,
/// is answered twice.
#[derive(Debug, Default)]
pub struct PendingRequests {
    by_id: HashMap<Id, VecDeque<PendingRequest>>,
    count: usize,
}

impl PendingRequests {
    /// `false`: too many wait.
    pub fn add(&mut self, id: &Id, request: PendingRequest) -> bool {
        if self.count >= PENDING_MAX {
            return false;
        }
        self.count += 1;
        self.by_id.entry(id.clone()).or_default().push_back(request);
        true
    }

    /// Takes the request that an answer of this id belongs to.
    pub fn take_sent(&mut self, id: &Id) -> Option<AnswerCheck> {
        match self.take(id, |request| *request != PendingRequest::Unsent)? {
            PendingRequest::Sent(check) => Some(check),
            PendingRequest::Unsent => None,
        }
    }

    /// Semel has asked what it had to ask first. `false`: the client has given up meanwhile.
    pub fn take_unsent(&mut self, id: &Id) -> bool {
        self.take(id, |request| *request == PendingRequest::Unsent).is_some()
    }

    /// The client gives a request up. `true`: nothing of it was sent. Else the server has it, or it is not known.
    pub fn cancel(&mut self, id: &Id) -> bool {
        let dropped = self.by_id.remove(id).unwrap_or_default();
        self.count -= dropped.len();
        dropped.contains(&PendingRequest::Unsent)
    }

    fn take(&mut self, id: &Id, wanted: impl Fn(&PendingRequest) -> bool) -> Option<PendingRequest> {
        let requests = self.by_id.get_mut(id)?;
        let taken = requests.iter().position(wanted).and_then(|at| requests.remove(at));
        if requests.is_empty() {
            self.by_id.remove(id);
        }
        self.count -= usize::from(taken.is_some());
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_used_twice_is_answered_twice_and_no_more() {
        let mut pending = PendingRequests::default();
        let id = Id::text("1");
        let listing = || AnswerCheck::Listing { first_page: true };
        assert!(
            pending.add(&id, PendingRequest::Sent(AnswerCheck::None))
                && pending.add(&id, PendingRequest::Sent(listing()))
        );
        assert_eq!(pending.take_sent(&id), Some(AnswerCheck::None));
        assert_eq!(pending.take_sent(&id), Some(listing()));
        assert_eq!((pending.take_sent(&id), pending.count), (None, 0));
    }

    #[test]
    fn a_request_that_was_given_up_before_it_was_sent_does_not_go_on() {
        let mut pending = PendingRequests::default();
        let id = Id::text("1");
        pending.add(&id, PendingRequest::Unsent);
        assert_eq!(pending.take_sent(&id), None, "nobody can have answered it");
        assert!(pending.cancel(&id));
        assert!(!pending.take_unsent(&id) && pending.count == 0);
        pending.add(&id, PendingRequest::Unsent);
        assert!(pending.take_unsent(&id) && !pending.take_unsent(&id));
        assert!(!pending.cancel(&id));
    }
}
