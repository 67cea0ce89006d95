//! Files that belong to somebody else's program: read as they are, replaced whole or not at all, never without a
//! backup.

use super::backups::Backups;
use anyhow::{Context, ensure};
use rustix::fs::Access;
use std::fs::{File, Metadata};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A configuration is written by hand; Claude Code keeps its history in one, which grows. A larger file is something
/// else.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file as it was read.
#[derive(Debug)]
pub struct FileSnapshot {
    /// Where the file really lies: a link is followed, not replaced.
    path: PathBuf,
    pub text: String,
}

impl FileSnapshot {
    pub fn read(path: &Path) -> anyhow::Result<FileSnapshot> {
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
        Ok(FileSnapshot { path: real, text })
    }

    pub fn rewritings(&self, backups: &Backups) -> Vec<(String, String)> {
        backups.rewritings(&self.path)
    }

    /// Replaces the file, unless it is no longer what was read. Returns where the former content is kept. With
    /// `can_be_undone` that can be put back later.
    pub fn replace(&self, text: &str, backups: &Backups, can_be_undone: bool) -> anyhow::Result<PathBuf> {
        let metadata = self.path.metadata().context("cannot be read")?;
        self.may_write(&metadata)?;
        let directory = self.path.parent().context("has no directory")?;
        let backup = backups.keep(&self.path, &self.text, can_be_undone.then_some(text))?;
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
        let (directory, path) = file("one");
        let backups = Backups::below(directory.path());
        let snapshot = FileSnapshot::read(&path).expect("readable");
        std::fs::write(&path, "two").expect("written");
        let error = snapshot.replace("three", &backups, true).expect_err("changed").to_string();
        assert!(error.contains("changed by somebody else"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "two");
    }
}
