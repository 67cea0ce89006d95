//! The one writer of a process: a batch of commits in one transaction, one fsync for all of them.

use super::apply::Batch;
use super::checkpoint::{Checkpoints, Fold};
use super::fault::SqliteFault;
use super::head_cache::{HeadCache, LastToWrite};
use super::identity::{FileIdentity, identity};
use super::readers::Readers;
use super::writer_turn::WriterTurn;
use super::{clock, connection, epoch, schema};
use crate::Error;
use crate::failpoint::{self, InjectedError};
use crate::place::Place;
use crate::precondition::Finding;
use crate::store::{Commit, Committed, Durability};
use rusqlite::Connection;
use semel_core::time::At;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) type CommitResult = Result<Committed, Error>;

pub(super) struct Writer {
    place: Place,
    /// `None` after an error that a connection must not survive; the next batch opens another.
    connection: Option<Connection>,
    turn: WriterTurn,
    checkpoints: Checkpoints,
    /// The file that was opened. Claims written to a file that was moved away are lost claims.
    file: FileIdentity,
    /// Claims lie here first.
    wal: CompanionFile,
    /// Processes that share no index of the WAL overwrite each other's claims.
    shm: CompanionFile,
    /// When the ledger was opened, by the caller's clock and by our own.
    opened: (At, Instant),
    /// The setting of the connection.
    synchronous: Durability,
    lazy_in_a_row: u32,
    /// How many callers shared the last batch.
    callers: usize,
    heads: HeadCache,
    /// A COMMIT failed and its frames may still lie in the WAL: see [`Writer::write_barrier`].
    commit_uncertain: bool,
    /// The other connections of this process.
    readers: Arc<Readers>,
    /// The ledger was found to be read-only, and nothing could be written since.
    read_only: bool,
}

/// The parts of a writer beside its connection.
pub(super) struct WriterParts {
    pub readers: Arc<Readers>,
    /// Whether it may wait by threads.
    pub threads: bool,
}

/// A file beside the database that must stay the one it is.
struct CompanionFile {
    path: PathBuf,
    /// Which one it is, once it was seen. `None` after the database was opened anew.
    seen: Option<FileIdentity>,
}

impl CompanionFile {
    fn at(path: PathBuf) -> Self {
        CompanionFile { path, seen: None }
    }

    /// Whether it is the one that was there before. SQLite deletes it only after the last connection.
    fn is_the_same(&mut self) -> bool {
        let found = identity(&self.path).ok();
        match self.seen {
            Some(_) => found == self.seen,
            None => {
                self.seen = found;
                true
            }
        }
    }
}

/// The choice while another process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Waits,
    /// The caller has other things to do.
    None,
}

/// The result of one batch, to pace the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchCost {
    /// A durable commit took this long.
    Synced(Duration),
    Unsynced,
}

/// Why a batch stopped.
struct BatchStop {
    fault: SqliteFault,
    what: String,
}

impl Writer {
    pub(super) fn new(
        place: Place,
        mut connection: Connection,
        checkpoint_pages: u32,
        WriterParts { readers, threads }: WriterParts,
        now: At,
    ) -> Result<Self, Error> {
        let turn = WriterTurn::open(&place, threads);
        let file = identity(place.database()).map_err(|source| place.cannot_open(source))?;
        let checkpoints = Checkpoints::watch(&mut connection, checkpoint_pages, &place)
            .map_err(|error| SqliteFault::while_opening(&place, &error))?;
        let (wal, shm) = (CompanionFile::at(place.wal()), CompanionFile::at(place.shm()));
        Ok(Writer {
            place,
            connection: Some(connection),
            turn,
            checkpoints,
            file,
            wal,
            shm,
            opened: (now, clock::now()),
            synchronous: Durability::Durable,
            lazy_in_a_row: 0,
            callers: 0,
            heads: HeadCache::default(),
            commit_uncertain: false,
            readers,
            read_only: false,
        })
    }

    pub(super) fn checkpoint_is_due(&self) -> bool {
        self.checkpoints.due(self.callers)
    }

    /// The connection, for a read while nobody writes.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// Writes what `drain` gives, which is asked only once the write lock is held, so that all who came in the
    /// meantime share the commit. A batch of [`Durability::Lazy`] must give lazy commits only. `None`: another process
    /// writes, and that was not to be waited for.
    pub(super) fn write(
        &mut self,
        durability: Durability,
        patience: Patience,
        drain: impl FnOnce() -> Vec<Arc<Commit>>,
    ) -> Option<(Vec<Arc<Commit>>, Vec<CommitResult>, BatchCost)> {
        let begun = self.begin_anew(durability, patience);
        if patience == Patience::None && matches!(&begun, Err(stop) if stop.fault == SqliteFault::Busy) {
            self.turn.end_turn();
            return None;
        }
        let commits = drain();
        self.callers = commits.len();
        let (answers, cost) = match begun {
            Ok(()) => self.finish(&commits, durability),
            Err(stop) => (self.refuse(&stop, commits.len()), BatchCost::Unsynced),
        };
        if !self.folds() {
            self.turn.end_turn();
        }
        Some((commits, answers, cost))
    }

