//! Streams end with the token that opened them, and what still waits is not sent for it.

use super::keyring::{Keyring, TokenStanding};
use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use semel_gate::upstream::NotStarted;
use serde_json::Value;
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
pub struct Revocable {
    token: Vec<u8>,
    keyring: Arc<Keyring>,
}

impl Revocable {
    pub(super) fn new(token: &[u8], keyring: &Arc<Keyring>) -> Revocable {
        Revocable { token: token.to_owned(), keyring: Arc::clone(keyring) }
    }

    /// A ledger that cannot be asked says nothing against it.
    async fn is_worthless(&self) -> bool {
        self.keyring.look_up(&self.token).await == TokenStanding::Worthless
    }

    /// A body that breaks off once the token is worth nothing. One whose length is known is on its way already.
    pub(super) fn holds(self, body: Body) -> Body {
        if body.size_hint().exact().is_some() {
            return body;
        }
        let over = async move {
            loop {
                tokio::time::sleep(LOOKS_EVERY).await;
                if self.is_worthless().await {
                    return;
                }
            }
        };
        Body::new(UntilOver { body, over: Box::pin(over) })
    }
}

/// Whether a call that may have waited can still be sent for whoever showed this token, if it was one that can be
/// revoked. What the ring has read within the second is not read again.
pub async fn lets_send(token: Option<&Revocable>) -> Result<(), NotStarted> {
    match token {
        Some(token) if token.is_worthless().await => {
            let why = "its token was revoked or has expired since".to_owned();
            Err(NotStarted { why, data: Value::Null })
        }
        _ => Ok(()),
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
            let why = io::Error::new(io::ErrorKind::PermissionDenied, "its token is no longer valid");
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
