//! The conditions of admission: the right host, no foreign web page, a credential.

use super::credential::{Credential, UPSTREAM_CREDENTIALS};
use super::keyring::{Keyring, TokenStanding};
use super::problem::problem;
use super::revocable::Revocable;
use axum::response::Response;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use semel_ledger::tokens::AccessScope;
use std::sync::Arc;

/// Carries semel's own token where `Authorization` is meant for the upstream.
pub const OWN_TOKEN: HeaderName = HeaderName::from_static("semel-token");

/// Paths that anyone on an allowed host may ask, without a credential.
pub(super) const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Where those who call tools themselves bring what became of it.
pub(super) const SETTLE: &str = "/api/v1/settle";

/// Names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Deny by default: without a token only what is named here is let in.
#[derive(Debug)]
pub struct Admission {
    /// Host names under which this server may be asked, without ports: a forwarded port is another one.
    pub hosts: Vec<String>,
    /// Web pages that may ask, besides the server's own.
    pub origins: Vec<String>,
    pub keyring: Arc<Keyring>,
    /// `false`: the operator wants no token.
    pub required: bool,
    /// Beginnings of paths at which a request with the upstream's own credential needs no token: it gets nothing there
    /// that it could not get directly.
    pub passing: Vec<String>,
    /// More paths that anyone may ask.
    pub open: Vec<String>,
    /// Beginnings of the paths at which there is something. A request for another path is told so before a credential
    /// is asked for, and goes no further.
    pub rooms: Vec<String>,
    /// The words for that.
    pub nothing_here: String,
    /// Host names that stand for the beginning of a path: some clients take a host and no path.
    pub by_host: Vec<(String, String)>,
}

type AdmissionRefusal = Box<Response>;

impl Admission {
    /// Lets a request in, by a token that may be revoked or by something else, or says why not. What was meant for
    /// semel alone is taken out of it.
    pub async fn admit(&self, parts: &mut Parts) -> Result<Option<Revocable>, AdmissionRefusal> {
        check_coding(&parts.headers)?;
        self.check_host(parts)?;
        self.check_origin(&parts.headers)?;
        let path = parts.uri.path();
        let is_health = HEALTH.contains(&path);
        if !is_health && !self.rooms.iter().any(|room| path.starts_with(room.as_str())) {
            refuse(StatusCode::NOT_FOUND, &self.nothing_here)?;
        }
        let asks_permission = parts.method == Method::OPTIONS && parts.headers.contains_key(header::ORIGIN);
        let open = is_health || self.open.iter().any(|open| open == path);
        check_single(&parts.headers)?;
        let admitted = self.credential(parts, open || asks_permission).await?;
        for own in [OWN_TOKEN].into_iter().chain(admitted.own) {
            parts.headers.remove(own);
        }
        parts.extensions.insert(admitted.credential);
        if let Some(scope) = admitted.scope {
            parts.extensions.insert(scope);
        }
        if let Some(token) = &admitted.revocable {
            parts.extensions.insert(token.clone());
        }
        Ok(admitted.revocable)
    }

