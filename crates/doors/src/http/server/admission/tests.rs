use super::*;
use crate::http::server::{Holder, LOCAL, OperatorToken};
use crate::runtime::RuntimeClock;
use http::Request;
use semel_core::time::At;
use semel_gate::clock::block_on;
use semel_ledger::entropy::OsEntropy;
use semel_ledger::holders::FileHolders;
use semel_ledger::memory::{MemoryStore, Sleeper};
use semel_ledger::tokens::TokenRequest;
use semel_ledger::{Ledger, tokens};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

struct NoSleep;

impl Sleeper for NoSleep {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

fn ledger() -> Arc<Ledger> {
    let secret = semel_core::digest::Secret::new([7; 32]);
    let holders = FileHolders::in_directory(std::path::PathBuf::new());
    Arc::new(Ledger::new(Arc::new(MemoryStore::new(Arc::new(NoSleep))), Arc::new(holders), OsEntropy, secret))
}

fn admission(ledger: &Arc<Ledger>) -> Admission {
    let ledger = Arc::clone(ledger);
    let read: crate::http::server::ReadTokens = Arc::new(move || {
        let ledger = Arc::clone(&ledger);
        Box::pin(async move { ledger.tokens().await.map_err(|error| error.to_string()) })
    });
    let keyring = Keyring::new(Some(OperatorToken::new("secret".into())), Some(read), RuntimeClock::start());
    Admission {
        hosts: vec!["Semel.example".into()],
        origins: vec!["https://app.example".into()],
        keyring: Arc::new(keyring),
        required: true,
        passing: vec!["/p/open/".into()],
        open: vec![],
        nothing_here: "nothing is here".to_owned(),
        rooms: ["/p/open/", "/p/closed/", "/mcp", "/api", "/metrics"].map(str::to_owned).into(),
        by_host: vec![("open.localhost".into(), "/p/open".into())],
    }
}

fn tokenless() -> Admission {
    Admission { required: false, ..admission(&ledger()) }
}

#[derive(Debug)]
struct Let {
    credential: Credential,
    scope: Option<AccessScope>,
    headers: HeaderMap,
}

fn ask(admission: &Admission, path: &str, headers: &[(&str, &str)]) -> Result<Let, StatusCode> {
    answered(admission, path, headers).map_err(|response| response.status())
}

fn answered(admission: &Admission, path: &str, headers: &[(&str, &str)]) -> Result<Let, AdmissionRefusal> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    match block_on(admission.admit(&mut parts)) {
        Ok(_) => Ok(Let {
            credential: parts.extensions.get::<Credential>().unwrap().clone(),
            scope: parts.extensions.get::<AccessScope>().copied(),
            headers: parts.headers,
        }),
        Err(response) => Err(response),
    }
}

fn admit(admission: &Admission, headers: &[(&str, &str)]) -> Result<Let, StatusCode> {
    ask(admission, "/mcp/x", headers)
}

fn operator() -> Credential {
    Credential::Holder(Holder { tenant: LOCAL.into(), subject: LOCAL.into(), scope: AccessScope::Admin })
}

const HOST: (&str, &str) = ("host", "localhost");

#[test]
fn only_known_hosts_and_origins_come_in() {
    let open = tokenless();
    for host in ["localhost", "localhost:7777", "127.0.0.1:1", "[::1]:7777", "LOCALHOST", "semel.example:80"]
    {
        assert!(admit(&open, &[("host", host)]).is_ok(), "{host}");
    }
    for host in ["evil.example", "evil.example:7777", "localhost.evil.example", "", "127.0.0.1.evil", "0"] {
        assert_eq!(admit(&open, &[("host", host)]).unwrap_err(), StatusCode::FORBIDDEN, "{host}");
    }
    assert_eq!(admit(&open, &[]).unwrap_err(), StatusCode::BAD_REQUEST);
    let twice = [HOST, ("host", "evil.example")];
    assert_eq!(admit(&open, &twice).unwrap_err(), StatusCode::BAD_REQUEST);
    for origin in ["http://localhost:6274", "https://127.0.0.1", "http://[::1]:1", "https://app.example"] {
        assert!(admit(&open, &[HOST, ("origin", origin)]).is_ok(), "{origin}");
    }
    for origin in ["http://evil.example", "null", "http://localhost.evil", "https://app.example.evil", ""] {
        let asked = admit(&open, &[HOST, ("origin", origin)]);
        assert_eq!(asked.unwrap_err(), StatusCode::FORBIDDEN, "{origin}");
    }
}

