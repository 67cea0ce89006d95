//! Naming an effect: by its id, or by the end of one.

use crate::house::LocalLedger;
use crate::output::Hinted;
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::ids::EffectId;
use semel_gate::clock::block_on;
use semel_ledger::store::{By, PAGE_ROWS_MAX, Store};

/// Shorter ends would too often name two.
const SUFFIX_CHARACTERS_MIN: usize = 4;

/// So many are named when an end fits several.
const CANDIDATES_SHOWN: usize = 5;

/// Finds the effect that a person means, in a ledger that may not exist.
pub fn find(ledger: Option<&LocalLedger>, text: &str) -> anyhow::Result<(Digest, Effect)> {
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

fn by_suffix(ledger: &LocalLedger, text: &str) -> anyhow::Result<Option<EffectId>> {
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
