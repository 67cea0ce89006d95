//! Clients over Streamable HTTP: every configured server at `/mcp/NAME`.

mod child;
mod children;
mod connections;
mod incoming;
mod relay;
mod remote;
mod respond;
mod resumable;
mod sessions;
mod stream;
mod validate;

pub use child::{Child, Tongue};
pub use children::Children;
pub use remote::Remote;

use crate::http::server::{Credential, problem};
use crate::mcp::door::Door;
use crate::mcp::intent::Caller;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{any, get};
use http::request::Parts;
use http::{HeaderName, Request, StatusCode};
use semel_core::ids::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names the run of a request; stronger than what a call says.
const RUN: HeaderName = HeaderName::from_static("semel-run-id");

/// One server that is offered.
#[derive(Debug)]
pub struct Offer {
    pub way: Way,
    /// The run of calls that name none.
    pub run: Option<Run>,
}

#[derive(Debug)]
pub enum Way {
    Remote(Box<Remote>),
    Child(Arc<Children>),
}

/// All that is offered, by name.
#[derive(Debug)]
pub struct Offers {
    pub door: Arc<Door>,
    pub by_name: BTreeMap<String, Offer>,
}

pub fn router(offers: Arc<Offers>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/mcp/{name}", any(mcp))
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "there is nothing here; servers are at /mcp/NAME")
        })
        .with_state(offers)
}

async fn mcp(
    State(offers): State<Arc<Offers>>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    let Some(offer) = offers.by_name.get(&name) else {
        return problem(StatusCode::NOT_FOUND, "there is no server of that name; semel.toml has [mcp.NAME]");
    };
    let (mut parts, body) = request.into_parts();
    let caller = match caller(&offers.door, offer, &mut parts) {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    match &offer.way {
        Way::Remote(remote) => remote.answer(&offers.door, caller, parts, body).await,
        Way::Child(child) => child.answer(&offers.door, caller, parts, body).await,
    }
}

/// Whose request it is: from what it was let in by, never from what it says.
fn caller(door: &Door, offer: &Offer, parts: &mut Parts) -> Result<Caller, Box<Response>> {
    let credential = parts.extensions.get::<Credential>().unwrap_or(&Credential::None);
    let tenant = credential.tenant().to_owned();
    let principal = credential.principal(door.gate.as_ref().ok().map(|gate| gate.ledger.secret()));
    let run = match parts.headers.remove(RUN) {
        None => None,
        Some(run) => match run.to_str().ok().and_then(|run| Run::named(run).ok()) {
            Some(run) => Some(run),
            None => return Err(Box::new(problem(StatusCode::BAD_REQUEST, "Semel-Run-Id cannot name a run"))),
        },
    };
    Ok(Caller { tenant, principal, run, surrounding_run: offer.run.clone() })
}
