//! Files that belong to somebody else's program: read as they are, replaced whole or not at all, never without a
//! backup.

use anyhow::{Context, bail, ensure};
use rustix::fs::Access;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A configuration is written by hand; Claude Code keeps its history in one, which grows. A larger file is something
/// else.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Someone who has this many differing backups of one file has another problem.
const BACKUPS_MAX: usize = 99;

/// A file as it was read.
#[derive(Debug)]
pub struct Snapshot {
    /// Where the file really lies: a link is followed, not replaced.
    path: PathBuf,
    pub text: String,
}

impl Snapshot {
    pub fn read(path: &Path) -> anyhow::Result<Snapshot> {
        let real = path.canonicalize().context("cannot be read")?;
        let metadata = real.metadata().context("cannot be read")?;
        ensure!(metadata.is_file(), "is not a regular file");
        ensure!(
            metadata.len() <= FILE_BYTES_MAX,
            "has {} bytes; at most {FILE_BYTES_MAX} are read",
            metadata.len()
        );
        let bytes = std::fs::read(&real).context("cannot be read")?;
        let text = String::from_utf8(bytes).context("is not valid UTF-8")?;
        Ok(Snapshot { path: real, text })
    }

    /// Earlier contents that were kept, the newest first.
    pub fn backups(&self) -> Vec<String> {
        let kept = (1..=BACKUPS_MAX).map_while(|number| std::fs::read_to_string(self.backup(number)).ok());
        let mut kept: Vec<String> = kept.collect();
        kept.reverse();
        kept
    }

    fn backup(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".semel-backup");
        if number > 1 {
            name.push(format!(".{number}"));
        }
        PathBuf::from(name)
    }

    /// Replaces the file, unless it is no longer what was read. Returns where the former content is kept.
    pub fn replace(&self, text: &str) -> anyhow::Result<PathBuf> {
        let metadata = self.path.metadata().context("cannot be read")?;
        self.may_write(&metadata)?;
        let directory = self.path.parent().context("has no directory")?;
        let backup = self.keep(&metadata)?;
        let mut new = tempfile::Builder::new()
            .prefix(".semel-")
            .tempfile_in(directory)
            .with_context(|| format!("cannot write into {}", directory.display()))?;
        new.write_all(text.as_bytes()).context("cannot be written")?;
        like(new.as_file(), &metadata)?;
        new.as_file().sync_all().context("cannot be written")?;
        self.ensure_unchanged()?;
        new.persist(&self.path).map_err(|error| error.error).context("cannot be replaced")?;
        sync_directory(directory)?;
        Ok(backup)
    }

    fn may_write(&self, metadata: &Metadata) -> anyhow::Result<()> {
        let me = rustix::process::geteuid().as_raw();
        ensure!(
            metadata.uid() == me,
            "belongs to another user (uid {}); run semel init as that user",
            metadata.uid()
        );
        // Replacing needs only the directory, so the file's own word is asked for.
        let writable =
            metadata.mode() & 0o200 != 0 && rustix::fs::access(&self.path, Access::WRITE_OK).is_ok();
        ensure!(writable, "is read-only (mode {:o})", metadata.mode() & 0o777);
        Ok(())
    }

    fn ensure_unchanged(&self) -> anyhow::Result<()> {
        let now = std::fs::read(&self.path).context("cannot be read again")?;
        ensure!(now == self.text.as_bytes(), "was changed by somebody else meanwhile; nothing was written");
        Ok(())
    }

    /// Keeps what was read beside the file, under a name that is free or holds the same already.
    fn keep(&self, metadata: &Metadata) -> anyhow::Result<PathBuf> {
        for number in 1..=BACKUPS_MAX {
            let path = self.backup(number);
            let mut options = OpenOptions::new();
            // Not readable by others even for a moment: configurations hold secrets.
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    let about = || format!("the backup {} cannot be written", path.display());
                    file.write_all(self.text.as_bytes()).with_context(about)?;
                    like(&file, metadata)?;
                    file.sync_all().with_context(about)?;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if std::fs::read(&path).is_ok_and(|kept| kept == self.text.as_bytes()) {
                        return Ok(path);
                    }
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("the backup {} cannot be made", path.display()));
                }
            }
        }
        bail!("has {BACKUPS_MAX} backups already; move them away")
    }
}

/// Gives a new file the mode and the group of the old one.
fn like(file: &File, old: &Metadata) -> anyhow::Result<()> {
    let new = file.metadata().context("cannot be written")?;
    if new.gid() != old.gid() {
        rustix::fs::fchown(file, None, Some(rustix::fs::Gid::from_raw(old.gid())))
            .with_context(|| format!("belongs to the group {}, which cannot be kept", old.gid()))?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777)).context("cannot be written")
}

fn sync_directory(directory: &Path) -> anyhow::Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).context("cannot be made durable")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("mcp.json");
        std::fs::write(&path, text).expect("a file");
        (directory, path)
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_replaced() {
        let (_directory, path) = file("one");
        let snapshot = Snapshot::read(&path).expect("readable");
        std::fs::write(&path, "two").expect("written");
        let error = snapshot.replace("three").expect_err("changed").to_string();
        assert!(error.contains("changed by somebody else"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "two");
    }

    #[test]
    fn a_backup_that_differs_is_never_overwritten_and_an_equal_one_is_enough() {
        let (directory, path) = file("one");
        for text in ["two", "one", "three"] {
            Snapshot::read(&path).expect("readable").replace(text).expect("replaced");
        }
        let kept = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("a backup");
        assert_eq!(kept("mcp.json.semel-backup"), "one");
        assert_eq!(kept("mcp.json.semel-backup.2"), "two");
        assert_eq!(directory.path().read_dir().expect("readable").count(), 3, "and nothing else is left");
        assert_eq!(Snapshot::read(&path).expect("readable").backups(), ["two", "one"]);
    }
}
