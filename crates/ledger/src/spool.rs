//! Answers that could not reach the ledger. Each is a file of this host, on its disk before its caller is told, and is
//! imported before anything is decided about its intent here.

use crate::claim::Claim;
use crate::ledger::{Ledger, RecordSnapshot};
use crate::place::{create_private, create_private_directory, open_no_follow};
use crate::record::{decode, index_after};
use crate::store::{Against, Body, EPOCH_CELL, Index, ReplyChange, Revision, Row};
use crate::{Error, checksum};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use semel_core::digest::Digest;
use semel_core::effect::Reply;
use semel_core::ids::{AttemptNo, EffectId, OwnerId};
use semel_core::lifecycle::{self, Alarm, Event};
use semel_core::outcome::Outcome;
use semel_core::time::At;
use semel_core::undo::Undo;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// With more of them the ledger is not coming back soon. Every look at a record reads their names.
const FILES_MAX: usize = 1_000;

/// A disk that a ledger shares has more to hold.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Of a larger reply the size is kept, though the ledger would keep its bytes: many answers are to have room.
const REPLY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A reply, and all of its claim beside it.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Names of files that are being written begin so.
const PART: &str = "part-";

/// An importer may remove the directory, which was empty, before a file is in it.
const TRIES: usize = 8;

const TO_MEMORY: &str = "memory takes all that is written to it";

/// The files of one ledger, in a directory that is there only while one of them is.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
}

/// The answers that wait on this host for the ledger, for people.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SpoolReport {
    pub waiting: Vec<EffectId>,
    /// Cut short or changed since. Their effects are in doubt.
    pub damaged: Vec<PathBuf>,
}

/// A claim with its answer. It holds nothing that the ledger would not hold.
#[derive(Debug, Encode, Decode)]
struct Spooled {
    #[n(0)]
    epoch: u64,
    #[n(1)]
    attempt: AttemptNo,
    /// The row as it was claimed.
    #[n(2)]
    ordinal: u32,
    #[n(3)]
    index: SpooledIndex,
    #[n(4)]
    fixed: ByteVec,
    #[n(5)]
    state: ByteVec,
    #[n(6)]
    outcome: Outcome,
    #[n(7)]
    reply: Option<ByteVec>,
    #[n(8)]
    undo: Option<Undo>,
    /// JSON.
    #[n(9)]
    about: Option<String>,
}

/// [`Index`].
type SpooledIndex = (u128, Option<Digest>, Digest, Option<Digest>, u64, bool, Option<OwnerId>, At, At);

/// How many settlements wait in all ledgers' directories: for one that cannot be opened.
pub fn count(base: &Path) -> usize {
    let directories = fs::read_dir(base).into_iter().flatten().flatten();
    directories.filter_map(|entry| fs::read_dir(entry.path()).ok()).map(Iterator::count).sum()
}

