//! A request that goes through the gate.

use super::classify;
use super::intent::UnderstoodRequest;
use super::offer::Offer;
use crate::delivery::Delivery;
use crate::http::client::Client;
use crate::http::large_body_permits::LargeBodyPermit;
use crate::http::server::Revocable;
use crate::services::Services;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use semel_core::intent::Intent;
use semel_ledger::RecordSnapshot;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct GuardedRequest {
    pub services: Arc<Services>,
    pub offer: Arc<Offer>,
    /// To the upstream, for its caller.
    pub client: Client,
    pub method: Method,
    /// The address for the upstream, and the path for rules.
    pub uri: Uri,
    pub path: String,
    /// As the upstream gets them.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Its place among the large ones, if it is one.
    pub turn: Option<LargeBodyPermit>,
    pub understood: UnderstoodRequest,
    pub intent: Intent,
    /// When it came, on the monotonic clock.
    pub received_at: Duration,
    /// The caller's token, where it can be revoked.
    pub token: Option<Revocable>,
}

impl GuardedRequest {
    /// The status of its success, where nobody has seen it.
    pub fn usual_status(&self) -> StatusCode {
        let UnderstoodRequest { rule, arguments, .. } = &self.understood;
        classify::usual_status(&self.method, &self.path, rule, &arguments.shape, &self.offer.keys)
    }

    pub fn delivery(&self, found: Option<RecordSnapshot>) -> Option<Delivery> {
        Delivery::of(&self.services, found, Some(self.received_at + self.understood.rule.late_after))
    }
}
