//! Clients over Streamable HTTP: every configured server at `/mcp/NAME`.

mod allowances;
mod child;
mod children;
mod message_reader;
mod relay;
mod remote;
mod request;
mod respond;
mod sessions;
mod stream;
mod validate;

pub use child::{ChildEra, ChildServer};
pub use children::Children;
pub use remote::Remote;

use crate::http::server::problem;
use crate::services::Services;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::any;
use http::{Request, StatusCode};
use request::ClientRequest;
use semel_core::ids::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One server that is offered.
#[derive(Debug)]
pub struct ServerOffer {
    pub backend: ServerBackend,
    /// The run of calls that name none.
    pub run: Option<Run>,
}

#[derive(Debug)]
pub enum ServerBackend {
    Remote(Box<Remote>),
    Child(Arc<Children>),
}

/// All servers that are offered, by name.
#[derive(Debug)]
pub struct ServerOffers {
    pub services: Arc<Services>,
    pub by_name: BTreeMap<String, ServerOffer>,
}

pub fn router(offers: Arc<ServerOffers>) -> Router {
    Router::new().route("/mcp/{name}", any(mcp)).with_state(offers)
}

async fn mcp(
    State(offers): State<Arc<ServerOffers>>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    let Some(offer) = offers.by_name.get(&name) else {
        return problem(StatusCode::NOT_FOUND, "there is no server of that name; semel.toml has [mcp.NAME]");
    };
    let (parts, body) = request.into_parts();
    let request = match ClientRequest::read(&offers.services, offer.run.as_ref(), parts) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    match &offer.backend {
        ServerBackend::Remote(remote) => remote.answer(request, body).await,
        ServerBackend::Child(children) => children.answer(request, body).await,
    }
}
