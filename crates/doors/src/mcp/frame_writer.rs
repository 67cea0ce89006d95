//! Frames on their way to a pipe. One that the pipe takes at once is written by the thread that pushes it; all others
//! wait for a thread of their own, so that a peer that does not read stops no other.

use super::frame::{Frame, Untouched};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Beyond this, messages that only pass wait for room, and the peer that sends them waits in turn.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The result of writing a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteResult {
    /// The pipe took its last byte.
    Written,
    /// Not one byte of it left, for this reason.
    NeverWritten(String),
    /// It broke off in the middle.
    Torn(String),
}

type OnWritten = Box<dyn FnOnce(WriteResult) + Send>;
type LastCheck = Box<dyn FnOnce() -> Option<String> + Send>;

/// A frame with a last check before it is written, and what happens afterwards.
pub struct QueuedFrame {
    frame: Frame,
    last_check: Option<LastCheck>,
    on_written: Option<OnWritten>,
}

impl QueuedFrame {
    pub fn of(frame: Frame) -> QueuedFrame {
        QueuedFrame { frame, last_check: None, on_written: None }
    }

    /// Asked at the last moment: a reason not to write it any more.
    #[must_use]
    pub fn unless(mut self, last_check: impl FnOnce() -> Option<String> + Send + 'static) -> QueuedFrame {
        self.last_check = Some(Box::new(last_check));
        self
    }

    #[must_use]
    pub fn then(mut self, on_written: impl FnOnce(WriteResult) + Send + 'static) -> QueuedFrame {
        self.on_written = Some(Box::new(on_written));
        self
    }

    fn tell(&mut self, result: WriteResult) {
        if let Some(on_written) = self.on_written.take() {
            on_written(result);
        }
    }
}

impl fmt::Debug for QueuedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedFrame").field("bytes", &self.frame.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct FrameQueue {
    frames: VecDeque<QueuedFrame>,
    bytes: usize,
    /// No more is taken; what waits is still written.
    closed: bool,
    /// The pipe is gone.
    broken: Option<String>,
    writing: bool,
    /// Threads beside the writer's own that wait for a change.
    watchers: usize,
}

impl FrameQueue {
    fn has_room(&self) -> bool {
        self.bytes <= WAITING_BYTES_MAX || self.broken.is_some()
    }

    /// Whether a thread waits for the end of a write. Nearly always none does, and waking one for nothing costs more
    /// than the write did.
    fn is_awaited(&self) -> bool {
        self.watchers > 0 || !self.frames.is_empty() || self.closed || self.broken.is_some()
    }
}

struct WriterState {
    queue: Mutex<FrameQueue>,
    changed: Condvar,
    /// Used by the thread that has set `writing`; no other waits for it.
    pipe: Mutex<Option<Box<dyn Pipe>>>,
}

impl fmt::Debug for WriterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterState").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// Where frames go.
pub trait Pipe: Write + Send + 'static {
    /// Whether it takes [`AT_ONCE`] bytes without making the writer wait.
    fn takes_at_once(&self) -> bool;

    /// Waits until it takes something, where a write does not wait by itself.
    fn wait_until_it_takes(&self);
}

/// The bytes that a pipe which polls as writable takes without blocking (POSIX `PIPE_BUF`).
pub const AT_ONCE: usize = 4096;

impl<P: Write + AsFd + Send + 'static> Pipe for P {
    fn takes_at_once(&self) -> bool {
        let mut asked = [PollFd::new(self, PollFlags::OUT)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&now)).is_ok_and(|ready| ready == 1)
            && asked[0].revents().contains(PollFlags::OUT)
    }

    fn wait_until_it_takes(&self) {
        let mut asked = [PollFd::new(self, PollFlags::OUT)];
        // Whatever it says, the next write says it better.
        let _interrupted_or_broken = poll(&mut asked, None);
    }
}

/// Writes to a pipe as if it blocked, also where the process that started this one has made it non-blocking.
struct BlockingPipe<'p>(&'p mut dyn Pipe);

