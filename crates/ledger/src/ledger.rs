//! The ledger: current truth per intent, over any store.

use crate::doubt_observer::{DoubtObserver, changes_doubt};
use crate::entropy::{Entropy, nonce};
use crate::holders::{Holders, Liveness};
use crate::position::KnownPosition;
use crate::record::{StoredEffect, decode, index_after, run_digest};
use crate::small_records::{Epoch, Fence, cell_value, fence_key};
use crate::spool::Spool;
use crate::store::{
    ALIKE_MAX, Against, By, Card, Commit, Committed, Conflict, Cursor, Durability, EPOCH_CELL, Index,
    JournalLine, Latest, PAGE_ROWS_MAX, Page, Part, Put, ReplyChange, Require, Revision, Row, SeenAlike,
    Store, Versioned,
};
use crate::unheld::UnheldClaims;
use crate::{Error, checksum, journal};
use semel_core::digest::{Digest, Secret};
use semel_core::effect::{Attempt, Effect, State, Verdict};
use semel_core::ids::{EffectId, OwnerId};
use semel_core::lifecycle::{self, Alarm, Event, Lapse};
use semel_core::time::At;
use semel_core::undo::Undo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Remembers what was intended and what became of it. Knows no rules, waits for nobody, calls no upstream.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) holders: Arc<dyn Holders>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) secret: Secret,
    /// Where answers wait that cannot reach the store.
    pub(crate) spool: Option<Spool>,
    pub(crate) unheld: UnheldClaims,
    pub(crate) known: KnownPosition,
    /// Told of what this process writes down although no attempt has answered.
    observer: Option<Arc<dyn DoubtObserver>>,
}

/// The ledger's knowledge of one intent key.
#[derive(Debug, Clone)]
pub struct RecordSnapshot {
    pub key: Digest,
    /// Revision of the record's newest effect; 0 = no effect at all.
    pub revision: Revision,
    pub epoch: Revision,
    /// How far the ledger had come, at least: [`Versioned::position`](crate::store::Versioned::position).
    pub position: u64,
    /// Or an older effect that a call is about. Shared: it is carried through every step of a call, and a call that waits
    /// should be small.
    pub newest: Option<Arc<StoredEffect>>,
    pub reply: Option<KeptReply>,
}

/// A reply that the store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptReply {
    Whole(Vec<u8>),
    /// Its bytes are not those that were recorded. Its effect happened all the same.
    Damaged,
}

impl KeptReply {
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            KeptReply::Whole(bytes) => Some(bytes),
            KeptReply::Damaged => None,
        }
    }

    fn open(key: Digest, ordinal: u32, sealed: &[u8]) -> KeptReply {
        let bytes = checksum::open(&[&key.0, &ordinal.to_be_bytes()], sealed);
        bytes.map_or(KeptReply::Damaged, |bytes| KeptReply::Whole(bytes.to_vec()))
    }
}

impl RecordSnapshot {
    /// An unseen intent, in a store that never forgot anything.
    pub fn nothing(key: Digest) -> Self {
        let (revision, epoch) = (Revision::ABSENT, Revision::ABSENT);
        RecordSnapshot { key, revision, epoch, position: 0, newest: None, reply: None }
    }

    /// Inserts the first effect of this record, or its next one. Also the record once that has landed.
    pub(crate) fn insert(&self, effect: Effect, index: Index) -> (Put, RecordSnapshot) {
        let stored = StoredEffect::first(self.key, index, effect);
        self.write(stored, (self.revision, Against::Newest), Part::Fixed, ReplyChange::Drop, None)
    }

    /// Writes the effect that was seen as it is after a change. Also the record once that has landed.
    pub(crate) fn overwrite(
        &self,
        seen: &StoredEffect,
        (effect, index): (Effect, Index),
        against: Against,
        reply: ReplyChange,
    ) -> (Put, RecordSnapshot) {
        let (stored, changed) = seen.after(self.key, index, effect);
        let kept = match &reply {
            ReplyChange::Keep => self.reply.clone(),
            ReplyChange::Set(bytes) => Some(KeptReply::Whole(bytes.clone())),
            ReplyChange::Drop => None,
        };
        self.write(stored, (seen.revision, against), changed, reply, kept)
    }

