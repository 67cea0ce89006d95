//! Bytes as they come, without a buffer for each connection.

use super::wire::Malformed;
use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The largest part of a body that is read at once.
const READ_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// What was just read is taken out of it at once, so that a connection on which nothing comes needs no room.
    static JUST_READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into_boxed_slice());
}

/// Why what comes breaks off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the connection closed before its end")]
    Closed,
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

/// Adds to what came. `0`: nothing more will.
pub fn poll_read(
    from: Pin<&mut impl AsyncRead>,
    came: &mut Bytes,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    JUST_READ.with_borrow_mut(|room| {
        let mut read = ReadBuf::new(room);
        ready!(from.poll_read(context, &mut read))?;
        let read = read.filled();
        if came.is_empty() {
            *came = Bytes::copy_from_slice(read);
        } else {
            let before = std::mem::take(came).try_into_mut();
            let mut more = before.unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            more.extend_from_slice(read);
            *came = more.freeze();
        }
        Poll::Ready(Ok(read.len()))
    })
}