#[test]
fn the_operators_token_is_shown_in_any_header_for_keys_and_goes_no_further() {
    let admission = admission(&ledger());
    for shown in [
        ("authorization", "Bearer secret"),
        ("authorization", "bearer  secret"),
        ("semel-token", "secret"),
        ("x-api-key", "secret"),
    ] {
        let admitted = admit(&admission, &[HOST, shown]).unwrap();
        assert_eq!((admitted.credential, admitted.scope), (operator(), Some(AccessScope::Admin)));
        assert!(!admitted.headers.contains_key(shown.0), "{shown:?}");
    }
    let both = [HOST, ("semel-token", "secret"), ("authorization", "Bearer upstream")];
    let admitted = admit(&admission, &both).unwrap();
    assert_eq!(admitted.credential, operator());
    assert_eq!(admitted.headers["authorization"], "Bearer upstream");
    for wrong in
        [("authorization", "Bearer secre"), ("authorization", "secret"), ("semel-token", ""), ("x", "secret")]
    {
        assert_eq!(admit(&admission, &[HOST, wrong]).unwrap_err(), StatusCode::UNAUTHORIZED, "{wrong:?}");
    }
    let twice = [HOST, ("authorization", "Bearer upstream"), ("authorization", "Bearer secret")];
    assert_eq!(admit(&admission, &twice).unwrap_err(), StatusCode::BAD_REQUEST);
}

#[test]
fn a_kept_token_says_whose_a_request_is_until_it_is_over_or_revoked() {
    let ledger = ledger();
    let admission = admission(&ledger);
    let make = |new: Result<TokenRequest, tokens::BadToken>| {
        block_on(ledger.make_token(&new.unwrap(), At(1))).unwrap()
    };
    let made = make(TokenRequest::new("acme", AccessScope::Agent, Some("ci"), None));
    let shown = format!("Bearer {}", made.text);
    let admitted = admit(&admission, &[HOST, ("authorization", &shown)]).unwrap();
    let holder = Holder { tenant: "acme".into(), subject: "token:ci".into(), scope: AccessScope::Agent };
    assert_eq!((admitted.credential, admitted.scope), (Credential::Holder(holder), Some(AccessScope::Agent)));
    assert!(!admitted.headers.contains_key("authorization"));
    let mut forged = made.text.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == '0' { '1' } else { '0' });
    let over = make(TokenRequest::new("acme", AccessScope::Admin, None, Some(At(2))));
    for worthless in [forged.as_str(), over.text.as_str(), "semel_", "semel_x", "semel_x_y"] {
        let asked = ask(&admission, "/p/open/v1", &[HOST, ("authorization", &format!("Bearer {worthless}"))]);
        assert_eq!(asked.unwrap_err(), StatusCode::UNAUTHORIZED, "{worthless}");
    }
    block_on(ledger.revoke_token(&made.id, Some("other"), At(3))).unwrap();
    block_on(ledger.revoke_token(&made.id, Some("acme"), At(3))).unwrap().expect("it was there");
    // What was read a moment ago may still hold; a server that has read nothing yet sees it at once.
    let elsewhere = super::tests::admission(&ledger);
    let asked = admit(&elsewhere, &[HOST, ("authorization", &shown)]);
    assert_eq!(asked.unwrap_err(), StatusCode::UNAUTHORIZED);
}

#[test]
fn an_upstreams_own_credential_opens_that_upstream_and_nothing_else() {
    let admission = admission(&ledger());
    let shown = ("authorization", "Bearer sk-1");
    let admitted = ask(&admission, "/p/open/v1/charges", &[HOST, shown]).unwrap();
    assert_eq!(admitted.credential, Credential::Passed(b"Bearer sk-1".to_vec()));
    assert_eq!(admitted.scope, None, "it may call that upstream and do nothing else");
    assert_eq!(admitted.headers["authorization"], "Bearer sk-1");
    assert!(ask(&admission, "/p/open/v1", &[HOST, ("x-api-key", "k")]).is_ok());
    for (path, headers) in [
        ("/p/open/v1", &[HOST][..]),
        ("/p/open/v1", &[HOST, ("authorization", "")]),
        ("/p/open/v1", &[HOST, ("cookie", "session=1")]),
        ("/p/open/v1", &[HOST, shown, ("semel-token", "wrong")]),
        ("/p/closed/v1", &[HOST, shown]),
        ("/mcp/open/", &[HOST, shown]),
        ("/api/v1/effects", &[HOST, shown]),
    ] {
        assert_eq!(
            ask(&admission, path, headers).unwrap_err(),
            StatusCode::UNAUTHORIZED,
            "{path} {headers:?}"
        );
    }
}

