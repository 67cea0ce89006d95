//! A client of `/api/v1` with a token of its own.

use super::client::{RawClient, Response};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct ApiClient {
    address: String,
    pub token: String,
    /// Looks at every answer: method, path below `/api/v1`, and what came back.
    check: fn(&str, &str, &Response),
}

impl ApiClient {
    pub fn new(address: &str, token: &str) -> ApiClient {
        ApiClient::checked(address, token, |_, _, _| {})
    }

    pub fn checked(address: &str, token: &str, check: fn(&str, &str, &Response)) -> ApiClient {
        ApiClient { address: address.to_owned(), token: token.to_owned(), check }
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let headers = format!("Authorization: Bearer {}\r\n{headers}", self.token);
        let line = format!("{method} /api/v1{path} HTTP/1.1");
        let answer = RawClient::ask(&self.address, &line, &headers, body).answer();
        (self.check)(method, path, &answer);
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

/// A wish that waits for nobody.
pub fn charge(customer: &str) -> Value {
    json!({"action": "fn:charge", "arguments": {"customer": customer}, "wait": "0s"})
}
