//! The effect of a call that a client makes itself, as far as the policy knows it.

use semel_core::answer::EffectWord;
use semel_core::json::{self, Json};
use semel_core::policy::rule::{EffectWording, Rule};
use semel_core::policy::undo::UndoInputs;
use semel_core::undo::Undo;

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
