//! Who sent a call again, as far as its headers and its answer tell. It is counted and traced; nothing is decided by it.

use crate::answer::{Answer, OutcomeWord};

/// The layer that sent a call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryOrigin {
    /// A connection was lost, and the very same message came again.
    Transport,
    /// A client library that retries by itself.
    Sdk,
    /// The framework or the model.
    Agent,
    /// Another process at the same time.
    Process,
}

impl RetryOrigin {
    pub const ALL: [RetryOrigin; 4] =
        [RetryOrigin::Transport, RetryOrigin::Sdk, RetryOrigin::Agent, RetryOrigin::Process];

    pub fn word(self) -> &'static str {
        match self {
            RetryOrigin::Transport => "transport",
            RetryOrigin::Sdk => "sdk",
            RetryOrigin::Agent => "agent",
            RetryOrigin::Process => "process",
        }
    }

    /// `None`: the call is no repeat, as far as anything says so.
    pub fn of(answer: &Answer, seen: SeenOfRetry) -> Option<RetryOrigin> {
        let SeenOfRetry { retries, reissued, joined_elsewhere } = seen;
        let repeats = answer.possible_repeat
            || matches!(answer.outcome, OutcomeWord::Replayed | OutcomeWord::Joined | OutcomeWord::Held);
        match () {
            () if retries > 0 => Some(RetryOrigin::Sdk),
            () if !repeats => None,
            () if reissued => Some(RetryOrigin::Transport),
            () if joined_elsewhere => Some(RetryOrigin::Process),
            () => Some(RetryOrigin::Agent),
        }
    }
}

/// The facts that tell the layers apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenOfRetry {
    /// How often the client library says that it has sent the call before.
    pub retries: u32,
    /// It was answered as the very call that was made before.
    pub reissued: bool,
    /// It waited for an attempt of another process.
    pub joined_elsewhere: bool,
}
