//! A server that keeps a ledger, whichever engine it is, with a proxy before it.

use crate::etcd_cluster::EtcdCluster;
use crate::postgres_server::PostgresServer;
use crate::proxy::{Moment, Proxy, Target};
use crate::redis_server::RedisServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Redis,
    Etcd,
}

pub const ENGINES: [Engine; 3] = [Engine::Postgres, Engine::Redis, Engine::Etcd];

#[derive(Debug)]
pub enum LedgerServer {
    Postgres(PostgresServer),
    Redis(RedisServer),
    Etcd(EtcdCluster),
}

impl LedgerServer {
    pub fn start(engine: Engine) -> LedgerServer {
        match engine {
            Engine::Postgres => LedgerServer::Postgres(PostgresServer::start(&[])),
            Engine::Redis => LedgerServer::Redis(RedisServer::start(&[])),
            Engine::Etcd => LedgerServer::Etcd(EtcdCluster::start(1)),
        }
    }

    pub fn proxy(&self) -> Proxy {
        Proxy::to(match self {
            LedgerServer::Postgres(server) => Target::Socket(server.socket()),
            LedgerServer::Redis(server) => Target::Port(server.port()),
            LedgerServer::Etcd(cluster) => Target::Port(cluster.port()),
        })
    }

    /// Its address.
    pub fn url(&self) -> String {
        match self {
            LedgerServer::Postgres(server) => server.url("semel"),
            LedgerServer::Redis(server) => server.url(),
            LedgerServer::Etcd(cluster) => format!("etcd://{}", cluster.places()),
        }
    }

    /// The address of one of the many ledgers that it can keep.
    pub fn url_of(&self, ledger: &str) -> String {
        match self {
            LedgerServer::Postgres(server) => server.url(ledger),
            LedgerServer::Redis(_) | LedgerServer::Etcd(_) => format!("{}?ledger={ledger}", self.url()),
        }
    }

    /// Its address through the proxy.
    pub fn url_by(&self, proxy: &Proxy) -> String {
        let place = format!("127.0.0.1:{}", proxy.port());
        match self {
            LedgerServer::Postgres(_) => {
                format!("postgres://semel@{place}/postgres?schema=semel&sslmode=disable")
            }
            LedgerServer::Redis(_) => format!("redis://{place}"),
            LedgerServer::Etcd(_) => format!("etcd://{place}"),
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        match self {
            LedgerServer::Postgres(server) => server.kill(),
            LedgerServer::Redis(server) => server.kill(),
            LedgerServer::Etcd(cluster) => _ = cluster.kill_leader(),
        }
    }

    pub fn start_again(&mut self) {
        match self {
            LedgerServer::Postgres(server) => server.start_again(),
            LedgerServer::Redis(server) => server.restart(),
            LedgerServer::Etcd(cluster) => cluster.restart(0),
        }
    }

    /// Just before a commit reaches it.
    pub fn before_commit(&self) -> Moment {
        Moment::Before(self.words().0)
    }

    /// Before a write has begun: nobody waits for its locks.
    pub fn before_write(&self) -> Moment {
        match self {
            LedgerServer::Postgres(_) => Moment::Before(b"BEGIN ISOLATION"),
            LedgerServer::Redis(_) | LedgerServer::Etcd(_) => self.before_commit(),
        }
    }

    /// Just after a commit has landed, and before its answer is back.
    pub fn behind_commit(&self) -> Moment {
        let (asked, answered) = self.words();
        Moment::Behind(asked, answered)
    }

    /// In every message that writes, and in every answer to it.
    fn words(&self) -> (&'static [u8], &'static [u8]) {
        match self {
            LedgerServer::Postgres(_) => (b"COMMIT\0", b"COMMIT\0"),
            LedgerServer::Redis(_) => (b"EVALSHA", b""),
            LedgerServer::Etcd(_) => (b"request_put", b"HTTP/1.1"),
        }
    }
}
