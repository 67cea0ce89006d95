//! Changes to the entries of servers, and the places of texts in a file. Nothing here knows a format.

use serde_json::{Map, Value};
use std::ops::Range;

/// Where an entry stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPath {
    pub container: Vec<String>,
    pub server: String,
}

impl EntryPath {
    /// The entry in a document.
    pub fn entry<'a>(&self, document: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
        let steps = self.container.iter().chain([&self.server]);
        steps.into_iter().try_fold(document, |value, step| value.get_mut(step))?.as_object_mut()
    }
}

/// One change to the members of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberEdit {
    /// The member `from` becomes `to` with this value, in its place; if there is none, `to` comes after `after`.
    Put {
        from: &'static str,
        to: &'static str,
        value: Value,
        after: &'static str,
    },
    Remove(&'static str),
    /// The list `args` begins with these words.
    Prepend(Vec<String>),
}

impl MemberEdit {
    pub fn set(member: &'static str, value: impl Into<Value>, after: &'static str) -> MemberEdit {
        MemberEdit::Put { from: member, to: member, value: value.into(), after }
    }

    /// The same change to the values alone.
    pub fn apply(&self, entry: &mut Map<String, Value>) {
        match self {
            MemberEdit::Put { from, to, value, .. } => {
                entry.remove(*from);
                entry.insert((*to).to_owned(), value.clone());
            }
            MemberEdit::Remove(member) => {
                entry.remove(*member);
            }
            MemberEdit::Prepend(words) => {
                let rest = entry.remove("args").and_then(|args| args.as_array().cloned()).unwrap_or_default();
                let words = words.iter().map(|word| Value::from(word.as_str()));
                entry.insert("args".to_owned(), words.chain(rest).collect());
            }
        }
    }
}

/// The changes of one entry.
#[derive(Debug, Clone)]
pub struct EntryChange {
    pub place: EntryPath,
    pub edits: Vec<MemberEdit>,
}

/// Why a file is left alone.
#[derive(Debug)]
pub struct ParseProblem {
    pub what: String,
    /// Line and column, from one.
    pub at: Option<(usize, usize)>,
}

impl std::fmt::Display for ParseProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl ParseProblem {
    pub fn new(what: impl Into<String>) -> Self {
        ParseProblem { what: what.into(), at: None }
    }

    /// At a place in the text.
    pub fn at(what: impl Into<String>, text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        ParseProblem { what: what.into(), at: Some((line, before[line_start..].chars().count() + 1)) }
    }
}

/// A name or a value in a file, and where its source stands.
#[derive(Debug)]
pub struct Scalar {
    pub range: Range<usize>,
    /// None: a name, or a value that is not a text.
    pub text: Option<String>,
}
