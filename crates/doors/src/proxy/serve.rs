//! From a request at `/p/NAME/…` to the door that answers it.

use super::offer::Offer;
use crate::hall::Hall;
use crate::http::server::{caller, problem};
use crate::llm;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::any;
use http::{Request, StatusCode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that is offered, by name.
#[derive(Debug)]
pub struct Offers {
    pub hall: Arc<Hall>,
    pub by_name: BTreeMap<String, Arc<Offer>>,
}

pub fn router(offers: Arc<Offers>) -> Router {
    Router::new().route("/p/{name}", any(bare)).route("/p/{name}/{*path}", any(api)).with_state(offers)
}

async fn bare() -> Response {
    problem(StatusCode::NOT_FOUND, "an API is at /p/NAME/, with its own paths behind")
}

async fn api(
    State(offers): State<Arc<Offers>>,
    Path((name, _)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let Some(offer) = offers.by_name.get(&name) else {
        return problem(
            StatusCode::NOT_FOUND,
            "there is no API of that name; semel.toml has [upstream.NAME]",
        );
    };
    let (mut parts, body) = request.into_parts();
    let caller = match caller(offers.hall.secret(), offer.run.as_ref(), &mut parts) {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    if llm::is_generation(offer, &parts.method, parts.uri.path()) {
        return llm::serve::answer(&offers.hall, offer, caller, parts, body).await;
    }
    problem(StatusCode::NOT_IMPLEMENTED, &format!("{} is not guarded yet", offer.name))
}
