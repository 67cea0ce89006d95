//! Naming an effect: by its id, by the end of one, or by the idempotency key of its call.

use super::scan::{self, Which};
use crate::args::EffectName;
use crate::context::Context;
use crate::open::TENANT;
use crate::output::{Hinted, counted, hint};
use crate::terminal_text;
use semel::command::ChangeArgs;
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::identity::{IntentDigest, IntentParts, alias_key, intent_key};
use semel_core::ids::{EffectId, IdempotencyKey};
use semel_core::subject::{in_short, quoted_for_a_shell};
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::Ledger;
use semel_ledger::small_records::Alias;
use semel_ledger::store::{By, PAGE_ROWS_MAX};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Shorter ends would too often name two.
pub const SUFFIX_CHARACTERS_MIN: usize = 4;

/// So many are named when an end fits several.
const CANDIDATES_SHOWN: usize = 5;

/// Finds the effect that a command reads. `None`: no call came with this key, and the caller was told so. That is no
/// mistake: after a lost answer it is the question.
pub fn look_up(
    context: &Context,
    ledger: Option<&Ledger>,
    name: &EffectName,
    now: At,
) -> anyhow::Result<Option<(Digest, Effect)>> {
    let Some(key) = &name.key else { return by_id(ledger, name).map(Some) };
    let parsed = IdempotencyKey::parse(key)?;
    let found = ledger.map(|ledger| by_key(ledger, &parsed, now)).transpose()?.flatten();
    if found.is_none() {
        context.output.error(&no_such_key(key));
    }
    Ok(found)
}

/// Finds the one effect that a person decides about. A key that several callers used names none.
fn find(ledger: Option<&Ledger>, name: &EffectName, now: At) -> anyhow::Result<(Digest, Effect)> {
    let Some(key) = &name.key else { return by_id(ledger, name) };
    let parsed = IdempotencyKey::parse(key)?;
    let Some(ledger) = ledger else { return Err(no_such_key(key)) };
    let mut found: BTreeMap<Digest, Effect> = with_key(ledger, &parsed, now)?;
    found.extend(by_key(ledger, &parsed, now)?);
    if found.len() > 1 {
        let ids: Vec<String> =
            found.values().take(CANDIDATES_SHOWN).map(|effect| effect.id.to_string()).collect();
        let what = format!("{} callers used the key {key}: {}", found.len(), ids.join(", "));
        return Err(Hinted::error(what, "name the effect by its id"));
    }
    found.pop_first().ok_or_else(|| no_such_key(key))
}

/// Finds the effect that a command changes. Under a key of its own the command names it by id: the key of a call leads
/// to the newest effect, and that is another one once the command has done its work.
pub fn find_to_change(
    ledger: Option<&Ledger>,
    name: &EffectName,
    change: &ChangeArgs,
    now: At,
) -> anyhow::Result<(Digest, Effect)> {
    if change.idempotency_key.is_some() && name.key.is_some() {
        let what =
            "nothing was changed: under an idempotency key the effect is named by its id, not by --key";
        return Err(Hinted::error(what, "semel ledger list"));
    }
    find(ledger, name, now)
}

fn no_such_key(key: &str) -> anyhow::Error {
    Hinted::error(
        format!("no effect with the key {key} in this ledger"),
        "nothing was claimed under it; semel ledger list",
    )
}

fn by_id(ledger: Option<&Ledger>, name: &EffectName) -> anyhow::Result<(Digest, Effect)> {
    let text = name.effect.as_deref().unwrap_or_default();
    by_text(ledger, text).map_err(|error| if ledger.is_some() { perhaps_a_key(error, text) } else { error })
}

/// Finds an effect by its id or the end of one, in a ledger that may not exist.
pub fn by_text(ledger: Option<&Ledger>, text: &str) -> anyhow::Result<(Digest, Effect)> {
    let unknown = || Hinted::error(format!("no effect {text} in this ledger"), "semel ledger list");
    // `semel doctor` says where it would be.
    let none = || Hinted::error(format!("no effect {text}: there is no ledger yet"), "semel doctor");
    let ledger = ledger.ok_or_else(none)?;
    let id = match EffectId::parse(text) {
        Some(id) => id,
        None => by_suffix(ledger, text)?.ok_or_else(unknown)?,
    };
    let (key, known) = block_on(ledger.by_id(id))?;
    Ok((key, known.effect))
}

/// A key given as an id is not looked up as a key: the end of an id can be a key as well.
fn perhaps_a_key(error: anyhow::Error, name: &str) -> anyhow::Error {
    let is_key = EffectId::parse(name).is_none() && IdempotencyKey::parse(name).is_ok();
    match hint(&error).filter(|_| is_key && error.is::<Hinted>()) {
        Some(hint) => {
            let key = format!("--key {}", quoted_for_a_shell(name));
            Hinted::error(error.to_string(), format!("{hint}; if it is an idempotency key: {key}"))
        }
        None => error,
    }
}

