//! The two formats of the clients' files.

use super::edit::{EntryChange, ParseProblem, Scalar};
use super::{edit_json, edit_toml, read_json, read_toml};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With comments and trailing commas, which the editors allow.
    Json,
    Toml,
}

impl Format {
    /// The document as values. A text that could not be written back as it is, is not read either.
    pub fn read(self, text: &str) -> Result<Value, ParseProblem> {
        match self {
            Format::Json => read_json::read(text),
            Format::Toml => read_toml::read(text),
        }
    }

    /// The text with these changes, and every other byte as it was.
    pub fn apply(self, text: &str, changes: &[EntryChange]) -> Result<String, ParseProblem> {
        match self {
            _ if changes.is_empty() => Ok(text.to_owned()),
            Format::Json => edit_json::apply(text, changes),
            Format::Toml => edit_toml::apply(text, changes),
        }
    }

    /// All comments. In no order, because the question is whether one was lost.
    pub fn comments(self, text: &str) -> Result<Vec<&str>, ParseProblem> {
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
    pub fn comments_between(self, between: &str) -> Vec<&str> {
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
    pub fn scalars(self, text: &str) -> Result<Vec<Scalar>, ParseProblem> {
        match self {
            Format::Json => read_json::scalars(text),
            Format::Toml => read_toml::scalars(text),
        }
    }
}
