//! An HTTP client that always knows what it has sent.
//!
//! Getting a connection and sending on it are two steps: the first may fail without leaving a doubt, and of the second
//! it is known whether a byte of the request was written. Nothing of which one was is ever sent again, and no redirect is
//! followed.

mod body;
mod connect;
mod connection;
mod counted;
mod error;
mod http2_tasks;
mod monitor;
mod payload;
mod pool;
mod resolver;

pub use body::Incoming;
pub use error::{ClientError, Failed, NotReached};
pub use monitor::LastMoment;
pub use payload::Payload;

use crate::http::describe;
use crate::http::target::Target;
use body::BodyFraming;
use connect::Connector;
use connection::{Connection, Unanswered};
use error::is_untrusted;
use http::{Request, Response};
use pool::Pool;
use resolver::{Names, SystemNames};
use rustls::RootCertStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tower_service::Service;

/// Resolving, connecting and TLS together.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// One upstream, for one principal: connections that were used are never shared between two.
#[derive(Debug, Clone)]
pub struct Client {
    target: Arc<Target>,
    connector: Connector,
    pool: Pool,
    principal: Arc<str>,
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

    /// Whether it has carried another request.
    pub fn is_used(&self) -> bool {
        self.connection.is_used()
    }

    /// Itself, if it may still be sent on. One that waited for long may meet the server's closing it.
    pub fn fresh(mut self) -> Option<Prepared> {
        (self.since.elapsed() < pool::IDLE_TIME_MAX && self.connection.is_ready()).then_some(self)
    }
}

impl Client {
    /// For semel itself.
    pub fn to(target: Target) -> Result<Client, ClientError> {
        Client::by(target, Arc::new(SystemNames))
    }

    /// A server for which these roots alone vouch.
    pub fn trusting_only(target: Target, roots: RootCertStore) -> Result<Client, ClientError> {
        Client::trusting(target, Arc::new(SystemNames), roots)
    }

    /// Found by these names.
    fn by(target: Target, names: Arc<dyn Names>) -> Result<Client, ClientError> {
        let roots = connect::roots(&target)?;
        Client::trusting(target, names, roots)
    }

    /// Known by certificates that these roots vouch for.
    fn trusting(target: Target, names: Arc<dyn Names>, roots: RootCertStore) -> Result<Client, ClientError> {
        let connector = connect::connector(&target, names, roots, CONNECT_TIME)?;
        Ok(Client { target: Arc::new(target), connector, pool: Pool::default(), principal: "".into() })
    }

    /// The same upstream for another principal.
    pub fn for_principal(&self, principal: &str) -> Client {
        Client { principal: principal.into(), ..self.clone() }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A connection for a request that must not be confused with another: one that has carried nothing, or one on which
    /// responses cannot be confused (HTTP/2).
    pub async fn prepare(&self) -> Result<Prepared, NotReached> {
        let prepared = match self.pool.take(&self.principal, false) {
            Some(connection) => Prepared::now(connection),
            None => self.connect().await?,
        };
        self.warm(&prepared);
        Ok(prepared)
    }

    /// A connection for a request that changes nothing: perhaps one that was just used by the same principal.
    pub async fn prepare_read(&self) -> Result<Prepared, NotReached> {
        match self.pool.take(&self.principal, true) {
            Some(connection) => Ok(Prepared::now(connection)),
            None => self.connect().await,
        }
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<Prepared, NotReached> {
        let connecting = async {
            let stream = self.connector.clone().call(self.target.uri().clone()).await;
            let stream = stream.map_err(|error| (describe(error.as_ref()), is_untrusted(error.as_ref())))?;
            Connection::open(stream).await.map_err(|error| (describe(&error), false))
        };
        let connection = match tokio::time::timeout(CONNECT_TIME, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err((format!("not connected within {} seconds", CONNECT_TIME.as_secs()), false)),
        };
        connection.map(Prepared::now).map_err(|(why, is_untrusted)| NotReached {
            target: self.target.to_string(),
            why,
            is_untrusted,
        })
    }

    /// Opens a connection ahead where the next call would wait for a handshake. Without TLS it would wait for one round
    /// trip, and servers that serve one connection at a time would be kept by it.
    fn warm(&self, prepared: &Prepared) {
        if self.target.is_tls() && !prepared.connection.is_http2() && self.pool.begin_warming() {
            let client = self.clone();
            tokio::spawn(async move {
                let opened = client.connect().await.ok();
                client.pool.warmed(opened.map(|prepared| prepared.connection));
            });
        }
    }

    /// Takes back a connection on which nothing was sent.
    pub fn keep(&self, prepared: Prepared) {
        if let Some(Prepared { connection, .. }) = prepared.fresh() {
            match connection.is_used() {
                true => self.pool.put(connection, Arc::clone(&self.principal)),
                false => self.pool.put_spare(connection),
            }
        }
    }

    /// Sends on a prepared connection. The reader of the response's body drives the connection.
    pub async fn send(
        &self,
        prepared: Prepared,
        request: Request<impl Into<Payload>>,
    ) -> Result<Response<Incoming>, Failed> {
        self.send_before(None, prepared, request).await
    }

    /// The same, if its first byte leaves before a last moment. A request that was proven not to have left is sent once
    /// more, on a new connection: servers close connections whenever they like.
    pub async fn send_before(
        &self,
        last_moment: Option<LastMoment>,
        prepared: Prepared,
        request: Request<impl Into<Payload>>,
    ) -> Result<Response<Incoming>, Failed> {
        let request = request.map(Into::into);
        let again = try_clone(&request);
        let unanswered = match self.try_send(last_moment.clone(), prepared, request).await {
            Ok(response) => return Ok(response),
            Err(unanswered) => unanswered,
        };
        match (unanswered, again) {
            // Boxed, since it seldom happens and would have its room in every request.
            (Unanswered::NeverSent(_), Some(request)) => Box::pin(self.send_anew(last_moment, request)).await,
            (unanswered, _) => Err(unanswered.into()),
        }
    }

    async fn send_anew(
        &self,
        last_moment: Option<LastMoment>,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, Failed> {
        let prepared = self.connect().await.map_err(|error| Failed::NeverSent(error.to_string()))?;
        Ok(self.try_send(last_moment, prepared, request).await?)
    }

    /// Once.
    async fn try_send(
        &self,
        last_moment: Option<LastMoment>,
        prepared: Prepared,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let Prepared { mut connection, .. } = prepared;
        let method = request.method().clone();
        let response = connection.send(self.target.uri(), request, last_moment).await?;
        let (head, body) = response.into_parts();
        let framing = BodyFraming::of(&head, &method);
        let return_to = (self.pool.clone(), Arc::clone(&self.principal));
        Ok(Response::from_parts(head, Incoming::new(body, framing, connection, return_to)))
    }
}

/// The same request, if its body is at hand.
fn try_clone(request: &Request<Payload>) -> Option<Request<Payload>> {
    let mut clone = Request::new(request.body().try_clone()?);
    *clone.method_mut() = request.method().clone();
    *clone.uri_mut() = request.uri().clone();
    *clone.headers_mut() = request.headers().clone();
    Some(clone)
}

#[cfg(test)]
mod tests;
