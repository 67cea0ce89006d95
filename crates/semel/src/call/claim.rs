//! A claim as a client takes it away: a text that names the attempt.

use semel_core::ids::{AttemptNo, EffectId, Nonce};
use semel_gate::ClaimHandle;

/// It is of use to its own principal alone.
pub fn write(taken: &ClaimHandle) -> String {
    let id = taken.effect.to_string();
    format!("cl_{}_{}_{:032x}", id.trim_start_matches("ef_"), taken.attempt, taken.nonce.0)
}

/// The parts of a claim. `None`: it is none.
pub fn read(text: &str) -> Option<(EffectId, AttemptNo, Nonce)> {
    let mut parts = text.strip_prefix("cl_")?.split('_');
    let id = EffectId::parse(&format!("ef_{}", parts.next()?))?;
    let attempt = parts.next().filter(|text| text.len() <= 10)?.parse().ok()?;
    let nonce = parts.next().filter(|text| text.len() == 32)?;
    let nonce = u128::from_str_radix(nonce, 16).ok()?;
    parts.next().is_none().then_some((id, AttemptNo(attempt), Nonce(nonce)))
}
