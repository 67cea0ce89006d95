//! Why a client has no response.

use std::error::Error;
use std::io;

/// Semel could not build a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
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
    /// This machine does not trust its certificate.
    pub is_untrusted: bool,
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

/// Whether the peer's certificate was refused. An I/O error passes over its own cause when it is asked for a source.
pub fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    let cause = match error.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref().map(|cause| cause as &(dyn Error + 'static)),
        None => error.source(),
    };
    cause.is_some_and(is_untrusted)
}
