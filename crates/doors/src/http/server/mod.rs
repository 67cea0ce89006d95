//! An HTTP server with a limit on everything.
//!
//! It knows nothing of what it serves: a router gets what the admission let in, together with whose it is.

mod admission;
mod caller;
mod connection;
mod credential;
mod cross_origin;
mod departures;
mod heads;
mod keyring;
mod listen;
pub mod on_sent;
mod problem;
mod request_body;
mod response_body;
mod revocable;
mod room;
mod shares;
mod socket;
mod tls;
mod workers;

pub use admission::{Admission, OWN_TOKEN};
pub use caller::caller;
pub use credential::{Credential, Holder, LOCAL, is_no_credential, shown};
pub use keyring::{Keyring, OperatorToken, ReadTokens};
pub use listen::listen;
pub use problem::problem;
pub use revocable::{Revocable, lets_send};
pub use room::Room;
pub use shares::Share;
pub use tls::{ServerTls, TlsFileError};
pub use workers::Workers;

use axum::body::Body;
use axum::response::Response;
use connection::HeldResponse;
use cross_origin::CrossOrigin;
use http::header::LOCATION;
use http::{HeaderValue, Request, StatusCode};
use shares::Shares;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// After a failed accept (no descriptors left, usually) the others get time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long what was sent may take to settle once the server was told to stop, unless somebody says otherwise.
pub const GRACE: Duration = Duration::from_secs(25);

/// How long answers that are settled may take to leave.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);

/// How long last words may take: a few bytes into a socket.
const LAST_WORDS_TIME_MAX: Duration = Duration::from_millis(200);

/// Answers requests that were let in.
pub trait Answers: Send + Sync + 'static {
    fn answer(&self, request: Request<Body>) -> impl Future<Output = Response> + Send;
}

/// The parts of a server.
#[derive(Debug)]
pub struct ServerSetup<A> {
    /// `None`: plain HTTP.
    pub tls: Option<Arc<ServerTls>>,
    pub admission: Admission,
    pub doors: A,
    pub load: ServerLoad,
    pub workers: Workers,
    /// How long what was sent may take to settle once the server was told to stop.
    pub grace: Duration,
}

/// How much a server carries, and how much it may.
#[derive(Debug, Clone)]
pub struct ServerLoad {
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    room: Room,
    shares: Shares,
    /// Connections that are open; of the places above, one is always kept for the next.
    open: Arc<AtomicUsize>,
}

/// An open connection, as long as it is counted.
struct OpenConnectionGuard(Arc<AtomicUsize>);

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerLoad {
    pub fn within(room: Room) -> ServerLoad {
        ServerLoad {
            connections: Arc::new(Semaphore::new(room.connections)),
            requests: Arc::new(Semaphore::new(room.requests)),
            room,
            shares: Shares::of(room.requests),
            open: Arc::default(),
        }
    }

    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn opens(&self) -> OpenConnectionGuard {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnectionGuard(Arc::clone(&self.open))
    }

    pub fn requests(&self) -> usize {
        self.room.requests.saturating_sub(self.requests.available_permits())
    }
}

