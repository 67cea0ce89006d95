//! A server on standard input and output: one process, started once. A request that dies with it is surfaced, and
//! never sent again to another.

use super::request::{Exchange, LinkRequest, Listener, PROGRESS, RequestNews};
use crate::caller::without_own_tokens;
use crate::mcp::frame::Frame;
use crate::mcp::frame_writer::{FrameWriter, QueuedFrame, WriteResult};
use crate::mcp::id::Id;
use crate::mcp::input_line::InputLine;
use crate::mcp::line_reader::{LineHandler, LineReader};
use crate::mcp::message::{Message, MessageKind, text};
use crate::runtime::RuntimeClock;
use crate::wire::members::Members;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use semel_gate::clock::Clock;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

#[derive(Debug)]
pub struct ChildLink {
    to_child: FrameWriter,
    waiting: Arc<PendingReplies>,
    group: Pid,
    exited: watch::Receiver<Option<ExitStatus>>,
    clock: RuntimeClock,
}

impl ChildLink {
    /// Starts the server in a process group of its own, with semel's environment, directory and standard error.
    pub fn start(command: &mut Command, clock: RuntimeClock) -> io::Result<(ChildLink, ChildOutput)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
        let mut child = without_own_tokens(command).spawn()?;
        let input = child.stdin.take().expect("it was asked to be a pipe");
        let output = child.stdout.take().expect("it was asked to be a pipe");
        let group = Pid::from_child(&child);
        let waiting = Arc::new(PendingReplies::new());
        let to_child = FrameWriter::start(input, "to-server")?;
        let (exit, exited) = watch::channel(None);
        thread("server-exit", move || wait(child, &exit))?;
        let output = ChildOutput { waiting: Arc::clone(&waiting), output };
        Ok((ChildLink { to_child, waiting, group, exited, clock }, output))
    }

    pub fn ready(&self) -> Result<(), String> {
        match (*self.exited.borrow(), self.to_child.is_broken()) {
            (Some(status), _) => Err(format!("the server has ended ({status})")),
            (None, true) => Err("the server has closed its input".into()),
            (None, false) => Ok(()),
        }
    }

    /// Whether no answer will come any more. It is so before the waiting requests learn it, and the exit code may come
    /// later.
    pub fn has_ended(&self) -> bool {
        self.waiting.lock().is_none() || self.exited.borrow().is_some()
    }

    /// Passes a message on as it came.
    pub fn pass(&self, frame: impl Into<Frame>) {
        self.to_child.push(QueuedFrame::of(frame.into()));
    }

    /// Whether messages may be passed on; too many wait otherwise.
    pub fn has_room(&self) -> bool {
        self.to_child.has_room()
    }

    pub async fn exchange(&self, request: LinkRequest) -> Exchange {
        let LinkRequest { id, frame, last_moment, news, .. } = request;
        let Some(answered) = self.waiting.add(&id, news) else {
            return Exchange::NeverSent("the server has ended".into());
        };
        let clock = self.clock.clone();
        let hindrance = move || {
            let late = last_moment.is_some_and(|last| clock.now() > last);
            late.then(|| "the server did not read its input before the last moment for sending".to_owned())
        };
        let _guard = PendingGuard { waiting: &self.waiting, id: &id };
        let waiting = Arc::clone(&self.waiting);
        let fate_of = id.clone();
        self.to_child.push(QueuedFrame::of(frame).unless(hindrance).then(move |fate| match fate {
            WriteResult::Written => {}
            WriteResult::NeverWritten(why) => waiting.settle(&fate_of, Exchange::NeverSent(why)),
            WriteResult::Torn(why) => waiting.settle(&fate_of, Exchange::Lost(why)),
        }));
        answered.await.unwrap_or_else(|_| Exchange::Lost("the server ended without an answer".into()))
    }

    /// Ends its input, as a client does that goes away.
    pub fn close(&self) {
        self.to_child.close();
    }

    /// Whether semel itself wants it to end.
    pub fn is_closed(&self) -> bool {
        self.to_child.is_closed()
    }

    pub fn signal(&self, signal: Signal) {
        // A group that is gone needs no signal.
        let _gone = kill_process_group(self.group, signal);
    }

    /// How it ended, once it has.
    pub async fn exit(&self) -> Option<ExitStatus> {
        let mut exited = self.exited.clone();
        let status = exited.wait_for(Option::is_some).await.ok()?;
        *status
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

fn wait(mut child: Child, exit: &watch::Sender<Option<ExitStatus>>) {
    if let Ok(status) = child.wait() {
        exit.send_replace(Some(status));
    }
}

/// Requests of semel's own that have no answer yet.
#[derive(Debug)]
struct PendingReplies(Mutex<Option<PendingTable>>);

/// Answered requests that are remembered, so that a second answer is known as one.
const ANSWERED_MAX: usize = 32;

#[derive(Debug, Default)]
struct PendingTable {
    unanswered: HashMap<Id, (oneshot::Sender<Exchange>, Option<RequestNews>)>,
    /// The newest that have one.
    answered: VecDeque<Id>,
}

/// Forgets a request that is no longer waited for, however that came.
struct PendingGuard<'a> {
    waiting: &'a PendingReplies,
    id: &'a Id,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if let Some(table) = self.waiting.lock().as_mut() {
            table.unanswered.remove(self.id);
        }
    }
}

