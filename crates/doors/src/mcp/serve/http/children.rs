//! One server on standard input and output, spoken to in both eras of the protocol.

use super::allowances::Allowances;
use super::child::ChildServer;
use super::message_reader::MessageReader;
use super::request::ClientRequest;
use crate::mcp::link::Link;
use crate::mcp::message::{Message, text};
use crate::mcp::version;
use axum::body::Body;
use axum::response::Response;
use http::Method;
use std::sync::Arc;

/// A process for each era: a server of both settles on one with the first message of a pipe.
#[derive(Debug)]
pub struct Children {
    session: Arc<ChildServer>,
    stateless: Arc<ChildServer>,
    messages: MessageReader,
    allowances: Allowances,
}

impl Children {
    pub fn new(session: Arc<ChildServer>, stateless: Arc<ChildServer>) -> Children {
        Children { session, stateless, messages: MessageReader::default(), allowances: Allowances::default() }
    }

    /// Introduces semel to both, and ends the one that does not speak its era. `Err`: neither does.
    pub async fn greet(&self) -> Result<(), String> {
        let greeted = tokio::join!(self.session.greet(), self.stateless.greet());
        for (child, greeted) in [(&self.session, &greeted.0), (&self.stateless, &greeted.1)] {
            if let (Link::Child(link), Err(_)) = (&child.server().link, greeted) {
                link.close();
            }
        }
        greeted.0.or(greeted.1)
    }

    /// How the one of them that clients speak to ended, if it did so by itself. It is not started again: its
    /// last requests are not to be repeated.
    pub async fn end(&self) -> String {
        let end = async |child: &ChildServer| match (&child.server().link, child.greet().await) {
            (Link::Child(link), Ok(())) => match link.exit().await {
                Some(status) if !link.is_closed() => status.to_string(),
                _ => std::future::pending().await,
            },
            _ => std::future::pending().await,
        };
        tokio::select! {
            status = end(&self.session) => status,
            status = end(&self.stateless) => status,
        }
    }

    pub async fn answer(&self, request: ClientRequest, body: Body) -> Response {
        let message = match request.method == Method::POST {
            false => None,
            true => match self.messages.read(&request.owner.principal, &request.headers, body).await {
                Ok(message) => Some(message),
                Err(refused) => return *refused,
            },
        };
        let (wanted, other) = match message.as_ref().is_some_and(is_stateless) {
            true => (&self.stateless, &self.session),
            false => (&self.session, &self.stateless),
        };
        // A server of one era tells clients of the other one what it speaks.
        let child = match wanted.greet().await.is_err() && other.greet().await.is_ok() {
            true => other,
            false => wanted,
        };
        // A session and its limits begin together.
        let limits = match message.as_ref().and_then(Message::method) == Some("initialize") {
            true => self.allowances.of_session(&request.limits_of),
            false => self.allowances.of(&request.limits_of),
        };
        child.answer(request, limits, message).await
    }
}

fn is_stateless(message: &Message) -> bool {
    let params = message.params.as_ref().map_or("{}", text);
    message.method() == Some("server/discover") || version::version_of(params).is_some()
}
