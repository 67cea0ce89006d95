//! One client on standard input and output, in front of one server.

use super::answer_check::{AnswerCheck, CheckedAnswer};
use super::dispatch::{ClientSide, Dispatcher, OwnAnswer, PassedRequest};
use super::pending_requests::{PendingRequest, PendingRequests};
use crate::call_options::CallOptions;
use crate::local_tasks;
use crate::mcp::connection::ClientConnection;
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::frame_writer::{FrameWriter, Pipe, QueuedFrame, WriteResult};
use crate::mcp::guard::{ClientAnswer, guard};
use crate::mcp::id::Id;
use crate::mcp::input_line::InputLine;
use crate::mcp::line_reader::LineHandler;
use crate::mcp::link::request::Listener;
use crate::mcp::message::{Message, MessageKind, text};
use crate::mcp::route::GuardedCall;
use crate::mcp::server::Server;
use crate::mcp::tools::Tools;
use crate::mcp::version;
use crate::services::Services;
use crate::wire::members::Members;
use http::StatusCode;
use semel_gate::clock::Clock;
use semel_ledger::journal;
use semel_ledger::store::Durability;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

/// Both directions of one conversation.
#[derive(Debug)]
pub struct Stdio {
    services: Arc<Services>,
    server: Arc<Server>,
    connection: Arc<ClientConnection>,
    to_client: FrameWriter,
    pending: Mutex<PendingRequests>,
    /// The era of the server is found out once, if a client leaves that to semel.
    met: OnceCell<()>,
    runtime: Handle,
    has_breached: AtomicBool,
    /// Where lines go that are no messages, once there is one. The log's reader may stop reading, and then no message
    /// should wait for it.
    log: OnceLock<Option<FrameWriter>>,
}

impl Stdio {
    pub fn new(
        services: Arc<Services>,
        server: Arc<Server>,
        connection: Arc<ClientConnection>,
        output: impl Pipe,
        runtime: Handle,
    ) -> std::io::Result<Arc<Stdio>> {
        Ok(Arc::new(Stdio {
            services,
            server,
            connection,
            to_client: FrameWriter::start(output, "to-client")?,
            pending: Mutex::default(),
            met: OnceCell::new(),
            runtime,
            has_breached: AtomicBool::new(false),
            log: OnceLock::new(),
        }))
    }

    fn complain(&self, code: i32, message: &str) {
        self.send(Frame::complaint(code, &format!("semel passed nothing on: {message}")));
    }

    fn send(&self, frame: Frame) {
        self.to_client.push(QueuedFrame::of(frame));
    }

    /// Blocks until the client has been sent everything, or reads no more.
    pub fn drain(&self) {
        self.to_client.drain();
        if let Some(Some(log)) = self.log.get() {
            log.drain();
        }
    }

    fn log(&self) -> Option<FrameWriter> {
        let begun = self.log.get_or_init(|| {
            let log = FrameWriter::start(std::io::stderr(), "to-log").ok()?;
            let name = &self.server.name;
            let words =
                format!("semel: {name} writes lines that are no messages to its output; they go here");
            log.push(QueuedFrame::of(Frame::from(words)));
            Some(log)
        });
        begun.clone()
    }

    /// The server has answered a request twice. One line of it is enough: a server may do so without end.
    fn journal_breach(self: &Arc<Self>, id: &Id) {
        if self.has_breached.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = Arc::clone(self);
        let data = json!({"server": &self.server.name, "request": id.as_json()});
        self.run(async move {
            if let Ok(gate) = &this.services.gate {
                let line = journal::note("answered_twice", None, None, data, this.services.clock.now());
                // It is for readers of the journal; where that cannot be written, nobody misses it.
                let _unwritten = gate.ledger.note(line, Durability::Lazy).await;
            }
        });
    }

