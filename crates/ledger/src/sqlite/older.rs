//! A ledger of an older format, as it lies there: its tables, row by row, for whoever wants to know what it said.

use super::connection;
use super::fault::SqliteFault;
use crate::Error;
use crate::place::Place;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

/// The replies of tools, which not everybody wants to see.
const REPLY: &str = "reply";

/// Gives every row of every table as one object: the table's name, and its columns. Bytes are hexadecimal digits. The
/// check value of the secret stays behind. `false` from `give` ends it.
pub fn export_older(
    place: &Place,
    with_replies: bool,
    mut give: impl FnMut(Map<String, Value>) -> bool,
) -> Result<(), Error> {
    let failed = |error: rusqlite::Error| SqliteFault::while_reading(place, &error);
    let place = &place.resolved()?;
    let connection = connection::reader(place).map_err(failed)?;
    let tables =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let tables: Vec<String> = connection
        .prepare(tables)
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(failed)?;
    for table in tables.iter().filter(|table| with_replies || *table != REPLY) {
        let mut export = || -> rusqlite::Result<bool> {
            let mut query =
                connection.prepare(&format!("SELECT * FROM \"{}\"", table.replace('"', "\"\"")))?;
            let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let mut object = Map::from_iter([("table".to_owned(), table.as_str().into())]);
                for (place, column) in columns.iter().enumerate() {
                    let is_shown = with_replies || column != REPLY;
                    if is_shown && column != "secret_check" {
                        object.insert(column.clone(), value(row.get_ref(place)?));
                    }
                }
                if !give(object) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if !export().map_err(failed)? {
            break;
        }
    }
    Ok(())
}

fn value(column: ValueRef<'_>) -> Value {
    match column {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        // A line of the journal is JSON already.
        ValueRef::Text(text) => serde_json::from_slice::<Map<String, Value>>(text)
            .map_or_else(|_| String::from_utf8_lossy(text).into(), Value::Object),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}
