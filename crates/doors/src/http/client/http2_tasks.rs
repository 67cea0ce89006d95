//! The parts of an HTTP/2 connection, all polled by the caller that waits for the response. Once the caller drops them,
//! nothing more is written.

use super::connect::ClientStream;
use super::payload::Payload;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

type Http2Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type OpenConnection = http2::Connection<ClientStream, Payload, LocalExecutor>;
type NewHttp2Tasks = Mutex<Vec<Http2Task>>;

/// Takes the tasks that the library would spawn. Weak: the tasks hold it themselves.
#[derive(Clone)]
pub struct LocalExecutor(Weak<NewHttp2Tasks>);

impl fmt::Debug for LocalExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalExecutor")
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        if let Some(tasks) = self.0.upgrade() {
            tasks.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(task));
        }
    }
}

pub struct Http2Driver {
    /// `None`: it has ended. Responses that are under way may still come.
    connection: Option<OpenConnection>,
    new: Arc<NewHttp2Tasks>,
    tasks: Vec<Http2Task>,
}

impl Http2Driver {
    pub async fn open(
        stream: ClientStream,
        builder: impl FnOnce(LocalExecutor) -> http2::Builder<LocalExecutor>,
    ) -> hyper::Result<(http2::SendRequest<Payload>, Http2Driver)> {
        let new = Arc::<NewHttp2Tasks>::default();
        let executor = LocalExecutor(Arc::downgrade(&new));
        let (sender, connection) = builder(executor).handshake(stream).await?;
        Ok((sender, Http2Driver { connection: Some(connection), new, tasks: Vec::new() }))
    }

    /// Whether only the connection itself is left to be polled, so that every request was written to its end, and the
    /// next one need not wait.
    pub fn is_at_rest(&self) -> bool {
        let has_room = |connection: &OpenConnection| connection.current_max_send_streams() > 0;
        self.connection.as_ref().is_some_and(has_room) && self.tasks.len() == 1
    }

    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(context).is_ready()
        {
            self.connection = None;
        }
        loop {
            let mut new = std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner));
            let is_last_round = new.is_empty();
            self.tasks.append(&mut new);
            self.tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
            if is_last_round {
                break;
            }
        }
        if self.connection.is_none() && self.tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}