    fn write(
        &self,
        stored: StoredEffect,
        (expected, against): (Revision, Against),
        changed: Part,
        reply: ReplyChange,
        kept: Option<KeptReply>,
    ) -> (Put, RecordSnapshot) {
        let ordinal = stored.effect.occurrence.number;
        let put = Put::Record {
            key: self.key,
            ordinal,
            expected,
            against,
            index: Box::new(stored.index.clone()),
            body: stored.body(self.key),
            changed,
            reply: match reply {
                ReplyChange::Set(bytes) => {
                    ReplyChange::Set(checksum::seal(&[&self.key.0, &ordinal.to_be_bytes()], bytes))
                }
                other => other,
            },
        };
        // Of an older effect this revision may be too high: then its reader looks again.
        let revision = self.revision.max(expected.next());
        let newest = Some(Arc::new(StoredEffect { revision: expected.next(), ..stored }));
        let position = self.position + u64::from(self.position > 0);
        let after =
            RecordSnapshot { key: self.key, revision, epoch: self.epoch, position, newest, reply: kept };
        (put, after)
    }

    pub fn effect(&self) -> Option<&Effect> {
        self.newest.as_ref().map(|stored| &stored.effect)
    }
}

/// A page of what can be read.
#[derive(Debug, Clone)]
pub struct Listing {
    pub items: Vec<(Digest, StoredEffect)>,
    /// Those among them that cannot be read.
    pub damaged: Vec<EffectId>,
    pub next: Option<Cursor>,
}

/// A record after a transition that this call wrote, or saw written.
#[derive(Debug, Clone)]
pub struct RecordUpdate {
    pub snapshot: RecordSnapshot,
    pub alarm: Option<Alarm>,
    /// Set when an answer came too late for its record: then it is a line in the journal and nothing else.
    pub late: Option<Late>,
}

/// Why an answer is evidence only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// So many attempts came after this one that its effect has dropped it.
    Dropped,
    /// The record does not know this attempt: a failover has lost its claim, perhaps given its number to another.
    Lost,
}

/// Somebody else may win a race for one record this often in a row; more means that something spins.
pub(crate) const RACES_MAX: usize = 64;

/// A store that so often in a row cannot say what it did is as good as gone.
const COMMITS_AGAIN_MAX: usize = 4;

impl Ledger {
    pub fn new(
        store: Arc<dyn Store>,
        holders: Arc<dyn Holders>,
        entropy: impl Entropy,
        secret: Secret,
    ) -> Self {
        let (unheld, known) = (UnheldClaims::default(), KnownPosition::default());
        let entropy = Arc::new(entropy);
        Ledger { store, holders, entropy, secret, spool: None, unheld, known, observer: None }
    }

    /// Lapses are derived on read, by any reader, and doubts are cleared by many, so both are told where they are
    /// written.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn DoubtObserver>) -> Self {
        Ledger { observer: Some(observer), ..self }
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub fn holders(&self) -> &dyn Holders {
        &*self.holders
    }

    pub fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    pub async fn find(&self, key: Digest) -> Result<RecordSnapshot, Error> {
        let versioned = self.store.read(key).await?;
        let (newest, reply) = match versioned.row {
            None => (None, None),
            Some(mut row) => {
                let reply = row.reply.take().map(|sealed| KeptReply::open(key, row.ordinal, &sealed));
                (Some(Arc::new(decode(row))), reply)
            }
        };
        let Versioned { revision, epoch, position, .. } = versioned;
        Ok(RecordSnapshot { key, revision, epoch, position, newest, reply })
    }

