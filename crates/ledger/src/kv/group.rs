//! A commit that may land, as the writes of one group.

use super::codec::{self, ReadRow, StoredReply, StoredRow};
use super::engine::{Group, Template, Write};
use super::layout;
use super::prefetch::{Gap, Look};
use crate::precondition::{LastWrite, RowHead};
use crate::store::{Against, Card, Commit, Index, Put, ReplyChange};
use semel_core::digest::Digest;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct GroupBuilder<'p> {
    look: Look<'p>,
    /// `None` deletes.
    values: BTreeMap<Vec<u8>, Option<Template>>,
    index: Vec<Write>,
    families: BTreeMap<Digest, Vec<(Digest, u32)>>,
    numbers: u32,
}

impl<'p> GroupBuilder<'p> {
    /// `look` has examined the commit.
    pub(super) fn new(look: Look<'p>) -> GroupBuilder<'p> {
        GroupBuilder {
            look,
            values: BTreeMap::new(),
            index: Vec::new(),
            families: BTreeMap::new(),
            numbers: 0,
        }
    }

    /// `heads` are the rows that the puts overwrite, `large` the replies that lie on the server already.
    pub(super) fn add(
        &mut self,
        commit: &Commit,
        heads: Vec<Option<RowHead>>,
        large: &[Option<StoredReply>],
    ) -> Result<(), Gap> {
        for ((put, head), large) in commit.puts.iter().zip(heads).zip(large) {
            match put {
                Put::Record { key, ordinal, expected, against, index, body, reply, .. } => {
                    let last = LastWrite::after(*expected, commit.nonce);
                    let (name, overwritten) = match against {
                        Against::Itself => {
                            let (name, row) = self.row_and_name(*key, *ordinal)?;
                            (name, Some(row))
                        }
                        Against::Newest => {
                            let newest = self.look.newest_row(*key)?;
                            if let Some(superseded) = newest.as_ref().filter(|_| head.is_none()) {
                                let name = layout::older(*key, superseded.stored.ordinal);
                                self.put(name, superseded.stored.value(superseded.id, None));
                            }
                            (layout::newest(*key), newest.filter(|_| head.is_some()))
                        }
                    };
                    let kept = self.reply_after(overwritten.as_ref(), reply, large.as_ref());
                    let row = StoredRow::new(*ordinal, last, index, body, kept);
                    self.write_row(*key, name, overwritten, row)?;
                }
                Put::Forget { key, ordinal, .. } => self.forget(*key, *ordinal)?,
                Put::DropReply { key, ordinal } => {
                    let (name, mut row) = self.row_and_name(*key, *ordinal)?;
                    self.delete_chunks(&row.stored.reply);
                    row.stored.reply = StoredReply::Absent;
                    self.put(name, row.stored.value(row.id, None));
                }
                Put::Cell { key, expected, body } => {
                    let bytes = codec::cell_bytes(LastWrite::after(*expected, commit.nonce), body);
                    self.put(layout::cell(*key), Template::plain(bytes));
                }
                Put::ForgetCell { key, .. } => drop(self.values.insert(layout::cell(*key), None)),
            }
        }
        for line in &commit.journal {
            let number = Some(self.next_number());
            let after = codec::line_bytes(line);
            let entry = Template { number, after, ..Template::plain(layout::JOURNAL.to_vec()) };
            self.index.push(Write::Enter(entry));
        }
        Ok(())
    }

    pub(super) fn put(&mut self, name: Vec<u8>, value: Template) {
        self.values.insert(name, Some(value));
    }

    pub(super) fn build(mut self) -> Group {
        for (family, relatives) in std::mem::take(&mut self.families) {
            let value = (!relatives.is_empty()).then(|| Template::plain(codec::relatives_bytes(&relatives)));
            self.values.insert(layout::family(family), value);
        }
        let write = |(name, value): (Vec<u8>, Option<Template>)| match value {
            Some(value) => Write::Put { name, value },
            None => Write::Delete { name },
        };
        let writes = self.values.into_iter().map(write).chain(self.index).collect();
        Group { compares: self.look.into_compares(), writes, numbers: self.numbers }
    }

    fn next_number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers - 1
    }

