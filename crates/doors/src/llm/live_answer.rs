//! An answer while it comes: all of it from its first byte, for as many readers as want it, each at its own pace.

use crate::delivery::Delivery;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use semel_core::ids::{AttemptNo, EffectId};
use semel_core::policy::prices::TokenUsage;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// The longest answer that is kept: some 200,000 tokens as events, the longest that models give.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// All answers that are coming, together. Beyond it they are given on and no longer kept.
const BUFFERED_BYTES_MAX: usize = 1 << 30;

/// Of an answer that is not kept, what its readers may lag behind before its upstream has to wait for them.
const WINDOW_BYTES: usize = 1 << 20;

/// The answers that are coming, by the attempt that fetches each.
#[derive(Debug, Default)]
pub struct LiveAnswers {
    by_attempt: Mutex<HashMap<AttemptKey, Weak<LiveAnswer>>>,
    buffered: AtomicUsize,
    /// Requests that are under way, those included that nobody waits for any more.
    under_way: AtomicUsize,
}

/// As many requests at once as one process can follow; more are turned away before anything is claimed.
const CALLS_MAX: usize = 16_384;

/// Held while a request is under way.
#[derive(Debug)]
pub struct ModelCallGuard(Arc<LiveAnswers>);

impl Drop for ModelCallGuard {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

type AttemptKey = (EffectId, AttemptNo);

impl LiveAnswers {
    /// `None`: there are too many.
    pub fn enter(self: &Arc<Self>) -> Option<ModelCallGuard> {
        let entered = ModelCallGuard(Arc::clone(self));
        (self.under_way.fetch_add(1, Ordering::Relaxed) < CALLS_MAX).then_some(entered)
    }

    /// The answer of an attempt. Whoever comes first makes its place: a twin may ask before the sender has begun.
    pub fn of(self: &Arc<Self>, effect: EffectId, attempt: AttemptNo) -> Arc<LiveAnswer> {
        let key = (effect, attempt);
        let mut lives = self.by_attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = lives.get(&key).and_then(Weak::upgrade) {
            return live;
        }
        let live = Arc::new(LiveAnswer { key: Some(key), home: Arc::clone(self), state: Mutex::default() });
        lives.insert(key, Arc::downgrade(&live));
        live
    }

    /// The answer of what is not recorded: nobody joins it.
    pub fn unrecorded(self: &Arc<Self>) -> Arc<LiveAnswer> {
        Arc::new(LiveAnswer { key: None, home: Arc::clone(self), state: Mutex::default() })
    }
}

/// The answer of one attempt.
#[derive(Debug)]
pub struct LiveAnswer {
    key: Option<AttemptKey>,
    home: Arc<LiveAnswers>,
    state: Mutex<LiveState>,
}

#[derive(Debug, Default)]
struct LiveState {
    head: Option<Arc<AnswerHead>>,
    pieces: Vec<Bytes>,
    /// Pieces that were let go from the front, once the answer had become too long to keep.
    gone: usize,
    /// Pieces that readers may have; the end is held back until it is settled.
    shown: usize,
    /// The piece that ends a stream for its readers, whatever comes behind it.
    terminal: Option<usize>,
    /// Bytes that lie here.
    held: usize,
    /// Bytes of the whole answer so far.
    length: u64,
    too_long: bool,
    ended: Option<AnswerEnd>,
    readers: Vec<ReaderPlace>,
    next_reader: u64,
    writer: Option<Waker>,
}

#[derive(Debug)]
struct ReaderPlace {
    id: u64,
    at: usize,
    waker: Option<Waker>,
}

/// How an answer begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerHead {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub form: AnswerForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// One JSON document.
    Document,
    /// A stream of events.
    Events,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub enum AnswerEnd {
    /// It is settled, and this is marked once it has reached somebody.
    Answer { delivery: Option<Delivery>, cost: Option<TokenUsage> },
    /// The upstream said all that it had to say, and it is no answer: an error is passed on whole.
    Error,
    /// An error in the middle of a stream is passed on too; what may follow it is not waited for.
    CutAtError,
    /// The rest never came.
    Cut,
}

/// The next step of a reader.
#[derive(Debug)]
pub enum NextPiece {
    Piece(Bytes),
    /// The event that ends a stream, of which all that its client needs was given with it. Clients close here.
    Terminal {
        piece: Bytes,
        delivery: Option<Delivery>,
        cost: Option<TokenUsage>,
    },
    End(AnswerEnd),
    /// It was too slow for an answer that is too long to keep.
    Lost,
}

impl LiveAnswer {
    pub fn begin(&self, head: Arc<AnswerHead>) {
        let mut state = self.lock();
        state.head = Some(head);
        state.wake();
    }

