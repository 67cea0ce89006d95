//! Locks of living processes. A holder's death is known by a lock that dies with it, never by time alone.
//!
//! The kernel drops a lock when the last descriptor of its file goes, so a child that inherited the descriptor
//! keeps its parent's claims alive until the whole process tree is gone.

use crate::Error;
use crate::place::{create_private, create_private_directory};
use crate::store::OwnerId;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Proof, to every process that asks, that this one lives.
#[derive(Debug)]
#[must_use = "dropping the lock tells the others that this process is dead"]
pub struct OwnerLock {
    id: OwnerId,
    /// `None` once it was released.
    held: Option<LockFile>,
}

#[derive(Debug)]
struct LockFile {
    file: File,
    directory: PathBuf,
    inherited: bool,
}

impl OwnerLock {
    /// Locks a new file in `directory`, which is created 0700 if it is missing.
    pub fn take(directory: &Path) -> Result<Self, Error> {
        Self::try_take(directory, fresh_id).map_err(|source| cannot(directory, source))
    }

    /// The same, under an id that begins with these bits.
    pub(crate) fn take_tagged(directory: &Path, tag: u64) -> Result<Self, Error> {
        let tagged = || Ok(OwnerId(u128::from(tag) << 64 | fresh_id()?.0 & u128::from(u64::MAX)));
        Self::try_take(directory, tagged).map_err(|source| cannot(directory, source))
    }

    fn try_take(directory: &Path, fresh_id: impl Fn() -> io::Result<OwnerId>) -> io::Result<Self> {
        create_private_directory(directory)?;
        loop {
            let id = fresh_id()?;
            let path = file_of(directory, id);
            let file = create_private(&path)?;
            file.lock()?;
            // Between creation and lock someone may have tidied the file away as that of a dead process. A lock
            // without a name protects nothing, so try another one.
            let named = fs::symlink_metadata(&path).is_ok_and(|found| same_file(&found, &file));
            if named {
                let held = LockFile { file, directory: directory.to_owned(), inherited: false };
                return Ok(OwnerLock { id, held: Some(held) });
            }
        }
    }

    /// The owner that a file in the directory stands for.
    pub(crate) fn id_of_name(name: &str) -> Option<OwnerId> {
        (name.len() == 32).then(|| u128::from_str_radix(name, 16).ok().map(OwnerId))?
    }

    pub fn id(&self) -> OwnerId {
        self.id
    }

    /// From now on child processes inherit the descriptor and keep the lock alive with them.
    pub fn inheritable(&mut self) -> Result<(), Error> {
        self.set_close_on_exec(false)
    }

    /// Children started from now on no longer inherit it. Those that have it keep it.
    pub fn seal(&mut self) -> Result<(), Error> {
        self.set_close_on_exec(true)
    }

    fn set_close_on_exec(&mut self, close: bool) -> Result<(), Error> {
        let Some(LockFile { file, directory, inherited }) = &mut self.held else { return Ok(()) };
        let flags = if close { rustix::io::FdFlags::CLOEXEC } else { rustix::io::FdFlags::empty() };
        *inherited |= !close;
        rustix::io::fcntl_setfd(&*file, flags).map_err(|error| cannot(directory, error.into()))
    }

    /// Writes down the process groups that act for this owner. Programs that close what they inherit (sudo does) give
    /// the lock away without knowing it; their group tells that they are there all the same.
    pub fn acts_through(&self, groups: &[Group]) -> Result<(), Error> {
        let Some(LockFile { file, directory, .. }) = &self.held else { return Ok(()) };
        let groups: Vec<String> = groups.iter().map(|group| group.0.to_string()).collect();
        file.set_len(0)
            .and_then(|()| file.write_all_at(format!("{} {}\n", groups.join(","), boot_id()).as_bytes(), 0))
            .map_err(|error| cannot(directory, error))
    }

