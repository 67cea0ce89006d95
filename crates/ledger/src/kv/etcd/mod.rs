//! etcd, through its JSON gateway. Values and entries of the index are keys, and a batch is a few transactions, of
//! which a process has one on its way at a time: they all move the counter.

mod address;
mod client;
mod known_ends;
mod pack;
mod stretches;
mod wire;

pub use address::EtcdAddress;

use super::engine::{Applied, Batch, Found, Kv, Span, Value, Version};
use super::heartbeat::SILENT_AFTER;
use crate::Error;
use crate::engine_facts::EngineFacts;
use client::{Client, Failure};
use http_body_util::BodyExt;
use known_ends::KnownEnds;
use pack::{Admission, Counter, Pack};
use semel_core::time::At;
use std::collections::VecDeque;
use std::sync::{Mutex as StdMutex, PoisonError};
use stretches::{Stretch, Stretches};
use tokio::sync::Mutex;
use wire::{KeptLease, LeaseAnswer, RangeAnswer, Txn, TxnAnswer};

const TXN: &str = "/v3/kv/txn";
const GRANT: &str = "/v3/lease/grant";
const KEEP: &str = "/v3/lease/keepalive";

/// Reads of one transaction.
const READS_MAX: usize = 128;

/// Names in one answer.
const NAMES_AT_ONCE: usize = 5_000;

/// How often a pack is sent again because another process has moved the counter.
const RACES_MAX: usize = 100;

pub struct EtcdKv {
    address: EtcdAddress,
    client: Client,
    counter: Mutex<Counter>,
    /// The cluster that answered last.
    cluster: StdMutex<String>,
    ends: StdMutex<KnownEnds>,
    /// With which the marks of this process end.
    lease: Mutex<Option<String>>,
}

impl EtcdKv {
    /// Asks it once, so that a wrong address or login shows.
    pub async fn connect(address: EtcdAddress) -> Result<EtcdKv, Error> {
        let client = Client::new(address.clone());
        let (counter, cluster, lease) = (Mutex::default(), StdMutex::default(), Mutex::default());
        let kv = EtcdKv { address, client, counter, cluster, ends: StdMutex::default(), lease };
        let mut failed = None;
        for _ in 0..kv.address.endpoints.len() {
            match kv.transact(&get_counter(&kv.address)).await {
                Ok(answer) => {
                    *kv.counter.lock().await = self::counter(answer.into_ranges().next());
                    return Ok(kv);
                }
                Err(failure) => failed = Some(failure),
            }
        }
        let failed = failed.unwrap_or_else(|| Failure::NotSent("the URL names no host".to_owned()));
        Err(kv.client.not_read(failed))
    }

    async fn transact(&self, txn: &Txn) -> Result<TxnAnswer, Failure> {
        let answer: TxnAnswer = self.client.ask(TXN, txn).await?;
        self.cluster().clone_from(&answer.header.cluster_id);
        Ok(answer)
    }

    fn get_entries(&self, from: &[u8], to: &[u8], limit: usize) -> serde_json::Value {
        wire::get_keys(&self.address.key(b'i', from), &self.address.key(b'i', to), limit)
    }

    async fn read_long(&self, span: &Span, last: u64) -> Result<Vec<Vec<u8>>, Error> {
        let mut stretches = Stretches::of(span, last);
        while let Some(Stretch { from, to, limit }) = stretches.next() {
            let (found, more) = self.get_range(from, to, limit).await?;
            stretches.take(found, more);
        }
        Ok(stretches.into_entries())
    }

    /// The entries, and whether there are more.
    async fn get_range(
        &self,
        from: Vec<u8>,
        to: Vec<u8>,
        limit: usize,
    ) -> Result<(Vec<Vec<u8>>, bool), Error> {
        let success = vec![self.get_entries(&from, &to, limit)];
        let txn = Txn { compare: Vec::new(), success, failure: Vec::new() };
        let answer = self.transact(&txn).await.map_err(|failure| self.client.not_read(failure))?;
        let found = answer.into_ranges().next().unwrap_or_default();
        let more = found.more;
        Ok((self.entries(found), more))
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, KnownEnds> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self, range: RangeAnswer) -> Vec<Vec<u8>> {
        let before = self.address.key(b'i', b"").len();
        range.kvs.into_iter().map(|found| found.key.get(before..).unwrap_or_default().to_vec()).collect()
    }