    /// Nearly every message goes on at once, in the order in which they came. One that semel must ask something for
    /// first goes on later.
    fn from_client(self: &Arc<Self>, message: Message) {
        let this = Arc::clone(self);
        let mut dispatched = Box::pin(async move {
            let (services, server) = (Arc::clone(&this.services), Arc::clone(&this.server));
            let options = CallOptions::default();
            let client = Arc::clone(&this);
            let dispatcher = Dispatcher { client, services, server, options, is_shared: false };
            if let Err(OwnAnswer { frame: Some(frame), .. }) = dispatcher.dispatch(message).await {
                this.send(frame);
            }
        });
        if dispatched.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.run(dispatched);
        }
    }

    /// A request waits. `Err`: too many do.
    fn add(&self, id: &Id, request: PendingRequest) -> Result<(), OwnAnswer> {
        match self.lock().add(id, request) {
            true => Ok(()),
            false => {
                let words = "too many requests wait for this server";
                Err(OwnAnswer::new(StatusCode::OK, Frame::refusal(id, -32603, words, None)))
            }
        }
    }

    /// Runs a part of the work that must be finished before the process ends.
    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let working = self.services.in_flight.begin();
        let work = async move {
            work.await;
            drop(working);
        };
        local_tasks::spawn(work, &self.runtime);
    }

    fn lock(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a response; once the pipe has taken its last byte, it counts as delivered.
    fn deliver(self: &Arc<Self>, answer: ClientAnswer) {
        let this = Arc::clone(self);
        let working = self.services.in_flight.begin();
        let frame = answer.frame.clone();
        self.to_client.push(QueuedFrame::of(frame).then(move |fate| {
            if fate == WriteResult::Written {
                let _within = this.runtime.enter();
                answer.has_left();
            }
            drop(working);
        }));
    }

    fn from_server(self: &Arc<Self>, message: Message) {
        let body = message.body.clone().unwrap_or_default();
        match &message.kind {
            MessageKind::Response { id: Some(id), failed } => {
                // Else it is a second answer, or one to no request at all.
                let Some(check) = self.lock().take_sent(id) else { return };
                if let (AnswerCheck::Hello { method, params, .. }, true) = (&check, *failed)
                    && method == "initialize"
                    && !self.services.observes()
                {
                    let (this, id, params) = (Arc::clone(self), id.clone(), params.clone());
                    return self.run(async move {
                        let refusal = era::refused_initialize(&this.server, &id, text(&params)).await;
                        this.send(refusal.unwrap_or_else(|| Frame::from(message.bytes)));
                    });
                }
                let answer = if *failed { Err(text(&body)) } else { Ok(text(&body)) };
                let CheckedAnswer { result, task_end } = check.check(&self.services, &self.server, answer);
                let edited = result.and_then(|result| message.edited(None, Some(Frame::from(result))));
                let frame = edited.unwrap_or_else(|| Frame::from(message.bytes));
                return match task_end {
                    Some(_) => self.deliver(ClientAnswer { task_end, ..ClientAnswer::plain(frame) }),
                    None => self.send(frame),
                };
            }
            MessageKind::Response { id: None, failed: false } => return,
            MessageKind::Notification { method } if method == "notifications/tools/list_changed" => {
                self.server.tools_changed();
            }
            MessageKind::Notification { method } if method == "notifications/progress" => {
                let params = message.params.clone().unwrap_or_default();
                let members = Members::parse(text(&params)).unwrap_or_default();
                if members.get("progressToken").is_some_and(|token| self.connection.is_abandoned(token)) {
                    return;
                }
            }
            _ => {}
        }
        self.send(Frame::from(message.bytes));
    }
}

impl ClientSide for Arc<Stdio> {
    type Reply = ();

    /// The server's era is found out first, once, if the client leaves that to semel.
    async fn check_era(&self, id: &Id, method: &str, params: &str) -> Result<(), OwnAnswer> {
        if self.services.observes() {
            return Ok(());
        }
        let is_known = matches!(method, "initialize" | "server/discover")
            || self.met.initialized()
            || self.server.protocol().era.is_some();
        if !is_known && version::version_of(params).is_some() {
            self.wait_for(id, self.met.get_or_init(|| era::meet(&self.server))).await?;
        }
        match era::refusal(&self.server, id, method, params) {
            Some(refusal) => Err(OwnAnswer::new(StatusCode::BAD_REQUEST, refusal)),
            None => Ok(()),
        }
    }

