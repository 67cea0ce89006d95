//! The events of one request: written as the server sends them, read once by the client that asked.
//!
//! They carry no event ids. A client that lost its stream sends its call again, and joins it or gets the settled answer
//! from the record.

use crate::http::sse::{self, Piece};
use crate::mcp::frame::Frame;
use crate::mcp::guard::ClientAnswer;
use crate::mcp::link::remote::{RemoteResponse, ResponseObserver};
use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events that wait for a slow reader. One that is slower has a hole in its stream, and is let go of.
pub const WAITING_BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub struct CallStream {
    bytes_max: usize,
    state: Mutex<StreamState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct StreamState {
    /// The headers of the server's stream, once it has answered with one.
    headers: Option<HeaderMap>,
    events: VecDeque<Bytes>,
    bytes: usize,
    response: Option<RemoteResponse>,
    last: Option<ClientAnswer>,
    over: bool,
    has_hole: bool,
    /// The reader has gone.
    left: bool,
}

/// How a call's answer begins.
#[derive(Debug)]
pub enum StreamStart {
    /// With a stream, under these headers.
    Stream(HeaderMap),
    /// It is over already, and was no stream.
    Whole { answer: Option<ClientAnswer>, response: Option<RemoteResponse> },
}

/// The next thing that a reader gets.
#[derive(Debug)]
pub enum StreamItem {
    Event(Bytes),
    Last(Frame, ClientAnswer),
    End,
}

impl Default for CallStream {
    fn default() -> Self {
        CallStream::within(WAITING_BYTES_MAX)
    }
}

impl CallStream {
    /// One that keeps so much for a slow reader.
    pub fn within(bytes_max: usize) -> CallStream {
        CallStream { bytes_max, state: Mutex::default(), changed: Notify::new() }
    }

    /// The call is over. `None`: its client no longer waits for the answer.
    pub fn end(&self, answer: Option<ClientAnswer>) {
        let mut state = self.lock();
        state.last = answer.filter(|_| !state.left);
        state.over = true;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Resolves once it is over.
    pub async fn ended(&self) {
        self.until(|state| state.over.then_some(())).await;
    }

    /// Resolves once the reader has gone.
    pub async fn left(&self) {
        self.until(|state| state.left.then_some(())).await;
    }

    async fn until<T>(&self, mut so: impl FnMut(&mut StreamState) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = so(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// There is one.
    pub fn reader(self: &Arc<Self>) -> StreamReader {
        StreamReader { stream: Arc::clone(self) }
    }

    fn push(&self, event: Bytes) {
        let mut state = self.lock();
        if state.left || state.has_hole {
            return;
        }
        state.bytes += event.len();
        // One event alone is read, however large.
        state.has_hole = state.bytes > self.bytes_max && !state.events.is_empty();
        match state.has_hole {
            true => state.drop_events(),
            false => state.events.push_back(event),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamState {
    fn drop_events(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}

impl ResponseObserver for CallStream {
    fn on_open(&self, headers: &HeaderMap) {
        self.lock().headers.get_or_insert_with(|| headers.clone());
        self.changed.notify_waiters();
    }

    /// Without its id, which would make a client ask for the rest of this stream elsewhere.
    fn on_piece(&self, piece: Piece) {
        let is_resumable = piece.fields.id.is_some() || piece.fields.retry.is_some();
        match piece.fields.data {
            Some(data) if is_resumable && !data.is_empty() => self.push(sse::message(&data)),
            // It says nothing but where the stream can be taken up again.
            _ if is_resumable => {}
            _ => self.push(piece.raw),
        }
    }

    fn on_response(&self, response: RemoteResponse) {
        self.lock().response = Some(response);
    }
}

#[derive(Debug)]
pub struct StreamReader {
    stream: Arc<CallStream>,
}

impl StreamReader {
    pub async fn start(&mut self) -> StreamStart {
        let start = |state: &mut StreamState| {
            if let Some(headers) = &state.headers {
                return Some(StreamStart::Stream(headers.clone()));
            }
            state
                .over
                .then(|| StreamStart::Whole { answer: state.last.take(), response: state.response.clone() })
        };
        self.stream.until(start).await
    }

    pub async fn next(&mut self) -> StreamItem {
        let next = |state: &mut StreamState| {
            if state.has_hole {
                return Some(StreamItem::End);
            }
            if let Some(event) = state.events.pop_front() {
                state.bytes -= event.len();
                return Some(StreamItem::Event(event));
            }
            state.over.then(|| match state.last.take() {
                Some(answer) => {
                    StreamItem::Last(Frame::new(sse::message_in_parts(answer.frame.parts())), answer)
                }
                None => StreamItem::End,
            })
        };
        self.stream.until(next).await
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        state.left = true;
        state.drop_events();
        state.last = None;
        drop(state);
        self.stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::sse::Parser;

    fn piece(text: &str) -> Piece {
        let mut parser = Parser::default();
        parser.push(text.as_bytes());
        parser.next_piece().unwrap().unwrap()
    }

    fn answer(text: &str) -> Option<ClientAnswer> {
        Some(ClientAnswer::plain(Frame::from(text.to_owned())))
    }

    async fn all(mut reader: StreamReader) -> String {
        let mut read = Vec::new();
        loop {
            match reader.next().await {
                StreamItem::Event(raw) => read.extend_from_slice(&raw),
                StreamItem::Last(raw, _) => read.extend_from_slice(&raw.to_bytes()),
                StreamItem::End => return String::from_utf8(read).unwrap(),
            }
        }
    }

    #[tokio::test]
    async fn events_are_given_on_without_their_ids_and_the_settled_response_last() {
        let stream = Arc::new(CallStream::default());
        let reader = stream.reader();
        stream.on_open(&HeaderMap::new());
        for event in ["id: 1\nretry: 10\ndata:\n\n", "id: 2\ndata: {\"method\":\"n\"}\n\n", ": busy\n"] {
            stream.on_piece(piece(event));
        }
        stream.end(answer(r#"{"id":7}"#));
        let expected =
            "event: message\ndata: {\"method\":\"n\"}\n\n: busy\nevent: message\ndata: {\"id\":7}\n\n";
        assert_eq!(all(reader).await, expected);
    }

    #[tokio::test]
    async fn a_call_without_a_stream_is_given_whole() {
        let stream = Arc::new(CallStream::default());
        let mut reader = stream.reader();
        let waiting = tokio::spawn(async move { reader.start().await });
        stream.end(answer("{}"));
        assert!(matches!(waiting.await.unwrap(), StreamStart::Whole { answer: Some(_), response: None }));
    }

    #[tokio::test]
    async fn a_reader_that_is_too_slow_is_let_go_of_and_nothing_is_kept_once_it_has_gone() {
        let stream = Arc::new(CallStream::within(1_000));
        let mut reader = stream.reader();
        let event = format!("data: {}\n\n", "x".repeat(400));
        for _ in 0..10 {
            stream.on_piece(piece(&event));
            assert!(matches!(reader.next().await, StreamItem::Event(raw) if raw == event));
            assert_eq!(stream.lock().bytes, 0);
        }
        (0..3).for_each(|_| stream.on_piece(piece(&event)));
        assert!(
            stream.lock().bytes < 1_000 && matches!(reader.next().await, StreamItem::End),
            "it was too slow"
        );
        drop(reader);
        stream.left().await;
        (0..3).for_each(|_| stream.on_piece(piece(&event)));
        assert_eq!(stream.lock().bytes, 0);
        stream.end(answer("{}"));
        assert!(stream.lock().last.is_none(), "nobody will take it");
    }
}
