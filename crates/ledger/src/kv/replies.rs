//! Replies that are too large for a row: in chunks beside it, on the server before the row that names them.
//!
//! A process that dies in between leaves chunks that nobody names. They take room and decide nothing.

use super::codec::{StoredReply, damaged};
use super::engine::{Applied, Batch, Group, Kv, Template, Write};
use super::layout;
use super::shared::Shared;
use super::writer::{TRIES_MAX, pause};
use crate::Error;
use crate::entropy::{Entropy, OsEntropy};
use crate::store::{Commit, Put, ReplyChange};

/// A row is written with every change of its effect, and a larger reply with it.
const IN_ROW_MAX: usize = 1_024;

/// etcd takes requests of 1.5 MiB.
const CHUNK_BYTES: usize = 512 * 1024;

/// Writes the large replies of a commit. For each put the reply that was written, if one was.
pub(super) async fn store<K: Kv>(
    shared: &Shared<K>,
    commit: &Commit,
) -> Result<Vec<Option<StoredReply>>, Error> {
    let mut stored = Vec::with_capacity(commit.puts.len());
    for put in &commit.puts {
        stored.push(match put {
            Put::Record { reply: ReplyChange::Set(reply), .. } if reply.len() > IN_ROW_MAX => {
                Some(write(shared, reply).await?)
            }
            _ => None,
        });
    }
    Ok(stored)
}

async fn write<K: Kv>(shared: &Shared<K>, reply: &[u8]) -> Result<StoredReply, Error> {
    let name = OsEntropy.bits();
    let mut chunks = 0;
    for bytes in reply.chunks(CHUNK_BYTES) {
        let put = Write::Put { name: layout::chunk(name, chunks), value: Template::plain(bytes.to_vec()) };
        send(shared, vec![put]).await?;
        chunks += 1;
    }
    Ok(StoredReply::Apart { name, chunks })
}

pub(super) async fn discard<K: Kv>(shared: &Shared<K>, stored: &[Option<StoredReply>]) {
    for reply in stored.iter().flatten() {
        if let StoredReply::Apart { name, chunks } = reply {
            let delete = |chunk| Write::Delete { name: layout::chunk(*name, chunk) };
            // If it fails, they take room.
            let _left = send(shared, (0..*chunks).map(delete).collect()).await;
        }
    }
}

/// Nobody else writes these values, so that they may be sent again.
async fn send<K: Kv>(shared: &Shared<K>, writes: Vec<Write>) -> Result<(), Error> {
    let groups = [Group { writes, ..Group::default() }];
    let mut failures = 0;
    loop {
        let lineage = shared.lineage();
        let batch = Batch { lineage: &lineage, groups: &groups, durable: false, moved: &[] };
        match shared.kv.apply(batch).await {
            Applied::Each(_) => return Ok(()),
            Applied::OtherLineage => shared.renew_lineage().await?,
            Applied::Again(_) | Applied::Unknown(_) if failures < TRIES_MAX => {
                pause(failures).await;
                failures += 1;
            }
            Applied::Again(what) | Applied::Refused(what) | Applied::Unknown(what) => {
                return Err(Error::NotWritten { what });
            }
        }
    }
}

/// `None`: the reply was replaced since its row was read.
pub(super) async fn read<K: Kv>(
    shared: &Shared<K>,
    name: u128,
    chunks: u32,
) -> Result<Option<Vec<u8>>, Error> {
    let mut reply = Vec::new();
    for chunk in 0..chunks {
        let found = shared.kv.read(vec![layout::chunk(name, chunk)], Vec::new()).await?;
        match found.values.into_iter().next() {
            Some(Some(value)) => reply.extend(value.bytes),
            Some(None) => return Ok(None),
            None => return Err(damaged("a reply")),
        }
    }
    Ok(Some(reply))
}
