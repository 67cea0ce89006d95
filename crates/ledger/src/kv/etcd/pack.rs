//! Groups that fit into one transaction of etcd. All of a transaction lands or nothing of it.

use super::address::EtcdAddress;
use super::wire::{self, Txn};
use crate::kv::engine::{Group, MARK, Version, Write};
use std::collections::{BTreeMap, HashSet};

/// etcd takes 128 compares and 128 operations, unless its operator says otherwise. Two are the pack's own.
const OPERATIONS_MAX: usize = 126;

/// etcd takes 1.5 MiB.
const BYTES_MAX: usize = 1024 * 1024;

/// The last number that was given, and the revision at which it was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counter {
    pub(super) last: u64,
    pub(super) revision: u64,
}

#[derive(Debug, Default)]
pub(super) struct Pack<'g> {
    /// With their places in the batch.
    pub(super) groups: Vec<(usize, &'g Group)>,
    compares: BTreeMap<&'g [u8], Version>,
    written: HashSet<&'g [u8]>,
    operations: usize,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Taken,
    /// It is for the next pack.
    Full,
    /// It expects a value as it was before a group of this pack has written it, so it cannot land.
    Late,
}

impl<'g> Pack<'g> {
    pub(super) fn admit(&mut self, place: usize, group: &'g Group) -> Admission {
        let compared = || group.compares.iter().map(|(name, version)| (name.as_slice(), *version));
        let is_late = compared().any(|(name, version)| {
            self.written.contains(name) || self.compares.get(name).is_some_and(|other| *other != version)
        });
        if is_late || names_written(group).any(|name| self.written.contains(name)) {
            return Admission::Late;
        }
        let (operations, bytes) = (group.writes.len(), bytes(group));
        let compares = self.compares.len() + group.compares.len();
        let fits = self.operations + operations <= OPERATIONS_MAX
            && compares <= OPERATIONS_MAX
            && self.bytes + bytes <= BYTES_MAX;
        if !fits && !self.groups.is_empty() {
            return Admission::Full;
        }
        self.compares.extend(compared());
        self.written.extend(names_written(group));
        self.operations += operations;
        self.bytes += bytes;
        self.groups.push((place, group));
        Admission::Taken
    }

    /// The transaction, and the last number that it gives. If it fails, it reads what has moved.
    /// Marks end with the lease.
    pub(super) fn transaction(
        &self,
        address: &EtcdAddress,
        counter: Counter,
        moved: &[u64],
        lease: Option<&str>,
    ) -> (Txn, u64) {
        let value = |name: &[u8]| address.key(b'v', name);
        let counter_key = address.key(b'n', b"");
        let mut compare: Vec<_> =
            self.compares.iter().map(|(name, version)| wire::is_at(&value(name), version.0)).collect();
        let mut failure: Vec<_> = self.compares.keys().map(|name| wire::get_revision(&value(name))).collect();
        compare.push(wire::is_at(&counter_key, counter.revision));
        failure.push(wire::get(&counter_key));
        let (mut success, mut last) = (Vec::new(), counter.last);
        for (_, group) in &self.groups {
            let first = last + 1;
            last += u64::from(group.numbers);
            success.extend(group.writes.iter().map(|write| match write {
                Write::Put { name, value: bytes } => match lease.filter(|_| is_mark(name)) {
                    Some(lease) => wire::put_leased(&value(name), &bytes.fill(first), lease),
                    None => wire::put(&value(name), &bytes.fill(first)),
                },
                Write::Delete { name } => wire::delete(&value(name)),
                Write::Enter(entry) => wire::put(&address.key(b'i', &entry.fill(first)), b""),
                Write::Leave(entry) => wire::delete(&address.key(b'i', entry)),
            }));
        }
        success.push(wire::put(&counter_key, &last.to_be_bytes()));
        if !moved.is_empty() {
            let news: Vec<String> = moved.iter().map(|key| format!("{key:016x}")).collect();
            success.push(wire::put(&address.key(b'm', b""), news.join(" ").as_bytes()));
        }
        (Txn { compare, success, failure }, last)
    }

    /// The groups that expect other versions than these, which are in the order of the transaction's reads.
    pub(super) fn losers(&self, found: &[Version]) -> Vec<usize> {
        let found: BTreeMap<&[u8], Version> =
            self.compares.keys().copied().zip(found.iter().copied()).collect();
        let lost = |group: &Group| {
            group.compares.iter().any(|(name, version)| found.get(name.as_slice()) != Some(version))
        };
        self.groups.iter().filter(|(_, group)| lost(group)).map(|(place, _)| *place).collect()
    }
}

fn names_written(group: &Group) -> impl Iterator<Item = &[u8]> {
    group.writes.iter().filter_map(|write| match write {
        Write::Put { name, .. } | Write::Delete { name } => Some(name.as_slice()),
        Write::Enter(_) | Write::Leave(_) => None,
    })
}

fn is_mark(name: &[u8]) -> bool {
    name.first() == Some(&MARK)
}

pub(super) fn has_mark(group: &Group) -> bool {
    group.writes.iter().any(|write| matches!(write, Write::Put { name, .. } if is_mark(name)))
}

fn bytes(group: &Group) -> usize {
    let write = |write: &Write| match write {
        Write::Put { name, value } => name.len() + value.before.len() + value.after.len(),
        Write::Enter(entry) => entry.before.len() + entry.after.len(),
        Write::Delete { name: entry } | Write::Leave(entry) => entry.len(),
    };
    group.writes.iter().map(write).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::engine::Template;

    fn group(name: &str, version: u64, bytes: usize) -> Group {
        let name = name.as_bytes().to_vec();
        let value = Template::plain(vec![0; bytes]);
        Group {
            compares: vec![(name.clone(), Version(version))],
            writes: vec![Write::Put { name, value }],
            numbers: 1,
        }
    }

    #[test]
    fn a_pack_has_no_name_twice_and_never_too_much() {
        let groups = [group("a", 1, 9), group("a", 1, 9), group("b", 2, BYTES_MAX), group("c", 3, 9)];
        let mut pack = Pack::default();
        let admitted: Vec<_> = groups.iter().enumerate().map(|(n, group)| pack.admit(n, group)).collect();
        assert_eq!(admitted, [Admission::Taken, Admission::Late, Admission::Full, Admission::Taken]);
        assert_eq!(pack.losers(&[Version(1), Version(4)]), [3]);
        let many: Vec<_> = (0..200).map(|n| group(&n.to_string(), 1, 9)).collect();
        let mut pack = Pack::default();
        let taken = many.iter().filter(|group| pack.admit(0, group) == Admission::Taken).count();
        assert_eq!(taken, OPERATIONS_MAX);
        let alone = group("large", 1, 2 * BYTES_MAX);
        assert_eq!(
            Pack::default().admit(0, &alone),
            Admission::Taken,
            "the server may say what it thinks of it"
        );
    }
}
