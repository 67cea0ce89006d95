//! Connections: TLS, and the settings without which a commit would not be durable.

use super::address::PostgresAddress;
use crate::Error;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

type TlsStream = tokio_postgres_rustls::RustlsStream<Socket>;

/// A connection that its owner must drive.
pub(super) enum Driver {
    Plain(Connection<Socket, NoTlsStream>),
    Tls(Box<Connection<Socket, TlsStream>>),
}

impl Driver {
    /// Drives it until it ends, and hands over the messages that no query has asked for.
    pub(super) async fn drive(mut self, mut on_message: impl FnMut(AsyncMessage) + Send) {
        std::future::poll_fn(|context| {
            loop {
                let polled = match &mut self {
                    Driver::Plain(connection) => connection.poll_message(context),
                    Driver::Tls(connection) => connection.poll_message(context),
                };
                match std::task::ready!(polled) {
                    Some(Ok(message)) => on_message(message),
                    Some(Err(_)) | None => return std::task::Poll::Ready(()),
                }
            }
        })
        .await;
    }
}

/// Connects, without asking anything yet.
pub(super) async fn connect(address: &PostgresAddress) -> Result<(Client, Driver), Error> {
    let unreachable = |error: tokio_postgres::Error| Error::Engine { ledger: address.to_string(), what: explain(&error) };
    if !address.wants_tls() {
        let (client, connection) = address.config.connect(NoTls).await.map_err(unreachable)?;
        return Ok((client, Driver::Plain(connection)));
    }
    let (client, connection) = address.config.connect(tls()).await.map_err(unreachable)?;
    Ok((client, Driver::Tls(Box::new(connection))))
}

/// Connects and drives it in the background.
pub(super) async fn session(address: &PostgresAddress) -> Result<Client, Error> {
    let (client, driver) = connect(address).await?;
    tokio::spawn(driver.drive(|_| {}));
    Ok(client)
}

/// Certificates are checked against those that this machine trusts.
fn tls() -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}

/// The server's words, or the chain of causes: the driver's own `Display` says only "db error".
pub(super) fn explain(error: &tokio_postgres::Error) -> String {
    if let Some(server) = error.as_db_error() {
        return format!("{} ({})", server.message(), server.code().code());
    }
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words
}

/// The oldest server that has all that is used here.
const OLDEST: i32 = 140_000;

/// Refuses a server on which an acknowledged claim could be lost.
pub(super) async fn check_settings(client: &Client, address: &PostgresAddress) -> Result<(), Error> {
    let refused = |what: String| Error::Engine { ledger: address.to_string(), what };
    let row = client
        .query_typed_one(
            "SELECT current_setting('server_version_num')::int, current_setting('fsync'), \
             current_setting('full_page_writes'), pg_is_in_recovery()",
            &[],
        )
        .await
        .map_err(|error| refused(explain(&error)))?;
    let (version, fsync, full_pages, standby): (i32, &str, &str, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    if version < OLDEST {
        return Err(refused(format!("PostgreSQL {} is too old; use 14 or later", version / 10_000)));
    }
    for (name, value) in [("fsync", fsync), ("full_page_writes", full_pages)] {
        if value != "on" {
            return Err(refused(format!("the server has {name}={value} and can lose claims; set {name}=on")));
        }
    }
    if standby {
        return Err(refused("this server is a standby; name the primary".to_owned()));
    }
    Ok(())
}
