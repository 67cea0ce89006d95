//! Scans: rows in order of insertion, a page at a time, each page a snapshot of its own.

use super::columns::{digest, prefix, tag};
use super::read::{ROW_COLUMNS, before, from, row};
use crate::store::{ALIKE_MAX, By, Card, Cursor, Latest, PAGE_ROWS_MAX, Page, Revision, Row};
use rusqlite::{Connection, Params, params};
use semel_core::digest::Digest;

/// A page of [`By::ChangedBefore`] looks at no more rows than this, found or not, so that no reader holds the WAL
/// for long. It may therefore be short, or empty, and still have a next one.
const EXAMINED_MAX: usize = 4_000;

type RowPage = rusqlite::Result<Page<Row>>;

pub(super) fn scan(connection: &Connection, by: By, after: Option<Cursor>, limit: usize) -> RowPage {
    let limit = limit.clamp(1, PAGE_ROWS_MAX);
    let (id, more) = (from(after), limit as i64 + 1);
    // Walks all that is open, whatever it is filed under. That is little, and asked for by people and after deaths.
    let all_open = "FROM whole WHERE id IN (SELECT id FROM open WHERE id > ?1) AND whole.open";
    match by {
        By::All => rows(connection, "FROM whole WHERE id > ?1", limit, params![id, more]),
        By::Record(key) => {
            // Its effects were inserted in their order.
            let which = "FROM whole WHERE substr(key, 1, 8) = ?1 AND id > ?2 ORDER BY ordinal";
            rows(connection, which, limit, params![prefix(&key), id, more])
        }
        By::Run(run) => {
            let which = "FROM whole WHERE substr(run, 1, 8) = ?1 AND run = ?2 AND id > ?3";
            rows(connection, which, limit, params![prefix(&run), run.0, id, more])
        }
        By::Effect(effect) => {
            let which = "FROM whole WHERE effect = ?1 AND id > ?2";
            rows(connection, which, limit, params![effect.to_be_bytes(), id, more])
        }
        By::Open => rows(connection, all_open, limit, params![id, more]),
        By::Owner(owner) => {
            let which = format!("{all_open} AND owner = ?2");
            rows(connection, &which, limit, params![id, owner.0.to_be_bytes(), more])
        }
        By::ChangedBefore(at) => changed_before(connection, before(at), id, limit),
    }
}

pub(super) fn latest(
    connection: &Connection,
    of: Latest,
    before: Option<Cursor>,
    limit: usize,
) -> rusqlite::Result<Page<(Cursor, Row)>> {
    let limit = limit.clamp(1, PAGE_ROWS_MAX);
    let id = before.map_or(i64::MAX, |before| from(Some(before)));
    let more = limit as i64 + 1;
    let select =
        |which: &str| format!("SELECT {ROW_COLUMNS} FROM whole WHERE {which} ORDER BY whole.id DESC");
    let found = match of {
        Latest::All => {
            let mut query = connection.prepare_cached(&(select("id < ?1") + " LIMIT ?2"))?;
            query.query_map(params![id, more], row)?.collect::<Result<Vec<_>, _>>()
        }
        Latest::Open => {
            let which = "id IN (SELECT id FROM open WHERE id < ?1) AND whole.open";
            let mut query = connection.prepare_cached(&(select(which) + " LIMIT ?2"))?;
            query.query_map(params![id, more], row)?.collect()
        }
        Latest::Run(run) => {
            let which = "substr(run, 1, 8) = ?1 AND run = ?2 AND id < ?3";
            let mut query = connection.prepare_cached(&(select(which) + " LIMIT ?4"))?;
            query.query_map(params![prefix(&run), run.0, id, more], row)?.collect()
        }
        Latest::OpenAlike(alike) => {
            let which =
                "id IN (SELECT id FROM open WHERE tag = ?1 AND id < ?2) AND whole.open AND alike = ?3";
            let mut query = connection.prepare_cached(&(select(which) + " LIMIT ?4"))?;
            query.query_map(params![tag(alike), id, alike.0, more], row)?.collect()
        }
        Latest::Alike(alike) => {
            let which = "substr(alike, 1, 8) = ?1 AND alike = ?2 AND id < ?3";
            let mut query = connection.prepare_cached(&(select(which) + " LIMIT ?4"))?;
            query.query_map(params![prefix(&alike), alike.0, id, more], row)?.collect()
        }
    }?;
    Ok(Page::cut(found, limit, |(cursor, _)| *cursor))
}

