//! The node that keeps the ledger: how it is found, and whether it may.

use super::address::{RedisAddress, is_tls, moved_to};
use super::tier::Tier;
use crate::engine_facts::{EngineFacts, ahead_ms};
use crate::error::advice_on_connection;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, RedisError};
use semel_core::time::At;
use std::collections::HashMap;
use std::time::Duration;

/// A server that does not answer for so long is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer that takes longer is given up. A server that rewrites its file or loads its data may take seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How often one node may send us to another.
const MOVES_MAX: usize = 5;

/// Connections to one node. Reads do not wait for the disk behind a write.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) info: ConnectionInfo,
    pub(super) reader: MultiplexedConnection,
    pub(super) writer: MultiplexedConnection,
    pub(super) tier: Tier,
    /// The server can tell when a write is on its disk.
    pub(super) has_waitaof: bool,
}

/// Finds the node, and refuses one that could lose claims without anybody noticing. The error says in words why there is
/// none.
pub(super) async fn connect(address: &RedisAddress) -> Result<Node, String> {
    let mut failed = None;
    for seed in &address.seeds {
        match find(address, seed).await {
            Ok((info, mut reader)) => {
                let facts = facts(&mut reader).await.map_err(|error| explain(&error))?;
                if let Some(what) = objection(&facts) {
                    return Err(what);
                }
                let tier = tier(&mut reader, &facts).await;
                let writer = open(&info).await.map_err(|error| explain(&error))?;
                let has_waitaof = version(&facts) >= (7, 2);
                return Ok(Node { info, reader, writer, tier, has_waitaof });
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.map_or_else(|| "the URL names no host".to_owned(), |error| explain_unreached(address, &error)))
}

/// A server that expects TLS closes a plain connection, as a full one does, and one that expects none waits for more.
fn explain_unreached(address: &RedisAddress, error: &RedisError) -> String {
    let guess = match address.seeds.iter().any(is_tls) {
        true if error.is_timeout() => "; it may not speak TLS at this port",
        false if error.is_connection_dropped() => {
            "; it has no free connection, or wants TLS at this port (rediss://)"
        }
        _ => "",
    };
    explain(error) + guess
}

async fn open(info: &ConnectionInfo) -> Result<MultiplexedConnection, RedisError> {
    if is_tls(info) {
        // Fails where one is installed already, which is as good.
        let _installed = rustls::crypto::ring::default_provider().install_default();
    }
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(ANSWER_TIMEOUT));
    Client::open(info.clone())?.get_multiplexed_async_connection_with_config(&config).await
}

/// Asks for the ledger, and goes where a cluster sends us.
async fn find(
    address: &RedisAddress,
    seed: &ConnectionInfo,
) -> Result<(ConnectionInfo, MultiplexedConnection), RedisError> {
    let mut info = seed.clone();
    for _ in 0..MOVES_MAX {
        let mut connection = open(&info).await?;
        let asked = redis::cmd("HLEN").arg(address.key("values")).query_async::<u64>(&mut connection).await;
        match asked {
            Ok(_) => return Ok((info, connection)),
            Err(error) => match error.redirect_node().and_then(|(place, _)| moved_to(&info, place)) {
                Some(next) => info = next,
                None => return Err(error),
            },
        }
    }
    Err(RedisError::from((ErrorKind::Client, "the nodes of the cluster send each other's clients around")))
}

type Facts = HashMap<String, String>;

async fn facts(connection: &mut MultiplexedConnection) -> Result<Facts, RedisError> {
    let text: String = redis::cmd("INFO").query_async(connection).await?;
    let fact =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    Ok(text.lines().filter_map(fact).collect())
}

pub(super) struct Replication {
    pub(super) id: String,
    /// It was the replica of another one since its start.
    pub(super) took_over: bool,
}

pub(super) async fn replication(
    connection: &mut MultiplexedConnection,
) -> Result<Option<Replication>, RedisError> {
    let mut facts = facts(connection).await?;
    let took_over = facts.get("master_replid2").is_none_or(|id| id.contains(|c| c != '0'));
    Ok(facts.remove("master_replid").map(|id| Replication { id, took_over }))
}

fn version(facts: &Facts) -> (u32, u32) {
    let mut parts = facts.get("redis_version").map_or("", String::as_str).split('.');
    let mut part = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (part(), part())
}

/// Why this server cannot keep a ledger, and what to change.
fn objection(facts: &Facts) -> Option<String> {
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    if version(facts) < (7, 0) {
        return Some(format!("Redis {} is too old; use 7.0 or later, or Valkey", fact("redis_version")));
    }
    if fact("role") != "master" {
        return Some("this server is a replica; name the primary".to_owned());
    }
    let policy = fact("maxmemory_policy");
    if policy.starts_with("allkeys") {
        return Some(format!(
            "the server has maxmemory-policy {policy} and would delete claims when its memory is full; set \
             maxmemory-policy noeviction"
        ));
    }
    if fact("master_replid").is_empty() {
        return Some("the server does not tell its replication id; allow INFO".to_owned());
    }
    None
}

/// The server, as `semel doctor` shows it. The tier is that of the connection.
pub(super) async fn describe(node: &mut Node, now: At) -> Result<EngineFacts, RedisError> {
    let found = facts(&mut node.reader).await?;
    let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut node.reader).await?;
    let fact = |name: &str| found.get(name).map_or("", String::as_str);
    let server = match fact("valkey_version") {
        "" => format!("Redis {}", fact("redis_version")),
        version => format!("Valkey {version}"),
    };
    let appendonly = if fact("aof_enabled") == "1" { "yes" } else { "no" };
    let syncing = match syncing(&mut node.reader).await {
        Ok(Syncing { when, pauses: false }) => when,
        Ok(Syncing { when, pauses: true }) => format!("{when}, no-appendfsync-on-rewrite yes"),
        Err(_) => "not told".to_owned(),
    };
    let eviction = fact("maxmemory_policy");
    Ok(EngineFacts {
        server,
        persistence: format!("appendonly {appendonly}, appendfsync {syncing}, maxmemory-policy {eviction}"),
        durability: node.tier.to_string(),
        clock_ahead_ms: Some(ahead_ms(At(seconds * 1_000_000 + micros), now)),
    })
}