impl PendingReplies {
    fn new() -> PendingReplies {
        PendingReplies(Mutex::new(Some(PendingTable::default())))
    }

    fn lock(&self) -> MutexGuard<'_, Option<PendingTable>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` once the server's output has ended: no answer will come any more.
    fn add(&self, id: &Id, news: Option<RequestNews>) -> Option<oneshot::Receiver<Exchange>> {
        let (tell, answered) = oneshot::channel();
        self.lock().as_mut()?.unanswered.insert(id.clone(), (tell, news));
        Some(answered)
    }

    fn settle(&self, id: &Id, exchange: Exchange) {
        let mut table = self.lock();
        let Some(table) = table.as_mut() else { return };
        let Some((tell, _)) = table.unanswered.remove(id) else { return };
        if let Exchange::Reply(_) = exchange {
            if table.answered.len() >= ANSWERED_MAX {
                table.answered.pop_front();
            }
            table.answered.push_back(id.clone());
        }
        let _caller_is_gone = tell.send(exchange);
    }

    /// Progress of whichever requests have this token.
    fn note_progress(&self, params: &str) {
        let members = Members::parse(params).unwrap_or_default();
        let (Some(token), Some(table)) = (members.get("progressToken"), &*self.lock()) else { return };
        let news = table.unanswered.values().filter_map(|(_, news)| news.as_ref());
        news.filter(|news| news.token.as_deref() == Some(token)).for_each(RequestNews::note);
    }

    fn has(&self, id: &Id) -> bool {
        self.lock().as_ref().is_some_and(|table| table.unanswered.contains_key(id))
    }

    fn has_answered(&self, id: &Id) -> bool {
        self.lock().as_ref().is_some_and(|table| table.answered.contains(id))
    }

    /// The request that an unreadable line was meant to answer, if it says so anywhere near its ends.
    fn named_in(&self, line: &[u8]) -> Option<Id> {
        const NEAR: usize = 4096;
        // A log that quotes the request is no answer to it.
        let quotes = |end: &[u8]| end.windows(8).any(|window| window == b"\"method\"");
        if line.trim_ascii_start().first() != Some(&b'{') || quotes(&line[..line.len().min(NEAR)]) {
            return None;
        }
        let ends = [&line[..line.len().min(NEAR)], &line[line.len().saturating_sub(NEAR)..]];
        let within = |id: &&Id| {
            let needle = id.as_json().as_bytes();
            ends.iter().any(|end| end.windows(needle.len()).any(|window| window == needle))
        };
        self.lock().as_ref()?.unanswered.keys().find(within).cloned()
    }

    /// All waiting requests learn that no answer will come.
    fn close(&self) {
        self.lock().take();
    }
}

