//! Why a client has no response.

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
