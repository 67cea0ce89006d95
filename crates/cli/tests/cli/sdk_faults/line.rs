//! Requests without an SDK, and what is asked of every answer.

use semel_testkit::http::{RawClient, Response};

/// A whole request, its length added.
pub fn request(client: &mut RawClient, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
    let length = if method == "GET" { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    client.send(&format!("{method} {path} HTTP/1.1"), &format!("{length}{headers}"), body);
}

pub trait Judge {
    fn outcome(&self) -> &str;
    /// The kind of refusal: the `code` of problem+json.
    fn code(&self) -> String;
    /// Nobody knows whether it happened; and nobody should try again.
    fn assert_in_doubt(&self);
    fn assert_replayed(&self, first: &Response);
}

impl Judge for Response {
    fn outcome(&self) -> &str {
        self.header("semel-outcome").unwrap_or_default()
    }

    fn code(&self) -> String {
        let kind = self.header("content-type").unwrap_or_default();
        let problem = kind.starts_with("application/problem+json");
        if problem { self.json()["code"].as_str().unwrap_or_default().to_owned() } else { String::new() }
    }

    fn assert_in_doubt(&self) {
        assert_eq!((self.status, self.code().as_str()), (423, "in_doubt"), "{self:?}");
        assert_eq!(self.header("x-should-retry"), Some("false"), "{self:?}");
    }

    fn assert_replayed(&self, first: &Response) {
        assert_eq!(self.header("idempotent-replayed"), Some("true"), "{self:?}");
        assert_eq!((self.status, &self.body), (first.status, &first.body), "{self:?}");
    }
}
