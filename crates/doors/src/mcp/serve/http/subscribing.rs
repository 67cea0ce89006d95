//! How clients subscribe to resources of a server on pipes, and stop to.

use super::child::{Child, name_of};
use super::resumable::Owner;
use super::subscriptions::Added;
use crate::mcp::frame::Frame;
use crate::mcp::link::Exchanged;
use crate::mcp::members::{Members, quoted};
use crate::mcp::message::{Id, Kind, Message};
use bytes::Bytes;
use std::task::Poll;

impl Child {
    /// Passes a change of a client's subscriptions on, where the server has to know of it. `Err`: it has not, and this
    /// is the answer.
    pub(super) async fn subscribe(
        &self,
        change: Change,
        owner: &Owner,
        exchange: impl Future<Output = Exchanged>,
    ) -> Result<Exchanged, fn(&Id) -> Frame> {
        let mut exchange = std::pin::pin!(exchange);
        let client = name_of(owner);
        // Changes reach the server in the order in which they are noted: the first step of the exchange sends it.
        let begun = std::future::poll_fn(|context| {
            let mut subscriptions = self.relay.subscriptions();
            let passes = match &change {
                // Its answers would come to nobody, and nobody would end it.
                Change::Subscribe(_) if !self.sessions.has(owner) => Err(gone as fn(&Id) -> Frame),
                Change::Subscribe(uri) => subscriptions.add(&client, uri).map_err(|_| too_many as _),
                Change::Unsubscribe(uri) => match subscriptions.remove(&client, uri) {
                    true => Ok(Added::Nothing),
                    false => Err(done as _),
                },
            };
            Poll::Ready(passes.map(|added| (added, exchange.as_mut().poll(context))))
        });
        let (added, begun) = begun.await?;
        let exchanged = match begun {
            Poll::Ready(exchanged) => exchanged,
            Poll::Pending => exchange.await,
        };
        let taken = matches!(&exchanged, Exchanged::Reply(answer)
            if matches!(answer.kind, Kind::Response { failed: false, .. }));
        if let (Change::Subscribe(uri), Added::Subscription, false) = (&change, added, taken) {
            self.relay.subscriptions().remove(&client, uri);
        }
        Ok(exchanged)
    }

    /// A client has gone, and the server need not speak of what nobody else wants to hear of.
    pub(super) fn forget_subscriptions(&self, owner: &Owner) {
        let mut subscriptions = self.relay.subscriptions();
        for uri in subscriptions.left(&name_of(owner)) {
            let (id, uri) = (self.server.next_id(), quoted(&uri));
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/unsubscribe","params":{{"uri":{uri}}}}}"#
            );
            if let Ok(message) = Message::parse(Bytes::from(text)) {
                self.server.link.pass(message);
            }
        }
    }
}

/// What a client does about a resource.
#[derive(Debug)]
pub enum Change {
    Subscribe(String),
    Unsubscribe(String),
}

impl Change {
    pub fn read(method: &str, params: &str) -> Option<Change> {
        let change = match method {
            "resources/subscribe" => Change::Subscribe,
            "resources/unsubscribe" => Change::Unsubscribe,
            _ => return None,
        };
        Some(change(Members::parse(params)?.text("uri")?.into_owned()))
    }
}

fn done(id: &Id) -> Frame {
    Frame::result(id, Frame::from("{}".to_owned()))
}

fn gone(id: &Id) -> Frame {
    Frame::refusal(id, -32603, "the session has ended; nothing was sent", None)
}

fn too_many(id: &Id) -> Frame {
    Frame::refusal(id, -32603, "too many subscriptions at once; nothing was sent", None)
}
