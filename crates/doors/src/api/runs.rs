//! Runs: what was done in them, and how one is stopped.

use super::cursor;
use super::effects::{self, EffectPage, EffectsFilter};
use super::find_effect;
use super::problem::Problem;
use super::request::{ApiPrincipal, ApiRequest};
use super::respond::{self, List};
use super::server::ApiServer;
use crate::effect_json::EffectJson;
use crate::known_run::{is_on_record, lists_effects};
use crate::run_summary::{self, RunName, SortedEffects};
use axum::response::Response;
use schemars::JsonSchema;
use semel_core::effect::State;
use semel_core::ids::{Reason, Run};
use semel_core::intent::run_key;
use semel_ledger::record::{StoredEffect, decode};
use semel_ledger::store::{Cursor, Latest, PAGE_ROWS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// Runs on a page, and effects that are looked at for it.
const RUNS_MAX: usize = 50;
const LOOKED_AT_MAX: usize = 5_000;

/// Effects of one run that are counted, or told as Markdown. Longer runs say so.
const EFFECTS_MAX: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsFilter {
    /// What `next` of the page before said.
    #[schemars(regex(pattern = r"^[0-9a-f]{32}$"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RunListed {
    run: String,
    /// Nothing more starts in it.
    cancelled: bool,
    /// When its newest effect was opened.
    newest_at: String,
    effects: RunCounts,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Counted")]
pub struct RunCounts {
    applied: usize,
    not_applied: usize,
    in_flight: usize,
    in_doubt: usize,
    /// There are more than were counted.
    more: bool,
}

pub async fn list(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let filter: RunsFilter = request.query()?;
    let gate = api.gate()?;
    let store = gate.ledger.store();
    let (secret, tenant) = (gate.ledger.secret(), &request.who.tenant);
    let opened = |text| cursor::opened(secret, tenant, text);
    let mut before = filter.cursor.as_deref().map(opened).transpose()?;
    let (mut items, mut looked_at, mut damaged) = (Vec::new(), 0, 0);
    // Of a run with thousands of effects only the first that is met can be its newest.
    let mut met = HashSet::new();
    'pages: loop {
        let page = store.latest(Latest::All, before, PAGE_ROWS_MAX).await?;
        let more = page.next.is_some();
        for (place, row) in page.items {
            before = Some(place);
            looked_at += 1;
            let StoredEffect { effect, .. } = decode(row);
            if effect.is_damaged() {
                damaged += usize::from(request.who.operates());
                continue;
            }
            if let Some(run) = effect.facts.run.as_ref().filter(|_| request.who.sees(&effect))
                && met.insert(run.id.clone())
                && is_newest(&api, &request.who, &run.id, place).await?
            {
                items.push(listed(&api, &request.who, &run.id).await?);
            }
            if items.len() == RUNS_MAX || looked_at == LOOKED_AT_MAX {
                break 'pages;
            }
        }
        if !more {
            before = None;
            break;
        }
    }
    let next = before.map(|place| cursor::sealed(secret, tenant, place));
    respond::json(&List { damaged, ..List::of(items, next) })
}

/// A run is listed where its newest effect stands, and nowhere else.
async fn is_newest(api: &ApiServer, who: &ApiPrincipal, run: &str, place: Cursor) -> Result<bool, Problem> {
    let gate = api.gate()?;
    let of = Latest::Run(run_key(gate.ledger.secret(), &who.tenant, run));
    let mut before = None;
    loop {
        let page = gate.ledger.store().latest(of, before, PAGE_ROWS_MAX).await?;
        for (newest, row) in page.items {
            if who.sees(&decode(row).effect) {
                return Ok(newest == place);
            }
        }
        before = page.next;
        if before.is_none() {
            return Ok(false);
        }
    }
}

async fn listed(api: &ApiServer, who: &ApiPrincipal, run: &str) -> Result<RunListed, Problem> {
    let mut counted = RunCounts::default();
    let (mut newest_at, mut total, mut cursor) = (String::new(), 0, None);
    loop {
        let filter = EffectsFilter { cursor, ..EffectsFilter::of_run(run) };
        let EffectPage { effects, next, .. } = effects::page(api, who, &filter).await?;
        for (_, effect) in effects {
            if total == 0 {
                newest_at = effect.opened_at.to_string();
            }
            total += 1;
            match effect.state {
                State::Applied(_) => counted.applied += 1,
                State::NotApplied(_) => counted.not_applied += 1,
                State::InFlight { .. } => counted.in_flight += 1,
                State::InDoubt(_) => counted.in_doubt += 1,
            }
        }
        counted.more = next.is_some();
        if next.is_none() || total >= EFFECTS_MAX {
            break;
        }
        cursor = next;
    }
    Ok(RunListed {
        run: run.to_owned(),
        cancelled: is_cancelled(api, who, run).await?,
        newest_at,
        effects: counted,
    })
}

async fn is_cancelled(api: &ApiServer, who: &ApiPrincipal, run: &str) -> Result<bool, Problem> {
    Ok(api.gate()?.ledger.standing_fence(&who.tenant, run).await?.is_some())
}

/// What was done in one run, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunTold")]
pub struct RunEffects {
    schema_version: u32,
    run: String,
    cancelled: bool,
    items: Vec<EffectJson>,
    next: Option<String>,
    /// How many on this page cannot be read and were left out; absent where there are none.
    #[serde(skip_serializing_if = "respond::is_none")]
    damaged: usize,
}

pub async fn one(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let RunsFilter { cursor } = request.query()?;
    let run = request.param("run").to_owned();
    let unknown = || Problem::not_found(&format!("run {run}"));
    Run::named(&run).map_err(|_| unknown())?;
    let cancelled = is_cancelled(&api, &request.who, &run).await?;
    if request.wants_markdown() {
        return markdown(&api, &request.who, &run, cancelled).await;
    }
    let first = cursor.is_none();
    let filter = EffectsFilter { cursor, ..EffectsFilter::of_run(&run) };
    let EffectPage { effects, next, damaged } = effects::page(&api, &request.who, &filter).await?;
    if effects.is_empty() && damaged == 0 && first && !cancelled {
        return Err(unknown());
    }
    let mut items = Vec::with_capacity(effects.len());
    for (key, effect) in &effects {
        items.push(EffectJson::read(&api.gate()?.ledger, *key, effect).await?);
    }
    respond::json(&RunEffects { schema_version: 1, run, cancelled, items, next, damaged })
}

async fn markdown(
    api: &ApiServer,
    who: &ApiPrincipal,
    run: &str,
    cancelled: bool,
) -> Result<Response, Problem> {
    let mut newest_first = Vec::new();
    let (mut cursor, mut damaged) = (None, 0);
    loop {
        let filter = EffectsFilter { cursor, ..EffectsFilter::of_run(run) };
        let EffectPage { effects, next, damaged: more } = effects::page(api, who, &filter).await?;
        damaged += more;
        newest_first.extend(effects);
        if next.is_none() || newest_first.len() >= EFFECTS_MAX {
            break;
        }
        cursor = next;
    }
    if newest_first.is_empty() && damaged == 0 && !cancelled {
        return Err(Problem::not_found(&format!("run {run}")));
    }
    let mut sorted = SortedEffects::default();
    for (key, effect) in newest_first.into_iter().rev() {
        sorted.push(key, effect);
    }
    let mut text = run_summary::markdown(
        Some(&api.gate()?.ledger),
        &sorted,
        Some(RunName { tenant: &who.tenant, run }),
        None,
    )
    .await?;
    if damaged > 0 {
        text.push_str(&format!("\nRecords of this run that cannot be read, and are left out: {damaged}\n"));
    }
    Ok(respond::markdown(text))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Cancel {
    /// Let the run start things again.
    #[serde(default)]
    lift: bool,
    /// Why, for whoever reads the ledger.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"[^\s\x00-\x1f\x7f-\x9f]"))]
    reason: Option<String>,
}

/// What a cancelled run has done, and what of it may still happen.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cancelled")]
pub struct CancelledRun {
    schema_version: u32,
    run: String,
    cancelled: bool,
    /// `false`: nothing was recorded of a run of this name before. The fence holds all the same.
    known: bool,
    applied: Vec<EffectJson>,
    in_flight: Vec<EffectJson>,
    in_doubt: Vec<EffectJson>,
    prevented: Vec<Prevented>,
    /// What of it can be taken back, by `POST /effects/ID/undo`.
    undo: Vec<UndoableEffect>,
    /// Records that cannot be read: any of them may have a call of this run, and nothing is promised. Absent where
    /// there are none.
    #[serde(skip_serializing_if = "respond::is_none")]
    damaged: usize,
    /// Only `true` promises that nothing more will be sent.
    drained: bool,
}

/// An applied effect with a known way back.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Undoable")]
pub struct UndoableEffect {
    effect_id: String,
    call: String,
}

/// A call that the fence kept from starting.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Prevented {
    action: String,
    subject: String,
}

pub async fn cancel(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let run = Run::named(request.param("run")).map_err(|error| Problem::bad(error.to_string()))?;
    let (who, Cancel { lift, reason }) = request.json_if_any::<Cancel>().await?;
    let reason =
        reason.as_deref().map(Reason::parse).transpose().map_err(|error| Problem::bad(error.to_string()))?;
    let gate = api.gate()?;
    let reason = reason.map(|reason| reason.as_str().to_owned());
    let known = is_on_record(&gate.ledger, &who.tenant, &run.id).await?;
    let told = gate.ledger.cancel(&who.tenant, &run.id, lift, reason, gate.clock.now()).await?;
    let known = known || lists_effects(&told);
    let undo = told.undoable().map(|(known, call)| UndoableEffect {
        effect_id: known.effect.id.to_string(),
        call: call.to_string(),
    });
    let undo = undo.collect();
    let prevented = told.prevented.into_iter().map(|(action, subject)| Prevented { action, subject });
    respond::json(&CancelledRun {
        schema_version: 1,
        run: run.id,
        cancelled: !lift,
        known,
        applied: shown(&api, &told.applied).await?,
        in_flight: shown(&api, &told.in_flight).await?,
        in_doubt: shown(&api, &told.in_doubt).await?,
        prevented: prevented.collect(),
        undo,
        damaged: told.damaged.len(),
        drained: told.drained,
    })
}

async fn shown(api: &ApiServer, effects: &[StoredEffect]) -> Result<Vec<EffectJson>, Problem> {
    let gate = api.gate()?;
    let mut shown = Vec::with_capacity(effects.len());
    for known in effects {
        let (key, known) = gate.ledger.by_id(known.effect.id).await?;
        let effect = find_effect::as_it_is(api, key, known.effect, gate.clock.now()).await?;
        shown.push(EffectJson::read(&gate.ledger, key, &effect).await?);
    }
    Ok(shown)
}
