//! `/api/v1`: begin and settle, rulings, tokens, and what is said to whoever asks wrongly.

mod access;
mod begin;
mod document;
mod words;

use crate::house::House;
use semel_doors::api::{Route, routes};
use semel_ledger::tokens::AccessScope;
use semel_testkit::http::{ApiClient, Response};

/// Somebody with a token, at one server.
fn client_of(house: &House, token: &str) -> ApiClient {
    ApiClient::checked(&house.address, token, |method, path, answer| {
        if let Some(route) = routes().iter().find(|route| is_of(route, method, path)) {
            assert_named(route, answer);
        }
    })
}

fn token(house: &House, scope: &str, tenant: &str, name: &str) -> String {
    house.token(AccessScope::parse(scope).expect("a scope"), tenant, name)
}

/// Whether a request is answered by this route.
fn is_of(route: &Route, method: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (asked, known): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.path.split('/').collect());
    let fits = |(asked, known): (&&str, &&str)| asked == known || known.starts_with('{');
    route.method == method && asked.len() == known.len() && asked.iter().zip(&known).all(fits)
}

/// Whatever a route answers, the OpenAPI document has said that it may.
fn assert_named(route: &Route, answer: &Response) {
    let named = route.statuses().iter().any(|status| status.as_u16() == answer.status);
    assert!(named, "{route:?} does not name {}: {answer:?}", answer.status);
}
