//! Changes that are made only where nothing is lost by them. One that cannot be made keeps no other from it.

use super::edit::{EntryChange, EntryPath};
use super::format::Format;

const SOMETHING_LOST: &str = "not everything in it would be kept; change it by hand";
const COMMENT_LOST: &str = "a comment in it would be lost; change it by hand";

/// A text with those changes that can be made.
#[derive(Debug)]
pub struct Verified {
    pub text: String,
    /// The servers whose entries stay as they are, and why.
    pub refused: Vec<(EntryPath, &'static str)>,
}

pub fn apply(text: &str, changes: &[EntryChange], format: Format) -> Verified {
    // All at once first: a file may be large, and hold many servers.
    if let Ok(text) = attempt(text, changes, format) {
        return Verified { text, refused: Vec::new() };
    }
    let mut verified = Verified { text: text.to_owned(), refused: Vec::new() };
    for change in changes {
        match attempt(&verified.text, std::slice::from_ref(change), format) {
            Ok(text) => verified.text = text,
            Err(why) => verified.refused.push((change.place.clone(), why)),
        }
    }
    verified
}

/// The new text is read again: it must say what the changes make of the old values, and have all comments.
fn attempt(before: &str, changes: &[EntryChange], format: Format) -> Result<String, &'static str> {
    let mut expected = format.read(before).map_err(|_| SOMETHING_LOST)?;
    for EntryChange { place, edits } in changes {
        let entry = place.entry(&mut expected).ok_or(SOMETHING_LOST)?;
        edits.iter().for_each(|edit| edit.apply(entry));
    }
    let after = format.apply(before, changes).map_err(|_| SOMETHING_LOST)?;
    if format.read(&after).ok() != Some(expected) {
        return Err(SOMETHING_LOST);
    }
    let comments = |text| format.comments(text).ok();
    if comments(before) == comments(&after) { Ok(after) } else { Err(COMMENT_LOST) }
}
