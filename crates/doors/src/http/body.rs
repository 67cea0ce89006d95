//! Bodies: read whole within a limit, or given on as they come.

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// A client that sends nothing of its body for this long is gone.
pub const PAUSE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("a body has at most {0} bytes")]
    TooLarge(usize),
    #[error("the body stopped coming")]
    Stalled,
    #[error("too many large bodies come at once")]
    Crowded,
    #[error("the body broke off: {0}")]
    Broken(String),
}

/// Why a body broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(String);

impl BodyError {
    pub fn cut() -> BodyError {
        BodyError("the stream was closed before its end".to_owned())
    }
}

impl From<hyper::Error> for BodyError {
    fn from(error: hyper::Error) -> BodyError {
        BodyError(super::describe(&error))
    }
}

/// The beginning of a body. Most bodies come in one piece, which is then not copied.
#[derive(Debug, Default)]
pub struct Gathered {
    first: Bytes,
    rest: BytesMut,
}

impl Gathered {
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, data: Bytes) {
        if self.is_empty() {
            self.first = data;
            return;
        }
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&data);
    }

    pub fn bytes(self) -> Bytes {
        if self.rest.is_empty() { self.first } else { self.rest.freeze() }
    }
}

/// The same bytes for whoever holds them for long. As they come, they are a slice of what a connection has read, and
/// keep all of that as long as they live; of what is large that is not much more.
pub fn unshared(bytes: Bytes) -> Bytes {
    const LARGE_BYTES: usize = 64 * 1024;
    if bytes.len() < LARGE_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// The whole body, if it never pauses for longer than `pause`. What says that it is too large is not read at all.
pub async fn read<B>(body: B, max: usize, pause: Duration) -> Result<Bytes, Unreadable>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    if body.size_hint().lower() > max as u64 {
        return Err(Unreadable::TooLarge(max));
    }
    let mut whole = Gathered::default();
    while !body.is_end_stream() {
        let Some(data) = next(&mut body, pause).await? else { break };
        if whole.len() + data.len() > max {
            return Err(Unreadable::TooLarge(max));
        }
        whole.push(data);
    }
    Ok(whole.bytes())
}

/// The next piece of a body; `None` at its end.
pub async fn next<B>(body: &mut Pin<&mut B>, pause: Duration) -> Result<Option<Bytes>, Unreadable>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    loop {
        // One read may bring thousands of tiny pieces, and others have to be served in between.
        tokio::task::coop::consume_budget().await;
        let frame = tokio::time::timeout(pause, body.frame()).await.map_err(|_| Unreadable::Stalled)?;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame.map_err(|error| Unreadable::Broken(error.to_string()))?;
        // Trailers say nothing that anybody here asks for.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// A body in parts that are there, and perhaps somebody else's too.
#[derive(Debug)]
pub struct BodyParts {
    parts: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl BodyParts {
    pub fn new(parts: Vec<Bytes>) -> BodyParts {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        BodyParts { parts: parts.into_iter(), left }
    }
}

impl Body for BodyParts {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let part = self.parts.next();
        self.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A body that somebody else writes.
#[derive(Debug)]
pub struct Piped {
    parts: mpsc::Receiver<Bytes>,
}

/// Parts that wait to be taken; a reader that is slower makes the writer wait.
const WAITING_MAX: usize = 16;

impl Piped {
    pub fn new() -> (mpsc::Sender<Bytes>, Piped) {
        let (writer, parts) = mpsc::channel(WAITING_MAX);
        (writer, Piped { parts })
    }
}

impl Body for Piped {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let part = std::task::ready!(self.parts.poll_recv(context));
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    /// So that the last part and the end go out together: whoever has read the one may have gone before the other.
    fn is_end_stream(&self) -> bool {
        self.parts.is_closed() && self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// So many pieces, all of which are there already: nothing else makes the reader wait.
    struct Tiny(usize);

    impl Body for Tiny {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let left = self.0.checked_sub(1);
            self.0 = left.unwrap_or_default();
            Poll::Ready(left.map(|_| Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test]
    async fn the_last_part_of_what_was_piped_is_known_as_that() {
        let (writer, mut body) = Piped::new();
        for part in ["a", "b"] {
            writer.send(Bytes::from_static(part.as_bytes())).await.unwrap();
        }
        drop(writer);
        assert!(body.frame().await.is_some() && !body.is_end_stream());
        assert!(body.frame().await.is_some() && body.is_end_stream());
    }

    #[tokio::test]
    async fn whoever_reads_tiny_pieces_lets_others_in_between() {
        let mut body = std::pin::pin!(Tiny(10_000));
        let served = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&served);
        tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
        let mut before = 0;
        while next(&mut body, PAUSE_MAX).await.unwrap().is_some() {
            before += usize::from(!served.load(Ordering::Relaxed));
        }
        assert!(before < 1_000, "{before} pieces went before the other was served");
    }
}
