//! The server's end of TLS. Its files may change while it serves: new connections get the new certificate.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use semel_core::policy::servers::TlsFiles;
use sha2::{Digest, Sha256};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client answers a handshake at once, or it is not a client. It holds a connection's place meanwhile.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// A longer one is some other file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct ServerTls {
    files: TlsFiles,
    current: RwLock<TlsSettings>,
}

#[derive(Debug)]
struct TlsSettings {
    config: Arc<ServerConfig>,
    /// Of the files' bytes. Times and sizes of files do not tell all changes.
    digest: [u8; 32],
}

#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: io::Error },
    #[error("{} is no file of a certificate or key", path.display())]
    NoFile { path: PathBuf },
    #[error("other users can read the key {} (mode {mode:o})", path.display())]
    OpenKey { path: PathBuf, mode: u32 },
    #[error("{} has no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} has no private key in PEM form", path.display())]
    NoKey { path: PathBuf },
    #[error("the key {} does not belong to the certificate {}", files.key.display(), files.certificate.display())]
    Mismatch { files: TlsFiles },
    #[error("{} and {} cannot be used: {why}", files.certificate.display(), files.key.display())]
    Unusable { files: TlsFiles, why: rustls::Error },
}

impl TlsFileError {
    /// The hint for the operator.
    pub fn help(&self) -> String {
        match self {
            TlsFileError::Unreadable { .. } | TlsFileError::NoFile { .. } => {
                "tls = { certificate = \"…\", key = \"…\" } under [serve] names two files that semel may read"
                    .into()
            }
            TlsFileError::OpenKey { path, .. } => format!("chmod o= {}", path.display()),
            TlsFileError::NoCertificate { .. } => "it has a part -----BEGIN CERTIFICATE-----".into(),
            TlsFileError::NoKey { .. } => {
                "it has a part -----BEGIN PRIVATE KEY-----; an encrypted key cannot be used".into()
            }
            TlsFileError::Mismatch { .. } => {
                "the server's own certificate comes first in its file, and both files are of one renewal"
                    .into()
            }
            TlsFileError::Unusable { .. } => {
                "RSA from 2048 bits, ECDSA P-256 and P-384, and Ed25519 can be".into()
            }
        }
    }
}

impl ServerTls {
    pub fn read(files: TlsFiles) -> Result<ServerTls, TlsFileError> {
        let current = RwLock::new(TlsSettings::of(&files, &FileBytes::read(&files)?)?);
        Ok(ServerTls { files, current })
    }

    /// Whether the files have changed. Files that cannot be used change nothing.
    pub fn read_again(&self) -> Result<bool, TlsFileError> {
        let bytes = FileBytes::read(&self.files)?;
        if bytes.digest() == self.current.read().unwrap_or_else(PoisonError::into_inner).digest {
            return Ok(false);
        }
        let new = TlsSettings::of(&self.files, &bytes)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(true)
    }

    /// `None`: there is nobody who speaks TLS.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).config);
        let accepting = TlsAcceptor::from(config).accept(stream);
        tokio::time::timeout(HANDSHAKE_TIME_MAX, accepting).await.ok()?.ok()
    }
}

struct FileBytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl FileBytes {
    fn read(files: &TlsFiles) -> Result<FileBytes, TlsFileError> {
        let (certificate, _) = read_file(&files.certificate)?;
        let (key, mode) = read_file(&files.key)?;
        // A group may be the way to give a key to a service.
        if mode & 0o007 != 0 {
            return Err(TlsFileError::OpenKey { path: files.key.clone(), mode: mode & 0o777 });
        }
        Ok(FileBytes { certificate, key })
    }

    fn digest(&self) -> [u8; 32] {
        let parts = [Sha256::digest(&self.certificate), Sha256::digest(&self.key)];
        Sha256::digest(parts.concat()).into()
    }
}

/// The file's bytes and mode.
fn read_file(path: &Path) -> Result<(Vec<u8>, u32), TlsFileError> {
    let unreadable = |why| TlsFileError::Unreadable { path: path.to_owned(), why };
    let found = path.metadata().map_err(unreadable)?;
    // A pipe would be waited for.
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(TlsFileError::NoFile { path: path.to_owned() });
    }
    Ok((std::fs::read(path).map_err(unreadable)?, found.mode()))
}

impl TlsSettings {
    fn of(files: &TlsFiles, bytes: &FileBytes) -> Result<TlsSettings, TlsFileError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes.certificate)
            .collect::<Result<_, _>>()
            .ok()
            .filter(|chain: &Vec<_>| !chain.is_empty())
            .ok_or_else(|| TlsFileError::NoCertificate { path: files.certificate.clone() })?;
        let key = PrivateKeyDer::from_pem_slice(&bytes.key)
            .map_err(|_| TlsFileError::NoKey { path: files.key.clone() })?;
        let unusable = |why| match why {
            rustls::Error::InconsistentKeys(_) => TlsFileError::Mismatch { files: files.clone() },
            why => TlsFileError::Unusable { files: files.clone(), why },
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(unusable)?.with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsSettings { config: Arc::new(config), digest: bytes.digest() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::departures::{Departures, LeavingResponse};
    use super::super::on_sent::OnSent;
    use super::super::socket::{ClientSocket, ClientStream};
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsConnector;

    const PEM: &[u8] = include_bytes!("../client/tests/localhost.pem");

    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    fn settings() -> (TlsFiles, TlsSettings) {
        let files = TlsFiles { certificate: "localhost.pem".into(), key: "localhost.pem".into() };
        let bytes = FileBytes { certificate: PEM.to_vec(), key: PEM.to_vec() };
        let settings = TlsSettings::of(&files, &bytes).unwrap();
        (files, settings)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_finishes_the_handshake_is_hung_up_on() {
        let (files, settings) = settings();
        let tls = ServerTls { files, current: RwLock::new(settings) };
        for begins in [&b""[..], b"\x16\x03\x01\x01\x00\x01"] {
            let (mut client, stream) = connected().await;
            client.write_all(begins).await.unwrap();
            assert!(tls.accept(stream).await.is_none());
        }
    }

    /// TLS takes more than the kernel does: a response whose bytes lie there has not left.
    #[tokio::test(start_paused = true)]
    async fn bytes_that_wait_in_tls_have_not_left_and_do_not_wait_for_ever() {
        let (client, stream) = connected().await;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(PEM).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connecting =
            TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), client);
        let accepting = TlsAcceptor::from(settings().1.config).accept(stream);
        let (client, stream) = tokio::try_join!(connecting, accepting).unwrap();
        let departures = Arc::<Departures>::default();
        let stream = ClientStream::Tls(Box::new(stream));
        let mut socket = ClientSocket::new(stream, Arc::clone(&departures), Arc::default());
        let write = async |socket: &mut ClientSocket| socket.write(&[b'x'; 1 << 16]).await.unwrap();
        while tokio::time::timeout(Duration::from_millis(10), write(&mut socket)).await.is_ok() {}
        let has_left = Arc::<AtomicBool>::default();
        let left = Arc::clone(&has_left);
        let on_sent = OnSent::new(move || left.store(true, Ordering::SeqCst));
        departures.push(LeavingResponse { on_sent: Some(on_sent), held: Box::new(()) });
        let flushed = socket.flush().await.map_err(|error| error.kind());
        assert_eq!(flushed, Err(io::ErrorKind::TimedOut));
        assert!(!has_left.load(Ordering::SeqCst) && departures.lock().resets);
        drop(client);
    }
}
