//! Pipes that one thread reads, whichever has something to read, so that a message wakes one thread and no other.
//!
//! The process that started this one may share its pipes, so they stay as they are, and none is read before it has
//! something: such a read does not wait.

use super::input_line::{InputLine, LineBuffer};
use crate::local_tasks::LocalTasks;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::fmt;
use std::io;
use tokio::runtime::Handle;

/// Takes the lines of a pipe. Dropped at its end.
pub trait LineHandler {
    fn line(&mut self, line: InputLine);

    /// The pipe is not read while there is none.
    fn has_room(&self) -> bool;
}

/// A pipe and the handler of its lines.
pub struct LineReader {
    pipe: OwnedFd,
    pieces: LineBuffer,
    handler: Box<dyn LineHandler + Send>,
    /// Lines may have been read that there was no room for.
    holds_back: bool,
}

impl fmt::Debug for LineReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

/// How soon a handler is asked again that had no room. A peer that has so much to read first is in no hurry.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

impl LineReader {
    pub fn new(pipe: impl Into<OwnedFd>, handler: impl LineHandler + Send + 'static) -> LineReader {
        let (pipe, pieces) = (pipe.into(), LineBuffer::default());
        LineReader { pipe, pieces, handler: Box::new(handler), holds_back: false }
    }

    /// Reads all of them to their ends. Blocks: for a thread of its own.
    pub fn read_all(mut readers: Vec<LineReader>) {
        while !readers.is_empty() {
            read_some(&mut readers, None);
        }
    }

    /// The same in a thread that also does what the messages set off, for as long as there is a process.
    pub fn read_and_run_tasks(mut readers: Vec<LineReader>, runtime: &Handle) {
        let _within = runtime.enter();
        // Without them the runtime does it all.
        let Ok(mut tasks) = LocalTasks::start() else { return LineReader::read_all(readers) };
        loop {
            tasks.run_ready();
            read_some(&mut readers, Some(&mut tasks));
        }
    }

    /// Whether more should be read: all that was read is handed on, and there is room.
    fn has_room(&mut self) -> bool {
        if self.holds_back {
            self.hand_on();
        }
        !self.holds_back && self.handler.has_room()
    }

    fn hand_on(&mut self) {
        self.holds_back = true;
        while self.handler.has_room() {
            match self.pieces.take_line() {
                Some(line) => self.handler.line(line),
                None => {
                    self.holds_back = false;
                    break;
                }
            }
        }
    }

    /// `false` at the end.
    fn read_once(&mut self) -> bool {
        let pipe = &self.pipe;
        let goes_on = match self.pieces.fill(|room| Ok(rustix::io::read(pipe, room)?)) {
            Ok(count) => count > 0,
            // Another reader was faster.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        self.hand_on();
        if !goes_on && let Some(rest) = self.pieces.take_rest() {
            self.handler.line(rest);
        }
        goes_on
    }
}

/// Waits until one of them can be read, or a task goes on, and reads each once that can.
fn read_some(readers: &mut Vec<LineReader>, tasks: Option<&mut LocalTasks>) {
    let mut have_news = have_news(readers, tasks).into_iter();
    readers.retain_mut(|reader| !have_news.next().unwrap_or_default() || reader.read_once());
}

/// Which of them can be read without waiting, and have room. Waits until one may be such, or a task goes on.
fn have_news(readers: &mut [LineReader], tasks: Option<&mut LocalTasks>) -> Vec<bool> {
    let mut answers: Vec<bool> = readers.iter_mut().map(LineReader::has_room).collect();
    let with_room = readers.iter().zip(&answers).filter(|(_, has_room)| **has_room);
    let mut asked: Vec<_> = with_room.map(|(reader, _)| PollFd::new(&reader.pipe, PollFlags::IN)).collect();
    let wait = (asked.len() < readers.len()).then_some(&LOOK_AGAIN);
    asked.extend(tasks.iter().map(|tasks| PollFd::new(&tasks.rings, PollFlags::IN)));
    // Where a signal interrupts it, none is.
    let any = poll(&mut asked, wait).is_ok_and(|count| count > 0);
    for (answer, asked) in answers.iter_mut().filter(|answer| **answer).zip(&asked) {
        *answer = any && !asked.revents().is_empty();
    }
    let rung = tasks.is_some() && any && asked.last().is_some_and(|bell| !bell.revents().is_empty());
    drop(asked);
    tasks.filter(|_| rung).into_iter().for_each(LocalTasks::drain_bell);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    struct Tells(mpsc::Sender<InputLine>, Arc<AtomicBool>);

    impl LineHandler for Tells {
        fn line(&mut self, line: InputLine) {
            self.0.send(line).unwrap();
        }

        fn has_room(&self) -> bool {
            self.1.load(Ordering::SeqCst)
        }
    }

    fn text(text: &str) -> InputLine {
        InputLine::Text(text.to_owned().into())
    }

    #[test]
    fn two_pipes_are_read_by_one_thread_each_to_its_end() {
        let (tell, told) = mpsc::channel();
        let open = Arc::new(AtomicBool::new(true));
        let (readers, mut writers): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (reader, writer) = io::pipe().unwrap();
                (LineReader::new(reader, Tells(tell.clone(), Arc::clone(&open))), writer)
            })
            .unzip();
        drop(tell);
        let reading = std::thread::spawn(|| LineReader::read_all(readers));
        writers[1].write_all(b"{}\n{\"a\"").unwrap();
        assert_eq!(told.recv().unwrap(), text("{}"));
        writers[0].write_all(b"1\n").unwrap();
        assert_eq!(told.recv().unwrap(), text("1"));
        writers[1].write_all(b":1}\n").unwrap();
        assert_eq!(told.recv().unwrap(), text("{\"a\":1}"));
        let long = "x".repeat(1 << 20);
        writers[1].write_all(format!("{long}\n{{").as_bytes()).unwrap();
        drop(writers.remove(1));
        assert_eq!(told.recv().unwrap(), text(&long));
        assert_eq!(told.recv().unwrap(), InputLine::Cut("{".into()));
        writers[0].write_all(b"2\n").unwrap();
        assert_eq!(told.recv().unwrap(), text("2"));
        drop(writers);
        assert!(told.recv().is_err(), "both have ended");
        reading.join().unwrap();
    }

    #[test]
    fn a_pipe_without_room_stops_none_but_itself() {
        let (tell, told) = mpsc::channel();
        let open = Arc::new(AtomicBool::new(false));
        let (full, mut to_full) = io::pipe().unwrap();
        let (free, mut to_free) = io::pipe().unwrap();
        let readers = vec![
            LineReader::new(full, Tells(tell.clone(), Arc::clone(&open))),
            LineReader::new(free, Tells(tell, Arc::new(AtomicBool::new(true)))),
        ];
        let reading = std::thread::spawn(|| LineReader::read_all(readers));
        to_full.write_all(b"\"full\"\n").unwrap();
        to_free.write_all(b"\"free\"\n").unwrap();
        assert_eq!(told.recv().unwrap(), text("\"free\""));
        open.store(true, Ordering::SeqCst);
        assert_eq!(told.recv().unwrap(), text("\"full\""));
        drop((to_full, to_free));
        reading.join().unwrap();
    }

    #[test]
    fn a_file_is_read_like_a_pipe() {
        let (tell, told) = mpsc::channel();
        let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        LineReader::read_all(vec![LineReader::new(file, Tells(tell, Arc::new(AtomicBool::new(true))))]);
        assert!(told.iter().count() > 1);
    }
}
