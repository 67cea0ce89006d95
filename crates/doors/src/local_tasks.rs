//! Tasks of the thread that reads a pipe: between one message and the next it goes on with every call that can. To hand
//! a call to another thread and its answer back costs two wake-ups, and on a machine with few processors each costs
//! more than most of the call's own work. Tokio's own standard input would add both: it reads in a thread of its own.

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
    static HAS_LOCAL_TASKS: Cell<bool> = const { Cell::new(false) };
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Spawns a task in this thread if it has local tasks and is busy with none, else in the runtime: several are done the
/// faster while this thread reads on.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
    // A task is moved several times before it begins, and this is a few kilobytes.
    let task = Box::pin(task);
    if HAS_LOCAL_TASKS.get() && !IS_BUSY.get() {
        let busy = BusyFlag::set();
        tokio::task::spawn_local(async move {
            task.await;
            drop(busy);
        });
    } else {
        runtime.spawn(task);
    }
}

/// Spawns a part of a task, in the same thread as that.
pub fn spawn_part<T: Send + 'static>(
    part: impl Future<Output = T> + Send + 'static,
    runtime: &Handle,
) -> JoinHandle<T> {
    let part = Box::pin(part);
    if HAS_LOCAL_TASKS.get() { tokio::task::spawn_local(part) } else { runtime.spawn(part) }
}

/// Set while the thread that set it has a task. It never leaves that thread.
struct BusyFlag;

impl BusyFlag {
    fn set() -> BusyFlag {
        IS_BUSY.set(true);
        BusyFlag
    }
}

impl Drop for BusyFlag {
    fn drop(&mut self) {
        IS_BUSY.set(false);
    }
}

/// The tasks of one thread.
#[derive(Debug)]
pub struct LocalTasks {
    tasks: LocalSet,
    _within: LocalEnterGuard,
    bell: Arc<TaskBell>,
    /// Has something to read when a task can go on that another thread has woken.
    pub rings: PipeReader,
}

/// Rung when a task can go on.
#[derive(Debug)]
struct TaskBell {
    rung: AtomicBool,
    of: ThreadId,
    wire: PipeWriter,
}

impl LocalTasks {
    /// For the thread that asks.
    pub fn start() -> io::Result<LocalTasks> {
        let (rings, wire) = io::pipe()?;
        let tasks = LocalSet::new();
        let bell = Arc::new(TaskBell { rung: AtomicBool::new(true), of: std::thread::current().id(), wire });
        HAS_LOCAL_TASKS.set(true);
        Ok(LocalTasks { _within: tasks.enter(), tasks, bell, rings })
    }

    /// Goes on with those that can, until none can. Within a runtime.
    pub fn run_ready(&mut self) {
        while self.bell.rung.swap(false, Ordering::AcqRel) {
            let waker = Waker::from(Arc::clone(&self.bell));
            // Whether there are any left does not matter: more may come.
            let _any_left = Pin::new(&mut self.tasks).poll(&mut Context::from_waker(&waker));
        }
    }

    /// Takes in the rings.
    pub fn drain_bell(&mut self) {
        let _all_there_is = self.rings.read(&mut [0; 64]);
    }
}

impl Drop for LocalTasks {
    fn drop(&mut self) {
        HAS_LOCAL_TASKS.set(false);
    }
}

impl Wake for TaskBell {
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

    fn has_rung(tasks: &LocalTasks, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&tasks.rings, PollFlags::IN)], wait).is_ok_and(|count| count > 0)
    }

    #[test]
    fn a_task_begins_and_goes_on_here_whoever_wakes_it() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _within = runtime.enter();
        let mut tasks = LocalTasks::start().unwrap();
        let here = std::thread::current().id();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, told) = oneshot::channel::<()>();
        let (tell_elsewhere, told_elsewhere) = oneshot::channel::<()>();
        let (note, handle) = (Arc::clone(&seen), runtime.handle().clone());
        let task = async move {
            let say = |what| note.lock().unwrap().push((what, std::thread::current().id()));
            say("begun");
            told.await.unwrap();
            say("told");
            told_elsewhere.await.unwrap();
            say("told elsewhere");
            let later = Arc::clone(&note);
            let part = async move { later.lock().unwrap().push(("a part", std::thread::current().id())) };
            spawn_part(part, &handle).await.unwrap();
        };
        spawn(task, runtime.handle());
        tasks.run_ready();
        assert_eq!(*seen.lock().unwrap(), [("begun", here)]);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        tell.send(()).unwrap();
        assert!(!has_rung(&tasks, Some(&now)), "this thread needs no ring");
        tasks.run_ready();
        assert_eq!(seen.lock().unwrap().last(), Some(&("told", here)));
        runtime.spawn(async move { tell_elsewhere.send(()).unwrap() });
        assert!(has_rung(&tasks, None), "another thread rings");
        tasks.drain_bell();
        tasks.run_ready();
        assert_eq!(seen.lock().unwrap()[2..], [("told elsewhere", here), ("a part", here)]);
    }

    #[test]
    fn a_second_one_at_once_is_the_runtimes() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _within = runtime.enter();
        let mut tasks = LocalTasks::start().unwrap();
        let here = std::thread::current().id();
        let (hold, held) = oneshot::channel::<()>();
        spawn(async move { held.await.unwrap() }, runtime.handle());
        let whose = |tasks: &mut LocalTasks| {
            let (tell, told) = std::sync::mpsc::channel();
            spawn(async move { tell.send(std::thread::current().id()).unwrap() }, runtime.handle());
            tasks.run_ready();
            told.recv().unwrap()
        };
        assert_ne!(whose(&mut tasks), here);
        hold.send(()).unwrap();
        tasks.run_ready();
        assert_eq!(whose(&mut tasks), here);
    }

    #[test]
    fn in_a_thread_without_local_tasks_it_is_the_runtimes() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (tell, told) = oneshot::channel();
        spawn(async move { tell.send(std::thread::current().id()).unwrap() }, runtime.handle());
        assert_ne!(runtime.block_on(told).unwrap(), std::thread::current().id());
    }
}
