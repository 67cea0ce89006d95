//! What a request was let in by, and whose it therefore is.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};
use semel_core::digest::Secret;
use semel_core::identity::is_secret_name;
use semel_core::policy::upstreams::CREDENTIALS;
use semel_ledger::tokens::Scope;
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
    pub scope: Scope,
}

/// Stands among a request's extensions. What the request may do stands there too, as a [`Scope`]; one that was let in
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
    /// What a request shows to its upstream: all of it, because the upstream chooses which of several it believes.
    pub fn passed(headers: &HeaderMap) -> Option<Credential> {
        let mut bytes = Vec::new();
        for name in UPSTREAM_CREDENTIALS {
            let Some(value) = headers.get(&name).filter(|value| !value.is_empty()) else { continue };
            if name != header::AUTHORIZATION {
                bytes.push(b'\n');
                bytes.extend_from_slice(name.as_str().as_bytes());
                bytes.push(b':');
            }
            bytes.extend_from_slice(value.as_bytes());
        }
        if bytes.is_empty() {
            return None;
        }
        // Beside a key that many share, other headers may say whose call it is: `X-Auth-Token`, `Private-Token`, …
        let mut others: Vec<(&HeaderName, &HeaderValue)> = headers
            .iter()
            .filter(|(name, _)| !UPSTREAM_CREDENTIALS.contains(name) && !is_no_credential(name))
            .filter(|(name, _)| is_secret_name(name.as_str()))
            .collect();
        others.sort_by(|a, b| (a.0.as_str(), a.1.as_bytes()).cmp(&(b.0.as_str(), b.1.as_bytes())));
        for (name, value) in others {
            bytes.push(b'\n');
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.push(b':');
            bytes.extend_from_slice(value.as_bytes());
        }
        Some(Credential::Passed(bytes))
    }

    /// From the credential, never from a header or body.
    pub fn tenant(&self) -> &str {
        match self {
            Credential::Holder(holder) => &holder.tenant,
            Credential::Passed(_) | Credential::None => LOCAL,
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
    fn nothing_of_a_credential_is_shown() {
        let shown = format!("{:?}", passed(&[("authorization", "Bearer hunter2")]));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
