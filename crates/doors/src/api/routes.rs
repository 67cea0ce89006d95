//! The one table of routes: what can be asked, what scope it needs, what it takes and gives.

use super::asked::{Answering, Asked};
use super::problem::{Problem, status_of};
use super::respond::List;
use super::{Api, begin, document, effects, probe, rulings, runs, settle, stats, tokens, undo};
use crate::effect_json::EffectJson;
use crate::stats::Stats;
use axum::response::Response;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use semel_core::answer::{Answer, Code};
use semel_ledger::tokens::AccessScope;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What every path of the table begins with.
pub const BASE: &str = "/api/v1";

pub type Handler = fn(Arc<Api>, Asked) -> Answering;
pub type Form = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The least that a token must have.
    pub scope: AccessScope,
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Option<Form>,
    pub body: Option<Form>,
    /// What is asked for can also be asked without saying anything.
    pub body_optional: bool,
    pub gives: Form,
    /// It can also be had as Markdown.
    pub markdown: bool,
    /// It can also say what it would do, and do nothing.
    pub has_dry_run: bool,
    /// How it refuses what is well-formed, beside what every route of its form may say.
    pub refuses: &'static [StatusCode],
    /// The codes that an answer about an effect may have here.
    pub codes: &'static [Code],
    pub(super) handler: Handler,
}

impl Route {
    fn refusing(self, refuses: &'static [StatusCode]) -> Route {
        Route { refuses, ..self }
    }

    fn answering_as(self, codes: &'static [Code]) -> Route {
        Route { codes, ..self }
    }

    fn with_dry_run(self) -> Route {
        Route { has_dry_run: true, ..self }
    }

    /// All statuses that it answers with.
    pub fn statuses(&self) -> BTreeSet<StatusCode> {
        // Who asks, under which name, and whether there is room and a ledger, is asked of everybody.
        let mut all = BTreeSet::from([
            StatusCode::OK,
            StatusCode::BAD_REQUEST,
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::SERVICE_UNAVAILABLE,
        ]);
        if self.body.is_some() {
            all.extend([StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNSUPPORTED_MEDIA_TYPE]);
        }
        all.extend(self.refuses);
        all.extend(self.codes.iter().map(|code| status_of(*code)));
        all
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.scope)
    }
}

fn form<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! answering {
    ($handler:path) => {
        |api, asked| Box::pin($handler(api, asked))
    };
}

/// The parts of a row that most have in common.
fn get(
    path: &'static str,
    scope: AccessScope,
    id: &'static str,
    summary: &'static str,
    gives: Form,
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
    scope: AccessScope,
    id: &'static str,
    summary: &'static str,
    body: Form,
    gives: Form,
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
    use AccessScope::{Admin, Agent, Operator};
    vec![
        Route {
            refuses: MAY_BE_ABSENT,
            query: Some(form::<effects::Filter>),
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
            form::<effects::Reply>,
            answering!(effects::reply),
        )
        .refusing(OF_AN_EFFECT),
        post(
            "/effects/{id}/probe",
            Agent,
            "probe",
            "Probe whether your own call in doubt happened.",
            form::<probe::Probe>,
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
            form::<undo::Undo>,
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
                form::<runs::RunTold>,
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
                form::<runs::Cancelled>,
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
                answering!(stats::told),
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

async fn document(_: Arc<Api>, _: Asked) -> Result<Response, Problem> {
    super::respond::json(&document::document())
}
