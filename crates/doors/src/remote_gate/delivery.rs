//! The mark of a success on record at the server: its caller has the answer.

use super::RemoteGate;
use super::client::{ANSWER_TAKES_MAX, bytes_of};
use super::forms::{DeliveredAnswer, DeliveredForm};
use crate::services::Services;
use semel_core::digest::Digest;
use semel_core::ids::EffectId;
use semel_gate::clock::Clock;
use semel_gate::pending_delivery::PendingDelivery;
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A success on record at the server whose caller has not read it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undelivered {
    pub effect: EffectId,
    /// The same for equal calls of this process.
    pub key: Digest,
}

#[derive(Debug)]
pub struct RemoteMark {
    effect: EffectId,
    late_from: Duration,
    /// The next call waits for the mark as long as this is there.
    pending: Mutex<Option<PendingDelivery>>,
}

impl RemoteMark {
    pub fn of(services: &Services, undelivered: Undelivered, late_from: Duration) -> RemoteMark {
        let Undelivered { effect, key } = undelivered;
        let pending = services.remote.as_ref().map(|remote| remote.pending.begin(key));
        RemoteMark { effect, late_from, pending: Mutex::new(pending) }
    }

    /// The answer has left just now. The mark is set by and by, unless the answer was late. Within a runtime.
    pub fn set(self: Arc<RemoteMark>, services: Arc<Services>) {
        if services.clock.elapsed() > self.late_from {
            return self.release();
        }
        let in_flight = services.in_flight.begin();
        tokio::spawn(async move {
            let _in_flight = in_flight;
            if let Some(remote) = &services.remote {
                // Losing the mark is safe: it means undelivered.
                let _unmarked = remote.delivered(self.effect).await;
            }
            self.release();
        });
    }

    pub fn release(&self) {
        drop(self.pending.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl RemoteGate {
    /// The answer has reached its caller. Losing the mark is safe: it means undelivered.
    pub async fn delivered(&self, effect: EffectId) -> Result<(), String> {
        let form = DeliveredForm { effect_id: effect.to_string() };
        let reply = self.access.post("/calls/delivered", bytes_of(&form), ANSWER_TAKES_MAX).await;
        let reply = reply.map_err(|unanswered| unanswered.why().to_owned())?;
        match DeliveredAnswer::deserialize(&reply.body) {
            Ok(_) if reply.status.is_success() => Ok(()),
            _ => Err(reply.detail()),
        }
    }
}
