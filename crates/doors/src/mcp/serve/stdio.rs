//! One client on standard input and output, in front of one server.

use crate::call_options::CallOptions;
use crate::delivery::Delivery;
use crate::errands;
use crate::mcp::connection::Connection;
use crate::mcp::door::{Door, Given, Guarded, Route};
use crate::mcp::era;
use crate::mcp::frame::Frame;
use crate::mcp::inlet::Hearer;
use crate::mcp::lines::Line;
use crate::mcp::link::Listener;
use crate::mcp::message::{Id, Kind, Message, text};
use crate::mcp::outbox::{Fate, Outbox, Parcel, Pipe};
use crate::mcp::own_tools;
use crate::mcp::serve::watch::{Cancelled, Expected, Watch};
use crate::mcp::serve::watched::{Inspection, Watched, call_without_id, cancelled_id};
use crate::mcp::server::{Era, Server};
use crate::mcp::tasks::Telling;
use crate::mcp::tools::Tools;
use crate::wire::members::Members;
use bytes::Bytes;
use semel_gate::clock::Clock;
use semel_ledger::journal;
use semel_ledger::store::Durability;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

/// Both directions of one conversation.
#[derive(Debug)]
pub struct Stdio {
    pub door: Arc<Door>,
    pub server: Arc<Server>,
    pub connection: Arc<Connection>,
    to_client: Outbox,
    watch: Mutex<Watch>,
    /// The era of the server is found out once, if a client leaves that to semel.
    met: OnceCell<()>,
    runtime: Handle,
    has_breached: AtomicBool,
    /// Where lines go that are no messages, once there is one. Whoever reads the log may stop to, and then nobody else
    /// should wait for it.
    log: OnceLock<Option<Outbox>>,
}

