//! The address of a ledger on PostgreSQL, and how it is shown: never with its password.

use crate::Error;
use crate::server_address::{Clock, ServerEngine};
use crate::store::Store;
use async_trait::async_trait;
use semel_core::digest::Secret;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// A server that does not answer for so long is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const DEFAULT_SCHEMA: &str = "semel";

/// A name of PostgreSQL has 63 bytes at most; the channel for news has six more than this.
const SCHEMA_MAX: usize = 50;

/// A server that leaves bytes unacknowledged for so long is gone; the system would wait for a quarter of an hour.
const TCP_TIMEOUT: Duration = Duration::from_secs(30);

/// `postgres://user:password@host:port/database?schema=name`, and options as libpq has them.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// The tables lie in this schema, so that one database can hold several ledgers.
    pub(super) schema: String,
    /// The only authority that may vouch for the server, instead of those that this machine trusts.
    pub(super) authority: Option<PathBuf>,
}

impl PostgresAddress {
    pub fn parse(url: &str) -> Result<PostgresAddress, Error> {
        let refused = |what: String| Error::Engine { ledger: "postgres://…".into(), what };
        let mut schema = DEFAULT_SCHEMA;
        let mut authority = None;
        let mut theirs = Vec::new();
        // Options hold no question mark, and a password may.
        let (before, options) = url.rsplit_once('?').unwrap_or((url, ""));
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("schema", name)) => schema = name,
                Some(("sslrootcert", file)) => authority = Some(PathBuf::from(file)),
                // A certificate is always checked, and its name too.
                Some(("sslmode", "verify-ca" | "verify-full")) => theirs.push("sslmode=require"),
                Some(("sslmode", mode)) if !["disable", "prefer", "require"].contains(&mode) => {
                    return Err(refused(
                        "sslmode must be disable, prefer, require or verify-full".to_owned(),
                    ));
                }
                _ => theirs.push(option),
            }
        }
        // The parser's own words may quote the password. One with a / in it would end the host, and be shown.
        let authority_part = before.split_once("://").map_or(before, |(_, rest)| rest);
        let (login_and_host, database) = authority_part.split_once('/').unwrap_or((authority_part, ""));
        let later = std::iter::once(database).chain(theirs.iter().copied()).any(|part| part.contains('@'));
        if login_and_host.matches('@').count() > 1 || later {
            let what = "it has more than one @, or one behind the host; write %40 for @ and %2F for / in a name or \
                        password";
            return Err(refused(what.to_owned()));
        }
        let mut config: Config = format!("{before}?{}", theirs.join("&")).parse().map_err(|_| {
            if before.parse::<Config>().is_ok() {
                let names = theirs.iter().map(|option| option.split('=').next().unwrap_or_default());
                let names = names.collect::<Vec<_>>().join(", ");
                return refused(format!("one of its options is unknown or has a wrong value: {names}"));
            }
            let example = "postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&sslmode=require";
            refused(format!("this is no PostgreSQL URL; write {example}, with %XX for signs in a password"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(refused("the URL names no host".to_owned()));
        }
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || schema.len() > SCHEMA_MAX || !schema.chars().all(is_name) {
            return Err(refused(format!(
                "schema must consist of a to z, 0 to 9 and _, {SCHEMA_MAX} at most"
            )));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_TIMEOUT);
        }
        config.application_name("semel");
        Ok(PostgresAddress { config, schema: schema.to_owned(), authority })
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
    }

    pub(super) fn wants_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }
}

#[async_trait]
impl ServerEngine for PostgresAddress {
    fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    async fn open(&self, fresh_secret: [u8; 32], _clock: Clock) -> Result<(Arc<dyn Store>, Secret), Error> {
        let (store, secret) = super::PostgresStore::open(self.clone(), fresh_secret).await?;
        Ok((Arc::new(store), secret))
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => f.write_str(host)?,
            Some(Host::Unix(path)) => write!(f, "{}", path.display())?,
            None => {}
        }
        if let Some(port) = self.config.get_ports().first() {
            write!(f, ":{port}")?;
        }
        // Without a name the server takes the user's.
        let database = self.config.get_dbname().or(self.config.get_user());
        write!(f, "/{}", database.unwrap_or_default())?;
        // Two schemas of one database are two ledgers.
        if self.schema == DEFAULT_SCHEMA { Ok(()) } else { write!(f, "?schema={}", self.schema) }
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address =
            PostgresAddress::parse("postgres://me:s3cret@db.example:5433/agents?schema=billing").unwrap();
        assert_eq!(format!("{address} {address:?}").matches("s3cret").count(), 0);
        assert_eq!(
            (address.to_string().as_str(), address.schema.as_str()),
            ("postgres://db.example:5433/agents?schema=billing", "billing")
        );
        let broken = PostgresAddress::parse("postgres://me:s3cret@db:not-a-port/x").unwrap_err().to_string();
        assert!(!broken.contains("s3cret"), "{broken}");
        assert!(PostgresAddress::parse("postgres://h/x?schema=a;drop").is_err());
        for (url, words) in [
            ("postgres://me:s3@cret@db/x", "write %40"),
            ("postgres://me:s3@h/cret@db/x", "write %40"),
            ("postgres://me:5432/cret@db/x", "write %40"),
            ("postgres://me:5432?cret@db/x", "write %40"),
            ("postgres://me:s3cret@db/x?shema=y", "unknown or has a wrong value: shema"),
        ] {
            let broken = PostgresAddress::parse(url).unwrap_err().to_string();
            assert!(broken.contains(words) && !broken.contains("cret"), "{broken}");
        }
        let odd = PostgresAddress::parse("postgres://me:s3?cret@db/x?schema=y").unwrap();
        assert_eq!((odd.config.get_password(), odd.schema.as_str()), (Some(&b"s3?cret"[..]), "y"));
    }
}