/// When the log is flushed to the disk.
struct Syncing {
    when: String,
    /// Not while the log is rewritten.
    pauses: bool,
}

async fn syncing(connection: &mut MultiplexedConnection) -> Result<Syncing, RedisError> {
    let (when, on_rewrite) = ("appendfsync", "no-appendfsync-on-rewrite");
    let asked = redis::cmd("CONFIG").arg("GET").arg(when).arg(on_rewrite).to_owned();
    let mut settings = asked.query_async::<HashMap<String, String>>(connection).await?;
    let when = settings.remove(when).unwrap_or_else(|| "not told".to_owned());
    Ok(Syncing { when, pauses: settings.get(on_rewrite).is_some_and(|value| value == "yes") })
}

async fn tier(connection: &mut MultiplexedConnection, facts: &Facts) -> Tier {
    if facts.get("aof_enabled").map(String::as_str) != Some("1") {
        return Tier::NotOnDisk;
    }
    match syncing(connection).await {
        Ok(Syncing { when, pauses: false }) if when == "always" => Tier::Durable,
        Ok(_) => Tier::SometimesOnDisk,
        Err(_) => Tier::Unknown,
    }
}

/// The server's own words, which name no password.
pub(super) fn explain(error: &RedisError) -> String {
    match (error.kind(), error.code(), error.detail()) {
        (ErrorKind::AuthenticationFailed, ..) => {
            "the server refuses this user or password; correct them in the URL".to_owned()
        }
        (_, Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => {
            let words = error.to_string();
            format!("{words}{}", advice_on_connection(&words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_could_lose_claims_is_refused_with_what_to_change() {
        let good = [
            ("redis_version", "7.0.15"),
            ("role", "master"),
            ("maxmemory_policy", "noeviction"),
            ("master_replid", "8f"),
        ];
        let with = |name: &str, value: &str| {
            let facts = good.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let mut facts: Facts = facts.collect();
            facts.insert(name.to_owned(), value.to_owned());
            objection(&facts)
        };
        assert_eq!(with("role", "master"), None);
        assert_eq!(with("maxmemory_policy", "volatile-lru"), None, "nothing of ours ever expires");
        for (name, value, change) in [
            ("redis_version", "6.2.14", "7.0 or later"),
            ("role", "slave", "name the primary"),
            ("maxmemory_policy", "allkeys-lru", "noeviction"),
            ("master_replid", "", "allow INFO"),
        ] {
            let what = with(name, value).expect(name);
            assert!(what.contains(change), "{what}");
        }
    }
}
