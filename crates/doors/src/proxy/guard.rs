//! A guarded request through the gate. Whoever asked may go away: it is finished and settled all the same.

use super::guarded::GuardedRequest;
use super::query;
use super::render::{self, Receipt};
use super::streamed::StreamedHead;
use super::upstream::HttpUpstream;
use super::upstream_answer::{AnswerBody, UpstreamAnswer};
use crate::finish_detached::FinishDetached;
use axum::response::Response;
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::wording;
use semel_gate::look::{Look, Patience};
use semel_gate::{Gate, GivenReply, Passed};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The outcome of a guarded request.
#[derive(Debug)]
struct GuardOutcome {
    passed: Passed,
    live: Option<UpstreamAnswer>,
}

/// Answers as soon as one look has an answer or its beginning.
pub async fn guard(guarded: Arc<GuardedRequest>) -> Response {
    let gate = match &guarded.services.gate {
        Ok(gate) => gate,
        Err(why) => {
            return respond(&guarded, GuardOutcome::trouble(&guarded, wording::ledger_unavailable(why)));
        }
    };
    let guarded = &guarded;
    let patience = Patience::of(&guarded.understood.rule, guarded.services.silence_max);
    gate.look_until_answered(patience, |look| {
        let (begun, mut begins) = oneshot::channel();
        let pass = FinishDetached::new(pass(Arc::clone(guarded), look, begun));
        async move {
            tokio::select! {
                ended = pass => match begins.try_recv() {
                    // It began and ended in one go.
                    Ok(begun) => streaming(guarded, begun),
                    Err(_) => respond(guarded, ended),
                },
                Ok(begun) = &mut begins => streaming(guarded, begun),
            }
        }
    })
    .await
}

async fn pass(
    guarded: Arc<GuardedRequest>,
    look: Look,
    begun: oneshot::Sender<StreamedHead>,
) -> GuardOutcome {
    let GuardedRequest { services, understood, intent, .. } = &*guarded;
    let _in_flight = services.in_flight.begin();
    let gate = match &services.gate {
        Ok(gate) => gate,
        Err(why) => return GuardOutcome::trouble(&guarded, wording::ledger_unavailable(why)),
    };
    let mut upstream = HttpUpstream::of(&guarded, begun);
    let passed = gate.pass_in(&look, intent, &understood.rule, &mut upstream).await;
    let live = upstream.finish();
    let mut passed = match passed {
        Ok(passed) => passed,
        Err(error) => {
            return GuardOutcome::trouble(&guarded, wording::ledger_unavailable(&error.to_string()));
        }
    };
    if let Some(done) = gate.unconfirmed(&understood.rule, &mut passed) {
        query::follow(&guarded, done, query::reply(&passed, live.as_ref()));
    }
    let live = match live {
        Some(UpstreamAnswer { body: AnswerBody::Streamed(writer), .. }) => {
            if passed.reply == GivenReply::Live {
                writer.end(guarded.delivery(passed.delivery.clone())).await;
            }
            None
        }
        live => live,
    };
    GuardOutcome { passed, live }
}

impl GuardOutcome {
    fn trouble(guarded: &GuardedRequest, trouble: Trouble) -> GuardOutcome {
        let answer = Answer::of_trouble(guarded.understood.rule.tier(), OutcomeWord::Refused, trouble);
        GuardOutcome { passed: Passed { answer, reply: GivenReply::None, delivery: None }, live: None }
    }
}

fn respond(guarded: &GuardedRequest, ended: GuardOutcome) -> Response {
    let GuardOutcome { passed: Passed { answer, reply, delivery }, live } = ended;
    let delivery = guarded.delivery(delivery);
    match (reply, live) {
        (GivenReply::Live, Some(UpstreamAnswer { status, headers, body: AnswerBody::Whole(body) })) => {
            let receipt = Receipt::of(&answer);
            render::live(status, headers, &receipt, &guarded.offer, body, delivery)
        }
        (GivenReply::Recorded(bytes), _) => render::replay(&answer, bytes, guarded.usual_status(), delivery),
        _ => render::answer(&answer, &guarded.offer, delivery),
    }
}

/// An answer that goes out while it arrives. How it ends is seen to by whoever passes the request.
fn streaming(guarded: &GuardedRequest, begun: StreamedHead) -> Response {
    let best_effort = guarded.services.gate.as_ref().is_ok_and(Gate::is_best_effort);
    render::streaming(begun, &guarded.offer, best_effort)
}
