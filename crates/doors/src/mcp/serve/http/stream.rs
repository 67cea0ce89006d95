//! The events of one guarded call: written as the server sends them, read by whoever comes for them.
//!
//! A client that lost its stream comes back with the id of the last event it has seen, and gets the rest from here,
//! the settled response last. So what the server has sent is not sent twice, and nothing goes out unsettled.

use crate::http::sse::{self, Piece};
use crate::mcp::door::Given;
use crate::mcp::frame::Frame;
use crate::mcp::link::remote::{Answered, Form, Told};
use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events that are kept for a client that comes back, or is slow. Of more the oldest are lost.
pub const KEPT_BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
pub struct CallStream {
    keeps: Keeps,
    state: Mutex<State>,
    changed: Notify,
}

/// How long an event is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// Whoever lost the stream may come back for it.
    Afterwards,
    /// There is one reader, and no second one will come.
    UntilRead { bytes_max: usize },
}

#[derive(Debug, Default)]
struct State {
    /// The headers of the server's stream, once it has answered with one.
    opened: Option<HeaderMap>,
    items: VecDeque<Item>,
    /// How many items were let go of.
    lost: usize,
    bytes: usize,
    answered: Option<Answered>,
    over: bool,
    /// A reader has gone.
    left: bool,
    readers: usize,
    /// The last reader went before it had its answer, and nobody had told it to come back for it.
    cut_off: bool,
}

impl State {
    /// Nobody will take the answer, there or not yet, unless somebody comes back for it.
    fn is_given_up(&self) {
        if let Some(Item::Last { given, .. }) = self.items.back() {
            given.is_given_up();
        }
    }

    fn lose_oldest(&mut self) {
        let Some(oldest) = self.items.pop_front() else { return };
        self.lost += 1;
        if let Item::Event { raw, .. } = oldest {
            self.bytes -= raw.len();
        }
    }
}

#[derive(Debug, Clone)]
enum Item {
    Event {
        raw: Bytes,
        id: Option<String>,
    },
    /// Here the server let go of its stream; a client that follows is let go of too.
    Pause,
    Last {
        raw: Frame,
        given: Arc<Given>,
    },
}

/// How a call's answer begins.
#[derive(Debug)]
pub enum Begun {
    /// With a stream, under these headers.
    Stream(HeaderMap),
    /// It is over already, and was no stream.
    Whole { given: Option<Arc<Given>>, answered: Option<Answered> },
}

/// What a reader gets next.
#[derive(Debug)]
pub enum Next {
    Event(Bytes),
    Last(Frame, Arc<Given>),
    End,
}

impl Default for CallStream {
    fn default() -> Self {
        CallStream::that(Keeps::Afterwards)
    }
}

impl CallStream {
    fn that(keeps: Keeps) -> CallStream {
        CallStream { keeps, state: Mutex::default(), changed: Notify::new() }
    }

    /// A stream that can be read once, and keeps so much for a slow reader.
    pub fn for_one_reader(bytes_max: usize) -> CallStream {
        CallStream::that(Keeps::UntilRead { bytes_max })
    }

    /// The call is over. `None`: nobody waits for its answer.
    pub fn end(&self, given: Option<Given>) {
        let mut state = self.lock();
        if let Some(given) = given {
            let raw = match &state.answered {
                Some(Answered { form: Form::Event(piece), .. }) => {
                    piece.with_data_in_parts(given.frame.parts())
                }
                _ => sse::message_in_parts(given.frame.parts()),
            };
            state.items.push_back(Item::Last { raw: Frame::new(raw), given: Arc::new(given) });
        }
        if state.cut_off {
            state.is_given_up();
        }
        state.over = true;
        drop(state);
        self.changed.notify_waiters();
    }

    async fn begun(&self) -> Begun {
        let begun = |state: &mut State| {
            if let Some(headers) = &state.opened {
                return Some(Begun::Stream(headers.clone()));
            }
            let given = match state.items.back() {
                Some(Item::Last { given, .. }) => Some(Arc::clone(given)),
                _ => None,
            };
            state.over.then(|| Begun::Whole { given, answered: state.answered.clone() })
        };
        self.until(begun).await
    }

