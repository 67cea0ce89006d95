//! Changes that are made only where nothing is lost by them. One that cannot be made keeps no other from it.

use super::clients::Client;
use super::edit::Change;
use super::entry::{Entry, Header, Place, at};
use super::wrapped::{Behind, Guarded};

const SOMETHING_LOST: &str = "not all that it says would be kept; change it by hand";
const COMMENT_LOST: &str = "a comment in it would be lost; change it by hand";

/// Whether semel comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Guard,
    Undo,
}

/// A text with those changes that can be made.
#[derive(Debug)]
pub struct Made {
    pub text: String,
    /// The servers whose entries stay as they are, and why.
    pub refused: Vec<(Place, &'static str)>,
}

pub fn made(text: &str, changes: &[Change], client: &Client, way: Way) -> Made {
    let attempt = |text: &str, changes: &[Change]| {
        let after = client.format.apply(text, changes).map_err(|_| SOMETHING_LOST)?;
        match fault(text, &after, changes, client, way) {
            Some(why) => Err(why),
            None => Ok(after),
        }
    };
    // All at once first: a file may be large, and hold many servers.
    if let Ok(text) = attempt(text, changes) {
        return Made { text, refused: Vec::new() };
    }
    let mut made = Made { text: text.to_owned(), refused: Vec::new() };
    for change in changes {
        match attempt(&made.text, std::slice::from_ref(change)) {
            Ok(text) => made.text = text,
            Err(why) => made.refused.push((change.place.clone(), why)),
        }
    }
    made
}

/// What is wrong with a text after changes. It is read again as a stranger's, so that no edit is trusted.
fn fault(before: &str, after: &str, changes: &[Change], client: &Client, way: Way) -> Option<&'static str> {
    let (Ok(old), Ok(new)) = (client.format.read(before), client.format.read(after)) else {
        return Some(SOMETHING_LOST);
    };
    let (with, without) = if way == Way::Guard { (&new, &old) } else { (&old, &new) };
    let whole = changes.iter().all(|Change { place, .. }| {
        let entries = at(with, place).zip(at(without, place));
        entries.is_some_and(|(with, without)| {
            stands_before(&Entry::read(with, client), &Entry::read(without, client))
        })
    });
    let comments = |text| client.format.comments(text).ok();
    if !whole {
        return Some(SOMETHING_LOST);
    }
    // What was written into semel's own words since goes with them.
    (way == Way::Guard && comments(before) != comments(after)).then_some(COMMENT_LOST)
}

/// Whether semel stands in one entry before just what the other one says.
fn stands_before(with: &Entry, without: &Entry) -> bool {
    let Entry::Guarded(Guarded { behind: Some(behind), .. }) = with else { return false };
    match (behind, without) {
        (Behind::Command { args, .. }, Entry::Local(local)) => *args == local.args,
        // Twice, which nobody but a person writes.
        (Behind::Command { .. }, Entry::Guarded(_)) => true,
        (Behind::Url { url, headers, .. }, Entry::Remote(remote)) => {
            *url == remote.url && by_name(headers) == by_name(&remote.headers)
        }
        _ => false,
    }
}

fn by_name(headers: &[Header]) -> Vec<&Header> {
    let mut headers: Vec<&Header> = headers.iter().collect();
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    headers
}
