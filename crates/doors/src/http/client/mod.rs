//! An HTTP client that always knows what it has sent.
//!
//! Getting a connection and sending on it are two steps: the first may fail without leaving a doubt, and of the second
//! it is known whether a byte of the request was written. Nothing of which one was is ever sent again, and no redirect is
//! followed.

mod body;
mod connect;
mod connection;
mod counted;
mod idle;
mod io;
mod payload;
mod unsent;

pub use body::Incoming;
pub use payload::Payload;
pub use unsent::Unsent;

use super::target::Target;
use connect::{Connector, Names, OfThisMachine};
use connection::Connection;
use http::Response;
use idle::Idle;
use rustls::RootCertStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tower_service::Service;

/// Resolving, connecting and TLS together.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Semel could not build a client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    #[error("this machine has no root certificates ({0}); install ca-certificates or set SSL_CERT_FILE")]
    NoRoots(String),
}

/// No connection: certainly nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot reach {target}: {why}")]
pub struct NotReached {
    pub target: String,
    pub why: String,
}

/// A request that got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Not one byte of it was written.
    #[error("nothing was sent: {0}")]
    NeverSent(String),
    /// Some of it may have arrived.
    #[error("no response came: {0}")]
    Lost(String),
}

/// The same, with what can be sent again without a doubt.
#[derive(Debug)]
enum Unanswered {
    NeverSent(Box<Unsent>, String),
    Lost(String),
}

/// One upstream.
#[derive(Debug, Clone)]
pub struct Client {
    target: Arc<Target>,
    connector: Connector,
    idle: Idle,
}

/// A connection on which nothing of this request has been sent yet.
#[derive(Debug)]
pub struct Prepared {
    connection: Connection,
    since: Instant,
}

impl Prepared {
    fn now(connection: Connection) -> Prepared {
        Prepared { connection, since: crate::runtime::moment() }
    }

    /// Itself, if it may still be sent on. One that waited for long may meet the server's closing it.
    pub fn fresh(mut self) -> Option<Prepared> {
        (self.since.elapsed() < idle::IDLE_TIME_MAX && self.connection.is_ready()).then_some(self)
    }
}

impl Client {
    pub fn to(target: Target) -> Result<Client, Error> {
        Client::by(target, Arc::new(OfThisMachine))
    }

    /// Found by these names.
    fn by(target: Target, names: Arc<dyn Names>) -> Result<Client, Error> {
        let roots = connect::roots(&target)?;
        Client::trusting(target, names, roots)
    }

    /// Known by certificates that these roots vouch for.
    fn trusting(target: Target, names: Arc<dyn Names>, roots: RootCertStore) -> Result<Client, Error> {
        let connector = connect::connector(&target, names, roots, CONNECT_TIME)?;
        Ok(Client { target: Arc::new(target), connector, idle: Idle::default() })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A connection that is open now: one that was just used, or a new one.
    pub async fn prepare(&self) -> Result<Prepared, NotReached> {
        match self.idle.take() {
            Some(connection) => Ok(Prepared::now(connection)),
            None => self.connect().await,
        }
    }

    /// Whether there is a connection without a wait: the one at hand, while it is fresh, or one that was just used.
    pub fn is_at_hand(&self, prepared: &mut Option<Prepared>) -> bool {
        let kept = prepared.take().and_then(Prepared::fresh);
        *prepared = kept.or_else(|| self.idle.take().map(Prepared::now));
        prepared.is_some()
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<Prepared, NotReached> {
        let connecting = async {
            let stream = self.connector.clone().call(self.target.uri().clone()).await;
            let stream = stream.map_err(|error| plain(error.as_ref()))?;
            Ok(Connection::new(stream.into()))
        };
        let connection = match tokio::time::timeout(CONNECT_TIME, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("not connected within {} seconds", CONNECT_TIME.as_secs())),
        };
        connection.map(Prepared::now).map_err(|why| NotReached { target: self.target.to_string(), why })
    }

    /// Takes back a connection on which nothing was sent.
    pub fn keep(&self, prepared: Prepared) {
        if let Some(prepared) = prepared.fresh() {
            self.idle.put(prepared.connection);
        }
    }

    /// Sends on a prepared connection. The response's body is read by whoever gets it.
    pub fn send(
        &self,
        prepared: Prepared,
        request: impl Into<Unsent>,
    ) -> impl Future<Output = Result<Response<Incoming>, Failed>> {
        self.send_while(|| true, prepared, request.into())
    }

    /// The same, as long as there is time. What did not leave on a connection that its peer had closed leaves on a new
    /// one: servers close idle connections whenever they like.
    pub async fn send_while(
        &self,
        in_time: impl Fn() -> bool,
        prepared: Prepared,
        request: Unsent,
    ) -> Result<Response<Incoming>, Failed> {
        if !in_time() {
            return Err(too_late());
        }
        match self.try_send(prepared, request).await {
            Ok(response) => Ok(response),
            Err(Unanswered::Lost(why)) => Err(Failed::Lost(why)),
            // Boxed, since it seldom happens and would have its room in every request.
            Err(Unanswered::NeverSent(request, _)) => Box::pin(self.send_anew(in_time, *request)).await,
        }
    }

    async fn send_anew(
        &self,
        in_time: impl Fn() -> bool,
        request: Unsent,
    ) -> Result<Response<Incoming>, Failed> {
        let prepared = self.connect().await.map_err(|error| Failed::NeverSent(error.to_string()))?;
        if !in_time() {
            return Err(too_late());
        }
        self.try_send(prepared, request).await.map_err(|unanswered| match unanswered {
            Unanswered::NeverSent(_, why) => Failed::NeverSent(why),
            Unanswered::Lost(why) => Failed::Lost(why),
        })
    }

    /// Once, with the request back if none of it was written.
    async fn try_send(&self, prepared: Prepared, request: Unsent) -> Result<Response<Incoming>, Unanswered> {
        let Prepared { mut connection, .. } = prepared;
        let parts = connection.send(request).await?;
        Ok(Response::from_parts(parts, Incoming::new(connection, self.idle.clone())))
    }
}

fn too_late() -> Failed {
    Failed::NeverSent("the last moment for sending has passed".into())
}

/// An error with its causes, in one line.
fn plain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests;