#[test]
fn where_nothing_is_everybody_is_told_so_and_goes_no_further() {
    let admission = admission(&ledger());
    for path in ["/", "/v1/charges", "/p/open", "/p/openx/v1", "//p/open/v1", "/p/"] {
        for headers in
            [&[HOST][..], &[HOST, ("authorization", "Bearer sk-1")], &[HOST, ("semel-token", "wrong")]]
        {
            assert_eq!(ask(&admission, path, headers).unwrap_err(), StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(ask(&admission, path, &[("host", "evil.example")]).unwrap_err(), StatusCode::FORBIDDEN);
    }
    let remote = Admission { rooms: vec!["/".into()], ..admission };
    assert_eq!(ask(&remote, "/v1/charges", &[HOST]).unwrap_err(), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_host_name_stands_for_the_beginning_of_a_path() {
    let admission = admission(&ledger());
    let led = |host: &str, path: &str| {
        let (mut parts, ()) = Request::get(path).header("host", host).body(()).unwrap().into_parts();
        admission.lead(&mut parts);
        parts.uri.to_string()
    };
    assert_eq!(led("open.localhost:7777", "/v1/charges?a=1"), "/p/open/v1/charges?a=1");
    assert_eq!(led("OPEN.localhost", "/healthz"), "/p/open/healthz");
    for host in ["localhost", "other.localhost", "open.localhost.evil", "evil.open.localhost", "open"] {
        assert_eq!(led(host, "/v1/charges"), "/v1/charges", "{host}");
    }
    assert!(ask(&tokenless(), "/p/open/v1", &[("host", "open.localhost:7777")]).is_ok());
    let foreign = ask(&tokenless(), "/p/open/v1", &[("host", "other.localhost")]);
    assert_eq!(foreign.unwrap_err(), StatusCode::FORBIDDEN);
    let page = ("origin", "http://open.localhost:7777");
    assert!(ask(&tokenless(), "/p/open/v1", &[("host", "open.localhost:7777"), page]).is_ok());
    assert_eq!(ask(&tokenless(), "/api/v1/effects", &[HOST, page]).unwrap_err(), StatusCode::FORBIDDEN);
}

#[test]
fn who_shows_nothing_is_told_what_would_do() {
    let admission = admission(&ledger());
    let detail = |path: &str| {
        let body = answered(&admission, path, &[HOST]).unwrap_err().into_body();
        let body = block_on(axum::body::to_bytes(body, 10_000)).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    };
    let (passing, closed) = (detail("/p/open/v1"), detail("/p/closed/v1"));
    assert!(passing.contains("the upstream's own"), "{passing}");
    assert!(!closed.contains("the upstream's own"), "{closed}");
    for told in [passing, closed] {
        assert!(told.contains("Semel-Token") && told.contains("require_token = false"), "{told}");
    }
}

#[test]
fn without_tokens_the_upstreams_credential_says_who_it_is() {
    let admission = tokenless();
    let passed = admit(&admission, &[HOST, ("authorization", "Basic x")]).unwrap();
    assert_eq!(passed.credential, Credential::Passed(b"Basic x".to_vec()));
    assert!(passed.headers.contains_key("authorization"));
    let nobody = admit(&admission, &[HOST]).unwrap();
    assert_eq!((nobody.credential, nobody.scope), (Credential::None, Some(AccessScope::Agent)));
}

#[test]
fn health_can_be_asked_without_a_token() {
    let admission = admission(&ledger());
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(ask(&admission, path, &[HOST]).unwrap().scope, None, "{path}");
    }
    assert_eq!(ask(&admission, "/metrics", &[HOST]).unwrap_err(), StatusCode::UNAUTHORIZED);
    let open = Admission { open: vec!["/metrics".into()], ..admission };
    assert!(ask(&open, "/metrics", &[HOST]).is_ok());
}
