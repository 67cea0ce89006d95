//! The ledger on its server: its founding, its secret, and the history that it was last written in.

use super::engine::{Applied, Batch, Group, Kv, Template, Version, Write};
use super::group::GroupBuilder;
use super::heartbeat::Heartbeat;
use super::layout;
use super::prefetch::{Look, Prefetched};
use super::{Clock, codec};
use crate::Error;
use crate::entropy::{OsEntropy, nonce};
use crate::journal;
use crate::server_io::OTHER_LEDGER;
use crate::small_records::{Epoch, cell_value};
use crate::store::{Cell, Commit, EPOCH_CELL, Put, Revision};
use crate::waiters::Waiters;
use semel_core::digest::Secret;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The stored form that this code writes.
pub const FORMAT: u32 = 2;

/// How often a race with other processes is run again before somebody looks.
const RACES_MAX: usize = 20;

/// What all tasks of a store use.
pub(super) struct Shared<K> {
    pub(super) kv: K,
    pub(super) waiters: Arc<Waiters>,
    pub(super) clock: Clock,
    pub(super) heartbeat: Heartbeat,
    /// Of the value that founds the ledger: another one means that this is another ledger.
    founded: Version,
    /// A newer semel has written it: it is read, and nothing is written.
    pub(super) is_newer: bool,
    lineage: RwLock<Arc<str>>,
    /// Whether the ledger says of itself that every acknowledged commit is on a disk.
    is_known_durable: AtomicBool,
}

impl<K: Kv> Shared<K> {
    /// Founds the ledger if there is none. Returns its secret.
    pub(super) async fn open(
        kv: K,
        fresh_secret: [u8; 32],
        clock: Clock,
    ) -> Result<(Shared<K>, Secret), Error> {
        let (founded, is_newer, secret) = found(&kv, fresh_secret).await?;
        let lineage = RwLock::new(Arc::from(""));
        let shared = Shared {
            kv,
            waiters: Arc::default(),
            clock,
            heartbeat: Heartbeat::default(),
            founded,
            is_newer,
            lineage,
            is_known_durable: AtomicBool::new(false),
        };
        if !is_newer {
            shared.renew_lineage().await?;
        }
        Ok((shared, secret))
    }

