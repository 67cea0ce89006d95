//! Observe mode: everything passes as it came, and what would have been decided goes to the journal.

use super::arguments::Arguments;
use super::headers;
use super::intake::{Intake, PartialBody, ResumedBody, WholeBody, not_whole};
use super::intent::{self, RequestFacts};
use super::offer::Offer;
use super::path::UpstreamPath;
use super::refusal::RefusalResponse;
use super::relay::{outgoing, relay};
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::body::Unreadable;
use crate::http::client::Payload;
use crate::services::Services;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use semel_gate::counts;
use std::sync::Arc;

/// A request that is looked at while it passes.
#[derive(Debug)]
pub struct ObservedRequest<'a> {
    pub services: &'a Arc<Services>,
    pub intake: &'a Intake,
    pub offer: &'a Arc<Offer>,
    pub caller: Caller,
    pub options: CallOptions,
    pub others: Vec<Method>,
    pub place: UpstreamPath,
    pub parts: Parts,
}

impl ObservedRequest<'_> {
    pub async fn pass(self, body: &mut Body) -> Result<Response, RefusalResponse> {
        let (payload, turn) = match self.intake.whole(&self.caller, body).await {
            Ok(WholeBody { bytes, turn }) => {
                self.write_down(&bytes);
                (Payload::from(bytes), turn)
            }
            // Too large to be looked at, or too many are; but nothing is blocked for that.
            Err(PartialBody { bytes, why: Unreadable::TooLarge(_) | Unreadable::Crowded }) => {
                let resumed = ResumedBody { beginning: bytes, rest: std::mem::take(body) };
                (Payload::from(Body::new(resumed)), None)
            }
            Err(PartialBody { why, .. }) => return Err(not_whole(&why)),
        };
        let ObservedRequest { services, caller, offer, place, parts, .. } = self;
        services.passed_through(&caller.tenant, counts::DoorKind::Http);
        let headers = headers::upward(parts.headers, offer);
        let client = offer.client.for_principal(&caller.whose());
        let response = relay(offer, client, outgoing(parts.method, place.uri, headers, payload)).await;
        drop(turn);
        Ok(response)
    }

    /// A request that is not understood here would have been refused, and leaves no trace.
    fn write_down(&self, body: &Bytes) {
        let ObservedRequest { services, offer, caller, options, others, place, parts, .. } = self;
        let (Ok(gate), headers) = (&services.gate, &parts.headers) else { return };
        let Ok(arguments) = Arguments::read(place, parts.uri.query(), headers, body) else { return };
        let others = others.clone();
        let asked = RequestFacts { method: &parts.method, others, path: &place.path, arguments, headers };
        let Ok(understood) = intent::understand(&services.policy, offer, asked) else { return };
        let Ok(intent) = intent::intent(&understood, offer, caller, options, headers, gate.ledger.secret())
        else {
            return;
        };
        let (services, in_flight) = (Arc::clone(services), services.in_flight.begin());
        // The request itself does not wait for it.
        tokio::spawn(async move {
            if let Ok(gate) = &services.gate {
                gate.observed(&intent, &understood.rule).await;
            }
            drop(in_flight);
        });
    }
}