pub(super) fn cards(connection: &Connection, alike: Digest) -> rusqlite::Result<Vec<Card>> {
    const CARD: &str = "SELECT id, key, ordinal, content, open, mark NOT NULL, revision FROM whole";
    let newest =
        format!("{CARD} WHERE substr(alike, 1, 8) = ?1 AND alike = ?2 ORDER BY whole.id DESC LIMIT ?3");
    let mut query = connection.prepare_cached(&newest)?;
    let values = params![prefix(&alike), alike.0, ALIKE_MAX as i64];
    let mut cards = query.query_map(values, card)?.collect::<Result<Vec<_>, _>>()?;
    if cards.len() == ALIKE_MAX
        && let Some(Cursor(oldest)) = cards.last().map(|card| card.cursor)
    {
        let open = "id IN (SELECT id FROM open WHERE tag = ?1 AND id < ?2) AND whole.open AND alike = ?3";
        let open = format!("{CARD} WHERE {open} ORDER BY whole.id DESC LIMIT ?4");
        let values = params![tag(alike), oldest as i64, alike.0, PAGE_ROWS_MAX as i64];
        let mut query = connection.prepare_cached(&open)?;
        let older = query.query_map(values, card)?;
        cards.extend(older.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(cards)
}

fn card(row: &rusqlite::Row<'_>) -> rusqlite::Result<Card> {
    Ok(Card {
        cursor: Cursor(row.get::<_, i64>(0)? as u64),
        key: digest(row, 1)?,
        ordinal: row.get(2)?,
        content: row.get::<_, i64>(3)? as u64,
        open: row.get(4)?,
        delivered: row.get(5)?,
        revision: Revision(row.get::<_, i64>(6)? as u64),
    })
}

/// `which` is a source with its conditions, and with its order if that is another; the last parameter is the number of rows wanted, one above the limit.
fn rows(connection: &Connection, which: &str, limit: usize, values: impl Params) -> RowPage {
    let last = which.split('?').skip(1).filter_map(|rest| rest.as_bytes().first()).max();
    let last = last.map_or(1, |digit| digit - b'0' + 1);
    let order = if which.contains("ORDER BY") { "" } else { "ORDER BY whole.id" };
    let sql = format!("SELECT {ROW_COLUMNS} {which} {order} LIMIT ?{last}");
    let mut query = connection.prepare_cached(&sql)?;
    let found = query.query_map(values, row)?.collect::<Result<Vec<_>, _>>()?;
    let Page { items, next } = Page::cut(found, limit, |(cursor, _)| *cursor);
    Ok(Page { items: items.into_iter().map(|(_, row)| row).collect(), next })
}

/// Retention's walk. Rows are inserted in the order in which they were opened, and none changes before it is
/// opened, so behind a long stretch of rows that were opened too late there is nothing to find. A long stretch and
/// not one row, because a clock may once have run ahead.
fn changed_before(connection: &Connection, at: i64, after: i64, limit: usize) -> RowPage {
    let snapshot = connection.unchecked_transaction()?;
    let mut walk = snapshot
        .prepare_cached("SELECT id, opened_at, changed_at FROM whole WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let mut fetch = snapshot.prepare_cached(&format!("SELECT {ROW_COLUMNS} FROM whole WHERE id = ?1"))?;
    let (mut items, mut last, mut examined, mut opened_in_time) = (Vec::new(), after, 0, false);
    let mut found = walk.query(params![after, EXAMINED_MAX as i64])?;
    while let Some(next) = found.next()? {
        if items.len() == limit {
            return Ok(Page { items, next: Some(Cursor(last as u64)) });
        }
        let (id, opened_at, changed_at): (i64, i64, i64) = (next.get(0)?, next.get(1)?, next.get(2)?);
        examined += 1;
        last = id;
        opened_in_time |= opened_at < at;
        if changed_at < at {
            items.push(fetch.query_row([id], row)?.1);
        }
    }
    let goes_on = examined == EXAMINED_MAX && opened_in_time;
    Ok(Page { items, next: goes_on.then_some(Cursor(last as u64)) })
}