    fn connection(&self, _: &Id, _: &Message) -> Result<Arc<ClientConnection>, OwnAnswer> {
        Ok(Arc::clone(&self.connection))
    }

    async fn wait_for<T: Send>(
        &self,
        id: &Id,
        question: impl Future<Output = T> + Send,
    ) -> Result<T, OwnAnswer> {
        self.add(id, PendingRequest::Unsent)?;
        let answer = question.await;
        if self.lock().take_unsent(id) { Ok(answer) } else { Err(OwnAnswer::accepted()) }
    }

    fn outgoing(&self, message: &Message, _: &Arc<Tools>) -> (Arc<Server>, Message) {
        (Arc::clone(&self.server), message.clone())
    }

    async fn pass(self, request: PassedRequest) {
        let PassedRequest { id, message, check, is_read, .. } = request;
        match self.add(&id, PendingRequest::Sent(check)) {
            Err(refused) => refused.frame.into_iter().for_each(|frame| self.send(frame)),
            Ok(()) => self.server.link.pass(message, is_read),
        }
    }

    async fn forward(self, message: Message, cancels: Option<Id>) {
        let is_unsent = cancels.is_some_and(|id| self.lock().cancel(&id));
        if !is_unsent {
            self.server.link.pass(message, false);
        }
    }

    async fn guard(self, guarded: Box<GuardedCall>) {
        let this = Arc::clone(&self);
        self.run(async move {
            if let Some(answer) = guard(&this.services, *guarded).await {
                this.deliver(answer);
            }
        });
    }

    fn give_up(&self, id: &Id) -> bool {
        self.connection.give_up(id)
    }
}

/// The lines of the client.
#[derive(Debug)]
pub struct ClientInput {
    pub stdio: Arc<Stdio>,
    /// Dropped when the client's messages have ended.
    pub ended: tokio::sync::oneshot::Sender<()>,
}

impl LineHandler for ClientInput {
    fn line(&mut self, line: InputLine) {
        let stdio = &self.stdio;
        match line {
            InputLine::Text(bytes) => match Message::parse(bytes) {
                Ok(message) => stdio.from_client(message),
                Err(problem) => stdio.send(problem.complaint()),
            },
            InputLine::TooLong(_) => stdio.complain(-32600, "the message is too large; it was not read"),
            InputLine::Cut(_) => stdio.complain(-32700, "the message breaks off"),
        }
    }

    fn has_room(&self) -> bool {
        self.stdio.server.link.has_room()
    }
}

/// A line beside a server's messages is a banner or a log line. An answer that cannot be read is a stray line
/// too, and may be of any length.
const STRAY_BYTES_MAX: usize = 2_000;

/// The listener of a server behind this conversation.
#[derive(Debug)]
pub struct ServerOutput {
    pub stdio: Arc<Stdio>,
    /// Dropped when the server's output has ended.
    pub ended: tokio::sync::oneshot::Sender<()>,
}

impl Listener for ServerOutput {
    fn message(&mut self, message: Message) -> Option<FrameWriter> {
        self.stdio.from_server(message);
        Some(self.stdio.to_client.clone())
    }

    fn stray(&mut self, line: &str) -> Option<FrameWriter> {
        let line = line.trim_end();
        let shown = &line[..line.floor_char_boundary(STRAY_BYTES_MAX)];
        let words = match line.len() - shown.len() {
            0 => shown.to_owned(),
            more => format!("{shown}… ({more} bytes more)"),
        };
        let log = self.stdio.log()?;
        log.push(QueuedFrame::of(Frame::from(words)));
        Some(log)
    }

    fn answered_twice(&mut self, id: &Id) {
        self.stdio.journal_breach(id);
    }

    fn began_anew(&mut self, hello: &str) {
        let server = &self.stdio.server;
        era::learn(server, "initialize", hello);
        server.tools_changed();
    }
}
