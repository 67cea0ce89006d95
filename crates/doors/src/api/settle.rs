//! `settle`: what became of an attempt that a client made itself.

use super::problem::Problem;
use super::request::{ApiPrincipal, ApiRequest};
use super::respond;
use super::server::ApiServer;
use crate::background_confirm::BackgroundConfirm;
use crate::delivery::Delivery;
use axum::response::Response;
use http::StatusCode;
use semel::call::claim;
use semel::call::reply::{reply_of, undo_of};
use semel::call::settle::SettleForm;
use semel_core::effect::State;
use semel_core::ids::{AttemptNo, EffectId, Nonce};
use semel_core::json::Json;
use semel_core::outcome::Outcome;
use semel_gate::upstream::Sent;
use semel_gate::{ClaimHolder, GivenReply, Passed, SettleAnswer, Settlement};
use semel_ledger::Error;
use semel_ledger::record::StoredEffect;
use std::sync::Arc;

pub async fn settle(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, _, received_at, settle) = request.json::<SettleForm>().await?;
    let gate = api.gate()?;
    let (known, effect, attempt, nonce) = known_claim(&api, &who, &settle.claim).await?;
    if !known.effect.facts.action.starts_with("fn:") {
        return Err(Problem::not_found("such claim"));
    }
    let rule = api.services.policy.rule_kept(&known.effect.facts.action, &known.effect.facts.rule);
    let sent = settle.sent(&rule)?;
    let undo = match &sent.outcome {
        Outcome::Applied { .. } => undo_of(&rule, &known.effect.facts.action, sent.reply.as_deref()),
        Outcome::NotApplied { .. } | Outcome::InDoubt { .. } => None,
    };
    let reply = reply_of(sent.reply.as_deref());
    let settlement = Settlement { effect, attempt, nonce, holder: ClaimHolder::Client, sent, undo };
    let mut passed = record(&api, settlement).await?;
    if let (Some(confirm), Some(done)) = (&rule.confirm, gate.unconfirmed(&rule, &mut passed)) {
        let (confirm, action) = (confirm.clone(), known.effect.facts.action.clone());
        // Its arguments are not kept; a question that needs them stays unanswered.
        let arguments = Json::object::<&str, 0>([]);
        let question = BackgroundConfirm { confirm, action, arguments, reply, credential: None };
        question.start(&api.services, done);
    }
    let text = respond::answer(&passed.answer, &GivenReply::None)?;
    let delivery = Delivery::of(&api.services, passed.delivery, Some(received_at + rule.late_after));
    Ok(respond::delivering(text, delivery))
}

/// A claim whose client has gone away without settling it.
pub async fn abandon(api: &Arc<ApiServer>, claim: &str, sender_gone: bool) {
    let (Ok(gate), Some((effect, attempt, nonce))) = (api.gate(), claim::read(claim)) else { return };
    let why = "the program that called it went away before it said how the call went".to_owned();
    let sent = Sent::of(Outcome::InDoubt { why, sender_gone });
    let holder = ClaimHolder::Client;
    // What cannot be written now is in doubt at the claim's deadline.
    let _lapses = gate.settle(Settlement { effect, attempt, nonce, holder, sent, undo: None }).await;
}

/// The effect of a claim, and what the claim says.
pub async fn known_claim(
    api: &ApiServer,
    who: &ApiPrincipal,
    text: &str,
) -> Result<(StoredEffect, EffectId, AttemptNo, Nonce), Problem> {
    let unknown = || Problem::not_found("such claim");
    let (effect, attempt, nonce) = claim::read(text).ok_or_else(unknown)?;
    let known = match api.gate()?.ledger.by_id(effect).await {
        Err(Error::NoSuchEffect(_)) => return Err(unknown()),
        found => found.map_err(|error| unrecorded(&semel_gate::Error::Ledger(error)))?.1,
    };
    // Possession of a claim is not authentication.
    if !who.made(&known.effect) {
        return Err(unknown());
    }
    Ok((known, effect, attempt, nonce))
}

/// Records the outcome that a holder reports. A client that goes away in the middle has settled all the same.
pub async fn record(api: &Arc<ApiServer>, settlement: Settlement) -> Result<Box<Passed>, Problem> {
    let in_flight = api.services.in_flight.begin();
    let settling = Arc::clone(api);
    let settled = tokio::spawn(async move {
        let _in_flight = in_flight;
        settling.gate()?.settle(settlement).await.map_err(|error| unrecorded(&error))
    });
    let failed = |_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "semel failed in the middle; the settlement may be recorded. It is safe to send it again, unchanged",
        )
    };
    match settled.await.map_err(failed)?? {
        SettleAnswer::NoSuchClaim => Err(Problem::not_found("such claim")),
        SettleAnswer::Otherwise(effect) => {
            let (id, word) = (effect.id, effect.state.word());
            let detail = match &effect.state {
                State::NotApplied(_) => format!("{id} was reported as done before, and was disproved since"),
                _ => format!("{id} is on record as {word}; a settlement cannot take a success back"),
            };
            Err(Problem::new(StatusCode::CONFLICT, detail).with("effect_id", effect.id.to_string()))
        }
        SettleAnswer::Recorded(passed) => Ok(passed),
    }
}

/// The call was made, so nothing may be said that sounds as if it was not.
fn unrecorded(error: &semel_gate::Error) -> Problem {
    let detail =
        format!("the settlement could not be recorded: {error}. It is safe to send it again, unchanged");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}
