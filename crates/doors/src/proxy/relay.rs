//! A request that changes nothing: it passes as it came, and its answer as it comes.

use super::headers;
use super::method::is_safe;
use super::offer::Offer;
use crate::http::client::{Client, Failed, Incoming, Payload};
use crate::http::server::problem;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body::Body as _;

/// The request to the upstream.
pub fn outgoing(
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: impl Into<Payload>,
) -> Request<Payload> {
    let body = body.into();
    if !body.is_end_stream() && body.size_hint().exact().is_none() {
        // A read has no body unless it says so.
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// Passes a request on, for one principal.
pub async fn relay(offer: &Offer, client: Client, outgoing: Request<Payload>) -> Response {
    let method = outgoing.method().clone();
    // A request that cannot be sent once more does not meet a connection that is being closed.
    let reuses = is_safe(&method) && matches!(outgoing.body(), Payload::Whole(_));
    let prepared = if reuses { client.prepare_read().await } else { client.prepare().await };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return unreachable(&error.to_string()),
    };
    match client.send(prepared, outgoing).await {
        Ok(response) => given_on(response, &method, offer),
        Err(Failed::NeverSent(why) | Failed::Lost(why)) => {
            unreachable(&format!("{} gave no answer: {why}", client.target()))
        }
    }
}

fn given_on(response: http::Response<Incoming>, method: &Method, offer: &Offer) -> Response {
    let (mut head, body) = response.into_parts();
    // Only where there is no body does a length say something that the body itself does not.
    let bodiless = *method == Method::HEAD || head.status == StatusCode::NOT_MODIFIED;
    let length = bodiless.then(|| head.headers.get(CONTENT_LENGTH).cloned()).flatten();
    head.headers = headers::downward(head.headers, head.status, offer);
    if let Some(length) = length {
        head.headers.insert(CONTENT_LENGTH, length);
    }
    Response::from_parts(head, Body::new(body))
}

fn unreachable(why: &str) -> Response {
    problem(StatusCode::BAD_GATEWAY, why)
}
