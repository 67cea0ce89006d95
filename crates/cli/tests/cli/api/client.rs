//! A client of the API.

use crate::home::Home;
use crate::serve::served::Served;
use semel_doors::api::{Route, routes};
use semel_testkit::http::Response;
use serde_json::{Value, json};

/// Somebody with a token, at one server.
#[derive(Debug)]
pub struct Client<'a> {
    pub served: &'a Served,
    pub token: String,
}

/// Makes a token on the command line.
pub fn token(home: &Home, scope: &str, tenant: &str, name: &str) -> String {
    let made = home.json(["token", "create", "--scope", scope, "--tenant", tenant, "--name", name]);
    made["token"].as_str().expect("a token").to_owned()
}

impl<'a> Client<'a> {
    pub fn new(served: &'a Served, token: &str) -> Client<'a> {
        Client { served, token: token.to_owned() }
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let first = format!("{method} /api/v1{path} HTTP/1.1");
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.token);
        let answer = self.served.ask_raw(&first, &headers, body).answer();
        if let Some(route) = routes().iter().find(|route| is_of(route, method, path)) {
            assert_named(route, &answer);
        }
        answer
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask("GET", path, "", "")
    }

    pub fn post(&self, path: &str, body: Value) -> Response {
        self.ask("POST", path, "Content-Type: application/json\r\n", &body.to_string())
    }

    pub fn begin(&self, wish: Value) -> Response {
        self.post("/begin", wish)
    }

    /// A claim that is granted.
    pub fn claim(&self, wish: Value) -> Value {
        let answer = self.begin(wish);
        assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("run")), "{answer:?}");
        answer.json()
    }

    pub fn settle(&self, claim: &Value, outcome: &str, reply: Value) -> Response {
        self.post("/settle", json!({"claim": claim["claim"], "outcome": outcome, "reply": reply}))
    }
}

/// Whether a request is answered by this route.
fn is_of(route: &Route, method: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (asked, known): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.path.split('/').collect());
    let fits = |(asked, known): (&&str, &&str)| asked == known || known.starts_with('{');
    route.method == method && asked.len() == known.len() && asked.iter().zip(&known).all(fits)
}

/// Whatever a route answers, the OpenAPI document has said that it may.
pub fn assert_named(route: &Route, answer: &Response) {
    let named = route.statuses().iter().any(|status| status.as_u16() == answer.status);
    assert!(named, "{route:?} does not name {}: {answer:?}", answer.status);
}

/// A wish that waits for nobody.
pub fn charge(customer: &str) -> Value {
    json!({"action": "fn:charge", "arguments": {"customer": customer}, "wait": "0s"})
}
