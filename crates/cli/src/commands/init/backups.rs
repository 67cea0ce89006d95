//! Former contents of the files that `semel init` writes.
//!
//! They lie below semel's own state directory, under the whole path of the file: configurations hold secrets, and what
//! lies beside an ignored file is not ignored with it.

use anyhow::{Context, bail, ensure};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Someone who has this many differing backups of one file has another problem.
const BACKUPS_MAX: usize = 99;

#[derive(Debug)]
pub struct Backups {
    directory: PathBuf,
}

impl Backups {
    pub fn below(state_directory: &Path) -> Backups {
        Backups { directory: state_directory.join("init-backups") }
    }

    /// What semel wrote over this file so far, newest first: the text before, and the text that it wrote.
    pub fn rewritings(&self, file: &Path) -> Vec<(String, String)> {
        let read = |backup: &PathBuf| {
            Some((std::fs::read_to_string(backup).ok()?, std::fs::read_to_string(written(backup)).ok()?))
        };
        self.of(file).iter().rev().filter_map(read).collect()
    }

    fn of(&self, file: &Path) -> Vec<PathBuf> {
        let mirrored = self.mirrored(file);
        let numbered = (1..=BACKUPS_MAX).map(|number| numbered(&mirrored, number));
        numbered.take_while(|backup| backup.is_file()).collect()
    }

    /// Keeps a text under a name that is free or holds the same already, beside the text that takes its place.
    pub fn keep(&self, file: &Path, text: &str, new: Option<&str>) -> anyhow::Result<PathBuf> {
        let mirrored = self.mirrored(file);
        let directory = mirrored.parent().context("has no directory")?;
        self.prepare(directory)?;
        for number in 1..=BACKUPS_MAX {
            let path = numbered(&mirrored, number);
            let about = || format!("the backup {} cannot be written", path.display());
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut backup) => {
                    backup.write_all(text.as_bytes()).with_context(about)?;
                    backup.sync_all().with_context(about)?;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if std::fs::read(&path).is_ok_and(|kept| kept != text.as_bytes()) {
                        continue;
                    }
                }
                Err(error) => return Err(error).with_context(about),
            }
            if let Some(new) = new {
                let mut options = OpenOptions::new();
                let options = options.write(true).create(true).truncate(true).mode(0o600);
                let mut kept = options.open(written(&path)).with_context(about)?;
                kept.write_all(new.as_bytes()).with_context(about)?;
                kept.sync_all().with_context(about)?;
            }
            self.make_durable(directory).with_context(about)?;
            return Ok(path);
        }
        bail!("has {BACKUPS_MAX} backups already; move those away that begin with {}", mirrored.display())
    }

    /// `DIRECTORY/home/me/.mcp.json`, so that a person finds it by looking.
    fn mirrored(&self, file: &Path) -> PathBuf {
        let names = file.components().filter(|part| matches!(part, Component::Normal(_)));
        self.directory.join(names.collect::<PathBuf>())
    }

    fn prepare(&self, directory: &Path) -> anyhow::Result<()> {
        let about = || format!("the directory for backups {} cannot be made", directory.display());
        let make = |directory: &Path| DirBuilder::new().recursive(true).mode(0o700).create(directory);
        make(&self.directory).with_context(about)?;
        let own = self.directory.symlink_metadata().with_context(about)?;
        // Another writer there could say what a file was before.
        let ours =
            own.is_dir() && own.uid() == rustix::process::geteuid().as_raw() && own.mode() & 0o077 == 0;
        ensure!(
            ours,
            "has no place for a backup: {} must be a directory of yours alone (mode 700)",
            self.directory.display()
        );
        make(directory).with_context(about)
    }

    /// Directories that are new are known only to those above them.
    fn make_durable(&self, directory: &Path) -> std::io::Result<()> {
        let ours = directory.ancestors().take_while(|above| above.starts_with(&self.directory));
        ours.chain(self.directory.parent()).try_for_each(|directory| File::open(directory)?.sync_all())
    }
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".semel-backup");
    if number > 1 {
        name.push(format!(".{number}"));
    }
    PathBuf::from(name)
}

fn written(backup: &Path) -> PathBuf {
    backup.with_added_extension("written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_differs_is_never_overwritten_and_an_equal_one_is_enough() {
        let state = tempfile::tempdir().expect("a temporary directory");
        let backups = Backups::below(state.path());
        let file = Path::new("/somewhere/mcp.json");
        for (text, name) in [("one", "mcp.json.semel-backup"), ("two", "mcp.json.semel-backup.2")] {
            for _ in 0..2 {
                let kept = backups.keep(file, text, Some("new")).expect("kept");
                assert_eq!(kept, state.path().join("init-backups/somewhere").join(name));
            }
        }
        let kept = ["two", "one"].map(|text| (text.to_owned(), "new".to_owned()));
        assert_eq!(backups.rewritings(file), kept);
        assert_eq!(backups.rewritings(Path::new("/elsewhere/mcp.json")), []);
    }

    #[test]
    fn a_place_that_others_can_look_into_is_refused() {
        let state = tempfile::tempdir().expect("a temporary directory");
        let backups = Backups::below(state.path());
        std::os::unix::fs::symlink("/tmp", state.path().join("init-backups")).expect("a link");
        let refused = backups.keep(Path::new("/mcp.json"), "one", None).expect_err("a link").to_string();
        assert!(refused.contains("of yours alone"), "{refused}");
    }
}
