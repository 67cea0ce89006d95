//! The address of a ledger on a server that many hosts share.

use crate::Error;
use crate::kv::etcd::{EtcdAddress, EtcdKv};
use crate::kv::redis::{RedisAddress, RedisKv};
use crate::kv::{Clock, KvStore};
use crate::postgres::{PostgresAddress, PostgresStore};
use crate::store::Store;
use semel_core::digest::Secret;
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum ServerAddress {
    Postgres(Box<PostgresAddress>),
    Redis(RedisAddress),
    Etcd(EtcdAddress),
}

impl ServerAddress {
    /// `None`: no engine has this scheme.
    pub fn parse(url: &str) -> Result<Option<ServerAddress>, Error> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        Ok(Some(match scheme {
            "postgres" | "postgresql" => ServerAddress::Postgres(Box::new(PostgresAddress::parse(url)?)),
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" | "redis+unix" => {
                ServerAddress::Redis(RedisAddress::parse(url)?)
            }
            "etcd" | "etcds" => ServerAddress::Etcd(EtcdAddress::parse(url)?),
            _ => return Ok(None),
        }))
    }

    pub fn has_password(&self) -> bool {
        match self {
            ServerAddress::Postgres(address) => address.has_password(),
            ServerAddress::Redis(address) => address.has_password(),
            ServerAddress::Etcd(address) => address.has_password(),
        }
    }

    /// Connects, and founds the ledger if there is none; `fresh_secret` is then its secret. Returns the secret that it has.
    pub async fn open(
        &self,
        fresh_secret: [u8; 32],
        clock: Clock,
    ) -> Result<(Arc<dyn Store>, Secret), Error> {
        Ok(match self.clone() {
            ServerAddress::Postgres(address) => shared(PostgresStore::open(*address, fresh_secret).await?),
            ServerAddress::Redis(address) => {
                shared(KvStore::open(RedisKv::connect(address), fresh_secret, clock).await?)
            }
            ServerAddress::Etcd(address) => {
                shared(KvStore::open(EtcdKv::connect(address), fresh_secret, clock).await?)
            }
        })
    }
}

fn shared((store, secret): (impl Store, Secret)) -> (Arc<dyn Store>, Secret) {
    (Arc::new(store), secret)
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Postgres(address) => address.fmt(f),
            ServerAddress::Redis(address) => address.fmt(f),
            ServerAddress::Etcd(address) => address.fmt(f),
        }
    }
}
