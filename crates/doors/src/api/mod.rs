//! `/api/v1`: what was done and what is in doubt, for programs; begin and settle, for code that calls tools itself.
//!
//! Every route stands in one table, [`routes`], with the scope that it needs and the forms that it takes and gives. The
//! router and the OpenAPI document are both made from that table.

mod asked;
mod away;
mod begin;
mod cursor;
mod document;
mod effects;
mod named;
mod probe;
mod problem;
mod respond;
mod routes;
pub mod rulings;
mod runs;
mod settle;
mod stats;
mod tokens;
mod undo;

pub use problem::{Problem, problem_of};
pub use routes::{BASE, Route, routes};

use crate::http::large_body_permits::{self, LargeBodyPermit, LargeBodyPermits};
use crate::runtime::ServedGate;
use crate::services::Services;
use crate::undo::Undoer;
use asked::{Asked, Who};
use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, State};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use http::{Request, StatusCode};
use semel_core::wording;
use std::sync::Arc;

#[derive(Debug)]
pub struct Api {
    pub services: Arc<Services>,
    undoer: Undoer,
    large: LargeBodyPermits,
}

/// Requests with larger arguments are understood and kept waiting a few at a time: in memory they take ten times their
/// length. What was done can always be brought.
const LARGE_BYTES: u64 = 256 * 1024;
const LARGE_AT_ONCE: usize = 16;
const LARGE_OF_ONE: usize = 4;

impl Api {
    pub fn new(services: Arc<Services>, undoer: Undoer) -> Api {
        Api { services, undoer, large: LargeBodyPermits::new(LARGE_AT_ONCE, LARGE_OF_ONE) }
    }

    /// The turn of a request that is large, or does not say how large it is.
    async fn turn(&self, who: &Who, bytes_max: Option<u64>) -> Result<Option<LargeBodyPermit>, Problem> {
        if bytes_max.is_some_and(|bytes| bytes <= LARGE_BYTES) {
            return Ok(None);
        }
        let whose = format!("{}\n{}", who.tenant, who.principal);
        let turn = tokio::time::timeout(large_body_permits::WAIT_MAX, self.large.take(&whose)).await;
        let crowded = "too many large requests at once; nothing was begun";
        turn.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, crowded))
    }

    /// The gate, or the answer of a server that has no ledger.
    fn gate(&self) -> Result<&ServedGate, Problem> {
        self.services.gate.as_ref().map_err(|why| Problem::of_trouble(wording::ledger_unavailable(why)))
    }
}

pub fn router(api: Arc<Api>) -> Router {
    let all = routes().into_iter().map(Arc::new).fold(Router::new(), |router, route| {
        let path = format!("{BASE}{}", route.path);
        let method = route.method.clone();
        let filter = method.try_into().expect("the table has methods that can be routed");
        let answer = move |State(api): State<Arc<Api>>, params: RawPathParams, request: Request<Body>| {
            let route = Arc::clone(&route);
            async move { answer(api, &route, &params, request).await }
        };
        router.route(&path, on(filter, answer))
    });
    let other_method =
        || async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path has other methods") };
    all.method_not_allowed_fallback(other_method).with_state(api)
}

async fn answer(api: Arc<Api>, route: &Route, params: &RawPathParams, request: Request<Body>) -> Response {
    match Asked::read(&api.services, route, params, request) {
        Ok(asked) => (route.handler)(api, asked).await.unwrap_or_else(IntoResponse::into_response),
        Err(problem) => problem.into_response(),
    }
}
