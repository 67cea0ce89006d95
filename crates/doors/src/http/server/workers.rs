//! The threads that serve connections, each with a runtime of its own. A connection stays with one of them, and so do
//! the connections to upstreams that it uses: its calls find their caches warm, and no other thread is woken for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Its threads end when it is dropped.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<ServerWorker>,
    /// Serves no connection, but requests that take long to be understood: they hold up each other and nobody else.
    aside: ServerWorker,
}

#[derive(Debug)]
struct ServerWorker {
    runtime: Handle,
    serving: Arc<AtomicUsize>,
    /// `None` for the thread that is there anyway.
    _until_dropped: Option<oneshot::Sender<()>>,
}

/// A connection with one worker, for as long as that serves it.
#[derive(Debug)]
pub struct Assignment {
    pub runtime: Handle,
    serving: Arc<AtomicUsize>,
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// The thread that asks, within its own runtime, and so many more.
    pub fn with(more: usize) -> io::Result<Workers> {
        let here = ServerWorker { runtime: Handle::current(), serving: Arc::default(), _until_dropped: None };
        let others = (0..more).map(|_| ServerWorker::spawn());
        let workers = std::iter::once(Ok(here)).chain(others).collect::<io::Result<_>>()?;
        Ok(Workers { workers, aside: ServerWorker::spawn()? })
    }

    /// To the worker that serves the fewest.
    pub fn assign(&self) -> Assignment {
        let idlest = self.workers.iter().min_by_key(|worker| worker.serving.load(Ordering::Relaxed));
        let ServerWorker { runtime, serving, .. } = idlest.expect("there is always one");
        serving.fetch_add(1, Ordering::Relaxed);
        Assignment { runtime: runtime.clone(), serving: Arc::clone(serving) }
    }

    /// Runs long work on its own thread, and ends it when the caller goes away. `None`: it panicked.
    pub async fn aside<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let mut working = JoinSet::new();
        working.spawn_on(work, &self.aside.runtime);
        working.join_next().await?.ok()
    }
}

impl ServerWorker {
    fn spawn() -> io::Result<ServerWorker> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (until_dropped, dropped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("serves".to_owned()).spawn(move || {
            let _dropped = runtime.block_on(dropped);
            runtime.shutdown_background();
        })?;
        Ok(ServerWorker { runtime: handle, serving: Arc::default(), _until_dropped: Some(until_dropped) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_work_is_done_by_another_thread_and_ends_with_its_caller() {
        let workers = Workers::with(0).unwrap();
        let there = workers.aside(async { std::thread::current().id() }).await;
        assert!(there.is_some_and(|there| there != std::thread::current().id()));
        assert_eq!(workers.aside(async { panic!("on purpose") }).await, None::<()>);
        let (held, ended) = oneshot::channel::<()>();
        let waiting = workers.aside(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let gone = tokio::time::timeout(std::time::Duration::from_millis(1), waiting).await;
        assert!(gone.is_err() && ended.await.is_err());
    }

    #[tokio::test]
    async fn connections_are_shared_out_evenly_and_each_thread_serves_its_own() {
        let workers = Workers::with(1).unwrap();
        let places: Vec<Assignment> = (0..4).map(|_| workers.assign()).collect();
        let mut threads = Vec::new();
        for place in &places {
            threads.push(place.runtime.spawn(async { std::thread::current().id() }).await.unwrap());
        }
        let here = std::thread::current().id();
        assert_eq!(threads.iter().filter(|thread| **thread == here).count(), 2);
        let other = threads.iter().find(|thread| **thread != here).unwrap();
        assert_eq!(threads.iter().filter(|thread| *thread == other).count(), 2);
        drop(places);
        assert_eq!(workers.assign().runtime.id(), Handle::current().id(), "of equals the first");
    }
}
