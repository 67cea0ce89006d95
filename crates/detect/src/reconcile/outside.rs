//! The outside, as rows: a table of text, JSON documents, or a query of a database file.

use super::OutsideRow;
use crate::source::pieces::Pieces;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use semel_core::json::{self, Json, Number, Object};
use semel_core::judgement::error_text;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// How many rows are compared at most: they are held in memory.
pub const ROWS_MAX: usize = 1_000_000;
/// A table of a million rows is below it.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("{place}: {what}")]
    Row { place: String, what: String },
    #[error("it has more than {ROWS_MAX} rows")]
    TooMany,
    #[error("it says that there is more ({0}), so it is not whole")]
    NotWhole(String),
    #[error("it is empty: even a table without rows has a header")]
    Empty,
    #[error("it is a page of HTML or XML")]
    Markup,
    #[error("it is longer than {} MiB", BYTES_MAX >> 20)]
    TooLong,
    #[error("it reports an error instead of a listing: {0}")]
    Failed(String),
    #[error("it holds no list: `data`, `items`, `results` and `rows` are read")]
    NoList,
    #[error("the query returns no rows, or changes something")]
    NoQuery,
    #[error("page {0}: {1}")]
    Page(usize, Box<OutsideError>),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
}

/// Rows, and the words of the last document about the listing as a whole.
#[derive(Debug, Default)]
struct Listing {
    rows: Vec<OutsideRow>,
    goes_on: bool,
    /// The member that says how many rows there are, and how many.
    total: Option<(&'static str, u64)>,
    /// Every document held a list.
    is_listed: bool,
}

/// Rows of a whole listing: JSON if it begins with a brace or a bracket, else a table with commas and a header.
pub fn of_text(input: impl BufRead) -> Result<Vec<OutsideRow>, OutsideError> {
    let listing = read(input)?;
    if listing.goes_on {
        return Err(OutsideError::NotWhole("has_more".to_owned()));
    }
    whole(listing.rows, listing.total)
}

/// Rows of all pages of a listing. Rows with one id on two pages are one row: the listing moved while it was read.
pub fn of_pages(pages: &[impl AsRef<[u8]>]) -> Result<Vec<OutsideRow>, OutsideError> {
    let mut rows = Vec::new();
    let mut total = None;
    let mut page_of_id: HashMap<String, usize> = HashMap::new();
    for (number, page) in (1..).zip(pages) {
        let on_page = |error: OutsideError| OutsideError::Page(number, Box::new(error));
        let listing = read(page.as_ref()).map_err(on_page)?;
        if !listing.is_listed {
            return Err(on_page(OutsideError::NoList));
        }
        total = listing.total.or(total);
        for row in listing.rows {
            let id = row.values.get("id").map(Json::canonical);
            if id.is_some_and(|id| *page_of_id.entry(id).or_insert(number) != number) {
                continue;
            }
            push(&mut rows, OutsideRow { place: format!("page {number}, {}", row.place), ..row })?;
        }
    }
    whole(rows, total)
}

fn whole(rows: Vec<OutsideRow>, total: Option<(&'static str, u64)>) -> Result<Vec<OutsideRow>, OutsideError> {
    match total.filter(|(_, total)| *total > rows.len() as u64) {
        Some((name, total)) => {
            Err(OutsideError::NotWhole(format!("{name} is {total}, and {} rows came", rows.len())))
        }
        None => Ok(rows),
    }
}

fn read(mut input: impl BufRead) -> Result<Listing, OutsideError> {
    let beginning = input.fill_buf()?;
    let first = beginning.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let has_returns = beginning.windows(2).any(|pair| pair == b"\r\n");
    let mut bounded = BufReader::new(input.take(BYTES_MAX));
    let listing = match first {
        None => return Err(OutsideError::Empty),
        Some(b'<') => return Err(OutsideError::Markup),
        Some(b'{') => of_json(&mut bounded),
        Some(b'[') => of_json(&mut bounded).map(|listing| Listing { is_listed: true, ..listing }),
        Some(_) => of_csv(&mut bounded, has_returns),
    };
    // The bound may cut a row in two, which then is an error of its own.
    if bounded.into_inner().limit() == 0 { Err(OutsideError::TooLong) } else { listing }
}

/// `has_returns`: its lines end with CR and LF. The reader takes the LF for the beginning of the next record.
fn of_csv(input: impl io::Read, has_returns: bool) -> Result<Listing, OutsideError> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).trim(csv::Trim::Headers).from_reader(input);
    let header = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line) + u64::from(has_returns);
        let values: Object =
            header.iter().zip(&record).map(|(name, value)| (name.to_owned(), Json::str(value))).collect();
        push(&mut rows, OutsideRow { place: format!("line {line}"), values: Json::Object(values) })?;
    }
    Ok(Listing { rows, is_listed: true, ..Listing::default() })
}

fn of_json(input: impl BufRead) -> Result<Listing, OutsideError> {
    let mut pieces = Pieces::new(input);
    let mut listing = Listing { is_listed: true, ..Listing::default() };
    while let Some(piece) = pieces.read()? {
        let bad = |line: u64, what: String| OutsideError::Row { place: format!("line {line}"), what };
        let piece = piece.map_err(|(line, why)| bad(line, why.to_string()))?;
        let line = piece.line;
        let document = json::parse_bounded(piece.bytes).map_err(|error| bad(line, error.to_string()))?;
        let rows = rows_within(&document);
        if let Some(error) = failure(&document, rows.is_some()) {
            return Err(OutsideError::Failed(error));
        }
        listing.is_listed &= rows.is_some();
        if rows.is_some() {
            listing.goes_on = document.get("has_more").and_then(Json::as_bool) == Some(true);
            listing.total = total(&document).or(listing.total);
        }
        for value in rows.unwrap_or(std::slice::from_ref(&document)) {
            let place = format!("line {line}, row {}", listing.rows.len() + 1);
            push(&mut listing.rows, OutsideRow { place, values: value.clone() })?;
        }
    }
    Ok(listing)
}