    /// Puts the beginning that a request's host stands for in front of its path, and says which that is.
    pub fn lead(&self, parts: &mut Parts) -> Option<&str> {
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok())?;
        let beginning = self.beginning(host)?;
        let mut uri = parts.uri.clone().into_parts();
        let path = uri.path_and_query.filter(|path| path.as_str().starts_with('/'))?;
        uri.path_and_query = Some(format!("{beginning}{path}").parse().ok()?);
        parts.uri = Uri::from_parts(uri).ok()?;
        Some(beginning)
    }

    fn beginning(&self, authority: &str) -> Option<&str> {
        let host = without_port(authority);
        let known = self.by_host.iter().find(|(known, _)| known.eq_ignore_ascii_case(host));
        known.map(|(_, beginning)| beginning.as_str())
    }

    /// A web page whose name was made to lead here still sends its own name.
    fn check_host(&self, parts: &Parts) -> Result<(), AdmissionRefusal> {
        let mut named = parts.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return refuse(StatusCode::BAD_REQUEST, "one Host header is needed");
        };
        let asked = [host.to_str().ok(), parts.uri.authority().map(|authority| authority.as_str())];
        match asked[0].is_some() && asked.into_iter().flatten().all(|authority| self.is_known_host(authority))
        {
            true => Ok(()),
            false => refuse(StatusCode::FORBIDDEN, "this host name is not served; see [serve] allowed_hosts"),
        }
    }

    fn is_known_host(&self, authority: &str) -> bool {
        let host = without_port(authority);
        let known = LOOPBACK.into_iter().chain(self.hosts.iter().map(String::as_str));
        known.into_iter().any(|known| known.eq_ignore_ascii_case(host)) || self.beginning(host).is_some()
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), AdmissionRefusal> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let known =
            |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| self.is_known_origin(origin, host));
        match headers.get_all(header::ORIGIN).iter().all(known) {
            true => Ok(()),
            false => refuse(StatusCode::FORBIDDEN, "this origin is not allowed; see [serve] allowed_origins"),
        }
    }

    /// A page that an upstream gave out under a host name of its own may ask that one, and nothing else here.
    fn is_known_origin(&self, origin: &str, host: &str) -> bool {
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let own = own.is_some_and(|authority| {
            LOOPBACK.contains(&without_port(authority))
                || authority.eq_ignore_ascii_case(host) && self.beginning(host).is_some()
        });
        own || self.origins.iter().any(|known| known == origin)
    }

    async fn credential(&self, parts: &Parts, open: bool) -> Result<Admitted, AdmissionRefusal> {
        let headers = &parts.headers;
        // Where a client has one header for a key, semel's token comes in that; some clients put it into several.
        let (mut holder, mut own, mut revocable) = (None, Vec::new(), None);
        for name in [OWN_TOKEN].into_iter().chain(UPSTREAM_CREDENTIALS) {
            let Some(token) = headers.get(&name).and_then(|value| token(&name, value)) else { continue };
            match self.keyring.look_up(token).await {
                TokenStanding::Holds(shown) => {
                    if holder.is_none() && !self.keyring.is_own(token) {
                        revocable = Some(Revocable::new(token, &self.keyring));
                    }
                    holder.get_or_insert(shown);
                    own.push(name);
                }
                TokenStanding::Unknown(why) => return Err(unavailable(&why)),
                // A token of semel's own must not reach an upstream.
                TokenStanding::Worthless => return Err(unauthorized(UNKNOWN)),
                TokenStanding::Foreign if name == OWN_TOKEN => return Err(unauthorized(UNKNOWN)),
                TokenStanding::Foreign => {}
            }
        }
        if let Some(holder) = holder {
            let scope = Some(holder.scope);
            return Ok(Admitted { credential: Credential::Holder(holder), scope, own, revocable });
        }
        let passed = Credential::passed(headers);
        let passes = self.passing.iter().any(|prefix| parts.uri.path().starts_with(prefix.as_str()));
        let admitted =
            |credential, scope| Ok(Admitted { credential, scope, own: Vec::new(), revocable: None });
        match passed {
            // A caller without a token is no more than an agent: it rules on nothing, and makes no tokens.
            passed if !self.required => {
                admitted(passed.unwrap_or(Credential::None), Some(AccessScope::Agent))
            }
            Some(passed) if passes => admitted(passed, None),
            _ if open => admitted(Credential::None, None),
            None if passes => Err(unauthorized(EITHER_NEEDED)),
            _ => Err(unauthorized(NEEDED)),
        }
    }
}

/// The credential that lets a request in, and its scope.
struct Admitted {
    credential: Credential,
    scope: Option<AccessScope>,
    /// The headers that held a token of semel's own, which goes no further.
    own: Vec<HeaderName>,
    revocable: Option<Revocable>,
}

/// Chunks are read here, and nothing else. Another coding would be passed on as if it were the content, and of two
/// lengths the next server may believe the other one. The connection ends: whoever stands before or behind may read its
/// end elsewhere.
fn check_coding(headers: &HeaderMap) -> Result<(), AdmissionRefusal> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    let why = match (codings.next(), codings.next()) {
        (None, _) => return Ok(()),
        (Some(_), _) if headers.contains_key(header::CONTENT_LENGTH) => {
            "a request has either Content-Length or Transfer-Encoding"
        }
        (Some(only), None) if chunked(only) => return Ok(()),
        _ => "Transfer-Encoding can only be `chunked`, once",
    };
    let mut refused = problem(StatusCode::BAD_REQUEST, why);
    refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Err(Box::new(refused))
}

/// Of two, one could be checked here and the other believed upstream.
fn check_single(headers: &HeaderMap) -> Result<(), AdmissionRefusal> {
    let twice = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
    match [OWN_TOKEN].iter().chain(&UPSTREAM_CREDENTIALS).find(|name| twice(name)) {
        Some(name) => refuse(StatusCode::BAD_REQUEST, &format!("{name} came twice")),
        None => Ok(()),
    }
}

/// The text in this header that may be a token of semel's.
fn token<'a>(name: &HeaderName, value: &'a HeaderValue) -> Option<&'a [u8]> {
    if *name == header::AUTHORIZATION { bearer(value.as_bytes()) } else { Some(value.as_bytes()) }
}

fn refuse(status: StatusCode, detail: &str) -> Result<(), AdmissionRefusal> {
    Err(Box::new(problem(status, detail)))
}

const NEEDED: &str = "a token is needed, as `Semel-Token: …` or `Authorization: Bearer …`; `semel serve` says where it \
                      lies, and `semel token create` makes more; with `require_token = false` under [serve] a local \
                      server does without";
const EITHER_NEEDED: &str = "a credential is needed: the upstream's own, which is passed on, or a token of semel's, as \
                             `Semel-Token: …` or `Authorization: Bearer …`; `semel serve` says where that lies; with \
                             `require_token = false` under [serve] a local server does without";
const UNKNOWN: &str = "this token is not known here: it was never made, is over or was revoked; `semel token list` \
                       shows those that are";

fn unauthorized(why: &str) -> AdmissionRefusal {
    let mut response = problem(StatusCode::UNAUTHORIZED, why);
    let challenge = HeaderValue::from_static("Bearer realm=\"semel\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    Box::new(response)
}

fn unavailable(why: &str) -> AdmissionRefusal {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, &format!("tokens cannot be checked: {why}"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(response)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

/// `[::1]:80` is `[::1]`, and `localhost:80` is `localhost`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests;
