//! A success is confirmed in the background, while its caller has the answer.

use crate::query::origins::UrlOrigin;
use crate::query::witness::ConfirmWitness;
use crate::query::{Credentials, Query, Subject};
use crate::services::Services;
use http::HeaderMap;
use semel_core::json::Json;
use semel_core::policy::rule::Confirm;
use semel_ledger::RecordSnapshot;
use std::sync::Arc;

/// All that a question needs once the call that it is about has ended.
#[derive(Debug)]
pub struct BackgroundConfirm {
    pub confirm: Confirm,
    pub action: String,
    pub arguments: Json,
    /// The reply of the call, as rules see it.
    pub reply: Json,
    /// The credential that the caller passed through to its upstream.
    pub credential: Option<(UrlOrigin, HeaderMap)>,
}

impl BackgroundConfirm {
    /// Begins to ask, unless this process already does. Within a runtime.
    pub fn start(self, services: &Arc<Services>, done: RecordSnapshot) {
        let Some(active) = services.active_confirms.begin(&done) else { return };
        let services = Arc::clone(services);
        tokio::spawn(async move {
            let BackgroundConfirm { confirm, action, arguments, reply, credential } = &self;
            let credentials = match credential {
                Some((upstream, headers)) => Credentials::Headers { upstream, headers },
                None => Credentials::None,
            };
            let subject = Subject { action, arguments, effect: None, reply: Some(reply), credentials };
            let Services { backends, policy, .. } = &*services;
            let query = Query { backends, policy, subject, signals: None };
            if let Ok(gate) = &services.gate {
                // A finding that cannot be written leaves the effect as it was reported.
                let _as_reported = gate.confirm(confirm, &done, &mut ConfirmWitness { query, confirm }).await;
            }
            drop(active);
        });
    }
}
