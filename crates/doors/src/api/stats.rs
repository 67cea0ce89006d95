//! Counts of calls, sends, effects and savings.

use super::problem::Problem;
use super::request::ApiRequest;
use super::respond;
use super::server::ApiServer;
use crate::stats;
use axum::response::Response;
use schemars::JsonSchema;
use semel_core::policy::duration;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

const SINCE: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatsFilter {
    /// How far back, in whole days of UTC; 7d unless given.
    #[schemars(regex(pattern = r"^[0-9]{1,3}(s|m|h|d)$"))]
    since: Option<String>,
}

pub async fn read(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let StatsFilter { since } = request.query()?;
    let since = since.as_deref().map(duration::parse).transpose();
    let since = since.map_err(|error| Problem::bad(format!("since: {error}")))?.unwrap_or(SINCE);
    let gate = api.gate()?;
    // Counts that this process has not yet written belong to it too.
    gate.write_counts().await?;
    let told = stats::stats(&gate.ledger, Some(&request.who.tenant), since, gate.clock.now()).await?;
    respond::json(&told)
}
