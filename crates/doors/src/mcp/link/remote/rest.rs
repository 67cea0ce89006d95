//! What a stream holds behind the response. A server that calls a request refused and then done has broken the
//! protocol, and has done it.

use super::RemoteLink;
use super::exchange::is_response_to;
use crate::http::client::Incoming;
use crate::http::sse::Parser;
use crate::mcp::link::again::{AGAIN_BYTES_MAX, AGAIN_MAX, is_success, push_bounded};
use crate::mcp::message::{Id, Message};
use http_body_util::BodyExt;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// A server that leaves its stream open behind a refusal is not listened to for ever.
const LISTENS_FOR: Duration = Duration::from_secs(60);

/// Streams of all links that are read on; each keeps a connection.
static READ_ON: Semaphore = Semaphore::const_new(AGAIN_MAX);

/// Where the second answer to a request will be, should there be one.
type Place = (Id, oneshot::Receiver<Message>);

#[derive(Debug, Clone, Default)]
pub struct Again(Arc<Mutex<VecDeque<Place>>>);

/// The rest of a stream whose response was read.
pub struct Rest {
    pub id: Id,
    pub parser: Parser,
    pub body: Incoming,
}

impl Rest {
    /// The next response to the same request.
    async fn second(&mut self) -> Option<Message> {
        loop {
            while let Some(piece) = self.parser.next_piece().ok()? {
                let message = piece.fields.data.and_then(|data| Message::parse(data).ok());
                let of_size = |message: &Message| message.bytes.len() <= AGAIN_BYTES_MAX;
                if let Some(message) =
                    message.filter(of_size).filter(|message| is_response_to(message, &self.id))
                {
                    return Some(message);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            self.parser.push(&frame.into_data().unwrap_or_default());
        }
    }
}

impl RemoteLink {
    /// Whatever else the server says to a request that it has not called done. Nothing comes once others have long been
    /// asked.
    pub fn answers_again(&self, id: &Id) -> Option<oneshot::Receiver<Message>> {
        let mut again = self.again.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = again.iter().position(|(of, _)| of == id)?;
        again.remove(at).map(|(_, told)| told)
    }

    /// Reads on behind a response that is no success: what has come is looked at now, the rest while the caller has its
    /// answer.
    pub(super) async fn read_on(&self, response: &Message, mut rest: Rest) {
        if !rest.id.may_be_own() || is_success(response) {
            return;
        }
        let (mut tell, told) = oneshot::channel();
        push_bounded(
            &mut self.again.0.lock().unwrap_or_else(PoisonError::into_inner),
            (rest.id.clone(), told),
        );
        let has_come = tokio::select! {
            biased;
            second = rest.second() => Some(second),
            () = std::future::ready(()) => None,
        };
        match (has_come, READ_ON.try_acquire()) {
            (Some(Some(second)), _) => drop(tell.send(second)),
            (None, Ok(place)) => drop(tokio::spawn(async move {
                let listened = async {
                    tokio::select! {
                        second = rest.second() => second,
                        () = tell.closed() => None,
                    }
                };
                if let Ok(Some(second)) = tokio::time::timeout(LISTENS_FOR, listened).await {
                    drop(tell.send(second));
                }
                drop(place);
            })),
            (Some(None), _) | (None, Err(_)) => {}
        }
    }
}
