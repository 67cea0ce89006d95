//! From a request at `/p/NAME/…` to its answer.

use super::arguments::Arguments;
use super::graphql;
use super::guard::{self, Guarded};
use super::headers;
use super::intent::{self, Asked, NotUnderstood, Understood};
use super::method::{self, is_safe};
use super::offer::Offer;
use super::path::{self, Place};
use super::relay::{Outgoing, relay};
use super::render;
use super::wishes::Wishes;
use crate::caller::Caller;
use crate::hall::Hall;
use crate::http::beside;
use crate::http::body::{self, PAUSE_MAX, Unreadable};
use crate::http::client::Payload;
use crate::http::server::{Credential, caller, problem};
use crate::llm;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::header::{EXPECT, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use semel_core::answer::{Answer, OutcomeWord, Trouble};
use semel_core::class::Class;
use semel_core::policy::Rule;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::counts;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A request that may change something is read whole before anything is done with it.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// All that is offered, by name.
#[derive(Debug)]
pub struct Offers {
    pub hall: Arc<Hall>,
    pub by_name: BTreeMap<String, Arc<Offer>>,
}

pub fn router(offers: Arc<Offers>) -> Router {
    Router::new().route("/p/{*rest}", any(api)).with_state(offers)
}

async fn api(State(offers): State<Arc<Offers>>, request: Request<Body>) -> Response {
    answer(&offers, request).await.unwrap_or_else(|refused| *refused)
}

/// Nothing was sent, and this says why.
type Refused = Box<Response>;

async fn answer(offers: &Offers, request: Request<Body>) -> Result<Response, Refused> {
    let (mut parts, body) = request.into_parts();
    let whole = parts.uri.path_and_query().map_or("", |whole| whole.as_str());
    let Some((name, rest)) = path::split(whole) else {
        return Err(refuse(StatusCode::NOT_FOUND, "an API is at /p/NAME/, with its own paths behind"));
    };
    let Some(offer) = offers.by_name.get(name) else {
        let what = "there is no API of that name; semel.toml has [upstream.NAME]";
        return Err(refuse(StatusCode::NOT_FOUND, what));
    };
    let place = Place::at(&offer.base, rest).map_err(|bad| malformed(&bad))?;
    is_a_request(&parts)?;
    if llm::is_generation(offer, &parts.method, parts.uri.path()) {
        let caller = caller(offers.hall.secret(), offer.run.as_ref(), &mut parts)?;
        return Ok(llm::serve::answer(&offers.hall, offer, caller, parts, body).await);
    }
    let others = method::overrides(&parts.headers, parts.uri.query()).map_err(|bad| malformed(&bad))?;
    let wishes = Wishes::of(&parts.headers).map_err(|bad| malformed(&bad))?;
    let only_reads = offer.passes(&parts.method)
        && others.iter().all(is_safe)
        && graphql::url_only_asks(&place.path, parts.uri.query());
    if only_reads && !wishes.dry_run {
        let credential = parts.extensions.get::<Credential>().unwrap_or(&Credential::None);
        offers.hall.passed_through(credential.tenant(), counts::Door::Http);
        let headers = headers::upward(parts.headers, offer);
        let outgoing = Outgoing { method: parts.method, uri: place.uri, headers, body: Payload::from(body) };
        return Ok(relay(offer, outgoing).await);
    }
    let came = offers.hall.clock.elapsed();
    let caller = caller(offers.hall.secret(), offer.run.as_ref(), &mut parts)?;
    let body = whole_body(&parts.headers, body, BODY_BYTES_MAX).await?;
    let arguments = Arguments::read(&place.path, parts.uri.query(), &parts.headers, &body);
    let arguments = arguments.map_err(|bad| malformed(&NotUnderstood::from(bad)))?;
    let asked =
        Asked { method: &parts.method, others, path: &place.path, arguments, headers: &parts.headers };
    let understood = intent::understand(&offers.hall.policy, offer, asked).map_err(|bad| malformed(&bad))?;
    let taken =
        Taken { offer, place, caller, wishes, headers: parts.headers, method: parts.method, body, came };
    decide_way(&offers.hall, taken, understood).await
}

/// A request that was read whole.
struct Taken<'a> {
    offer: &'a Arc<Offer>,
    place: Place,
    caller: Caller,
    wishes: Wishes,
    headers: HeaderMap,
    method: Method,
    body: Bytes,
    came: Duration,
}

