//! The address of a ledger on etcd, and how it is shown: never with its password.

use crate::Error;
use crate::kv::KvStore;
use crate::kv::ledger_name;
use crate::server_address::{Clock, ServerEngine};
use crate::store::Store;
use async_trait::async_trait;
use semel_core::digest::Secret;
use std::fmt;
use std::sync::Arc;

/// `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT?ledger=NAME`. `etcds` speaks TLS.
#[derive(Clone)]
pub struct EtcdAddress {
    /// `http://HOST:PORT`, asked in turn until one answers.
    pub(super) endpoints: Vec<String>,
    pub(super) login: Option<(String, String)>,
    pub(super) ledger: String,
}

const FORM: &str = "write etcd://HOST:PORT,HOST:PORT, or etcds:// for TLS";

const PORT: u16 = 2379;

impl EtcdAddress {
    pub fn parse(url: &str) -> Result<EtcdAddress, Error> {
        let refused = |what: &str| Error::Engine { ledger: "etcd://…".to_owned(), what: what.to_owned() };
        let (scheme, rest) = match url.split_once("://") {
            Some(("etcd", rest)) => ("http", rest),
            Some(("etcds", rest)) => ("https", rest),
            _ => return Err(refused(FORM)),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let ledger = ledger_name(query).map_err(refused)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, hosts) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((login, hosts)) => {
                let (user, password) =
                    login.split_once(':').ok_or_else(|| refused("a user needs a password"))?;
                (Some((user.to_owned(), password.to_owned())), hosts)
            }
        };
        let endpoint = |place: &str| {
            let (host, port) =
                place.rsplit_once(':').map_or((place, Ok(PORT)), |(host, port)| (host, port.parse()));
            let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '[' | ']' | ':');
            match port {
                Ok(port) if !host.is_empty() && host.chars().all(is_host) => {
                    Ok(format!("{scheme}://{host}:{port}"))
                }
                _ => Err(refused(FORM)),
            }
        };
        let endpoints = hosts.split(',').map(endpoint).collect::<Result<_, _>>()?;
        Ok(EtcdAddress { endpoints, login, ledger: ledger.to_owned() })
    }

    fn is_tls(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.starts_with("https"))
    }

    /// The key of something of this ledger. `part` is one letter.
    pub(super) fn key(&self, part: u8, name: &[u8]) -> Vec<u8> {
        [b"semel/", self.ledger.as_bytes(), b"/", &[part, b'/'], name].concat()
    }
}

#[async_trait]
impl ServerEngine for EtcdAddress {
    fn has_password(&self) -> bool {
        self.login.is_some()
    }

    async fn open(&self, fresh_secret: [u8; 32], clock: Clock) -> Result<(Arc<dyn Store>, Secret), Error> {
        let (store, secret) =
            KvStore::open(super::EtcdKv::connect(self.clone()), fresh_secret, clock).await?;
        Ok((Arc::new(store), secret))
    }
}

impl fmt::Display for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |endpoint: &String| endpoint.split("://").last().unwrap_or_default().to_owned();
        let places: Vec<String> = self.endpoints.iter().map(place).collect();
        let scheme = if self.is_tls() { "etcds" } else { "etcd" };
        write!(f, "{scheme}://{}?ledger={}", places.join(","), self.ledger)
    }
}

impl fmt::Debug for EtcdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = EtcdAddress::parse("etcds://me:s3cret@a,b:7001?ledger=billing").unwrap();
        assert_eq!(
            format!("{address} {address:?}"),
            "etcds://a:2379,b:7001?ledger=billing ".repeat(2).trim()
        );
        assert_eq!(address.endpoints, ["https://a:2379", "https://b:7001"]);
        assert_eq!(address.key(b'v', b"x"), b"semel/billing/v/x");
    }

    #[test]
    fn a_url_that_means_nothing_is_refused_without_its_password() {
        for url in [
            "etcd://me:s3cret@h:port",
            "etcd:me:s3cret@h",
            "http://me:s3cret@h",
            "etcd://me:s3cret@",
            "etcd://me:s3cret@h?ledger=a/b",
            "etcd://me:s3cret@h?x=1",
        ] {
            let refused = EtcdAddress::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
