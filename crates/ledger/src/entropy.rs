//! Random names. An argument like time, so that a simulation can repeat itself.

use semel_core::ids::{EffectId, Nonce};
use semel_core::time::At;
use std::cell::RefCell;
use std::fmt;

pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    fn bits(&self) -> u128;
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

/// Numbers fetched at once: a call needs four, and asking costs more than making them.
const FETCHED: usize = 16;

thread_local! {
    /// Fetched and not yet given out; each goes out once.
    static STOCK: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

impl Entropy for OsEntropy {
    fn bits(&self) -> u128 {
        STOCK.with_borrow_mut(|stock| {
            if let Some(bits) = stock.pop() {
                return bits;
            }
            let mut bytes = [0; 16 * FETCHED];
            getrandom::fill(&mut bytes).expect("the operating system has a random generator");
            let (numbers, _) = bytes.as_chunks();
            stock.extend(numbers[1..].iter().map(|bytes| u128::from_le_bytes(*bytes)));
            u128::from_le_bytes(numbers[0])
        })
    }
}

pub fn nonce(entropy: &dyn Entropy) -> Nonce {
    Nonce(entropy.bits())
}

/// A UUIDv7: 48 bits of milliseconds, then random bits, with version and variant in their places.
pub fn effect_id(entropy: &dyn Entropy, at: At) -> EffectId {
    const VERSION: u128 = 0x7 << 76;
    const VARIANT: u128 = 0x2 << 62;
    const RANDOM: u128 = (0xFFF << 64) | ((1 << 62) - 1);
    let millis = u128::from(at.0 / 1_000) & 0xFFFF_FFFF_FFFF;
    EffectId(millis << 80 | VERSION | VARIANT | (entropy.bits() & RANDOM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_out_twice() {
        let threads =
            (0..4).map(|_| std::thread::spawn(|| (0..1_000).map(|_| OsEntropy.bits()).collect::<Vec<_>>()));
        let all: Vec<u128> = threads.flat_map(|thread| thread.join().unwrap()).collect();
        let different: std::collections::HashSet<u128> = all.iter().copied().collect();
        assert_eq!(different.len(), all.len());
        assert!(!different.contains(&0));
    }
}
