//! The address of a ledger on PostgreSQL, and how it is shown: never with its password.

use crate::Error;
use std::fmt;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// A server that does not answer for so long is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// `postgres://user:password@host:port/database?schema=name`, and the options of libpq.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// The tables lie in this schema, so that one database can hold several ledgers.
    pub(super) schema: String,
}

impl PostgresAddress {
    pub fn parse(url: &str) -> Result<PostgresAddress, Error> {
        let refused = |what: String| Error::Engine { ledger: "postgres://…".into(), what };
        let (url, schema) = take_schema(url);
        // The parser's own words may quote the password.
        let mut config: Config = url.parse().map_err(|_| {
            refused("this is no PostgreSQL URL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned())
        })?;
        if config.get_hosts().is_empty() {
            return Err(refused("the URL names no host".to_owned()));
        }
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || !schema.chars().all(is_name) {
            let what = format!("schema={schema:?} must consist of a to z, 0 to 9 and _");
            return Err(refused(what));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("semel");
        Ok(PostgresAddress { config, schema })
    }

    pub(super) fn wants_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }
}

/// The one parameter that is ours and not libpq's.
fn take_schema(url: &str) -> (String, String) {
    let Some((before, query)) = url.split_once('?') else { return (url.to_owned(), "semel".to_owned()) };
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|part| part.starts_with("schema="));
    let schema = ours.last().map_or("semel", |part| &part["schema=".len()..]).to_owned();
    let url = if theirs.is_empty() { before.to_owned() } else { format!("{before}?{}", theirs.join("&")) };
    (url, schema)
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
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
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
            ("postgres://db.example:5433/agents", "billing")
        );
        let broken = PostgresAddress::parse("postgres://me:s3cret@db:not-a-port/x").unwrap_err().to_string();
        assert!(!broken.contains("s3cret"), "{broken}");
        assert!(PostgresAddress::parse("postgres://h/x?schema=a;drop").is_err());
    }
}
