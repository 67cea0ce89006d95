mod http2;
mod tls;

use super::*;
use crate::http::HEADER_BYTES_MAX;
use crate::http::body::BodyError;
use crate::runtime::RuntimeClock;
use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper_util::client::legacy::connect::dns::Name;
use resolver::LookingUp;
use semel_gate::clock::Clock;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A listener whose connections are handed to the test.
async fn listen() -> (SocketAddr, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (hand, handed) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            hand.send(stream).await.unwrap();
        }
    });
    (address, handed)
}

fn client(address: SocketAddr) -> Client {
    Client::to(Target::parse(&format!("http://{address}/")).unwrap()).unwrap()
}

fn request() -> Request<Bytes> {
    Request::post("/").header("host", "x").body(Bytes::from("body")).unwrap()
}

async fn heard(stream: &mut TcpStream) -> String {
    let mut buffer = vec![0; 4096];
    let read = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[tokio::test]
async fn nobody_there_is_not_reached() {
    let (address, handed) = listen().await;
    drop(handed);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(client(gone).prepare().await.is_err());
    assert!(client(address).prepare().await.is_ok());
}

#[tokio::test]
async fn a_connection_that_closed_before_sending_has_sent_nothing() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let mut prepared = client.prepare().await.unwrap();
    drop(handed.recv().await.unwrap());
    // The news of it comes by and by.
    while prepared.connection.is_ready() {
        tokio::task::yield_now().await;
    }
    let failed = client.try_send(None, prepared, request().map(Into::into)).await.unwrap_err();
    assert!(matches!(failed, Unanswered::NeverSent(..)), "{failed:?}");
}

/// A connection that has carried one request and its answer, with the other end of it out of any runtime's hands.
async fn used_connection(
    client: &Client,
    handed: &mut mpsc::Receiver<TcpStream>,
) -> (Prepared, std::net::TcpStream) {
    let prepared = client.connect().await.unwrap();
    let mut stream = handed.recv().await.unwrap();
    let upstream = async {
        heard(&mut stream).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
    };
    let sending =
        async { client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap() };
    tokio::join!(upstream, sending);
    (client.prepare_read().await.unwrap(), stream.into_std().unwrap())
}

/// The runtime has not heard of it yet; whoever sends asks the kernel.
#[tokio::test]
async fn what_comes_before_it_was_asked_for_is_nobodys_answer() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    for stray in ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray", "x", ""] {
        let (prepared, mut stream) = used_connection(&client, &mut handed).await;
        std::io::Write::write_all(&mut stream, stray.as_bytes()).unwrap();
        if stray.is_empty() {
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
        let upstream = async {
            let mut fresh = handed.recv().await.unwrap();
            heard(&mut fresh).await;
            fresh.write_all(OK.as_bytes()).await.unwrap();
        };
        let sending =
            async { client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap() };
        let both = async { tokio::join!(upstream, sending) };
        let both = tokio::time::timeout(Duration::from_secs(30), both).await;
        let ((), answered) = both.expect("it goes to a new connection");
        assert_eq!(answered.to_bytes(), "ok", "{stray:?}");
        // It is not this one's turn.
        drop(client.pool.take("", true));
    }
}

#[tokio::test]
async fn what_is_left_of_answered_requests_is_held_for_a_few_and_not_for_long() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let mut streams = Vec::new();
    for _ in 0..12 {
        let prepared = client.connect().await.unwrap();
        let mut stream = handed.recv().await.unwrap();
        let request = Request::post("/").header("host", "x").body(Bytes::from(vec![b'x'; 8 << 20])).unwrap();
        let upstream = async {
            heard(&mut stream).await;
            stream.write_all(OK.as_bytes()).await.unwrap();
        };
        let sending =
            async { client.send(prepared, request).await.unwrap().into_body().collect().await.unwrap() };
        tokio::join!(upstream, sending);
        streams.push(stream);
    }
    assert_eq!(client.pool.finishing(), 8);
    // Nobody takes anything for twice as long as is waited.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(client.pool.finishing(), 0);
}

#[tokio::test]
async fn a_request_that_was_read_and_not_answered_is_lost_and_not_sent_again() {
    let (answered, heard) = exchange(whole("body"), async |mut stream| heard(&mut stream).await).await;
    assert!(heard.starts_with("POST / HTTP/1.1"), "{heard}");
    assert!(matches!(answered, Err(Unanswered::Lost(_))), "{answered:?}");
}

