//! The same over TLS, with a certificate that only these tests trust.

use super::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const PEM: &[u8] = include_bytes!("localhost.pem");

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(PEM).unwrap()
}

pub fn acceptor(protocols: &[&[u8]]) -> TlsAcceptor {
    let key = PrivateKeyDer::from_pem_slice(PEM).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

pub fn client(address: SocketAddr) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).unwrap();
    let target = Target::parse(&format!("https://localhost:{}/", address.port())).unwrap().with_private(true);
    Client::trusting(target, Arc::new(SystemNames), roots).unwrap()
}

/// A connection on both of its ends.
async fn connected(
    client: &Client,
    handed: &mut mpsc::Receiver<TcpStream>,
) -> (Prepared, TlsStream<TcpStream>) {
    let accepting = async { acceptor(&[]).accept(handed.recv().await.unwrap()).await.unwrap() };
    let (prepared, stream) = tokio::join!(client.connect(), accepting);
    (prepared.unwrap(), stream)
}

#[tokio::test]
async fn requests_and_answers_of_any_size_pass() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    for length in [4, 100_000, 5 << 20] {
        let (prepared, mut stream) = connected(&client, &mut handed).await;
        let upstream = tokio::spawn(async move {
            let mut buffer = vec![0; 1 << 16];
            let (mut head, mut read) = (String::new(), 0);
            while head.is_empty() || read < length {
                let more = stream.read(&mut buffer).await.unwrap();
                assert!(more > 0, "it was cut off after {read} bytes");
                if head.is_empty() {
                    head = String::from_utf8_lossy(&buffer[..more]).into_owned();
                    let end = head.find("\r\n\r\n").unwrap() + 4;
                    assert!(head.contains(&format!("content-length: {length}\r\n")), "{head}");
                    read = more - end;
                } else {
                    read += more;
                }
            }
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "y".repeat(length));
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            stream
        });
        let request = Request::post("/").header("host", "x").body(Bytes::from(vec![b'x'; length])).unwrap();
        let answered = client.send(prepared, request).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(answered.to_bytes().len(), length);
        let _stays_open = upstream.await.unwrap();
    }
}

/// Below TLS the kernel knows of the reset before anybody was told.
#[tokio::test]
async fn what_could_not_be_written_at_all_was_never_sent() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let (prepared, stream) = connected(&client, &mut handed).await;
    let (stream, _) = stream.into_inner();
    stream.set_zero_linger().unwrap();
    drop(stream.into_std().unwrap());
    let request = Request::post("/").body(Payload::from(Bytes::from("body"))).unwrap();
    let failed = client.try_send(None, prepared, request).await.unwrap_err();
    assert!(matches!(failed, Unanswered::NeverSent(..)), "{failed:?}");
}

#[tokio::test]
async fn what_was_written_and_not_answered_is_lost() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    // Too much for one write: some of it has left when the rest fails.
    for length in [4, 64 << 20] {
        let (prepared, mut stream) = connected(&client, &mut handed).await;
        let upstream = tokio::spawn(async move {
            let read = stream.read(&mut [0; 64]).await.unwrap();
            assert!(read > 0);
        });
        let request = Request::post("/").body(Bytes::from(vec![b'x'; length])).unwrap();
        let failed = client.send(prepared, request).await.unwrap_err();
        assert!(matches!(failed, Failed::Lost(_)), "{failed}");
        upstream.await.unwrap();
    }
}

#[tokio::test]
async fn nobody_else_is_taken_for_the_upstream() {
    let (address, mut handed) = listen().await;
    let stranger =
        Target::parse(&format!("https://localhost:{}/", address.port())).unwrap().with_private(true);
    let client = Client::trusting(stranger, Arc::new(SystemNames), RootCertStore::empty()).unwrap();
    let accepting = async { acceptor(&[]).accept(handed.recv().await.unwrap()).await.map(drop) };
    let (refused, accepted) = tokio::join!(client.connect(), accepting);
    assert!(refused.unwrap_err().why.contains("certificate"));
    assert!(accepted.is_err());
}

/// The handshake of the next call is done before it comes. HTTP/1.1 is spoken: the upstream offers nothing else.
#[tokio::test]
async fn a_call_finds_a_connection_that_was_opened_ahead() {
    let (address, mut handed) = listen().await;
    let client = client(address);
    let accept = async |handed: &mut mpsc::Receiver<TcpStream>| {
        acceptor(&[]).accept(handed.recv().await.unwrap()).await.unwrap()
    };
    let both = async {
        let first = accept(&mut handed).await;
        (first, accept(&mut handed).await)
    };
    let (prepared, _streams) = tokio::join!(client.prepare(), both);
    let first = prepared.unwrap();
    let second = loop {
        match client.pool.take("acme/any", false) {
            Some(connection) => break Prepared::now(connection),
            None => tokio::task::yield_now().await,
        }
    };
    assert!(!first.connection.is_used() && !second.connection.is_used());
    assert!(handed.try_recv().is_err(), "one is enough");
}
