//! Random names. An argument like time, so that a simulation can repeat itself.

use semel_core::ids::{EffectId, Nonce};
use semel_core::time::At;

pub trait Entropy: Send + Sync + 'static {
    fn bits(&self) -> u128;
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn bits(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system has a random generator");
        u128::from_le_bytes(bytes)
    }
}

pub fn nonce(entropy: &impl Entropy) -> Nonce {
    Nonce(entropy.bits())
}

/// A UUIDv7: 48 bits of milliseconds, then random bits, with version and variant in their places.
pub fn effect_id(entropy: &impl Entropy, at: At) -> EffectId {
    const VERSION: u128 = 0x7 << 76;
    const VARIANT: u128 = 0x2 << 62;
    const RANDOM: u128 = (0xFFF << 64) | ((1 << 62) - 1);
    let millis = u128::from(at.0 / 1_000) & 0xFFFF_FFFF_FFFF;
    EffectId(millis << 80 | VERSION | VARIANT | (entropy.bits() & RANDOM))
}
