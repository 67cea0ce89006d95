//! The address of a ledger on a server that many hosts share.

use crate::Error;
use crate::store::Store;
use async_trait::async_trait;
use semel_core::digest::Secret;
use semel_core::time::At;
use std::fmt;
use std::sync::Arc;

/// Tells the time at which an epoch begins.
pub type Clock = Arc<dyn Fn() -> At + Send + Sync>;

/// The address that an engine has understood. Which engines there are is a choice of the build.
#[async_trait]
pub trait ServerEngine: fmt::Debug + fmt::Display + Send + Sync {
    fn has_password(&self) -> bool;

    async fn open(&self, fresh_secret: [u8; 32], clock: Clock) -> Result<(Arc<dyn Store>, Secret), Error>;
}

#[derive(Debug, Clone)]
pub struct ServerAddress(Arc<dyn ServerEngine>);

impl ServerAddress {
    /// `None`: no engine of this build has this scheme.
    pub fn parse(url: &str) -> Result<Option<ServerAddress>, Error> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let known: Option<Arc<dyn ServerEngine>> = match scheme {
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Some(Arc::new(crate::postgres::PostgresAddress::parse(url)?)),
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" | "redis+unix" => {
                Some(Arc::new(crate::kv::redis::RedisAddress::parse(url)?))
            }
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => Some(Arc::new(crate::kv::etcd::EtcdAddress::parse(url)?)),
            _ => None,
        };
        Ok(known.map(ServerAddress))
    }

    pub fn has_password(&self) -> bool {
        self.0.has_password()
    }

    /// Connects, and founds the ledger if there is none; `fresh_secret` is then its secret. Returns the secret that it has.
    pub async fn open(
        &self,
        fresh_secret: [u8; 32],
        clock: Clock,
    ) -> Result<(Arc<dyn Store>, Secret), Error> {
        self.0.open(fresh_secret, clock).await
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
