//! Taking an effect back.

use super::find_effect;
use super::problem::{Problem, problem_of};
use super::request::ApiRequest;
use super::respond;
use super::server::ApiServer;
use crate::delivery::Delivery;
use crate::undo::UndoRequest;
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use semel_core::ids::Reason;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "UndoWish")]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct UndoForm {
    /// Why.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"[^\s\x00-\x1f\x7f-\x9f]"))]
    pub reason: String,
    /// Say what would happen, and do nothing. The header `Semel-Dry-Run: 1` says the same.
    #[serde(default)]
    pub dry_run: bool,
}

/// An answer that took longer than this has not reached its caller.
const LATE_AFTER: Duration = Duration::from_secs(25);

pub async fn undo(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let id = request.param("id").to_owned();
    let dry_run = request.options.dry_run;
    let (who, received_at, undo) = request.json_outside_a_run::<UndoForm>().await?;
    let (_, effect) = find_effect::by_name(&api, &who, &id, api.gate()?.clock.now()).await?;
    let reason = Reason::parse(&undo.reason).map_err(|error| Problem::bad(error.to_string()))?;
    let wanted = UndoRequest {
        effect: effect.id,
        by: who.operator(),
        tenant: who.tenant,
        principal: who.principal,
        reason,
        dry_run: undo.dry_run || dry_run,
        commands: None,
    };
    // A client that goes away in the middle has undone it all the same.
    let (in_flight, undoing) = (api.services.in_flight.begin(), Arc::clone(&api));
    let undone = tokio::spawn(async move {
        let _in_flight = in_flight;
        undoing.undoer.carry_out(&wanted).await.map_err(Problem::from)
    });
    let failed = |_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "semel failed in the middle; the undo may have happened. It is safe to ask again: it happens at most once",
        )
    };
    let passed = undone.await.map_err(failed)??;
    if passed.answer.trouble.is_some() {
        return Err(problem_of(&passed.answer));
    }
    let text = respond::answer(&passed.answer, &semel_gate::GivenReply::None)?;
    Ok(respond::delivering(
        text,
        Delivery::of(&api.services, passed.delivery, Some(received_at + LATE_AFTER)),
    ))
}