    /// Finds a record and records what time and death have done to it since: lapses are derived on read.
    ///
    /// If the lapse cannot be written it still holds for the caller: the ledger's trouble must not hide a doubt.
    pub async fn observe(&self, key: Digest, now: At) -> Result<RecordSnapshot, Error> {
        let mut snapshot = self.find_whole(key, now).await?;
        for _ in 0..RACES_MAX {
            let overdue = self.overdue(&snapshot, now).await?;
            // Looked for last: a holder that is dead by now, or a state that somebody wrote, came after it.
            if self.import(key, now).await? {
                snapshot = self.find(key).await?;
                continue;
            }
            let Some(event) = overdue else {
                return match snapshot.effect().is_some_and(has_undo_call) {
                    true => Box::pin(self.linked(snapshot)).await,
                    false => Ok(snapshot),
                };
            };
            // Rare, and large beside a read.
            match Box::pin(self.write(&snapshot, RecordChange::to(&event, now))).await {
                Ok(ChangeResult::Done(changed)) => snapshot = changed.snapshot,
                Ok(ChangeResult::Moved) => snapshot = self.find(key).await?,
                Err(Error::NotWritten { .. }) => {
                    if let Some(stored) = &mut snapshot.newest {
                        Arc::make_mut(stored).effect = lifecycle::next(&stored.effect, &event)?.effect;
                    }
                    return Ok(snapshot);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::NotRead { what: format!("record {key} kept changing") })
    }

    /// Changes of the newest effect that nobody has written down yet.
    async fn overdue(&self, snapshot: &RecordSnapshot, now: At) -> Result<Option<Event>, Error> {
        let Some(stored) = snapshot.newest.as_ref().filter(|stored| !stored.newer) else { return Ok(None) };
        let effect = &stored.effect;
        if let Some(attempt) = effect.open_attempt() {
            if let Some(end) = self.end_of_unheld(attempt, now) {
                return Ok(Some(end));
            }
            let lapse = lapse_of(attempt, self.liveness_of(attempt).await?, now);
            return Ok(lapse.map(|why| Event::Lapsed { why, at: now }));
        }
        if !matches!(effect.state, State::InDoubt(_)) {
            return Ok(None);
        }
        let unproven = |a: &&Attempt| a.gone_at.is_none() && a.verdict == Verdict::Unproven;
        let unproven: Vec<_> = effect.attempts.iter().filter(unproven).collect();
        let holders = self.liveness(unproven.iter().map(|attempt| attempt.owner)).await?;
        let gone = unproven.into_iter().zip(holders).find(|(_, holder)| *holder == Liveness::Dead);
        Ok(gone.map(|(attempt, _)| Event::SenderGone { attempt: attempt.number, at: now }))
    }

    /// Tells the state of each holder, in their order. A client that took its claim away counts as alive: there
    /// is nothing to be known of it.
    pub async fn liveness(&self, owners: impl Iterator<Item = OwnerId>) -> Result<Vec<Liveness>, Error> {
        let owners: Vec<_> = owners.collect();
        let mut asked: Vec<_> = owners.iter().copied().filter(|owner| *owner != OwnerId::AWAY).collect();
        asked.sort_unstable();
        asked.dedup();
        let known = if asked.is_empty() { Vec::new() } else { self.holders.liveness(&asked).await? };
        let of = |owner| asked.binary_search(owner).map_or(Liveness::Alive, |place| known[place]);
        Ok(owners.iter().map(of).collect())
    }

    pub async fn liveness_of(&self, attempt: &Attempt) -> Result<Liveness, Error> {
        Ok(self.liveness([attempt.owner].into_iter()).await?[0])
    }

    pub(crate) fn observe_duplicate(&self, effect: &Effect) {
        if let Some(observer) = &self.observer {
            observer.observe_duplicate(effect);
        }
    }

    /// Applies an event to the effect of a snapshot, at the revision that was read.
    pub(crate) async fn write(
        &self,
        snapshot: &RecordSnapshot,
        change: RecordChange<'_>,
    ) -> Result<ChangeResult, Error> {
        let is_observed = changes_doubt(snapshot.effect(), change.event);
        let tell = |changed: &RecordUpdate| {
            if let (true, Some(observer), Some(effect)) =
                (is_observed, &self.observer, changed.snapshot.effect())
            {
                observer.observe_doubt(effect);
            }
        };
        let (commit, changed) = self.change(snapshot, change)?;
        let is_progress = commit.is_progress();
        match self.commit(commit).await? {
            Ok(()) => {
                if is_progress {
                    self.known.raise(changed.snapshot.reached());
                }
                tell(&changed);
                Ok(ChangeResult::Done(changed))
            }
            Err(_) => Ok(ChangeResult::Moved),
        }
    }

    /// Commits. One of which nobody knows whether it landed is committed again: the store knows its nonce (rule 15).
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Result<(), Conflict>, Error> {
        self.commit_surely(commit).await.0
    }

    /// The same, and whether that is the end of it. Once an answer was lost, a conflict may be with what the commit has
    /// written itself.
    pub(crate) async fn commit_surely(&self, commit: Commit) -> (Result<Result<(), Conflict>, Error>, bool) {
        let commit = Arc::new(commit);
        for again in 0..=COMMITS_AGAIN_MAX {
            match self.store.commit(Arc::clone(&commit)).await {
                Ok(Committed::Done) => return (Ok(Ok(())), true),
                Ok(Committed::Conflict(conflict)) => return (Ok(Err(conflict)), again == 0),
                Ok(Committed::Unknown) => {}
                Err(error) if again == 0 => return (Err(error), true),
                Err(error) => return (Err(Error::Undetermined { what: error.to_string() }), false),
            }
        }
        (Err(Error::Undetermined { what: "the store does not answer".into() }), false)
    }

    /// The commit of a change, and the record as it is once that has landed.
    fn change(
        &self,
        snapshot: &RecordSnapshot,
        change: RecordChange<'_>,
    ) -> Result<(Commit, RecordUpdate), Error> {
        let RecordChange { event, against, reply, beside, note, durability, at, undo } = change;
        let stored = snapshot.newest.as_ref().ok_or_else(|| Error::NoSuchEffect(snapshot.key.to_string()))?;
        if stored.newer {
            return Err(Error::NewerRecord { effect: stored.effect.id.to_string() });
        }
        let mut step = lifecycle::next(&stored.effect, event)?;
        if let Some(undo) = undo {
            lifecycle::keep_undo(&mut step.effect, event, undo);
        }
        let index = index_after(&stored.index, &step.effect);
        let run = stored.index.run;
        // A mark of delivery says all by itself, and stands in its row.
        let is_mark = matches!(event, Event::Delivered { .. });
        let mut lines: Vec<_> =
            (!is_mark).then(|| journal::line(event, &step.effect, run, at)).into_iter().collect();
        lines.extend(note.map(|(kind, data)| journal::note(kind, Some(&step.effect), run, data, at)));
        lines.extend(step.alarm.map(|alarm| journal::alarm(alarm, &step.effect, run, at)));
        let (put, after) = snapshot.overwrite(stored, (step.effect, index), against, reply);
        let puts = std::iter::once(put).chain(beside).collect();
        let commit = Commit {
            // The record as it was read is the record of one epoch: a failover brings back older rows, and later
            // ones get the revisions and attempt numbers that were lost. A refused writer reads again.
            require: Require { cells: vec![(EPOCH_CELL, snapshot.epoch)], ..Require::default() },
            journal: lines,
            durability,
            ..Commit::of(nonce(self.entropy()), puts)
        };
        Ok((commit, RecordUpdate { snapshot: after, alarm: step.alarm, late: None }))
    }

    /// A line in the journal about something that changed no record.
    pub async fn note(&self, line: JournalLine, durability: Durability) -> Result<(), Error> {
        self.noted(vec![line], durability).await
    }

    /// Lines alone leave no nonce behind, so those that may not have landed may come to stand twice: evidence may rest
    /// on them.
    pub(crate) async fn noted(&self, journal: Vec<JournalLine>, durability: Durability) -> Result<(), Error> {
        let commit = Commit { journal, durability, ..Commit::of(nonce(self.entropy()), Vec::new()) };
        let written = self.commit(commit).await?;
        written.expect("a commit that puts and requires nothing meets no conflict");
        Ok(())
    }

    pub async fn by_id(&self, id: EffectId) -> Result<(Digest, StoredEffect), Error> {
        let page = self.store.scan(By::Effect(id.0), None, 1).await?;
        let row = page.items.into_iter().next().ok_or_else(|| Error::NoSuchEffect(id.to_string()))?;
        Ok((row.key, decode(row)))
    }

    /// `None`: retention has dropped it, or there was none.
    pub async fn reply(&self, key: Digest, occurrence: u32) -> Result<Option<KeptReply>, Error> {
        let sealed = self.store.reply(key, occurrence).await?;
        Ok(sealed.map(|sealed| KeptReply::open(key, occurrence, &sealed)))
    }

    /// A record at one of its effects: as its newest, or in its place.
    pub async fn at(&self, key: Digest, number: u32) -> Result<RecordSnapshot, Error> {
        let snapshot = self.find(key).await?;
        if snapshot.effect().is_none_or(|newest| newest.occurrence.number == number) {
            return Ok(snapshot);
        }
        let Some(older) = self.occurrence(key, number).await? else { return Ok(snapshot) };
        let reply = self.reply(key, number).await?;
        Ok(RecordSnapshot { newest: Some(Arc::new(older)), reply, ..snapshot })
    }

    /// One effect of a record, by its place in it.
    pub async fn occurrence(&self, key: Digest, number: u32) -> Result<Option<StoredEffect>, Error> {
        Ok(self.store.occurrence(key, number).await?.map(decode))
    }

    pub async fn list(
        &self,
        by: By,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Digest, StoredEffect)>, Error> {
        let page = self.store.scan(by, after, limit).await?;
        let decoded = page.items.into_iter().map(|row: Row| (row.key, decode(row)));
        Ok(Page { items: decoded.collect(), next: page.next })
    }

    /// The same for people who look at many, with the damaged ones apart.
    pub async fn listing(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Listing, Error> {
        let page = self.store.scan(by, after, limit).await?;
        let mut listing = Listing { items: Vec::new(), damaged: Vec::new(), next: page.next };
        for row in page.items {
            let key = row.key;
            match decode(row) {
                stored if stored.effect.is_damaged() => listing.damaged.push(stored.effect.id),
                stored => listing.items.push((key, stored)),
            }
        }
        Ok(listing)
    }

    /// The open effect of a family under another key than this, if there is one.
    pub async fn open_relative(&self, family: Digest, except: Digest) -> Result<Option<StoredEffect>, Error> {
        let mut after = None;
        loop {
            let page = self.store.scan(By::Open, after, PAGE_ROWS_MAX).await?;
            let is_relative = |row: &Row| row.index.family == family && row.key != except;
            if let Some(row) = page.items.into_iter().find(is_relative) {
                return Ok(Some(decode(row)));
            }
            match page.next {
                None => return Ok(None),
                next => after = next,
            }
        }
    }

    /// The cards of all that a call is compared with. The claim requires that they are as they were seen.
    pub async fn cards(&self, alike: Digest) -> Result<(SeenAlike, Vec<Card>), Error> {
        let cards = self.store.cards(alike).await?;
        Ok((SeenAlike::of(&cards), cards))
    }

    /// The newest effects of one [`Index::alike`], newest first.
    ///
    /// [`Index::alike`]: crate::store::Index::alike
    pub async fn alike(&self, alike: Digest) -> Result<Vec<StoredEffect>, Error> {
        let page = self.store.latest(Latest::Alike(alike), None, ALIKE_MAX).await?;
        let known = page.items.into_iter().map(|(_, row)| decode(row));
        known.map(|stored| sound(&stored).map(drop).map(|()| stored)).collect()
    }

    pub async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        self.store.journal(after, limit).await
    }

    /// The newest instant on record. A clock that was set back writes older ones behind it, so more than the last line
    /// is looked at.
    pub async fn newest_instant(&self) -> Result<Option<At>, Error> {
        const LINES_LOOKED_AT: usize = 256;
        let lines = self.newest_lines(LINES_LOOKED_AT).await?;
        Ok(lines.iter().map(|(_, line)| line.at).max())
    }

    /// The newest line of the journal, with its place.
    pub async fn newest_line(&self) -> Result<Option<(Cursor, JournalLine)>, Error> {
        Ok(self.newest_lines(1).await?.pop())
    }

    /// The newest lines, the last one first.
    pub async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        self.store.newest_lines(limit).await
    }

    /// The fence of a run, with the cell a claim must require.
    pub async fn fence(&self, run_key: Digest) -> Result<(Digest, Revision, Option<Fence>), Error> {
        let key = self.fence_key(run_key);
        let (revision, fence) = self.cell(key).await?;
        Ok((key, revision, fence))
    }

    pub fn fence_key(&self, run_key: Digest) -> Digest {
        fence_key(&self.secret, run_key)
    }

    pub async fn epoch(&self) -> Result<(Revision, Option<Epoch>), Error> {
        self.cell(EPOCH_CELL).await
    }

    pub(crate) async fn cell<T: DeserializeOwned>(
        &self,
        key: Digest,
    ) -> Result<(Revision, Option<T>), Error> {
        match self.store.cell(key).await? {
            None => Ok((Revision::ABSENT, None)),
            Some(cell) => {
                let value = cell_value(key, &cell)
                    .ok_or_else(|| Error::NotRead { what: format!("cell {key} is damaged") })?;
                Ok((cell.revision, Some(value)))
            }
        }
    }

    /// Changes a cell; once more if another process was first.
    pub(crate) async fn update_cell<T: DeserializeOwned + Serialize, R>(
        &self,
        key: Digest,
        durability: Durability,
        mut update: impl FnMut(Option<T>) -> Result<CellUpdate<T, R>, Error>,
    ) -> Result<R, Error> {
        for _ in 0..RACES_MAX {
            let (expected, value) = self.cell::<T>(key).await?;
            match update(value)? {
                CellUpdate::Keep(result) => return Ok(result),
                CellUpdate::Put { value, lines, result } => {
                    if self.put_cell(key, expected, &value, lines, durability).await? {
                        return Ok(result);
                    }
                }
            }
        }
        Err(Error::NotWritten { what: format!("cell {key} changes all the time") })
    }

    /// Writes a cell alone. `false` when another process wrote it first.
    pub(crate) async fn put_cell(
        &self,
        key: Digest,
        expected: Revision,
        value: &impl Serialize,
        lines: Vec<JournalLine>,
        durability: Durability,
    ) -> Result<bool, Error> {
        let put = Put::cell(key, expected, value);
        let commit = Commit { journal: lines, durability, ..Commit::of(nonce(self.entropy()), vec![put]) };
        Ok(self.commit(commit).await?.is_ok())
    }

    pub(crate) fn run_of(&self, effect: &Effect) -> Option<Digest> {
        run_digest(&self.secret, effect)
    }
}

/// The result of an update of a cell.
pub(crate) enum CellUpdate<T, R> {
    Keep(R),
    Put { value: T, lines: Vec<JournalLine>, result: R },
}

/// One event on its way into a record.
#[derive(Debug)]
pub(crate) struct RecordChange<'a> {
    pub event: &'a Event,
    pub against: Against,
    pub reply: ReplyChange,
    /// A turn to give back in the same commit, and a second answer.
    pub beside: Vec<Put>,
    /// The rest of its journal line.
    pub note: Option<(&'static str, serde_json::Value)>,
    pub durability: Durability,
    pub at: At,
    /// How the effect can be taken back, now that it is known to have happened.
    pub undo: Option<Undo>,
}

impl<'a> RecordChange<'a> {
    /// A change that holds only while its effect is the newest of its record.
    pub fn to(event: &'a Event, at: At) -> Self {
        let durability = Durability::Durable;
        RecordChange {
            event,
            against: Against::Newest,
            reply: ReplyChange::Keep,
            beside: Vec::new(),
            note: None,
            durability,
            at,
            undo: None,
        }
    }

