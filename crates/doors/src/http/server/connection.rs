//! A client's connection, spoken by hyper: one request after the other.

use super::departures::{Departures, LeavingResponse};
use super::heads::Heads;
use super::request_body::RequestBody;
use super::response_body::ResponseBody;
use super::socket::{ClientSocket, ClientStream};
use super::tls::ServerTls;
use crate::http::HEADER_BYTES_MAX;
use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, StatusCode, Version};
use http_body::Body as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// A client sends its headers at once, or it is not a client; an idle connection is kept as long.
const HEADER_TIME_MAX: Duration = Duration::from_secs(30);

/// The kernel takes so much of a response before it has sent it. It tells of room only once a part of all it holds has
/// left, which can be megabytes: a client that takes a response slowly would look like one that takes nothing.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 * 1024;

/// A response, and what is held until all of it was written.
#[derive(Debug)]
pub struct HeldResponse<H> {
    pub response: Response,
    pub held: H,
}

/// Answers requests until the client goes away, or until told to stop and nothing is under way.
pub async fn serve<H, F>(
    stream: TcpStream,
    tls: Option<&ServerTls>,
    answer: impl Fn(Request<Body>) -> F,
    mut stopped: watch::Receiver<bool>,
) where
    H: Send + 'static,
    F: Future<Output = HeldResponse<H>>,
{
    set_up(&stream);
    let stream = match tls {
        None => ClientStream::Plain(stream),
        Some(tls) => tokio::select! {
            accepted = tls.accept(stream) => match accepted {
                Some(stream) => ClientStream::Tls(Box::new(stream)),
                None => return,
            },
            // Nothing was asked yet.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        },
    };
    let departures = Arc::<Departures>::default();
    let heads = Arc::<Mutex<Heads>>::default();
    let socket = ClientSocket::new(stream, Arc::clone(&departures), Arc::clone(&heads));
    let count = AtomicU64::new(0);
    let service = service_fn(|mut request: Request<hyper::body::Incoming>| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        if request.headers().contains_key(TRANSFER_ENCODING)
            && heads.lock().unwrap_or_else(PoisonError::into_inner).is_ambiguous(number)
        {
            // Admission refuses it by the header that hyper has dropped.
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let (method, version) = (request.method().clone(), request.version());
        let answering = answer(request.map(|body| RequestBody::body(body, &departures)));
        let departures = Arc::clone(&departures);
        // Boxed, so that a connection without a request is small.
        Box::pin(async move {
            let HeldResponse { response, held } = answering.await;
            Ok::<_, Infallible>(leave(response, Box::new(held), &method, version, departures))
        })
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX);
    builder.max_buf_size(HEADER_BYTES_MAX).max_header_size(HEADER_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(socket), service));
    // An error ends the connection, and its client knows by that.
    tokio::select! {
        biased;
        // First: a request that has come is not turned away by the stop.
        _ended = connection.as_mut() => {}
        () = async { drop(stopped.wait_for(|stopped| *stopped).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ended = connection.await;
        }
    }
}

/// Without these it works less well.
fn set_up(stream: &TcpStream) {
    // Events are small and wanted at once.
    let _slower = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _coarser = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
}

/// Has the response watched until it has left.
fn leave(
    response: Response,
    held: Box<dyn Send>,
    method: &Method,
    version: Version,
    departures: Arc<Departures>,
) -> http::Response<ResponseBody> {
    let (mut parts, body) = response.into_parts();
    let leaving = LeavingResponse { on_sent: parts.extensions.remove(), held };
    let has_body = *method != Method::HEAD
        && !matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        && !body.is_end_stream();
    // A client of HTTP/1.0 knows the end of a stream by the end of its connection alone.
    let ends_with_connection = version == Version::HTTP_10 && body.size_hint().exact().is_none();
    let body = ResponseBody::new(body, leaving, departures, ends_with_connection);
    http::Response::from_parts(parts, if has_body { body } else { body.leave_at_once() })
}

#[cfg(test)]
mod tests;
