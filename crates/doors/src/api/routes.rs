//! The one table of routes: what can be request, what scope it needs, what it takes and gives.

use super::problem::Problem;
use super::request::ApiRequest;
use super::respond::List;
use super::route::{FormSchema, Handler, Route};
use super::server::ApiServer;
use super::{begin, document, effects, probe, rulings, runs, settle, stats, tokens, undo};
use crate::effect_json::EffectJson;
use crate::stats::Stats;
use axum::response::Response;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use semel_core::answer::{Answer, Code};
use semel_ledger::tokens::Scope;
use std::sync::Arc;

fn form<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! answering {
    ($handler:path) => {
        |api, request| Box::pin($handler(api, request))
    };
}

/// The parts of a row that most have in common.
fn get(
    path: &'static str,
    scope: Scope,
    id: &'static str,
    summary: &'static str,
    gives: FormSchema,
    handler: Handler,
) -> Route {
    let method = Method::GET;
    Route {
        method,
        path,
        scope,
        id,
        summary,
        query: None,
        body: None,
        body_optional: false,
        gives,
        markdown: false,
        has_dry_run: false,
        refuses: &[],
        codes: &[],
        handler,
    }
}

fn post(
    path: &'static str,
    scope: Scope,
    id: &'static str,
    summary: &'static str,
    body: FormSchema,
    gives: FormSchema,
    handler: Handler,
) -> Route {
    let method = Method::POST;
    Route { method, body: Some(body), ..get(path, scope, id, summary, gives, handler) }
}

/// What a name or a place in a list leads to may not be there.
const MAY_BE_ABSENT: &[StatusCode] = &[StatusCode::NOT_FOUND];

/// An effect may be named by the end of its id, which may fit several; and it may not be in the state for it.
const OF_AN_EFFECT: &[StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];

/// A word may also contradict another one of the same request.
const OF_A_RULING: &[StatusCode] =
    &[StatusCode::NOT_FOUND, StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY];

/// What was asked for goes the way of every call, and may end as any.
const OF_A_CALL: &[Code] = &Code::ALL;

pub fn routes() -> Vec<Route> {
    use Scope::{Admin, Agent, Operator};
    vec![
        Route {
            refuses: MAY_BE_ABSENT,
            query: Some(form::<effects::EffectsFilter>),
            ..get(
                "/effects",
                Agent,
                "listEffects",
                "Effects, newest first.",
                form::<List<EffectJson>>,
                answering!(effects::list),
            )
        },
        get(
            "/effects/{id}",
            Agent,
            "getEffect",
            "One effect, by its id or the end of it.",
            form::<EffectJson>,
            answering!(effects::one),
        )
        .refusing(OF_AN_EFFECT),
        get(
            "/effects/{id}/reply",
            Agent,
            "getReply",
            "The upstream's reply.",
            form::<effects::ReplyJson>,
            answering!(effects::reply),
        )
        .refusing(OF_AN_EFFECT),
        post(
            "/effects/{id}/probe",
            Agent,
            "probe",
            "Probe whether your own call in doubt happened.",
            form::<probe::ProbeForm>,
            form::<EffectJson>,
            answering!(probe::probe),
        )
        .refusing(OF_AN_EFFECT),
        post(
            "/effects/{id}/resolve",
            Operator,
            "resolve",
            "Rule on an effect in doubt.",
            form::<rulings::Resolve>,
            form::<EffectJson>,
            answering!(rulings::resolve),
        )
        .refusing(OF_A_RULING),
        post(
            "/effects/{id}/reopen",
            Operator,
            "reopen",
            "Take a ruling back.",
            form::<rulings::Because>,
            form::<EffectJson>,
            answering!(rulings::reopen),
        )
        .refusing(OF_AN_EFFECT),
        post(
            "/effects/{id}/again",
            Operator,
            "again",
            "Allow one repeat of an effect.",
            form::<rulings::Because>,
            form::<EffectJson>,
            answering!(rulings::again),
        )
        .refusing(OF_AN_EFFECT),
        post(
            "/effects/{id}/undo",
            Operator,
            "undo",
            "Undo an effect, if its rule says how.",
            form::<undo::UndoForm>,
            form::<Answer>,
            answering!(undo::undo),
        )
        .with_dry_run()
        .refusing(OF_AN_EFFECT)
        .answering_as(OF_A_CALL),
        Route {
            refuses: MAY_BE_ABSENT,
            query: Some(form::<runs::RunsFilter>),
            ..get(
                "/runs",
                Agent,
                "listRuns",
                "Runs, the one with the newest effect first.",
                form::<List<runs::RunListed>>,
                answering!(runs::list),
            )
        },
        Route {
            refuses: MAY_BE_ABSENT,
            query: Some(form::<runs::RunsFilter>),
            markdown: true,
            ..get(
                "/runs/{run}",
                Agent,
                "getRun",
                "What was done in a run.",
                form::<runs::RunEffects>,
                answering!(runs::one),
            )
        },
        Route {
            body_optional: true,
            ..post(
                "/runs/{run}/cancel",
                Operator,
                "cancelRun",
                "Stop a run: nothing more starts in it.",
                form::<runs::Cancel>,
                form::<runs::CancelledRun>,
                answering!(runs::cancel),
            )
        },
        post(
            "/begin",
            Agent,
            "begin",
            "Ask for the right to make one attempt.",
            form::<begin::Begin>,
            form::<begin::BegunForm>,
            answering!(begin::begin),
        )
        .with_dry_run()
        .answering_as(OF_A_CALL),
        post(
            "/settle",
            Agent,
            "settle",
            "Settle an attempt.",
            form::<settle::Settle>,
            form::<Answer>,
            answering!(settle::settle),
        )
        .refusing(OF_AN_EFFECT),
        Route {
            query: Some(form::<stats::StatsFilter>),
            ..get(
                "/stats",
                Operator,
                "getStats",
                "Counts of calls, sends, effects and savings.",
                form::<Stats>,
                answering!(stats::read),
            )
        },
        get(
            "/tokens",
            Admin,
            "listTokens",
            "The tokens of the tenant.",
            form::<List<tokens::TokenListed>>,
            answering!(tokens::list),
        ),
        post(
            "/tokens",
            Admin,
            "makeToken",
            "Make a token. It is shown once.",
            form::<tokens::NewTokenForm>,
            form::<tokens::TokenMade>,
            answering!(tokens::make),
        ),
        Route {
            refuses: MAY_BE_ABSENT,
            method: Method::DELETE,
            ..get(
                "/tokens/{id}",
                Admin,
                "revokeToken",
                "Make a token worthless.",
                form::<tokens::TokenListed>,
                answering!(tokens::revoke),
            )
        },
        get(
            "/openapi.json",
            Agent,
            "getDocument",
            "This document.",
            form::<serde_json::Value>,
            answering!(document),
        ),
    ]
}

async fn document(_: Arc<ApiServer>, _: ApiRequest) -> Result<Response, Problem> {
    super::respond::json(document::document(routes))
}
