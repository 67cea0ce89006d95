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

    pub async fn exchange(&self, request: LinkRequest) -> Exchange {
        match self {
            Link::Child(child) => child.exchange(request).await,
            Link::Remote(remote) => remote.exchange(request).await,
        }
    }

    /// A request that changes nothing.
    pub async fn ask(&self, request: LinkRequest) -> Exchange {
        match self {
            Link::Child(child) => child.exchange(request).await,
            Link::Remote(remote) => remote.ask(request).await,
        }
    }
}
