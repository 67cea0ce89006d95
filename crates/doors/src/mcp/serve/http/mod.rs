//! Clients over Streamable HTTP: every configured server at `/mcp/NAME`.

mod allowances;
mod child;
mod children;
mod connections;
mod incoming;
mod opened;
mod owner;
mod relay;
mod remote;
mod respond;
mod sessions;
mod stream;
mod validate;

pub use child::{Child, Tongue};
pub use children::Children;
pub use remote::Remote;

use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::server::{caller, problem};
use crate::mcp::door::Door;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::any;
use http::{Request, StatusCode};
use semel_core::ids::Run;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The caller, and its options for semel itself.
#[derive(Debug)]
pub struct Asks {
    pub caller: Caller,
    pub options: CallOptions,
}

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
    Router::new().route("/mcp/{name}", any(mcp)).with_state(offers)
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
    let caller = match caller(offers.door.services.secret(), offer.run.as_ref(), &mut parts) {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    let options = match CallOptions::taken(&mut parts.headers) {
        Ok(options) => options,
        Err(bad) => return problem(StatusCode::BAD_REQUEST, &bad.to_string()),
    };
    let asks = Asks { caller, options };
    match &offer.way {
        Way::Remote(remote) => remote.answer(&offers.door, asks, parts, body).await,
        Way::Child(child) => child.answer(&offers.door, asks, parts, body).await,
    }
}
