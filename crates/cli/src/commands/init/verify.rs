//! Changes that are made only where nothing is lost by them. One that cannot be made keeps no other from it.

use super::edit::{EntryChange, EntryPath};
use super::format::Format;

/// A text with those changes that can be made.
#[derive(Debug)]
pub struct Verified {
    pub text: String,
    /// The servers whose entries stay as they are.
    pub refused: Vec<EntryPath>,
}

pub fn apply(text: &str, changes: &[EntryChange], format: Format) -> Verified {
    // All at once first: a file may be large, and hold many servers.
    if let Some(text) = attempt(text, changes, format) {
        return Verified { text, refused: Vec::new() };
    }
    let mut verified = Verified { text: text.to_owned(), refused: Vec::new() };
    for change in changes {
        match attempt(&verified.text, std::slice::from_ref(change), format) {
            Some(text) => verified.text = text,
            None => verified.refused.push(change.place.clone()),
        }
    }
    verified
}

/// The new text is read again: it must say what the changes make of the old values.
fn attempt(before: &str, changes: &[EntryChange], format: Format) -> Option<String> {
    let mut expected = format.read(before).ok()?;
    for EntryChange { place, after, .. } in changes {
        place.entry_mut(&mut expected)?.clone_from(after);
    }
    let after = format.apply(before, changes).ok()?;
    (format.read(&after).ok()? == expected).then_some(after)
}
