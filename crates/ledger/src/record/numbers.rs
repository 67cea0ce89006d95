//! The numbers that closed sets of words have on the wire. A word keeps its number for ever.

use super::wire::{DecodeError, Value};
use semel_core::answer::EffectWord;
use semel_core::class::{Class, Tier};
use semel_core::effect::{Evidence, Verdict};
use semel_core::identity::PathKind;

pub(super) trait Numbered: Sized {
    fn number(self) -> u64;

    /// A number that this semel does not know belongs to a newer one.
    fn read(value: Value<'_>) -> Result<Self, DecodeError>;
}

/// Both directions from one list; a word that is missing from it does not compile.
macro_rules! numbered {
    ($type:ident { $($word:ident = $number:literal),+ $(,)? }) => {
        impl Numbered for $type {
            fn number(self) -> u64 {
                match self {
                    $($type::$word => $number,)+
                }
            }

            fn read(value: Value<'_>) -> Result<Self, DecodeError> {
                match value.number()? {
                    $($number => Ok($type::$word),)+
                    _ => Err(DecodeError::Unknown),
                }
            }
        }
    };
}

numbered!(Class { Read = 1, Convergent = 2, Act = 3, Generate = 4, Consequential = 5 });
numbered!(Tier { Opaque = 1, Probed = 2, Keyed = 3, Transactional = 4, Convergent = 5 });
numbered!(PathKind { Key = 1, Content = 2, Stamp = 3 });
numbered!(Verdict { Open = 1, Unproven = 2, Applied = 3, NotApplied = 4, Reported = 5 });
numbered!(Evidence { Accepted = 1, Reported = 2, Ruled = 3, Probed = 4, Confirmed = 5 });
numbered!(EffectWord {
    Created = 1,
    Updated = 2,
    Deleted = 3,
    Sent = 4,
    Noop = 5,
    None = 6,
    Unknown = 7,
    WouldCreate = 8,
    WouldUpdate = 9,
    WouldDelete = 10,
    WouldSend = 11,
    WouldNoop = 12,
});