#[tokio::test]
async fn a_connection_is_used_again_only_after_its_answer_was_read() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let answer = |client: Client, prepared: Prepared| async move {
        client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap().to_bytes()
    };
    let first = client.prepare().await.unwrap();
    let mut stream = handed.recv().await.unwrap();
    let sending = tokio::spawn(answer(client.clone(), first));
    heard(&mut stream).await;
    let second = client.prepare().await.unwrap();
    let mut other = handed.recv().await.unwrap();
    stream.write_all(OK.as_bytes()).await.unwrap();
    assert_eq!(sending.await.unwrap(), "ok");
    let sending = tokio::spawn(answer(client.clone(), second));
    heard(&mut other).await;
    other.write_all(OK.as_bytes()).await.unwrap();
    assert_eq!(sending.await.unwrap(), "ok");
    tokio::task::yield_now().await;
    let third = client.prepare_read().await.unwrap();
    assert!(handed.try_recv().is_err(), "an idle connection is taken");
    drop(third);
    let stranger = client.for_principal("acme/other").prepare_read().await.unwrap();
    assert!(handed.recv().await.is_some(), "but not by another principal");
    client.keep(stranger);
    let guarded = client.prepare().await.unwrap();
    assert!(!guarded.connection.is_used(), "nor for a request that must not be confused with another");
    assert!(handed.try_recv().is_err(), "a connection that has carried nothing is anybody's");
}

/// What an upstream sends too much is not taken for the response to another request.
#[tokio::test]
async fn a_surplus_response_is_nobodys() {
    let (address, mut handed) = listen().await;
    tokio::spawn(async move {
        while let Some(mut stream) = handed.recv().await {
            tokio::spawn(async move {
                while heard(&mut stream).await.starts_with("POST") {
                    let surplus = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsurplus";
                    stream.write_all(OK.as_bytes()).await.unwrap();
                    // At once, or while the next request is on its way.
                    tokio::task::yield_now().await;
                    let _closed = stream.write_all(surplus.as_bytes()).await;
                }
            });
        }
    });
    let (ann, bob) = (client(address).for_principal("acme/ann"), client(address).for_principal("acme/bob"));
    for attempt in 0..30 {
        let client = if attempt % 2 == 0 { &ann } else { &bob };
        let prepared = client.prepare().await.unwrap();
        let answered = client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(answered.to_bytes(), "ok", "{attempt}");
    }
    // Another principal's reads do not get it either.
    let shared = client(address);
    for attempt in 0..30 {
        let client = shared.for_principal(["acme/ann", "acme/bob"][attempt % 2]);
        let prepared = client.prepare_read().await.unwrap();
        let fresh = !prepared.connection.is_used();
        let answered = client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap();
        assert!(answered.to_bytes() == "ok" || !fresh, "{attempt}");
    }
}

/// Many servers close connections behind a response without a word.
#[tokio::test]
async fn an_upstream_that_closes_idle_connections_leaves_no_doubt() {
    let (address, mut handed) = listen().await;
    let upstream = tokio::spawn(async move {
        let mut requests = 0;
        while requests < 60 {
            let mut stream = handed.recv().await.unwrap();
            requests += usize::from(heard(&mut stream).await.starts_with("POST"));
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
        requests
    });
    let client = client(address);
    for attempt in 0..60 {
        let prepared = match attempt % 2 {
            0 => client.prepare().await.unwrap(),
            _ => client.prepare_read().await.unwrap(),
        };
        let answered = client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(answered.to_bytes(), "ok", "{attempt}");
    }
    assert_eq!(upstream.await.unwrap(), 60, "each arrived once");
}

/// Rule 5: the clock is asked at the first byte, whatever was waited for before.
#[tokio::test]
async fn after_its_last_moment_nothing_of_a_request_leaves() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let clock = RuntimeClock::start();
    let at = clock.now();
    clock.pass(Duration::from_secs(1));
    let prepared = client.prepare().await.unwrap();
    let failed = client.send_before(Some(LastMoment { clock, at }), prepared, request()).await.unwrap_err();
    assert_eq!(failed, Failed::NeverSent("the last moment for sending has passed".into()));
    let mut stream = handed.recv().await.unwrap();
    assert_eq!(heard(&mut stream).await, "");
    assert!(handed.try_recv().is_err(), "it is not tried again");
}

