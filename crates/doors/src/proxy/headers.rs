//! Which headers go up, and which come back.

use super::offer::Offer;
use crate::http::headers::{self, end_to_end};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use semel_core::policy::upstreams::CREDENTIALS;

/// Headers for semel, or from it, begin with this.
pub const OWN: &str = "semel-";

/// The headers of a request as its upstream gets them.
pub fn upward(mut headers: HeaderMap, offer: &Offer) -> HeaderMap {
    end_to_end(&mut headers);
    remove(&mut headers, |name| name.starts_with(OWN));
    headers::remove(&mut headers, &header::EXPECT);
    // Which pages may ask was decided here.
    headers::remove(&mut headers, &header::ORIGIN);
    headers.insert(header::HOST, offer.host.clone());
    if offer.injects_credentials {
        for name in CREDENTIALS {
            headers.remove(name);
        }
        headers.remove(header::COOKIE);
    }
    for (name, value) in &offer.headers {
        headers.insert(name.clone(), value.clone());
    }
    headers
}

/// The same of a request whose answer is read here: a compressed one could be given to a client that cannot read it,
/// and hides what must not be kept.
pub fn guarded(headers: HeaderMap, offer: &Offer) -> HeaderMap {
    let mut headers = upward(headers, offer);
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// The headers of an answer as the client gets them.
pub fn downward(mut headers: HeaderMap, status: StatusCode, offer: &Offer) -> HeaderMap {
    end_to_end(&mut headers);
    // The upstream's permissions for pages are not meant for those that ask here.
    remove(&mut headers, |name| name.starts_with(OWN) || name.starts_with("access-control-"));
    if status.is_redirection()
        && let Some(inside) = headers.get(header::LOCATION).and_then(|told| location(told, offer))
    {
        headers.insert(header::LOCATION, inside);
    }
    headers
}

/// Takes away where a redirect leads, if it leads around semel: many clients send the same request there at once, with
/// all of its headers.
pub fn keep_inside(headers: &mut HeaderMap, status: StatusCode, offer: &Offer) -> Option<String> {
    let own = format!("/p/{}/", offer.name);
    let leads_out = |told: &HeaderValue| !told.as_bytes().starts_with(own.as_bytes());
    if !status.is_redirection() || !headers.get(header::LOCATION).is_some_and(leads_out) {
        return None;
    }
    let told = headers.remove(header::LOCATION)?;
    Some(String::from_utf8_lossy(told.as_bytes()).into_owned())
}

/// Whether a body is what its type says, and not a compressed form of it.
pub fn is_read_as_it_is(headers: &HeaderMap) -> bool {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    headers.get_all(header::CONTENT_ENCODING).iter().all(plain)
}

fn remove(headers: &mut HeaderMap, is_meant: impl Fn(&str) -> bool) {
    let meant: Vec<HeaderName> = headers.keys().filter(|name| is_meant(name.as_str())).cloned().collect();
    for name in meant {
        headers.remove(name);
    }
}

/// A redirect within the upstream leads through semel. Any other stays what it is.
fn location(location: &HeaderValue, offer: &Offer) -> Option<HeaderValue> {
    let text = location.to_str().ok()?;
    let uri = offer.client.target().uri();
    let own = format!("{}://{}", uri.scheme_str()?, offer.client.target().authority());
    let path = match text.strip_prefix(&own) {
        Some("") => "/",
        Some(rest) => rest,
        None => text,
    };
    let inside = path.starts_with('/') && !path.starts_with("//");
    let rest = path.strip_prefix(offer.base.as_str()).filter(|rest| inside && rest.starts_with('/'))?;
    HeaderValue::from_str(&format!("/p/{}{rest}", offer.name)).ok()
}
