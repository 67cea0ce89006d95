//! Where a ledger lies, and whether it is safe to trust what is found there.
//!
//! An account that can write beside the ledger can forge claims, and one that can read it has the replies. So a
//! place is refused, never repaired: a mode that somebody else set is not ours to tighten in silence.

use crate::Error;
use crate::error::Unsafe;
use semel_core::digest::{Digest, Secret};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A secret is 64 hexadecimal digits and a line end; what is much longer is some other file.
const SECRET_BYTES_MAX: u64 = 256;

/// The database file's path, and with it all that lies beside it under the same stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    database: PathBuf,
}

impl Place {
    pub fn at(database: impl Into<PathBuf>) -> Self {
        Place { database: database.into() }
    }

    /// Creates the directory (0700) if it is missing, and refuses the place unless it is ours alone.
    pub fn prepare(&self, allow_network_fs: bool) -> Result<(), Error> {
        let taken = |extension: &OsStr| {
            ["secret", "lock", "owners", "spool"].iter().any(|beside| extension == *beside)
        };
        if self.database.extension().is_some_and(taken) || self.database.file_name().is_none() {
            let source = io::Error::new(ErrorKind::InvalidInput, "this is no name for a database file");
            return Err(self.cannot_open(source));
        }
        let directory = self.directory();
        if !directory.exists() {
            create_private_directory(directory).map_err(|source| self.cannot_open(source))?;
        }
        self.check_directory(allow_network_fs)?;
        for file in [self.database().to_owned(), self.wal(), self.shm(), self.secret_file()] {
            self.check_file(&file, AllowedReaders::Us)?;
        }
        self.check_file(&self.lock_file(), AllowedReaders::Anyone)?;
        Ok(())
    }