/// Some servers answer `HEAD` as if it were `GET`.
#[tokio::test]
async fn a_connection_ends_behind_a_response_without_a_body() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\n\r\n"),
    ] {
        let (address, mut handed) = listen().await;
        let client = client(address);
        let prepared = client.prepare_read().await.unwrap();
        let mut stream = handed.recv().await.unwrap();
        let request = Request::builder().method(method).header("host", "x").body(Bytes::new()).unwrap();
        let upstream = async {
            heard(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let (answered, ()) = tokio::join!(client.send(prepared, request), upstream);
        assert!(answered.unwrap().into_body().collect().await.unwrap().to_bytes().is_empty());
        assert!(client.pool.take("", true).is_none(), "{method} {answer}");
    }
}

/// Answers the first request with this.
async fn say(mut stream: TcpStream, answer: &str) {
    heard(&mut stream).await;
    let _closed = stream.write_all(answer.as_bytes()).await;
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    let (answered, ()) = exchange(whole("body"), async |stream| say(stream, moved).await).await;
    assert_eq!(answered.unwrap().0.status(), 307);
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let flood = "x".repeat(2 * HEADER_BYTES_MAX);
    let flood = format!("HTTP/1.1 200 OK\r\nX: {flood}\r\nContent-Length: 0\r\n\r\n");
    let (answered, ()) = exchange(whole("body"), async |stream| say(stream, &flood).await).await;
    assert!(matches!(answered, Err(Unanswered::Lost(_))), "{answered:?}");
}

#[tokio::test]
async fn a_request_is_written_to_its_end_though_its_answer_came_first() {
    const LENGTH: usize = 32 << 20;
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let mut stream = handed.recv().await.unwrap();
    let sending = tokio::spawn(async move {
        let body = Bytes::from(vec![b'x'; LENGTH]);
        let request = Request::post("/").header("host", "x").body(body).unwrap();
        client.send(prepared, request).await.unwrap().into_body().collect().await.unwrap().to_bytes()
    });
    let head = heard(&mut stream).await;
    stream.write_all(OK.as_bytes()).await.unwrap();
    assert_eq!(sending.await.unwrap(), "ok");
    let mut read = head.len() - (head.find("\r\n\r\n").unwrap() + 4);
    let mut buffer = vec![0; 1 << 20];
    while read < LENGTH {
        match stream.read(&mut buffer).await.unwrap() {
            0 => panic!("it was cut off after {read} bytes"),
            more => read += more,
        }
    }
}

#[tokio::test]
async fn idle_connections_are_tended_by_one_however_often_they_are_used() {
    let (address, mut handed) = listen().await;
    tokio::spawn(async move {
        let mut stream = handed.recv().await.unwrap();
        while heard(&mut stream).await.starts_with("POST") {
            stream.write_all(OK.as_bytes()).await.unwrap();
        }
    });
    let client = client(address);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..50 {
        let prepared = client.prepare_read().await.unwrap();
        client.send(prepared, request()).await.unwrap().into_body().collect().await.unwrap();
    }
    assert_eq!(tasks(), before + 1);
}

/// A name server that answers in this order, and never twice alike unless told so.
#[derive(Debug)]
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Answers {
    fn of(answers: &[&[IpAddr]]) -> Arc<Answers> {
        Arc::new(Answers(Mutex::new(answers.iter().map(|answer| answer.to_vec()).collect())))
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Names for Answers {
    fn look_up(&self, _: Name) -> LookingUp {
        let answer = self.0.lock().unwrap().pop_front().expect("it is asked once for each connection");
        // The port is the target's own.
        Box::pin(async move { Ok(answer.into_iter().map(|address| SocketAddr::new(address, 0)).collect()) })
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn named(port: u16, private: bool, names: &Arc<Answers>) -> Client {
    let target = Target::parse(&format!("http://api.example:{port}/")).unwrap().with_private(private);
    let names: Arc<Answers> = Arc::clone(names);
    Client::by(target, names).unwrap()
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_before_anything_is_connected() {
    let (address, mut handed) = listen().await;
    let inside = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "192.168.1.1", "fc00::1", "0.0.0.0"];
    let metadata = ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200"];
    for place in inside.iter().chain(&metadata) {
        let names = Answers::of(&[&[ip(place)]]);
        let refused = named(address.port(), false, &names).prepare().await.unwrap_err();
        assert!(refused.why.contains("leads to"), "{place}: {refused}");
        assert_eq!(names.left(), 0, "{place}");
    }
    for place in metadata {
        let names = Answers::of(&[&[ip(place)]]);
        let refused = named(address.port(), true, &names).prepare().await.unwrap_err();
        assert!(refused.why.contains("credentials"), "{place}: {refused}");
    }
    assert!(handed.try_recv().is_err(), "nobody was connected to");
}

#[tokio::test]
async fn of_several_addresses_only_those_are_tried_that_were_allowed() {
    let (address, mut handed) = listen().await;
    let names = Answers::of(&[&[ip("169.254.169.254"), ip("127.0.0.1")]]);
    named(address.port(), true, &names).prepare().await.unwrap();
    assert!(handed.recv().await.is_some());
    assert!(handed.try_recv().is_err());
}

/// The name says something harmless first, and something else once it is trusted.
#[tokio::test]
async fn a_name_that_is_bound_anew_is_not_followed_inside() {
    let (address, mut handed) = listen().await;
    let names = Answers::of(&[&[ip("127.0.0.1")], &[ip("169.254.169.254")], &[ip("127.0.0.1")]]);
    let client = named(address.port(), true, &names);
    let first = client.prepare().await.unwrap();
    assert_eq!(names.left(), 2, "what was checked is what was connected to: nobody asks in between");
    let _first_stream = handed.recv().await.unwrap();
    let refused = client.connect().await.unwrap_err();
    assert!(refused.why.contains("169.254.169.254"), "{refused}");
    assert!(handed.try_recv().is_err(), "and nobody was connected to");
    client.keep(first);
    client.prepare().await.unwrap();
    assert_eq!(names.left(), 1, "a connection that is there is still the one that was checked");
}

fn whole(body: impl Into<Bytes>) -> Request<Payload> {
    Request::post("/").header("host", "x").body(Payload::from(body.into())).unwrap()
}

/// Sends a request once, and lets a test be the upstream.
async fn exchange<T>(
    request: Request<Payload>,
    upstream: impl AsyncFnOnce(TcpStream) -> T,
) -> (Result<(Response<()>, Result<Bytes, BodyError>), Unanswered>, T) {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let stream = handed.recv().await.unwrap();
    let sending = tokio::spawn(async move {
        let (parts, body) = client.try_send(None, prepared, request).await?.into_parts();
        Ok((Response::from_parts(parts, ()), body.collect().await.map(|body| body.to_bytes())))
    });
    let told = upstream(stream).await;
    let answered = sending.await.unwrap();
    assert!(handed.try_recv().is_err(), "nobody connected again");
    (answered, told)
}

/// A body that comes in parts, and then ends or breaks off.
struct Parts {
    left: VecDeque<&'static str>,
    length: Option<u64>,
    breaks_off: bool,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        context.waker().wake_by_ref();
        match self.left.pop_front() {
            Some("") => Poll::Pending,
            Some(part) => Poll::Ready(Some(Ok(Frame::data(Bytes::from(part))))),
            None if self.breaks_off => Poll::Ready(Some(Err(std::io::Error::other("gone")))),
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

fn arriving(left: &[&'static str], length: Option<u64>, breaks_off: bool) -> Request<Payload> {
    let parts = Parts { left: left.iter().copied().collect(), length, breaks_off };
    Request::post("/").header("host", "x").body(Payload::from(axum::body::Body::new(parts))).unwrap()
}

/// All that comes until the body ends that the head speaks of.
async fn heard_until(stream: &mut TcpStream, end: &str) -> String {
    let mut all = String::new();
    while !all.ends_with(end) {
        let more = heard(stream).await;
        assert!(!more.is_empty(), "it ended with {all}");
        all.push_str(&more);
    }
    all
}

#[tokio::test]
async fn a_body_is_given_on_as_it_arrives() {
    let upstream = async |end: &'static str, mut stream: TcpStream| {
        let heard = heard_until(&mut stream, end).await;
        stream.write_all(OK.as_bytes()).await.unwrap();
        heard
    };
    let unknown = arriving(&["", "hello ", "", "world"], None, false);
    let (answered, heard) = exchange(unknown, async |stream| upstream("0\r\n\r\n", stream).await).await;
    assert_eq!(answered.unwrap().1.unwrap(), "ok");
    assert!(
        heard.ends_with("transfer-encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"),
        "{heard}"
    );
    let known = arriving(&["hello ", "", "world"], Some(11), false);
    let (answered, heard) = exchange(known, async |stream| upstream("world", stream).await).await;
    assert_eq!(answered.unwrap().1.unwrap(), "ok");
    assert!(heard.ends_with("content-length: 11\r\n\r\nhello world"), "{heard}");
}

/// What is cut off must not look whole to the upstream.
#[tokio::test]
async fn a_body_that_breaks_off_is_not_ended() {
    let cases = [
        arriving(&["hello"], None, true),
        arriving(&["hello", ""], None, true),
        arriving(&["hello", ""], Some(9), true),
        arriving(&["hello"], Some(9), false),
    ];
    for request in cases {
        let upstream = async |mut stream: TcpStream| {
            let mut all = Vec::new();
            let _reset = stream.read_to_end(&mut all).await;
            String::from_utf8(all).unwrap()
        };
        let (answered, heard) = exchange(request, upstream).await;
        match answered {
            Err(Unanswered::NeverSent(_)) => assert_eq!(heard, ""),
            answered => assert!(matches!(answered, Err(Unanswered::Lost(_))), "{answered:?}"),
        }
        assert!(!heard.contains("0\r\n\r\n") && !heard.contains("hello wor"), "{heard}");
    }
}

#[tokio::test]
async fn an_upstream_that_answers_and_hangs_up_before_it_has_read_all_has_answered() {
    let large = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
    // What it has not read is refused with a reset, right behind its answer.
    let request = whole(vec![b'x'; 32 << 20]);
    let (answered, ()) = exchange(request, async |stream| say(stream, large).await).await;
    let (head, body) = answered.unwrap();
    assert_eq!((head.status().as_u16(), body.unwrap()), (413, Bytes::from("no")));
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_not_taken_for_whole() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ];
    for answer in answers {
        for cut in 0..=answer.len() {
            let (answered, ()) = exchange(whole("x"), async |stream| say(stream, &answer[..cut]).await).await;
            let head_ends = answer.find("\r\n\r\n").unwrap() + 4;
            match answered {
                Err(Unanswered::Lost(_)) => assert!(cut < head_ends, "{cut} of {answer}"),
                Ok((_, Err(_))) => assert!((head_ends..answer.len()).contains(&cut), "{cut} of {answer}"),
                Ok((_, Ok(body))) => assert_eq!((body, cut), (Bytes::from("hello"), answer.len())),
                Err(never_sent) => panic!("{never_sent:?}"),
            }
        }
    }
}

/// The kernel knows of the reset before anybody was told.
#[tokio::test]
async fn what_could_not_be_written_at_all_was_never_sent() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    for body in [Payload::from(Bytes::from("body")), Payload::from(axum::body::Body::from("body"))] {
        let prepared = client.prepare().await.unwrap();
        let stream = handed.recv().await.unwrap();
        stream.set_zero_linger().unwrap();
        drop(stream.into_std().unwrap());
        let request = Request::post("/").header("host", "x").body(body).unwrap();
        let failed = client.try_send(None, prepared, request).await.unwrap_err();
        assert!(matches!(failed, Unanswered::NeverSent(_)), "{failed:?}");
    }
}

/// The upstream has read a part of the request: nobody knows what it did with it.
#[tokio::test]
async fn a_request_that_was_cut_anywhere_is_lost() {
    let length = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody".len();
    for cut in 1..=length {
        let upstream = async |mut stream: TcpStream| {
            stream.read_exact(&mut vec![0; cut]).await.unwrap();
            stream.set_zero_linger().unwrap();
        };
        let (answered, ()) = exchange(whole("body"), upstream).await;
        assert!(matches!(answered, Err(Unanswered::Lost(_))), "{cut}: {answered:?}");
    }
}
