//! Which file stands at a path: a ledger that was moved away or replaced is no longer written to.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode.
pub(super) type FileIdentity = (u64, u64);

/// Where it can be, the inode alone is asked for. A kernel that has told a file's times gives its next write a time of
/// its own, which the next fsync then has to write too: a quarter of what that takes.
pub(super) fn identity(file: &Path) -> io::Result<FileIdentity> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        use rustix::io::Errno;
        match statx(CWD, file, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::INO) {
            Ok(found) => return Ok((makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino)),
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    std::fs::symlink_metadata(file).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_from_another_and_known_by_either_way_of_asking() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        assert!(identity(&one).is_err());
        for file in [&one, &other] {
            std::fs::write(file, "").unwrap();
        }
        assert_ne!(identity(&one).unwrap(), identity(&other).unwrap());
        let found = std::fs::symlink_metadata(&one).unwrap();
        assert_eq!(identity(&one).unwrap(), (found.dev(), found.ino()));
    }
}