    /// The secret, if there is one.
    pub fn secret(&self) -> Result<Option<Secret>, Error> {
        let path = self.secret_file();
        if !self.check_file(&path, AllowedReaders::Us)? {
            return Ok(None);
        }
        let mut text = String::new();
        let read = open_no_follow(OpenOptions::new().read(true), &path)
            .and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() != ErrorKind::InvalidData => return Err(self.cannot_open(error)),
            _ => {}
        }
        let what = || "its secret is not 64 hexadecimal digits".to_owned();
        let digits = Digest::parse(text.trim_end());
        let bytes = digits.ok_or_else(|| Error::Damaged { path: path.clone(), what: what() })?.0;
        Ok(Some(Secret::new(bytes)))
    }

    /// The secret, made now if there is none. However many processes race here, all get the same one.
    pub fn found_secret(&self) -> Result<Secret, Error> {
        if let Some(secret) = self.secret()? {
            return Ok(secret);
        }
        Place::fresh_secret()
            .and_then(|secret| self.publish_secret(&secret))
            .map_err(|source| self.cannot_open(source))?;
        self.secret()?.ok_or_else(|| Error::SecretMissing { path: self.database.clone() })
    }

    /// A secret that nobody has seen yet.
    pub fn fresh_secret() -> io::Result<Secret> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Secret::new(bytes))
    }

    /// Links a secret into place: the name appears with its whole content or not at all, and a link never replaces the
    /// secret of a faster process.
    pub(crate) fn publish_secret(&self, secret: &Secret) -> io::Result<()> {
        let aside = write_aside(&self.secret_file(), &secret_line(secret))?;
        let linked = fs::hard_link(&aside, self.secret_file());
        fs::remove_file(&aside)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => self.sync_directory(),
        }
    }

    /// Puts a secret in the place of another one. At every moment there is one of them.
    pub(crate) fn replace_secret(&self, secret: &Secret) -> io::Result<()> {
        replace_private(&self.secret_file(), &secret_line(secret))
    }

    pub fn directory(&self) -> &Path {
        match self.database.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    pub fn database(&self) -> &Path {
        &self.database
    }

    pub fn wal(&self) -> PathBuf {
        self.with_suffix("-wal")
    }

    pub fn shm(&self) -> PathBuf {
        self.with_suffix("-shm")
    }

    pub fn secret_file(&self) -> PathBuf {
        self.beside_named("secret")
    }

    pub fn lock_file(&self) -> PathBuf {
        self.beside_named("lock")
    }

    /// The directory of [`crate::owner`].
    pub fn owners(&self) -> PathBuf {
        self.beside_named("owners")
    }

    /// The directory of [`crate::spool`].
    pub fn spool(&self) -> PathBuf {
        self.beside_named("spool")
    }

    /// `ledger.secret` beside `ledger.db`. Of another name nothing is cut off: `jobs.v1` and `jobs.v2` are two ledgers.
    fn beside_named(&self, what: &str) -> PathBuf {
        match self.database.extension().is_some_and(|extension| extension == "db") {
            true => self.database.with_extension(what),
            false => self.with_suffix(&format!(".{what}")),
        }
    }

    fn with_suffix(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.database);
        path.push(suffix);
        PathBuf::from(path)
    }

    /// The same place by a path without symbolic links, so that SQLite can be told to follow none.
    pub(crate) fn resolved(&self) -> Result<Place, Error> {
        let directory = self.directory().canonicalize().map_err(|source| self.cannot_open(source))?;
        Ok(Place::at(directory.join(self.database.file_name().unwrap_or_default())))
    }

    /// Opens a file of ours for locking or writing, created 0600 if it is missing.
    pub(crate) fn open_or_create(&self, path: &Path) -> io::Result<File> {
        match create_private(path) {
            Ok(file) => self.sync_directory().map(|()| file),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                open_no_follow(OpenOptions::new().read(true).write(true), path)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn cannot_open(&self, source: io::Error) -> Error {
        Error::Open { path: self.database.clone(), source }
    }

    pub(crate) fn sync_directory(&self) -> io::Result<()> {
        sync_directory(self.directory())
    }

    fn check_directory(&self, allow_network_fs: bool) -> Result<(), Error> {
        let directory = self.directory();
        let found = fs::metadata(directory).map_err(|source| self.cannot_open(source))?;
        if !found.is_dir() {
            return Err(self.cannot_open(ErrorKind::NotADirectory.into()));
        }
        // A directory of root's is as safe as the system itself; whether we can write there shows soon enough.
        if found.uid() != our_uid() && found.uid() != 0 {
            return Err(self.refuse(directory, Unsafe::ForeignOwner { uid: found.uid() }));
        }
        let mode = found.mode() & 0o7777;
        if mode & 0o022 != 0 {
            let what = directory.to_owned();
            return Err(self.refuse(directory, Unsafe::WritableByOthers { what, mode }));
        }
        match network_kind(directory).map_err(|source| self.cannot_open(source))? {
            Some(kind) if !allow_network_fs => {
                Err(self.refuse(directory, Unsafe::NetworkFilesystem { kind }))
            }
            _ => Ok(()),
        }
    }

    /// Whether the file exists; an error if it does and must not be trusted.
    fn check_file(&self, path: &Path, readers: AllowedReaders) -> Result<bool, Error> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(self.cannot_open(source)),
        };
        let mode = found.mode() & 0o7777;
        let why = if found.is_symlink() {
            Unsafe::Symlink
        } else if !found.is_file() {
            Unsafe::NotAFile
        } else if found.uid() != our_uid() {
            // Root too: it would leave behind files that the ledger's owner can no longer open.
            Unsafe::ForeignOwner { uid: found.uid() }
        } else if mode & 0o022 != 0 {
            Unsafe::WritableByOthers { what: path.to_owned(), mode }
        } else if mode & 0o044 != 0 && readers == AllowedReaders::Us {
            Unsafe::ReadableByOthers { what: path.to_owned(), mode }
        } else {
            return Ok(true);
        };
        Err(self.refuse(path, why))
    }

    fn refuse(&self, path: &Path, why: Unsafe) -> Error {
        Error::Unsafe { path: path.to_owned(), why }
    }
}

