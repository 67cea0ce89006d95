//! A lock file beside the database, so that processes take turns. It is a matter of fairness only: a process ignoring
//! it (a `sqlite3` shell, say) is still kept apart by `BEGIN IMMEDIATE`, which alone decides who writes.
//!
//! Waiting in the kernel's queue is fair and looking again and again is not (of two busy processes one got 1.5
//! times the other's share), but a wait in the kernel has no end when the holder was stopped. So a thread waits
//! there, started when the lock is first found taken, and is left behind when it takes too long.

use super::{clock, watermark};
use crate::place::Place;
use std::fs::{File, TryLockError};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A process that was stopped while it held its turn must not stop the others. After this long they go on without.
const TURN_WAIT: Duration = Duration::from_secs(2);

/// How often a command looks, which starts no thread.
const NAP: Duration = Duration::from_micros(40);
const NAP_MAX: Duration = Duration::from_micros(400);

#[derive(Debug)]
pub(super) struct WriterTurn {
    file: Option<Arc<File>>,
    held: bool,
    waiting: WaitMode,
}

#[derive(Debug)]
enum WaitMode {
    /// By looking. Vain: the last wait was, and until the lock is free again it is not waited for.
    Looking { vain: bool },
    /// By a thread, once there is a need.
    Queueing(Option<Arc<LockWaiter>>),
}

impl WriterTurn {
    /// Without the file there is no fairness, and everything else works.
    pub(super) fn open(place: &Place, threads: bool) -> WriterTurn {
        let file = place.open_or_create(&place.lock_file()).ok().map(Arc::new);
        let waiting = if threads { WaitMode::Queueing(None) } else { WaitMode::Looking { vain: false } };
        WriterTurn { file, held: false, waiting }
    }

    /// Opens the file where that was not possible before.
    pub(super) fn find_again(&mut self, place: &Place) {
        if self.file.is_none() {
            self.file = place.open_or_create(&place.lock_file()).ok().map(Arc::new);
        }
    }

    pub(super) fn take_turn(&mut self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.held) else { return };
        self.held = match &mut self.waiting {
            WaitMode::Looking { vain } => look(file, vain),
            WaitMode::Queueing(Some(waiter)) if waiter.is_left_behind() => false,
            WaitMode::Queueing(waiter) => match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::Error(_)) => false,
                Err(TryLockError::WouldBlock) => {
                    waiter.get_or_insert_with(|| LockWaiter::start(Arc::clone(file))).queue_up()
                }
            },
        };
    }

    /// Whether the turn is there for the taking, and taken now; or nobody takes turns any more.
    pub(super) fn take_turn_at_once(&mut self) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| !self.held) else { return true };
        if matches!(&self.waiting, WaitMode::Queueing(Some(waiter)) if waiter.is_left_behind()) {
            return true;
        }
        match file.try_lock() {
            Ok(()) => self.held = true,
            Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    /// How far the journal is known to have come.
    pub(super) fn marked(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| watermark::read_from(file))
    }

    /// Writes down how far the journal has come. Out of turn, somebody else may have written down more meanwhile.
    pub(super) fn mark(&self, line: u64) {
        if let Some(file) = self.file.as_ref().filter(|file| self.held || watermark::read_from(file) < line) {
            let _lags_behind = watermark::write(file, line);
        }
    }

    /// Writes down that it has come no further than this, after all.
    pub(super) fn mark_lower(&self, line: u64) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| watermark::write(file, line))
    }

    pub(super) fn end_turn(&mut self) {
        if std::mem::take(&mut self.held) {
            let _ = self.file.as_ref().map(|file| file.unlock());
        }
    }
}

impl Drop for WriterTurn {
    fn drop(&mut self) {
        if let WaitMode::Queueing(Some(waiter)) = &self.waiting {
            waiter.set(Errand::Over);
        }
    }
}

fn look(file: &File, vain: &mut bool) -> bool {
    let mut nap = NAP;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => {
                *vain = false;
                return true;
            }
            Err(TryLockError::WouldBlock) if !*vain && waited < TURN_WAIT => {
                clock::sleep(nap);
                waited += nap;
                nap = (nap * 2).min(NAP_MAX);
            }
            Err(_) => {
                *vain = true;
                return false;
            }
        }
    }
}

/// The thread that stands in the kernel's queue. It locks the same open file, so the turn it gets is the writer's.
#[derive(Debug)]
struct LockWaiter {
    errand: Mutex<Errand>,
    news: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    None,
    Sent,
    Granted,
    /// Nobody wants the turn any more; the thread gives it back when it comes.
    LeftBehind,
    Over,
}

impl LockWaiter {
    fn start(file: Arc<File>) -> Arc<LockWaiter> {
        let waiter = Arc::new(LockWaiter { errand: Mutex::new(Errand::None), news: Condvar::new() });
        let own = Arc::clone(&waiter);
        // Without a thread the first wait is in vain and there is no second.
        let _ = std::thread::Builder::new().name("semel-turn".to_owned()).spawn(move || own.serve(&file));
        waiter
    }

    fn queue_up(&self) -> bool {
        self.set(Errand::Sent);
        let errand = self.errand.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut errand, _) = self
            .news
            .wait_timeout_while(errand, TURN_WAIT, |errand| *errand == Errand::Sent)
            .unwrap_or_else(PoisonError::into_inner);
        let granted = *errand == Errand::Granted;
        *errand = if granted { Errand::None } else { Errand::LeftBehind };
        granted
    }

    fn is_left_behind(&self) -> bool {
        *self.errand.lock().unwrap_or_else(PoisonError::into_inner) == Errand::LeftBehind
    }

    fn set(&self, errand: Errand) {
        *self.errand.lock().unwrap_or_else(PoisonError::into_inner) = errand;
        self.news.notify_all();
    }

    fn serve(&self, file: &File) {
        loop {
            let errand = self.errand.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |errand: &mut Errand| matches!(errand, Errand::None | Errand::Granted);
            let errand = self.news.wait_while(errand, idle).unwrap_or_else(PoisonError::into_inner);
            if *errand == Errand::Over {
                return;
            }
            drop(errand);
            let locked = file.lock().is_ok();
            let mut errand = self.errand.lock().unwrap_or_else(PoisonError::into_inner);
            match *errand {
                Errand::Sent if locked => *errand = Errand::Granted,
                Errand::Over => {
                    let _ = file.unlock();
                    return;
                }
                _ => {
                    let _ = file.unlock();
                    *errand = Errand::None;
                }
            }
            self.news.notify_all();
        }
    }
}