    pub(super) fn lineage(&self) -> Arc<str> {
        Arc::clone(&self.lineage.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses to go on with a ledger that is not the one that was opened: all keys come from its secret.
    pub(super) fn must_be_same(&self, state: &Prefetched) -> Result<(), Error> {
        if state.version(&layout::ledger()) == self.founded {
            return Ok(());
        }
        Err(Error::NotWritten { what: OTHER_LEDGER.to_owned() })
    }

    /// Writes down that the server no longer writes to a disk first: after a restart nobody else could tell.
    pub(super) async fn note_lost_durability(&self) {
        if self.is_known_durable.load(Ordering::Relaxed) && !self.kv.is_durable() {
            let _with_the_next_batch = self.renew_lineage().await;
        }
    }

    /// Begins a new epoch if the server has another history than the ledger was last written in.
    pub(super) async fn renew_lineage(&self) -> Result<(), Error> {
        for _ in 0..RACES_MAX {
            let (lineage, durable) = (self.kv.lineage().await?, self.kv.is_durable());
            let names = vec![layout::ledger(), layout::lineage(), layout::cell(EPOCH_CELL)];
            let found = self.kv.read(names.clone(), Vec::new()).await?;
            let state = Prefetched::new(names, Vec::new(), found);
            self.must_be_same(&state)?;
            let stored = match Look::at(&state).value(layout::lineage()) {
                Ok(Some(stored)) => stored.bytes.split_first(),
                _ => None,
            };
            let (was_durable, known) = stored.map_or((false, &[][..]), |(was, known)| (*was == 1, known));
            let is_same = known == lineage.as_bytes();
            let is_there = is_same && was_durable == durable
                || match is_same || was_durable && self.kv.has_only_restarted().await? {
                    true => self.write_lineage(&state, &lineage, durable).await?,
                    false => self.write_epoch(&state, &lineage, durable).await?,
                };
            if is_there {
                *self.lineage.write().unwrap_or_else(PoisonError::into_inner) = Arc::from(lineage);
                self.is_known_durable.store(durable, Ordering::Relaxed);
                self.waiters.announced(EPOCH_CELL.short());
                return Ok(());
            }
        }
        let what = "other processes keep changing the epoch of the ledger".to_owned();
        Err(Error::NotWritten { what })
    }

    /// `false`: somebody else was faster.
    async fn write_lineage(&self, state: &Prefetched, lineage: &str, durable: bool) -> Result<bool, Error> {
        let name = layout::lineage();
        let group = Group {
            compares: vec![(name.clone(), state.version(&name))],
            writes: vec![Write::Put { name, value: lineage_value(lineage, durable) }],
            numbers: 0,
        };
        landed(self.kv.apply(alone(lineage, &[group])).await)
    }

    /// `false`: somebody else was faster.
    async fn write_epoch(&self, state: &Prefetched, lineage: &str, durable: bool) -> Result<bool, Error> {
        let unexpected = || codec::damaged("the epoch");
        let mut look = Look::at(state);
        look.value(layout::lineage()).map_err(|_| unexpected())?;
        let cell = match look.value(layout::cell(EPOCH_CELL)).map_err(|_| unexpected())? {
            None => None,
            Some(value) => {
                let (last, body) = codec::cell(value)?;
                Some(Cell { revision: last.revision, body: body.to_vec() })
            }
        };
        let now = (self.clock)();
        let previous: Option<Epoch> = cell.as_ref().and_then(|cell| cell_value(EPOCH_CELL, cell));
        let reason = "the server has another history than before: it was restarted or restored, or its replicas have changed";
        let epoch = Epoch::after(previous.as_ref(), reason, now);
        let data = serde_json::json!({"number": epoch.number, "reason": reason});
        let put = Put::cell(EPOCH_CELL, cell.map_or(Revision::ABSENT, |cell| cell.revision), &epoch);
        let lines = vec![journal::note("commits_lost", None, None, data, now)];
        let commit = Commit { journal: lines, ..Commit::of(nonce(&OsEntropy), vec![put]) };
        let mut builder = GroupBuilder::new(look);
        builder.add(&commit, vec![None], &[None]).map_err(|_| unexpected())?;
        builder.put(layout::lineage(), lineage_value(lineage, durable));
        landed(self.kv.apply(alone(lineage, &[builder.build()])).await)
    }
}

/// The history, and whether it writes to a disk before it acknowledges: what a restart has lost depends on the settings
/// before it, not on those after it.
fn lineage_value(lineage: &str, durable: bool) -> Template {
    Template::plain([&[u8::from(durable)], lineage.as_bytes()].concat())
}

fn alone<'g>(lineage: &'g str, groups: &'g [Group]) -> Batch<'g> {
    Batch { lineage, groups, durable: true, moved: &[] }
}

/// Whether the only group of a batch did. After an uncertain answer the state is to be read again.
fn landed(applied: Applied) -> Result<bool, Error> {
    match applied {
        Applied::Each(landed) => Ok(landed == [true]),
        Applied::OtherLineage | Applied::Unknown(_) => Ok(false),
        Applied::Again(what) | Applied::Refused(what) => Err(Error::NotWritten { what }),
    }
}

async fn found<K: Kv>(kv: &K, fresh_secret: [u8; 32]) -> Result<(Version, bool, Secret), Error> {
    let refused = |what: &str| Error::Engine { ledger: kv.address(), what: what.to_owned() };
    for _ in 0..RACES_MAX {
        let mut found = kv.read(vec![layout::ledger()], Vec::new()).await?;
        if let Some(value) = found.values.pop().flatten() {
            let (format, secret) =
                value.bytes.split_first_chunk::<4>().ok_or_else(|| refused("its first value is damaged"))?;
            let format = u32::from_be_bytes(*format);
            let is_newer = format > FORMAT;
            if format < FORMAT {
                return Err(refused(&format!(
                    "an earlier semel has written it: it has format {format}, and this one reads {FORMAT}"
                )));
            }
            // A newer one may have put more behind it.
            let (secret, rest) =
                secret.split_first_chunk::<32>().ok_or_else(|| refused("its secret is damaged"))?;
            if !rest.is_empty() && !is_newer {
                return Err(refused("its secret is damaged"));
            }
            return Ok((value.version, is_newer, Secret::new(*secret)));
        }
        let lineage = kv.lineage().await?;
        let group = Group {
            compares: vec![(layout::ledger(), Version::ABSENT)],
            writes: vec![
                Write::Put {
                    name: layout::ledger(),
                    value: Template::plain([&FORMAT.to_be_bytes()[..], &fresh_secret].concat()),
                },
                Write::Put { name: layout::lineage(), value: lineage_value(&lineage, kv.is_durable()) },
            ],
            numbers: 0,
        };
        landed(kv.apply(alone(&lineage, &[group])).await)?;
    }
    Err(refused("other processes keep changing it while it is opened"))
}
