//! The outside, as rows: a table of text, JSON documents, or a query of a database file.

use super::OutsideRow;
use crate::source::pieces::Pieces;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use semel_core::json::{self, Json, Number, Object};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// How many rows are compared at most: they are held in memory.
pub const ROWS_MAX: usize = 1_000_000;

#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("{place}: {what}")]
    Row { place: String, what: String },
    #[error("it has more than {ROWS_MAX} rows")]
    TooMany,
    #[error("it says that there are more pages (has_more), so it is not whole")]
    NotWhole,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
}

/// Rows of a whole listing: JSON if it begins with a brace or a bracket, else a table with commas and a header.
pub fn of_text(input: impl BufRead) -> Result<Vec<OutsideRow>, OutsideError> {
    match read(input)? {
        (_, true) => Err(OutsideError::NotWhole),
        (rows, false) => Ok(rows),
    }
}

/// Rows of one page, which may say that there are more.
pub fn of_page(page: &[u8]) -> Result<Vec<OutsideRow>, OutsideError> {
    read(page).map(|(rows, _)| rows)
}

/// The rows, and whether the last document says that there are more.
fn read(mut input: impl BufRead) -> Result<(Vec<OutsideRow>, bool), OutsideError> {
    let first = input.fill_buf()?.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') => of_json(input),
        _ => of_csv(input).map(|rows| (rows, false)),
    }
}

fn of_csv(input: impl io::Read) -> Result<Vec<OutsideRow>, OutsideError> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).trim(csv::Trim::Headers).from_reader(input);
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let values: Object =
            header.iter().zip(&record).map(|(name, value)| (name.to_owned(), Json::str(value))).collect();
        push(&mut rows, OutsideRow { place: format!("line {line}"), values: Json::Object(values) })?;
    }
    Ok(rows)
}

fn of_json(input: impl BufRead) -> Result<(Vec<OutsideRow>, bool), OutsideError> {
    let mut pieces = Pieces::new(input);
    let (mut rows, mut goes_on) = (Vec::new(), false);
    while let Some(piece) = pieces.read()? {
        let bad = |line: u64, what: String| OutsideError::Row { place: format!("line {line}"), what };
        let piece = piece.map_err(|(line, why)| bad(line, why.to_string()))?;
        let line = piece.line;
        let value = json::parse_bounded(piece.bytes).map_err(|error| bad(line, error.to_string()))?;
        goes_on = value.get("has_more").and_then(Json::as_bool) == Some(true);
        for value in rows_within(value) {
            let place = format!("line {line}, row {}", rows.len() + 1);
            push(&mut rows, OutsideRow { place, values: value })?;
        }
    }
    Ok((rows, goes_on))
}

/// The rows of a document: a listing's `data`, `items`, `results` or `rows`, or the document itself.
pub fn rows_within(document: Json) -> Vec<Json> {
    const LISTS: [&str; 4] = ["data", "items", "results", "rows"];
    match LISTS.into_iter().find_map(|name| document.get(name)?.as_array()) {
        Some(rows) => rows.to_vec(),
        None => match document {
            Json::Array(rows) => rows,
            document => vec![document],
        },
    }
}

/// The rows of a query on a database file, which is opened for reading alone.
pub fn of_sqlite(file: &Path, query: &str) -> Result<Vec<OutsideRow>, OutsideError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    let mut statement = connection.prepare(query)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let mut values = Object::new();
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => Json::Null,
                ValueRef::Integer(number) => Json::Number(Number::from_i64(number)),
                ValueRef::Real(number) => Number::from_f64(number).map_or(Json::Null, Json::Number),
                ValueRef::Text(text) | ValueRef::Blob(text) => Json::str(&String::from_utf8_lossy(text)),
            };
            values.insert(name.clone(), value);
        }
        let place = format!("row {}", rows.len() + 1);
        push(&mut rows, OutsideRow { place, values: Json::Object(values) })?;
    }
    Ok(rows)
}

pub fn of_file(path: &Path) -> Result<Vec<OutsideRow>, OutsideError> {
    of_text(BufReader::new(std::fs::File::open(path)?))
}

fn push(rows: &mut Vec<OutsideRow>, row: OutsideRow) -> Result<(), OutsideError> {
    if rows.len() >= ROWS_MAX {
        return Err(OutsideError::TooMany);
    }
    rows.push(row);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(String, String)> {
        let rows = of_text(text.as_bytes()).expect("rows");
        rows.into_iter().map(|row| (row.place, row.values.canonical())).collect()
    }

    #[test]
    fn tables_lines_and_listings_are_rows() {
        let one = |place: &str, values: &str| (place.to_owned(), values.to_owned());
        assert_eq!(
            places("id, amount\n1,5\n2,\"6,0\"\n"),
            [one("line 2", r#"{"amount":"5","id":"1"}"#), one("line 3", r#"{"amount":"6,0","id":"2"}"#)]
        );
        assert_eq!(
            places("{\"id\":1}\n{\"id\":2}\n"),
            [one("line 1, row 1", r#"{"id":1}"#), one("line 2, row 2", r#"{"id":2}"#)]
        );
        assert_eq!(places(r#"{"data":[{"id":1},{"id":2}],"has_more":false}"#).len(), 2);
    }

    #[test]
    fn a_broken_row_is_an_error_with_its_place() {
        assert!(of_text("id,amount\n1\n".as_bytes()).is_err());
        let error = of_text("{\"id\":1}\n{\"id\"\n".as_bytes()).expect_err("broken");
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }

    #[test]
    fn a_listing_that_says_that_there_is_more_is_not_whole() {
        let (first, last) =
            (r#"{"data":[{"id":1}],"has_more":true}"#, r#"{"data":[{"id":2}],"has_more":false}"#);
        assert!(matches!(of_text(first.as_bytes()), Err(OutsideError::NotWhole)));
        assert_eq!(of_text(format!("{first}\n{last}\n").as_bytes()).expect("two pages").len(), 2);
        assert_eq!(of_page(first.as_bytes()).expect("a page").len(), 1);
    }

    #[test]
    fn a_database_is_read_and_never_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("bank.db");
        Connection::open(&file)
            .and_then(|db| {
                db.execute_batch("CREATE TABLE c(id TEXT, amount INTEGER); INSERT INTO c VALUES('a', 5)")
            })
            .expect("a table");
        let rows = of_sqlite(&file, "SELECT id, amount FROM c").expect("rows");
        assert_eq!(rows[0].values.canonical(), r#"{"amount":5,"id":"a"}"#);
        assert!(of_sqlite(&file, "DELETE FROM c").is_err());
        assert_eq!(of_sqlite(&file, "SELECT * FROM c").expect("rows").len(), 1);
    }
}
