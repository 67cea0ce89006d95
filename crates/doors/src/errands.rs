//! What messages set off, done in the thread that reads them: between one message and the next it goes on with every
//! call that can. To hand a call to another thread and its answer back costs two wake-ups, and on a machine with few
//! processors each costs more than most of what is done.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::ThreadId;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, LocalEnterGuard, LocalSet};

thread_local! {
    static HAS_ERRANDS: Cell<bool> = const { Cell::new(false) };
    static IS_UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// In this thread if it has errands and none is under way, else in the runtime: several are done the faster while
/// somebody reads on.
pub fn run(errand: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
    // A task is moved several times before it begins, and this is a few kilobytes.
    let errand = Box::pin(errand);
    if HAS_ERRANDS.get() && !IS_UNDER_WAY.get() {
        let under_way = UnderWay::begin();
        tokio::task::spawn_local(async move {
            errand.await;
            drop(under_way);
        });
    } else {
        runtime.spawn(errand);
    }
}

/// A part of an errand, in the same thread as that.
pub fn beside<T: Send + 'static>(
    part: impl Future<Output = T> + Send + 'static,
    runtime: &Handle,
) -> JoinHandle<T> {
    let part = Box::pin(part);
    if HAS_ERRANDS.get() { tokio::task::spawn_local(part) } else { runtime.spawn(part) }
}

/// The one errand of the thread that began it. It never leaves that.
struct UnderWay;

impl UnderWay {
    fn begin() -> UnderWay {
        IS_UNDER_WAY.set(true);
        UnderWay
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        IS_UNDER_WAY.set(false);
    }
}

/// The errands of one thread.
#[derive(Debug)]
pub struct Errands {
    tasks: LocalSet,
    _within: LocalEnterGuard,
    bell: Arc<Bell>,
    /// Has something to read when one can go on that another thread has woken.
    pub rings: PipeReader,
}

/// Rung when an errand can go on.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    of: ThreadId,
    wire: PipeWriter,
}

impl Errands {
    /// For the thread that asks.
    pub fn here() -> io::Result<Errands> {
        let (rings, wire) = io::pipe()?;
        let tasks = LocalSet::new();
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), of: std::thread::current().id(), wire });
        HAS_ERRANDS.set(true);
        Ok(Errands { _within: tasks.enter(), tasks, bell, rings })
    }

    /// Goes on with those that can, until none can. Within a runtime.
    pub fn go_on(&mut self) {
        while self.bell.rung.swap(false, Ordering::AcqRel) {
            let waker = Waker::from(Arc::clone(&self.bell));
            // Whether there are any left does not matter: more may come.
            let _any_left = Pin::new(&mut self.tasks).poll(&mut Context::from_waker(&waker));
        }
    }

    /// What rang is heard.
    pub fn hear(&mut self) {
        let _all_there_is = self.rings.read(&mut [0; 64]);
    }
}

impl Drop for Errands {
    fn drop(&mut self) {
        HAS_ERRANDS.set(false);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// The thread itself looks before it waits, and is not rung for. Of several rings the first is enough, so the wire
    /// never fills up.
    fn wake_by_ref(self: &Arc<Self>) {
        let first = !self.rung.swap(true, Ordering::AcqRel);
        if first && std::thread::current().id() != self.of {
            let _nobody_there_any_more = (&self.wire).write(&[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Mutex;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    fn has_rung(errands: &Errands, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&errands.rings, PollFlags::IN)], wait).is_ok_and(|count| count > 0)
    }

    #[test]
    fn an_errand_begins_and_goes_on_here_whoever_wakes_it() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _within = runtime.enter();
        let mut errands = Errands::here().unwrap();
        let here = std::thread::current().id();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = oneshot::channel::<()>();
        let (tell_elsewhere, told_elsewhere) = oneshot::channel::<()>();
        let (note, handle) = (Arc::clone(&seen), runtime.handle().clone());
        let errand = async move {
            let say = |what| note.lock().unwrap().push((what, std::thread::current().id()));
            say("begun");
            told.await.unwrap();
            say("told");
            told_elsewhere.await.unwrap();
            say("told elsewhere");
            let later = Arc::clone(&note);
            let part = async move { later.lock().unwrap().push(("a part", std::thread::current().id())) };
            beside(part, &handle).await.unwrap();
        };
        run(errand, runtime.handle());
        errands.go_on();
        assert_eq!(*seen.lock().unwrap(), [("begun", here)]);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        tell.send(()).unwrap();
        assert!(!has_rung(&errands, Some(&now)), "this thread needs no ring");
        errands.go_on();
        assert_eq!(seen.lock().unwrap().last(), Some(&("told", here)));
        runtime.spawn(async move { tell_elsewhere.send(()).unwrap() });
        assert!(has_rung(&errands, None), "another thread rings");
        errands.hear();
        errands.go_on();
        assert_eq!(seen.lock().unwrap()[2..], [("told elsewhere", here), ("a part", here)]);
    }

    #[test]
    fn a_second_one_at_once_is_the_runtimes() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _within = runtime.enter();
        let mut errands = Errands::here().unwrap();
        let here = std::thread::current().id();
        let (hold, held) = oneshot::channel::<()>();
        run(async move { held.await.unwrap() }, runtime.handle());
        let whose = |errands: &mut Errands| {
            let (tell, told) = std::sync::mpsc::channel();
            run(async move { tell.send(std::thread::current().id()).unwrap() }, runtime.handle());
            errands.go_on();
            told.recv().unwrap()
        };
        assert_ne!(whose(&mut errands), here);
        hold.send(()).unwrap();
        errands.go_on();
        assert_eq!(whose(&mut errands), here);
    }

    #[test]
    fn in_a_thread_without_errands_it_is_the_runtimes() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (tell, told) = oneshot::channel();
        run(async move { tell.send(std::thread::current().id()).unwrap() }, runtime.handle());
        assert_ne!(runtime.block_on(told).unwrap(), std::thread::current().id());
    }
}
