//! JSON with comments as values, and where in the text a command stands.

use super::edit::{EntryPath, ParseProblem, lines};
use jsonc_parser::cst::CstRootNode;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Windows editors write it; no parser here expects it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The JSON that the clients themselves read: with comments and trailing commas, and nothing else beyond JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub fn read(text: &str) -> Result<Value, ParseProblem> {
    let (_, body) = split_mark(text);
    if tree(body)?.to_string() != body {
        return Err(ParseProblem::new("it would not come back as it was"));
    }
    match parse(body)? {
        Some(value) => read_value(&value, body),
        None => Ok(Value::Object(Map::new())),
    }
}

pub fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

fn unreadable(error: &ParseError) -> ParseProblem {
    let what = error.kind().to_string();
    ParseProblem { what, at: Some((error.line_display(), error.column_display())) }
}

fn parse(body: &str) -> Result<Option<ast::Value<'_>>, ParseProblem> {
    let parsed =
        parse_to_ast(body, &CollectOptions::default(), &OPTIONS).map_err(|error| unreadable(&error))?;
    Ok(parsed.value)
}

pub fn tree(body: &str) -> Result<CstRootNode, ParseProblem> {
    CstRootNode::parse(body, &OPTIONS).map_err(|error| unreadable(&error))
}

fn read_value(value: &ast::Value<'_>, body: &str) -> Result<Value, ParseProblem> {
    Ok(match value {
        ast::Value::StringLit(text) => Value::String(text.value.to_string()),
        ast::Value::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => {
            let elements = array.elements.iter().map(|element| read_value(element, body));
            Value::Array(elements.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => {
            let mut members = Map::new();
            for member in &object.properties {
                let name = member.name.as_str();
                if members.insert(name.to_owned(), read_value(&member.value, body)?).is_some() {
                    let what =
                        format!("{name:?} stands here a second time, and readers differ which one counts");
                    return Err(ParseProblem::at(what, body, member.range.start));
                }
            }
            Value::Object(members)
        }
    })
}

/// Where an entry's command and arguments stand.
pub fn command_lines(text: &str, place: &EntryPath) -> Option<RangeInclusive<usize>> {
    let (mark, body) = split_mark(text);
    let ast::Value::Object(top) = parse(body).ok()?? else { return None };
    let entry = place.steps().try_fold(top, |mut object, step| object.take_object(step))?;
    let members = ["command", "args"].into_iter().filter_map(|name| entry.get(name));
    let ranges = members.map(|member| member.range.start..member.range.end);
    let whole = ranges.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))?;
    Some(lines(text, mark.len() + whole.start..mark.len() + whole.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_broken_texts_are_refused_with_their_place() {
        for (text, line) in
            [("[".repeat(100_000), 1), ("{\n\"a\" 1}".to_owned(), 2), ("{\n\n\"a\": 'x'}".to_owned(), 3)]
        {
            let error = read(&text).expect_err("not readable");
            assert_eq!(error.at.expect("a place").0, line, "{error}");
        }
    }
}
