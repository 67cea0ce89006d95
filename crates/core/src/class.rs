//! Classes: what a repeat gets.

use crate::word_table;
use minicbor::{Decode, Encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum Class {
    /// Changes nothing. Always passes through, never answered from the record.
    #[n(1)]
    Read,
    /// PUT-like: the same call again changes nothing.
    #[n(2)]
    Convergent,
    /// Everything else.
    #[n(3)]
    Act,
    /// A model call: a new sample is wanted, unless the answer was lost.
    #[n(4)]
    Generate,
    /// Money, messages, publications, creations, bookings, deployments.
    #[n(5)]
    Consequential,
}

impl Class {
    /// Whether a repeat or an unclear end gets less protection than under `other`.
    pub fn is_weaker_than(self, other: Class) -> bool {
        let strength = |class| match class {
            Class::Read => 0,
            Class::Convergent => 1,
            Class::Generate => 2,
            Class::Act => 3,
            Class::Consequential => 4,
        };
        strength(self) < strength(other)
    }

    /// Whether a doubt of it waits for a decision. A lost generation is generated anew for the next caller.
    pub fn doubts_need_a_decision(self) -> bool {
        self != Class::Generate
    }
}

word_table!(Class {
    Read = "read", Convergent = "convergent", Act = "act", Generate = "generate", Consequential = "consequential",
});

/// The upstream's help, and so the promise that it allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum Tier {
    /// Nothing: at most once; a lost answer is visible as in doubt until someone resolves it.
    #[n(1)]
    Opaque,
    /// A read-only question whose answer identifies our effect: exactly once, after the probe.
    #[n(2)]
    Probed,
    /// It honours an idempotency key that we send: exactly once, within that key's life.
    #[n(3)]
    Keyed,
    /// Effect and ledger commit in one database transaction: exactly once.
    #[n(4)]
    Transactional,
    /// The same call again changes nothing: at least once, converges.
    #[n(5)]
    Convergent,
}
