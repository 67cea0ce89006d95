//! An answer that came second. The first whole one is the answer of its effect; the journal has a line of this one.

use semel_core::digest::Digest;
use semel_core::effect::Reply;
use semel_core::ids::AttemptNo;
use semel_core::outcome::Outcome;
use serde_json::{Value, json};

/// The line about a success that is not the answer of its effect: `about` is what its door says of it (its status, the
/// model, the tokens that it took). `None`: this is no success, or nothing came with it.
pub(crate) fn duplicate_reply(
    attempt: AttemptNo,
    outcome: &Outcome,
    reply: Option<&[u8]>,
    about: Option<&Value>,
) -> Option<(&'static str, Value)> {
    let Outcome::Applied { reply: kept, .. } = outcome else { return None };
    let (bytes, sha256) = match (reply, kept) {
        (Some(reply), _) => (reply.len() as u64, Some(Digest::plain(reply))),
        (None, Reply::TooLarge(bytes)) => (*bytes, None),
        (None, _) => return None,
    };
    let said = json!({"attempt": attempt, "bytes": bytes, "sha256": sha256, "about": about});
    Some(("second_answer", said))
}
