//! Marks of the processes that hold attempts. A mark comes with the first claim of its process, and is renewed while it
//! lives; a process that ends takes its mark away. So one without a fresh mark is not there any more, or cannot reach the server.
//! Where the server takes marks away by itself, its clock alone counts.

use super::engine::{Applied, Batch, Group, Kv, Template, Write};
use super::layout;
use super::shared::Shared;
use crate::Error;
use semel_core::ids::OwnerId;
use semel_core::time::At;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const BEAT_EVERY: Duration = Duration::from_secs(10);

/// Marks have the time of the host that wrote them, and hosts' clocks differ by some seconds.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    owners: Mutex<Announced>,
}

#[derive(Debug, Default)]
struct Announced {
    all: BTreeSet<OwnerId>,
    unmarked: BTreeSet<OwnerId>,
}

impl Heartbeat {
    pub(super) fn announce(&self, owner: OwnerId) {
        let mut owners = self.lock();
        if owners.all.insert(owner) {
            owners.unmarked.insert(owner);
        }
    }

    /// This has landed, perhaps with marks in it.
    pub(super) fn landed(&self, group: &Group) {
        let writes = |name: &[u8]| {
            group.writes.iter().any(|write| matches!(write, Write::Put { name: put, .. } if put == name))
        };
        self.lock().unmarked.retain(|owner| !writes(&layout::holder(*owner)));
    }

    fn lock(&self) -> MutexGuard<'_, Announced> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(owner: OwnerId, now: At) -> (Vec<u8>, Template) {
    (layout::holder(owner), Template::plain(now.0.to_be_bytes().to_vec()))
}

impl<K: Kv> Shared<K> {
    /// The marks that are to come with a claim, so that nobody takes its holder for one that has ended.
    pub(super) fn missing_marks(&self) -> Vec<(Vec<u8>, Template)> {
        let now = (self.clock)();
        self.heartbeat.lock().unmarked.iter().map(|owner| mark(*owner, now)).collect()
    }

    pub(super) async fn beat(self: Arc<Self>) {
        let mut marked_with = None;
        loop {
            tokio::time::sleep(BEAT_EVERY).await;
            let owners = self.heartbeat.lock().all.clone();
            if owners.is_empty() {
                continue;
            }
            let lease = self.kv.keep_marks().await.ok().flatten();
            // With an earlier lease their marks have ended. One that does not get through grows old: that is what the
            // others then see.
            if (lease.is_none() || lease != marked_with) && self.write_marks(&owners).await.is_ok() {
                marked_with = lease;
            }
        }
    }

    pub(super) async fn take_marks_away(&self) {
        let owners = std::mem::take(&mut self.heartbeat.lock().all);
        let delete = |owner: &OwnerId| Write::Delete { name: layout::holder(*owner) };
        // A mark that stays is old in a minute.
        let _left = self.write(owners.iter().map(delete).collect()).await;
    }

    pub(super) async fn silent(&self, owners: &[OwnerId]) -> Result<Vec<OwnerId>, Error> {
        let names = owners.iter().map(|owner| layout::holder(*owner)).collect();
        let marks = self.kv.read(names, Vec::new()).await?.values;
        let now = (self.clock)();
        let is_fresh = |bytes: &[u8]| {
            if self.kv.takes_marks_away() {
                return true;
            }
            let at = bytes.try_into().map(u64::from_be_bytes).map(At);
            at.is_ok_and(|at| now < at.plus(SILENT_AFTER))
        };
        let silent =
            owners.iter().zip(marks).filter(|(_, mark)| !mark.as_ref().is_some_and(|m| is_fresh(&m.bytes)));
        Ok(silent.map(|(owner, _)| *owner).collect())
    }

    async fn write_marks(&self, owners: &BTreeSet<OwnerId>) -> Result<(), Error> {
        let now = (self.clock)();
        let put = |owner: &OwnerId| {
            let (name, value) = mark(*owner, now);
            Write::Put { name, value }
        };
        self.write(owners.iter().map(put).collect()).await
    }

    async fn write(&self, writes: Vec<Write>) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let lineage = self.lineage();
        let groups = [Group { writes, ..Group::default() }];
        let batch = Batch { lineage: &lineage, groups: &groups, durable: false, moved: &[] };
        match self.kv.apply(batch).await {
            Applied::Each(_) => Ok(()),
            Applied::OtherLineage => self.renew_lineage().await,
            Applied::Again(what) | Applied::Refused(what) | Applied::Unknown(what) => {
                Err(Error::NotWritten { what })
            }
        }
    }
}
