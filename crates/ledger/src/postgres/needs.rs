//! Everything that a batch reads or writes, named before it is read.

use super::statements::Sql;
use crate::precondition::record_of;
use crate::store::{Against, Commit, EPOCH_CELL, Part, Put};
use semel_core::digest::Digest;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Needs {
    /// Numbers to lock, and whether others must keep out entirely. In order, so that two batches cannot wait for
    /// each other.
    pub(super) locks: BTreeMap<i64, bool>,
    pub(super) records: Vec<Digest>,
    pub(super) rows: Vec<(Digest, u32)>,
    pub(super) cells: Vec<Digest>,
    pub(super) relatives: Vec<(Digest, Option<Digest>)>,
    pub(super) alike: Vec<Digest>,
    is_empty: bool,
}

impl Needs {
    /// The epoch stays as it is while a batch runs, and with it the number that ids begin with.
    pub(super) fn of_any_batch(sql: &Sql) -> Needs {
        Needs {
            locks: BTreeMap::from([(sql.lock_number(EPOCH_CELL), false)]),
            records: Vec::new(),
            rows: Vec::new(),
            cells: Vec::new(),
            relatives: Vec::new(),
            alike: Vec::new(),
            is_empty: true,
        }
    }

    /// Adds a commit, unless one that is here already touches the same. The two are then for separate batches.
    pub(super) fn add(&mut self, sql: &Sql, commit: &Commit) -> bool {
        let locks = locks(sql, commit);
        let meets =
            |(number, alone): &(i64, bool)| self.locks.get(number).is_some_and(|other| *other || *alone);
        if !self.is_empty && locks.iter().any(meets) {
            return false;
        }
        self.is_empty = false;
        for (number, alone) in locks {
            *self.locks.entry(number).or_default() |= alone;
        }
        for put in &commit.puts {
            match put {
                Put::Record { key, against: Against::Newest, .. } => self.records.push(*key),
                Put::Record { key, ordinal, .. }
                | Put::Forget { key, ordinal, .. }
                | Put::DropReply { key, ordinal } => self.rows.push((*key, *ordinal)),
                Put::Cell { key, .. } | Put::ForgetCell { key, .. } => self.cells.push(*key),
            }
        }
        self.cells.extend(commit.require.cells.iter().map(|(key, _)| *key));
        self.relatives.extend(commit.require.family_quiet.map(|family| (family, record_of(commit))));
        self.alike.extend(commit.require.alike.map(|(alike, _)| alike));
        true
    }
}

/// What a commit writes, or must find without anybody else in it, is locked alone; cells that it requires are shared.
fn locks(sql: &Sql, commit: &Commit) -> Vec<(i64, bool)> {
    let mut alone = Vec::new();
    for put in &commit.puts {
        match put {
            // A mark of delivery is in nobody's way.
            Put::Record { key, changed: Part::Delivery, .. } => alone.push(*key),
            Put::Record { key, index, .. } => {
                alone.extend([*key, index.family]);
                alone.extend(index.alike);
            }
            Put::Forget { key, .. }
            | Put::DropReply { key, .. }
            | Put::Cell { key, .. }
            | Put::ForgetCell { key, .. } => alone.push(*key),
        }
    }
    alone.extend(commit.require.family_quiet);
    alone.extend(commit.require.alike.map(|(alike, _)| alike));
    let alone = alone.into_iter().map(|digest| (sql.lock_number(digest), true));
    let shared = commit.require.cells.iter().map(|(key, _)| (sql.lock_number(*key), false));
    alone.chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Commit, Nonce, Revision};

    fn cell(word: &str) -> Commit {
        let key = Digest::of(&[word.as_bytes()]);
        Commit::of(Nonce(1), vec![Put::Cell { key, expected: Revision(0), body: Vec::new() }])
    }

    fn requiring(word: &str, required: Digest) -> Commit {
        let mut commit = cell(word);
        commit.require.cells.push((required, Revision(0)));
        commit
    }

    #[test]
    fn commits_share_a_batch_unless_one_writes_what_another_touches() {
        let sql = Sql::new("semel");
        let mut needs = Needs::of_any_batch(&sql);
        let fence = Digest::of(&[b"fence"]);
        assert!(needs.add(&sql, &requiring("a", fence)));
        assert!(needs.add(&sql, &requiring("b", fence)), "both only look at the fence");
        assert!(!needs.add(&sql, &cell("a")), "two writers");
        assert!(!needs.add(&sql, &cell("fence")), "others rely on it");
        let mut epoch = cell("epoch");
        epoch.puts.push(Put::Cell { key: EPOCH_CELL, expected: Revision(0), body: Vec::new() });
        assert!(!needs.add(&sql, &epoch), "every batch relies on the epoch");
        let mut alone = Needs::of_any_batch(&sql);
        assert!(alone.add(&sql, &epoch), "whatever comes first is taken, or it would wait for ever");
        assert!(alone.locks[&sql.lock_number(EPOCH_CELL)]);
    }
}
