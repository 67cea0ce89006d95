//! Holders of a ledger that many hosts share. Those of this host are known by their locks, those of others by what the
//! engine has heard of them, which proves no death.

use crate::Error;
use crate::holders::{FileHolders, Holders, Liveness};
use crate::owner::{Group, cannot};
use crate::place::{create_private, create_private_directory};
use crate::store::Store;
use async_trait::async_trait;
use semel_core::ids::OwnerId;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub struct FleetHolders {
    here: FileHolders,
    /// The upper half of the id of every holder whose lock lies in this directory.
    tag: u64,
    store: Arc<dyn Store>,
}

impl FleetHolders {
    /// The locks of this host's processes lie in `directory`, which no other host may share.
    pub fn new(directory: &Path, store: Arc<dyn Store>) -> Result<Self, Error> {
        let tag = tag_of(directory).map_err(|source| cannot(directory, source))?;
        let here = FileHolders::tagged(directory.join("holders"), tag);
        Ok(FleetHolders { here, tag, store })
    }

    fn is_here(&self, owner: OwnerId) -> bool {
        owner.0 >> 64 == u128::from(self.tag)
    }
}

/// The name of a directory of locks, made once.
fn tag_of(directory: &Path) -> io::Result<u64> {
    create_private_directory(directory)?;
    let file = directory.join("host");
    loop {
        match fs::read_to_string(&file) {
            Ok(text) => {
                let damaged = |_| io::Error::other(format!("{} is damaged; remove it", file.display()));
                return u64::from_str_radix(text.trim(), 16).map_err(damaged);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Written beside it and linked: of two that come at once, both read the first one's.
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
        let tag = u64::from_be_bytes(bits);
        let draft = directory.join(format!("host.{tag:016x}"));
        create_private(&draft)?.write_all(format!("{tag:016x}\n").as_bytes())?;
        let linked = fs::hard_link(&draft, &file);
        fs::remove_file(&draft)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
}

#[async_trait]
impl Holders for FleetHolders {
    fn me(&self) -> Result<OwnerId, Error> {
        let me = self.here.me()?;
        self.store.announce(me);
        Ok(me)
    }

    /// One of another host that was never heard of is silent where its mark comes with its first claim. On PostgreSQL, where
    /// the first beat follows, it counts as alive until its attempt's deadline.
    async fn liveness(&self, owners: &[OwnerId]) -> Result<Vec<Liveness>, Error> {
        let (here, elsewhere): (Vec<_>, Vec<_>) = owners.iter().partition(|owner| self.is_here(**owner));
        let known = self.here.liveness(&here).await?;
        let silent = if elsewhere.is_empty() { Vec::new() } else { self.store.silent(&elsewhere).await? };
        let of = |owner: &OwnerId| match here.iter().position(|known| known == owner) {
            Some(place) => known[place],
            None if silent.contains(owner) => Liveness::Silent,
            None => Liveness::Alive,
        };
        Ok(owners.iter().map(of).collect())
    }

    fn inheritable(&self) -> Result<(), Error> {
        self.here.inheritable()
    }

    fn seal(&self) -> Result<(), Error> {
        self.here.seal()
    }

    fn acts_through(&self, groups: &[Group]) -> Result<(), Error> {
        self.here.acts_through(groups)
    }

    fn release_lock(&self) {
        self.here.release_lock();
    }

    fn sweep(&self) {
        self.here.sweep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_tag_and_another_has_another() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tag = tag_of(one.path()).unwrap();
        assert_eq!(tag_of(one.path()).unwrap(), tag);
        assert_ne!(tag_of(other.path()).unwrap(), tag);
        fs::write(one.path().join("host"), "").unwrap();
        assert!(tag_of(one.path()).unwrap_err().to_string().contains("is damaged"));
    }
}
