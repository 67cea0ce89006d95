//! Reads: one round trip for a record with a small reply, two for a page of rows.

use super::codec::{self, ReadRow, StoredReply};
use super::engine::{Found, Kv, Value};
use super::layout::{self, Filter};
use super::prefetch::alike_spans;
use super::replies;
use super::shared::Shared;
use crate::Error;
use crate::store::{
    By, Card, Cell, Cursor, EPOCH_CELL, JOURNAL_PAGE_MAX, JournalLine, Latest, PAGE_ROWS_MAX, Page, Revision,
    Row, Versioned,
};
use semel_core::digest::Digest;

/// How often a reply may be replaced while it is read.
const REPLACED_MAX: usize = 10;

impl<K: Kv> Shared<K> {
    async fn values<const N: usize>(&self, names: [Vec<u8>; N]) -> Result<[Option<Value>; N], Error> {
        let found = self.kv.read(names.into(), Vec::new()).await?;
        found.values.try_into().map_err(|_| codec::damaged("an answer"))
    }

    pub(super) async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        for _ in 0..REPLACED_MAX {
            let names = vec![layout::newest(key), layout::cell(EPOCH_CELL)];
            let Found { values, last: position, .. } = self.kv.read(names, Vec::new()).await?;
            let [row, epoch] = values.try_into().map_err(|_| codec::damaged("an answer"))?;
            let (row, epoch): (Option<Value>, Option<Value>) = (row, epoch);
            let epoch = cell_revision(epoch.as_ref())?;
            let Some(row) = row.as_ref().map(codec::row).transpose()? else {
                return Ok(Versioned { revision: Revision::ABSENT, row: None, epoch, position });
            };
            if let Ok(reply) = self.reply_of(&row).await? {
                let row = Row { reply, ..row.into_row(key) };
                return Ok(Versioned { revision: row.revision, row: Some(row), epoch, position });
            }
        }
        Err(codec::damaged("a reply"))
    }

    pub(super) async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        for _ in 0..REPLACED_MAX {
            let rows = self.values([layout::newest(key), layout::older(key, ordinal)]).await?;
            let Some(row) = pick(&rows[0], &rows[1], ordinal)? else { return Ok(None) };
            if let Ok(reply) = self.reply_of(&row).await? {
                return Ok(reply);
            }
        }
        Err(codec::damaged("a reply"))
    }

    /// `Err(())` inside: it was replaced meanwhile.
    async fn reply_of(&self, row: &ReadRow) -> Result<Result<Option<Vec<u8>>, ()>, Error> {
        Ok(match &row.stored.reply {
            StoredReply::Absent => Ok(None),
            StoredReply::Here(reply) => Ok(Some(reply.clone())),
            StoredReply::Apart { name, chunks } => {
                replies::read(self, *name, *chunks).await?.map(Some).ok_or(())
            }
        })
    }

    pub(super) async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        let [found] = self.values([layout::cell(key)]).await?;
        let Some(value) = found else { return Ok(None) };
        let (last, body) = codec::cell(&value)?;
        Ok(Some(Cell { revision: last.revision, body: body.to_vec() }))
    }

    /// For each key that of the record or the cell under it, whichever there is.
    pub(super) async fn revisions(&self, keys: Vec<Digest>) -> Result<Vec<(Digest, Revision)>, Error> {
        let names = keys.iter().flat_map(|key| [layout::newest(*key), layout::cell(*key)]).collect();
        let found = self.kv.read(names, Vec::new()).await?;
        let revision = |(key, pair): (Digest, &[Option<Value>])| {
            let row = pair[0].as_ref().map(codec::row).transpose()?;
            let row = row.map_or(Revision::ABSENT, |row| row.stored.revision());
            Ok((key, row.max(cell_revision(pair[1].as_ref())?)))
        };
        keys.into_iter().zip(found.values.chunks_exact(2)).map(revision).collect()
    }

    pub(super) async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let names = self.kv.names(layout::CELL).await?;
        let keys: Option<Vec<_>> = names.iter().map(|name| layout::cell_key(name)).collect();
        let mut keys = keys.ok_or_else(|| codec::damaged("the name of a cell"))?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    pub(super) async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        let limit = limit.clamp(1, JOURNAL_PAGE_MAX);
        let Some(span) = layout::onward(layout::JOURNAL, after, limit + 1) else {
            return Ok(Page { items: Vec::new(), next: None });
        };
        let found = self.kv.read(Vec::new(), vec![span]).await?;
        let lines: Result<Vec<_>, Error> = found.entries.iter().flatten().map(|entry| line(entry)).collect();
        Ok(Page::cut(lines?, limit, |(cursor, _)| *cursor))
    }

    pub(super) async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        let limit = limit.min(JOURNAL_PAGE_MAX);
        let found = self.kv.read(Vec::new(), vec![layout::backward(layout::JOURNAL, None, limit)]).await?;
        found.entries.iter().flatten().map(|entry| line(entry)).collect()
    }

    pub(super) async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        let rows = self.values([layout::newest(key), layout::older(key, ordinal)]).await?;
        Ok(pick(&rows[0], &rows[1], ordinal)?.map(|row| row.into_row(key)))
    }

    pub(super) async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        let Page { items, next } = self.rows(Filter::By(by), after, limit).await?;
        Ok(Page { items: items.into_iter().map(|(_, row)| row).collect(), next })
    }

    pub(super) async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        self.rows(Filter::Latest(of), before, limit).await
    }

    async fn rows(
        &self,
        filter: Filter,
        mut from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let prefix = filter.prefix();
        let mut rows = Vec::new();
        // Some entries lead to rows that are not wanted any more.
        while rows.len() <= limit {
            let span = match filter {
                Filter::By(_) => layout::onward(&prefix, from, limit + 1),
                Filter::Latest(_) => Some(layout::backward(&prefix, from, limit + 1)),
            };
            let Some(span) = span else { break };
            let cards = self.cards_in(span).await?;
            let Some(last) = cards.last() else { break };
            from = Some(last.cursor);
            let wanted = self.rows_at(&cards).await?;
            rows.extend(wanted.into_iter().filter(|(_, row)| filter.wants(row)));
            if cards.len() <= limit {
                break;
            }
        }
        Ok(Page::cut(rows, limit, |(cursor, _)| *cursor))
    }

    pub(super) async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        let found = self.kv.read(Vec::new(), alike_spans(alike).into()).await?;
        let [newest, open] = &found.entries[..] else { return Err(codec::damaged("an answer")) };
        Ok(layout::with_open(cards(newest)?, cards(open)?))
    }

    async fn cards_in(&self, span: super::engine::Span) -> Result<Vec<Card>, Error> {
        let found = self.kv.read(Vec::new(), vec![span]).await?;
        cards(found.entries.first().map_or(&[], Vec::as_slice))
    }

    async fn rows_at(&self, cards: &[Card]) -> Result<Vec<(Cursor, Row)>, Error> {
        let names =
            cards.iter().flat_map(|card| [layout::newest(card.key), layout::older(card.key, card.ordinal)]);
        let found = self.kv.read(names.collect(), Vec::new()).await?;
        let mut rows = Vec::with_capacity(cards.len());
        for (card, pair) in cards.iter().zip(found.values.chunks_exact(2)) {
            if let Some(row) = pick(&pair[0], &pair[1], card.ordinal)? {
                rows.push((Cursor(row.id), row.into_row(card.key)));
            }
        }
        Ok(rows)
    }
}

