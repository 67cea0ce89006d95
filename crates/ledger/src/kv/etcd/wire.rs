//! The words of etcd's JSON gateway. Bytes are base64, and long numbers are strings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value as Json, json};

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

#[derive(Debug, Deserialize)]
pub(super) struct KeyValue {
    #[serde(default, deserialize_with = "bytes")]
    pub(super) key: Vec<u8>,
    #[serde(default, deserialize_with = "bytes")]
    pub(super) value: Vec<u8>,
    /// The revision of the last write.
    #[serde(default, deserialize_with = "number")]
    pub(super) mod_revision: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RangeAnswer {
    #[serde(default)]
    pub(super) kvs: Vec<KeyValue>,
    /// The limit has left some out.
    #[serde(default)]
    pub(super) more: bool,
}

#[derive(Debug, Deserialize)]
struct OperationAnswer {
    #[serde(default)]
    response_range: Option<RangeAnswer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) cluster_id: String,
    /// Of the whole store; that of the write, if there was one.
    #[serde(default, deserialize_with = "number")]
    pub(super) revision: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct LeaseAnswer {
    #[serde(rename = "ID")]
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct KeptLease {
    pub(super) result: KeptFor,
}

#[derive(Debug, Deserialize)]
pub(super) struct KeptFor {
    /// Seconds. A lease that has ended has none.
    #[serde(default, rename = "TTL", deserialize_with = "number")]
    pub(super) seconds: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct TxnAnswer {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    responses: Vec<OperationAnswer>,
}

impl TxnAnswer {
    pub(super) fn into_ranges(self) -> impl Iterator<Item = RangeAnswer> {
        self.responses.into_iter().map(|answer| answer.response_range.unwrap_or_default())
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Txn {
    pub(super) compare: Vec<Json>,
    pub(super) success: Vec<Json>,
    pub(super) failure: Vec<Json>,
}

pub(super) fn get(key: &[u8]) -> Json {
    json!({"request_range": {"key": base64(key)}})
}

/// Whether it is there, and since when.
pub(super) fn get_revision(key: &[u8]) -> Json {
    json!({"request_range": {"key": base64(key), "keys_only": true}})
}

/// In their order. With a `sort_order` etcd would read all of them whatever the limit is; even so it goes through its
/// index of them, in memory.
pub(super) fn get_keys(from: &[u8], to: &[u8], limit: usize) -> Json {
    json!({"request_range": {
        "key": base64(from), "range_end": base64(to), "limit": limit.to_string(), "keys_only": true,
    }})
}

pub(super) fn put(key: &[u8], value: &[u8]) -> Json {
    json!({"request_put": {"key": base64(key), "value": base64(value)}})
}

/// One that ends with a lease.
pub(super) fn put_leased(key: &[u8], value: &[u8], lease: &str) -> Json {
    json!({"request_put": {"key": base64(key), "value": base64(value), "lease": lease}})
}

pub(super) fn delete(key: &[u8]) -> Json {
    json!({"request_delete_range": {"key": base64(key)}})
}

/// A key that is not there has the revision 0.
pub(super) fn is_at(key: &[u8], revision: u64) -> Json {
    json!({"target": "MOD", "result": "EQUAL", "key": base64(key), "mod_revision": revision.to_string()})
}

/// The keys that one answer of a watch announces.
pub(super) fn news(line: &[u8]) -> impl Iterator<Item = u64> {
    #[derive(Default, Deserialize)]
    struct Watched {
        result: WatchAnswer,
    }
    #[derive(Default, Deserialize)]
    struct WatchAnswer {
        #[serde(default)]
        events: Vec<Event>,
    }
    #[derive(Deserialize)]
    struct Event {
        kv: KeyValue,
    }
    let watched: Watched = serde_json::from_slice(line).unwrap_or_default();
    let words =
        watched.result.events.into_iter().map(|event| String::from_utf8_lossy(&event.kv.value).into_owned());
    let keys = |words: String| {
        words.split(' ').filter_map(|key| u64::from_str_radix(key, 16).ok()).collect::<Vec<_>>()
    };
    words.flat_map(keys)
}