/// Serves until told to stop, and then until what was sent has `settled`, for as long as its grace lasts. Whoever still
/// waits after that is told so by `give_up`, where a word can still reach it.
pub async fn serve(
    listener: TcpListener,
    served: ServerSetup<impl Answers>,
    stop: impl Future<Output = ()>,
    settled: impl AsyncFn(),
    give_up: impl FnOnce(),
) {
    let served = Arc::new(served);
    let connections = &served.load.connections;
    let (stopping, stopped) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(connections).acquire_owned().await.expect("it is never closed");
            (listener.accept().await, permit)
        };
        tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next() => {}
            (accepted, permit) = accepted => match accepted {
                Ok((stream, _)) => {
                    // It moves to the runtime that is to serve it.
                    let Ok(stream) = stream.into_std() else { continue };
                    let (served, stopped) = (Arc::clone(&served), stopped.clone());
                    let (counted, place) = (served.load.opens(), served.workers.assign());
                    let runtime = place.runtime.clone();
                    open.spawn_on(
                        async move {
                            if let Ok(stream) = TcpStream::from_std(stream) {
                                connection(stream, served, stopped).await;
                            }
                            drop((permit, counted, place));
                        },
                        &runtime,
                    );
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let rest = async {
        loop {
            settled().await;
            let left = async { while open.join_next().await.is_some() {} };
            // Streams have no end. But what was still being read when the word came may have been sent since.
            let gone = tokio::time::timeout(LEAVE_TIME_MAX, left).await.is_ok();
            if gone || tokio::time::timeout(Duration::ZERO, settled()).await.is_ok() {
                return;
            }
        }
    };
    if tokio::time::timeout(served.grace.max(LEAVE_TIME_MAX), rest).await.is_err() {
        // An unsettled call is in doubt.
        give_up();
        let left = async { while open.join_next().await.is_some() {} };
        let _streams_have_no_end = tokio::time::timeout(LAST_WORDS_TIME_MAX, left).await;
    }
}

async fn connection(
    stream: TcpStream,
    served: Arc<ServerSetup<impl Answers>>,
    stopped: watch::Receiver<bool>,
) {
    let answer = |request| answer(request, Arc::clone(&served));
    connection::serve(stream, served.tls.as_deref(), answer, stopped).await;
}

/// A request's place among all, and among those of whoever asks.
type RequestPlace = (Option<OwnedSemaphorePermit>, Option<Share>);

async fn answer(
    request: Request<Body>,
    served: Arc<ServerSetup<impl Answers>>,
) -> HeldResponse<RequestPlace> {
    let permit = Arc::clone(&served.load.requests).try_acquire_owned().ok();
    let mut place = (permit, None);
    let (mut parts, body) = request.into_parts();
    let beginning = served.admission.lead(&mut parts).map(str::to_owned);
    let mut response = answer_in(&mut place, Request::from_parts(parts, body), served).await;
    no_sniffing(response.headers_mut());
    if let Some(beginning) = beginning {
        without_beginning(&mut response, &beginning);
    }
    HeldResponse { response, held: place }
}

/// A redirect within what a host name stands for is written without what it stands for.
fn without_beginning(response: &mut Response, beginning: &str) {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
    let rest = location.and_then(|location| location.as_bytes().strip_prefix(beginning.as_bytes()));
    if let Some(rest) = rest.and_then(|rest| HeaderValue::from_bytes(rest).ok()) {
        response.headers_mut().insert(LOCATION, rest);
    }
}

async fn answer_in(
    (permit, share): &mut RequestPlace,
    request: Request<Body>,
    served: Arc<ServerSetup<impl Answers>>,
) -> Response {
    // A health check must not be told by a crowd that the server is dead, and a settlement must
    // not be kept out by a crowd that waits for just that. There are more connections than requests for them.
    let path = request.uri().path();
    let always_has_room = admission::HEALTH.contains(&path) || path == admission::SETTLE;
    if permit.is_none() && !always_has_room {
        return crowded("too many requests at once");
    }
    let (mut parts, body) = request.into_parts();
    let page = CrossOrigin::of(&parts);
    let mut response = match served.admission.admit(&mut parts).await {
        Ok(_) if page.asks_permission() => page.permission(),
        Ok(revocable) => {
            // Only what was made for somebody can be revoked.
            if let (Some(Credential::Holder(holder)), true) = (parts.extensions.get(), revocable.is_some()) {
                *share = served.load.shares.take(holder);
                if share.is_none() && !always_has_room {
                    return crowded("too many requests at once with tokens of this name");
                }
            }
            let large = may_be_large(&parts.headers);
            let request = Request::from_parts(parts, body);
            let response = match large {
                false => served.doors.answer(request).await,
                true => answer_aside(Arc::clone(&served), request).await,
            };
            match revocable {
                Some(token) => response.map(|body| token.holds(body)),
                None => response,
            }
        }
        Err(refused) => return *refused,
    };
    page.may_read(response.headers_mut());
    response
}

/// Nothing of the request was looked at, and nothing was sent.
fn crowded(why: &str) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    response
}

/// Reading what such a request asks for takes long, and no other connection should wait for that.
const LARGE_BYTES: u64 = 256 * 1024;

fn may_be_large(headers: &http::HeaderMap) -> bool {
    let length =
        headers.get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) => LARGE_BYTES < length,
        None => headers.contains_key(http::header::TRANSFER_ENCODING),
    }
}

async fn answer_aside(served: Arc<ServerSetup<impl Answers>>, request: Request<Body>) -> Response {
    let there = Arc::clone(&served);
    let answered = served.workers.aside(async move { there.doors.answer(request).await }).await;
    answered.unwrap_or_else(|| problem(StatusCode::INTERNAL_SERVER_ERROR, "semel failed; see semel ledger"))
}

fn no_sniffing(headers: &mut http::HeaderMap) {
    headers.entry(http::header::X_CONTENT_TYPE_OPTIONS).or_insert(http::HeaderValue::from_static("nosniff"));
}
