//! Which calls' streams can be taken up again.

use super::stream::{CallStream, Reader};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long after its end the answer of a call waits for the client to come back for it.
const KEPT_TIME: Duration = Duration::from_secs(300);

/// Calls of one server whose streams are kept. Of more the oldest that have ended go first.
const KEPT_MAX: usize = 256;

/// What those that have ended may hold together. The answer itself is in the ledger, and a repeat gets it from there.
const KEPT_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Default)]
pub struct Resumable(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    /// Whose it is: an event's id alone opens nothing.
    owner: Owner,
    stream: Arc<CallStream>,
    since: Instant,
}

/// A client, as far as its streams go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// [`Caller::whose`](crate::caller::Caller::whose).
    pub principal: String,
    pub session: Option<String>,
}

impl Resumable {
    pub fn keep(&self, owner: Owner, stream: Arc<CallStream>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| !kept.stream.is_over() || kept.since.elapsed() < KEPT_TIME);
        if all.len() >= KEPT_MAX {
            let oldest = all.iter().position(|kept| kept.stream.is_over()).unwrap_or(0);
            all.remove(oldest);
        }
        all.push(Kept { owner, stream, since: crate::runtime::moment() });
    }

    /// A call is over. A stream without ids cannot be asked for, so it is not kept.
    pub fn ended(&self, stream: &Arc<CallStream>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !stream.has_ids() {
            all.retain(|kept| !Arc::ptr_eq(&kept.stream, stream));
        }
        let sizes = all.iter().filter(|kept| kept.stream.is_over()).map(|kept| kept.stream.bytes());
        let mut excess = sizes.sum::<usize>().saturating_sub(KEPT_BYTES_MAX);
        all.retain(|kept| {
            let goes = excess > 0 && kept.stream.is_over();
            if goes {
                excess = excess.saturating_sub(kept.stream.bytes());
            }
            !goes
        });
    }

    /// What follows this event, if it was one of a guarded call.
    pub fn after(&self, owner: &Owner, last_event: &str) -> Option<Reader> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = all.iter().rev().filter(|kept| kept.owner == *owner);
        mine.into_iter().find_map(|kept| kept.stream.reader_after(last_event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::door::Given;
    use crate::mcp::frame::Frame;
    use crate::mcp::link::remote::Told;

    fn ended(resumable: &Resumable, event: &str, bytes: usize) -> Arc<CallStream> {
        let stream = Arc::new(CallStream::default());
        let mut parser = crate::http::sse::Parser::default();
        parser.push(format!("id: {event}\ndata: {{}}\n\n").as_bytes());
        stream.piece(parser.next_piece().unwrap().expect("an event"));
        resumable.keep(owner(), Arc::clone(&stream));
        stream.end(Some(Given::plain(Frame::from("x".repeat(bytes)))));
        resumable.ended(&stream);
        stream
    }

    fn owner() -> Owner {
        Owner { principal: "ann".into(), session: None }
    }

    #[tokio::test]
    async fn of_large_answers_the_oldest_go_first() {
        let resumable = Resumable::default();
        for event in ["a", "b", "c"] {
            ended(&resumable, event, KEPT_BYTES_MAX / 2 - 1_000);
        }
        let is_kept = |event: &str| resumable.after(&owner(), event).is_some();
        assert_eq!(["a", "b", "c"].map(is_kept), [false, true, true]);
    }
}
