//! A connection to an upstream, spoken by hyper. It has no task of its own: the caller that waits for a response, or
//! reads its body, drives it. One request at a time is under way.

use super::connect::{ClientStream, StreamNature, nature};
use super::error::Failed;
use super::http2_tasks::Http2Driver;
use super::monitor::{LastMoment, SendCheck, SendMonitor, SendRefusal};
use super::payload::Payload;
use crate::http::{HEADER_BYTES_MAX, describe};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime;

/// Of an answer that nobody reads yet, so much is taken from an HTTP/2 upstream.
const WINDOW_BYTES: u32 = 256 * 1024;

pub struct Connection {
    sender: RequestSender,
    /// `None`: it is closed. Never locked: it is used through `&mut` alone, and so can be part of shared values.
    driver: Mutex<Option<ConnectionDriver>>,
    monitor: Arc<SendMonitor>,
    is_tls: bool,
    is_used: bool,
    home: runtime::Id,
}

enum RequestSender {
    Http1(http1::SendRequest<Payload>),
    Http2(http2::SendRequest<Payload>),
}

enum ConnectionDriver {
    Http1(Box<http1::Connection<ClientStream, Payload>>),
    Http2(Box<Http2Driver>),
}

/// A request that got no response.
#[derive(Debug)]
pub enum Unanswered {
    /// Its last moment had passed before its first byte.
    TooLate,
    /// Not one byte was written, or the upstream's protocol says that it was not looked at.
    NeverSent(String),
    Lost(String),
}

impl From<Unanswered> for Failed {
    fn from(unanswered: Unanswered) -> Failed {
        match unanswered {
            Unanswered::TooLate => Failed::NeverSent("the last moment for sending has passed".into()),
            Unanswered::NeverSent(why) => Failed::NeverSent(why),
            Unanswered::Lost(why) => Failed::Lost(why),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("is_used", &self.is_used).finish_non_exhaustive()
    }
}

impl Connection {
    pub async fn open(stream: ClientStream) -> hyper::Result<Connection> {
        let StreamNature { monitor, is_tls, is_http2 } = nature(&stream);
        let (sender, driver) = if is_http2 {
            let (sender, driver) = Http2Driver::open(stream, |executor| {
                let mut builder = http2::Builder::new(executor);
                builder
                    .max_header_list_size(HEADER_BYTES_MAX as u32)
                    .initial_stream_window_size(WINDOW_BYTES)
                    .initial_connection_window_size(WINDOW_BYTES);
                builder
            })
            .await?;
            (RequestSender::Http2(sender), ConnectionDriver::Http2(Box::new(driver)))
        } else {
            let mut builder = http1::Builder::new();
            builder.max_buf_size(HEADER_BYTES_MAX).max_header_size(HEADER_BYTES_MAX);
            let (sender, driver) = builder.handshake(stream).await?;
            (RequestSender::Http1(sender), ConnectionDriver::Http1(Box::new(driver)))
        };
        let (driver, home) = (Mutex::new(Some(driver)), runtime::Handle::current().id());
        let mut connection = Connection { sender, driver, monitor, is_tls, is_used: false, home };
        // An HTTP/2 connection has a greeting of its own, which belongs to no request.
        connection.drive_once().await;
        Ok(connection)
    }

    /// The runtime that hears its peer.
    pub fn home(&self) -> runtime::Id {
        self.home
    }

    /// Whether it has carried a request.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    pub fn is_http2(&self) -> bool {
        matches!(self.sender, RequestSender::Http2(_))
    }

    /// Whether a request can be sent on it, as far as its peer was heard.
    pub fn is_ready(&mut self) -> bool {
        // Nobody waits for it while it is idle.
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.is_at_rest()
    }

    /// Whether everything was written and read that belongs to its last request.
    fn is_at_rest(&mut self) -> bool {
        let sender_is_ready = match &self.sender {
            RequestSender::Http1(sender) => sender.is_ready(),
            RequestSender::Http2(sender) => sender.is_ready(),
        };
        match self.driver() {
            Some(ConnectionDriver::Http1(_)) => sender_is_ready,
            Some(ConnectionDriver::Http2(driver)) => sender_is_ready && driver.is_at_rest(),
            None => false,
        }
    }

    pub fn is_open(&mut self) -> bool {
        self.driver().is_some()
    }

