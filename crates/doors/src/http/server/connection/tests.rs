use super::super::on_sent::OnSent;
use super::super::problem;
use super::super::socket::TAKES_NOTHING_MAX;
use super::*;
use crate::http::body::{PAUSE_MAX, Piped, read};
use bytes::Bytes;
use http_body_util::BodyExt;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// A client, and the connection that talks with it.
struct Talk {
    client: TcpStream,
    talking: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Talk {
    async fn with<F>(answer: impl Fn(Request<Body>) -> F + Send + Sync + 'static) -> Talk
    where
        F: Future<Output = Response> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let talking = tokio::spawn(async move {
            let answer = |request| {
                let response = answer(request);
                async move { HeldResponse { response: response.await, held: () } }
            };
            serve(stream, None, answer, stopped).await;
        });
        Talk { client, talking, stop }
    }

    /// Answers each request with its target and its body.
    async fn echoing() -> Talk {
        Talk::with(async |request| echo(request).await).await
    }

    async fn says(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.unwrap();
    }

    /// All that comes until this has come.
    async fn hears(&mut self, last: &str) -> String {
        let mut heard = String::new();
        while !heard.ends_with(last) {
            let mut byte = [0];
            let read = self.client.read(&mut byte).await.unwrap();
            assert!(read > 0, "it ended behind {heard:?}, without {last:?}");
            heard.push(byte[0].into());
        }
        heard
    }

    /// All that comes, to the connection's end.
    async fn hears_all(mut self) -> String {
        let mut heard = Vec::new();
        self.client.read_to_end(&mut heard).await.unwrap();
        drop(self.client);
        self.talking.await.unwrap();
        String::from_utf8(heard).unwrap()
    }
}

async fn echo(request: Request<Body>) -> Response {
    let target = request.uri().to_string();
    match read(request.into_body(), 1 << 20, PAUSE_MAX).await {
        Ok(body) => text(&format!("{target}:{}", String::from_utf8_lossy(&body))),
        Err(error) => problem(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn text(text: &str) -> Response {
    Response::new(Body::from(text.to_owned()))
}

fn statuses(heard: &str) -> Vec<&str> {
    heard.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[tokio::test]
async fn requests_are_answered_one_after_the_other_however_they_come() {
    let asked = "POST /1 HTTP/1.1\r\nContent-Length: 3\r\n\r\none\
                 POST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n\
                 GET /3 HTTP/1.1\r\n\r\n\
                 HEAD /4 HTTP/1.1\r\n\r\n\
                 POST /5 HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfive";
    let mut at_once = Talk::echoing().await;
    at_once.says(asked).await;
    let heard = at_once.hears_all().await;
    assert_eq!(statuses(&heard), ["200"; 5], "{heard}");
    for body in ["\r\n\r\n/1:one", "\r\n\r\n/2:two", "\r\n\r\n/3:", "\r\n\r\n/5:five"] {
        assert!(heard.contains(body), "{body}: {heard}");
    }
    assert!(!heard.contains("/4:"), "{heard}");
    let mut in_parts = Talk::echoing().await;
    for part in asked.as_bytes().chunks(7) {
        in_parts.says(std::str::from_utf8(part).unwrap()).await;
        tokio::task::yield_now().await;
    }
    let undated =
        |heard: &str| heard.lines().filter(|line| !line.starts_with("date: ")).collect::<Vec<_>>().join("\n");
    assert_eq!(undated(&in_parts.hears_all().await), undated(&heard));
}

#[tokio::test]
async fn an_answer_that_arrives_leaves_as_it_comes_and_says_when_it_breaks_off() {
    let (writer, body) = Piped::new();
    let body = Mutex::new(Some(body));
    let mut whole = Talk::with(move |_| {
        let body = Body::new(body.lock().unwrap().take().unwrap());
        async move { Response::new(body) }
    })
    .await;
    whole.says(GET).await;
    assert!(whole.hears("\r\n\r\n").await.contains("transfer-encoding: chunked\r\n"));
    writer.send("first".into()).await.unwrap();
    whole.hears("5\r\nfirst\r\n").await;
    writer.send("last".into()).await.unwrap();
    drop(writer);
    assert!(whole.hears("0\r\n\r\n").await.starts_with("4\r\nlast\r\n"));
    let mut cut = Talk::with(async |_| Response::new(Body::new(Cut(false)))).await;
    cut.says(GET).await;
    assert!(!cut.hears_all().await.ends_with("0\r\n\r\n"), "it does not look whole");
}

/// Half of an answer.
struct Cut(bool);

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        let was_half = std::mem::replace(&mut self.0, true);
        let half = http_body::Frame::data(Bytes::from_static(b"half"));
        Poll::Ready(Some(if was_half { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(half) }))
    }
}

/// Whether an answer left, to a client that did this while it was made.
async fn leaves(client_does: impl AsyncFnOnce(TcpStream) -> Option<TcpStream>) -> bool {
    let left = Arc::new(AtomicBool::new(false));
    let (go, gone) = oneshot::channel::<()>();
    let (seen, gone) = (Arc::clone(&left), Mutex::new(Some(gone)));
    let (begun, began) = oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let Talk { mut client, talking, stop } = Talk::with(move |_| {
        let (seen, gone) = (Arc::clone(&seen), gone.lock().unwrap().take().unwrap());
        begun.lock().unwrap().take().unwrap().send(()).unwrap();
        async move {
            // Not heard by whoever makes the answer, as where that takes all of its thread's time.
            let _told = tokio::task::block_in_place(|| gone.blocking_recv());
            let mut response = text("an answer");
            response.extensions_mut().insert(OnSent::new(move || seen.store(true, Ordering::SeqCst)));
            response
        }
    })
    .await;
    client.write_all(GET.as_bytes()).await.unwrap();
    began.await.unwrap();
    let client = client_does(client).await;
    go.send(()).unwrap();
    if let Some(mut client) = client {
        stop.send_replace(true);
        client.read_to_end(&mut Vec::new()).await.unwrap();
    }
    talking.await.unwrap();
    left.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_left_once_it_was_written_to_somebody() {
    assert!(leaves(async |client| Some(client)).await);
    assert!(!leaves(async |_gone| None).await);
    let stray_byte = async |mut client: TcpStream| {
        client.write_all(b"x").await.unwrap();
        None
    };
    assert!(!leaves(stray_byte).await);
}

/// Counts those that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Answers nobody, and counts whom it was given up for.
async fn never() -> (Talk, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dropped);
    let talk = Talk::with(move |_| {
        let dropped = Dropped(Arc::clone(&counted));
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            text("never")
        }
    });
    (talk.await, dropped)
}

#[tokio::test]
async fn what_is_made_for_a_client_ends_when_it_goes() {
    let (mut waiting, dropped) = never().await;
    waiting.says(GET).await;
    drop(waiting.client);
    waiting.talking.await.unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "before its answer");
    let (mut half, dropped) = never().await;
    half.says(GET).await;
    half.client.shutdown().await.unwrap();
    assert_eq!(half.hears_all().await, "", "who says no more counts as gone");
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    let (writer, body) = Piped::new();
    let body = Mutex::new(Some(body));
    let mut reading = Talk::with(move |_| {
        let body = Body::new(body.lock().unwrap().take().unwrap());
        async move { Response::new(body) }
    })
    .await;
    reading.says(GET).await;
    reading.hears("\r\n\r\n").await;
    drop(reading.client);
    writer.closed().await;
    reading.talking.await.unwrap();
}

#[tokio::test]
async fn a_client_is_told_to_go_on_when_its_body_is_wanted() {
    let asks = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut wanted = Talk::echoing().await;
    wanted.says(asks).await;
    assert_eq!(wanted.hears("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    wanted.says("ok").await;
    assert!(wanted.hears("/:ok").await.starts_with("HTTP/1.1 200 OK\r\n"));
    wanted.says(GET).await;
    wanted.hears("/:").await;
    let mut unwanted = Talk::with(async |_| text("no, thank you")).await;
    unwanted.says(asks).await;
    let heard = unwanted.hears_all().await;
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.ends_with("no, thank you"), "{heard}");
}

#[tokio::test]
async fn who_is_answered_before_all_was_sent_hears_the_answer() {
    let mut short = Talk::with(async |_| text("enough")).await;
    short.says("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").await;
    short.hears("enough").await;
    short.says(GET).await;
    short.hears("enough").await;
    let mut long = Talk::with(async |_| text("enough")).await;
    let megabyte = "x".repeat(1 << 20);
    long.says(&format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", 32 << 20)).await;
    for _ in 0..32 {
        long.says(&megabyte).await;
    }
    let heard = long.hears_all().await;
    assert!(heard.ends_with("enough"), "{heard}");
}

/// Answers at once, and sends on what was read of each body.
async fn early() -> (Talk, mpsc::UnboundedReceiver<Result<Bytes, String>>) {
    let (read, was_read) = mpsc::unbounded_channel();
    let early = Talk::with(move |request| {
        let read = read.clone();
        tokio::spawn(async move {
            let body = request.into_body().collect().await;
            read.send(body.map(|body| body.to_bytes()).map_err(|error| error.to_string()))
        });
        async move { text("early") }
    })
    .await;
    (early, was_read)
}

#[tokio::test]
async fn a_body_that_somebody_still_reads_is_read_to_its_end_before_the_next_request() {
    let (mut talk, mut was_read) = early().await;
    talk.says("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhello").await;
    talk.hears("early").await;
    talk.says("there").await;
    assert_eq!(was_read.recv().await.unwrap().unwrap(), "hellothere");
    talk.says(GET).await;
    assert!(talk.hears("early").await.starts_with("HTTP/1.1 200 OK\r\n"));
    let (mut last, mut was_read) = early().await;
    last.says("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhello").await;
    last.hears("early").await;
    last.says("thereGET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(was_read.recv().await.unwrap().unwrap(), "hellothere");
    assert_eq!(last.hears_all().await, "", "nothing more is answered");
}

/// Somebody may ask once more than there is, and the next request's body is not theirs.
#[tokio::test]
async fn a_body_that_was_read_gets_nothing_of_the_next() {
    let earlier = Arc::new(tokio::sync::Mutex::new(None::<Body>));
    let kept = Arc::clone(&earlier);
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let mut talk = Talk::with(move |request| {
        let (kept, begun) = (Arc::clone(&kept), begun.clone());
        async move {
            begun.send(()).unwrap();
            if request.uri() != "/first" {
                return echo(request).await;
            }
            let mut body = request.into_body();
            while !body.is_end_stream() {
                body.frame().await.unwrap().unwrap();
            }
            *kept.lock().await = Some(body);
            text("kept")
        }
    })
    .await;
    for (framing, body) in
        [("Content-Length: 4", "next"), ("Transfer-Encoding: chunked", "4\r\nnext\r\n0\r\n\r\n")]
    {
        talk.says("POST /first HTTP/1.1\r\nContent-Length: 5\r\n\r\nfi").await;
        has_begun.recv().await.unwrap();
        talk.says("rst").await;
        talk.hears("kept").await;
        talk.says(&format!("POST /second HTTP/1.1\r\n{framing}\r\n\r\n")).await;
        has_begun.recv().await.unwrap();
        let mut earlier = earlier.lock().await.take().unwrap();
        talk.says(&body[..1]).await;
        assert!(earlier.is_end_stream() && earlier.frame().await.is_none());
        drop(earlier);
        talk.says(&body[1..]).await;
        talk.hears("/second:next").await;
    }
}

#[tokio::test]
async fn who_has_no_other_way_to_know_hears_of_a_break_by_a_reset() {
    let mut old = Talk::with(async |_| Response::new(Body::new(Cut(false)))).await;
    old.says("GET / HTTP/1.0\r\n\r\n").await;
    let mut heard = Vec::new();
    let ended = old.client.read_to_end(&mut heard).await.map_err(|error| error.kind());
    assert_eq!(ended, Err(io::ErrorKind::ConnectionReset), "{}", String::from_utf8_lossy(&heard));
}

#[tokio::test]
async fn what_is_no_request_is_told_so_and_ends_the_connection() {
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(HEADER_BYTES_MAX));
    for (asked, status) in [
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/3.0\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "400"),
        (&many, "431"),
        (&long, "431"),
    ] {
        let mut talk = Talk::echoing().await;
        talk.says(GET).await;
        talk.hears("/:").await;
        talk.says(asked).await;
        let heard = talk.hears_all().await;
        assert_eq!(statuses(&heard), [status], "{asked}");
        assert!(heard.contains("connection: close"), "{heard}");
    }
}

/// hyper would drop one of two lengths. Both are seen above, where such a request is refused.
#[tokio::test]
async fn a_length_beside_chunks_is_seen() {
    let mut talk = Talk::with(async |request: Request<Body>| {
        assert!(request.headers().contains_key(http::header::CONTENT_LENGTH));
        assert!(request.headers().contains_key(http::header::TRANSFER_ENCODING));
        text("both")
    })
    .await;
    talk.says("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    talk.hears("both").await;
}

/// Nothing that was cut off is answered as if it were whole.
#[tokio::test]
async fn a_request_that_is_cut_anywhere_is_not_taken_for_whole() {
    let requests = [
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ];
    for request in requests {
        for cut in 0..=request.len() {
            let read = Arc::<AtomicUsize>::default();
            let counted = Arc::clone(&read);
            let mut talk = Talk::with(move |request: Request<Body>| {
                let counted = Arc::clone(&counted);
                async move {
                    if request.into_body().collect().await.is_ok() {
                        counted.fetch_add(1, Ordering::SeqCst);
                    }
                    text("read")
                }
            })
            .await;
            talk.says(&request[..cut]).await;
            if cut == request.len() {
                talk.hears("read").await;
            }
            talk.client.shutdown().await.unwrap();
            talk.hears_all().await;
            assert_eq!(read.load(Ordering::SeqCst), usize::from(cut == request.len()), "{cut} of {request}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_none_is_told_so_and_ends_the_connection() {
    for body in ["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}x", "ffffffffffffffffff\r\n"] {
        let mut talk = Talk::echoing().await;
        talk.says(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}")).await;
        let heard = talk.hears_all().await;
        assert_eq!(statuses(&heard), ["400"], "{body}: {heard}");
    }
    let mut cut = Talk::echoing().await;
    cut.says("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel").await;
    cut.client.shutdown().await.unwrap();
    assert!(!cut.hears_all().await.contains("200 OK"));
}

#[tokio::test]
async fn an_old_client_is_answered_until_the_connection_ends() {
    let mut sized = Talk::echoing().await;
    sized.says("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    assert!(sized.hears("/:").await.contains("connection: keep-alive"));
    sized.says("GET / HTTP/1.0\r\n\r\n").await;
    assert!(sized.hears_all().await.ends_with("/:"));
    let mut arriving = Talk::with(async |_| {
        let (writer, body) = Piped::new();
        tokio::spawn(async move {
            for part in ["one ", "two"] {
                writer.send(part.into()).await.unwrap();
            }
        });
        Response::new(Body::new(body))
    })
    .await;
    arriving.says("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    let heard = arriving.hears_all().await;
    assert!(heard.ends_with("\r\n\r\none two"), "{heard}");
}

#[tokio::test]
async fn who_is_told_to_stop_answers_what_has_begun_and_nothing_more() {
    let idle = Talk::echoing().await;
    idle.stop.send_replace(true);
    assert_eq!(idle.hears_all().await, "");
    let mut begun = Talk::echoing().await;
    begun.says("GET / HT").await;
    tokio::task::yield_now().await;
    begun.stop.send_replace(true);
    tokio::task::yield_now().await;
    begun.says("TP/1.1\r\n\r\n").await;
    assert!(begun.hears_all().await.contains("connection: close"));
    let (go, gone) = oneshot::channel::<()>();
    let gone = Mutex::new(Some(gone));
    let mut under_way = Talk::with(move |_| {
        let gone = gone.lock().unwrap().take().unwrap();
        async move {
            let _told = gone.await;
            text("at last")
        }
    })
    .await;
    under_way.says(GET).await;
    under_way.stop.send_replace(true);
    go.send(()).unwrap();
    let heard = under_way.hears_all().await;
    assert!(heard.ends_with("at last"), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_without_end() {
    assert_eq!(Talk::echoing().await.hears_all().await, "", "nothing came");
    let mut slow = Talk::echoing().await;
    slow.says("GET / HTTP/1.1\r\nX: ").await;
    assert_eq!(slow.hears_all().await, "", "it says no more than that");
    let mut between = Talk::echoing().await;
    between.says(GET).await;
    between.hears("/:").await;
    assert_eq!(between.hears_all().await, "");
}

/// More than the kernel holds for anybody.
const LARGE_BYTES: usize = 64 << 20;

/// Paused time jumps ahead whenever nobody has anything to do, and what the kernel does takes time that it knows nothing
/// of. As long as this is there, it stands still.
struct StandsStill {
    _until_dropped: std::sync::mpsc::Sender<()>,
}

impl StandsStill {
    fn begin() -> StandsStill {
        let (_until_dropped, dropped) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || dropped.recv());
        StandsStill { _until_dropped }
    }
}

async fn large() -> Talk {
    let mut talk = Talk::with(async |_| Response::new(Body::from(vec![b'x'; LARGE_BYTES]))).await;
    talk.says(GET).await;
    talk
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_of_an_answer_is_hung_up_on_and_cannot_take_it_for_whole() {
    let Talk { mut client, talking, .. } = large().await;
    let began = crate::runtime::moment();
    talking.await.unwrap();
    assert!(began.elapsed() >= TAKES_NOTHING_MAX, "{:?}", began.elapsed());
    let ended = client.read_to_end(&mut Vec::new()).await.map_err(|error| error.kind());
    assert_eq!(ended, Err(io::ErrorKind::ConnectionReset));
}

#[tokio::test(start_paused = true)]
async fn who_takes_an_answer_slowly_gets_all_of_it() {
    let Talk { mut client, .. } = large().await;
    let (mut heard, mut part) = (0, vec![0; LARGE_BYTES / 4]);
    for _ in 0..4 {
        tokio::time::sleep(TAKES_NOTHING_MAX * 3 / 4).await;
        let _meanwhile = StandsStill::begin();
        heard += client.read_exact(&mut part).await.unwrap();
    }
    assert_eq!(heard, LARGE_BYTES);
}

/// Most kernels tell of room only once there is a lot of it.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn who_takes_a_little_every_second_is_not_cut() {
    let Talk { mut client, talking, .. } = large().await;
    let mut part = [0; 4 << 10];
    for _ in 0..2 * TAKES_NOTHING_MAX.as_secs() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.read_exact(&mut part).await.unwrap();
    }
    assert!(!talking.is_finished());
}

/// A body that says all with its first part, and ends once it is told to.
struct Terminal {
    on_sent: OnSent,
    has_left: Arc<AtomicBool>,
    said: bool,
    end: oneshot::Receiver<()>,
}

impl http_body::Body for Terminal {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        if !std::mem::replace(&mut self.said, true) {
            let has_left = Arc::clone(&self.has_left);
            self.on_sent.set_for_this_part(move || has_left.store(true, Ordering::SeqCst));
            return Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(b"data: [DONE]\n\n")))));
        }
        Pin::new(&mut self.end).poll(context).map(|_| None)
    }
}

#[tokio::test]
async fn an_answer_has_left_with_the_part_that_says_all_though_its_client_closes_there() {
    let (end, ended) = oneshot::channel();
    let ended = Mutex::new(Some(ended));
    let left = Arc::<AtomicBool>::default();
    let has_left = Arc::clone(&left);
    let mut talk = Talk::with(move |_| {
        let on_sent = OnSent::default();
        let end = ended.lock().unwrap().take().expect("one request");
        let (has_left, said) = (Arc::clone(&has_left), false);
        let body = Terminal { on_sent: on_sent.clone(), has_left, said, end };
        let mut response = Response::new(Body::new(body));
        response.extensions_mut().insert(on_sent);
        async move { response }
    })
    .await;
    talk.says(GET).await;
    talk.hears("[DONE]\n\n").await;
    drop(talk.client);
    talk.talking.await.unwrap();
    drop(end);
    assert!(left.load(Ordering::SeqCst), "it was delivered when its client closed");
}
