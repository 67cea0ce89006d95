//! `/livez`, `/readyz` and `/metrics`.

use super::metrics::{self, LedgerMetrics, Totals};
use crate::http::server::{Credential, LOCAL, ServerLoad, problem};
use crate::runtime::moment;
use crate::services::Services;
use crate::stats;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use semel_core::policy::file::MetricsFor;
use semel_ledger::tokens::AccessScope;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Whether it is ready is found out at most this often, however often it is asked: nobody needs a token to ask.
const READY_EVERY: Duration = Duration::from_secs(1);

/// A disk that takes longer is not ready.
const WRITE_TAKES_MAX: Duration = Duration::from_secs(5);

/// How a server's health is known.
#[derive(Debug)]
pub struct ServerHealth {
    services: Arc<Services>,
    load: ServerLoad,
    ready: Mutex<Option<(Instant, Result<(), String>)>>,
}

impl ServerHealth {
    pub fn new(services: Arc<Services>, load: ServerLoad) -> ServerHealth {
        ServerHealth { services, load, ready: Mutex::default() }
    }

    /// A durable write, as a claim is one. Whoever asks meanwhile waits for the same answer.
    async fn ready(&self) -> Result<(), String> {
        let mut last = self.ready.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < READY_EVERY
        {
            return found.clone();
        }
        let found = match &self.services.gate {
            Err(why) => Err(why.clone()),
            Ok(gate) => {
                let write = gate.ledger.prove_ready(gate.clock.now());
                match tokio::time::timeout(WRITE_TAKES_MAX, write).await {
                    Ok(written) => written.map_err(|error| error.to_string()),
                    Err(_) => Err("the ledger takes no write".to_owned()),
                }
            }
        };
        *last = Some((moment(), found.clone()));
        found
    }

    /// The operator of this machine, unless everybody may know.
    fn may_read_metrics(&self, request: &Request<Body>) -> bool {
        let credential = request.extensions().get::<Credential>().unwrap_or(&Credential::None);
        let scope = request.extensions().get::<AccessScope>();
        // The numbers are of all tenants together.
        let operates =
            scope.is_some_and(|scope| *scope >= AccessScope::Operator) && credential.tenant() == LOCAL;
        operates || self.services.policy.serve.metrics == Some(MetricsFor::Open)
    }
}

pub fn router(operation: Arc<ServerHealth>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(operation)
}

async fn readyz(State(operation): State<Arc<ServerHealth>>) -> Response {
    match operation.ready().await {
        Ok(()) => Response::new(Body::from("ok\n")),
        Err(why) => {
            let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {why}"));
            response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}

async fn metrics(State(operation): State<Arc<ServerHealth>>, request: Request<Body>) -> Response {
    if !operation.may_read_metrics(&request) {
        let needs = "metrics need a token of scope operator, of this machine's own tenant";
        return problem(StatusCode::FORBIDDEN, needs);
    }
    let services = &operation.services;
    let ledger = match &services.gate {
        Ok(gate) => {
            // Counts that this process has not yet written belong to the ledger's totals too.
            let _written_the_next_time = gate.write_counts().await;
            LedgerMetrics {
                ready: operation.ready().await.is_ok(),
                in_doubt: stats::in_doubt(&gate.ledger, None, gate.clock.now()).await.ok(),
                totals: stats::totals(&gate.ledger).await.ok().map(Totals),
            }
        }
        Err(_) => LedgerMetrics::default(),
    };
    let Ok(text) = metrics::text(services, &operation.load, ledger) else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written");
    };
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
