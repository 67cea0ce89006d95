//! Who may come in: the right host, no foreign web page, a credential.

use super::problem::problem;
use axum::response::Response;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::fmt;
use subtle::ConstantTimeEq;

/// Carries semel's own token where `Authorization` is meant for the upstream.
pub const OWN_TOKEN: HeaderName = HeaderName::from_static("semel-token");

/// The path that anyone on an allowed host may ask, without a credential.
const HEALTH: &str = "/healthz";

/// Names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The secret that clients show. Never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    pub fn new(text: String) -> Token {
        Token(text)
    }

    fn is(&self, other: &[u8]) -> bool {
        // Comparing must not tell how much of a guess was right.
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What a request was let in by. Stands among the request's extensions.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Semel's own token.
    Own,
    /// Tokens are not asked for; this is meant for the upstream.
    Passed(Vec<u8>),
    /// Tokens are not asked for, and there is none.
    None,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Own => "Own",
            Credential::Passed(_) => "Passed(…)",
            Credential::None => "None",
        })
    }
}

#[derive(Debug)]
pub struct Front {
    /// Host names under which this server may be asked, without ports: a forwarded port is another one.
    hosts: Vec<String>,
    /// Web pages that may ask, besides the server's own.
    origins: Vec<String>,
    /// `None`: the operator wants no token.
    token: Option<Token>,
}

type Refused = Box<Response>;

impl Front {
    pub fn new(hosts: Vec<String>, origins: Vec<String>, token: Option<Token>) -> Front {
        let hosts = hosts.into_iter().chain(LOOPBACK.map(str::to_owned));
        Front { hosts: hosts.map(|host| host.to_ascii_lowercase()).collect(), origins, token }
    }

    /// Lets a request in, or says why not. What was meant for semel alone is taken out of it.
    pub fn admit(&self, parts: &mut Parts) -> Result<(), Refused> {
        self.check_host(parts)?;
        self.check_origin(&parts.headers)?;
        let asks_permission = parts.method == Method::OPTIONS;
        let credential = match parts.uri.path() == HEALTH || asks_permission {
            true => Credential::None,
            false => self.credential(&parts.headers)?,
        };
        // Semel's own token goes no further, in whichever header it came.
        if parts.headers.get(header::AUTHORIZATION).is_some_and(|value| self.is_own(value)) {
            parts.headers.remove(header::AUTHORIZATION);
        }
        parts.headers.remove(OWN_TOKEN);
        parts.extensions.insert(credential);
        Ok(())
    }

    /// A web page whose name was made to lead here still sends its own name.
    fn check_host(&self, parts: &Parts) -> Result<(), Refused> {
        let mut named = parts.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return refuse(StatusCode::BAD_REQUEST, "one Host header is needed");
        };
        let asked = [host.to_str().ok(), parts.uri.authority().map(|authority| authority.as_str())];
        let is_known = |authority: &str| self.hosts.contains(&without_port(authority).to_ascii_lowercase());
        match asked[0].is_some() && asked.into_iter().flatten().all(is_known) {
            true => Ok(()),
            false => refuse(StatusCode::FORBIDDEN, "this host name is not served; see [serve] allowed_hosts"),
        }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let known = |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| self.is_known_origin(origin));
        match headers.get_all(header::ORIGIN).iter().all(known) {
            true => Ok(()),
            false => refuse(StatusCode::FORBIDDEN, "this origin is not allowed; see [serve] allowed_origins"),
        }
    }

    fn is_known_origin(&self, origin: &str) -> bool {
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let own = own.is_some_and(|authority| LOOPBACK.contains(&without_port(authority)));
        own || self.origins.iter().any(|known| known == origin)
    }

    fn is_own(&self, authorization: &HeaderValue) -> bool {
        let shown = bearer(authorization.as_bytes());
        self.token.as_ref().zip(shown).is_some_and(|(token, shown)| token.is(shown))
    }

    fn credential(&self, headers: &HeaderMap) -> Result<Credential, Refused> {
        let passed = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(token) = &self.token else {
            return Ok(passed.map_or(Credential::None, |passed| Credential::Passed(passed.to_vec())));
        };
        let own = headers.get(OWN_TOKEN).map(HeaderValue::as_bytes);
        let shown = own.or_else(|| passed.and_then(bearer));
        match shown {
            Some(shown) if token.is(shown) => Ok(Credential::Own),
            _ => {
                let mut response = problem(
                    StatusCode::UNAUTHORIZED,
                    "a token is needed, as `Semel-Token: …` or `Authorization: Bearer …`; `semel serve` says where it lies",
                );
                let challenge = HeaderValue::from_static("Bearer realm=\"semel\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
                Err(Box::new(response))
            }
        }
    }
}

