//! From an address to a connection on which nothing has been sent yet.

use super::Error;
use super::counted::{Counted, Counting};
use super::monitor::SendMonitor;
use crate::http::target::Target;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// A peer that vanished is noticed within minutes, even on a stream on which nothing is said for hours.
const KEEPALIVE: Duration = Duration::from_secs(60);

pub type Connector = HttpsConnector<Counting>;

pub type Stream = MaybeHttpsStream<Counted>;

/// The facts that a connection needs to know of its stream.
#[derive(Debug)]
pub struct Nature {
    pub monitor: Arc<SendMonitor>,
    pub is_tls: bool,
    /// Both sides have agreed on HTTP/2.
    pub is_http2: bool,
}

pub fn nature(stream: &Stream) -> Nature {
    match stream {
        MaybeHttpsStream::Http(plain) => {
            Nature { monitor: Arc::clone(plain.monitor()), is_tls: false, is_http2: false }
        }
        MaybeHttpsStream::Https(tls) => {
            let (below, session) = tls.inner().get_ref();
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            Nature { monitor: Arc::clone(below.inner().monitor()), is_tls: true, is_http2 }
        }
    }
}

pub fn connector(
    target: &Target,
    names: Arc<dyn Names>,
    roots: RootCertStore,
    timeout: Duration,
) -> Result<Connector, Error> {
    let target_too = Arc::new(target.clone());
    let mut http = HttpConnector::new_with_resolver(CheckedResolver { target: target_too, names });
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_connect_timeout(Some(timeout));
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls(roots)?).https_or_http().enable_all_versions();
    Ok(connector.wrap_connector(Counting(http)))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The machine's own roots (`SSL_CERT_FILE` names others): a company's roots count, and a root that the machine no
/// longer trusts does not live on in this program. They are read only where TLS is spoken.
pub fn roots(target: &Target) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    if target.is_tls() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
            return Err(Error::NoRoots(why));
        }
    }
    Ok(roots)
}

/// Says where names lead.
pub trait Names: Send + Sync + fmt::Debug {
    fn look_up(&self, name: Name) -> LookingUp;
}

pub type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// As this machine resolves them.
#[derive(Debug)]
pub struct OfThisMachine;

impl Names for OfThisMachine {
    fn look_up(&self, name: Name) -> LookingUp {
        let resolving = GaiResolver::new().call(name);
        Box::pin(async move { Ok(resolving.await?.collect()) })
    }
}

/// Resolves names, and lets through only addresses to which the target may lead. A connection is made to what was
/// checked; for the next one the name is asked anew, and checked anew.
#[derive(Debug, Clone)]
pub struct CheckedResolver {
    target: Arc<Target>,
    names: Arc<dyn Names>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let target = self.target.clone();
        let resolving = self.names.look_up(name);
        Box::pin(async move {
            let mut allowed = Vec::new();
            let mut refused = None;
            for address in resolving.await? {
                match target.allows(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_string()))
                }
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}