/// The list of a document: itself, or its `data`, `items`, `results` or `rows`. `None`: it is a row.
fn rows_within(document: &Json) -> Option<&[Json]> {
    const LISTS: [&str; 4] = ["data", "items", "results", "rows"];
    document.as_array().or_else(|| LISTS.into_iter().find_map(|name| document.get(name)?.as_array()))
}

/// The error of a document that is nothing but one, or of a list that has one beside its rows.
fn failure(document: &Json, is_list: bool) -> Option<String> {
    let told = ["error", "errors"].into_iter().find_map(|name| {
        document
            .get(name)
            .filter(|error| !matches!(error, Json::Null | Json::Bool(false)) && !is_empty(error))
    });
    let is_failure = if is_list { told.is_some() } else { error_text::is_failure(document) };
    is_failure.then(|| told.unwrap_or(document).canonical().chars().take(ERROR_CHARS_MAX).collect())
}

fn is_empty(value: &Json) -> bool {
    matches!(value.canonical().as_str(), "[]" | "{}" | "\"\"")
}

/// An outside's error is shown up to this length.
const ERROR_CHARS_MAX: usize = 200;

fn total(document: &Json) -> Option<(&'static str, u64)> {
    const TOTALS: [&str; 4] = ["total", "total_count", "totalCount", "total_results"];
    TOTALS.into_iter().find_map(|name| Some((name, document.get(name)?.canonical().parse().ok()?)))
}

/// The rows of a query on a database file, which is opened for reading alone.
pub fn of_sqlite(file: &Path, query: &str) -> Result<Vec<OutsideRow>, OutsideError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    let mut statement = connection.prepare(query)?;
    // `VACUUM INTO` and `ATTACH` write other files.
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(OutsideError::NoQuery);
    }
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
        assert!(matches!(of_text(first.as_bytes()), Err(OutsideError::NotWhole(_))));
        assert_eq!(of_text(format!("{first}\n{last}\n").as_bytes()).expect("two pages").len(), 2);
        assert_eq!(of_pages(&[first, last]).expect("pages").len(), 2);
        assert!(of_text(r#"{"data":[{"id":1},{"id":2}],"total":6}"#.as_bytes()).is_err());
        assert!(of_pages(&[r#"{"data":[{"id":1}],"total":3}"#, r#"{"data":[{"id":2}],"total":3}"#]).is_err());
    }

    #[test]
    fn an_answer_that_is_no_listing_is_no_empty_listing() {
        let first = r#"{"data":[{"id":1}]}"#;
        for other in
            ["", "\n", "<html>Log in</html>", r#"{"error":{"message":"slow down"}}"#, r#"{"ok":false}"#]
        {
            assert!(of_text(other.as_bytes()).is_err(), "{other}");
            assert!(of_pages(&[first, other]).is_err(), "{other}");
        }
        assert!(of_text(r#"{"data":[],"error":"no access"}"#.as_bytes()).is_err());
        assert!(of_pages(&[r#"{"charges":[{"id":1}]}"#]).is_err());
        // Rows may tell of errors of their own.
        let row = r#"{"invoice":"INV-1","status":"failed","error":"card declined"}"#;
        assert_eq!(of_text(format!("{row}\n{row}\n").as_bytes()).expect("rows").len(), 2);
    }

    #[test]
    fn a_row_that_moved_to_the_next_page_is_one_row() {
        let pages = [r#"{"data":[{"id":1},{"id":2}]}"#, r#"{"data":[{"id":2},{"id":3}]}"#];
        let places: Vec<String> = of_pages(&pages).expect("rows").into_iter().map(|row| row.place).collect();
        assert_eq!(places, ["page 1, line 1, row 1", "page 1, line 1, row 2", "page 2, line 1, row 2"]);
        // On one page they are two.
        assert_eq!(of_pages(&[r#"[{"id":1},{"id":1}]"#]).expect("rows").len(), 2);
    }

    #[test]
    fn lines_are_counted_whatever_ends_them() {
        assert_eq!(places("id\r\n1\r\n2\r\n")[1].0, "line 3");
    }

    #[test]
    fn output_without_an_end_is_refused() {
        let zeros = BufReader::new(io::repeat(0));
        assert!(matches!(of_text(zeros), Err(OutsideError::TooLong)));
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
        let copy = directory.path().join("copy.db");
        for write in ["DELETE FROM c", "DELETE FROM c RETURNING id", "PRAGMA user_version = 5"] {
            assert!(of_sqlite(&file, write).is_err(), "{write}");
        }
        for query in
            [format!("VACUUM INTO '{}'", copy.display()), format!("ATTACH '{}' AS m", copy.display())]
        {
            assert!(of_sqlite(&file, &query).is_err() && !copy.exists(), "{query}");
        }
        assert_eq!(of_sqlite(&file, "SELECT * FROM c").expect("rows").len(), 1);
    }
}
