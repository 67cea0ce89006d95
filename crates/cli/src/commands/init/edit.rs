//! Changes to one entry, in whichever format, that leave every other byte of the file alone.

use super::clients::Format;
use super::entry::Place;
use super::{edit_json, edit_toml, read_json, read_toml};
use serde_json::Value;
use std::ops::Range;

/// One change to the members of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// The member `from` becomes `to` with this value, in its place; if there is none, `to` comes after `after`.
    Put {
        from: String,
        to: String,
        value: Value,
        after: &'static str,
    },
    Remove(&'static str),
    /// The members of the table `from` that are named here go into the table `to` under other names. Where all of them
    /// go and `to` holds nothing yet, `from` itself becomes `to`, and its values stay as they are written.
    Move {
        from: &'static str,
        to: &'static str,
        names: Vec<(String, String)>,
    },
    /// The list `args` loses its first words and gets these instead.
    Front {
        drop: usize,
        add: Vec<String>,
    },
}

impl Edit {
    pub fn set(member: &'static str, value: impl Into<Value>, after: &'static str) -> Edit {
        Edit::Put { from: member.to_owned(), to: member.to_owned(), value: value.into(), after }
    }
}

/// What changes in one entry.
#[derive(Debug, Clone)]
pub struct Change {
    pub place: Place,
    pub edits: Vec<Edit>,
}

/// Why a file is left alone.
#[derive(Debug)]
pub struct Unreadable {
    pub what: String,
    /// Line and column, from one.
    pub at: Option<(usize, usize)>,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl Unreadable {
    pub fn new(what: impl Into<String>) -> Self {
        Unreadable { what: what.into(), at: None }
    }

    /// At a place in the text.
    pub fn at(what: impl Into<String>, text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        Unreadable { what: what.into(), at: Some((line, before[line_start..].chars().count() + 1)) }
    }
}

/// A name or a text in a file, and where its source stands.
#[derive(Debug)]
pub struct Scalar {
    pub range: Range<usize>,
    /// The names and, as numbers, the indexes on the way to it.
    pub path: Vec<String>,
    /// None: a name, or a value that is not a text.
    pub text: Option<String>,
}

impl Format {
    /// The document as values. A text that could not be written back as it is, is not read either.
    pub fn read(self, text: &str) -> Result<Value, Unreadable> {
        match self {
            Format::Json => read_json::read(text),
            Format::Toml => read_toml::read(text),
        }
    }

    /// All changes at once: a file may be large, and hold many servers.
    pub fn apply(self, text: &str, changes: &[Change]) -> Result<String, Unreadable> {
        match self {
            _ if changes.is_empty() => Ok(text.to_owned()),
            Format::Json => edit_json::apply(text, changes),
            Format::Toml => edit_toml::apply(text, changes),
        }
    }

    /// The text with the entries at these places as another text has them.
    pub fn transplant(self, text: &str, from: &str, places: &[&Place]) -> Option<String> {
        match self {
            Format::Json => edit_json::transplant(text, from, places),
            Format::Toml => edit_toml::transplant(text, from, places),
        }
    }

    /// All comments. In no order, because the question is whether one was lost.
    pub fn comments(self, text: &str) -> Result<Vec<&str>, Unreadable> {
        let (mut found, mut end) = (Vec::new(), 0);
        for scalar in self.scalars(text)? {
            found.extend(self.comments_between(&text[end..scalar.range.start]));
            end = scalar.range.end;
        }
        found.extend(self.comments_between(&text[end..]));
        found.sort_unstable();
        Ok(found)
    }

    /// The comments of a text that has no values in it.
    fn comments_between(self, between: &str) -> Vec<&str> {
        let (mut found, mut rest) = (Vec::new(), between);
        let begin = if self == Format::Json { '/' } else { '#' };
        while let Some(at) = rest.find(begin) {
            let whole = rest[at..].starts_with("/*").then(|| rest[at..].find("*/")).flatten();
            let length = whole.map(|end| end + "*/".len()).or_else(|| rest[at..].find('\n'));
            let (comment, after) = rest[at..].split_at(length.unwrap_or(rest.len() - at));
            found.push(comment.trim_end());
            rest = after;
        }
        found
    }

    /// All names and values with their places, in order.
    pub fn scalars(self, text: &str) -> Result<Vec<Scalar>, Unreadable> {
        match self {
            Format::Json => read_json::scalars(text),
            Format::Toml => read_toml::scalars(text),
        }
    }
}
