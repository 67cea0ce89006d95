//! Ways to a real server.

pub mod child;
pub mod remote;
pub mod request;

use super::message::Message;
use child::ChildLink;
use remote::RemoteLink;
use request::{Exchange, LinkRequest};

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

    /// What was made ready is not needed.
    pub fn give_back(&self) {
        match self {
            Link::Child(_) => {}
            Link::Remote(remote) => remote.give_back(),
        }
    }

    /// Whether the process behind it has ended. It is not started again.
    pub fn has_ended(&self) -> bool {
        match self {
            Link::Child(child) => child.has_ended(),
            Link::Remote(_) => false,
        }
    }

    /// Passes a message on as it came. `is_read`: a call that is known to change nothing.
    pub fn pass(&self, message: Message, is_read: bool) {
        match self {
            Link::Child(child) => child.pass(message.bytes),
            Link::Remote(remote) => remote.pass(message, is_read),
        }
    }

    /// Whether a client's messages may be passed on; too many wait otherwise.
    pub fn has_room(&self) -> bool {
        match self {
            Link::Child(child) => child.has_room(),
            Link::Remote(remote) => remote.has_room(),
        }
    }

    pub async fn exchange(&self, request: LinkRequest) -> Exchange {
        match self {
            Link::Child(child) => child.exchange(request).await,
            Link::Remote(remote) => remote.exchange(request).await,
        }
    }
}
