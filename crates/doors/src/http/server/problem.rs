//! What semel itself says when it does not serve a request (RFC 9457).

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

pub fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let document =
        serde_json::json!({"title": title, "status": status.as_u16(), "detail": format!("semel: {detail}")});
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
