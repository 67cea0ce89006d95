//! Pipes that one thread reads, whichever has something to read, so that a message wakes one thread and no other.
//!
//! The process that started this one may share its pipes, so they stay as they are, and none is read before it has
//! something: such a read does not wait.

use super::lines::{Line, Pieces};
use crate::errands::Errands;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::fmt;
use std::io;
use tokio::runtime::Handle;

/// Takes the lines of a pipe. Dropped at its end.
pub trait Hearer {
    fn line(&mut self, line: Line);

    /// The pipe is not read while there is none.
    fn has_room(&self) -> bool;
}

/// A pipe with who hears it.
pub struct Inlet {
    pipe: OwnedFd,
    pieces: Pieces,
    hearer: Box<dyn Hearer + Send>,
    /// Lines may have been read that there was no room for.
    holds_back: bool,
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet").field("pipe", &self.pipe).finish_non_exhaustive()
    }
}

/// How soon a hearer is asked again that had no room. Whoever has so much to read first is in no hurry.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

impl Inlet {
    pub fn new(pipe: impl Into<OwnedFd>, hearer: impl Hearer + Send + 'static) -> Inlet {
        let (pipe, pieces) = (pipe.into(), Pieces::default());
        Inlet { pipe, pieces, hearer: Box::new(hearer), holds_back: false }
    }

    /// Reads all of them to their ends. Blocks: for a thread of its own.
    pub fn read_all(mut inlets: Vec<Inlet>) {
        while !inlets.is_empty() {
            read_some(&mut inlets, None);
        }
    }

    /// The same in a thread that also does what the messages set off, for as long as there is a process.
    pub fn read_and_run_errands(mut inlets: Vec<Inlet>, runtime: &Handle) {
        let _within = runtime.enter();
        // Without them the runtime does it all.
        let Ok(mut errands) = Errands::here() else { return Inlet::read_all(inlets) };
        loop {
            errands.go_on();
            read_some(&mut inlets, Some(&mut errands));
        }
    }

    /// Whether more should be read: all that was read is handed on, and there is room.
    fn has_room(&mut self) -> bool {
        if self.holds_back {
            self.hand_on();
        }
        !self.holds_back && self.hearer.has_room()
    }

    fn hand_on(&mut self) {
        self.holds_back = true;
        while self.hearer.has_room() {
            match self.pieces.take_line() {
                Some(line) => self.hearer.line(line),
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
            // Somebody else was faster.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        self.hand_on();
        if !goes_on && let Some(rest) = self.pieces.take_rest() {
            self.hearer.line(rest);
        }
        goes_on
    }
}

/// Waits until one of them can be read, or an errand goes on, and reads each once that can.
fn read_some(inlets: &mut Vec<Inlet>, errands: Option<&mut Errands>) {
    let mut have_news = have_news(inlets, errands).into_iter();
    inlets.retain_mut(|inlet| !have_news.next().unwrap_or_default() || inlet.read_once());
}

/// Which of them can be read without waiting, and have room. Waits until one may be such, or an errand goes on.
fn have_news(inlets: &mut [Inlet], errands: Option<&mut Errands>) -> Vec<bool> {
    let mut answers: Vec<bool> = inlets.iter_mut().map(Inlet::has_room).collect();
    let with_room = inlets.iter().zip(&answers).filter(|(_, has_room)| **has_room);
    let mut asked: Vec<_> = with_room.map(|(inlet, _)| PollFd::new(&inlet.pipe, PollFlags::IN)).collect();
    let wait = (asked.len() < inlets.len()).then_some(&LOOK_AGAIN);
    asked.extend(errands.iter().map(|errands| PollFd::new(&errands.rings, PollFlags::IN)));
    // Where a signal interrupts it, none is.
    let any = poll(&mut asked, wait).is_ok_and(|count| count > 0);
    for (answer, asked) in answers.iter_mut().filter(|answer| **answer).zip(&asked) {
        *answer = any && !asked.revents().is_empty();
    }
    let rung = errands.is_some() && any && asked.last().is_some_and(|bell| !bell.revents().is_empty());
    drop(asked);
    errands.filter(|_| rung).into_iter().for_each(Errands::hear);
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    struct Tells(mpsc::Sender<Line>, Arc<AtomicBool>);

    impl Hearer for Tells {
        fn line(&mut self, line: Line) {
            self.0.send(line).unwrap();
        }

        fn has_room(&self) -> bool {
            self.1.load(Ordering::SeqCst)
        }
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned().into())
    }

    #[test]
    fn two_pipes_are_read_by_one_thread_each_to_its_end() {
        let (tell, told) = mpsc::channel();
        let open = Arc::new(AtomicBool::new(true));
        let (inlets, mut writers): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (reader, writer) = io::pipe().unwrap();
                (Inlet::new(reader, Tells(tell.clone(), Arc::clone(&open))), writer)
            })
            .unzip();
        drop(tell);
        let reading = std::thread::spawn(|| Inlet::read_all(inlets));
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
        assert_eq!(told.recv().unwrap(), Line::Cut("{".into()));
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
        let inlets = vec![
            Inlet::new(full, Tells(tell.clone(), Arc::clone(&open))),
            Inlet::new(free, Tells(tell, Arc::new(AtomicBool::new(true)))),
        ];
        let reading = std::thread::spawn(|| Inlet::read_all(inlets));
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
        Inlet::read_all(vec![Inlet::new(file, Tells(tell, Arc::new(AtomicBool::new(true))))]);
        assert!(told.iter().count() > 1);
    }
}
