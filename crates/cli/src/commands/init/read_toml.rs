//! TOML as values, and where in the text they stand.

use super::edit::{ParseProblem, Scalar};
use serde_json::{Number, Value as Json};
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

pub fn scalars(text: &str) -> Result<Vec<Scalar>, ParseProblem> {
    let document = parse(text)?;
    let mut found = Vec::new();
    collect_table(document.as_table(), &mut found);
    // Tables come in the order of their names, which is not always that of the text.
    found.sort_by_key(|scalar| scalar.range.start);
    Ok(found)
}

fn collect_table(table: &dyn TableLike, found: &mut Vec<Scalar>) {
    for (_, item) in table.iter() {
        match item {
            Item::None => {}
            Item::Value(value) => collect_value(value, found),
            Item::Table(table) => collect_table(table, found),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|table| collect_table(table, found)),
        }
    }
}

fn collect_value(value: &Value, found: &mut Vec<Scalar>) {
    match value {
        Value::Array(array) => array.iter().for_each(|element| collect_value(element, found)),
        Value::InlineTable(table) => collect_table(table, found),
        scalar => {
            if let Some(range) = scalar.span() {
                found.push(Scalar { range, text: scalar.as_str().map(str::to_owned) });
            }
        }
    }
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
