//! `/api/v1`: what was done and what is in doubt, for programs; begin and settle, for code that calls tools itself.
//!
//! Every route stands in one table, [`routes`], with the scope that it needs and the forms that it takes and gives. The
//! router and the OpenAPI document are both made from that table.

mod begin;
mod calls;
mod client_upstream;
mod cursor;
mod document;
mod effects;
mod find_effect;
mod probe;
mod problem;
mod request;
mod respond;
mod route;
mod routes;
mod rulings;
mod runs;
mod server;
mod settle;
mod stats;
mod tokens;
mod undo;

pub use problem::{Problem, problem_of};
pub use route::{BASE, Route};
pub use routes::routes;
pub use server::ApiServer;
pub use settle::abandon;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, State};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use http::{Request, StatusCode};
use request::ApiRequest;
use std::sync::Arc;

pub fn router(api: Arc<ApiServer>) -> Router {
    let all = routes().into_iter().map(Arc::new).fold(Router::new(), |router, route| {
        let path = format!("{BASE}{}", route.path);
        let method = route.method.clone();
        let filter = method.try_into().expect("the table has methods that can be routed");
        let answer =
            move |State(api): State<Arc<ApiServer>>, params: RawPathParams, request: Request<Body>| {
                let route = Arc::clone(&route);
                async move { answer(api, &route, &params, request).await }
            };
        router.route(&path, on(filter, answer))
    });
    let other_method =
        || async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method") };
    all.method_not_allowed_fallback(other_method).with_state(api)
}

async fn answer(
    api: Arc<ApiServer>,
    route: &Route,
    params: &RawPathParams,
    request: Request<Body>,
) -> Response {
    match ApiRequest::read(&api.services, route.access(), params, request) {
        Ok(request) => (route.handler)(api, request).await.unwrap_or_else(IntoResponse::into_response),
        Err(problem) => problem.into_response(),
    }
}
