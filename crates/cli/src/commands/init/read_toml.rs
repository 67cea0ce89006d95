//! TOML as values, and where in the text a command stands.

use super::edit::{EntryPath, ParseProblem, lines};
use serde_json::{Number, Value as Json};
use std::ops::RangeInclusive;
use toml_edit::{Document, DocumentMut, Item, TableLike, Value};

pub fn read(text: &str) -> Result<Json, ParseProblem> {
    let document = parse(text)?;
    let value = read_table(document.as_table());
    if rendered(&document.into_mut(), text) != text {
        return Err(ParseProblem::new("it would not come back as it was"));
    }
    Ok(value)
}

/// The message alone: the library's rendering quotes the line, which may hold a secret.
pub fn parse(text: &str) -> Result<Document<String>, ParseProblem> {
    Document::parse(text.to_owned()).map_err(|error| match error.span() {
        Some(span) => ParseProblem::at(error.message(), text, span.start),
        None => ParseProblem::new(error.message()),
    })
}

/// With the line ends of the text it came from; the library writes LF everywhere, and one at the end.
pub fn rendered(document: &DocumentMut, text: &str) -> String {
    let mut rendered = document.to_string();
    if !text.ends_with('\n') && rendered.ends_with('\n') {
        rendered.pop();
    }
    let lines = text.matches('\n').count();
    if lines > 0 && lines == text.matches("\r\n").count() {
        rendered = rendered.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    rendered
}

fn read_table(table: &dyn TableLike) -> Json {
    Json::Object(table.iter().map(|(name, item)| (name.to_owned(), read_item(item))).collect())
}

fn read_item(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => read_value(value),
        Item::Table(table) => read_table(table),
        Item::ArrayOfTables(tables) => Json::Array(tables.iter().map(|table| read_table(table)).collect()),
    }
}

fn read_value(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::String(text.value().clone()),
        Value::Integer(number) => Json::Number((*number.value()).into()),
        Value::Float(number) => Number::from_f64(*number.value()).map_or(Json::Null, Json::Number),
        Value::Boolean(boolean) => Json::Bool(*boolean.value()),
        Value::Datetime(_) => Json::Null,
        Value::Array(array) => Json::Array(array.iter().map(read_value).collect()),
        Value::InlineTable(table) => read_table(table),
    }
}

/// Where an entry's command and arguments stand.
pub fn command_lines(text: &str, place: &EntryPath) -> Option<RangeInclusive<usize>> {
    let document = parse(text).ok()?;
    let entry = place.steps().try_fold(document.as_item(), |item, step| item.as_table_like()?.get(step))?;
    let entry = entry.as_table_like()?;
    let ranges = ["command", "args"].into_iter().filter_map(|name| entry.get(name)?.span());
    let whole = ranges.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))?;
    Some(lines(text, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_stay_and_an_error_has_its_place_but_not_its_line() {
        for text in ["", "a = 1", "a = 1\r\nb = 2\r\n", "\n# only\n\n"] {
            assert!(read(text).is_ok(), "{text:?}");
        }
        let error = read("a = 1\nb = secret\n").expect_err("not TOML");
        assert_eq!(error.at, Some((2, 5)), "{error}");
        assert!(!error.what.contains("secret"), "{error}");
    }
}