    /// A change that an effect takes whatever came after it in its record.
    pub fn of_any(event: &'a Event, at: At) -> Self {
        RecordChange { against: Against::Itself, ..RecordChange::to(event, at) }
    }
}

#[derive(Debug)]
pub(crate) enum ChangeResult {
    Done(RecordUpdate),
    /// The record has moved since it was read.
    Moved,
}

/// The lapse of an attempt in flight whose holder is not there, or whose time is over.
pub(crate) fn lapse_of(attempt: &Attempt, holder: Liveness, now: At) -> Option<Lapse> {
    match holder {
        Liveness::Dead => Some(Lapse::HolderDied),
        _ if now >= attempt.deadline => Some(Lapse::DeadlinePassed),
        Liveness::Silent => Some(Lapse::HolderSilent),
        Liveness::Alive => None,
    }
}

/// A damaged one may be the very call that it is compared with.
pub fn sound(stored: &StoredEffect) -> Result<&StoredEffect, Error> {
    if stored.effect.is_damaged() {
        let what = format!("the record of effect {}, which looks alike, is damaged", stored.effect.id);
        return Err(Error::NotRead { what });
    }
    Ok(stored)
}

/// Only these are looked up: most effects have no undo.
pub(crate) fn has_undo_call(effect: &Effect) -> bool {
    matches!((&effect.state, &effect.undo), (State::Applied(_), Some(Undo::By(_))))
}
