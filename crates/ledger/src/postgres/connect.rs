//! Connections: TLS, and the settings without which a commit would not be durable.

use super::address::PostgresAddress;
use crate::Error;
use crate::error::advice_on_connection;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::tls::{MakeTlsConnect, NoTlsStream};
use tokio_postgres::{AsyncMessage, Client, Connection, IsolationLevel, NoTls, Socket, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// A connection that its owner must drive.
pub(super) enum Driver {
    Plain(Box<Connection<Socket, NoTlsStream>>),
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
    let refused = |what: String| Error::Engine { ledger: address.to_string(), what };
    let unreachable = |error: tokio_postgres::Error| refused(explain(&error));
    let connecting = async {
        if !address.wants_tls() {
            let (client, connection) = address.config.connect(NoTls).await.map_err(unreachable)?;
            return Ok((client, Driver::Plain(Box::new(connection))));
        }
        let tls = tls(address.authority.as_deref()).map_err(refused)?;
        let (client, connection) = address.config.connect(tls).await.map_err(unreachable)?;
        Ok((client, Driver::Tls(Box::new(connection))))
    };
    // The driver's own limit ends when the socket is open; something may listen there that never speaks.
    let limit = address.connect_timeout();
    let silent = |_| refused(format!("it has not answered for {} s", limit.as_secs()));
    tokio::time::timeout(limit, connecting).await.map_err(silent)?
}

/// Connects, drives it in the background, and refuses a server that could lose claims: a reconnection may reach another
/// one than before.
pub(super) async fn session(address: &PostgresAddress) -> Result<Client, Error> {
    let (client, driver) = connect(address).await?;
    tokio::spawn(driver.drive(|_| {}));
    check_settings(&client, address).await?;
    Ok(client)
}

/// Every statement sees what was committed before it, whatever the database's default is.
pub(super) async fn read_committed(client: &mut Client) -> Result<Transaction<'_>, tokio_postgres::Error> {
    client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await
}

/// Certificates are checked against one authority, or those that this machine trusts.
fn tls(authority: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    match authority {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            let unreadable =
                |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                roots.add(certificate).map_err(|error| unreadable(&error))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
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
    let advice = match words.contains("UnknownIssuer") {
        true => "; name the certificate of its authority with sslrootcert=FILE",
        false => advice_on_connection(&words),
    };
    words + advice
}

/// The oldest server that has all that is used here.
const OLDEST: i32 = 140_000;

#[derive(Debug)]
struct Settings {
    version: i32,
    fsync: String,
    full_page_writes: String,
    encoding: String,
    is_standby: bool,
}

impl Settings {
    /// What has to change before an acknowledged claim is safe here.
    fn complaint(&self) -> Option<String> {
        if self.version < OLDEST {
            let version = self.version / 10_000;
            return Some(format!("PostgreSQL {version} is too old; use 14 or later"));
        }
        for (name, value) in [("fsync", &self.fsync), ("full_page_writes", &self.full_page_writes)] {
            if value != "on" {
                return Some(format!("the server has {name}={value} and can lose claims; set {name}=on"));
            }
        }
        if self.encoding != "UTF8" {
            return Some(format!("the database is encoded in {}; create one in UTF8", self.encoding));
        }
        self.is_standby.then(|| "this server is a standby; name the primary".to_owned())
    }
}

async fn check_settings(client: &Client, address: &PostgresAddress) -> Result<(), Error> {
    let refused = |what: String| Error::Engine { ledger: address.to_string(), what };
    let asking = client.query_typed_one(
        "SELECT current_setting('server_version_num')::int, current_setting('fsync'), \
         current_setting('full_page_writes'), current_setting('server_encoding'), pg_is_in_recovery()",
        &[],
    );
    let row = asking.await.map_err(|error| refused(explain(&error)))?;
    let settings = Settings {
        version: row.get(0),
        fsync: row.get(1),
        full_page_writes: row.get(2),
        encoding: row.get(3),
        is_standby: row.get(4),
    };
    settings.complaint().map_or(Ok(()), |what| Err(refused(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_could_lose_claims_is_refused_with_what_to_change() {
        let good = || Settings {
            version: 140_000,
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            encoding: "UTF8".to_owned(),
            is_standby: false,
        };
        let off = || "off".to_owned();
        assert_eq!(good().complaint(), None);
        for (settings, words) in [
            (Settings { version: 130_022, ..good() }, "use 14 or later"),
            (Settings { fsync: off(), ..good() }, "set fsync=on"),
            (Settings { full_page_writes: off(), ..good() }, "set full_page_writes=on"),
            (Settings { encoding: "LATIN1".to_owned(), ..good() }, "create one in UTF8"),
            (Settings { is_standby: true, ..good() }, "name the primary"),
        ] {
            let complaint = settings.complaint().expect("refused");
            assert!(complaint.contains(words), "{complaint}");
        }
    }
}
