//! Whose request it is: from what it was let in by, never from what it says.

use super::{Credential, Revocable, problem};
use crate::caller::Caller;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderName, StatusCode};
use semel_core::digest::Secret;
use semel_core::ids::Run;

/// Names the run of a request; stronger than what a call says.
const RUN: HeaderName = HeaderName::from_static("semel-run-id");

/// `secret` is the ledger's: without one nothing is recorded, and so nothing is anybody's. `surrounding` is the run of
/// requests that name none.
pub fn caller(
    secret: Option<&Secret>,
    surrounding: Option<&Run>,
    parts: &mut Parts,
) -> Result<Caller, Box<Response>> {
    let credential = parts.extensions.get::<Credential>().unwrap_or(&Credential::None);
    let (tenant, principal) = (credential.tenant().to_owned(), credential.principal(secret));
    if parts.headers.get_all(RUN).iter().nth(1).is_some() {
        return Err(Box::new(problem(StatusCode::BAD_REQUEST, "Semel-Run-Id is there twice")));
    }
    let run = match parts.headers.remove(RUN) {
        None => None,
        Some(run) => match run.to_str().ok().and_then(|run| Run::named(run).ok()) {
            Some(run) => Some(run),
            None => return Err(Box::new(problem(StatusCode::BAD_REQUEST, "Semel-Run-Id cannot name a run"))),
        },
    };
    let token = parts.extensions.get::<Revocable>().cloned();
    Ok(Caller { tenant, principal, run, surrounding_run: surrounding.cloned(), token })
}