    /// Writes the rest of a request that was answered early. `false`: it cannot be used again. A peer that takes nothing
    /// for so long takes nothing more.
    pub async fn finish(&mut self, patience: Duration) -> bool {
        loop {
            let before = self.monitor.written();
            let resting = poll_fn(|context| {
                self.drive(context);
                match self.is_open() && !self.is_at_rest() && !self.monitor.is_broken() {
                    true => Poll::Pending,
                    false => Poll::Ready(()),
                }
            });
            match tokio::time::timeout(patience, resting).await {
                Ok(()) => return self.is_reusable(),
                Err(_) if self.monitor.written() > before => {}
                Err(_) => return false,
            }
        }
    }

    /// Whether another request may follow. Behind a write that failed there is none.
    pub fn is_reusable(&mut self) -> bool {
        !self.monitor.is_broken() && self.is_ready()
    }

    async fn drive_once(&mut self) {
        poll_fn(|context| {
            self.drive(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Moves bytes in both directions, as far as they go now.
    pub fn drive(&mut self, context: &mut Context<'_>) {
        poll_driver(self.driver(), context);
    }

    fn driver(&mut self) -> &mut Option<ConnectionDriver> {
        self.driver.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, and waits for the head of its response.
    pub async fn send(
        &mut self,
        origin: &Uri,
        mut request: Request<Payload>,
        last_moment: Option<LastMoment>,
    ) -> Result<Response<Incoming>, Unanswered> {
        self.drive_once().await;
        if !self.is_at_rest() {
            return Err(Unanswered::NeverSent(CLOSED.into()));
        }
        // Behind its handshake TLS has more to say, and HTTP/2 says something whenever it likes.
        let greets = self.is_tls && !self.is_used;
        let expects_silence = !self.is_http2() && !greets;
        self.is_used = true;
        self.monitor.begin(SendCheck { last_moment, expects_silence });
        let answered = match &mut self.sender {
            RequestSender::Http1(sender) => {
                let response = sender.try_send_request(request);
                drive_until(&mut self.driver, response).await
            }
            RequestSender::Http2(sender) => {
                address(&mut request, origin);
                let response = sender.try_send_request(request);
                drive_until(&mut self.driver, response).await
            }
        };
        self.monitor.end();
        match answered {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Err(Unanswered::Lost("it switches to another protocol, which nobody asked for".into()))
            }
            Ok(response) => Ok(response),
            Err(failed) => Err(self.explain(failed)),
        }
    }

    /// The connection is dropped first: after that the count says all.
    fn explain(&mut self, mut failed: TrySendError<Request<Payload>>) -> Unanswered {
        *self.driver() = None;
        let was_taken = failed.take_message().is_none();
        let error = failed.into_error();
        let why = self.monitor.why_broken().unwrap_or_else(|| describe(&error));
        match self.monitor.refusal() {
            Some(SendRefusal::TooLate) => Unanswered::TooLate,
            Some(SendRefusal::PeerClosed) => Unanswered::NeverSent(CLOSED.into()),
            None if !was_taken || !self.monitor.has_begun() || is_refused(&error) => {
                Unanswered::NeverSent(why)
            }
            None => Unanswered::Lost(why),
        }
    }
}

const CLOSED: &str = "the upstream has closed the connection";

/// Drives a connection until it has a response, or will have none.
async fn drive_until<T>(
    driver: &mut Mutex<Option<ConnectionDriver>>,
    response: impl Future<Output = T>,
) -> T {
    let mut response = pin!(response);
    let driver = driver.get_mut().unwrap_or_else(PoisonError::into_inner);
    poll_fn(|context| {
        if let Poll::Ready(response) = response.as_mut().poll(context) {
            return Poll::Ready(response);
        }
        poll_driver(driver, context);
        response.as_mut().poll(context)
    })
    .await
}

/// One that has ended is dropped, so that a response that will not come is known not to.
fn poll_driver(driver: &mut Option<ConnectionDriver>, context: &mut Context<'_>) {
    let ended = match driver {
        Some(ConnectionDriver::Http1(driver)) => Pin::new(driver).poll(context).is_ready(),
        Some(ConnectionDriver::Http2(driver)) => driver.poll(context).is_ready(),
        None => return,
    };
    if ended {
        *driver = None;
    }
}

/// HTTP/2 has the host in the address.
fn address(request: &mut Request<Payload>, origin: &Uri) {
    let host = request.headers_mut().remove(header::HOST);
    let named = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = named.or_else(|| origin.authority().cloned());
    let path = request.uri().path_and_query().cloned();
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// The protocol's own word that a request was not looked at: its stream was refused, or is behind the last one that a
/// closing upstream has taken.
fn is_refused(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        if let Some(error) = next.downcast_ref::<h2::Error>() {
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (refused || error.is_go_away());
        }
        cause = next.source();
    }
    false
}
