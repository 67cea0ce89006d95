//! HTTP/2, which an upstream with TLS may choose.

use super::tls::{acceptor, client};
use super::*;
use http::Version;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_rustls::server::TlsStream;

const PREFACE: usize = 24;
const HEADERS: u8 = 1;
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A real server that answers each request with its body, and counts both.
#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

async fn serve(mut handed: mpsc::Receiver<TcpStream>, counts: Arc<Counts>) {
    while let Some(stream) = handed.recv().await {
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let Ok(stream) = acceptor(&[b"h2"]).accept(stream).await else { return };
            counts.connections.fetch_add(1, Ordering::SeqCst);
            let echo = service_fn(|request: Request<hyper::body::Incoming>| {
                let counts = Arc::clone(&counts);
                async move {
                    counts.requests.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(request.uri().path(), "/charges");
                    assert!(request.uri().authority().is_some_and(|host| host.as_str() == "x"));
                    Ok::<_, Infallible>(Response::new(request.into_body()))
                }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _closed = server.serve_connection(TokioIo::new(stream), echo).await;
        });
    }
}

fn charge(body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post("/charges").header("host", "x").body(body.into()).unwrap()
}

async fn answered(client: &Client, request: Request<Bytes>) -> Bytes {
    let prepared = client.prepare().await.unwrap();
    let response = client.send(prepared, request).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert!(response.body().has_end());
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn requests_of_one_principal_share_a_connection_one_after_the_other() {
    let (address, handed) = listen().await;
    let counts = Arc::<Counts>::default();
    tokio::spawn(serve(handed, Arc::clone(&counts)));
    let client = client(address);
    for attempt in 0..10 {
        assert_eq!(answered(&client, charge(format!("charge {attempt}"))).await, format!("charge {attempt}"));
    }
    assert_eq!(counts.connections.load(Ordering::SeqCst), 1);
    assert_eq!(answered(&client.for_principal("acme/other"), charge("other")).await, "other");
    assert_eq!(counts.connections.load(Ordering::SeqCst), 2, "another principal has its own");
    let first = client.prepare().await.unwrap();
    let second = client.prepare().await.unwrap();
    drop((first, second));
    assert_eq!(counts.requests.load(Ordering::SeqCst), 11, "each was carried out once");
}

#[tokio::test]
async fn bodies_larger_than_any_window_pass() {
    let (address, handed) = listen().await;
    tokio::spawn(serve(handed, Arc::default()));
    let large = vec![b'x'; 5 << 20];
    assert_eq!(answered(&client(address), charge(large.clone())).await, large);
}

/// An upstream of which each byte is written by the test. It has read the head of a request.
async fn accept(handed: &mut mpsc::Receiver<TcpStream>) -> TlsStream<TcpStream> {
    let mut stream = acceptor(&[b"h2"]).accept(handed.recv().await.unwrap()).await.unwrap();
    stream.write_all(&SETTINGS).await.unwrap();
    stream.flush().await.unwrap();
    stream.read_exact(&mut [0; PREFACE]).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        if head[3] == HEADERS {
            return stream;
        }
    }
}

fn refused_stream(stream: u8) -> Vec<u8> {
    vec![0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 7]
}

fn go_away(last_stream: u8, reason: u8) -> Vec<u8> {
    vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last_stream, 0, 0, 0, reason]
}

/// Sends once, and lets the upstream say this and hang up.
async fn told(words: Vec<u8>) -> Unanswered {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let upstream = async {
        let mut stream = accept(&mut handed).await;
        stream.write_all(&words).await.unwrap();
        stream.shutdown().await.unwrap();
    };
    let sending = async {
        let prepared = client.connect().await.unwrap();
        client.try_send(None, prepared, charge("once").map(Into::into)).await.unwrap_err()
    };
    tokio::join!(sending, upstream).0
}

#[tokio::test]
async fn a_refused_stream_was_never_sent() {
    let failed = told(refused_stream(1)).await;
    assert!(matches!(failed, Unanswered::NeverSent(_)), "{failed:?}");
}

#[tokio::test]
async fn another_reset_leaves_a_doubt() {
    for reason in [0, 1, 2, 8, 11] {
        let mut reset = refused_stream(1);
        *reset.last_mut().unwrap() = reason;
        let failed = told(reset).await;
        assert!(matches!(failed, Unanswered::Lost(_)), "{reason}: {failed:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_goes_away_says_what_it_has_looked_at() {
    for reason in [0, 2, 11] {
        let failed = told(go_away(0, reason)).await;
        assert!(matches!(failed, Unanswered::NeverSent(_)), "behind its last stream, {reason}: {failed:?}");
        let failed = told(go_away(1, reason)).await;
        assert!(matches!(failed, Unanswered::Lost(_)), "its last stream, {reason}: {failed:?}");
    }
}

/// hyper takes a reset or a farewell without an error for the end of the body.
#[tokio::test]
async fn an_answer_that_is_left_off_without_an_error_is_not_taken_for_whole() {
    const STATUS_200: u8 = 0x88;
    let head = [0, 0, 1, HEADERS, 4, 0, 0, 0, 1, STATUS_200];
    let data = |flags: u8| [&[0, 0, 6, 0, flags, 0, 0, 0, 1][..], b"{\"id\":"].concat();
    let mut reset = refused_stream(1);
    *reset.last_mut().unwrap() = 0;
    let ended = [&head[..], &data(1)].concat();
    let cut = [&head[..], &data(0), &reset].concat();
    let left = [&head[..], &data(0), &go_away(1, 0)].concat();
    for (words, is_whole) in [(ended, true), (cut, false), (left, false)] {
        let (address, mut handed) = listen().await;
        let client = client(address);
        let upstream = async {
            let mut stream = accept(&mut handed).await;
            stream.write_all(&words).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let sending = async {
            let prepared = client.prepare().await.unwrap();
            client.send(prepared, charge("once")).await.unwrap().into_body().collect().await
        };
        let (body, ()) = tokio::join!(sending, upstream);
        assert_eq!(body.is_ok(), is_whole, "{words:?}: {body:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_says_nothing_leaves_a_doubt() {
    let failed = told(Vec::new()).await;
    assert!(matches!(failed, Unanswered::Lost(_)), "{failed:?}");
}

/// What was refused is sent once more, on another connection, and not a third time.
#[tokio::test]
async fn a_refused_request_is_tried_once_more() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let upstream = async {
        let mut streams = Vec::new();
        for _ in 0..2 {
            let mut stream = accept(&mut handed).await;
            stream.write_all(&refused_stream(1)).await.unwrap();
            stream.flush().await.unwrap();
            streams.push(stream);
        }
        streams
    };
    let sending = async {
        let prepared = client.prepare().await.unwrap();
        client.send(prepared, charge("once")).await.unwrap_err()
    };
    let (failed, _streams) = tokio::join!(sending, upstream);
    assert!(matches!(failed, Failed::NeverSent(_)), "{failed:?}");
    assert!(handed.try_recv().is_err());
}
