//! Streams end with the token that opened them.

use super::Served;
use super::keyring::Shown;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How often a token is looked at again while it holds a stream open.
const LOOKS_EVERY: Duration = Duration::from_millis(500);

/// A token that somebody may revoke, or that will be over, while what it opened is still read. Never printed.
#[derive(Clone)]
pub struct Revocable(Vec<u8>);

impl Revocable {
    pub(super) fn new(token: &[u8]) -> Revocable {
        Revocable(token.to_owned())
    }

    /// A body that breaks off once the token is worth nothing. One whose length is known is on its way already.
    pub(super) fn holds<A: Send + Sync + 'static>(self, body: Body, served: Arc<Served<A>>) -> Body {
        if body.size_hint().exact().is_some() {
            return body;
        }
        let over = async move {
            loop {
                tokio::time::sleep(LOOKS_EVERY).await;
                // A ledger that cannot be asked says nothing against it.
                if served.front.keyring.look_up(&self.0).await == Shown::Worthless {
                    return;
                }
            }
        };
        Body::new(UntilOver { body, over: Box::pin(over) })
    }
}

impl fmt::Debug for Revocable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Revocable(…)")
    }
}

struct UntilOver {
    body: Body,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for UntilOver {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over.as_mut().poll(context).is_ready() {
            // Not an end: what broke off must not look whole.
            let why = io::Error::new(io::ErrorKind::PermissionDenied, "its token is worth nothing any more");
            return Poll::Ready(Some(Err(axum::Error::new(why))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