impl BlockingPipe<'_> {
    fn until_taken<T>(&mut self, mut write: impl FnMut(&mut dyn Pipe) -> io::Result<T>) -> io::Result<T> {
        loop {
            match write(self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.0.wait_until_it_takes(),
                written => return written,
            }
        }
    }
}

impl Write for BlockingPipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_taken(|pipe| pipe.write(bytes))
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.until_taken(|pipe| pipe.write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_taken(|pipe| pipe.flush())
    }
}

/// The way to one pipe. Clones are the same way.
#[derive(Debug, Clone)]
pub struct FrameWriter(Arc<WriterState>);

impl FrameWriter {
    /// Starts the thread that writes. It ends, and closes the pipe, when the box is closed and empty.
    pub fn start(pipe: impl Pipe, name: &str) -> std::io::Result<FrameWriter> {
        let pipe: Box<dyn Pipe> = Box::new(pipe);
        let frame_writer = FrameWriter(Arc::new(WriterState {
            queue: Mutex::default(),
            changed: Condvar::new(),
            pipe: Mutex::new(Some(pipe)),
        }));
        let writer = frame_writer.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || writer.write_all())?;
        Ok(frame_writer)
    }

    pub fn push(&self, mut queued: QueuedFrame) {
        let mut queue = self.lock();
        let gone = match &queue.broken {
            Some(why) => Some(why.clone()),
            None => queue.closed.then(|| "the connection is closed".to_owned()),
        };
        if let Some(why) = gone {
            drop(queue);
            return queued.tell(WriteResult::NeverWritten(why));
        }
        let bytes = queued.frame.len();
        queue.bytes += bytes;
        // One byte is the line's end.
        let alone = !queue.writing && queue.frames.is_empty() && bytes < AT_ONCE;
        if alone && self.pipe().as_ref().is_some_and(|pipe| pipe.takes_at_once()) {
            queue.writing = true;
            drop(queue);
            return self.write(queued);
        }
        queue.frames.push_back(queued);
        drop(queue);
        self.0.changed.notify_all();
    }

    /// For threads that pass on what another peer sends: blocks while too much waits.
    pub fn wait_for_room(&self) {
        self.wait_until(FrameQueue::has_room);
    }

    pub fn has_room(&self) -> bool {
        self.lock().has_room()
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes no more, and closes the pipe after what waits.
    pub fn close(&self) {
        self.lock().closed = true;
        self.0.changed.notify_all();
    }

    /// Blocks until everything that waits has been written, or cannot be.
    pub fn drain(&self) {
        self.wait_until(|queue| queue.broken.is_some() || (!queue.writing && queue.frames.is_empty()));
    }

    fn wait_until(&self, condition: impl Fn(&FrameQueue) -> bool) {
        let mut queue = self.lock();
        queue.watchers += 1;
        while !condition(&queue) {
            queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.watchers -= 1;
    }

    pub fn is_broken(&self) -> bool {
        self.lock().broken.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, FrameQueue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pipe(&self) -> MutexGuard<'_, Option<Box<dyn Pipe>>> {
        self.0.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next frame, and with it the right to write. `None`: there will be none any more.
    fn take(&self) -> Option<QueuedFrame> {
        let mut queue = self.lock();
        loop {
            if !queue.writing {
                if let Some(queued) = queue.frames.pop_front() {
                    queue.writing = true;
                    return Some(queued);
                }
                if queue.closed || queue.broken.is_some() {
                    return None;
                }
            }
            queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes one frame, for the thread that has set `writing`, and gives that right back.
    fn write(&self, mut queued: QueuedFrame) {
        let bytes = queued.frame.len();
        let last_check = queued.last_check.take().and_then(|last_check| last_check());
        let written = match (&last_check, self.pipe().as_mut()) {
            (Some(_), _) => Ok(()),
            (None, Some(pipe)) => queued.frame.write_line(&mut BlockingPipe(pipe.as_mut())),
            (None, None) => Err((std::io::ErrorKind::BrokenPipe.into(), Untouched(true))),
        };
        let result = match (last_check, written) {
            (Some(why), _) => WriteResult::NeverWritten(why),
            (None, Ok(())) => WriteResult::Written,
            (None, Err((error, Untouched(untouched)))) => {
                let why = format!("its input was closed: {error}");
                self.lock().broken = Some(why.clone());
                if untouched { WriteResult::NeverWritten(why) } else { WriteResult::Torn(why) }
            }
        };
        queued.tell(result);
        drop(queued);
        let mut queue = self.lock();
        queue.bytes -= bytes;
        queue.writing = false;
        let is_awaited = queue.is_awaited();
        drop(queue);
        if is_awaited {
            self.0.changed.notify_all();
        }
    }

    fn write_all(&self) {
        while let Some(queued) = self.take() {
            self.write(queued);
            if let Some(why) = self.broken_because() {
                self.give_up(&why);
            }
        }
        // Frames may wait for a pipe that broke under another thread.
        if let Some(why) = self.broken_because() {
            self.give_up(&why);
        }
        self.pipe().take();
    }

    fn broken_because(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    fn give_up(&self, why: &str) {
        let frames = std::mem::take(&mut self.lock().frames);
        self.0.changed.notify_all();
        for mut queued in frames {
            queued.tell(WriteResult::NeverWritten(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>, Option<usize>, bool);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut taken = self.0.lock().unwrap();
            let room = self.1.map_or(bytes.len(), |room| room.saturating_sub(taken.len()).min(bytes.len()));
            if room == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            taken.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Pipe for Sink {
        fn takes_at_once(&self) -> bool {
            self.2
        }

        fn wait_until_it_takes(&self) {}
    }

    fn fates(pipe: Sink, frames: Vec<QueuedFrame>) -> Vec<WriteResult> {
        let frame_writer = FrameWriter::start(pipe, "test").unwrap();
        let (tell, on_written) = mpsc::channel();
        for (i, queued) in frames.into_iter().enumerate() {
            let tell = tell.clone();
            frame_writer.push(queued.then(move |result| tell.send((i, result)).unwrap()));
        }
        drop(tell);
        frame_writer.close();
        let mut fates: Vec<_> = on_written.iter().collect();
        fates.sort_by_key(|(i, _)| *i);
        fates.into_iter().map(|(_, result)| result).collect()
    }

    fn queued(text: &str) -> QueuedFrame {
        QueuedFrame::of(Frame::from(text.to_owned()))
    }

    #[test]
    fn frames_are_written_in_order_and_hindered_ones_are_not() {
        for at_once in [false, true] {
            let pipe = Sink(Arc::default(), None, at_once);
            let frames = vec![queued("1"), queued("2").unless(|| Some("too late".into())), queued("3")];
            let never = WriteResult::NeverWritten("too late".into());
            assert_eq!(fates(pipe.clone(), frames), [WriteResult::Written, never, WriteResult::Written]);
            assert_eq!(*pipe.0.lock().unwrap(), b"1\n3\n");
        }
    }

    #[test]
    fn of_a_closed_pipe_only_the_frame_in_the_middle_is_uncertain() {
        for at_once in [false, true] {
            let pipe = Sink(Arc::default(), Some(4), at_once);
            let frames = vec![queued("1"), queued("22222"), queued("3")];
            let fates = fates(pipe, frames);
            assert_eq!(fates[0], WriteResult::Written);
            assert!(matches!(fates[1], WriteResult::Torn(_)), "{fates:?}");
            assert!(matches!(fates[2], WriteResult::NeverWritten(_)), "{fates:?}");
        }
    }

    #[test]
    fn a_pipe_that_was_made_non_blocking_gets_all_of_a_large_frame() {
        let (mut reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let frame_writer = FrameWriter::start(writer, "test").unwrap();
        let (tell, on_written) = mpsc::channel();
        let large = format!("\"{}\"", "x".repeat(900_000));
        let queued = QueuedFrame::of(Frame::from(large.clone()));
        frame_writer.push(queued.then(move |result| tell.send(result).unwrap()));
        let mut read = vec![0; large.len() + 1];
        io::Read::read_exact(&mut reader, &mut read).unwrap();
        assert_eq!(on_written.recv().unwrap(), WriteResult::Written);
        assert_eq!(read, (large + "\n").into_bytes());
    }
}
