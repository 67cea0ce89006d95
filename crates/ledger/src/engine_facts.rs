//! The engine of a ledger, as people ask about it.

use semel_core::time::At;

/// Which server it is, and how far its answers can be trusted to stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Name and version.
    pub server: String,
    /// The settings that decide about a power cut.
    pub persistence: String,
    /// How far an acknowledged commit can be trusted to stay.
    pub durability: String,
    /// How far the clock of a server is ahead of this host's, the question's way included. `None`: it is this host's.
    pub clock_ahead_ms: Option<i64>,
}

impl EngineFacts {
    pub(crate) fn of_memory() -> EngineFacts {
        EngineFacts {
            server: "memory".to_owned(),
            persistence: "none".to_owned(),
            durability: "nothing survives the process".to_owned(),
            clock_ahead_ms: None,
        }
    }
}

/// How many milliseconds the first is ahead of the second.
pub fn ahead_ms(there: At, here: At) -> i64 {
    let ms = |at: At| i64::try_from(at.0 / 1_000).unwrap_or(i64::MAX);
    ms(there) - ms(here)
}
