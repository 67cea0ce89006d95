//! The one form of effects, read by a command, which blocks.

use semel_core::digest::Digest;
use semel_core::effect::Effect;
pub use semel_doors::effect_json::{EffectJson, ReplyKept, why};
use semel_gate::clock::block_on;
use semel_ledger::Error;
use semel_ledger::Ledger;

/// With a look at whether the reply is still there.
pub fn read(ledger: &Ledger, key: Digest, effect: &Effect) -> Result<EffectJson, Error> {
    block_on(EffectJson::read(ledger, key, effect))
}

/// The rest of an effect's reply, and the bytes where there are any.
pub fn reply(ledger: &Ledger, key: Digest, effect: &Effect) -> Result<(ReplyKept, Option<Vec<u8>>), Error> {
    block_on(semel_doors::effect_json::reply(ledger, key, effect))
}