fn refuse(status: StatusCode, detail: &str) -> Result<(), Refused> {
    Err(Box::new(problem(status, detail)))
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
mod tests {
    use super::*;
    use http::Request;

    fn admit(front: &Front, headers: &[(&str, &str)]) -> Result<(Credential, HeaderMap), StatusCode> {
        let mut request = Request::get("/mcp/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        match front.admit(&mut parts) {
            Ok(()) => Ok((parts.extensions.get::<Credential>().unwrap().clone(), parts.headers)),
            Err(response) => Err(response.status()),
        }
    }

    fn guarded() -> Front {
        Front::new(vec![], vec!["https://app.example".into()], Some(Token::new("secret".into())))
    }

    #[test]
    fn only_known_hosts_and_origins_come_in() {
        let open = Front::new(vec!["Semel.example".into()], vec!["https://app.example".into()], None);
        for host in
            ["localhost", "localhost:7777", "127.0.0.1:1", "[::1]:7777", "LOCALHOST", "semel.example:80"]
        {
            assert!(admit(&open, &[("host", host)]).is_ok(), "{host}");
        }
        for host in ["evil.example", "evil.example:7777", "localhost.evil.example", "", "127.0.0.1.evil", "0"]
        {
            assert_eq!(admit(&open, &[("host", host)]).unwrap_err(), StatusCode::FORBIDDEN, "{host}");
        }
        assert_eq!(admit(&open, &[]).unwrap_err(), StatusCode::BAD_REQUEST);
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(admit(&open, &twice).unwrap_err(), StatusCode::BAD_REQUEST);
        for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1", "https://app.example"]
        {
            assert!(admit(&open, &[("host", "localhost"), ("origin", origin)]).is_ok(), "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://localhost.evil", "https://app.example.evil", ""]
        {
            let asked = admit(&open, &[("host", "localhost"), ("origin", origin)]);
            assert_eq!(asked.unwrap_err(), StatusCode::FORBIDDEN, "{origin}");
        }
    }

    #[test]
    fn a_token_is_shown_in_either_header_and_goes_no_further() {
        let front = guarded();
        let host = ("host", "localhost");
        for shown in [
            ("authorization", "Bearer secret"),
            ("authorization", "bearer  secret"),
            ("semel-token", "secret"),
        ] {
            let (credential, headers) = admit(&front, &[host, shown]).unwrap();
            assert_eq!(credential, Credential::Own);
            assert!(!headers.contains_key("authorization") && !headers.contains_key("semel-token"));
        }
        let both = [host, ("semel-token", "secret"), ("authorization", "Bearer upstream")];
        let (credential, headers) = admit(&front, &both).unwrap();
        assert_eq!(
            (credential, &headers["authorization"]),
            (Credential::Own, &HeaderValue::from_static("Bearer upstream"))
        );
        for wrong in [
            ("authorization", "Bearer secre"),
            ("authorization", "secret"),
            ("semel-token", ""),
            ("x", "secret"),
        ] {
            assert_eq!(admit(&front, &[host, wrong]).unwrap_err(), StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
    }

    #[test]
    fn without_tokens_the_upstreams_credential_says_who_it_is() {
        let front = Front::new(vec![], vec![], None);
        let passed = admit(&front, &[("host", "localhost"), ("authorization", "Basic x")]).unwrap();
        assert_eq!(passed.0, Credential::Passed(b"Basic x".to_vec()));
        assert!(passed.1.contains_key("authorization"));
        assert_eq!(admit(&front, &[("host", "localhost")]).unwrap().0, Credential::None);
    }
}
