//! Digests and their framing. Parts are length-prefixed, never separated, so that no two lists of parts share bytes.

use hmac::{Hmac, KeyInit, Mac};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// 32 bytes of SHA-256 or HMAC-SHA-256, written as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl Digest {
    /// SHA-256 over the parts, each prefixed with its length as eight big-endian bytes.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Digest(hash.finalize().into())
    }

    /// Its first 128 bits, for a name that needs no more.
    pub fn first_bits(&self) -> u128 {
        u128::from_be_bytes(self.0[..16].try_into().expect("a digest has 32 bytes"))
    }

    /// SHA-256 over the bytes alone, as `sha256sum` prints it.
    pub fn plain(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    pub fn parse(hex: &str) -> Option<Self> {
        let bytes = hex.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let nibble = |b: u8| (b as char).to_digit(16).map(|n| n as u8);
        let mut out = [0; 32];
        for (i, pair) in bytes.chunks_exact(2).enumerate() {
            out[i] = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Digest(out))
    }

    /// The first eight bytes, for per-path comparison inside one record; never an identity.
    pub fn short(&self) -> u64 {
        u64::from_be_bytes(self.0[..8].try_into().expect("a digest has 32 bytes"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 64];
        for (i, byte) in self.0.iter().enumerate() {
            text[2 * i] = HEX[usize::from(byte >> 4)];
            text[2 * i + 1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).expect("hexadecimal is ASCII"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| serde::de::Error::custom("not a digest of 64 hexadecimal digits"))
    }
}

/// The ledger's secret: what keeps low-entropy arguments from being guessed out of stored keys.
#[derive(Clone)]
pub struct Secret {
    bytes: [u8; 32],
    /// Keyed once: that is half the work of a short message.
    mac: Hmac<Sha256>,
}

impl Secret {
    pub fn new(bytes: [u8; 32]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(&bytes).expect("HMAC takes a key of any length");
        Secret { bytes, mac }
    }

    /// For the file that keeps it; nothing else may need the bytes.
    pub fn expose(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// HMAC-SHA-256 over the purpose and the parts, each length-prefixed. The purpose keeps the uses apart.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> Digest {
        let mut mac = self.mac.clone();
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Digest(mac.finalize().into_bytes().into())
    }

    /// The value by which a ledger recognises its own secret.
    pub fn check_value(&self) -> Digest {
        self.mac("check", &[])
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Digest::of(&[b"ab", b"c"]), Digest::of(&[b"a", b"bc"]));
        assert_ne!(Digest::of(&[b"ab"]), Digest::of(&[b"ab", b""]));
    }

    #[test]
    fn a_digest_reads_back_from_its_text() {
        let digest = Digest::of(&[b"x"]);
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("zz"), None);
    }
}