    fn write_row(
        &mut self,
        key: Digest,
        name: Vec<u8>,
        before: Option<ReadRow>,
        row: StoredRow,
    ) -> Result<(), Gap> {
        let fresh = if before.is_some() { None } else { Some(self.next_number()) };
        let id = before.as_ref().map_or(0, |before| before.id);
        self.put(name, row.value(id, fresh));
        let (index, place) = (row.index(), row.card(id, key));
        let old = before.map(|before| (before.stored.index(), before.stored.card(before.id, key)));
        self.move_entries(old.as_ref().map(|(index, place)| (index, place)), Some((&index, &place)), fresh)
    }

    fn forget(&mut self, key: Digest, ordinal: u32) -> Result<(), Gap> {
        let (name, row) = self.row_and_name(key, ordinal)?;
        self.values.insert(name.clone(), None);
        self.delete_chunks(&row.stored.reply);
        if name != layout::newest(key) {
            // Written again, so that whoever has looked for the row before the newest looks again.
            if let Some(newest) = self.look.newest_row(key)? {
                self.put(layout::newest(key), newest.stored.value(newest.id, None));
            }
        } else if let Some(before) = self.look.ordinal_before(key, ordinal)?
            && let Some(next) = self.look.older_row(key, before)?
        {
            self.values.insert(layout::older(key, before), None);
            self.put(name, next.stored.value(next.id, None));
        }
        let (index, place) = (row.stored.index(), row.stored.card(row.id, key));
        self.move_entries(Some((&index, &place)), None, None)
    }

    /// Takes the old entries of a row away and adds the new ones, and does the same with its family.
    fn move_entries(
        &mut self,
        old: Option<(&Index, &Card)>,
        new: Option<(&Index, &Card)>,
        fresh: Option<u32>,
    ) -> Result<(), Gap> {
        let entries = |row: Option<(&Index, &Card)>| {
            row.map_or_else(Vec::new, |(index, place)| layout::entries(index, place))
        };
        let (before, after) = (entries(old), entries(new));
        let id = old.map_or(0, |(_, card)| card.cursor.0);
        for entry in before.iter().filter(|entry| !after.contains(entry)) {
            self.index.push(Write::Leave(layout::entry(entry.clone(), id, None).fill(0)));
        }
        for entry in after.iter().filter(|entry| !before.contains(entry)) {
            self.index.push(Write::Enter(layout::entry(entry.clone(), id, fresh)));
        }
        let home =
            |(index, card): (&Index, &Card)| index.open.then_some((index.family, (card.key, card.ordinal)));
        let (left, joined) = (old.and_then(home), new.and_then(home));
        if left != joined {
            if let Some((family, row)) = left {
                self.family(family)?.retain(|other| *other != row);
            }
            if let Some((family, row)) = joined {
                self.family(family)?.push(row);
            }
        }
        // A mark of delivery is in nobody's way.
        let changes = old.map(|(index, _)| index) != new.map(|(index, _)| index);
        for alike in [old, new].into_iter().flatten().filter(|_| changes).filter_map(|(index, _)| index.alike)
        {
            self.put(layout::alike_guard(alike), Template::plain(Vec::new()));
        }
        Ok(())
    }

    fn family(&mut self, family: Digest) -> Result<&mut Vec<(Digest, u32)>, Gap> {
        if !self.families.contains_key(&family) {
            let relatives = self.look.relatives(family)?;
            self.families.insert(family, relatives);
        }
        Ok(self.families.entry(family).or_default())
    }

    fn row_and_name(&mut self, key: Digest, ordinal: u32) -> Result<(Vec<u8>, ReadRow), Gap> {
        if let Some(row) = self.look.newest_row(key)?.filter(|row| row.stored.ordinal == ordinal) {
            return Ok((layout::newest(key), row));
        }
        let row = self.look.older_row(key, ordinal)?.expect("the row was found by the check");
        Ok((layout::older(key, ordinal), row))
    }

    fn reply_after(
        &mut self,
        overwritten: Option<&ReadRow>,
        change: &ReplyChange,
        large: Option<&StoredReply>,
    ) -> StoredReply {
        let before = overwritten.map_or(StoredReply::Absent, |row| row.stored.reply.clone());
        let after = match change {
            ReplyChange::Keep => return before,
            ReplyChange::Set(reply) => large.cloned().unwrap_or_else(|| StoredReply::Here(reply.clone())),
            ReplyChange::Drop => StoredReply::Absent,
        };
        self.delete_chunks(&before);
        after
    }

    fn delete_chunks(&mut self, reply: &StoredReply) {
        if let StoredReply::Apart { name, chunks } = reply {
            self.values.extend((0..*chunks).map(|chunk| (layout::chunk(*name, chunk), None)));
        }
    }
}
