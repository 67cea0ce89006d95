//! From a request at `/p/NAME/…` to its answer.

use super::arrive::{HeadOutcome, PassThrough, RequestRoute, arrive};
use super::dry_run;
use super::guard::guard;
use super::guarded::GuardedRequest;
use super::offers::Offers;
use super::opened::{EarlyRefusal, OpenedRequest};
use super::refusal::{RefusalResponse, trouble};
use super::relay::relay;
use super::render;
use axum::body::Body;
use axum::response::Response;
use http::header::EXPECT;
use semel_core::wording;

/// Rare ways are boxed, so that a request that only passes is small.
pub async fn serve(offers: &Offers, opened: OpenedRequest<'_>, mut body: Body) -> Response {
    let waits = opened.parts.headers.contains_key(EXPECT);
    let way = match arrive(offers, opened, &mut body) {
        Ok(HeadOutcome::Known(way)) => Ok(way),
        Ok(HeadOutcome::UnreadRequest(unread)) => unread.read(&mut body).await,
        Err(refused) => Err(refused),
    };
    let answered = match way {
        Ok(RequestRoute::PassThrough(passing)) => {
            let PassThrough { offer, client, outgoing, permit: _until_answered } = *passing;
            Ok(relay(offer, client, outgoing).await)
        }
        Ok(RequestRoute::Guard(guarded)) => Ok(guard(guarded).await),
        Ok(RequestRoute::Observe(observed)) => Box::pin(observed.pass(&mut body)).await,
        Ok(RequestRoute::DryRun(guarded)) => Box::pin(dry_run_response(&guarded)).await,
        Err(refused) => Err(refused),
    };
    answered.unwrap_or_else(|response| EarlyRefusal { response, waits }.respond(body))
}

async fn dry_run_response(guarded: &GuardedRequest) -> Result<Response, RefusalResponse> {
    let GuardedRequest { services, offer, understood, .. } = guarded;
    let unavailable = |why: &str| trouble(&understood.rule, offer, wording::ledger_unavailable(why));
    let gate = services.gate.as_ref().map_err(|why| unavailable(why))?;
    let answer = dry_run::answer(gate, guarded).await.map_err(|error| unavailable(&error.to_string()))?;
    Ok(render::answer(&answer, offer, None))
}