/// The server's output, before it is listened to.
#[derive(Debug)]
pub struct ChildOutput {
    waiting: Arc<PendingReplies>,
    output: ChildStdout,
}

impl ChildOutput {
    /// Starts to read, in a thread of its own.
    pub fn listen(self, listener: impl Listener) -> io::Result<()> {
        let line_reader = self.line_reader(listener);
        thread("from-server", move || LineReader::read_all(vec![line_reader]))
    }

    /// To be read beside other pipes.
    pub fn line_reader(self, listener: impl Listener) -> LineReader {
        let reader = ServerReader { waiting: self.waiting, listener, went_to: None };
        LineReader::new(self.output, reader)
    }
}

struct ServerReader<L> {
    waiting: Arc<PendingReplies>,
    listener: L,
    /// Where the newest line went on, if it may have to wait there.
    went_to: Option<FrameWriter>,
}

impl<L: Listener> LineHandler for ServerReader<L> {
    fn line(&mut self, line: InputLine) {
        self.went_to = match line {
            InputLine::Text(bytes) => self.text(bytes),
            InputLine::TooLong(ends) => {
                self.unreadable(&ends, "its answer was longer than any message may be")
            }
            InputLine::Cut(rest) => self.unreadable(&rest, "its answer broke off"),
        };
    }

    fn has_room(&self) -> bool {
        self.went_to.as_ref().is_none_or(FrameWriter::has_room)
    }
}

impl<L> Drop for ServerReader<L> {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

impl<L: Listener> ServerReader<L> {
    fn text(&mut self, bytes: Bytes) -> Option<FrameWriter> {
        match Message::parse(bytes.clone()) {
            Ok(message) => match &message.kind {
                MessageKind::Response { id: Some(id), .. } if self.waiting.has(id) => {
                    let id = id.clone();
                    self.waiting.settle(&id, Exchange::Reply(message));
                    None
                }
                MessageKind::Response { id: Some(id), .. } if self.waiting.has_answered(id) => {
                    self.listener.answered_twice(id);
                    None
                }
                _ => {
                    if message.method() == Some(PROGRESS) {
                        self.waiting.note_progress(message.params.as_ref().map_or("{}", text));
                    }
                    self.listener.message(message)
                }
            },
            Err(problem) => {
                let why = format!("its answer could not be read: {problem}");
                let logged = self.unreadable(&bytes, &why);
                self.told_unreadable(&bytes, &why).or(logged)
            }
        }
    }

    /// A client whose request was passed on would wait for ever.
    fn told_unreadable(&mut self, line: &[u8], why: &str) -> Option<FrameWriter> {
        let id = Message::answered_by(line)?;
        let words = format!("semel did not pass the server's answer on: {why}");
        let error = Frame::refusal(&id, -32603, &words, None);
        self.listener.message(Message::parse(error.to_bytes()).ok()?)
    }

    fn unreadable(&mut self, line: &[u8], why: &str) -> Option<FrameWriter> {
        if let Some(id) = self.waiting.named_in(line) {
            self.waiting.settle(&id, Exchange::Lost(why.to_owned()));
        }
        self.listener.stray(&String::from_utf8_lossy(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel_gate::look::Progress;

    #[test]
    fn progress_is_noted_for_the_requests_with_its_token() {
        let (waiting, clock) = (PendingReplies::new(), RuntimeClock::start());
        let ask = |id: &str, token: Option<&str>| {
            let (token, progress) = (token.map(str::to_owned), Progress::default());
            let news = RequestNews { token, progress: progress.clone(), clock: clock.clone() };
            (waiting.add(&Id::text(id), Some(news)), progress)
        };
        let (_seven, seven) = ask("1", Some("7"));
        let (_other, other) = ask("2", Some("\"7\""));
        let (_none, none) = ask("3", None);
        waiting.note_progress(r#"{"progressToken":7,"progress":0.5}"#);
        assert!(seven.last().is_some() && other.last().is_none() && none.last().is_none());
        waiting.note_progress("{}");
        assert!(other.last().is_none() && none.last().is_none());
    }
}
