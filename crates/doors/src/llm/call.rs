//! One request for a generation, on its way.

use super::live_answer::LiveAnswers;
use super::meter::Meter;
use super::request::ModelRequest;
use crate::http::client::Client;
use crate::http::server::Revocable;
use crate::proxy::Offer;
use crate::services::Services;
use semel_core::policy::Rule;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct ModelCall {
    pub services: Arc<Services>,
    pub lives: Arc<LiveAnswers>,
    pub offer: Arc<Offer>,
    pub request: ModelRequest,
    pub rule: Arc<Rule>,
    /// When it came, on the monotonic clock.
    pub received_at: Duration,
    /// The caller's token, where it can be revoked.
    pub token: Option<Revocable>,
    pub meter: Meter,
    /// To the upstream, for its caller.
    pub client: Client,
}
