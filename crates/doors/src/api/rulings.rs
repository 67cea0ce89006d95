//! Rulings of an operator about doubts.

use super::find_effect;
use super::problem::Problem;
use super::request::{ApiPrincipal, ApiRequest};
use super::respond;
use super::server::ApiServer;
use crate::effect_json::EffectJson;
use crate::reply::encode_supplied;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use semel_core::effect::Ruling;
use semel_core::ids::{EffectId, Reason};
use semel_core::json::{self, Json};
use semel_core::lifecycle::Illegal;
use semel_core::policy::Rule;
use semel_core::time::At;
use semel_ledger::rulings::RulingVerdict;
use semel_ledger::{Error, RecordUpdate};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Resolve {
    pub verdict: VerdictWord,
    /// How you know.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"[^\s\x00-\x1f\x7f-\x9f]"))]
    pub reason: String,
    /// What it answered, for whoever asks next. Of a command: its standard output, as a text. Of a request: the body.
    #[schemars(with = "Option<serde_json::Value>")]
    pub reply: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// It happened.
    Applied,
    /// It certainly did not happen.
    NotApplied,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct Because {
    /// Why.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"[^\s\x00-\x1f\x7f-\x9f]"))]
    pub reason: String,
}

pub async fn resolve(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let id = request.param("id").to_owned();
    let (who, _, resolve) = request.json_outside_a_run::<Resolve>().await?;
    let gate = api.gate()?;
    let now = gate.clock.now();
    let (_, effect) = find_effect::by_name(&api, &who, &id, now).await?;
    let verdict = match (resolve.verdict, resolve.reply) {
        (VerdictWord::NotApplied, Some(_)) => {
            let detail = "an effect that did not happen has no reply";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        (VerdictWord::NotApplied, None) => RulingVerdict::NotApplied,
        (VerdictWord::Applied, reply) => {
            let rule = api.services.policy.rule_kept(&effect.facts.action, &effect.facts.rule);
            let reply = reply.map(|reply| read(&effect.facts.action, &rule, &reply)).transpose()?;
            RulingVerdict::Applied { reply }
        }
    };
    let ruling = ruling(&who, &resolve.reason, now)?;
    let changed = gate.ledger.resolve(effect.id, verdict, ruling).await;
    told(&api, changed.map_err(|error| refused(error, effect.id, "there is no doubt to rule on"))?).await
}

pub async fn reopen(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let id = request.param("id").to_owned();
    let (who, _, reopen) = request.json_outside_a_run::<Because>().await?;
    let gate = api.gate()?;
    let now = gate.clock.now();
    let (_, effect) = find_effect::by_name(&api, &who, &id, now).await?;
    let ruling = ruling(&who, &reopen.reason, now)?;
    let changed = gate.ledger.reopen(effect.id, ruling).await;
    told(&api, changed.map_err(|error| refused(error, effect.id, "no ruling made it so"))?).await
}

pub async fn again(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let id = request.param("id").to_owned();
    let (who, _, again) = request.json_outside_a_run::<Because>().await?;
    let gate = api.gate()?;
    let now = gate.clock.now();
    let (_, effect) = find_effect::by_name(&api, &who, &id, now).await?;
    let ruling = ruling(&who, &again.reason, now)?;
    if let Some(why) = api.services.policy.never_again(&effect.facts) {
        return Err(Problem::new(StatusCode::CONFLICT, why));
    }
    let changed = gate.ledger.permit_repeat(effect.id, ruling).await;
    let why = "only an applied effect can be repeated";
    told(&api, changed.map_err(|error| refused(error, effect.id, why))?).await
}

fn ruling(who: &ApiPrincipal, reason: &str, at: At) -> Result<Ruling, Problem> {
    let reason = Reason::parse(reason).map_err(|error| Problem::bad(error.to_string()))?;
    Ok(Ruling { by: who.operator(), reason, at })
}

/// JSON in a request: a text stands for itself where replies are texts.
fn read(action: &str, rule: &Rule, reply: &RawValue) -> Result<Vec<u8>, Problem> {
    let value = json::parse(reply.get()).map_err(|error| Problem::bad(format!("reply: {error}")))?;
    let text = match value {
        Json::String(text) if !action.starts_with("fn:") => text,
        _ if action.starts_with("fn:") => reply.get().to_owned(),
        value => value.canonical(),
    };
    encode_supplied(action, rule, text.into_bytes()).map_err(Problem::bad)
}

async fn told(api: &ApiServer, changed: RecordUpdate) -> Result<Response, Problem> {
    let found = changed.snapshot;
    let effect = found.effect().ok_or_else(|| Problem::not_found("such effect"))?;
    respond::json(&EffectJson::read(&api.gate()?.ledger, found.key, effect).await?)
}

/// The lifecycle's refusal, in words.
fn refused(error: Error, id: EffectId, why: &str) -> Problem {
    let conflict = |detail: String| Problem::new(StatusCode::CONFLICT, detail);
    match error {
        Error::Illegal(Illegal { state, .. }) => conflict(format!("{id} is {state}; {why}")),
        Error::Superseded { .. } | Error::NewerRecord { .. } => conflict(error.to_string()),
        Error::NoSuchEffect(_) => Problem::not_found(&format!("effect {id}")),
        error => Problem::of_ledger(&error),
    }
}
