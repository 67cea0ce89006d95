//! The two formats of the clients' files.

use super::edit::{EntryChange, EntryPath, ParseProblem};
use super::{edit_json, edit_toml, read_json, read_toml};
use serde_json::Value;
use std::ops::RangeInclusive;

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

    /// The lines of an entry's command and arguments.
    pub fn command_lines(self, text: &str, place: &EntryPath) -> Option<RangeInclusive<usize>> {
        match self {
            Format::Json => read_json::command_lines(text, place),
            Format::Toml => read_toml::command_lines(text, place),
        }
    }
}
