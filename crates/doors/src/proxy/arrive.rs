//! The way of a request: decided from its head where that is enough, and else once its body was read. Nothing here
//! waits but for the body, so that whatever is decided with lies nowhere while an upstream is waited for.

use super::arguments::Arguments;
use super::graphql;
use super::guarded::GuardedRequest;
use super::headers;
use super::intake::{self, WholeBody};
use super::intent::{self, BadRequest, RequestFacts, UnderstoodRequest};
use super::method::{self, is_safe};
use super::observe::ObservedRequest;
use super::offer::Offer;
use super::offers::Offers;
use super::opened::OpenedRequest;
use super::path::UpstreamPath;
use super::refusal::{RefusalResponse, malformed, trouble};
use super::relay::outgoing;
use crate::call_options::{CallOptions, STEP};
use crate::caller::Caller;
use crate::http::call_metadata;
use crate::http::client::{Client, Payload};
use crate::http::large_body_permits::LargeBodyPermit;
use crate::http::server::{Credential, caller};
use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use http_body::Body as _;
use semel_core::class::Class;
use semel_core::wording;
use semel_gate::clock::Clock;
use semel_gate::counts;
use std::sync::Arc;
use std::time::Duration;

/// Where a request goes.
#[derive(Debug)]
pub enum RequestRoute<'a> {
    /// On to its upstream: it changes nothing.
    PassThrough(Box<PassThrough<'a>>),
    /// On to its upstream, and what would have been decided into the journal.
    Observe(Box<ObservedRequest<'a>>),
    /// Through the gate.
    Guard(Arc<GuardedRequest>),
    /// Nowhere: it is told what it would do.
    DryRun(Arc<GuardedRequest>),
}

/// A request that passes as it came.
#[derive(Debug)]
pub struct PassThrough<'a> {
    pub offer: &'a Offer,
    /// To the upstream, for its caller.
    pub client: Client,
    pub outgoing: Request<Payload>,
    /// Held until it is answered, if it is large.
    pub permit: Option<LargeBodyPermit>,
}

/// A request whose head was read.
#[derive(Debug)]
pub enum HeadOutcome<'a> {
    Known(RequestRoute<'a>),
    UnreadRequest(Box<UnreadRequest<'a>>),
}

/// A request that may change something, before its body was read.
#[derive(Debug)]
pub struct UnreadRequest<'a> {
    offers: &'a Offers,
    offer: &'a Arc<Offer>,
    parts: Parts,
    place: UpstreamPath,
    /// The methods that it names besides its own.
    others: Vec<Method>,
    options: CallOptions,
    caller: Caller,
    /// When it came, on the monotonic clock.
    received_at: Duration,
}

/// Where a request goes, as far as its head says.
pub fn arrive<'a>(
    offers: &'a Offers,
    opened: OpenedRequest<'a>,
    body: &mut Body,
) -> Result<HeadOutcome<'a>, RefusalResponse> {
    let services = &offers.services;
    let OpenedRequest { offer, place, mut parts } = opened;
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
        services.passed_through(credential.tenant(), counts::DoorKind::Http);
        let client = offer.client.for_principal(&credential.whose(services.secret()));
        let headers = headers::upward(parts.headers, offer);
        let outgoing = outgoing(parts.method, place.uri, headers, Bytes::new());
        return Ok(HeadOutcome::Known(RequestRoute::PassThrough(Box::new(PassThrough {
            offer,
            client,
            outgoing,
            permit: None,
        }))));
    }
    let received_at = services.clock.elapsed();
    let caller = caller(services.secret(), offer.run.as_ref(), &mut parts)?;
    // A request for a dry run must not get the effect, whatever the mode.
    if services.observes() && !options.dry_run {
        let intake = &offers.intake;
        let observed = ObservedRequest { services, intake, offer, caller, options, others, place, parts };
        return Ok(HeadOutcome::Known(RequestRoute::Observe(Box::new(observed))));
    }
    Ok(HeadOutcome::UnreadRequest(Box::new(UnreadRequest {
        offers,
        offer,
        parts,
        place,
        others,
        options,
        caller,
        received_at,
    })))
}

impl<'a> UnreadRequest<'a> {
    /// Where it goes, once all of it was read.
    pub async fn read(mut self: Box<Self>, body: &mut Body) -> Result<RequestRoute<'a>, RefusalResponse> {
        let whole = self.offers.intake.whole(&self.caller, body).await;
        let whole = whole.map_err(|part| intake::not_whole(&part.why))?;
        let understood = self.understand(&whole)?;
        self.way(whole, understood)
    }

    fn understand(&mut self, whole: &WholeBody) -> Result<UnderstoodRequest, RefusalResponse> {
        let UnreadRequest { offers, offer, parts, place, others, .. } = self;
        let arguments = Arguments::read(place, parts.uri.query(), &parts.headers, &whole.bytes);
        let arguments = arguments.map_err(|bad| malformed(&BadRequest::from(bad)))?;
        let (method, others, headers) = (&parts.method, std::mem::take(others), &parts.headers);
        let asked = RequestFacts { method, others, path: &place.path, arguments, headers };
        intent::understand(&offers.services.policy, offer, asked).map_err(|bad| malformed(&bad))
    }

    fn way(
        self: Box<Self>,
        whole: WholeBody,
        understood: UnderstoodRequest,
    ) -> Result<RequestRoute<'a>, RefusalResponse> {
        let UnreadRequest { offers, offer, parts, place, options, caller, received_at, .. } = *self;
        let services = &offers.services;
        let reads = understood.rule.class == Class::Read;
        if reads && !options.dry_run {
            services.passed_through(&caller.tenant, counts::DoorKind::Http);
            let headers = headers::upward(parts.headers, offer);
            let outgoing = outgoing(parts.method, place.uri, headers, whole.bytes);
            let client = offer.client.for_principal(&caller.whose());
            return Ok(RequestRoute::PassThrough(Box::new(PassThrough {
                offer,
                client,
                outgoing,
                permit: whole.turn,
            })));
        }
        let refuse = |what| trouble(&understood.rule, offer, what);
        let gate = services.gate.as_ref().map_err(|why| refuse(wording::ledger_unavailable(why)))?;
        if offer.keys.required && understood.key.is_none() && !reads {
            return Err(refuse(wording::key_header_required(&offer.keys.header)));
        }
        let secret = gate.ledger.secret();
        let intent = intent::intent(&understood, offer, &caller, &options, &parts.headers, secret);
        let mut intent = intent.map_err(|missing| refuse(wording::key_required(&missing)))?;
        intent.metadata = call_metadata(&parts.headers);
        intent.says_in_full = understood.arguments.says_in_full();
        let guarded = Arc::new(GuardedRequest {
            services: Arc::clone(services),
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
            received_at,
            token: caller.token,
        });
        Ok(if options.dry_run { RequestRoute::DryRun(guarded) } else { RequestRoute::Guard(guarded) })
    }
}
