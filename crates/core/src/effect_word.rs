//! The words for the change that an effect makes.

use minicbor::{Decode, Encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The change in the world, in one word. `unknown` means in doubt and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Encode, Decode)]
#[serde(rename_all = "snake_case")]
#[cbor(index_only)]
pub enum EffectWord {
    #[n(1)]
    Created,
    #[n(2)]
    Updated,
    #[n(3)]
    Deleted,
    #[n(4)]
    Sent,
    #[n(5)]
    Noop,
    #[n(6)]
    None,
    #[n(7)]
    Unknown,
    #[n(8)]
    WouldCreate,
    #[n(9)]
    WouldUpdate,
    #[n(10)]
    WouldDelete,
    #[n(11)]
    WouldSend,
    #[n(12)]
    WouldNoop,
}

impl EffectWord {
    /// The words that a rule, a flag or a tool may use.
    pub const SAYABLE: [EffectWord; 6] = [
        EffectWord::Created,
        EffectWord::Updated,
        EffectWord::Deleted,
        EffectWord::Sent,
        EffectWord::Noop,
        EffectWord::None,
    ];

    pub fn word(self) -> &'static str {
        match self {
            EffectWord::Created => "created",
            EffectWord::Updated => "updated",
            EffectWord::Deleted => "deleted",
            EffectWord::Sent => "sent",
            EffectWord::Noop => "noop",
            EffectWord::None => "none",
            EffectWord::Unknown => "unknown",
            EffectWord::WouldCreate => "would_create",
            EffectWord::WouldUpdate => "would_update",
            EffectWord::WouldDelete => "would_delete",
            EffectWord::WouldSend => "would_send",
            EffectWord::WouldNoop => "would_noop",
        }
    }

    pub fn parse(word: &str) -> Option<EffectWord> {
        EffectWord::SAYABLE.into_iter().find(|effect| effect.word() == word)
    }

    /// The word of a tool that was asked what it would do: `created` and `would_create` are the same there.
    pub(crate) fn parse_foreseen(word: &str) -> Option<EffectWord> {
        let foreseen = EffectWord::SAYABLE.map(|effect| (effect.word(), effect.would()));
        foreseen
            .into_iter()
            .find(|(said, would)| *said == word || would.word() == word)
            .map(|(_, would)| would)
    }

    /// The same change, not made.
    #[must_use]
    pub fn would(self) -> EffectWord {
        match self {
            EffectWord::Created => EffectWord::WouldCreate,
            EffectWord::Deleted => EffectWord::WouldDelete,
            EffectWord::Sent => EffectWord::WouldSend,
            EffectWord::Noop | EffectWord::None => EffectWord::WouldNoop,
            _ => EffectWord::WouldUpdate,
        }
    }
}

impl fmt::Display for EffectWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
