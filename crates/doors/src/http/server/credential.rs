//! The credential that lets a request in, and whose it therefore is.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};
use semel_core::digest::Secret;
use semel_core::policy::upstreams::CREDENTIALS;
use semel_core::redact::is_secret_name;
use semel_ledger::tokens::AccessScope;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;

/// The tenant of a machine's own ledger, and the principal of its operator.
pub const LOCAL: &str = "local";

/// Headers in which clients show an upstream who they are.
pub(super) const UPSTREAM_CREDENTIALS: [HeaderName; 4] = [
    header::AUTHORIZATION,
    HeaderName::from_static(CREDENTIALS[1]),
    HeaderName::from_static(CREDENTIALS[2]),
    HeaderName::from_static(CREDENTIALS[3]),
];

/// Cookies change from answer to answer (load balancers, sessions), and a caller must stay who it is; keys of requests
/// and tokens against forgery are made anew for each call.
pub fn is_no_credential(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "cookie" || name.contains("csrf") || name.contains("xsrf") || name.contains("idempotency")
}

/// Whose token it is, and what it may do at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub tenant: String,
    pub subject: String,
    pub scope: AccessScope,
}

/// Stands among a request's extensions. What the request may do stands there too, as a [`AccessScope`]; one that was let in
/// to a single upstream, by that upstream's own credential, has none.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A token of semel's own.
    Holder(Holder),
    /// None of semel's: this is meant for the upstream.
    Passed(Vec<u8>),
    /// None at all, where none is asked for.
    None,
}

impl Credential {
    /// A credential for an upstream that checks it itself.
    pub fn passed(headers: &HeaderMap) -> Option<Credential> {
        let shows = |name| headers.get(name).is_some_and(|value| !value.is_empty());
        UPSTREAM_CREDENTIALS.iter().any(shows).then(|| Credential::Passed(shown(headers)))
    }

    /// From the credential, never from a header or body.
    pub fn tenant(&self) -> &str {
        match self {
            Credential::Holder(holder) => &holder.tenant,
            Credential::Passed(_) | Credential::None => LOCAL,
        }
    }

    /// A name that two credentials have only if they are the same principal's; as [`Caller::whose`] says it, where
    /// there is a ledger.
    ///
    /// [`Caller::whose`]: crate::caller::Caller::whose
    pub fn whose(&self, secret: Option<&Secret>) -> String {
        match (self, secret) {
            (Credential::Passed(bytes), None) => format!("{:x?}", Sha256::digest(bytes)),
            _ => format!("{}/{}", self.tenant(), self.principal(secret)),
        }
    }

    /// Without a ledger there is no secret; then nothing is recorded, and so nothing is anybody's.
    pub fn principal(&self, secret: Option<&Secret>) -> String {
        match (self, secret) {
            (Credential::Holder(holder), _) => holder.subject.clone(),
            (Credential::Passed(bytes), Some(secret)) => secret.mac("principal", &[bytes]).to_string(),
            (Credential::Passed(_), None) | (Credential::None, _) => LOCAL.to_owned(),
        }
    }
}

/// The credentials that a request shows to its upstream: all of them, because the upstream chooses which of several it
/// believes. Empty: it shows nothing.
pub fn shown(headers: &HeaderMap) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in UPSTREAM_CREDENTIALS {
        let Some(value) = headers.get(&name).filter(|value| !value.is_empty()) else { continue };
        if name != header::AUTHORIZATION {
            bytes.push(b'\n');
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.push(b':');
        }
        bytes.extend_from_slice(&lasting(value));
    }
    // Beside a key that many share, other headers may say whose call it is: `X-Auth-Token`, `Private-Token`, …
    let mut others: Vec<(&HeaderName, &HeaderValue)> = headers
        .iter()
        .filter(|(name, _)| !UPSTREAM_CREDENTIALS.contains(name) && !is_no_credential(name))
        .filter(|(name, _)| is_secret_name(name.as_str()) || name.as_str().ends_with("-auth"))
        .filter(|(name, _)| !name.as_str().contains("signature"))
        .collect();
    others.sort_by(|a, b| (a.0.as_str(), a.1.as_bytes()).cmp(&(b.0.as_str(), b.1.as_bytes())));
    for (name, value) in others {
        bytes.push(b'\n');
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.push(b':');
        bytes.extend_from_slice(value.as_bytes());
    }
    bytes
}

/// Schemes that sign each request: whose it is stands beside the signature.
const SIGNING: [&str; 5] = ["aws4-hmac-sha256", "oauth", "digest", "hawk", "signature"];

/// The parameters of those that stay the same from request to request.
const LASTING: [&str; 8] =
    ["credential", "oauth_consumer_key", "oauth_token", "username", "realm", "id", "keyid", "app"];