    /// Work that can wait until the callers have their answers. The turn is kept meanwhile: another process that went
    /// on writing would keep the WAL from ever starting over.
    pub(super) fn tidy(&mut self) {
        let folds = self.folds();
        if let Some(connection) = self.connection.as_mut().filter(|_| folds) {
            let at_once = self.synchronous == Durability::Lazy || self.checkpoints.crowds();
            self.checkpoints.run(connection, if at_once { Fold::AtOnce } else { Fold::ForLater });
        }
        self.turn.end_turn();
        // A mark mostly comes between two claims, and the next one should not wait for this.
        if self.lazy_in_a_row == 1
            && let Some(connection) = &self.connection
            && synchronise(connection, Durability::Durable).is_ok()
        {
            self.synchronous = Durability::Durable;
        }
    }

    /// Folds the WAL back and empties it, if nobody else is at work. Where its files are no longer its own, they are
    /// left as they are.
    pub(super) fn fold_back(&mut self) {
        let is_ours = identity(self.place.database()).ok() == Some(self.file) && self.has_its_files();
        if is_ours
            && self.turn.take_turn_at_once()
            && let Some(connection) = self.connection.as_mut().filter(|connection| connection.is_autocommit())
        {
            self.checkpoints.run(connection, Fold::AtOnce);
        }
        self.turn.end_turn();
    }

    /// Whether the WAL is folded back after the batch that was just written. Lazy ones leave it to durable ones as long
    /// as they can: folding needs the disk.
    fn folds(&self) -> bool {
        match self.synchronous {
            Durability::Durable => self.checkpoints.due(self.callers),
            Durability::Lazy => self.checkpoints.overdue(),
        }
    }

    /// Begins, on another connection if this one was opened when nothing could be written.
    fn begin_anew(&mut self, durability: Durability, patience: Patience) -> Result<(), BatchStop> {
        match self.begin(durability, patience) {
            Err(stop) if stop.fault == SqliteFault::ReadOnly && !self.read_only => {
                self.connection = None;
                self.read_only = true;
                self.begin(durability, patience)
            }
            begun => begun,
        }
    }

