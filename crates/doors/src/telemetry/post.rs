//! One message to somebody who listens: sent once, its answer's status read.

use crate::http::body;
use crate::http::client::{Client, Payload};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use std::time::Duration;

/// From connecting to the end of the answer.
const TAKES_MAX: Duration = Duration::from_secs(10);

/// The body of a listener's response is read so that its connection can be used again, and no further.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Posts JSON. Whether and when to try again is the caller's matter.
pub async fn post(client: &Client, headers: &HeaderMap, body: Bytes) -> Result<StatusCode, String> {
    let exchange = async {
        let prepared = client.prepare_read().await.map_err(|error| error.to_string())?;
        let target = client.target();
        let path = target.uri().path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::new(Payload::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().map_err(|error| format!("{error}"))?;
        *request.headers_mut() = headers.clone();
        let host = HeaderValue::from_str(target.authority()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = client.send(prepared, request).await.map_err(|error| error.to_string())?;
        let (parts, answer) = response.into_parts();
        let _unread = body::read(answer, ANSWER_BYTES_MAX, TAKES_MAX).await;
        Ok(parts.status)
    };
    match tokio::time::timeout(TAKES_MAX, exchange).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} seconds", TAKES_MAX.as_secs())),
    }
}