/// Passes, is answered as a dry run, or goes through the gate.
async fn decide_way(hall: &Arc<Hall>, taken: Taken<'_>, understood: Understood) -> Result<Response, Refused> {
    let Taken { offer, place, caller, wishes, headers, method, body, came } = taken;
    let headers = headers::upward(headers, offer);
    let reads = understood.rule.class == Class::Read;
    if reads && !wishes.dry_run {
        hall.passed_through(&caller.tenant, counts::Door::Http);
        let outgoing = Outgoing { method, uri: place.uri, headers, body: Payload::from(body) };
        return Ok(relay(offer, outgoing).await);
    }
    let gate = match &hall.gate {
        Ok(gate) => gate,
        Err(_) if hall.observes() && !wishes.dry_run => {
            let outgoing = Outgoing { method, uri: place.uri, headers, body: Payload::from(body) };
            return Ok(relay(offer, outgoing).await);
        }
        Err(why) => return Err(trouble(&understood.rule, offer, wording::ledger_unavailable(why))),
    };
    if offer.keys.required && understood.key.is_none() && !reads && !hall.observes() {
        let wanted = wording::key_header_required(&offer.keys.header);
        return Err(trouble(&understood.rule, offer, wanted));
    }
    let intent = intent::intent(&understood, offer, &caller, &wishes, gate.ledger.secret());
    let mut intent = match intent {
        Ok(intent) => intent,
        Err(_) if hall.observes() && !wishes.dry_run => {
            let outgoing = Outgoing { method, uri: place.uri, headers, body: Payload::from(body) };
            return Ok(relay(offer, outgoing).await);
        }
        Err(missing) => return Err(trouble(&understood.rule, offer, wording::key_required(&missing))),
    };
    intent.beside = beside(&headers);
    // Whoever asks for a dry run must not get the effect, whatever the mode.
    if wishes.dry_run {
        let answered = gate.dry_run(&intent, &understood.rule).await;
        let answer = answered.map_err(|error| {
            trouble(&understood.rule, offer, wording::ledger_unavailable(&error.to_string()))
        })?;
        return Ok(render::answer(&answer, offer, None));
    }
    if hall.observes() {
        hall.passed_through(&caller.tenant, counts::Door::Http);
        let (hall, working) = (Arc::clone(hall), hall.busy.begin());
        // The request itself does not wait for it.
        tokio::spawn(async move {
            if let Ok(gate) = &hall.gate {
                gate.observed(&intent, &understood.rule).await;
            }
            drop(working);
        });
        let outgoing = Outgoing { method, uri: place.uri, headers, body: Payload::from(body) };
        return Ok(relay(offer, outgoing).await);
    }
    let guarded = Guarded {
        hall: Arc::clone(hall),
        offer: Arc::clone(offer),
        method,
        uri: place.uri,
        path: place.path,
        headers,
        body,
        understood,
        intent,
        came,
    };
    Ok(guard::guard(guarded).await)
}

/// What is no request to an API is not made one.
fn is_a_request(parts: &Parts) -> Result<(), Refused> {
    if matches!(parts.method, Method::TRACE | Method::CONNECT) {
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "TRACE and CONNECT are not passed on"));
    }
    // Some clients offer HTTP/2 with every request, and do not mind that it is not taken.
    let offers_http2 = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"h2c");
    match parts.headers.get_all(UPGRADE).iter().all(offers_http2) {
        true => Ok(()),
        false => Err(refuse(StatusCode::BAD_REQUEST, "connections are not upgraded")),
    }
}

/// The body, if it has at most so many bytes.
pub async fn whole_body(headers: &HeaderMap, body: Body, max: usize) -> Result<Bytes, Refused> {
    let waits_for_word = headers.contains_key(EXPECT);
    let mut body = body;
    match body::read(&mut body, max, PAUSE_MAX).await {
        Ok(bytes) => Ok(bytes),
        Err(error @ Unreadable::TooLarge(_)) => {
            if !waits_for_word {
                tokio::spawn(drain(body));
            }
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &format!("{error}; nothing was sent")))
        }
        Err(error @ Unreadable::Stalled) => {
            Err(refuse(StatusCode::REQUEST_TIMEOUT, &format!("{error}; nothing was sent")))
        }
        Err(error @ Unreadable::Broken(_)) => Err(malformed(&error)),
    }
}

/// A client that is still sending reads its refusal only if what it sends is taken.
async fn drain(body: Body) {
    const BYTES_MAX: usize = 64 * 1024 * 1024;
    const TIME_MAX: Duration = Duration::from_secs(10);
    let draining = async {
        let mut body = std::pin::pin!(body);
        let mut taken = 0;
        while let Ok(Some(data)) = body::next(&mut body, TIME_MAX).await {
            taken += data.len();
            if taken > BYTES_MAX {
                break;
            }
        }
    };
    let _enough = tokio::time::timeout(TIME_MAX, draining).await;
}

fn refuse(status: StatusCode, detail: &str) -> Refused {
    Box::new(problem(status, detail))
}

fn malformed(bad: &dyn std::fmt::Display) -> Refused {
    refuse(StatusCode::BAD_REQUEST, &format!("{bad}; nothing was sent"))
}

fn trouble(rule: &Rule, offer: &Offer, trouble: Trouble) -> Refused {
    let answer = Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble);
    Box::new(render::answer(&answer, offer, None))
}
