//! A guarded request through the gate. Whoever asked may go away: it is finished and settled all the same.

use super::ask;
use super::intent::Understood;
use super::offer::Offer;
use super::render::{self, Receipt};
use super::streamed::Begun;
use super::upstream::{HttpUpstream, Live, LiveBody};
use crate::delivery::Delivery;
use crate::hall::Hall;
use crate::http::client::Client;
use crate::http::large_body_permits::LargeBodyPermit;
use crate::http::server::Revocable;
use crate::unstoppable::Unstoppable;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::intent::Intent;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::{GivenReply, Passed};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long after an attempt's deadline its caller looks again: the claim is a little younger than the request.
const LOOKS_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// A request that goes through the gate.
#[derive(Debug)]
pub struct Guarded {
    pub hall: Arc<Hall>,
    pub offer: Arc<Offer>,
    /// To the upstream, for its caller.
    pub client: Client,
    pub method: Method,
    /// What the upstream is asked for, and what rules call it.
    pub uri: Uri,
    pub path: String,
    /// As the upstream gets them.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Its place among the large ones, if it is one.
    pub turn: Option<LargeBodyPermit>,
    pub understood: Understood,
    pub intent: Intent,
    /// When it came, on the monotonic clock.
    pub came: Duration,
    /// What its caller showed, where that can be revoked.
    pub token: Option<Revocable>,
    /// Something went to the upstream on its behalf.
    pub sent: AtomicBool,
    /// It has come to an answer: there may be another one, of an attempt that its caller has left behind.
    pub answered: AtomicBool,
}

/// What a request came to.
#[derive(Debug)]
struct Ended {
    passed: Passed,
    live: Option<Live>,
}

/// After the rule's timeout the caller looks again, while the first attempt goes on: its late answer is evidence.
pub async fn guard(guarded: Arc<Guarded>) -> Response {
    loop {
        let (begun, mut begins) = oneshot::channel();
        let waits = Arc::new(());
        let pass = Unstoppable::new(pass(Arc::clone(&guarded), begun, Arc::downgrade(&waits)));
        let patience = async {
            match guarded.understood.rule.timeout {
                Some(timeout) => guarded.hall.clock.sleep(timeout + LOOKS_AGAIN_AFTER).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = pass => return match begins.try_recv() {
                // It began and ended in one go.
                Ok(begun) => streaming(&guarded, begun),
                Err(_) => respond(&guarded, ended),
            },
            Ok(begun) = &mut begins => return streaming(&guarded, begun),
            () = patience => {}
        }
    }
}

async fn pass(guarded: Arc<Guarded>, begun: oneshot::Sender<Begun>, awaited: Weak<()>) -> Ended {
    let Guarded { hall, understood, intent, .. } = &*guarded;
    let _working = hall.busy.begin();
    let gate = match &hall.gate {
        Ok(gate) => gate,
        Err(why) => return Ended::trouble(&guarded, wording::ledger_unavailable(why)),
    };
    // Whoever has read the answer of the request before means another one now.
    hall.leaving.gone(intent.key).await;
    let mut upstream = HttpUpstream::of(&guarded, begun, awaited);
    let passed = gate.pass(intent, &understood.rule, &mut upstream).await;
    let live = upstream.finish();
    let mut passed = match passed {
        Ok(passed) => passed,
        Err(error) => {
            return Ended::trouble(&guarded, wording::ledger_unavailable(&error.to_string()));
        }
    };
    if let Some(done) = gate.unconfirmed(&understood.rule, &mut passed) {
        ask::follow(&guarded, done, ask::reply(&passed, live.as_ref()));
    }
    let live = match live {
        Some(Live { body: LiveBody::Streamed(giving), .. }) => {
            if passed.reply == GivenReply::Live {
                giving.end(guarded.delivery(passed.delivery.clone())).await;
            }
            None
        }
        live => live,
    };
    Ended { passed, live }
}

impl Guarded {
    fn delivery(&self, found: Option<semel_ledger::Found>) -> Option<Delivery> {
        Delivery::of(&self.hall, found, Some(self.came + self.understood.rule.late_after))
    }
}

impl Ended {
    fn trouble(guarded: &Guarded, trouble: Trouble) -> Ended {
        let answer = Answer::of_trouble(guarded.understood.rule.tier(), OutcomeWord::Refused, trouble);
        Ended { passed: Passed { answer, reply: GivenReply::None, delivery: None }, live: None }
    }
}

fn respond(guarded: &Guarded, ended: Ended) -> Response {
    let Ended { passed: Passed { answer, reply, delivery }, live } = ended;
    let delivery = guarded.delivery(delivery);
    match (reply, live) {
        (GivenReply::Live, Some(Live { status, headers, body: LiveBody::Whole(body) })) => {
            let receipt = Receipt::of(&answer);
            render::live(status, headers, &receipt, &guarded.offer, body, delivery)
        }
        (GivenReply::Recorded(bytes), _) => render::replay(&answer, bytes, delivery),
        _ => render::answer(&answer, &guarded.offer, delivery),
    }
}

/// An answer that goes out while it arrives. How it ends is seen to by whoever passes the request.
fn streaming(guarded: &Guarded, begun: Begun) -> Response {
    render::streaming(begun, &guarded.offer)
}
