//! What becomes of a request: decided from its head where that is enough, and else once its body was read. Nothing here
//! waits but for the body, so that whatever is decided with lies nowhere while an upstream is waited for.

use super::arguments::Arguments;
use super::graphql;
use super::guard::Guarded;
use super::headers;
use super::intent::{self, Asked, NotUnderstood, Understood};
use super::method::{self, is_safe};
use super::observe::Observed;
use super::offer::Offer;
use super::path::{self, Place};
use super::refused::{Refused, malformed, refuse, trouble};
use super::relay::outgoing;
use super::serve::{Offers, nothing_here};
use super::take::{self, Whole};
use crate::call_options::CallOptions;
use crate::caller::Caller;
use crate::http::call_metadata;
use crate::http::client::{Client, Payload};
use crate::http::headers::{named, without_named};
use crate::http::large_body_permits::LargeBodyPermit;
use crate::http::server::{Credential, caller};
use crate::llm::{self, STEP};
use axum::body::Body;
use bytes::Bytes;
use http::header::UPGRADE;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use semel_core::class::Class;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::counts;
use std::sync::Arc;
use std::time::Duration;

/// Where a request goes.
#[derive(Debug)]
pub enum Way<'a> {
    /// On to its upstream: it changes nothing.
    Passes(Box<Passing<'a>>),
    /// To a model.
    Generates(Generation<'a>),
    /// On to its upstream, and what would have been decided into the journal.
    IsObserved(Box<Observed<'a>>),
    /// Through the gate.
    IsGuarded(Arc<Guarded>),
    /// Nowhere: it is told what it would do.
    IsDryRun(Arc<Guarded>),
}

/// A request that passes as it came.
#[derive(Debug)]
pub struct Passing<'a> {
    pub offer: &'a Offer,
    /// To the upstream, for its caller.
    pub client: Client,
    pub outgoing: Request<Payload>,
    /// Held until it is answered, if it is large.
    pub permit: Option<LargeBodyPermit>,
}

/// A request for an answer of a model.
#[derive(Debug)]
pub struct Generation<'a> {
    pub offer: &'a Arc<Offer>,
    pub caller: Caller,
    pub parts: Box<Parts>,
}

/// A request whose head was read.
#[derive(Debug)]
pub enum Arrived<'a> {
    Known(Way<'a>),
    Unread(Box<Unread<'a>>),
}

/// A request that may change something, before its body was read.
#[derive(Debug)]
pub struct Unread<'a> {
    offers: &'a Offers,
    offer: &'a Arc<Offer>,
    parts: Parts,
    place: Place,
    /// The methods that it names besides its own.
    others: Vec<Method>,
    options: CallOptions,
    caller: Caller,
    /// When it came, on the monotonic clock.
    came: Duration,
}

/// Where a request goes, as far as its head says.
pub fn arrive<'a>(offers: &'a Offers, mut parts: Parts, body: &mut Body) -> Result<Arrived<'a>, Refused> {
    let whole = parts.uri.path_and_query().map_or("", |whole| whole.as_str());
    let known = path::split(whole).and_then(|(name, rest)| Some((offers.by_name.get(name)?, rest)));
    let Some((offer, rest)) = known else {
        return Err(refuse(StatusCode::NOT_FOUND, &nothing_here(offers.by_name.keys())));
    };
    let place = Place::at(&offer.base, rest).map_err(|bad| malformed(&bad))?;
    is_a_request(&parts)?;
    if let Some(own) = named(&parts.headers).find(|name| name.as_str().starts_with(headers::OWN)) {
        return Err(malformed(&format!("Connection names {own}, which is for semel itself")));
    }
    // The upstream will not see it, so nothing is decided by it.
    without_named(&mut parts.headers);
    let hall = &offers.hall;
    if llm::is_generation(offer, &parts.method, parts.uri.path()) {
        let caller = caller(hall.secret(), offer.run.as_ref(), &mut parts)?;
        let generation = Generation { offer, caller, parts: Box::new(parts) };
        return Ok(Arrived::Known(Way::Generates(generation)));
    }
    let mut others = method::overrides(&parts.headers, parts.uri.query()).map_err(|bad| malformed(&bad))?;
    if let Some(name) = method::leads_elsewhere(&parts.headers) {
        return Err(malformed(&format!("{name} names another address than the request's own")));
    }
    let options = CallOptions::of(&parts.headers).map_err(|bad| malformed(&bad))?;
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
    if only_reads && !options.dry_run {
        let credential = parts.extensions.get::<Credential>().unwrap_or(&Credential::None);
        hall.passed_through(credential.tenant(), counts::DoorKind::Http);
        let client = offer.client.for_principal(&credential.whose(hall.secret()));
        let headers = headers::upward(parts.headers, offer);
        let outgoing = outgoing(parts.method, place.uri, headers, Bytes::new());
        return Ok(Arrived::Known(Way::Passes(Box::new(Passing { offer, client, outgoing, permit: None }))));
    }
    let came = hall.clock.elapsed();
    let caller = caller(hall.secret(), offer.run.as_ref(), &mut parts)?;
    // Whoever asks for a dry run must not get the effect, whatever the mode.
    if hall.observes() && !options.dry_run {
        let intake = &offers.intake;
        let observed = Observed { hall, intake, offer, caller, options, others, place, parts };
        return Ok(Arrived::Known(Way::IsObserved(Box::new(observed))));
    }
    Ok(Arrived::Unread(Box::new(Unread { offers, offer, parts, place, others, options, caller, came })))
}