    fn cluster(&self) -> std::sync::MutexGuard<'_, String> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease, granted if there is none.
    async fn granted(&self) -> Result<String, Failure> {
        let mut lease = self.lease.lock().await;
        if let Some(lease) = &*lease {
            return Ok(lease.clone());
        }
        let wish = serde_json::json!({"TTL": SILENT_AFTER.as_secs().to_string()});
        let LeaseAnswer { id } = self.client.ask(GRANT, &wish).await?;
        Ok(lease.insert(id).clone())
    }

    /// Sends one pack until it lands or all of its groups have lost.
    async fn send(
        &self,
        counter: &mut Counter,
        groups: &[super::Group],
        mut pack: Pack<'_>,
        moved: &[u64],
        landed: &mut [bool],
    ) -> Result<(), Failure> {
        // A lease alone writes nothing.
        let lease = match pack.groups.iter().any(|(_, group)| pack::has_mark(group)) {
            true => Some(self.granted().await.map_err(|failure| Failure::NotSent(failure.into_words()))?),
            false => None,
        };
        for _ in 0..RACES_MAX {
            if pack.groups.is_empty() {
                return Ok(());
            }
            let (txn, last) = pack.transaction(&self.address, *counter, moved, lease.as_deref());
            let answer = match self.transact(&txn).await {
                // It may have ended, and the next try has another.
                Err(Failure::Refused(what)) if lease.is_some() => {
                    *self.lease.lock().await = None;
                    return Err(Failure::NotSent(what));
                }
                answer => answer?,
            };
            if answer.succeeded {
                *counter = Counter { last, revision: answer.header.revision };
                pack.groups.iter().for_each(|(place, _)| landed[*place] = true);
                return Ok(());
            }
            let mut found: Vec<RangeAnswer> = answer.into_ranges().collect();
            *counter = self::counter(found.pop());
            let losers = pack.losers(&found.iter().map(version).collect::<Vec<_>>());
            let mut left = Pack::default();
            for (place, _) in pack.groups.iter().filter(|(place, _)| !losers.contains(place)) {
                left.admit(*place, &groups[*place]);
            }
            pack = left;
        }
        Err(Failure::NotSent("other processes keep moving the counter".to_owned()))
    }
}

fn get_counter(address: &EtcdAddress) -> Txn {
    let success = vec![wire::get(&address.key(b'n', b""))];
    Txn { compare: Vec::new(), success, failure: Vec::new() }
}

fn counter(found: Option<RangeAnswer>) -> Counter {
    let found = found.and_then(|mut range| range.kvs.pop());
    found.map_or_else(Counter::default, |found| {
        let last = found.value.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Counter { last, revision: found.mod_revision }
    })
}

fn version(range: &RangeAnswer) -> Version {
    range.kvs.first().map_or(Version::ABSENT, |found| Version(found.mod_revision))
}

impl Kv for EtcdKv {
    async fn read(&self, names: Vec<Vec<u8>>, spans: Vec<Span>) -> Result<Found, Error> {
        let get = |name: &Vec<u8>| wire::get(&self.address.key(b'v', name));
        let near: Vec<Span> = spans.iter().map(|span| self.ends().narrowed(span)).collect();
        let at_once = near.iter().filter(|span| !stretches::is_for(span));
        let range = |span: &Span| self.get_entries(&span.first(), &span.end(), span.limit);
        let last = wire::get(&self.address.key(b'n', b""));
        let asked: Vec<_> = names.iter().map(get).chain([last]).chain(at_once.map(range)).collect();
        let mut ranges = Vec::with_capacity(asked.len());
        for part in asked.chunks(READS_MAX) {
            let txn = Txn { compare: Vec::new(), success: part.to_vec(), failure: Vec::new() };
            let answer = self.transact(&txn).await.map_err(|failure| self.client.not_read(failure))?;
            ranges.extend(answer.into_ranges());
        }
        if ranges.len() != asked.len() {
            return Err(Error::NotRead { what: "the server left a question unanswered".to_owned() });
        }
        let mut ranges = ranges.into_iter();
        let values: Vec<_> = ranges.by_ref().take(names.len()).collect();
        let last = counter(ranges.next()).last;
        let value = |mut range: RangeAnswer| {
            let found = range.kvs.pop()?;
            Some(Value { version: Version(found.mod_revision), bytes: found.value })
        };
        let values = values.into_iter().map(value).collect();
        let mut entries = Vec::with_capacity(spans.len());
        for (span, near) in spans.iter().zip(&near) {
            // All that is read here is later than the values, which may guard it.
            let found = match stretches::is_for(span) {
                true => self.read_long(span, last).await?,
                false => match self.entries(ranges.next().unwrap_or_default()) {
                    few if few.len() < span.limit && near != span => {
                        self.get_range(span.first(), span.end(), span.limit).await?.0
                    }
                    enough => enough,
                },
            };
            self.ends().note(span, &found);
            entries.push(found);
        }
        Ok(Found { values, entries, last })
    }

