//! Effects: listed newest first, one by one, and their replies.

use super::cursor;
use super::find_effect;
use super::problem::Problem;
use super::request::{ApiPrincipal, ApiRequest};
use super::respond::{self, List};
use super::server::ApiServer;
use crate::effect_json::{self, EffectJson, ReplyKept};
use crate::reply::to_json;
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use semel_core::digest::Digest;
use semel_core::effect::{Effect, State};
use semel_core::ids::{EffectId, Run};
use semel_core::intent::run_key;
use semel_core::policy::duration;
use semel_core::time::At;
use semel_ledger::journal::state_word;
use semel_ledger::record::{StoredEffect, decode};
use semel_ledger::store::{Latest, PAGE_ROWS_MAX};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// A page that nobody asked the length of; and the longest.
const PAGE: usize = 50;
const PAGE_MAX: usize = 200;

/// As long as the name of any action.
const ACTION_CHARS_MAX: usize = 255;

/// A page looks at no more effects than this, found or not, so that no request takes long.
const LOOKED_AT_MAX: usize = 5_000;

/// Rows lie in the order in which they were claimed. A clock that was set back may have mixed up this much of it.
const CLOCK_MARGIN: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Filter")]
pub struct EffectsFilter {
    /// Only this state.
    pub state: Option<StateWord>,
    /// Only this run.
    #[schemars(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]{1,255}$"))]
    pub run: Option<String>,
    /// Only actions that contain this.
    #[schemars(length(max = 255))]
    pub action: Option<String>,
    /// Only effects that were opened since: an instant (RFC 3339), or a span such as `7d`.
    #[schemars(schema_with = "since")]
    pub since: Option<String>,
    /// What `next` of the page before said.
    #[schemars(regex(pattern = r"^[0-9a-f]{32}$"))]
    pub cursor: Option<String>,
    /// At most this many; 50 unless given.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<usize>,
}

impl EffectsFilter {
    pub fn of_run(run: &str) -> EffectsFilter {
        EffectsFilter { run: Some(run.to_owned()), ..EffectsFilter::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateWord {
    InFlight,
    Applied,
    NotApplied,
    InDoubt,
}

impl StateWord {
    fn is(self, state: &State) -> bool {
        match self {
            StateWord::InFlight => matches!(state, State::InFlight { .. }),
            StateWord::Applied => matches!(state, State::Applied(_)),
            StateWord::NotApplied => matches!(state, State::NotApplied(_)),
            StateWord::InDoubt => matches!(state, State::InDoubt(_)),
        }
    }
}

pub async fn list(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let filter: EffectsFilter = request.query()?;
    let EffectPage { effects, next, damaged } = page(&api, &request.who, &filter).await?;
    let mut items = Vec::with_capacity(effects.len());
    for (key, effect) in &effects {
        items.push(EffectJson::read(&api.gate()?.ledger, *key, effect).await?);
    }
    respond::json(&List { damaged, ..List::of(items, next) })
}

/// The newest that are wanted, and where to go on.
#[derive(Debug, Default)]
pub struct EffectPage {
    pub effects: Vec<(Digest, Effect)>,
    pub next: Option<String>,
    /// A damaged record is passed over. Its owner is not known either, so operators alone hear of it.
    pub damaged: usize,
}

pub async fn page(
    api: &ApiServer,
    who: &ApiPrincipal,
    filter: &EffectsFilter,
) -> Result<EffectPage, Problem> {
    let gate = api.gate()?;
    let now = gate.clock.now();
    let since = filter.since.as_deref().map(|text| instant(text, now)).transpose()?;
    let limit = filter.limit.unwrap_or(PAGE);
    if limit == 0 || limit > PAGE_MAX {
        return Err(Problem::bad(format!("limit is 1 to {PAGE_MAX}")));
    }
    if filter.action.as_ref().is_some_and(|text| text.chars().count() > ACTION_CHARS_MAX) {
        return Err(Problem::bad(format!("action has at most {ACTION_CHARS_MAX} characters")));
    }
    if let Some(run) = &filter.run {
        Run::named(run).map_err(|error| Problem::bad(error.to_string()))?;
    }
    let of = match (&filter.run, filter.state) {
        (Some(run), _) => Latest::Run(run_key(gate.ledger.secret(), &who.tenant, run)),
        (None, Some(StateWord::InFlight | StateWord::InDoubt)) => Latest::Open,
        (None, _) => Latest::All,
    };
    let wanted = |effect: &Effect| {
        filter.state.is_none_or(|state| state.is(&effect.state))
            && filter.action.as_ref().is_none_or(|text| effect.facts.action.contains(text.as_str()))
            && since.is_none_or(|since| effect.opened_at >= since)
    };
    let too_old = |effect: &Effect| since.is_some_and(|since| effect.opened_at.plus(CLOCK_MARGIN) < since);
    let secret = gate.ledger.secret();
    let sealed = |place| cursor::sealed(secret, &who.tenant, place);
    let opened = |text| cursor::opened(secret, &who.tenant, text);
    let mut before = filter.cursor.as_deref().map(opened).transpose()?;
    let (mut found, mut looked_at) = (EffectPage::default(), 0);
    loop {
        let page = gate.ledger.store().latest(of, before, PAGE_ROWS_MAX).await?;
        let more = page.next.is_some();
        for (place, row) in page.items {
            before = Some(place);
            let key = row.key;
            looked_at += 1;
            let StoredEffect { effect, .. } = decode(row);
            if effect.is_damaged() {
                found.damaged += usize::from(who.operates());
                continue;
            }
            if too_old(&effect) {
                return Ok(found);
            }
            if who.sees(&effect) {
                let effect = find_effect::as_it_is(api, key, effect, now).await?;
                if wanted(&effect) {
                    found.effects.push((key, effect));
                }
            }
            if found.effects.len() == limit {
                return Ok(EffectPage { next: Some(sealed(place)), ..found });
            }
        }
        if !more {
            return Ok(found);
        }
        if looked_at >= LOOKED_AT_MAX {
            return Ok(EffectPage { next: before.map(sealed), ..found });
        }
    }
}

fn since(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "string", "format": "date-time"},
        {"type": "string", "pattern": "^[0-9]{1,3}(ms|s|m|h|d)$"},
    ]})
}

