//! From an address to a connection on which nothing has been sent yet.

use super::counted::{CountedConnector, CountedSocket};
use super::error::ClientError;
use super::monitor::SendMonitor;
use super::resolver::{CheckedResolver, Names};
use crate::http::target::Target;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// A peer that vanished is noticed within minutes, even on a stream on which nothing is said for hours.
const KEEPALIVE: Duration = Duration::from_secs(60);

pub type Connector = HttpsConnector<CountedConnector>;

pub type ClientStream = MaybeHttpsStream<CountedSocket>;

/// The facts that a connection needs to know of its stream.
#[derive(Debug)]
pub struct StreamNature {
    pub monitor: Arc<SendMonitor>,
    pub is_tls: bool,
    /// Both sides have agreed on HTTP/2.
    pub is_http2: bool,
}

pub fn nature(stream: &ClientStream) -> StreamNature {
    match stream {
        MaybeHttpsStream::Http(plain) => {
            StreamNature { monitor: Arc::clone(plain.monitor()), is_tls: false, is_http2: false }
        }
        MaybeHttpsStream::Https(tls) => {
            let (below, session) = tls.inner().get_ref();
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            StreamNature { monitor: Arc::clone(below.inner().monitor()), is_tls: true, is_http2 }
        }
    }
}

pub fn connector(
    target: &Target,
    names: Arc<dyn Names>,
    roots: RootCertStore,
    timeout: Duration,
) -> Result<Connector, ClientError> {
    let target_too = Arc::new(target.clone());
    let mut http = HttpConnector::new_with_resolver(CheckedResolver { target: target_too, names });
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_connect_timeout(Some(timeout));
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls(roots)?).https_or_http().enable_all_versions();
    Ok(connector.wrap_connector(CountedConnector(http)))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Tls(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The machine's own roots (`SSL_CERT_FILE` names others): a company's roots count, and a root that the machine no
/// longer trusts does not live on in this program. They are read only where TLS is spoken.
pub fn roots(target: &Target) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    if target.is_tls() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
            return Err(ClientError::NoRoots(why));
        }
    }
    Ok(roots)
}
