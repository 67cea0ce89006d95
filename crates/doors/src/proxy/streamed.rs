//! Answers that are too large to be held back: they go out while they arrive, and only their end waits for the
//! settlement.

use crate::delivery::Delivery;
use crate::http::body::{self, Gathered, Unreadable};
use crate::http::client::Incoming;
use crate::http::server::on_sent::OnSent;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use semel_core::ids::{AttemptNo, EffectId};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// An answer may take as long as the upstream works.
const ANSWER_PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A client that takes nothing of an answer for this long is gone: shorter than a twin waits for what is under way.
const READER_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Parts of a large answer that wait to be taken. Each may be as large as what a connection holds, and many clients may
/// be slow.
const PARTS_WAITING_MAX: usize = 2;

/// An answer that begins to go out before its end is there.
#[derive(Debug)]
pub struct StreamedHead {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// How many bytes the upstream promised.
    pub length: Option<u64>,
    pub parts: mpsc::Receiver<StreamedPart>,
    pub effect: EffectId,
    pub attempt: AttemptNo,
}

#[derive(Debug)]
pub enum StreamedPart {
    Some(Bytes),
    /// It is settled; nothing follows.
    Last(Bytes, Option<Box<Delivery>>),
}

/// A body that was read to its end.
#[derive(Debug)]
pub enum CollectedBody {
    /// With its place among the large ones, if it is one.
    Whole(Bytes, Option<OwnedSemaphorePermit>),
    /// With its length: all of it but what is held back was given on.
    Streamed(StreamWriter, u64),
}

/// How much of an answer is held back until its end is there.
#[derive(Debug, Clone, Copy)]
pub struct HoldLimit<'a> {
    pub bytes_max: usize,
    /// More of one that is read for what it says, as long as there is room for it.
    pub more: Option<(usize, &'a Arc<Semaphore>)>,
}

/// Reads a body to its end; each part of it is `heard`. A larger one than is held back is given on through what `begin`
/// opens, told how long it is.
pub async fn collect(
    incoming: Incoming,
    held: HoldLimit<'_>,
    heard: impl Fn(),
    begin: impl FnOnce(Option<u64>) -> StreamWriter,
) -> Result<CollectedBody, Unreadable> {
    let mut incoming = std::pin::pin!(incoming);
    let promised = incoming.size_hint().exact();
    let mut gathered = Gathered::default();
    let mut room = None;
    while !incoming.is_end_stream() {
        let Some(data) = body::next(&mut incoming, ANSWER_PAUSE_MAX).await? else { break };
        heard();
        let length = gathered.len() + data.len();
        if room.is_none() && length > held.bytes_max {
            // Nobody waits for it: the upstream's connection and the client would wait along.
            room = held.more.and_then(|(_, room)| Arc::clone(room).try_acquire_owned().ok());
        }
        let bytes_max = match (&room, held.more) {
            (Some(_), Some((bytes_max, _))) => bytes_max,
            _ => held.bytes_max,
        };
        if length > bytes_max {
            let mut giving = begin(promised);
            let mut length = 0;
            for part in [gathered.bytes(), data] {
                length += part.len() as u64;
                giving.give(part).await;
            }
            while !incoming.is_end_stream() {
                let Some(data) = body::next(&mut incoming, ANSWER_PAUSE_MAX).await? else { break };
                heard();
                length += data.len() as u64;
                giving.give(data).await;
            }
            return Ok(CollectedBody::Streamed(giving, length));
        }
        gathered.push(data);
    }
    Ok(CollectedBody::Whole(gathered.bytes(), room))
}

/// The giving side. Its newest part is held back: with it the client would have everything.
#[derive(Debug)]
pub struct StreamWriter {
    /// `None`: nobody takes it any more.
    writer: Option<mpsc::Sender<StreamedPart>>,
    held: Bytes,
}

impl StreamWriter {
    pub fn new() -> (StreamWriter, mpsc::Receiver<StreamedPart>) {
        let (writer, parts) = mpsc::channel(PARTS_WAITING_MAX);
        (StreamWriter { writer: Some(writer), held: Bytes::new() }, parts)
    }

    /// Reads on for nobody: the answer is wanted by the ledger alone.
    pub fn to_nobody() -> StreamWriter {
        StreamWriter { writer: None, held: Bytes::new() }
    }

