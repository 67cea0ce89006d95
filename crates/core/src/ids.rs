//! Names of things, each its own type.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Names one effect, for people and for ever: `ef_` and a UUIDv7 in Crockford's base 32, so that ids sort by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct EffectId(#[n(0)] pub u128);

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 26 digits of 5 bits hold 128 bits.
const DIGITS: usize = 26;

impl EffectId {
    pub fn parse(text: &str) -> Option<EffectId> {
        let digits = text.strip_prefix("ef_")?;
        if digits.len() != DIGITS {
            return None;
        }
        digits
            .bytes()
            .try_fold(0u128, |value, digit| {
                let digit = CROCKFORD.iter().position(|c| *c == digit.to_ascii_uppercase())?;
                value.checked_mul(32)?.checked_add(digit as u128).map(EffectId).map(|id| id.0)
            })
            .map(EffectId)
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'0'; DIGITS];
        let mut rest = self.0;
        for place in text.iter_mut().rev() {
            *place = CROCKFORD[(rest % 32) as usize];
            rest /= 32;
        }
        write!(f, "ef_{}", std::str::from_utf8(&text).expect("base 32 is ASCII"))
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for EffectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EffectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        EffectId::parse(&text).ok_or_else(|| serde::de::Error::custom("not an effect id"))
    }
}

/// One claim-to-settlement try of an effect, from 1. The number fences late writers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct AttemptNo(#[n(0)] pub u32);

impl fmt::Display for AttemptNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one commit, so that one whose answer was lost can be recognised when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Nonce(#[n(0)] pub u128);

/// Names one live process that holds attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct OwnerId(#[n(0)] pub u128);

impl OwnerId {
    /// Holds what a client sends by itself, having taken the claim from a server. Nobody sees such a client die, so
    /// only its deadline ends its attempt. No process is named so.
    pub const AWAY: OwnerId = OwnerId(u128::MAX);
}

macro_rules! as_hexadecimal {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&format_args!("{:032x}", self.0))
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                u128::from_str_radix(&text, 16).map($name).map_err(serde::de::Error::custom)
            }
        }
    };
}
as_hexadecimal!(Nonce);
as_hexadecimal!(OwnerId);

/// A string that a client sends us to name its request. Never mixed with the intent key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// The longest idempotency key in use in the field (Stripe, ACP, Zendesk) has 255 characters.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error(
        "an idempotency key needs 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, this one is empty"
    )]
    EmptyKey,
    #[error(
        "an idempotency key needs 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, this one has {0}"
    )]
    LongKey(usize),
    #[error("an idempotency key needs visible ASCII characters, this one holds {0:?}")]
    KeyCharacter(char),
    #[error("a run needs 1 to {RUN_CHARS_MAX} characters without control characters")]
    Run,
    #[error("a reason needs 1 to {REASON_CHARS_MAX} characters")]
    Reason,
}

impl IdempotencyKey {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        match text.chars().count() {
            0 => Err(BadName::EmptyKey),
            count if count > IDEMPOTENCY_KEY_CHARS_MAX => Err(BadName::LongKey(count)),
            _ => match text.chars().find(|c| !c.is_ascii_graphic() && *c != ' ') {
                Some(odd) => Err(BadName::KeyCharacter(odd)),
                None if text.trim().is_empty() => Err(BadName::EmptyKey),
                None => Ok(IdempotencyKey(text.to_owned())),
            },
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names come from orchestrators: UUIDs, thread ids, paths of jobs. Longer is a mistake.
pub const RUN_CHARS_MAX: usize = 255;

/// One task of an agent, as named by its orchestrator, or as inferred from the agent's own session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode)]
pub struct Run {
    #[n(0)]
    pub id: String,
    /// A run that was only inferred labels the effect and does not narrow the scope.
    #[n(1)]
    pub named: bool,
}

impl Run {
    pub fn named(id: &str) -> Result<Self, BadName> {
        Self::checked(id, true)
    }

    pub fn inferred(id: &str) -> Result<Self, BadName> {
        Self::checked(id, false)
    }

    fn checked(id: &str, named: bool) -> Result<Self, BadName> {
        let length = id.chars().count();
        if length == 0 || length > RUN_CHARS_MAX || id.chars().any(char::is_control) {
            return Err(BadName::Run);
        }
        Ok(Run { id: id.to_owned(), named })
    }
}

/// Long enough for a sentence or two; a reason is read by people in a table.
pub const REASON_CHARS_MAX: usize = 500;

/// Why somebody repeats or rules. The same reason again is the same occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, Encode, Decode)]
#[serde(transparent)]
#[cbor(transparent)]
pub struct Reason(#[n(0)] String);

impl Reason {
    pub fn parse(text: &str) -> Result<Self, BadName> {
        // First, so that what is read back is what was written: a control character at the edge is a space there.
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = plain.trim();
        if text.is_empty() || text.chars().count() > REASON_CHARS_MAX {
            return Err(BadName::Reason);
        }
        Ok(Reason(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_id_reads_back_in_either_case() {
        for id in [0, 1, u128::MAX, 0x0190_0000_0000_7000_8000_0000_0000_0001] {
            let text = EffectId(id).to_string();
            assert_eq!(EffectId::parse(&text), Some(EffectId(id)));
            let lower = format!("ef_{}", text[3..].to_lowercase());
            assert_eq!(EffectId::parse(&lower), Some(EffectId(id)));
        }
        for bad in ["", "ef_", "ef_01", "xx_01J00000000000000000000000", "ef_ZZZZZZZZZZZZZZZZZZZZZZZZZZ"] {
            assert_eq!(EffectId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn control_characters_make_no_other_reason() {
        for text in ["a", " a ", "\u{0}a", "a\u{1b}", "\u{1f}a\n", "\u{85}a\u{a0}"] {
            let reason = Reason::parse(text).unwrap();
            assert_eq!(reason.as_str(), "a", "{text:?}");
        }
        for nothing in ["", " ", "\u{0}", "\u{1b}\t\u{7f}"] {
            assert_eq!(Reason::parse(nothing), Err(BadName::Reason), "{nothing:?}");
        }
        assert_eq!(Reason::parse("a\u{1b}[31mb").unwrap().as_str(), "a [31mb");
    }

    #[test]
    fn keys_of_no_or_too_many_characters_are_refused() {
        assert_eq!(IdempotencyKey::parse(""), Err(BadName::EmptyKey));
        assert_eq!(IdempotencyKey::parse(&"k".repeat(10_000)), Err(BadName::LongKey(10_000)));
        assert_eq!(IdempotencyKey::parse("a\nb"), Err(BadName::KeyCharacter('\n')));
        assert!(IdempotencyKey::parse("order 1001").is_ok());
        assert!(IdempotencyKey::parse(&"k".repeat(255)).is_ok());
    }
}
