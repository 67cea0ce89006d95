//! The address of a ledger on Redis or Valkey, and how it is shown: never with its password.

use crate::Error;
use crate::kv::KvStore;
use crate::kv::ledger_name;
use crate::server_address::{Clock, ServerEngine};
use crate::store::Store;
use async_trait::async_trait;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use semel_core::digest::Secret;
use std::fmt;
use std::sync::Arc;

/// `redis://USER:PASSWORD@HOST:PORT/DB?ledger=NAME`. `rediss` speaks TLS, `redis+cluster` and `rediss+cluster` may name
/// several nodes, with commas between them, and `redis+unix:///PATH` is a socket.
#[derive(Clone)]
pub struct RedisAddress {
    scheme: String,
    /// Asked in turn, until one answers.
    pub(super) seeds: Vec<ConnectionInfo>,
    pub(super) ledger: String,
}

const FORM: &str = "write redis://USER:PASSWORD@HOST:PORT, or rediss:// for TLS";

impl RedisAddress {
    pub fn parse(url: &str) -> Result<RedisAddress, Error> {
        // The parser's own words may quote the password.
        let refused = |what: &str| Error::Engine { ledger: "redis://…".to_owned(), what: what.to_owned() };
        let (given, rest) = url.split_once("://").ok_or_else(|| refused(FORM))?;
        let scheme = given.strip_suffix("+cluster").unwrap_or(given);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let ledger = ledger_name(query).map_err(refused)?;
        // It would end the address, and a password with one would be shown in part.
        if rest.contains('#') {
            return Err(refused("write %23 for # in a name or password"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let at = if user.is_empty() { "" } else { "@" };
        let seed = |host: &str| {
            let seed = format!("{scheme}://{user}{at}{host}{path}").into_connection_info();
            seed.map_err(|_| refused(FORM))
        };
        let seeds = hosts.split(',').map(seed).collect::<Result<_, _>>()?;
        Ok(RedisAddress { scheme: given.to_owned(), seeds, ledger: ledger.to_owned() })
    }

    /// Everything of a ledger lies in one slot of a cluster, so that one script can write all of it.
    pub(super) fn key(&self, what: &str) -> String {
        format!("{{semel:{}}}:{what}", self.ledger)
    }
}

pub(super) fn is_tls(seed: &ConnectionInfo) -> bool {
    matches!(seed.addr(), ConnectionAddr::TcpTls { .. })
}

/// The same server at another place: the node that a cluster has sent us to.
pub(super) fn moved_to(seed: &ConnectionInfo, place: &str) -> Option<ConnectionInfo> {
    let (to_host, to_port) = place.rsplit_once(':')?;
    let to_port = to_port.parse().ok()?;
    // A node that does not know its name means the one that was asked.
    let named = |host: &str| if to_host.is_empty() { host.to_owned() } else { to_host.to_owned() };
    let place = match seed.addr().clone() {
        ConnectionAddr::Tcp(host, _) => ConnectionAddr::Tcp(named(&host), to_port),
        ConnectionAddr::TcpTls { host, insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: named(&host), port: to_port, insecure, tls_params }
        }
        _ => return None,
    };
    Some(seed.clone().set_addr(place))
}

#[async_trait]
impl ServerEngine for RedisAddress {
    fn has_password(&self) -> bool {
        self.seeds.iter().any(|seed| seed.redis_settings().password().is_some())
    }

    async fn open(&self, fresh_secret: [u8; 32], clock: Clock) -> Result<(Arc<dyn Store>, Secret), Error> {
        let (store, secret) =
            KvStore::open(super::RedisKv::connect(self.clone()), fresh_secret, clock).await?;
        Ok((Arc::new(store), secret))
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.seeds.iter().map(|seed| seed.addr().to_string()).collect();
        write!(f, "{}://{}", self.scheme, places.join(","))?;
        match self.seeds.first().map_or(0, |seed| seed.redis_settings().db()) {
            0 => {}
            database => write!(f, "/{database}")?,
        }
        write!(f, "?ledger={}", self.ledger)
    }
}

impl fmt::Debug for RedisAddress {
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
            RedisAddress::parse("rediss+cluster://me:s3cret@a:7000,b:7001/0?ledger=billing").unwrap();
        assert_eq!(format!("{address} {address:?}").matches("s3cret").count(), 0);
        assert_eq!(address.to_string(), "rediss+cluster://a:7000,b:7001?ledger=billing");
        assert_eq!(address.seeds[1].redis_settings().password(), Some("s3cret"));
        assert!(matches!(address.seeds[1].addr(), ConnectionAddr::TcpTls { port: 7001, .. }));
        assert_eq!(address.key("values"), "{semel:billing}:values");
        assert_eq!(RedisAddress::parse("redis://a/3").unwrap().to_string(), "redis://a:6379/3?ledger=ledger");
        let moved = moved_to(&address.seeds[0], "c:7002").unwrap();
        assert!(matches!(moved.addr(), ConnectionAddr::TcpTls { host, port: 7002, .. } if host == "c"));
    }

    #[test]
    fn a_url_that_means_nothing_is_refused_without_its_password() {
        for url in [
            "redis://me:s3cret@h:port",
            "redis:me:s3cret@h",
            "http://me:s3cret@h",
            "redis://me:s3cret@h?ledger=a}b",
            "redis://me:s3cret@h?ledger=",
            "redis://me:s3cret@h?db=1",
            "redis://me:s3cret@",
            "redis://me:7000#s3cret@h",
            "redis://me:7000/s3cret@h",
        ] {
            let refused = RedisAddress::parse(url).unwrap_err().to_string();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
