//! A request, once its API and its place there are known.

use super::headers;
use super::intake;
use super::offer::Offer;
use super::offers::{Offers, nothing_here};
use super::path::{self, UpstreamPath};
use super::refusal::{RefusalResponse, malformed, refuse};
use crate::http::headers::{named, without_named};
use axum::body::Body;
use axum::response::Response;
use http::header::{EXPECT, UPGRADE};
use http::request::Parts;
use http::{Method, StatusCode};
use std::sync::Arc;

#[derive(Debug)]
pub struct OpenedRequest<'a> {
    pub offer: &'a Arc<Offer>,
    pub place: UpstreamPath,
    pub parts: Parts,
}

/// A request that was refused before its body was read.
#[derive(Debug)]
pub struct EarlyRefusal {
    pub response: RefusalResponse,
    /// Its client waits for a word before it sends its body, and is not made to send it in vain.
    pub waits: bool,
}

impl EarlyRefusal {
    /// The refusal. Most clients read it only once their body was taken.
    pub fn respond(self, body: Body) -> Response {
        if !self.waits {
            intake::drain(body);
        }
        *self.response
    }
}

pub fn open(offers: &Offers, mut parts: Parts) -> Result<OpenedRequest<'_>, EarlyRefusal> {
    match find(offers, &mut parts) {
        Ok((offer, place)) => Ok(OpenedRequest { offer, place, parts }),
        Err(response) => Err(EarlyRefusal { response, waits: parts.headers.contains_key(EXPECT) }),
    }
}

fn find<'a>(
    offers: &'a Offers,
    parts: &mut Parts,
) -> Result<(&'a Arc<Offer>, UpstreamPath), RefusalResponse> {
    let whole = parts.uri.path_and_query().map_or("", |whole| whole.as_str());
    let known = path::split(whole).and_then(|(name, rest)| Some((offers.by_name.get(name)?, rest)));
    let Some((offer, rest)) = known else {
        return Err(refuse(StatusCode::NOT_FOUND, &nothing_here(offers.by_name.keys())));
    };
    let place = UpstreamPath::at(&offer.base, rest).map_err(|bad| malformed(&bad))?;
    is_a_request(parts)?;
    if let Some(own) = named(&parts.headers).find(|name| name.as_str().starts_with(headers::OWN)) {
        return Err(malformed(&format!("Connection names {own}, which is for semel itself")));
    }
    // The upstream will not see it, so nothing is decided by it.
    without_named(&mut parts.headers);
    Ok((offer, place))
}

/// Tunnels and upgrades are no requests to an API.
fn is_a_request(parts: &Parts) -> Result<(), RefusalResponse> {
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
