//! The one table of routes: what can be request, what scope it needs, what it takes and gives.

use super::problem::Problem;
use super::request::ApiRequest;
use super::respond::List;
use super::route::Route;
use super::server::ApiServer;
use super::{begin, calls, document, effects, probe, rulings, runs, settle, stats, tokens, undo};
use crate::effect_json::EffectJson;
use crate::remote_gate::forms;
use crate::stats::Stats;
use axum::response::Response;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use semel::call::begin::BeginForm;
use semel::call::settle::SettleForm;
use semel_core::answer::{Answer, Code};
use semel_ledger::tokens::AccessScope;
use std::sync::Arc;

fn form<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A row: method, path, scope, id, summary, form of the answer, handler; then what few have.
macro_rules! route {
    ($method:ident $path:literal, $scope:ident, $id:literal, $summary:literal, $gives:ty, $handler:path
     $(; $($field:ident: $value:expr),+)?) => {
        Route {
            $($($field: $value,)+)?
            ..Route::new(Method::$method, $path, AccessScope::$scope, $id, $summary, form::<$gives>, |api, request| {
                Box::pin($handler(api, request))
            })
        }
    };
}

/// A name or a place in a list may lead to nothing.
const MAY_BE_ABSENT: &[StatusCode] = &[StatusCode::NOT_FOUND];

/// An effect may be named by the end of its id, which may fit several; and it may not be in the state for it.
const OF_AN_EFFECT: &[StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];

/// A word may also contradict another one of the same request.
const OF_A_RULING: &[StatusCode] =
    &[StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];

/// The request goes the way of every call, and may end as any.
const OF_A_CALL: &[Code] = &Code::ALL;

#[rustfmt::skip]
pub fn routes() -> Vec<Route> {
    vec![
        route!(GET "/effects", Agent, "listEffects", "Effects, newest first.", List<EffectJson>, effects::list;
            query: Some(form::<effects::EffectsFilter>), refuses: MAY_BE_ABSENT),
        route!(GET "/effects/{id}", Agent, "getEffect", "One effect, by its id or the end of it.", EffectJson,
            effects::one; refuses: OF_AN_EFFECT),
        route!(GET "/effects/{id}/reply", Agent, "getReply", "The upstream's reply.", effects::ReplyJson,
            effects::reply; refuses: OF_AN_EFFECT),
        route!(POST "/effects/{id}/probe", Agent, "probe", "Probe whether your own call in doubt happened.",
            EffectJson, probe::probe; body: Some(form::<probe::ProbeForm>), refuses: OF_AN_EFFECT),
        route!(POST "/effects/{id}/resolve", Operator, "resolve", "Rule on an effect in doubt.", EffectJson,
            rulings::resolve; body: Some(form::<rulings::Resolve>), refuses: OF_A_RULING),
        route!(POST "/effects/{id}/reopen", Operator, "reopen", "Take a ruling back.", EffectJson,
            rulings::reopen; body: Some(form::<rulings::Because>), refuses: OF_AN_EFFECT),
        route!(POST "/effects/{id}/again", Operator, "again", "Allow one repeat of an effect.", EffectJson,
            rulings::again; body: Some(form::<rulings::Because>), refuses: OF_AN_EFFECT),
        route!(POST "/effects/{id}/undo", Operator, "undo", "Undo an effect, if its rule says how.", Answer,
            undo::undo; body: Some(form::<undo::UndoForm>), has_dry_run: true, refuses: OF_AN_EFFECT,
            codes: OF_A_CALL),
        route!(GET "/runs", Agent, "listRuns", "Runs, the one with the newest effect first.",
            List<runs::RunListed>, runs::list;
            query: Some(form::<runs::RunsFilter>), refuses: MAY_BE_ABSENT),
        route!(GET "/runs/{run}", Agent, "getRun", "What was done in a run.", runs::RunEffects, runs::one;
            query: Some(form::<runs::RunsFilter>), markdown: true, refuses: MAY_BE_ABSENT),
        route!(POST "/runs/{run}/cancel", Operator, "cancelRun", "Stop a run: nothing more starts in it.",
            runs::CancelledRun, runs::cancel; body: Some(form::<runs::Cancel>), body_optional: true),
        route!(POST "/begin", Agent, "begin", "Ask for the right to make one attempt.", begin::BegunForm,
            begin::begin; body: Some(form::<BeginForm>), has_dry_run: true, codes: OF_A_CALL),
        route!(POST "/settle", Agent, "settle", "Settle an attempt.", Answer, settle::settle;
            body: Some(form::<SettleForm>), refuses: OF_AN_EFFECT),
        route!(POST "/calls/begin", Agent, "beginCall", "`begin`, for `semel run` and `semel mcp` on other machines.",
            forms::BegunCallForm, calls::begin; body: Some(form::<forms::CallForm>), has_dry_run: true,
            codes: OF_A_CALL),
        route!(POST "/calls/settle", Agent, "settleCall", "`settle`, for `semel run` and `semel mcp` on other machines.",
            Answer, calls::settle; body: Some(form::<forms::SettlementForm>), refuses: OF_AN_EFFECT,
            codes: OF_A_CALL),
        route!(POST "/calls/delivered", Agent, "callDelivered", "The answer of such a call has reached its caller.",
            forms::DeliveredAnswer, calls::delivered; body: Some(form::<forms::DeliveredForm>),
            refuses: MAY_BE_ABSENT),
        route!(GET "/whoami", Agent, "whoami", "The token's tenant, principal and scope; the server's clock.",
            forms::Whoami, calls::whoami),
        route!(GET "/stats", Operator, "getStats", "Counts of calls, sends, effects and savings.", Stats,
            stats::read; query: Some(form::<stats::StatsFilter>)),
        route!(GET "/tokens", Admin, "listTokens", "The tokens of the tenant.", List<tokens::TokenListed>,
            tokens::list),
        route!(POST "/tokens", Admin, "makeToken", "Make a token. It is shown once.", tokens::TokenMade,
            tokens::make; body: Some(form::<tokens::NewTokenForm>)),
        route!(DELETE "/tokens/{id}", Admin, "revokeToken", "Make a token worthless.", tokens::TokenListed,
            tokens::revoke; refuses: MAY_BE_ABSENT),
        route!(GET "/openapi.json", Agent, "getDocument", "This document.", serde_json::Value, document),
    ]
}

async fn document(_: Arc<ApiServer>, _: ApiRequest) -> Result<Response, Problem> {
    super::respond::json(document::document(routes))
}
