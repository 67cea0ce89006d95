//! Semel's own answer when it does not serve a request (RFC 9457).

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

/// `error` is no member of such a document, but some SDKs take whatever lacks it for a success.
pub fn problem(status: StatusCode, detail: &str) -> Response {
    let (title, detail) = (status.canonical_reason().unwrap_or_default(), format!("semel: {detail}"));
    let error = serde_json::json!({"type": "semel_refused", "message": detail});
    let document =
        serde_json::json!({"title": title, "status": status.as_u16(), "detail": detail, "error": error});
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
