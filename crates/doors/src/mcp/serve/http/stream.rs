//! The events of one guarded call: written as the server sends them, read by whoever comes for them.
//!
//! A client that lost its stream comes back with the id of the last event it has seen, and gets the rest from here,
//! the settled response last. So what the server has sent is not sent twice, and nothing goes out unsettled.

use crate::http::sse::{self, Piece};
use crate::mcp::door::Given;
use crate::mcp::link::remote::{Answered, Form, Told};
use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events that are kept for a client that comes back. Of more the oldest are lost.
const KEPT_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Default)]
pub struct CallStream {
    state: Mutex<State>,
    changed: Notify,
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
        raw: Bytes,
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
    Last(Bytes, Arc<Given>),
    End,
}

impl CallStream {
    /// The call is over. `None`: nobody waits for its answer.
    pub fn end(&self, given: Option<Given>) {
        let mut state = self.lock();
        if let Some(given) = given {
            let raw = match &state.answered {
                Some(Answered { form: Form::Event(piece), .. }) => piece.with_data(&given.frame.to_bytes()),
                _ => sse::message(&given.frame.to_bytes()),
            };
            state.items.push_back(Item::Last { raw, given: Arc::new(given) });
        }
        state.over = true;
        drop(state);
        self.changed.notify_waiters();
    }

    pub async fn begun(&self) -> Begun {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let state = self.lock();
                if let Some(headers) = &state.opened {
                    return Begun::Stream(headers.clone());
                }
                if state.over {
                    let given = match state.items.back() {
                        Some(Item::Last { given, .. }) => Some(Arc::clone(given)),
                        _ => None,
                    };
                    return Begun::Whole { given, answered: state.answered.clone() };
                }
            }
            changed.await;
        }
    }

    /// Resolves once it is over.
    pub async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.is_over() {
                return;
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
        Reader { stream: Arc::clone(self), at: 0 }
    }

    /// Reads what follows the event with this id, if this stream had it.
    pub fn reader_after(self: &Arc<Self>, last_event: &str) -> Option<Reader> {
        let state = self.lock();
        let is_it = |item: &Item| matches!(item, Item::Event { id: Some(id), .. } if id == last_event);
        let mut at = state.items.iter().rposition(is_it)? + 1;
        // A pause that has passed is what this reader comes back from.
        while matches!(state.items.get(at), Some(Item::Pause)) {
            at += 1;
        }
        Some(Reader { stream: Arc::clone(self), at: at + state.lost })
    }

    fn push(&self, item: Item) {
        let mut state = self.lock();
        if let Item::Event { raw, .. } = &item {
            state.bytes += raw.len();
        }
        state.items.push_back(item);
        // The newest stays, however large: whoever reads it now has missed nothing.
        while state.bytes > KEPT_BYTES_MAX && state.items.len() > 1 {
            let Some(oldest) = state.items.pop_front() else { break };
            state.lost += 1;
            if let Item::Event { raw, .. } = oldest {
                state.bytes -= raw.len();
            }
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
}

impl Reader {
    /// Nobody reads any more: a call that comes for the same thing need not wait for this answer.
    pub fn let_go(self) {
        if let Some(Item::Last { given, .. }) = self.stream.lock().items.back() {
            given.has_left();
        }
    }

    pub async fn next(&mut self) -> Next {
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let state = stream.lock();
                // Whoever is so slow that its events are gone has a hole in its stream, and is let go of.
                let Some(index) = self.at.checked_sub(state.lost) else { return Next::End };
                if let Some(item) = state.items.get(index) {
                    self.at += 1;
                    return match item.clone() {
                        Item::Event { raw, .. } => Next::Event(raw),
                        Item::Pause => Next::End,
                        Item::Last { raw, given } => Next::Last(raw, given),
                    };
                }
                if state.over {
                    return Next::End;
                }
            }
            changed.await;
        }
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
                Next::Event(raw) | Next::Last(raw, _) => read.extend_from_slice(&raw),
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
}