    pub fn head(&self) -> Option<Arc<AnswerHead>> {
        self.lock().head.clone()
    }

    /// Adds a piece; readers get it at once if it is `shown`, else when the answer has ended.
    pub fn push(&self, piece: Bytes, shown: bool) {
        let size = piece.len();
        let mut state = self.lock();
        state.length += size as u64;
        state.held += size;
        let all = self.home.buffered.fetch_add(size, Ordering::Relaxed) + size;
        state.too_long |= state.held > ANSWER_BYTES_MAX || all > BUFFERED_BYTES_MAX;
        state.pieces.push(piece);
        if !shown && state.terminal.is_none() && state.is_stream() {
            state.terminal = Some(state.end() - 1);
        }
        if shown || state.too_long {
            // Of what is too long the very last piece is held back: it is the end, whatever it says.
            state.shown = state.end() - usize::from(!shown);
        }
        if state.too_long {
            self.let_go(&mut state);
        }
        state.wake();
    }

    /// Waits while the readers of an answer that is not kept lag behind.
    pub async fn room(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.too_long || state.held <= WINDOW_BYTES || state.readers.is_empty() {
                return Poll::Ready(());
            }
            state.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Resolves when everybody who read it has gone.
    pub async fn abandoned(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.readers.is_empty() {
                return Poll::Ready(());
            }
            state.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The rest that was held back is shown, unless it is the end of what could not be settled.
    pub fn finish(&self, ended: AnswerEnd) {
        let mut state = self.lock();
        if !matches!(ended, AnswerEnd::Cut) {
            state.shown = state.end();
        }
        state.ended = Some(ended);
        state.wake();
    }

    /// All of it, if it is kept.
    pub fn whole(&self) -> Result<Vec<Bytes>, TooLong> {
        let state = self.lock();
        match state.too_long {
            true => Err(TooLong(state.length)),
            false => Ok(state.pieces.clone()),
        }
    }

    /// The pieces so far, as far as they are kept.
    pub fn so_far(&self) -> (AnswerForm, Vec<Bytes>) {
        let state = self.lock();
        (state.head.as_ref().map_or(AnswerForm::Document, |head| head.form), state.pieces.clone())
    }

    /// Whether it ended as an error of the API.
    pub fn is_error(&self) -> bool {
        matches!(self.lock().ended, Some(AnswerEnd::Error | AnswerEnd::CutAtError))
    }

    /// Whether all of it is still here for somebody who comes now.
    pub fn is_kept(&self) -> bool {
        !self.lock().too_long
    }

    pub fn reader(self: &Arc<Self>) -> AnswerReader {
        let mut state = self.lock();
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.push(ReaderPlace { id, at: 0, waker: None });
        AnswerReader { live: Arc::clone(self), id }
    }

    fn let_go(&self, state: &mut LiveState) {
        let wanted = state.readers.iter().map(|place| place.at).min().unwrap_or(usize::MAX);
        let from = wanted.min(state.shown).saturating_sub(state.gone).min(state.pieces.len());
        let freed: usize = state.pieces.drain(..from).map(|piece| piece.len()).sum();
        state.gone += from;
        state.held -= freed;
        self.home.buffered.fetch_sub(freed, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer has this many bytes, and is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong(pub u64);

impl LiveState {
    fn is_stream(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.form == AnswerForm::Events)
    }

    fn end(&self) -> usize {
        self.gone + self.pieces.len()
    }

    fn wake(&mut self) {
        self.readers.iter_mut().filter_map(|place| place.waker.take()).for_each(Waker::wake);
    }
}

impl Drop for LiveAnswer {
    fn drop(&mut self) {
        let held = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).held;
        self.home.buffered.fetch_sub(held, Ordering::Relaxed);
        let Some(key) = self.key else { return };
        let mut lives = self.home.by_attempt.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have made its place anew meanwhile.
        if lives.get(&key).is_some_and(|live| live.strong_count() == 0) {
            lives.remove(&key);
        }
    }
}

/// One reader of an answer.
#[derive(Debug)]
pub struct AnswerReader {
    live: Arc<LiveAnswer>,
    id: u64,
}

impl AnswerReader {
    pub fn live(&self) -> &Arc<LiveAnswer> {
        &self.live
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NextPiece> {
        let mut state = self.live.lock();
        let LiveState { gone, shown, .. } = *state;
        let Some(index) = state.readers.iter().position(|place| place.id == self.id) else {
            return Poll::Ready(NextPiece::Lost);
        };
        let at = state.readers[index].at;
        if at < gone {
            return Poll::Ready(NextPiece::Lost);
        }
        if at < shown {
            let piece = state.pieces[at - gone].clone();
            let is_terminal = state.terminal == Some(at);
            state.readers[index].at += 1;
            if state.too_long {
                self.live.let_go(&mut state);
                state.writer.take().into_iter().for_each(Waker::wake);
            }
            return Poll::Ready(match &state.ended {
                Some(AnswerEnd::Answer { delivery, cost }) if is_terminal => {
                    NextPiece::Terminal { piece, delivery: delivery.clone(), cost: *cost }
                }
                _ => NextPiece::Piece(piece),
            });
        }
        if let Some(ended) = &state.ended {
            return Poll::Ready(NextPiece::End(ended.clone()));
        }
        state.readers[index].waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Resolves when it has ended.
    pub async fn ended(&mut self) {
        poll_fn(|context| {
            let mut state = self.live.lock();
            if state.ended.is_some() {
                return Poll::Ready(());
            }
            if let Some(place) = state.readers.iter_mut().find(|place| place.id == self.id) {
                place.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// How it begins, once its very bytes may be given on: events at once, a document only when it has become too long
    /// to wait for. `None` if it ended before that.
    pub async fn begun(&mut self) -> Option<Arc<AnswerHead>> {
        poll_fn(|context| {
            let mut state = self.live.lock();
            let flows = |head: &Arc<AnswerHead>| head.form == AnswerForm::Events || state.too_long;
            if let Some(head) = state.head.clone().filter(flows) {
                return Poll::Ready(Some(head));
            }
            if state.ended.is_some() {
                return Poll::Ready(None);
            }
            if let Some(place) = state.readers.iter_mut().find(|place| place.id == self.id) {
                place.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for AnswerReader {
    fn drop(&mut self) {
        let mut state = self.live.lock();
        state.readers.retain(|place| place.id != self.id);
        if state.too_long {
            self.live.let_go(&mut state);
        }
        state.writer.take().into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(form: AnswerForm) -> Arc<AnswerHead> {
        Arc::new(AnswerHead { status: StatusCode::OK, headers: HeaderMap::new(), form })
    }

    fn lives() -> Arc<LiveAnswers> {
        Arc::default()
    }

    fn next(reader: &mut AnswerReader) -> Option<NextPiece> {
        match reader.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        }
    }

    /// The pieces that a reader gets now, and whether they are all.
    fn read(reader: &mut AnswerReader) -> (String, &'static str) {
        let mut text = String::new();
        loop {
            match next(reader) {
                Some(NextPiece::Piece(piece) | NextPiece::Terminal { piece, .. }) => {
                    text.push_str(std::str::from_utf8(&piece).expect("text"))
                }
                Some(NextPiece::End(AnswerEnd::Cut)) => return (text, "cut"),
                Some(NextPiece::End(_)) => return (text, "whole"),
                Some(NextPiece::Lost) => return (text, "lost"),
                None => return (text, "more to come"),
            }
        }
    }

    #[test]
    fn every_reader_gets_all_of_it_from_its_beginning_and_the_end_when_it_is_settled() {
        let live = lives().of(EffectId(1), AttemptNo(1));
        let mut early = live.reader();
        live.begin(head(AnswerForm::Events));
        live.push("a".into(), true);
        assert_eq!(read(&mut early), ("a".into(), "more to come"));
        live.push("b".into(), true);
        live.push("end".into(), false);
        let mut late = live.reader();
        assert_eq!(read(&mut late), ("ab".into(), "more to come"));
        live.finish(AnswerEnd::Error);
        assert_eq!(read(&mut early), ("bend".into(), "whole"));
        assert_eq!(read(&mut late), ("end".into(), "whole"));
        assert_eq!(read(&mut live.reader()), ("abend".into(), "whole"));
    }

    #[test]
    fn what_is_cut_never_shows_its_end() {
        let live = lives().of(EffectId(1), AttemptNo(1));
        live.begin(head(AnswerForm::Events));
        live.push("a".into(), true);
        live.push("end".into(), false);
        live.finish(AnswerEnd::Cut);
        assert_eq!(read(&mut live.reader()), ("a".into(), "cut"));
    }

    #[test]
    fn twins_meet_at_the_same_place_whoever_comes_first_and_nothing_is_left_behind() {
        let lives = lives();
        let (twin, sender) = (lives.of(EffectId(1), AttemptNo(1)), lives.of(EffectId(1), AttemptNo(1)));
        assert!(Arc::ptr_eq(&twin, &sender));
        assert!(!Arc::ptr_eq(&twin, &lives.of(EffectId(1), AttemptNo(2))));
        sender.push("some bytes".into(), true);
        assert_eq!(lives.buffered.load(Ordering::Relaxed), 10);
        drop((twin, sender));
        assert_eq!(lives.buffered.load(Ordering::Relaxed), 0);
        assert!(lives.by_attempt.lock().expect("nobody panicked").is_empty());
    }

    #[test]
    fn what_is_too_long_to_keep_is_given_on_to_those_who_read_and_then_let_go() {
        let lives = lives();
        let live = lives.of(EffectId(1), AttemptNo(1));
        live.begin(head(AnswerForm::Document));
        let mut reader = live.reader();
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        let mut taken = 0;
        for pushed in 1..=(ANSWER_BYTES_MAX >> 20) + 8 {
            live.push(piece.clone(), false);
            while let Some(NextPiece::Piece(_)) = next(&mut reader) {
                taken += 1;
            }
            // Of a document nothing is shown before its end, unless it is too long; then all but the last piece is.
            let expected = if live.is_kept() { 0 } else { pushed - 1 };
            assert_eq!(taken, expected);
        }
        assert!(live.whole().is_err());
        assert!(lives.buffered.load(Ordering::Relaxed) <= 2 << 20, "what was read is let go");
        assert_eq!(read(&mut live.reader()).1, "lost", "nobody can join it");
        live.finish(AnswerEnd::Error);
        assert_eq!(read(&mut reader).1, "whole");
    }

    #[test]
    fn no_more_than_so_many_are_under_way() {
        let lives = lives();
        let mut held: Vec<_> = (0..CALLS_MAX).map_while(|_| lives.enter()).collect();
        assert_eq!((held.len(), lives.enter().is_none()), (CALLS_MAX, true));
        held.pop();
        assert!(lives.enter().is_some());
    }

    #[test]
    fn the_event_that_ends_a_stream_is_told_from_what_comes_behind_it() {
        let live = lives().unrecorded();
        let mut reader = live.reader();
        live.begin(head(AnswerForm::Events));
        live.push(Bytes::from_static(b"a"), true);
        live.push(Bytes::from_static(b"[DONE]"), false);
        live.push(Bytes::from_static(b": bye"), false);
        assert!(matches!(next(&mut reader), Some(NextPiece::Piece(_))));
        assert!(next(&mut reader).is_none(), "it waits for the settlement");
        live.finish(AnswerEnd::Answer { delivery: None, cost: None });
        assert!(matches!(next(&mut reader), Some(NextPiece::Terminal { piece, .. }) if piece == "[DONE]"));
        assert!(matches!(next(&mut reader), Some(NextPiece::Piece(_))));
        assert!(matches!(next(&mut reader), Some(NextPiece::End(AnswerEnd::Answer { .. }))));
    }
}
