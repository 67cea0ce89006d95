//! `begin`: code that calls tools itself asks for the right to make one attempt.

use super::client_upstream::ClientUpstream;
use super::problem::Problem;
use super::problem::problem_of;
use super::request::ApiRequest;
use super::respond;
use super::server::ApiServer;
use crate::background_confirm::BackgroundConfirm;
use crate::delivery::Delivery;
use crate::reply::to_json;
use axum::response::Response;
use schemars::JsonSchema;
use semel::call::answer::ToRun;
use semel::call::begin::{BeginForm, BeginRequest};
use semel::call::reply::reply_of;
use semel_core::answer::Answer;
use semel_core::ids::Nonce;
use semel_core::intent::Intent;
use semel_core::json::Json;
use semel_core::wording;
use semel_gate::{BeginAnswer, GivenReply, HandedTo, Passed};
use semel_ledger::entropy::{Entropy, OsEntropy};
use std::sync::Arc;
use std::time::Duration;

/// Either the right to run, or the answer.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "BeginAnswer")]
#[allow(dead_code, reason = "it is only described")]
pub enum BegunForm {
    Run(ToRun),
    Answer(Box<Answer>),
}

pub async fn begin(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, bytes_max) = (request.who.clone(), request.bytes_max());
    let _until_it_is_answered = api.turn(&who, bytes_max).await?;
    let (metadata, token, options) =
        (request.metadata.clone(), request.token.clone(), request.options.clone());
    let (who, header_run, received_at, wanted) = request.json::<BeginForm>().await?;
    let gate = api.gate()?;
    let mut wanted = BeginRequest::read(wanted)?;
    wanted.run = header_run.or(wanted.run);
    wanted.again = wanted.again.or(options.again);
    wanted.dry_run |= options.dry_run;
    let rule = wanted.rule(&api.services.policy)?;
    let ask = wanted.ask(&who.tenant, &who.principal);
    let mut intent = Intent::of(&ask, &rule, gate.ledger.secret())
        .map_err(|missing| Problem::of_trouble(wording::key_required(&missing)))?;
    intent.metadata = metadata;
    let client = ClientUpstream::of(&api.services, &wanted.action, &wanted.arguments, &rule);
    let mut client = client.showing(token.as_ref());
    if wanted.dry_run {
        return respond::json(&gate.dry_run(&intent, &rule, &mut client).await?);
    }
    let own = wanted.nonce.as_deref();
    let nonce = own.map_or_else(|| Nonce(OsEntropy.bits()), |nonce| who.nonce(nonce, gate.ledger.secret()));
    match gate.begin(&intent, &rule, &mut client, HandedTo::client(nonce)).await? {
        BeginAnswer::Run(taken) => respond::json(&ToRun::with(&taken)),
        BeginAnswer::Unrecorded => respond::json(&ToRun::unrecorded(rule.tier())),
        BeginAnswer::Answered(mut passed) => {
            // The process that asked before may have ended.
            if let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(&rule, &mut passed)) {
                let reply = match &passed.reply {
                    GivenReply::Recorded(bytes) => reply_of(Some(bytes)),
                    GivenReply::Live | GivenReply::None => Json::Null,
                };
                let (confirm, action, arguments) = (confirm.clone(), wanted.action, wanted.arguments);
                let question = BackgroundConfirm { confirm, action, arguments, reply, credential: None };
                question.start(&api.services, done);
            }
            answered(api, *passed, received_at, rule.late_after)
        }
    }
}

fn answered(
    api: Arc<ApiServer>,
    passed: Passed,
    received_at: Duration,
    late_after: Duration,
) -> Result<Response, Problem> {
    let Passed { answer, reply, delivery } = passed;
    if !answer.ok {
        let problem = problem_of(&answer);
        return Err(match &reply {
            // The upstream's refusal of a twin's attempt.
            GivenReply::Recorded(bytes) => {
                let data: serde_json::Value = serde_json::from_str(to_json(bytes).get()).unwrap_or_default();
                problem.with("data", data)
            }
            _ => problem,
        });
    }
    let text = respond::answer(&answer, &reply)?;
    Ok(respond::delivering(text, Delivery::of(&api.services, delivery, Some(received_at + late_after))))
}
