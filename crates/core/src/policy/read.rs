//! From text to the file's shape, with as many errors at once as can be told apart.

use super::diagnostic::{DIAGNOSTICS_MAX, DiagnosticCode, Diagnostics, SourceText};
use super::file::File;
use super::nearest::nearest;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Larger than any policy a person keeps; the text comes from a file that anyone might have swapped.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The part that could be read.
pub struct ParsedFile {
    pub file: File,
    /// Whether everything could be read. If not, the rest is only good for finding more errors, and what is absent
    /// from it may have been there.
    pub whole: bool,
}

pub fn read(source: SourceText<'_>, found: &mut Diagnostics) -> ParsedFile {
    let nothing = ParsedFile { file: File::default(), whole: false };
    if source.text.len() > FILE_BYTES_MAX {
        found.error(source, 0..0, DiagnosticCode::TomlSyntax, "a policy file has at most 1 MiB", "");
        return nothing;
    }
    let (mut root, errors) = DeTable::parse_recoverable(source.text);
    for error in errors.iter().take(DIAGNOSTICS_MAX) {
        found.error(source, error.span().unwrap_or(0..0), DiagnosticCode::TomlSyntax, error.message(), "");
    }
    if !errors.is_empty() {
        // The meaning of a broken line is a guess; findings about guesses would mislead.
        return nothing;
    }
    // The deserializer stops at its first error. Taking the offending entry out and reading again finds the next.
    for removed in 0..DIAGNOSTICS_MAX {
        let error = match File::deserialize(Deserializer::from(root.clone())) {
            Ok(file) => return ParsedFile { file, whole: removed == 0 },
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        report(source, span.clone(), error.message(), found);
        if !remove(root.get_mut(), &span) {
            break;
        }
    }
    nothing
}

fn report(source: SourceText<'_>, span: Range<usize>, message: &str, found: &mut Diagnostics) {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let given = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let suggestion = match nearest(given, known.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    if message.starts_with("unknown field") {
        found.error(source, span, DiagnosticCode::UnknownKey, format!("unknown key `{given}`"), suggestion);
    } else if message.starts_with("unknown variant") {
        found.error(source, span, DiagnosticCode::UnknownWord, format!("unknown word `{given}`"), suggestion);
    } else {
        // The deserializer speaks of Rust's types.
        let message = message
            .replace("expected i64", "expected a whole number")
            .replace("expected f64", "expected a number");
        found.error(source, span, DiagnosticCode::WrongType, message, "");
    }
}

/// Takes out the innermost entry that the span lies in. Header tables do not enclose their entries, so all are
/// searched.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    for (_, value) in table.iter_mut() {
        if remove_inside(value, span) {
            return true;
        }
    }
    let covers = |place: Range<usize>| place.start <= span.start && span.end <= place.end;
    let hit = table.iter().find(|(key, value)| covers(key.span()) || covers(value.span()));
    let Some(key) = hit.map(|(key, _)| key.get_ref().to_string()) else { return false };
    table.remove(key.as_str());
    true
}

fn remove_inside(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    match value.get_mut() {
        DeValue::Table(table) => remove(table, span),
        DeValue::Array(items) => items.iter_mut().any(|item| remove_inside(item, span)),
        _ => false,
    }
}