    /// Lets go, and says whether a child still holds on.
    pub fn release(mut self) -> Result<bool, Error> {
        let Some(LockFile { file, directory, .. }) = self.held.take() else { return Ok(false) };
        drop(file);
        is_alive(&directory, self.id)
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        match self.held.take() {
            // Only the name of a lock that no child can hold may go: a missing file means a dead owner.
            Some(LockFile { directory, inherited: false, .. }) => {
                let _ = fs::remove_file(file_of(&directory, self.id));
            }
            // Children may still hold it. If none does, asking tidies the file away, which nobody else would do:
            // only the owners of open effects are ever asked about.
            Some(LockFile { file, directory, inherited: true }) => {
                drop(file);
                let _held_by_a_child = is_alive(&directory, self.id);
            }
            None => {}
        }
    }
}

/// Whether the owner, or a child that inherited its lock, still lives. An error means that nobody knows.
pub fn is_alive(directory: &Path, id: OwnerId) -> Result<bool, Error> {
    let path = file_of(directory, id);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(cannot(directory, error)),
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(cannot(directory, error)),
        Ok(()) if a_group_is_there(&file) => Ok(true),
        Ok(()) => {
            // Ids are never used twice, so the name can go while we hold the lock. Failing to tidy is no harm.
            let _ = fs::remove_file(&path);
            Ok(false)
        }
    }
}

/// A process group, by its leader's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group(pub i32);

/// Whether a group that was written down still has a member. After a restart of the machine its number means nothing,
/// so the boot is written down with it.
fn a_group_is_there(mut file: &File) -> bool {
    use rustix::process::{Pid, test_kill_process_group};
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return false;
    }
    let Some((groups, boot)) = text.trim().split_once(' ') else { return false };
    let is_there = |group: &str| {
        let Some(pid) = group.parse().ok().filter(|group| *group > 1).and_then(Pid::from_raw) else {
            return false;
        };
        // Only "no such process" means gone: one that runs as another user may not even be signalled.
        test_kill_process_group(pid) != Err(rustix::io::Errno::SRCH)
            && lives(pid.as_raw_nonzero().get()).unwrap_or(true)
    };
    boot == boot_id() && groups.split(',').any(is_there)
}

/// A group also exists while its dead are not buried, which in a container without an init may be for ever. `None`
/// where the system does not tell.
fn lives(group: i32) -> Option<bool> {
    living_processes().map(|living| living.iter().any(|process| process.group == Group(group)))
}

/// A process that is not dead, buried or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveProcess {
    pub parent: u32,
    pub group: Group,
}

/// All of them, as far as this one may see. `None` where the system does not tell.
pub fn living_processes() -> Option<Vec<LiveProcess>> {
    let living = |stat: String| {
        // After the name, which may hold anything: state, parent, group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (!matches!(state, "Z" | "X")).then_some(LiveProcess { parent, group: Group(group) })
    };
    let processes = fs::read_dir("/proc").ok()?;
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    Some(stats.filter_map(living).collect())
}

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // Elsewhere than on Linux all boots are one; then a group may be taken for another for as long as that lives.
    if id.is_empty() { "unknown".to_owned() } else { id.trim().to_owned() }
}

fn fresh_id() -> io::Result<OwnerId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(OwnerId(u128::from_be_bytes(bytes)))
}

fn file_of(directory: &Path, id: OwnerId) -> PathBuf {
    directory.join(format!("{:032x}", id.0))
}

fn same_file(found: &fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (found.dev(), found.ino()))
}

pub(crate) fn cannot(directory: &Path, source: io::Error) -> Error {
    Error::Open { path: directory.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn an_inherited_lock_leaves_its_file_only_while_a_child_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let files = || fs::read_dir(directory.path()).unwrap().count();
        let mut lock = OwnerLock::take(directory.path()).unwrap();
        let id = lock.id();
        lock.inheritable().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        drop(lock);
        assert_eq!((files(), is_alive(directory.path(), id).unwrap()), (1, true));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((is_alive(directory.path(), id).unwrap(), files()), (false, 0));

        let mut lock = OwnerLock::take(directory.path()).unwrap();
        lock.inheritable().unwrap();
        drop(lock);
        assert_eq!(files(), 0);
    }
}