impl<'a> Unread<'a> {
    /// Where it goes, once all of it was read.
    pub async fn read(mut self: Box<Self>, body: &mut Body) -> Result<Way<'a>, Refused> {
        let whole = self.offers.intake.whole(&self.caller, body).await;
        let whole = whole.map_err(|part| take::not_whole(&part.why))?;
        let understood = self.understand(&whole)?;
        self.way(whole, understood)
    }

    fn understand(&mut self, whole: &Whole) -> Result<Understood, Refused> {
        let Unread { offers, offer, parts, place, others, .. } = self;
        let arguments = Arguments::read(place, parts.uri.query(), &parts.headers, &whole.bytes);
        let arguments = arguments.map_err(|bad| malformed(&NotUnderstood::from(bad)))?;
        let (method, others, headers) = (&parts.method, std::mem::take(others), &parts.headers);
        let asked = Asked { method, others, path: &place.path, arguments, headers };
        intent::understand(&offers.hall.policy, offer, asked).map_err(|bad| malformed(&bad))
    }

    fn way(self: Box<Self>, whole: Whole, understood: Understood) -> Result<Way<'a>, Refused> {
        let Unread { offers, offer, parts, place, options, caller, came, .. } = *self;
        let hall = &offers.hall;
        let reads = understood.rule.class == Class::Read;
        if reads && !options.dry_run {
            hall.passed_through(&caller.tenant, counts::DoorKind::Http);
            let headers = headers::upward(parts.headers, offer);
            let outgoing = outgoing(parts.method, place.uri, headers, whole.bytes);
            let client = offer.client.for_principal(&caller.whose());
            return Ok(Way::Passes(Box::new(Passing { offer, client, outgoing, permit: whole.turn })));
        }
        let refuse = |what| trouble(&understood.rule, offer, what);
        let gate = hall.gate.as_ref().map_err(|why| refuse(wording::ledger_unavailable(why)))?;
        if offer.keys.required && understood.key.is_none() && !reads {
            return Err(refuse(wording::key_header_required(&offer.keys.header)));
        }
        let secret = gate.ledger.secret();
        let intent = intent::intent(&understood, offer, &caller, &options, &parts.headers, secret);
        let mut intent = intent.map_err(|missing| refuse(wording::key_required(&missing)))?;
        intent.metadata = call_metadata(&parts.headers);
        intent.says_in_full = understood.arguments.says_in_full();
        let guarded = Arc::new(Guarded {
            hall: Arc::clone(hall),
            offer: Arc::clone(offer),
            client: offer.client.for_principal(&caller.whose()),
            method: parts.method,
            uri: place.uri,
            path: place.path,
            headers: headers::guarded(parts.headers, offer),
            body: whole.bytes,
            turn: whole.turn,
            understood,
            intent,
            came,
            token: caller.token,
        });
        Ok(if options.dry_run { Way::IsDryRun(guarded) } else { Way::IsGuarded(guarded) })
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
