//! Ways to a real server.

pub mod child;
pub mod remote;

use super::frame::Frame;
use super::message::{Id, Message};
use super::outbox::Outbox;
use child::ChildLink;
use remote::RemoteLink;
use semel_core::time::At;

/// A request on its way to a server.
#[derive(Debug)]
pub struct Outgoing {
    /// Of semel's own making, so that no two callers and no two attempts can be mixed up.
    pub id: Id,
    pub frame: Frame,
    /// After this instant it must not be sent any more.
    pub last_moment: Option<At>,
}

/// The result of sending a request.
#[derive(Debug)]
pub enum Exchanged {
    Reply(Message),
    /// It was turned away before the server looked at it: no credential, no such session.
    Refused(String),
    /// It was answered with an error that does not say whether it happened: a session that is gone, perhaps since.
    Unclear(String),
    /// Proof: not one byte of it left.
    NeverSent(String),
    /// It left, and there will be no answer.
    Lost(String),
}

/// Takes a server's messages that answer no request of semel's own. Dropped when nothing more will come.
///
/// Both say where it went on from here, if it may have to wait there: as long as that has no room, the server is not
/// listened to.
pub trait Listener: Send + 'static {
    fn message(&mut self, message: Message) -> Option<Outbox>;

    /// A line that is no message.
    fn stray(&mut self, line: &str) -> Option<Outbox>;

    /// The server has answered one request twice. The first answer counts.
    fn answered_twice(&mut self, _id: &Id) {}

    /// The server had forgotten the session, and a new one was begun: it may be another server by now. `hello` is what
    /// it says of itself.
    fn began_anew(&mut self, _hello: &str) {}
}

/// The closed set of ways. All of them send a request once, and never again, but for reads of a session that is gone.
#[derive(Debug)]
pub enum Link {
    Child(ChildLink),
    Remote(RemoteLink),
}

impl Link {
    /// All that can fail without leaving a doubt.
    pub async fn ready(&self) -> Result<(), String> {
        match self {
            Link::Child(child) => child.ready(),
            Link::Remote(remote) => remote.ready().await,
        }
    }

    /// Whether the process behind it has ended. It is not started again.
    pub fn has_ended(&self) -> bool {
        match self {
            Link::Child(child) => child.has_ended(),
            Link::Remote(_) => false,
        }
    }

    /// Passes a message on as it came.
    pub fn pass(&self, message: Message) {
        match self {
            Link::Child(child) => child.pass(message.bytes),
            Link::Remote(remote) => remote.pass(message),
        }
    }

    /// The same for a call that is known to change nothing.
    pub fn pass_read(&self, message: Message) {
        match self {
            Link::Child(child) => child.pass(message.bytes),
            Link::Remote(remote) => remote.pass_read(message),
        }
    }

    /// Whether a client's messages may be passed on; too many wait otherwise.
    pub fn has_room(&self) -> bool {
        match self {
            Link::Child(child) => child.has_room(),
            Link::Remote(remote) => remote.has_room(),
        }
    }

    pub async fn exchange(&self, request: Outgoing) -> Exchanged {
        match self {
            Link::Child(child) => child.exchange(request).await,
            Link::Remote(remote) => remote.exchange(request).await,
        }
    }

    /// A request that changes nothing.
    pub async fn ask(&self, request: Outgoing) -> Exchanged {
        match self {
            Link::Child(child) => child.exchange(request).await,
            Link::Remote(remote) => remote.ask(request).await,
        }
    }
}
