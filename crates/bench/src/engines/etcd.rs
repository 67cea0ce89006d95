//! etcd as a cluster of three, beside raw puts to the same JSON gateway: one guarded call is two of them.

use super::{Engine, Goals, ToolLoad, must_lie_on_disk};
use crate::load::LoadResult;
use crate::wire::{self, drive, request};
use semel_testkit::etcd_cluster::EtcdCluster;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xtask::project::Result;
use xtask::tools;

const MEMBERS: usize = 3;

/// Keys that reads find. The warm-up of the first puts makes them.
const KEYS: u64 = 100;

#[derive(Debug)]
pub struct Etcd {
    cluster: EtcdCluster,
    /// Keys that were put so far.
    put: AtomicU64,
}

impl Etcd {
    pub fn start() -> Result<Etcd> {
        must_lie_on_disk(&std::env::temp_dir())?;
        tools::key_value_servers()?;
        let etcd = Etcd { cluster: EtcdCluster::start(MEMBERS), put: AtomicU64::new(0) };
        while etcd.put.load(Ordering::Relaxed) < KEYS {
            etcd.pairs(16, Duration::from_millis(100))?;
        }
        Ok(etcd)
    }

    /// To the member that semel asks too.
    fn ask(
        &self,
        clients: usize,
        span: Duration,
        path: &'static str,
        body: impl Fn(u64) -> String + Send + Sync + 'static,
    ) -> Result<LoadResult> {
        let first: SocketAddr = self.cluster.places().split(',').next().unwrap_or_default().parse()?;
        drive(&wire::runtime()?, first, clients, span, move |n| request("POST", path, "", &body(n)))
    }
}

/// Twelve digits are base64 of nine bytes.
fn key(n: u64) -> String {
    format!("{n:012}")
}

fn per_second(mut load: LoadResult) -> ToolLoad {
    ToolLoad { per_second: load.per_second(), p50_us: load.times.median() }
}

impl Engine for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn tool(&self) -> &'static str {
        "two puts by the gateway"
    }

    fn goals(&self) -> Goals {
        Goals { alone_at_most: None, busy_at_least: Some(0.5) }
    }

    fn address(&self, ledger: &str) -> String {
        format!("etcd://{}?ledger={ledger}", self.cluster.places())
    }

    fn pairs(&self, clients: usize, span: Duration) -> Result<ToolLoad> {
        // Two hundred times the letter r.
        let (from, value) = (self.put.load(Ordering::Relaxed), "cnJy".repeat(67));
        let load = self.ask(clients, span, "/v3/kv/put", move |n| {
            format!(r#"{{"key": "{}", "value": "{value}"}}"#, key(from + n))
        })?;
        self.put.fetch_add(load.calls, Ordering::Relaxed);
        Ok(per_second(load).of_pairs())
    }

    fn reads(&self, clients: usize, span: Duration) -> Result<Option<ToolLoad>> {
        let load =
            self.ask(clients, span, "/v3/kv/range", |n| format!(r#"{{"key": "{}"}}"#, key(n % KEYS)))?;
        Ok(Some(per_second(load)))
    }
}