    fn begin(&mut self, durability: Durability, patience: Patience) -> Result<(), BatchStop> {
        failpoint::hit("sqlite.before_begin")?;
        match patience {
            Patience::Waits => self.turn.take_turn(),
            Patience::None if self.turn.take_turn_at_once() => {}
            Patience::None => {
                return Err(BatchStop {
                    fault: SqliteFault::Busy,
                    what: "another process has its turn".to_owned(),
                });
            }
        }
        self.renew()?;
        if identity(self.place.database()).ok() != Some(self.file) || !self.has_its_files() {
            let what =
                "its file was moved, deleted or replaced while it was open; with the file in its place, \
                        start this process again"
                    .to_owned();
            return Err(BatchStop { fault: SqliteFault::Moved, what });
        }
        let connection = self.connection.as_mut().expect("renewed above");
        // SQLite begins all the same, to read.
        if connection.is_readonly(rusqlite::MAIN_DB)? {
            let what = "its file or its directory is read-only".to_owned();
            return Err(BatchStop { fault: SqliteFault::ReadOnly, what });
        }
        if !connection.is_autocommit() {
            // A panic between BEGIN and COMMIT left this behind.
            self.heads.nothing();
            connection.execute_batch("ROLLBACK")?;
        }
        if self.synchronous != durability {
            synchronise(connection, durability)?;
            self.synchronous = durability;
        }
        self.lazy_in_a_row =
            if durability == Durability::Lazy { self.lazy_in_a_row.saturating_add(1) } else { 0 };
        let begin = |connection: &Connection| connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]);
        match patience {
            Patience::Waits => begin(connection)?,
            Patience::None => {
                connection::wait_for_nobody(connection)?;
                let begun = begin(connection);
                connection::wait_for_others(connection)?;
                begun?
            }
        };
        self.read_only = false;
        failpoint::hit("sqlite.after_begin")?;
        Ok(())
    }

    fn finish(&mut self, commits: &[Arc<Commit>], durability: Durability) -> (Vec<CommitResult>, BatchCost) {
        match self.apply(commits) {
            Ok((findings, last_line)) => self.commit(findings, last_line, durability),
            Err(stop) if stop.fault == SqliteFault::Behind => {
                match self.begin_epoch(commits).and_then(|()| self.begin(durability, Patience::Waits)) {
                    Ok(()) => self.finish(commits, durability),
                    Err(stop) => (self.refuse(&stop, commits.len()), BatchCost::Unsynced),
                }
            }
            Err(stop) if stop.fault.concerns_one_commit() && commits.len() > 1 => {
                self.roll_back();
                let mut cost = BatchCost::Unsynced;
                let alone = |commit: &Arc<Commit>| {
                    let one = std::slice::from_ref(commit);
                    let (mut answers, this) = match self.begin(durability, Patience::Waits) {
                        Ok(()) => self.finish(one, durability),
                        Err(stop) => (self.refuse(&stop, 1), BatchCost::Unsynced),
                    };
                    if this != BatchCost::Unsynced {
                        cost = this;
                    }
                    answers.pop().expect("one commit, one answer")
                };
                (commits.iter().map(alone).collect(), cost)
            }
            Err(stop) => (self.refuse(&stop, commits.len()), BatchCost::Unsynced),
        }
    }

    fn apply(&mut self, commits: &[Arc<Commit>]) -> Result<(Vec<Finding>, Option<i64>), BatchStop> {
        let connection = self.connection.as_ref().expect("begun on it");
        // Where nobody else has written, the last line is our own, and the mark with it.
        if self.heads.check(connection)? == LastToWrite::PerhapsOthers
            && schema::last_line(connection)? < self.turn.marked()
        {
            return Err(BatchStop { fault: SqliteFault::Behind, what: "it has less than it had".to_owned() });
        }
        let mut batch = Batch::new(connection, &mut self.heads);
        let findings = commits.iter().map(|commit| batch.apply(commit)).collect::<Result<_, _>>()?;
        failpoint::hit("sqlite.before_commit")?;
        Ok((findings, batch.last_line))
    }

    fn commit(
        &mut self,
        findings: Vec<Finding>,
        last_line: Option<i64>,
        durability: Durability,
    ) -> (Vec<CommitResult>, BatchCost) {
        if !findings.iter().any(|finding| matches!(finding, Finding::Clear(_))) {
            self.roll_back();
            return (
                findings.into_iter().map(|finding| answer(finding, Committed::Done)).collect(),
                BatchCost::Unsynced,
            );
        }
        let connection = self.connection.as_ref().expect("begun on it");
        let started = clock::now();
        let landed = connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map_err(BatchStop::from)
            .and_then(|_| Ok(failpoint::hit("sqlite.commit_unknown")?))
            .and_then(|()| Ok(failpoint::hit("sqlite.after_commit")?));
        let took = started.elapsed();
        let cost =
            if durability == Durability::Durable { BatchCost::Synced(took) } else { BatchCost::Unsynced };
        match landed {
            Ok(()) => {
                if let Some(line) = last_line.filter(|_| durability == Durability::Durable) {
                    self.turn.mark(line.cast_unsigned());
                }
                (findings.into_iter().map(|finding| answer(finding, Committed::Done)).collect(), cost)
            }
            Err(stop) if stop.fault == SqliteFault::Full => {
                (self.refuse(&stop, findings.len()), BatchCost::Unsynced)
            }
            Err(_) => {
                self.roll_back();
                self.connection = None;
                self.commit_uncertain = true;
                // Whether it works now or at the next batch: the answer is already "unknown".
                let _ = self.renew();
                (findings.into_iter().map(|finding| answer(finding, Committed::Unknown)).collect(), cost)
            }
        }
    }

    /// Nothing of the batch was written.
    fn refuse(&mut self, stop: &BatchStop, commits: usize) -> Vec<CommitResult> {
        self.roll_back();
        if stop.fault.spoils_connection() {
            self.connection = None;
        }
        if let (SqliteFault::Full, Some(connection)) = (stop.fault, &mut self.connection) {
            // What the log holds may be all the room that there is.
            self.checkpoints.run(connection, Fold::AtOnce);
        }
        self.read_only |= stop.fault == SqliteFault::ReadOnly;
        (0..commits).map(|_| Err(Error::NotWritten { what: stop.what.clone() })).collect()
    }

    fn roll_back(&mut self) {
        self.heads.nothing();
        let Some(connection) = &self.connection else { return };
        if !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
            self.connection = None;
        }
    }

    fn renew(&mut self) -> Result<(), BatchStop> {
        if self.connection.is_none() {
            // A ledger that was opened read-only is opened anew by all, with the files beside it.
            let _readers_closed = self.read_only.then(|| self.readers.closed());
            let mut connection = connection::writer(&self.place)?;
            self.turn.find_again(&self.place);
            self.checkpoints.watch_again(&mut connection)?;
            self.synchronous = Durability::Durable;
            self.heads.nothing();
            self.connection = Some(connection);
            (self.wal.seen, self.shm.seen) = (None, None);
        }
        if self.commit_uncertain {
            self.write_barrier()?;
            self.commit_uncertain = false;
        }
        Ok(())
    }

    fn has_its_files(&mut self) -> bool {
        self.wal.is_the_same() && self.shm.is_the_same()
    }

    /// The ledger was found to have less than it had, while it was open. It begins the epoch that it would begin if it
    /// were opened now; what was read before that is read again, since every change requires its epoch.
    fn begin_epoch(&mut self, commits: &[Arc<Commit>]) -> Result<(), BatchStop> {
        self.roll_back();
        self.renew()?;
        let connection = self.connection.as_ref().expect("renewed above");
        synchronise(connection, Durability::Durable)?;
        self.synchronous = Durability::Durable;
        let lines = commits.iter().flat_map(|commit| &commit.journal);
        let (at, since) = self.opened;
        // A clock that stood still while the machine slept is helped by those who came after it woke.
        let now = lines.map(|line| line.at).fold(at.plus(since.elapsed()), At::max);
        let last = epoch::after_loss(connection, now)?;
        self.turn
            .mark_lower(last)
            .map_err(|error| BatchStop { fault: SqliteFault::Disk, what: format!("its mark: {error}") })
    }

    /// After a failed fsync the commit's frames may lie in the WAL, unseen now, and come back to life when it is
    /// recovered after a crash. One durable write of our own goes over them, so that what a read shows from here
    /// on is what stays.
    fn write_barrier(&self) -> Result<(), BatchStop> {
        let connection = self.connection.as_ref().expect("renewed just before");
        connection.execute("UPDATE meta SET barrier = barrier + 1", [])?;
        Ok(())
    }
}