/// The newest effect under a caller's key: the one that it leads to, else the newest of those that came through another
/// door.
fn by_key(ledger: &Ledger, key: &IdempotencyKey, now: At) -> anyhow::Result<Option<(Digest, Effect)>> {
    match led_to(ledger, key)? {
        None => Ok(with_key(ledger, key, now)?.into_iter().max_by_key(|(_, effect)| effect.opened_at)),
        found => Ok(found),
    }
}

/// The effect that a key of this command line leads to: as identity, else through a rule's fields.
pub fn led_to(ledger: &Ledger, key: &IdempotencyKey) -> anyhow::Result<Option<(Digest, Effect)>> {
    let parts = IntentParts { tenant: TENANT, principal: TENANT, authority: "", scope: "global" };
    let named = intent_key(ledger.secret(), &parts, &IntentDigest::of_caller_key(key.as_str()));
    let found = block_on(ledger.find(named))?;
    if let Some(known) = found.newest {
        return Ok(Some((named, known.effect.clone())));
    }
    if let Some(Alias { key, stands_for }) =
        block_on(ledger.alias(alias_key(ledger.secret(), &parts, key.as_str())))?.1
    {
        let known = block_on(ledger.occurrence(key, stands_for.number))?.map(|known| known.effect);
        return Ok(known.filter(|effect| stands_for.is(effect)).map(|effect| (key, effect)));
    }
    Ok(None)
}

/// The newest effect of every caller that used this key. Its record's key holds whose it was and where it went, which
/// only its caller knows, so all effects are looked at.
fn with_key(ledger: &Ledger, key: &IdempotencyKey, now: At) -> anyhow::Result<BTreeMap<Digest, Effect>> {
    let digest = IntentDigest::of_caller_key(key.as_str());
    let mut found = BTreeMap::new();
    let damaged = scan::effects(ledger, Which::default(), now, |key, effect| {
        if effect.facts.caller_key && effect.facts.digest == digest {
            found.insert(key, effect);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // A caller that is told "unknown" may act.
    if damaged > 0 {
        let records = counted(damaged, "record", "records");
        let what = format!("{records} cannot be read, and any of them may be under this key");
        return Err(Hinted::error(what, "semel doctor --full"));
    }
    Ok(found)
}

fn by_suffix(ledger: &Ledger, text: &str) -> anyhow::Result<Option<EffectId>> {
    let suffix = text.strip_prefix("ef_").unwrap_or(text).trim_start_matches('…').to_ascii_uppercase();
    if suffix.len() < SUFFIX_CHARACTERS_MIN || !suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let what = format!(
            "{text} is no effect id: ef_ and 26 characters, or at least {SUFFIX_CHARACTERS_MIN} from its end"
        );
        return Err(Hinted::error(what, "semel ledger list"));
    }
    let mut fitting = Vec::new();
    let mut after = None;
    loop {
        let page = block_on(ledger.store().scan(By::All, after, PAGE_ROWS_MAX))?;
        let ids = page.items.iter().map(|row| EffectId(row.index.effect));
        fitting.extend(ids.filter(|id| id.to_string().ends_with(&suffix)));
        match page.next {
            None => break,
            next => after = next,
        }
    }
    the_only_one(&fitting, &suffix)
}

fn the_only_one(fitting: &[EffectId], suffix: &str) -> anyhow::Result<Option<EffectId>> {
    if fitting.len() <= 1 {
        return Ok(fitting.first().copied());
    }
    let shown: Vec<String> = fitting.iter().take(CANDIDATES_SHOWN).map(ToString::to_string).collect();
    let more = if fitting.len() > CANDIDATES_SHOWN { ", …" } else { "" };
    let what = format!("{} effects end in {suffix}: {}{more}", fitting.len(), shown.join(", "));
    Err(Hinted::error(what, "give more of its end, or the whole id"))
}

/// An effect, as a person who is asked about it recognises it.
pub fn recognisable(effect: &Effect) -> String {
    terminal_text::line(&format!(
        "{} {} ({})",
        effect.id,
        effect.facts.action,
        in_short(&effect.facts.subject)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_fits_several_is_refused_with_their_ids() {
        let two = [EffectId(7), EffectId(1 << 100 | 7)];
        let error = the_only_one(&two, "0007").expect_err("two fit").to_string();
        assert!(two.iter().all(|id| error.contains(&id.to_string())), "{error}");
        assert!(the_only_one(&[EffectId(7); 9], "0007").expect_err("nine fit").to_string().ends_with('…'));
        assert_eq!(the_only_one(&two[..1], "0007").expect("one fits"), Some(two[0]));
        assert_eq!(the_only_one(&[], "0007").expect("none is no error"), None);
    }
}