    async fn give(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.held, data);
        if !before.is_empty() {
            self.send(StreamedPart::Some(before)).await;
        }
    }

    /// It is settled: now the client may have the end. Without this the answer stays without one.
    pub async fn end(mut self, delivery: Option<Delivery>) {
        let held = std::mem::take(&mut self.held);
        self.send(StreamedPart::Last(held, delivery.map(Box::new))).await;
    }

    async fn send(&mut self, part: StreamedPart) {
        let Some(writer) = &self.writer else { return };
        let taken = tokio::time::timeout(READER_PAUSE_MAX, writer.send(part)).await;
        if !matches!(taken, Ok(Ok(()))) {
            // Rule 12: the answer is read to its end all the same.
            self.writer = None;
        }
    }
}

/// The body that the client gets.
#[derive(Debug)]
pub struct StreamedBody {
    parts: mpsc::Receiver<StreamedPart>,
    /// The length of the rest, where the upstream said it.
    length: Option<u64>,
    ended: bool,
    on_sent: OnSent,
}

/// The answer broke off, or could not be settled: its end is never sent.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the answer has no end")]
pub struct Endless;

impl StreamedBody {
    /// `length`: how many bytes the upstream promised. `on_sent`: of the response.
    pub fn new(parts: mpsc::Receiver<StreamedPart>, length: Option<u64>, on_sent: OnSent) -> StreamedBody {
        StreamedBody { parts, length, ended: false, on_sent }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = Endless;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Endless>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let bytes = match ready!(self.parts.poll_recv(context)) {
            Some(StreamedPart::Some(bytes)) => bytes,
            Some(StreamedPart::Last(bytes, delivery)) => {
                self.ended = true;
                if let Some(delivery) = delivery {
                    self.on_sent.set(|| delivery.mark());
                }
                bytes
            }
            None => return Poll::Ready(Some(Err(Endless))),
        };
        self.length = self.length.map(|length| length.saturating_sub(bytes.len() as u64));
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::client::Client;
    use crate::http::target::Target;
    use tokio::io::AsyncWriteExt;

    fn giving() -> (StreamWriter, StreamedBody) {
        let (giving, parts) = StreamWriter::new();
        (giving, StreamedBody::new(parts, Some(4), OnSent::default()))
    }

    async fn taken(body: &mut StreamedBody) -> Option<Result<Bytes, Endless>> {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        frame.map(|frame| frame.map(|frame| frame.into_data().expect("data")))
    }

    #[tokio::test]
    async fn the_newest_part_waits_and_the_last_one_for_the_settlement() {
        let (mut giving, mut body) = giving();
        giving.give(Bytes::from_static(b"ab")).await;
        assert!(body.parts.try_recv().is_err(), "the newest part is held back");
        giving.give(Bytes::from_static(b"cd")).await;
        assert_eq!(taken(&mut body).await.unwrap().unwrap(), "ab");
        assert!(body.parts.try_recv().is_err());
        giving.end(None).await;
        assert_eq!(taken(&mut body).await.unwrap().unwrap(), "cd");
        assert!(body.is_end_stream() && taken(&mut body).await.is_none());
    }

    #[tokio::test]
    async fn each_part_of_an_answer_is_heard() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await.unwrap();
            stream
        };
        let asking = async {
            let target = Target::parse(&format!("http://{address}")).unwrap().with_private(true);
            let client = Client::to(target).unwrap();
            let prepared = client.connect().await.unwrap();
            let request = http::Request::new(Bytes::new());
            client.send(prepared, request).await.unwrap().into_body()
        };
        let (mut stream, body) = tokio::join!(answering, asking);
        let (first, heard) = (tokio::sync::Notify::new(), std::sync::atomic::AtomicUsize::new(0));
        let hear = || {
            heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            first.notify_one();
        };
        let rest = async {
            first.notified().await;
            stream.write_all(b"cd").await.unwrap();
        };
        let held = HoldLimit { bytes_max: 10, more: None };
        let (collected, ()) = tokio::join!(collect(body, held, hear, |_| unreachable!()), rest);
        assert!(matches!(collected, Ok(CollectedBody::Whole(whole, None)) if whole == "abcd"));
        assert_eq!(heard.into_inner(), 2);
    }

    #[tokio::test]
    async fn without_a_settlement_there_is_no_end() {
        let (mut giving, mut body) = giving();
        giving.give(Bytes::from_static(b"abcd")).await;
        drop(giving);
        assert!(matches!(taken(&mut body).await, Some(Err(Endless))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut giving, body) = giving();
        for _ in 0..PARTS_WAITING_MAX + 2 {
            giving.give(Bytes::from_static(b"x")).await;
        }
        assert!(giving.writer.is_none(), "it was waited for, and not for ever");
        giving.give(Bytes::from_static(b"x")).await;
        drop(body);
    }
}