    async fn names(&self, prefix: u8) -> Result<Vec<Vec<u8>>, Error> {
        let (mut from, to) = (self.address.key(b'v', &[prefix]), self.address.key(b'v', &[prefix + 1]));
        let before = self.address.key(b'v', b"").len();
        let mut names = Vec::new();
        loop {
            let success = vec![wire::get_keys(&from, &to, NAMES_AT_ONCE)];
            let txn = Txn { compare: Vec::new(), success, failure: Vec::new() };
            let answer = self.transact(&txn).await.map_err(|failure| self.client.not_read(failure))?;
            let found = answer.into_ranges().next().unwrap_or_default().kvs;
            let Some(last) = found.last() else { return Ok(names) };
            from = [&last.key[..], &[0]].concat();
            names.extend(found.iter().filter_map(|found| found.key.get(before..)).map(<[u8]>::to_vec));
        }
    }

    async fn apply(&self, batch: Batch<'_>) -> Applied {
        // etcd cannot compare it. Another cluster is known by every read of a commit. One that was restored from a snapshot
        // may have its old id: those who saw more of it begin the epoch.
        if *self.cluster() != batch.lineage {
            return Applied::OtherLineage;
        }
        let mut counter = self.counter.lock().await;
        let mut landed = vec![false; batch.groups.len()];
        let mut waiting: VecDeque<usize> = (0..batch.groups.len()).collect();
        let mut sent = false;
        while !waiting.is_empty() {
            let mut pack = Pack::default();
            waiting.retain(|place| pack.admit(*place, &batch.groups[*place]) == Admission::Full);
            match self.send(&mut counter, batch.groups, pack, batch.moved, &mut landed).await {
                Ok(()) => sent = true,
                // Others have landed, so the whole batch is to be looked at again.
                Err(failure) if sent => return Applied::Unknown(failure.into_words()),
                Err(Failure::NotSent(what)) => return Applied::Again(what),
                Err(Failure::Refused(what)) => return Applied::Refused(what),
                Err(Failure::Unknown(what)) => return Applied::Unknown(what),
            }
        }
        Applied::Each(landed)
    }

    async fn lineage(&self) -> Result<String, Error> {
        let answer = self.transact(&get_counter(&self.address)).await;
        Ok(answer.map_err(|failure| self.client.not_read(failure))?.header.cluster_id)
    }

    fn takes_marks_away(&self) -> bool {
        true
    }

    async fn keep_marks(&self) -> Result<Option<String>, Error> {
        let mut lease = self.lease.lock().await;
        let Some(id) = lease.clone() else { return Ok(None) };
        let kept: Result<KeptLease, Failure> = self.client.ask(KEEP, &serde_json::json!({"ID": id})).await;
        match kept {
            Ok(kept) if kept.result.seconds > 0 => Ok(Some(id)),
            Ok(_) => {
                *lease = None;
                Ok(None)
            }
            Err(failure) => Err(self.client.not_read(failure)),
        }
    }

    async fn listen(&self, heard: impl Fn(u64) + Send) {
        let key = wire::base64(&self.address.key(b'm', b""));
        let watch = serde_json::json!({"create_request": {"key": key}}).to_string();
        let Ok(answer) = self.client.send("/v3/watch", watch.into()).await else { return };
        let (mut body, mut text) = (answer.into_body(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            text.extend(frame.into_data().unwrap_or_default());
            // One answer is one line.
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                wire::news(&line).for_each(&heard);
            }
        }
    }

    fn engine(&self) -> &'static str {
        "etcd"
    }

    fn is_durable(&self) -> bool {
        true
    }

    async fn describe(&self, now: At) -> Result<EngineFacts, Error> {
        self.client.describe(now).await.map_err(|failure| self.client.not_read(failure))
    }

    fn address(&self) -> String {
        self.address.to_string()
    }
}

impl std::fmt::Debug for EtcdKv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdKv").field("address", &self.address).finish_non_exhaustive()
    }
}
