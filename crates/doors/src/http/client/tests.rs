use super::*;
use bytes::Bytes;
use connect::LookingUp;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::dns::Name;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
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

fn request() -> Request<Full<Bytes>> {
    Request::post("/").header("host", "x").body(Full::from("body")).unwrap()
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
    let failed = client.send(prepared, request()).await.unwrap_err();
    assert!(matches!(failed, Failed::NeverSent(_)), "{failed}");
}

#[tokio::test]
async fn a_request_that_was_read_and_not_answered_is_lost_and_not_sent_again() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.send(prepared, request()).await.map(drop) }
    });
    let mut stream = handed.recv().await.unwrap();
    assert!(heard(&mut stream).await.starts_with("POST / HTTP/1.1"));
    drop(stream);
    let failed = sending.await.unwrap().unwrap_err();
    assert!(matches!(failed, Failed::Lost(_)), "{failed}");
    assert!(handed.try_recv().is_err(), "nobody connected again");
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
    let third = client.prepare().await.unwrap();
    assert!(handed.try_recv().is_err(), "an idle connection is taken");
    drop(third);
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.send(prepared, request()).await.unwrap().status() }
    });
    let mut stream = handed.recv().await.unwrap();
    heard(&mut stream).await;
    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(moved.as_bytes()).await.unwrap();
    assert_eq!(sending.await.unwrap(), 307);
    assert!(handed.try_recv().is_err());
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.send(prepared, request()).await.map(drop) }
    });
    let mut stream = handed.recv().await.unwrap();
    heard(&mut stream).await;
    let flood =
        format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(2 * HEADER_BYTES_MAX));
    let _closed = stream.write_all(flood.as_bytes()).await;
    assert!(matches!(sending.await.unwrap(), Err(Failed::Lost(_))));
}

#[tokio::test]
async fn a_request_is_written_to_its_end_though_its_answer_came_first() {
    const LENGTH: usize = 32 << 20;
    let (address, mut handed) = listen().await;
    let client = client(address);
    let prepared = client.prepare().await.unwrap();
    let mut stream = handed.recv().await.unwrap();
    let sending = tokio::spawn(async move {
        let body = Full::from(vec![b'x'; LENGTH]);
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
        let prepared = client.prepare().await.unwrap();
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