impl Stdio {
    pub fn new(
        door: Arc<Door>,
        server: Arc<Server>,
        connection: Arc<Connection>,
        output: impl Pipe,
        runtime: Handle,
    ) -> std::io::Result<Arc<Stdio>> {
        Ok(Arc::new(Stdio {
            door,
            server,
            connection,
            to_client: Outbox::into(output, "to-client")?,
            watch: Mutex::default(),
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
        self.to_client.push(Parcel::of(frame));
    }

    /// Blocks until the client has been sent everything, or reads no more.
    pub fn drain(&self) {
        self.to_client.drain();
        if let Some(Some(log)) = self.log.get() {
            log.drain();
        }
    }

    fn log(&self) -> Option<Outbox> {
        let begun = self.log.get_or_init(|| {
            let log = Outbox::into(std::io::stderr(), "to-log").ok()?;
            let name = &self.server.name;
            let words =
                format!("semel: {name} writes lines that are no messages to its output; they go here");
            log.push(Parcel::of(Frame::from(words)));
            Some(log)
        });
        begun.clone()
    }

    /// The server has answered a request twice. One line of it is enough: a server may do so without end.
    fn journal_breach(self: &Arc<Self>, id: &Id) {
        if self.has_breached.swap(true, Ordering::Relaxed) {
            return;
        }
        let (this, working) = (Arc::clone(self), self.door.services.in_flight.begin());
        let data = json!({"server": &self.server.name, "request": id.as_json()});
        self.run(async move {
            if let Ok(gate) = &this.door.services.gate {
                let line = journal::note("answered_twice", None, None, data, this.door.services.clock.now());
                // It is for whoever reads the journal; without one nobody does.
                let _unwritten = gate.ledger.note(line, Durability::Lazy).await;
            }
            drop(working);
        });
    }

    fn from_client(self: &Arc<Self>, message: Message) {
        let params = message.params.clone().unwrap_or_default();
        match &message.kind {
            Kind::Request { id, method } => {
                let (id, method) = (id.clone(), method.clone());
                return match self.must_meet(&method, text(&params)) {
                    true => self.meet(id, method, message),
                    false => self.request(&id, &method, message),
                };
            }
            Kind::Notification { method } if method == "tools/call" && !self.door.services.observes() => {
                return self.send(call_without_id());
            }
            Kind::Notification { method } if method == "notifications/cancelled" => {
                let of = cancelled_id(text(&params));
                if of.as_ref().is_some_and(|id| self.connection.give_up(id)) {
                    // Rule 12: what was sent is finished and kept for the retry.
                    return;
                }
                if of.is_some_and(|id| self.lock().cancelled(&id) == Cancelled::Unsent) {
                    return;
                }
            }
            Kind::Notification { .. } | Kind::Response { .. } => {}
        }
        self.server.link.pass(message);
    }

    /// Whether the server's era must be found out before this request can be passed or refused.
    fn must_meet(&self, method: &str, params: &str) -> bool {
        let introduces = matches!(method, "initialize" | "server/discover");
        let known = introduces || self.door.services.observes() || self.met.initialized();
        !known && self.server.spoken().era.is_none() && era::version_of(params).is_some()
    }

    fn meet(self: &Arc<Self>, id: Id, method: String, message: Message) {
        let this = Arc::clone(self);
        let met = async move {
            this.met.get_or_init(|| era::meet(&this.server)).await;
        };
        self.after(id, met, move |this, id, ()| this.request(id, &method, message));
    }

    fn request(self: &Arc<Self>, id: &Id, method: &str, message: Message) {
        let params = message.params.clone().unwrap_or_default();
        if !self.door.services.observes()
            && let Some(refusal) = era::refusal(&self.server, id, method, text(&params))
        {
            return self.send(refusal);
        }
        match method {
            "tools/call" => self.call(id.clone(), message),
            _ => {
                let watched = Watched::of(method, &params, || self.connection.caller.whose());
                if self.expect(id, watched) {
                    self.server.link.pass(message);
                }
            }
        }
    }

    /// Whether an answer can be waited for; else the client is told so.
    fn expect(&self, id: &Id, watched: Watched) -> bool {
        let expects = self.lock().add(id, Expected::Sent(watched));
        if !expects {
            self.too_many(id);
        }
        expects
    }

    fn too_many(&self, id: &Id) {
        self.send(Frame::refusal(id, -32603, "too many requests wait for this server", None));
    }

    /// Goes on with a request once semel has asked the server something itself, unless its client gives up meanwhile.
    fn after<T: Send>(
        self: &Arc<Self>,
        id: Id,
        asked: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&Arc<Self>, &Id, T) + Send + 'static,
    ) {
        if !self.lock().add(&id, Expected::Unsent) {
            return self.too_many(&id);
        }
        let this = Arc::clone(self);
        let working = self.door.services.in_flight.begin();
        self.run(async move {
            let known = asked.await;
            let goes_on = this.lock().goes_on(&id);
            if goes_on {
                then(&this, &id, known);
            }
            drop(working);
        });
    }

    fn run(&self, errand: impl Future<Output = ()> + Send + 'static) {
        errands::run(errand, &self.runtime);
    }

    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(self: &Arc<Self>, id: Id, message: Message) {
        match self.server.known_tools() {
            Some(tools) => self.routed(&id, message, &tools),
            // Observing asks for nothing, so that the server sees no difference either.
            None if self.door.services.observes() => self.routed(&id, message, &Arc::default()),
            // A client may call a tool that it never listed; whether it is a read is asked first.
            None => {
                let meta = era::meta_of(message.params.as_ref().map_or("{}", text));
                let server = Arc::clone(&self.server);
                let asked = async move { server.tools(&meta).await };
                self.after(id, asked, move |this, id, tools| this.routed(id, message, &tools));
            }
        }
    }

    fn routed(self: &Arc<Self>, id: &Id, message: Message, tools: &Arc<Tools>) {
        match self.door.route(id, &message, &self.server, &self.connection, tools, &CallOptions::default()) {
            Route::Pass if !self.expect(id, Watched::Plain) => {}
            // Observing looks at no call, so it may be anything.
            Route::Pass if self.door.services.observes() => self.server.link.pass(message),
            Route::Pass => self.server.link.pass_read(message),
            Route::Answer(frame) => self.send(frame),
            Route::Guard(guarded) => self.guard(*guarded),
            Route::Own(call) => {
                let this = Arc::clone(self);
                let working = self.door.services.in_flight.begin();
                self.run(async move {
                    let frame = own_tools::answer(&this.door, &this.server, &this.connection, &call).await;
                    this.send(frame);
                    drop(working);
                });
            }
        }
    }

    fn guard(self: &Arc<Self>, guarded: Guarded) {
        let this = Arc::clone(self);
        let working = self.door.services.in_flight.begin();
        self.run(async move {
            if let Some(given) = this.door.guard(guarded).await {
                this.give(given);
            }
            drop(working);
        });
    }

    /// Sends a response; once the pipe has taken its last byte, it counts as delivered.
    fn give(self: &Arc<Self>, given: Given) {
        let this = Arc::clone(self);
        let working = self.door.services.in_flight.begin();
        let frame = given.frame.clone();
        self.to_client.push(Parcel::of(frame).then(move |fate| {
            if fate == Fate::Written {
                let _within = this.runtime.enter();
                given.delivery.into_iter().for_each(Delivery::mark);
                given.telling.into_iter().for_each(Telling::has_left);
            }
            drop(working);
        }));
    }

    fn from_server(self: &Arc<Self>, message: Message) {
        let body = message.body.clone().unwrap_or_default();
        match &message.kind {
            Kind::Response { id: Some(id), failed } => {
                // Else it is a second answer, or one to a question that nobody has asked.
                let Some(watched) = self.lock().answered(id) else { return };
                if let (Watched::Hello { method, params }, true) = (&watched, *failed)
                    && method == "initialize"
                    && !self.door.services.observes()
                {
                    let params = params.clone();
                    return self.not_initialized(id.clone(), params, message);
                }
                let answer = if *failed { Err(text(&body)) } else { Ok(text(&body)) };
                let Inspection { result, telling } = watched.answered(&self.door, &self.server, answer);
                let edited = result.and_then(|result| message.edited(None, Some(Frame::from(result))));
                let frame = edited.unwrap_or_else(|| Frame::from(message.bytes));
                return match telling {
                    Some(telling) => self.give(Given { telling: Some(telling), ..Given::plain(frame) }),
                    None => self.send(frame),
                };
            }
            Kind::Response { id: None, failed: false } => return,
            Kind::Notification { method } if method == "notifications/tools/list_changed" => {
                self.server.tools_changed();
            }
            Kind::Notification { method } if method == "notifications/progress" => {
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

    /// The server refused to be initialised: if it is of the other era, the client is told in plain words.
    fn not_initialized(self: &Arc<Self>, id: Id, params: Bytes, refused: Message) {
        let this = Arc::clone(self);
        let working = self.door.services.in_flight.begin();
        self.run(async move {
            let _working = working;
            let params = Members::parse(text(&params)).unwrap_or_default();
            let asked = params.text("protocolVersion").unwrap_or_default();
            let meta = format!(r#"{{"_meta":{}}}"#, era::own_meta(era::STATELESS));
            if let Ok(answer) = this.server.ask("server/discover", &meta).await
                && let Kind::Response { failed: false, .. } = answer.kind
            {
                era::hear(&this.server, "server/discover", answer.body.as_ref().map_or("null", text));
            }
            match this.server.spoken().era {
                Some(Era::Stateless(supported)) => this.send(era::stateless_only(&id, &supported, &asked)),
                _ => this.send(Frame::from(refused.bytes)),
            }
        });
    }
}

/// Hears the client.
#[derive(Debug)]
pub struct FromClient {
    pub stdio: Arc<Stdio>,
    /// Dropped when the client's messages have ended.
    pub ended: tokio::sync::oneshot::Sender<()>,
}

impl Hearer for FromClient {
    fn line(&mut self, line: Line) {
        let stdio = &self.stdio;
        match line {
            Line::Text(bytes) => match Message::parse(bytes) {
                Ok(message) => stdio.from_client(message),
                Err(problem) => stdio.send(problem.complaint()),
            },
            Line::TooLong(_) => stdio.complain(-32600, "the message is too large; it was not read"),
            Line::Cut(_) => stdio.complain(-32700, "the message breaks off"),
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
pub struct FromServer {
    pub stdio: Arc<Stdio>,
    /// Dropped when the server's output has ended.
    pub ended: tokio::sync::oneshot::Sender<()>,
}

impl Listener for FromServer {
    fn message(&mut self, message: Message) -> Option<Outbox> {
        self.stdio.from_server(message);
        Some(self.stdio.to_client.clone())
    }

    fn stray(&mut self, line: &str) -> Option<Outbox> {
        let line = line.trim_end();
        let shown = &line[..line.floor_char_boundary(STRAY_BYTES_MAX)];
        let words = match line.len() - shown.len() {
            0 => shown.to_owned(),
            more => format!("{shown}… ({more} bytes more)"),
        };
        let log = self.stdio.log()?;
        log.push(Parcel::of(Frame::from(words)));
        Some(log)
    }

    fn answered_twice(&mut self, id: &Id) {
        self.stdio.journal_breach(id);
    }

    fn began_anew(&mut self, hello: &str) {
        let server = &self.stdio.server;
        era::hear(server, "initialize", hello);
        server.tools_changed();
    }
}
