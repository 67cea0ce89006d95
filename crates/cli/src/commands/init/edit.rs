//! Changes to the entries of servers, and the places of texts in a file. Nothing here knows a format.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Where an entry stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPath {
    pub container: Vec<String>,
    pub server: String,
}

impl EntryPath {
    pub fn steps(&self) -> impl Iterator<Item = &String> {
        self.container.iter().chain([&self.server])
    }

    /// The entry in a document.
    pub fn entry<'a>(&self, document: &'a Value) -> Option<&'a Map<String, Value>> {
        self.steps().try_fold(document, |value, step| value.get(step))?.as_object()
    }

    pub fn entry_mut<'a>(&self, document: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
        self.steps().try_fold(document, |value, step| value.get_mut(step))?.as_object_mut()
    }
}

/// The change of one entry.
#[derive(Debug, Clone)]
pub struct EntryChange {
    pub place: EntryPath,
    pub before: Map<String, Value>,
    pub after: Map<String, Value>,
}

/// One change to the members of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum MemberEdit {
    Set(String, Value),
    Remove(String),
    /// The list `args` begins with these words.
    Prepend(Vec<Value>),
    /// So many words at the beginning of the list `args` go.
    DropFirst(usize),
}

impl EntryChange {
    /// The edits that touch no more than they must: of a longer list the words that stay are left as they are written.
    pub fn edits(&self) -> Vec<MemberEdit> {
        let EntryChange { before, after, .. } = self;
        let mut changed: Vec<_> =
            after.iter().filter(|(member, value)| before.get(*member) != Some(value)).collect();
        changed.sort_by_key(|(member, _)| (*member != "command", *member != "args"));
        let edits = changed.into_iter().map(|(member, value)| {
            match (before.get(member).and_then(Value::as_array), value.as_array()) {
                (Some(old), Some(new)) if member == "args" && new.ends_with(old) => {
                    MemberEdit::Prepend(new[..new.len() - old.len()].to_vec())
                }
                (Some(old), Some(new)) if member == "args" && old.ends_with(new) => {
                    MemberEdit::DropFirst(old.len() - new.len())
                }
                _ => MemberEdit::Set(member.clone(), value.clone()),
            }
        });
        let gone = before.keys().filter(|member| !after.contains_key(*member));
        edits.chain(gone.map(|member| MemberEdit::Remove(member.clone()))).collect()
    }
}

/// The lines, counted from one, of a range of bytes.
pub fn lines(text: &str, range: std::ops::Range<usize>) -> RangeInclusive<usize> {
    let line = |offset: usize| text[..text.floor_char_boundary(offset)].matches('\n').count() + 1;
    line(range.start)..=line(range.end)
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
