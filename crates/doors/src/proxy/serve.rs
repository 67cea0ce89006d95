//! From a request at `/p/NAME/…` to its answer.

use super::arrive::{Arrived, Generation, Passing, Way, arrive};
use super::dry_run;
use super::guard::{Guarded, guard};
use super::offer::Offer;
use super::refused::{Refused, trouble};
use super::relay::relay;
use super::render;
use super::take::{self, Intake};
use crate::hall::Hall;
use crate::llm;
use axum::body::Body;
use axum::response::Response;
use http::header::EXPECT;
use http::request::Parts;
use semel_core::wording;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that is offered, by name.
#[derive(Debug)]
pub struct Offers {
    pub hall: Arc<Hall>,
    pub by_name: BTreeMap<String, Arc<Offer>>,
    pub intake: Intake,
}

impl Offers {
    pub fn new(hall: Arc<Hall>, by_name: BTreeMap<String, Arc<Offer>>) -> Offers {
        Offers { hall, by_name, intake: Intake::default() }
    }
}

/// What all paths begin with that lead to an API.
pub const PATH: &str = "/p/";

/// Where nothing is, the names of the APIs are told: to whoever shows a token, and on a local server to all, since
/// whoever reaches that is a program of this machine. Their addresses and settings are not.
pub fn nothing_here<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let known = match names.is_empty() {
        true => "of which semel.toml has none".to_owned(),
        false => names.join(", "),
    };
    format!(
        "nothing was sent: there is nothing at this path. APIs are at /p/NAME/ and http://NAME.localhost:PORT/: \
         {known}. MCP servers are at /mcp/NAME, and semel's own API is at /api/v1."
    )
}

/// What seldom happens is boxed, so that a request that only passes is small.
pub async fn serve(offers: &Offers, parts: Parts, mut body: Body) -> Response {
    // Whoever waits for a word before it sends its body is not made to send it in vain.
    let waits = parts.headers.contains_key(EXPECT);
    let way = match arrive(offers, parts, &mut body) {
        Ok(Arrived::Known(way)) => Ok(way),
        Ok(Arrived::Unread(unread)) => unread.read(&mut body).await,
        Err(refused) => Err(refused),
    };
    let answered = match way {
        Ok(Way::Passes(passing)) => {
            let Passing { offer, client, outgoing, permit: _until_answered } = *passing;
            Ok(relay(offer, client, outgoing).await)
        }
        Ok(Way::IsGuarded(guarded)) => Ok(guard(guarded).await),
        Ok(Way::Generates(Generation { offer, caller, parts })) => {
            let body = std::mem::take(&mut body);
            Ok(Box::pin(llm::serve::answer(&offers.hall, offer, caller, *parts, body)).await)
        }
        Ok(Way::IsObserved(observed)) => Box::pin(observed.pass(&mut body)).await,
        Ok(Way::IsDryRun(guarded)) => Box::pin(told_only(&guarded)).await,
        Err(refused) => Err(refused),
    };
    answered.unwrap_or_else(|refused| {
        if !waits {
            take::drain(body);
        }
        *refused
    })
}

async fn told_only(guarded: &Guarded) -> Result<Response, Refused> {
    let Guarded { hall, offer, understood, .. } = guarded;
    let unavailable = |why: &str| trouble(&understood.rule, offer, wording::ledger_unavailable(why));
    let gate = hall.gate.as_ref().map_err(|why| unavailable(why))?;
    let answer = dry_run::answer(gate, guarded).await.map_err(|error| unavailable(&error.to_string()))?;
    Ok(render::answer(&answer, offer, None))
}
