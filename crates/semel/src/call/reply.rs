//! The reply of a call that code makes itself, and its effect, as far as the policy knows them.

use semel_core::answer::EffectWord;
use semel_core::json::{self, Json};
use semel_core::policy::rule::{EffectWording, Rule};
use semel_core::policy::undo::UndoInputs;
use semel_core::redact::{REDACTED, SecretParts, redact};
use semel_core::undo::Undo;

/// The logs of a deployment fit; a dump of a database does not, and is not worth replaying.
pub const REPLY_BYTES_MAX: usize = 1024 * 1024;

/// JSON as it came, unless it holds what must not be written.
pub fn encode_json(reply: &[u8], rule: &Rule) -> Result<Vec<u8>, String> {
    let value = json::parse_bytes(reply).map_err(|error| format!("reply: {error}"))?;
    let mut clean = redact(&value, &[]);
    SecretParts::of(rule).hide_in(&mut clean);
    Ok(if clean == value { reply.to_vec() } else { clean.canonical().into_bytes() })
}

/// Errors like to repeat what came back.
pub fn redact_why(why: String, rule: &Rule) -> String {
    let mut why = Json::String(why);
    SecretParts::of(rule).hide_in(&mut why);
    why.as_str().unwrap_or(REDACTED).to_owned()
}

/// The word for a success, where the client does not say it.
pub fn word_of(rule: &Rule) -> EffectWord {
    match &rule.effect {
        Some(EffectWording::Word(word)) => *word,
        _ => EffectWord::Updated,
    }
}

/// The reply that a client reports, as rules see it.
pub fn reply_of(reply: Option<&[u8]>) -> Json {
    reply.and_then(|reply| json::parse_bytes(reply).ok()).unwrap_or(Json::Null)
}

/// The undo. The arguments of the call are not kept, so only its reply can be filled in.
pub fn undo_of(rule: &Rule, action: &str, reply: Option<&[u8]>) -> Option<Undo> {
    let undo = rule.undo.as_ref()?;
    let places = Json::object([("reply", reply_of(reply))]);
    let secret = &rule.sorting.secret;
    Some(Undo::fill_in(undo, &UndoInputs { action, places: &places, secret, cwd: "/" }))
}
