//! The responses that leave by one socket, shared between the socket and the bodies on it.

use super::on_sent::OnSent;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Departures(Mutex<DepartingResponses>);

#[derive(Debug, Default)]
pub struct DepartingResponses {
    /// Responses whose last bytes are in the buffer above, or on their way through here.
    pub leaving: Vec<LeavingResponse>,
    /// The request was not read to its end.
    pub has_unread: bool,
    /// A close would look like the end of what broke off.
    pub resets: bool,
}

impl Departures {
    pub fn push(&self, leaving: LeavingResponse) {
        self.lock().leaving.push(leaving);
    }

    pub fn note_unread(&self, has_unread: bool) {
        self.lock().has_unread = has_unread;
    }

    pub fn reset(&self) {
        self.lock().resets = true;
    }

    pub fn lock(&self) -> MutexGuard<'_, DepartingResponses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a response. Both are dropped if it never leaves.
pub struct LeavingResponse {
    pub on_sent: Option<OnSent>,
    /// The request's place among all.
    pub held: Box<dyn Send>,
}

impl fmt::Debug for LeavingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeavingResponse").field("on_sent", &self.on_sent).finish_non_exhaustive()
    }
}
