//! The state that a batch of commits is checked against: locked and read in one round trip, then examined in memory. No
//! rule of the ledger is written in SQL.

use super::columns;
use super::needs::Needs;
use super::statements::Sql;
use crate::precondition::{LastWrite, RowHead, View};
use crate::store::{ALIKE_MAX, Cursor, PAGE_ROWS_MAX, SeenAlike};
use semel_core::digest::{Digest, Secret};
use std::collections::HashMap;
use std::convert::Infallible;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// A host that dies between the two round trips holds its locks for so long; the server would not notice for hours.
const HOLD_WITHIN: &str = "10s";

impl Needs {
    /// Locks and reads, inside a transaction whose `BEGIN` is on its way. The statements leave together and run in this
    /// order, and each sees all that was committed before it began: so the reads see what the locks have waited for.
    pub(super) async fn fetch(
        &self,
        client: &Client,
        (sql, secret): (&Sql, &Secret),
        durable: bool,
    ) -> Result<Prefetched, Error> {
        let (numbers, alone): (Vec<i64>, Vec<bool>) =
            self.locks.iter().map(|(number, alone)| (*number, *alone)).unzip();
        let synchronous = if durable { "on" } else { "off" };
        let records = bytes(&self.records);
        let (row_keys, ordinals): (Vec<Digest>, Vec<i32>) =
            self.rows.iter().map(|(key, ordinal)| (*key, ordinal.cast_signed())).unzip();
        let row_keys = bytes(&row_keys);
        let cells = bytes(&self.cells);
        let families: Vec<&[u8]> = self.relatives.iter().map(|(family, _)| family.0.as_slice()).collect();
        let own: Vec<Option<&[u8]>> =
            self.relatives.iter().map(|(_, except)| except.as_ref().map(|key| key.0.as_slice())).collect();
        let alike = bytes(&self.alike);
        let (alike_max, open_max) = (ALIKE_MAX as i64, PAGE_ROWS_MAX as i64);
        let locking: Values<'_> = &[
            (&numbers, Type::INT8_ARRAY),
            (&alone, Type::BOOL_ARRAY),
            (&synchronous, Type::TEXT),
            (&HOLD_WITHIN, Type::TEXT),
        ];
        let of_heads: Values<'_> = &[(&records, Type::BYTEA_ARRAY)];
        let of_rows: Values<'_> = &[(&row_keys, Type::BYTEA_ARRAY), (&ordinals, Type::INT4_ARRAY)];
        let of_cells: Values<'_> = &[(&cells, Type::BYTEA_ARRAY)];
        let of_relatives: Values<'_> = &[(&families, Type::BYTEA_ARRAY), (&own, Type::BYTEA_ARRAY)];
        let of_alike: Values<'_> =
            &[(&alike, Type::BYTEA_ARRAY), (&alike_max, Type::INT8), (&open_max, Type::INT8)];
        let (place, heads, rows, cells, relatives, alike) = tokio::try_join!(
            biased;
            ask(client, true, &sql.begin, locking),
            ask(client, !records.is_empty(), &sql.heads, of_heads),
            ask(client, !row_keys.is_empty(), &sql.rows, of_rows),
            ask(client, !cells.is_empty(), &sql.cells, of_cells),
            ask(client, !families.is_empty(), &sql.relatives, of_relatives),
            ask(client, !alike.is_empty(), &sql.alike, of_alike),
        )?;
        Ok(Prefetched {
            first_id: place.first().map_or(0, |place| place.get(0)),
            is_same_history: place.first().is_some_and(|place| place.get(1)),
            format: place.first().map_or(0, |place| place.get(2)),
            is_same_ledger: place.first().is_some_and(|place| place.get::<_, &[u8]>(3) == secret.expose()),
            heads: heads.iter().map(columns::head).collect(),
            rows: rows.iter().map(columns::head).map(|(key, head)| ((key, head.ordinal), head)).collect(),
            cells: cells
                .iter()
                .map(|found| {
                    let revision = columns::revision(found, 1);
                    (columns::digest(found, 0), LastWrite { revision, nonce: columns::nonce(found, 2) })
                })
                .collect(),
            relatives: relatives
                .iter()
                .map(|found| (columns::digest(found, 0), columns::digest(found, 1)))
                .collect(),
            alike: alike
                .iter()
                .map(|found| {
                    let newest = found.get::<_, Option<i64>>(1).map(|id| Cursor(id.cast_unsigned()));
                    let changes = columns::revision(found, 2).0;
                    let open = found.get::<_, &str>(3).parse().unwrap_or(u64::MAX);
                    (columns::digest(found, 0), SeenAlike { newest, changes, open })
                })
                .collect(),
        })
    }
}

type Values<'v> = &'v [(&'v (dyn ToSql + Sync), Type)];

async fn ask(
    client: &Client,
    wanted: bool,
    sql: &str,
    values: Values<'_>,
) -> Result<Vec<tokio_postgres::Row>, Error> {
    if wanted { client.query_typed(sql, values).await } else { Ok(Vec::new()) }
}

fn bytes(digests: &[Digest]) -> Vec<&[u8]> {
    digests.iter().map(|digest| digest.0.as_slice()).collect()
}

#[derive(Debug)]
pub(super) struct Prefetched {
    /// The first id that this transaction may give.
    pub(super) first_id: i64,
    /// The database has lost nothing since the ledger was last written.
    pub(super) is_same_history: bool,
    /// The ledger's own, which a newer semel may have changed since this one has opened it.
    pub(super) format: i32,
    /// Its secret is the one that it was opened with.
    pub(super) is_same_ledger: bool,
    heads: HashMap<Digest, RowHead>,
    rows: HashMap<(Digest, u32), RowHead>,
    cells: HashMap<Digest, LastWrite>,
    relatives: HashMap<Digest, Digest>,
    alike: HashMap<Digest, SeenAlike>,
}

impl View for Prefetched {
    type Error = Infallible;

    fn newest(&mut self, key: Digest) -> Result<Option<RowHead>, Infallible> {
        Ok(self.heads.get(&key).cloned())
    }

    fn row(&mut self, key: Digest, ordinal: u32) -> Result<Option<RowHead>, Infallible> {
        Ok(self.rows.get(&(key, ordinal)).cloned())
    }

    fn cell(&mut self, key: Digest) -> Result<LastWrite, Infallible> {
        Ok(self.cells.get(&key).copied().unwrap_or(LastWrite::NONE))
    }

    fn open_relative(
        &mut self,
        family: Digest,
        _except: Option<Digest>,
    ) -> Result<Option<Digest>, Infallible> {
        // The query has left out the commit's own record.
        Ok(self.relatives.get(&family).copied())
    }

    fn alike(&mut self, alike: Digest) -> Result<SeenAlike, Infallible> {
        Ok(self.alike.get(&alike).copied().unwrap_or_default())
    }
}
