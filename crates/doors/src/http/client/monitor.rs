//! The facts about the request that a connection carries, shared between the connection and the socket below TLS.

use crate::runtime::RuntimeClock;
use semel_core::time::At;
use semel_gate::clock::Clock;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// After it nothing of a request may begin to leave.
#[derive(Debug, Clone)]
pub struct LastMoment {
    pub clock: RuntimeClock,
    pub at: At,
}

impl LastMoment {
    fn has_passed(&self) -> bool {
        self.at < self.clock.now()
    }
}

#[derive(Debug, Default)]
pub struct SendMonitor(Mutex<MonitorState>);

#[derive(Debug, Default)]
struct MonitorState {
    /// Bytes that the kernel took since the connection was opened.
    written: u64,
    /// The same when the request began.
    before: u64,
    /// Made before the first byte of the request.
    check: Option<SendCheck>,
    refused: Option<SendRefusal>,
    /// Why the peer took no more of a request that had begun. The rest of it is dropped.
    broken: Option<String>,
}

#[derive(Debug)]
pub struct SendCheck {
    pub last_moment: Option<LastMoment>,
    /// Bytes that come before the request are somebody else's answer.
    pub expects_silence: bool,
}

/// Why the first byte of a request was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendRefusal {
    TooLate,
    PeerClosed,
}

impl SendMonitor {
    /// A request begins: its first write is checked.
    pub fn begin(&self, check: SendCheck) {
        let mut state = self.lock();
        (state.before, state.check, state.refused) = (state.written, Some(check), None);
    }

    /// The response has come, and the next write belongs to no check.
    pub fn end(&self) {
        self.lock().check = None;
    }

    /// Whether a byte was written since the request began.
    pub fn has_begun(&self) -> bool {
        let state = self.lock();
        state.written > state.before
    }

    pub fn written(&self) -> u64 {
        self.lock().written
    }

    pub fn refusal(&self) -> Option<SendRefusal> {
        self.lock().refused
    }

    pub fn is_broken(&self) -> bool {
        self.lock().broken.is_some()
    }

    pub fn why_broken(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    pub(super) fn check(
        &self,
        has_hung_up: impl FnOnce() -> bool,
        has_bytes: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let mut state = self.lock();
        let Some(SendCheck { last_moment, expects_silence }) = state.check.take() else { return Ok(()) };
        // An end counts as bytes.
        let is_closed = if expects_silence { has_bytes() } else { has_hung_up() };
        let refusal = match last_moment {
            _ if is_closed => SendRefusal::PeerClosed,
            Some(last_moment) if last_moment.has_passed() => SendRefusal::TooLate,
            _ => return Ok(()),
        };
        state.refused = Some(refusal);
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    pub(super) fn count(&self, written: usize) {
        self.lock().written += written as u64;
    }

    pub(super) fn breaks(&self, error: &io::Error) {
        self.lock().broken = Some(error.to_string());
    }

    fn lock(&self) -> MutexGuard<'_, MonitorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
