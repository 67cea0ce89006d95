//! Which effect is meant: by its id, or by the end of one, among those that the caller may see.

use super::problem::Problem;
use super::request::ApiPrincipal;
use super::server::ApiServer;
use http::StatusCode;
use semel_core::digest::Digest;
use semel_core::effect::Effect;
use semel_core::ids::EffectId;
use semel_core::time::At;
use semel_ledger::Error;
use semel_ledger::record::decode;
use semel_ledger::store::{Latest, PAGE_ROWS_MAX};

/// Shorter ends would too often name two.
const SUFFIX_CHARACTERS_MIN: usize = 4;

/// An end is looked for among so many of the newest effects; beyond, the whole id is needed.
const LOOKED_AT_MAX: usize = 50_000;

/// So many are named when an end fits several.
const CANDIDATES_SHOWN: usize = 5;

/// The effect as it is now: what time and death have done to it is seen here.
pub async fn by_name(
    api: &ApiServer,
    who: &ApiPrincipal,
    text: &str,
    now: At,
) -> Result<(Digest, Effect), Problem> {
    let gate = api.gate()?;
    let id = match EffectId::parse(text) {
        Some(id) => id,
        None => by_end(api, who, text).await?,
    };
    let unknown = || Problem::not_found(&format!("effect {text}"));
    let (key, known) = match gate.ledger.by_id(id).await {
        Err(Error::NoSuchEffect(_)) => return Err(unknown()),
        found => found?,
    };
    if !who.sees(&known.effect) {
        return Err(unknown());
    }
    Ok((key, as_it_is(api, key, known.effect, now).await?))
}

/// Only the newest effect of a record can be open, and so be changed by time.
pub async fn as_it_is(api: &ApiServer, key: Digest, effect: Effect, now: At) -> Result<Effect, Problem> {
    if !effect.is_open() {
        return Ok(api.gate()?.ledger.with_undone(effect).await?);
    }
    let newest = api.gate()?.ledger.observe(key, now).await?.newest.map(|known| known.effect.clone());
    Ok(newest.filter(|newest| newest.id == effect.id).unwrap_or(effect))
}

async fn by_end(api: &ApiServer, who: &ApiPrincipal, text: &str) -> Result<EffectId, Problem> {
    let end = text.strip_prefix("ef_").unwrap_or(text).to_ascii_uppercase();
    if end.len() < SUFFIX_CHARACTERS_MIN || !end.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Problem::not_found(&format!("effect {text}")));
    }
    let store = api.gate()?.ledger.store();
    let (mut fitting, mut before, mut looked_at) = (Vec::new(), None, 0);
    loop {
        let page = store.latest(Latest::All, before, PAGE_ROWS_MAX).await?;
        looked_at += page.items.len();
        for (_, row) in page.items {
            let id = EffectId(row.index.effect);
            if id.to_string().ends_with(&end) && who.sees(&decode(row).effect) {
                fitting.push(id);
            }
        }
        before = page.next;
        if before.is_none() || looked_at >= LOOKED_AT_MAX {
            break;
        }
    }
    match fitting.as_slice() {
        [] => Err(Problem::not_found(&format!("effect {text}"))),
        [one] => Ok(*one),
        several => {
            let shown: Vec<String> = several.iter().take(CANDIDATES_SHOWN).map(ToString::to_string).collect();
            let detail = format!("{} effects end in {end}; give more of its end", several.len());
            Err(Problem::new(StatusCode::CONFLICT, detail).with("effects", shown))
        }
    }
}