fn cards(entries: &[Vec<u8>]) -> Result<Vec<Card>, Error> {
    entries.iter().map(|entry| layout::card(entry).ok_or_else(|| codec::damaged("the index"))).collect()
}

/// The row of this ordinal, if it is there: the newest one of its record, or the older one that was asked for.
fn pick(newest: &Option<Value>, older: &Option<Value>, ordinal: u32) -> Result<Option<ReadRow>, Error> {
    let newest = newest.as_ref().map(codec::row).transpose()?;
    match newest.filter(|row| row.stored.ordinal == ordinal) {
        Some(row) => Ok(Some(row)),
        None => older.as_ref().map(codec::row).transpose(),
    }
}

fn cell_revision(cell: Option<&Value>) -> Result<Revision, Error> {
    Ok(cell.map(codec::cell).transpose()?.map_or(Revision::ABSENT, |(last, _)| last.revision))
}

fn line(entry: &[u8]) -> Result<(Cursor, JournalLine), Error> {
    let number = entry.strip_prefix(layout::JOURNAL).and_then(|rest| rest.split_first_chunk::<8>());
    let (number, line) = number.ok_or_else(|| codec::damaged("the journal"))?;
    Ok((Cursor(u64::from_be_bytes(*number)), codec::line(line)?))
}