/// Schemes whose case clients do not agree on, as most of them write it.
const SPELT: [&str; 4] = ["Bearer", "Basic", "Token", "Bot"];

/// The part of a credential that stays the same from request to request.
fn lasting(value: &HeaderValue) -> Cow<'_, [u8]> {
    let signed = value.to_str().ok().and_then(|text| text.split_once(' '));
    let Some((scheme, parameters)) = signed else { return Cow::Borrowed(value.as_bytes()) };
    if let Some(spelt) = SPELT.iter().find(|known| scheme.eq_ignore_ascii_case(known)) {
        return Cow::Owned(format!("{spelt} {}", parameters.trim_start()).into_bytes());
    }
    if !SIGNING.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Cow::Borrowed(value.as_bytes());
    }
    let mut kept = scheme.to_ascii_lowercase();
    for (name, value) in parameters.split(',').filter_map(|pair| pair.trim().split_once('=')) {
        if LASTING.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            // Behind the key of AWS stand the day, the region and the service.
            let value = if name.eq_ignore_ascii_case("credential") { before_slash(value) } else { value };
            kept.push_str(&format!(" {}={value}", name.to_ascii_lowercase()));
        }
    }
    Cow::Owned(kept.into_bytes())
}

fn before_slash(value: &str) -> &str {
    value.split('/').next().unwrap_or(value)
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Holder(holder) => holder.fmt(f),
            Credential::Passed(_) => f.write_str("Passed(…)"),
            Credential::None => f.write_str("None"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(headers: &[(&'static str, &str)]) -> Option<Credential> {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        Credential::passed(&headers.collect())
    }

    #[test]
    fn a_placeholder_in_one_header_does_not_hide_the_key_in_another() {
        let dummy = ("authorization", "Bearer dummy");
        let (alice, bob) = (passed(&[dummy, ("x-api-key", "a")]), passed(&[dummy, ("x-api-key", "b")]));
        assert!(alice.is_some() && alice != bob && alice != passed(&[dummy]));
        assert_ne!(passed(&[("x-api-key", "a")]), passed(&[("api-key", "a")]));
        assert_ne!(passed(&[("x-api-key", "a")]), passed(&[("authorization", "a")]));
        assert_eq!(passed(&[("authorization", ""), ("cookie", "a")]), None);
        let key = ("x-api-key", "public-app");
        assert_ne!(passed(&[key, ("x-auth-token", "alice")]), passed(&[key, ("x-auth-token", "bob")]));
        assert_eq!(passed(&[key, ("cookie", "lb=1")]), passed(&[key, ("cookie", "lb=2")]));
        assert_eq!(passed(&[key, ("x-csrf-token", "1")]), passed(&[key, ("x-csrf-token", "2")]));
    }

    #[test]
    fn the_case_of_a_scheme_is_nobody_else() {
        let of = |value: &str| passed(&[("authorization", value)]);
        assert_eq!(of("bearer Key"), of("Bearer Key"));
        assert_eq!(of("BASIC  Key"), of("Basic Key"));
        assert_ne!(of("Bearer key"), of("Bearer Key"));
        assert_ne!(of("Basic Key"), of("Bearer Key"));
    }

    #[test]
    fn who_signs_each_request_anew_stays_who_it_is() {
        let aws = |key: &str, signature: &str| {
            let value = format!(
                "AWS4-HMAC-SHA256 Credential={key}/20261115/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature={signature}"
            );
            passed(&[("authorization", &value), ("x-signature", signature)])
        };
        assert_eq!(aws("AKIA1", "aa"), aws("AKIA1", "bb"));
        assert_ne!(aws("AKIA1", "aa"), aws("AKIA2", "aa"));
        let oauth = |token: &str, nonce: &str| {
            let value = format!("OAuth oauth_token=\"{token}\", oauth_nonce=\"{nonce}\"");
            passed(&[("authorization", &value)])
        };
        assert_eq!(oauth("a", "1"), oauth("a", "2"));
        assert_ne!(oauth("a", "1"), oauth("b", "1"));
        assert_ne!(
            passed(&[("authorization", "Bearer a b=1")]),
            passed(&[("authorization", "Bearer a b=2")])
        );
    }

    #[test]
    fn a_credential_is_shown_to_an_upstream_under_whatever_name() {
        let of = |name: &'static str, value: &str| {
            shown(&HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]))
        };
        for name in ["private-token", "helicone-auth", "x-portkey-virtual-key"] {
            assert_ne!(of(name, "a"), of(name, "b"), "{name}");
        }
        assert_eq!(of("x-trace", "a"), b"");
    }

    #[test]
    fn nothing_of_a_credential_is_shown() {
        let shown = format!("{:?}", passed(&[("authorization", "Bearer hunter2")]));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