    /// Resolves once it is over.
    pub async fn ended(&self) {
        self.until(|state| state.over.then_some(())).await;
    }

    /// Resolves once a reader has gone.
    pub async fn left(&self) {
        self.until(|state| state.left.then_some(())).await;
    }

    async fn until<T>(&self, mut so: impl FnMut(&mut State) -> Option<T>) -> T {
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

    /// What it holds.
    pub fn bytes(&self) -> usize {
        let state = self.lock();
        let last = state.items.back().map_or(0, |item| match item {
            Item::Last { raw, .. } => raw.len(),
            Item::Event { .. } | Item::Pause => 0,
        });
        state.bytes + last
    }

    pub fn is_over(&self) -> bool {
        self.lock().over
    }

    pub fn has_ids(&self) -> bool {
        self.lock().items.iter().any(|item| matches!(item, Item::Event { id: Some(_), .. }))
    }

    /// Reads from the first event.
    pub fn reader(self: &Arc<Self>) -> Reader {
        self.read_from(&mut self.lock(), 0)
    }

    fn read_from(self: &Arc<Self>, state: &mut State, at: usize) -> Reader {
        state.readers += 1;
        state.cut_off = false;
        Reader { stream: Arc::clone(self), at, waits: true }
    }

    /// Reads what follows the event with this id, if this stream had it.
    pub fn reader_after(self: &Arc<Self>, last_event: &str) -> Option<Reader> {
        let mut state = self.lock();
        let is_it = |item: &Item| matches!(item, Item::Event { id: Some(id), .. } if id == last_event);
        let mut at = state.items.iter().rposition(is_it)? + 1;
        // A pause that has passed is what this reader comes back from.
        while matches!(state.items.get(at), Some(Item::Pause)) {
            at += 1;
        }
        let at = at + state.lost;
        Some(self.read_from(&mut state, at))
    }

    fn push(&self, item: Item) {
        let mut state = self.lock();
        let bytes_max = match self.keeps {
            Keeps::Afterwards => KEPT_BYTES_MAX,
            // Nobody will read it.
            Keeps::UntilRead { .. } if state.left => return,
            Keeps::UntilRead { bytes_max } => bytes_max,
        };
        if let Item::Event { raw, .. } = &item {
            state.bytes += raw.len();
        }
        state.items.push_back(item);
        // The newest stays, however large: whoever reads it now has missed nothing.
        while state.bytes > bytes_max && state.items.len() > 1 {
            state.lose_oldest();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told for CallStream {
    fn opened(&self, headers: &HeaderMap) {
        self.lock().opened.get_or_insert_with(|| headers.clone());
        self.changed.notify_waiters();
    }

    fn piece(&self, piece: Piece) {
        self.push(Item::Event { raw: piece.raw, id: piece.fields.id });
    }

    fn paused(&self) {
        self.push(Item::Pause);
    }

    fn answered(&self, answered: Answered) {
        self.lock().answered = Some(answered);
    }
}

#[derive(Debug)]
pub struct Reader {
    stream: Arc<CallStream>,
    at: usize,
    /// For the answer: whoever has taken it knows itself what becomes of it.
    waits: bool,
}

impl Reader {
    pub async fn begun(&mut self) -> Begun {
        let begun = self.stream.begun().await;
        self.waits = matches!(begun, Begun::Stream(_));
        begun
    }

    pub async fn next(&mut self) -> Next {
        let Reader { stream, at, waits } = self;
        let next = |state: &mut State| {
            // Whoever is so slow that its events are gone has a hole in its stream, and is let go of.
            let Some(index) = at.checked_sub(state.lost) else { return Some(Next::End) };
            let item = match state.items.get(index) {
                Some(item) => item.clone(),
                None => return state.over.then_some(Next::End),
            };
            *at += 1;
            if let (Keeps::UntilRead { .. }, Item::Event { .. }) = (stream.keeps, &item) {
                state.lose_oldest();
            }
            *waits = matches!(item, Item::Event { .. });
            Some(match item {
                Item::Event { raw, .. } => Next::Event(raw),
                Item::Pause => Next::End,
                Item::Last { raw, given } => Next::Last(raw, given),
            })
        };
        stream.until(next).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.lock();
        state.left = true;
        state.readers -= 1;
        state.cut_off = self.waits && state.readers == 0;
        if state.cut_off {
            state.is_given_up();
        }
        drop(state);
        self.stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::sse::Parser;
    use crate::mcp::frame::Frame;
    use http::StatusCode;

    fn piece(text: &str) -> Piece {
        let mut parser = Parser::default();
        parser.push(text.as_bytes());
        parser.next_piece().unwrap().unwrap()
    }

    fn given(text: &str) -> Option<Given> {
        Some(Given::plain(Frame::from(text.to_owned())))
    }

    async fn all(mut reader: Reader) -> String {
        let mut read = Vec::new();
        loop {
            match reader.next().await {
                Next::Event(raw) => read.extend_from_slice(&raw),
                Next::Last(raw, _) => read.extend_from_slice(&raw.to_bytes()),
                Next::End => return String::from_utf8(read).unwrap(),
            }
        }
    }

    #[tokio::test]
    async fn a_client_that_comes_back_gets_the_rest_and_the_settled_response() {
        let stream = Arc::new(CallStream::default());
        stream.opened(&HeaderMap::new());
        stream.piece(piece("id: 1\nretry: 10\ndata:\n\n"));
        stream.paused();
        assert_eq!(all(stream.reader()).await, "id: 1\nretry: 10\ndata:\n\n");
        let waiting = stream.reader_after("1").unwrap();
        assert!(stream.reader_after("7").is_none());
        stream.piece(piece("id: 2\ndata: {\"method\":\"n\"}\n\n"));
        let last = piece("id: 3\ndata: {\"id\":\"semel\"}\n\n");
        let answered =
            Answered { status: StatusCode::OK, headers: HeaderMap::new(), form: Form::Event(last) };
        stream.answered(answered);
        stream.end(given(r#"{"id":7}"#));
        let rest = "id: 2\ndata: {\"method\":\"n\"}\n\nid: 3\ndata: {\"id\":7}\n\n";
        assert_eq!(all(waiting).await, rest);
        assert_eq!(all(stream.reader_after("1").unwrap()).await, rest);
    }

    #[tokio::test]
    async fn a_call_without_a_stream_is_given_whole() {
        let stream = Arc::new(CallStream::default());
        let waiting = tokio::spawn({
            let stream = Arc::clone(&stream);
            async move { stream.begun().await }
        });
        stream.end(given("{}"));
        assert!(matches!(waiting.await.unwrap(), Begun::Whole { given: Some(_), answered: None }));
    }

    #[tokio::test]
    async fn what_is_too_much_is_lost_from_its_beginning() {
        let stream = Arc::new(CallStream::default());
        let slow = stream.reader();
        let large = format!("id: 1\ndata: {}\n\n", "x".repeat(KEPT_BYTES_MAX / 2));
        for _ in 0..3 {
            stream.piece(piece(&large));
        }
        stream.end(None);
        assert_eq!(all(slow).await, "");
        assert!(stream.reader_after("1").is_some());
    }

    #[tokio::test]
    async fn what_only_one_reads_is_kept_until_it_is_read_and_not_once_that_one_has_gone() {
        let stream = Arc::new(CallStream::for_one_reader(1_000));
        let mut reader = stream.reader();
        let event = format!("data: {}\n\n", "x".repeat(400));
        for _ in 0..10 {
            stream.piece(piece(&event));
            assert!(matches!(reader.next().await, Next::Event(raw) if raw == event));
            assert_eq!(stream.bytes(), 0);
        }
        (0..3).for_each(|_| stream.piece(piece(&event)));
        assert!(stream.bytes() < 1_000 && matches!(reader.next().await, Next::End), "it was too slow");
        drop(reader);
        stream.left().await;
        (0..3).for_each(|_| stream.piece(piece(&event)));
        assert!(stream.bytes() < 1_000);
    }
}