fn synchronise(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    connection.execute_batch(match durability {
        Durability::Durable => "PRAGMA synchronous=FULL",
        Durability::Lazy => "PRAGMA synchronous=NORMAL",
    })
}

fn answer(finding: Finding, landed: Committed) -> CommitResult {
    match finding {
        // One that landed before it was sent again may have done so in this very batch.
        Finding::Clear(_) | Finding::Landed => Ok(landed),
        Finding::Conflict(conflict) => Ok(Committed::Conflict(conflict)),
        Finding::Absurd(what) => Err(Error::NotWritten { what }),
    }
}

impl From<rusqlite::Error> for BatchStop {
    fn from(error: rusqlite::Error) -> Self {
        BatchStop { fault: SqliteFault::of(&error), what: error.to_string() }
    }
}

impl From<InjectedError> for BatchStop {
    fn from(injected: InjectedError) -> Self {
        BatchStop { fault: SqliteFault::Disk, what: injected.to_string() }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{OpenOptions, SqliteStore};
    use crate::store::{JournalLine, Nonce, Require};

    fn commit(number: u128, durability: Durability) -> Commit {
        let line = JournalLine { at: At(1), effect: None, run: None, kind: "x".into(), data: "{}".into() };
        let (puts, require) = (Vec::new(), Require::default());
        Commit { nonce: Nonce(number), puts, require, journal: vec![line], durability }
    }

    /// The value of `PRAGMA synchronous` where every commit waits for the disk.
    const FULL: i64 = 2;

    #[test]
    fn a_durable_batch_waits_for_the_disk_whatever_lazy_ones_came_before_it() {
        for blocking in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let place = Place::at(directory.path().join("ledger.db"));
            let options = OpenOptions { blocking, ..OpenOptions::at(place, At(1)) };
            let store = SqliteStore::open(options).unwrap().store;
            let mut writer = store.lane.as_ref().expect("it writes").try_writer().expect("nobody has it");
            // Durable and lazy, first with the tidying after each batch and then without.
            for (number, kind) in "DLDLLDLLLDD DLDLLDLLLDD".chars().enumerate().filter(|(_, c)| *c != ' ') {
                let durability = if kind == 'D' { Durability::Durable } else { Durability::Lazy };
                let batch = vec![commit(number as u128, durability).into()];
                let (_, answers, cost) = writer.write(durability, Patience::Waits, || batch).unwrap();
                assert!(matches!(answers[0], Ok(Committed::Done)));
                let synchronous: i64 = writer
                    .connection()
                    .unwrap()
                    .query_row("PRAGMA synchronous", [], |row| row.get(0))
                    .unwrap();
                let synced = durability == Durability::Durable;
                assert_eq!(
                    (synchronous == FULL, cost != BatchCost::Unsynced),
                    (synced, synced),
                    "{number:?}"
                );
                if number < 11 {
                    writer.tidy();
                }
            }
        }
    }
}