/// An instant, or so long ago.
fn instant(text: &str, now: At) -> Result<At, Problem> {
    let ago = duration::parse(text).map(|span| At(now.0.saturating_sub(span.as_micros() as u64)));
    ago.ok().or_else(|| At::parse(text)).ok_or_else(|| {
        Problem::bad("since must be an instant such as 2026-01-31T00:00:00Z, or a span such as 7d")
    })
}

pub async fn one(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let now = api.gate()?.clock.now();
    let (key, effect) = find_effect::by_name(&api, &request.who, request.param("id"), now).await?;
    respond::json(&EffectJson::read(&api.gate()?.ledger, key, &effect).await?)
}

/// What is left of an upstream's answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reply")]
pub struct ReplyJson {
    #[schemars(with = "String")]
    effect_id: EffectId,
    state: &'static str,
    reply: ReplyKept,
    #[schemars(with = "serde_json::Value")]
    data: Box<RawValue>,
}

pub async fn reply(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let gate = api.gate()?;
    let (key, effect) =
        find_effect::by_name(&api, &request.who, request.param("id"), gate.clock.now()).await?;
    let (kept, bytes) = effect_json::reply(&gate.ledger, key, &effect).await?;
    let state = state_word(&effect.state);
    let Some(bytes) = bytes else {
        let why = match kept {
            ReplyKept::Pruned => "its reply is no longer kept".to_owned(),
            ReplyKept::Damaged => "its reply is damaged in the ledger".to_owned(),
            ReplyKept::TooLarge => "its reply was too large to keep".to_owned(),
            ReplyKept::Kept | ReplyKept::Unknown => {
                effect_json::why(&effect).unwrap_or_else(|| "its reply is not known".to_owned())
            }
        };
        let problem = Problem::not_found(&format!("reply of {}: {why}", effect.id));
        let kept = serde_json::to_value(kept).unwrap_or_default();
        return Err(problem
            .with("effect_id", effect.id.to_string())
            .with("state", state)
            .with("reply", kept));
    };
    let data = to_json(&bytes);
    respond::json(&ReplyJson { effect_id: effect.id, state, reply: kept, data })
}
