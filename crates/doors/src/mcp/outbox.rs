//! Frames that wait to be written to a pipe, by a thread of its own: a peer that does not read stops nobody else.

use super::frame::{Frame, Untouched};
use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Whoever only passes messages on waits for room beyond this, and its own peer waits in turn.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// What became of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The pipe took its last byte.
    Written,
    /// Not one byte of it left, for this reason.
    NeverWritten(String),
    /// It broke off in the middle.
    Torn(String),
}

type Told = Box<dyn FnOnce(Fate) + Send>;
type Hindrance = Box<dyn FnOnce() -> Option<String> + Send>;

/// A frame with what is asked before it is written, and who is told afterwards.
pub struct Parcel {
    frame: Frame,
    hindrance: Option<Hindrance>,
    told: Option<Told>,
}

impl Parcel {
    pub fn of(frame: Frame) -> Parcel {
        Parcel { frame, hindrance: None, told: None }
    }

    /// Asked at the last moment: a reason not to write it any more.
    #[must_use]
    pub fn unless(mut self, hindrance: impl FnOnce() -> Option<String> + Send + 'static) -> Parcel {
        self.hindrance = Some(Box::new(hindrance));
        self
    }

    #[must_use]
    pub fn then(mut self, told: impl FnOnce(Fate) + Send + 'static) -> Parcel {
        self.told = Some(Box::new(told));
        self
    }

    fn tell(&mut self, fate: Fate) {
        if let Some(told) = self.told.take() {
            told(fate);
        }
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel").field("bytes", &self.frame.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Queue {
    parcels: VecDeque<Parcel>,
    bytes: usize,
    /// No more is taken; what waits is still written.
    closed: bool,
    /// The pipe is gone.
    broken: Option<String>,
    writing: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// The way to one pipe. Clones are the same way.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Shared>);

impl Outbox {
    /// Starts the thread that writes. It ends, and closes the pipe, when the box is closed and empty.
    pub fn into(mut pipe: impl Write + Send + 'static, name: &str) -> std::io::Result<Outbox> {
        let outbox = Outbox(Arc::default());
        let writer = outbox.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || writer.write_all(&mut pipe))?;
        Ok(outbox)
    }

    pub fn push(&self, mut parcel: Parcel) {
        let mut queue = self.lock();
        let gone = match &queue.broken {
            Some(why) => Some(why.clone()),
            None => queue.closed.then(|| "the connection is closed".to_owned()),
        };
        match gone {
            Some(why) => {
                drop(queue);
                parcel.tell(Fate::NeverWritten(why));
            }
            None => {
                queue.bytes += parcel.frame.len();
                queue.parcels.push_back(parcel);
                drop(queue);
                self.0.changed.notify_all();
            }
        }
    }

    /// For threads that pass on what another peer sends: blocks while too much waits.
    pub fn wait_for_room(&self) {
        let mut queue = self.lock();
        while queue.bytes > WAITING_BYTES_MAX && queue.broken.is_none() {
            queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more, and closes the pipe after what waits.
    pub fn close(&self) {
        self.lock().closed = true;
        self.0.changed.notify_all();
    }

    /// Blocks until everything that waits has been written, or cannot be.
    pub fn drain(&self) {
        let mut queue = self.lock();
        while queue.broken.is_none() && (queue.writing || !queue.parcels.is_empty()) {
            queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn is_broken(&self) -> bool {
        self.lock().broken.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Parcel> {
        let mut queue = self.lock();
        loop {
            if let Some(parcel) = queue.parcels.pop_front() {
                queue.writing = true;
                return Some(parcel);
            }
            if queue.closed {
                return None;
            }
            queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes -= bytes;
        queue.writing = false;
        drop(queue);
        self.0.changed.notify_all();
    }

    fn write_all(&self, pipe: &mut impl Write) {
        while let Some(mut parcel) = self.take() {
            let bytes = parcel.frame.len();
            let hindrance = parcel.hindrance.take().and_then(|hindrance| hindrance());
            let fate = match hindrance {
                Some(why) => Fate::NeverWritten(why),
                None => match parcel.frame.write_line(pipe) {
                    Ok(()) => Fate::Written,
                    Err((error, Untouched(untouched))) => {
                        let why = format!("its input was closed: {error}");
                        self.lock().broken = Some(why.clone());
                        if untouched { Fate::NeverWritten(why) } else { Fate::Torn(why) }
                    }
                },
            };
            parcel.tell(fate);
            drop(parcel);
            self.done(bytes);
            if let Some(why) = self.broken_because() {
                return self.give_up(&why);
            }
        }
    }

    fn broken_because(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    fn give_up(&self, why: &str) {
        let parcels = std::mem::take(&mut self.lock().parcels);
        self.0.changed.notify_all();
        for mut parcel in parcels {
            parcel.tell(Fate::NeverWritten(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc;

    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>, Option<usize>);

    impl Write for Pipe {
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

    fn fates(pipe: Pipe, parcels: Vec<Parcel>) -> Vec<Fate> {
        let outbox = Outbox::into(pipe, "test").unwrap();
        let (tell, told) = mpsc::channel();
        for (i, parcel) in parcels.into_iter().enumerate() {
            let tell = tell.clone();
            outbox.push(parcel.then(move |fate| tell.send((i, fate)).unwrap()));
        }
        drop(tell);
        outbox.close();
        let mut fates: Vec<_> = told.iter().collect();
        fates.sort_by_key(|(i, _)| *i);
        fates.into_iter().map(|(_, fate)| fate).collect()
    }

    fn parcel(text: &str) -> Parcel {
        Parcel::of(Frame::from(text.to_owned()))
    }

    #[test]
    fn frames_are_written_in_order_and_hindered_ones_are_not() {
        let pipe = Pipe::default();
        let parcels = vec![parcel("1"), parcel("2").unless(|| Some("too late".into())), parcel("3")];
        let never = Fate::NeverWritten("too late".into());
        assert_eq!(fates(pipe.clone(), parcels), [Fate::Written, never, Fate::Written]);
        assert_eq!(*pipe.0.lock().unwrap(), b"1\n3\n");
    }

    #[test]
    fn of_a_closed_pipe_only_the_frame_in_the_middle_is_uncertain() {
        let pipe = Pipe(Arc::default(), Some(4));
        let parcels = vec![parcel("1"), parcel("22222"), parcel("3")];
        let fates = fates(pipe, parcels);
        assert_eq!(fates[0], Fate::Written);
        assert!(matches!(fates[1], Fate::Torn(_)), "{fates:?}");
        assert!(matches!(fates[2], Fate::NeverWritten(_)), "{fates:?}");
    }
}