impl Spool {
    /// Names begin with the intent key.
    fn names(&self, key: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Opening anything else might wait for somebody.
            let name = entry.file_type()?.is_file().then(|| entry.file_name().into_string().ok()).flatten();
            names.extend(name.filter(|name| name.starts_with(key) && !name.starts_with(PART)));
        }
        Ok(names)
    }

    fn write(&self, name: &str, sealed: &[u8]) -> io::Result<()> {
        self.check_room(sealed.len() as u64)?;
        // Beside an earlier file of the same attempt, which stays unless this one is whole.
        let part = self.directory.join(format!("{PART}{name}"));
        let mut file = self.create(&part)?;
        let whole = file.write_all(sealed).and_then(|()| file.sync_all());
        let written = whole.and_then(|()| fs::rename(&part, self.directory.join(name)));
        if written.is_err() {
            let _room = fs::remove_file(&part);
        }
        written.and_then(|()| self.sync())
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        for _ in 0..TRIES {
            create_private_directory(&self.directory)?;
            match create_private(path) {
                // Of a process that died.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::remove_file(path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                created => return created,
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    fn check_room(&self, more: u64) -> io::Result<()> {
        let (mut files, mut bytes) = (0, more);
        for name in self.names("")? {
            files += 1;
            bytes += fs::symlink_metadata(self.directory.join(name)).map_or(0, |found| found.len());
        }
        match files < FILES_MAX && bytes <= BYTES_MAX && more <= FILE_BYTES_MAX {
            true => Ok(()),
            false => Err(io::Error::other("too many settlements wait on this host")),
        }
    }

    /// A name is durable only once the directories above it are.
    fn sync(&self) -> io::Result<()> {
        self.directory.ancestors().take(3).try_for_each(|directory| File::open(directory)?.sync_all())
    }

    /// `None`: another process has imported it meanwhile.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        match open_no_follow(OpenOptions::new().read(true), &self.directory.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => file?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| Some(bytes)),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Not while another one is in it, or once it is gone.
        if fs::remove_dir(&self.directory).is_ok() {
            return Ok(());
        }
        match File::open(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            directory => directory?.sync_all(),
        }
    }
}

impl Ledger {
    /// Answers that cannot reach the store wait below `base`, a directory of this host alone. Ledgers may share it: the
    /// secret tells them apart.
    #[must_use]
    pub fn spooled_below(mut self, base: &Path) -> Self {
        self.spool = Some(Spool { directory: base.join(self.secret.mac("spool", &[]).to_string()) });
        self
    }

    /// Keeps the answer of an attempt on this host, durably, and returns its record as it will be once the answer is
    /// imported.
    pub fn spool(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        reply: Option<&[u8]>,
        now: At,
    ) -> Result<RecordSnapshot, Error> {
        let none = || Error::NotWritten { what: "this host has no place for settlements".into() };
        let spool = self.spool.as_ref().ok_or_else(none)?;
        let (outcome, reply) = match reply {
            Some(reply) if reply.len() > REPLY_BYTES_MAX => {
                (&without_reply(outcome, reply.len() as u64), None)
            }
            _ => (outcome, reply),
        };
        let event = Event::Settled { attempt: claim.attempt, outcome: outcome.clone(), at: now };
        let mut after = lifecycle::next(claim.effect(), &event)?.effect;
        if let Some(undo) = claim.undo.clone() {
            lifecycle::keep_undo(&mut after, &event, undo);
        }
        let stored = claim.stored();
        let Index { effect, run, family, alike, content, open, owner, opened_at, changed_at } =
            stored.index.clone();
        let body = stored.body(claim.key());
        let spooled = Spooled {
            epoch: claim.snapshot.epoch.0,
            attempt: claim.attempt,
            ordinal: claim.effect().occurrence.number,
            index: (effect, run, family, alike, content, open, owner, opened_at, changed_at),
            fixed: body.fixed.to_vec().into(),
            state: body.state.into(),
            outcome: outcome.clone(),
            reply: reply.map(|reply| reply.to_vec().into()),
            undo: claim.undo.clone(),
            about: claim.about.as_ref().map(ToString::to_string),
        };
        let nonce = claim.effect().attempt(claim.attempt).map_or(0, |attempt| attempt.nonce.0);
        let name = format!("{}-{nonce:032x}", claim.key());
        let bytes = minicbor::to_vec(&spooled).expect(TO_MEMORY);
        let sealed = checksum::seal(&[&self.place_of(&name).0], bytes);
        spool.write(&name, &sealed).map_err(|source| not_written(spool, &source))?;
        let index = index_after(&stored.index, &after);
        let change = (after, index);
        let reply = reply.map_or(ReplyChange::Keep, |reply| ReplyChange::Set(reply.to_vec()));
        Ok(claim.snapshot.overwrite(stored, change, Against::Itself, reply).1)
    }

    /// Settles what waits on this host for one record. Whether there was anything.
    pub(crate) async fn import(&self, key: Digest, now: At) -> Result<bool, Error> {
        let Some(spool) = &self.spool else { return Ok(false) };
        let mut imported = false;
        for name in names(spool, &key.to_string())? {
            imported |= Box::pin(self.import_one(spool, &name, now)).await?;
        }
        Ok(imported)
    }

    /// Settles everything that waits on this host. One that cannot be settled holds up no other; the first such error is
    /// returned.
    pub async fn import_all(&self, now: At) -> Result<(), Error> {
        let Some(spool) = &self.spool else { return Ok(()) };
        let mut result = Ok(());
        for name in names(spool, "")? {
            let imported = Box::pin(self.import_one(spool, &name, now)).await;
            let failed = imported.is_err();
            result = result.and(imported.map(drop));
            // A store that is gone takes seconds to say so, each time.
            if failed && self.store.cell(EPOCH_CELL).await.is_err() {
                break;
            }
        }
        result
    }

    /// An answer that is on record already is only removed here.
    async fn import_one(&self, spool: &Spool, name: &str, now: At) -> Result<bool, Error> {
        let not_read = |source: io::Error| Error::NotRead { what: trouble(spool, &source) };
        let Some(bytes) = spool.read(name).map_err(not_read)? else { return Ok(true) };
        // A damaged one tells nothing: its effect lapses into doubt.
        let Some((mut claim, outcome, reply)) = self.open_spooled(name, &bytes) else { return Ok(false) };
        let changed = self.settle(&mut claim, &outcome, reply.as_deref(), now).await?;
        if let (Some(Alarm::DuplicateDetected), Some(effect)) = (changed.alarm, changed.snapshot.effect()) {
            self.observe_duplicate(effect);
        }
        spool.remove(name).map_err(|source| not_written(spool, &source))?;
        Ok(true)
    }

    fn open_spooled(&self, name: &str, sealed: &[u8]) -> Option<(Claim, Outcome, Option<Vec<u8>>)> {
        let bytes = checksum::open(&[&self.place_of(name).0], sealed)?;
        let spooled: Spooled = minicbor::decode(bytes).ok()?;
        let key = Digest::parse(name.split_once('-')?.0)?;
        let Spooled { attempt, ordinal, undo, .. } = spooled;
        let about = spooled.about.map(|about| serde_json::from_str(&about)).transpose().ok()?.map(Box::new);
        let (effect, run, family, alike, content, open, owner, opened_at, changed_at) = spooled.index;
        let index = Index { effect, run, family, alike, content, open, owner, opened_at, changed_at };
        let fixed = Vec::from(spooled.fixed).into();
        let body = Body { fixed, state: spooled.state.into(), delivery: Vec::new() };
        // At no revision is it written, so settling reads the record first: much may have happened since, and the ledger
        // may have moved to another engine.
        let revision = Revision::ABSENT;
        let stored = decode(Row { key, ordinal, revision, index, body, reply: None });
        let (epoch, newest) = (Revision(spooled.epoch), Some(Arc::new(stored)));
        let snapshot = RecordSnapshot { key, revision, epoch, position: 0, newest, reply: None };
        // A turn that it took is free as soon as others see it settled.
        let claim = Claim { snapshot, attempt, turn: None, undo, about };
        Some((claim, spooled.outcome, spooled.reply.map(Vec::from)))
    }

    /// What waits on this host.
    pub fn spooled(&self) -> Result<SpoolReport, Error> {
        let mut report = SpoolReport::default();
        let Some(spool) = &self.spool else { return Ok(report) };
        for name in names(spool, "")? {
            let Ok(Some(bytes)) = spool.read(&name) else { continue };
            match self.open_spooled(&name, &bytes) {
                Some((claim, ..)) => report.waiting.push(claim.effect().id),
                None => report.damaged.push(spool.directory.join(name)),
            }
        }
        Ok(report)
    }

    /// Binds the bytes of a file to its name and to this ledger.
    fn place_of(&self, name: &str) -> Digest {
        self.secret.mac("spooled settlement", &[name.as_bytes()])
    }
}

fn without_reply(outcome: &Outcome, bytes: u64) -> Outcome {
    let mut outcome = outcome.clone();
    if let Outcome::Applied { reply, .. } | Outcome::NotApplied { reply, .. } = &mut outcome {
        *reply = Reply::TooLarge(bytes);
    }
    outcome
}

fn names(spool: &Spool, key: &str) -> Result<Vec<String>, Error> {
    spool.names(key).map_err(|source| Error::NotRead { what: trouble(spool, &source) })
}

fn not_written(spool: &Spool, source: &io::Error) -> Error {
    Error::NotWritten { what: trouble(spool, source) }
}

fn trouble(spool: &Spool, source: &io::Error) -> String {
    format!("settlements that wait in {}: {source}", spool.directory.display())
}
