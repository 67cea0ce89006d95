//! Work that is finished even if its caller goes away. It has no task of its own until then: most callers wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

type BoxedWork<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Dropped before its end, it goes on in a task.
pub struct FinishDetached<T: Send + 'static>(Option<BoxedWork<T>>);

impl<T: Send + 'static> FinishDetached<T> {
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> FinishDetached<T> {
        FinishDetached(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for FinishDetached<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let work = self.0.as_mut().expect("nobody asks again after the end");
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.0 = None;
        }
        done
    }
}

impl<T: Send + 'static> Drop for FinishDetached<T> {
    fn drop(&mut self) {
        // Without a runtime the process is about to end, and what was sent is in doubt.
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(rest.await) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for FinishDetached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishDetached").field("over", &self.0.is_none()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn it_is_finished_whether_or_not_anybody_waits() {
        assert_eq!(FinishDetached::new(async { 7 }).await, 7);
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut work = FinishDetached::new(async move {
            gone.await.expect("it is told to go on");
            tell.send(7).expect("somebody listens");
        });
        assert!(is_pending(&mut work).await, "it waits");
        drop(work);
        go.send(()).expect("it goes on");
        assert_eq!(told.await, Ok(7));
    }

    async fn is_pending<T: Send + 'static>(work: &mut FinishDetached<T>) -> bool {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *work).poll(context).is_pending())).await
    }
}
