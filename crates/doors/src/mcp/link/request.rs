//! A request to a server, its answer, and the listener of all that answers no request.

use crate::mcp::frame::Frame;
use crate::mcp::frame_writer::FrameWriter;
use crate::mcp::id::Id;
use crate::mcp::message::Message;
use crate::runtime::RuntimeClock;
use semel_core::time::At;
use semel_gate::look::Progress;

/// A request on its way to a server.
#[derive(Debug)]
pub struct LinkRequest {
    /// Of semel's own making, so that no two callers and no two attempts can be mixed up.
    pub id: Id,
    pub frame: Frame,
    /// After this instant it must not be sent any more.
    pub last_moment: Option<At>,
    /// It changes nothing, so that it may be sent once more in a new session.
    pub is_read: bool,
    /// Where news of it are noted.
    pub news: Option<RequestNews>,
}

/// News of a request that is under way.
#[derive(Debug, Clone)]
pub struct RequestNews {
    /// The progress token that its caller has put into it.
    pub token: Option<String>,
    pub progress: Progress,
    pub clock: RuntimeClock,
}

impl RequestNews {
    pub fn note(&self) {
        self.progress.note(&self.clock);
    }
}

/// Tells of progress with a request.
pub const PROGRESS: &str = "notifications/progress";

/// The result of sending a request.
#[derive(Debug)]
pub enum Exchange {
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

impl Exchange {
    /// The reply, or why there is none.
    pub fn into_reply(self) -> Result<Message, String> {
        match self {
            Exchange::Reply(message) => Ok(message),
            Exchange::Refused(why)
            | Exchange::Unclear(why)
            | Exchange::NeverSent(why)
            | Exchange::Lost(why) => Err(why),
        }
    }
}

/// Takes a server's messages that answer no request of semel's own. Dropped when nothing more will come.
///
/// Both say where it went on from here, if it may have to wait there: as long as that has no room, the server is not
/// listened to.
pub trait Listener: Send + 'static {
    fn message(&mut self, message: Message) -> Option<FrameWriter>;

    /// A line that is no message.
    fn stray(&mut self, line: &str) -> Option<FrameWriter>;

    /// The server has answered one request twice. The first answer counts.
    fn answered_twice(&mut self, _id: &Id) {}

    /// The server had forgotten the session, and a new one was begun: it may be another server by now. `hello` is what
    /// it says of itself.
    fn began_anew(&mut self, _hello: &str) {}
}
