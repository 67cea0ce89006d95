//! Reads, all over one connection: the server answers them in order, and they are short.

use super::address::PostgresAddress;
use super::columns::{self, micros};
use super::connect::{explain, session};
use super::statements::{ROW, Sql};
use super::transaction::ANSWER_WITHIN;
use crate::Error;
use crate::store::{
    ALIKE_MAX, By, Card, Cell, Cursor, JOURNAL_PAGE_MAX, JournalLine, Latest, PAGE_ROWS_MAX, Page, Revision,
    Row, Versioned,
};
use semel_core::digest::Digest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row as Found};

/// A line may lie behind a transaction that began earlier and still runs. It is left out, or a line of that transaction
/// would be passed over; but most end in a moment, and who has just written wants to read it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const LOOKS_MAX: usize = 20;

/// The column of a line that says that all earlier transactions have ended.
const ENDED: usize = 6;

/// The server takes its time for more, and a question has to be answered soon.
const CELL_KEYS_PAGE: usize = 10_000;

/// Over so many connections, should they break.
const ASK_MAX: usize = 3;

pub(super) struct Reader {
    address: PostgresAddress,
    pub(super) sql: Arc<Sql>,
    client: Mutex<Arc<Client>>,
}

type Values<'v> = &'v [(&'v (dyn ToSql + Sync), Type)];

impl Reader {
    pub(super) fn new(address: PostgresAddress, sql: Arc<Sql>, client: Client) -> Reader {
        Reader { address, sql, client: Mutex::new(Arc::new(client)) }
    }

    async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut kept = self.client.lock().await;
        if kept.is_closed() {
            *kept = Arc::new(session(&self.address).await?);
        }
        Ok(Arc::clone(&kept))
    }

    pub(super) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Found>, Error> {
        let silent = |_| Error::NotRead { what: "the server does not answer".to_owned() };
        timeout(ANSWER_WITHIN, self.ask(sql, values)).await.map_err(silent)?
    }

    /// A read whose connection breaks is asked again over a new one.
    async fn ask(&self, sql: &str, values: Values<'_>) -> Result<Vec<Found>, Error> {
        let mut asked = 0;
        loop {
            asked += 1;
            let client = self.client().await?;
            match client.query_typed(sql, values).await {
                Err(_) if client.is_closed() && asked < ASK_MAX => {}
                answered => return answered.map_err(|error| Error::NotRead { what: explain(&error) }),
            }
        }
    }

    pub(super) async fn read(&self, key: Digest) -> Result<Versioned, Error> {
        let found = self.query(&self.sql.read, &[(&key.0.as_slice(), Type::BYTEA)]).await?;
        let found = &found[0];
        let epoch = columns::revision(found, 18);
        let position = found.get::<_, Option<i64>>(19).unwrap_or_default().cast_unsigned();
        if found.get::<_, Option<i64>>(0).is_none() {
            return Ok(Versioned { revision: Revision::ABSENT, row: None, epoch, position });
        }
        let (_, row) = columns::row(found);
        let row = Row { reply: found.get(17), ..row };
        Ok(Versioned { revision: row.revision, row: Some(row), epoch, position })
    }

    pub(super) async fn cell(&self, key: Digest) -> Result<Option<Cell>, Error> {
        let found = self.query(&self.sql.cell, &[(&key.0.as_slice(), Type::BYTEA)]).await?;
        Ok(found.first().map(|found| Cell { revision: columns::revision(found, 0), body: found.get(1) }))
    }

    pub(super) async fn cell_keys(&self) -> Result<Vec<Digest>, Error> {
        let mut keys: Vec<Digest> = Vec::new();
        loop {
            let last = keys.last().map_or(Vec::new(), |key| key.0.to_vec());
            let values: Values<'_> = &[(&last, Type::BYTEA), (&(CELL_KEYS_PAGE as i64), Type::INT8)];
            let found = self.query(&self.sql.cell_keys, values).await?;
            keys.extend(found.iter().map(|found| columns::digest(found, 0)));
            if found.len() < CELL_KEYS_PAGE {
                return Ok(keys);
            }
        }
    }

    pub(super) async fn reply(&self, key: Digest, ordinal: u32) -> Result<Option<Vec<u8>>, Error> {
        let values: Values<'_> = &[(&key.0.as_slice(), Type::BYTEA), (&ordinal.cast_signed(), Type::INT4)];
        let found = self.query(&self.sql.reply, values).await?;
        Ok(found.first().and_then(|found| found.get(0)))
    }

    /// For each key that of the record or the cell under it, whichever there is.
    pub(super) async fn revisions(&self, keys: Vec<Digest>) -> Result<Vec<(Digest, Revision)>, Error> {
        let wanted: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
        let found = self.query(&self.sql.revisions, &[(&wanted, Type::BYTEA_ARRAY)]).await?;
        Ok(found.iter().map(|found| (columns::digest(found, 0), columns::revision(found, 1))).collect())
    }

    pub(super) async fn journal(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, JournalLine)>, Error> {
        let limit = limit.clamp(1, JOURNAL_PAGE_MAX);
        let values: Values<'_> = &[(&from(after), Type::INT8), (&(limit as i64 + 1), Type::INT8)];
        let mut looks = 0;
        loop {
            looks += 1;
            let found = self.query(&self.sql.journal, values).await?;
            let ended = found.iter().take_while(|line| line.get(ENDED)).count();
            if ended == found.len() || looks == LOOKS_MAX {
                return Ok(Page::cut(found[..ended].iter().map(columns::line).collect(), limit, |line| {
                    line.0
                }));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    pub(super) async fn holds_lines_back(&self) -> Result<bool, Error> {
        for _ in 0..LOOKS_MAX {
            let found = self.query(&self.sql.newest_lines, &[(&1_i64, Type::INT8)]).await?;
            if found.iter().all(|line| line.get(ENDED)) {
                return Ok(false);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(true)
    }

    pub(super) async fn newest_lines(&self, limit: usize) -> Result<Vec<(Cursor, JournalLine)>, Error> {
        let values: Values<'_> = &[(&(limit.min(JOURNAL_PAGE_MAX) as i64), Type::INT8)];
        for _ in 0..LOOKS_MAX {
            let found = self.query(&self.sql.newest_lines, values).await?;
            if found.iter().all(|line| line.get(ENDED)) {
                return Ok(found.iter().map(columns::line).collect());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let found = self.query(&self.sql.newest_ended_lines, values).await?;
        Ok(found.iter().map(columns::line).collect())
    }

    pub(super) async fn scan(&self, by: By, after: Option<Cursor>, limit: usize) -> Result<Page<Row>, Error> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let (after, more) = (from(after), limit as i64 + 1);
        let (which, value): (&str, Option<(&(dyn ToSql + Sync), Type)>) = match &by {
            By::All => ("true", None),
            By::Open => ("open", None),
            By::Run(run) => ("run = $3", Some((&run.0.as_slice(), Type::BYTEA))),
            By::Record(key) => ("key = $3", Some((&key.0.as_slice(), Type::BYTEA))),
            By::Effect(effect) => ("effect = $3", Some((&effect.to_be_bytes().to_vec(), Type::BYTEA))),
            By::Owner(owner) => ("open AND owner = $3", Some((&owner.0.to_be_bytes().to_vec(), Type::BYTEA))),
            By::ChangedBefore(at) => ("changed_at < $3", Some((&micros(*at), Type::INT8))),
        };
        let sql = format!(
            "SELECT {ROW} FROM {}.effect e WHERE id > $1 AND {which} ORDER BY id LIMIT $2",
            self.sql.schema
        );
        let mut values: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&after, Type::INT8), (&more, Type::INT8)];
        values.extend(value);
        let found = self.query(&sql, &values).await?;
        let Page { items, next } =
            Page::cut(found.iter().map(columns::row).collect(), limit, |(cursor, _)| *cursor);
        Ok(Page { items: items.into_iter().map(|(_, row)| row).collect(), next })
    }

    pub(super) async fn occurrence(&self, key: Digest, ordinal: u32) -> Result<Option<Row>, Error> {
        let values: Values<'_> = &[(&key.0.as_slice(), Type::BYTEA), (&ordinal.cast_signed(), Type::INT4)];
        let found = self.query(&self.sql.occurrence, values).await?;
        Ok(found.first().map(|found| columns::row(found).1))
    }

    pub(super) async fn cards(&self, alike: Digest) -> Result<Vec<Card>, Error> {
        let (newest, open) = (ALIKE_MAX as i64, PAGE_ROWS_MAX as i64);
        let values: Values<'_> =
            &[(&alike.0.as_slice(), Type::BYTEA), (&newest, Type::INT8), (&open, Type::INT8)];
        Ok(self.query(&self.sql.cards, values).await?.iter().map(columns::card).collect())
    }

    pub(super) async fn latest(
        &self,
        of: Latest,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<(Cursor, Row)>, Error> {
        let limit = limit.clamp(1, PAGE_ROWS_MAX);
        let before = before.map_or(i64::MAX, |before| from(Some(before)));
        let more = limit as i64 + 1;
        let (which, value) = match &of {
            Latest::All => ("true", None),
            Latest::Open => ("open", None),
            Latest::Run(run) => ("run = $3", Some(run)),
            Latest::Alike(alike) => ("alike = $3", Some(alike)),
            Latest::OpenAlike(alike) => ("open AND alike = $3", Some(alike)),
        };
        let sql = format!(
            "SELECT {ROW} FROM {}.effect e WHERE id < $1 AND {which} ORDER BY id DESC LIMIT $2",
            self.sql.schema
        );
        let value = value.map(|digest| digest.0.as_slice());
        let mut values: Vec<(&(dyn ToSql + Sync), Type)> = vec![(&before, Type::INT8), (&more, Type::INT8)];
        if let Some(value) = &value {
            values.push((value, Type::BYTEA));
        }
        let found = self.query(&sql, &values).await?;
        Ok(Page::cut(found.iter().map(columns::row).collect(), limit, |(cursor, _)| *cursor))
    }
}

fn from(after: Option<Cursor>) -> i64 {
    after.map_or(0, |Cursor(id)| i64::try_from(id).unwrap_or(i64::MAX))
}