/// The readers that a file may have: the lock file holds nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowedReaders {
    Us,
    Anyone,
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Creates a file that must not exist yet, 0600 whatever the umask says.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = open_no_follow(OpenOptions::new().read(true).write(true).create_new(true).mode(0o600), path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Puts a file of ours in the place of another one. At every moment there is one of them, whole.
pub(crate) fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::rename(write_aside(path, content)?, path)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Writes a file beside its place, under a name that nobody else has.
fn write_aside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let mut suffix = [0u8; 16];
    getrandom::fill(&mut suffix).map_err(|error| io::Error::other(error.to_string()))?;
    let mut aside = OsString::from(path);
    aside.push(format!(".{:032x}", u128::from_be_bytes(suffix)));
    let aside = PathBuf::from(aside);
    let mut file = create_private(&aside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _left = fs::remove_file(&aside);
        return Err(error);
    }
    Ok(aside)
}

/// A file's name is durable only once its directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn secret_line(secret: &Secret) -> Vec<u8> {
    format!("{}\n", Digest(*secret.expose())).into_bytes()
}

pub(crate) fn open_no_follow(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)
}

/// The name of a network filesystem, where neither locks nor shared memory reach the other hosts.
/// Plain FUSE, overlay and virtiofs are not named: most of them are local, and the type does not tell.
#[cfg(target_os = "linux")]
fn network_kind(directory: &Path) -> io::Result<Option<&'static str>> {
    let magic = rustix::fs::statfs(directory)?.f_type as u64 & 0xffff_ffff;
    Ok(network_kind_of(magic))
}

#[cfg(target_os = "linux")]
fn network_kind_of(magic: u64) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x517b => Some("SMB"),
        0xff53_4d42 => Some("CIFS"),
        0xfe53_4d42 => Some("SMB2"),
        0x0102_1997 => Some("9p"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        0x00c3_6400 => Some("Ceph"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x1983_0326 => Some("BeeGFS"),
        0x4750_4653 => Some("GPFS"),
        _ => None,
    }
}

/// Elsewhere the type is not looked at; the documentation says to keep ledgers on a local disk.
#[cfg(not(target_os = "linux"))]
fn network_kind(_directory: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

/// Creates a directory and those above it, 0700 each: a mask may take away what even their owner needs.
pub(crate) fn create_private_directory(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    match (create_one_directory(directory), parent) {
        (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound => {
            create_private_directory(parent)?;
            // Once: some places have no room for a directory, and do not say so.
            create_one_directory(directory)
        }
        (created, _) => created,
    }
}

fn create_one_directory(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o700)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_filesystems_are_known_by_their_magic_and_local_ones_pass() {
        let (nfs, nine_p, cifs) = (0x6969, 0x0102_1997, 0xff53_4d42);
        assert_eq!([nfs, nine_p, cifs].map(network_kind_of), [Some("NFS"), Some("9p"), Some("CIFS")]);
        let (ext, tmpfs, overlay, fuse) = (0xef53, 0x0102_1994, 0x794c_7630, 0x6573_5546);
        assert_eq!([ext, tmpfs, overlay, fuse].map(network_kind_of), [None; 4]);
    }

    #[test]
    fn a_place_that_takes_no_directory_is_an_error() {
        assert!(create_private_directory(Path::new("/proc/semel/ledger")).is_err());
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b/c");
        create_private_directory(&deep).unwrap();
        assert!(deep.is_dir() && create_private_directory(&deep).is_ok());
    }

    #[test]
    fn two_ledgers_share_no_file_however_they_are_called() {
        assert_eq!(Place::at(Path::new("d/ledger.db")).secret_file(), Path::new("d/ledger.secret"));
        let files = |name: &str| {
            let place = Place::at(Path::new(name));
            [place.secret_file(), place.lock_file(), place.owners(), place.spool()]
        };
        for (one, other) in [("jobs.v1", "jobs.v2"), ("jobs", "jobs.v1"), ("jobs.sqlite", "jobs.db")] {
            assert!(files(one).iter().all(|file| !files(other).contains(file)), "{one}, {other}");
        }
    }
}
