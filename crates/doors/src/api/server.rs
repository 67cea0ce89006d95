//! The services that every handler uses.

use super::problem::Problem;
use super::request::ApiPrincipal;
use crate::http::large_body_permits::{self, LargeBodyPermit, LargeBodyPermits};
use crate::services::Services;
use crate::undo::Undoer;
use http::StatusCode;
use semel_core::wording;
use semel_gate::Gate;
use std::sync::Arc;

#[derive(Debug)]
pub struct ApiServer {
    pub services: Arc<Services>,
    pub undoer: Undoer,
    large: LargeBodyPermits,
}

/// Requests with larger arguments are understood and kept waiting a few at a time: in memory they take ten times their
/// length. What was done can always be brought.
const LARGE_BYTES: u64 = 256 * 1024;
const LARGE_AT_ONCE: usize = 16;
const LARGE_OF_ONE: usize = 4;

impl ApiServer {
    pub fn new(services: Arc<Services>, undoer: Undoer) -> ApiServer {
        ApiServer { services, undoer, large: LargeBodyPermits::new(LARGE_AT_ONCE, LARGE_OF_ONE) }
    }

    /// The turn of a request that is large, or does not say how large it is.
    pub async fn turn(
        &self,
        principal: &ApiPrincipal,
        bytes_max: Option<u64>,
    ) -> Result<Option<LargeBodyPermit>, Problem> {
        if bytes_max.is_some_and(|bytes| bytes <= LARGE_BYTES) {
            return Ok(None);
        }
        let whose = format!("{}\n{}", principal.tenant, principal.principal);
        let turn = tokio::time::timeout(large_body_permits::WAIT_MAX, self.large.take(&whose)).await;
        let crowded = "nothing was begun or recorded: too many large requests came at once. Send it again in a few seconds";
        turn.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, crowded))
    }

    /// The gate, or the answer of a server that has no ledger.
    pub fn gate(&self) -> Result<&Gate, Problem> {
        self.services.gate.as_ref().map_err(|why| Problem::of_trouble(wording::ledger_unavailable(why)))
    }
}
