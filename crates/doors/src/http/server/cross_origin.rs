//! Web pages that were let in: browsers ask whether they may send, and whether they may read the answer.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

/// The page that a request comes from, if it comes from one. Whether that is allowed was decided before.
#[derive(Debug)]
pub struct CrossOrigin {
    origin: Option<HeaderValue>,
    asks: bool,
    wants: Option<HeaderValue>,
}

/// Headers that a page may read of an answer.
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Location, Retry-After, ETag, Link, \
                       Idempotent-Replayed, Semel-Effect-Id, Semel-Outcome, Semel-Effect, Semel-Attempt, Semel-Reason";

impl CrossOrigin {
    pub fn of(parts: &Parts) -> CrossOrigin {
        CrossOrigin {
            origin: parts.headers.get(ORIGIN).cloned(),
            asks: parts.method == Method::OPTIONS,
            wants: parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
        }
    }

    pub fn asks_permission(&self) -> bool {
        self.asks && self.origin.is_some()
    }

    pub fn permission(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE"),
        );
        if let Some(wanted) = &self.wants {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    }

    /// The headers by which the browser gives the answer to the page. The upstream's own about other pages is not meant
    /// here.
    pub fn may_read(&self, headers: &mut HeaderMap) {
        let Some(origin) = &self.origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}
