//! From a request at `/p/NAME/…` to its answer.

use super::arguments::Arguments;
use super::dry_run;
use super::graphql;
use super::guard::{self, Guarded};
use super::headers;
use super::intent::{self, Asked, NotUnderstood, Understood};
use super::method::{self, is_safe};
use super::observe::Observed;
use super::offer::Offer;
use super::path::{self, Place};
use super::refused::{Refused, malformed, refuse, trouble};
use super::relay::{Outgoing, relay};
use super::render;
use super::take::{self, Intake, Whole};
use crate::caller::Caller;
use crate::hall::Hall;
use crate::http::beside;
use crate::http::client::Payload;
use crate::http::headers::without_named;
use crate::http::server::{Credential, caller};
use crate::llm::{self, STEP};
use crate::wishes::Wishes;
use axum::body::Body;
use axum::response::Response;
use http::header::{EXPECT, UPGRADE};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body::Body as _;
use semel_core::class::Class;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::counts;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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

pub async fn serve(offers: &Offers, parts: Parts, mut body: Body) -> Response {
    // Whoever waits for a word before it sends its body is not made to send it in vain.
    let waits = parts.headers.contains_key(EXPECT);
    match answer(offers, parts, &mut body).await {
        Ok(response) => response,
        Err(refused) => {
            if !waits {
                take::drain(body);
            }
            *refused
        }
    }
}

async fn answer(offers: &Offers, mut parts: Parts, body: &mut Body) -> Result<Response, Refused> {
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
    // The upstream will not see it, so nothing is decided by it.
    without_named(&mut parts.headers);
    if llm::is_generation(offer, &parts.method, parts.uri.path()) {
        let caller = caller(offers.hall.secret(), offer.run.as_ref(), &mut parts)?;
        let body = std::mem::take(body);
        return Ok(Box::pin(llm::serve::answer(&offers.hall, offer, caller, parts, body)).await);
    }
    let mut others = method::overrides(&parts.headers, parts.uri.query()).map_err(|bad| malformed(&bad))?;
    if let Some(name) = method::leads_elsewhere(&parts.headers) {
        return Err(malformed(&format!("{name} names another address than the request's own")));
    }
    let wishes = Wishes::of(&parts.headers).map_err(|bad| malformed(&bad))?;
    if parts.headers.contains_key(STEP) {
        let why = "Semel-Step names an answer of a model, and this is none; Idempotency-Key names a request";
        return Err(malformed(&why));
    }
    if !graphql::url_only_asks(&place.path, parts.uri.query()) {
        others.push(Method::POST);
    }
    if parts.method == Method::HEAD {
        // Most frameworks do for it what they do for GET, and leave out the body.
        others.push(Method::GET);
    }
    // A body may say what neither the method nor the address does, so it is looked at first.
    let only_reads = offer.passes(&parts.method) && others.iter().all(is_safe) && body.is_end_stream();
    if only_reads && !wishes.dry_run {
        let credential = parts.extensions.get::<Credential>().unwrap_or(&Credential::None);
        offers.hall.passed_through(credential.tenant(), counts::Door::Http);
        let headers = headers::upward(parts.headers, offer);
        let body = Payload::from(std::mem::take(body));
        return Ok(relay(offer, Outgoing { method: parts.method, uri: place.uri, headers, body }).await);
    }
    // Boxed, so that a request that only passes is small.
    Box::pin(looked_into(offers, offer, Arrived { parts, place, others, wishes }, body)).await
}

/// A request that may change something, before its body was read.
struct Arrived {
    parts: Parts,
    place: Place,
    /// The methods that it names besides its own.
    others: Vec<Method>,
    wishes: Wishes,
}

async fn looked_into(
    offers: &Offers,
    offer: &Arc<Offer>,
    arrived: Arrived,
    body: &mut Body,
) -> Result<Response, Refused> {
    let Arrived { mut parts, place, others, wishes } = arrived;
    let came = offers.hall.clock.elapsed();
    let caller = caller(offers.hall.secret(), offer.run.as_ref(), &mut parts)?;
    // Whoever asks for a dry run must not get the effect, whatever the mode.
    if offers.hall.observes() && !wishes.dry_run {
        let Offers { hall, intake, .. } = offers;
        let observed = Observed { hall, intake, offer, caller, wishes, others, place, parts };
        return Box::pin(observed.pass(body)).await;
    }
    let whole = offers.intake.whole(&caller, body).await.map_err(|part| take::not_whole(&part.why))?;
    let arguments = Arguments::read(&place, parts.uri.query(), &parts.headers, &whole.bytes);
    let arguments = arguments.map_err(|bad| malformed(&NotUnderstood::from(bad)))?;
    let asked =
        Asked { method: &parts.method, others, path: &place.path, arguments, headers: &parts.headers };
    let understood = intent::understand(&offers.hall.policy, offer, asked).map_err(|bad| malformed(&bad))?;
    Taken { hall: &offers.hall, offer, place, caller, wishes, parts, whole, came }.answer(understood).await
}

/// A request that was read whole.
struct Taken<'a> {
    hall: &'a Arc<Hall>,
    offer: &'a Arc<Offer>,
    place: Place,
    caller: Caller,
    wishes: Wishes,
    parts: Parts,
    whole: Whole,
    /// When it came, on the monotonic clock.
    came: Duration,
}

impl Taken<'_> {
    /// Passes, is answered as a dry run, or goes through the gate.
    async fn answer(self, understood: Understood) -> Result<Response, Refused> {
        let Taken { hall, offer, place, caller, wishes, parts, whole, came } = self;
        let reads = understood.rule.class == Class::Read;
        if reads && !wishes.dry_run {
            hall.passed_through(&caller.tenant, counts::Door::Http);
            let headers = headers::upward(parts.headers, offer);
            let body = Payload::from(whole.bytes);
            let outgoing = Outgoing { method: parts.method, uri: place.uri, headers, body };
            return Ok(Box::pin(relay(offer, outgoing)).await);
        }
        let refuse = |what| trouble(&understood.rule, offer, what);
        let gate = hall.gate.as_ref().map_err(|why| refuse(wording::ledger_unavailable(why)))?;
        if offer.keys.required && understood.key.is_none() && !reads {
            return Err(refuse(wording::key_header_required(&offer.keys.header)));
        }
        let secret = gate.ledger.secret();
        let intent = intent::intent(&understood, offer, &caller, &wishes, &parts.headers, secret);
        let mut intent = intent.map_err(|missing| refuse(wording::key_required(&missing)))?;
        intent.beside = beside(&parts.headers, understood.key.is_some());
        let guarded = Arc::new(Guarded {
            hall: Arc::clone(hall),
            offer: Arc::clone(offer),
            method: parts.method,
            uri: place.uri,
            path: place.path,
            headers: headers::upward(parts.headers, offer),
            body: whole.bytes,
            turn: whole.turn,
            understood,
            intent,
            came,
            token: caller.token,
            sent: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        });
        if !wishes.dry_run {
            return Ok(guard::guard(guarded).await);
        }
        match Box::pin(dry_run::answer(gate, &guarded)).await {
            Ok(answer) => Ok(render::answer(&answer, offer, None)),
            Err(error) => {
                let what = wording::ledger_unavailable(&error.to_string());
                Err(trouble(&guarded.understood.rule, offer, what))
            }
        }
    }
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
