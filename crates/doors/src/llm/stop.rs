//! Reasons to end a generation early: a cancelled run, or nobody there to read it where a rule says so.

use super::live_answer::LiveAnswer;
use crate::services::Services;
use semel_core::digest::Digest;
use semel_core::policy::rule::{OnDisconnect, Rule};
use semel_gate::Gate;
use semel_ledger::store::Hint;
use std::time::Duration;

/// Why a generation is ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyStop {
    Cancelled,
    Abandoned,
}

/// Resolves when a generation is to be ended.
pub async fn stops(services: &Services, rule: &Rule, run: Option<Digest>, live: &LiveAnswer) -> EarlyStop {
    let cancelled = async {
        match (&services.gate, run) {
            (Ok(gate), Some(run)) => cancelled(gate, run).await,
            _ => std::future::pending().await,
        }
    };
    let abandoned = async {
        match rule.on_disconnect {
            OnDisconnect::Stop => live.abandoned().await,
            OnDisconnect::Finish => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancelled => EarlyStop::Cancelled,
        () = abandoned => EarlyStop::Abandoned,
    }
}

/// Resolves when the run is cancelled. The ledger tells: nobody polls.
async fn cancelled(gate: &Gate, run: Digest) {
    loop {
        if let Ok((key, revision, fence)) = gate.ledger.fence(run).await {
            if fence.is_some_and(|fence| fence.cancelled) {
                return;
            }
            if gate.ledger.store().changed(key, revision, FENCE_WATCHED).await == Hint::Changed {
                continue;
            }
        }
        gate.clock.sleep(FENCE_PAUSE).await;
    }
}

/// A fence is looked at again now and then even if nobody has heard of a change.
const FENCE_WATCHED: Duration = Duration::from_secs(60);
const FENCE_PAUSE: Duration = Duration::from_secs(1);
