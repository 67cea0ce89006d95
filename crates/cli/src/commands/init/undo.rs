//! Taking semel out again: exactly where a backup proves what was there, else by what the entry itself holds.

use super::clients::Client;
use super::edit::Change;
use super::entry::{Entry, Place, at};
use super::guard::{self, Front, Spelling};
use super::plan::Wish;
use super::resolve;
use super::verify::{Made, Way, made};
use super::wrapped::{Behind, Guarded};
use super::write::Snapshot;
use serde_json::Value;
use std::ffi::OsStr;

/// An entry that semel can be taken out of.
#[derive(Debug, Clone, Copy)]
pub struct Undoing<'a> {
    place: &'a Place,
    guarded: &'a Guarded,
    behind: &'a Behind,
}

pub fn undoing<'a>(place: &'a Place, entry: &'a Entry) -> Result<Undoing<'a>, &'static str> {
    match entry {
        Entry::Guarded(guarded) => match &guarded.behind {
            Some(behind) => Ok(Undoing { place, guarded, behind }),
            None => Err("not in the form that semel init writes; change it by hand"),
        },
        _ => Err("semel does not stand in front of it"),
    }
}

/// The file's text without semel in front of these entries.
pub fn undone(snapshot: &Snapshot, undoings: &[Undoing<'_>], client: &Client, wish: &Wish<'_>) -> Made {
    let mut text = snapshot.text.clone();
    let search = wish.around.search;
    if undoings.is_empty() {
        return Made { text, refused: Vec::new() };
    }
    let mut backups = Vec::new();
    for backup in snapshot.kept(wish.backups) {
        if let Ok(document) = client.format.read(&backup) {
            backups.push(Backup { text: backup, document });
        }
    }
    // All at once first: usually nothing has changed since, and a file may be large.
    if let Some(text) = backups.iter().find_map(|backup| backup.proves(&text, undoings, client)) {
        return Made { text, refused: Vec::new() };
    }
    let mut changes = Vec::new();
    for undoing in undoings {
        match backups.iter().find_map(|backup| backup.proves(&text, &[*undoing], client)) {
            Some(original) => text = original,
            None => {
                let spelled = backups.iter().find_map(|backup| backup.spelling(undoing, client, search));
                let edits = guard::undo(undoing.guarded, undoing.behind, client, spelled.as_ref());
                changes.push(Change { place: undoing.place.clone(), edits });
            }
        }
    }
    made(&text, &changes, client, Way::Undo)
}

/// A former content of the file.
struct Backup {
    text: String,
    document: Value,
}

impl Backup {
    /// The text with the entries as they are here, if guarding these gives the text of today to the byte: then nothing
    /// that was done since is lost, and nothing of the original either.
    fn proves(&self, text: &str, undoings: &[Undoing<'_>], client: &Client) -> Option<String> {
        let changes = undoings.iter().map(|undoing| self.guarding(undoing, client));
        let changes: Vec<Change> = changes.collect::<Option<_>>()?;
        let places: Vec<&Place> = undoings.iter().map(|undoing| undoing.place).collect();
        let original = client.format.transplant(text, &self.text, &places)?;
        let again = client.format.apply(&original, &changes).ok()?;
        (again == text).then_some(original)
    }

    /// What would have led from the entry here to that of today.
    fn guarding(&self, undoing: &Undoing<'_>, client: &Client) -> Option<Change> {
        let Guarded { semel, flags, .. } = undoing.guarded;
        let front = Front { semel, flags };
        let edits = match (self.entry(undoing.place, client)?, undoing.behind) {
            // Whoever has put another program there since wants that one.
            (Entry::Local(local), Behind::Command { command, .. })
                if guard::same_but_for_spelling(&local, undoing.behind) =>
            {
                guard::local(undoing.place, front, command)
            }
            (Entry::Remote(remote), Behind::Url { .. }) => {
                guard::remote(undoing.place, &remote, client, front)
            }
            _ => return None,
        };
        Some(Change { place: undoing.place.clone(), edits })
    }

    /// How the command was written before it was resolved, if it is still the same one; or what held the address.
    fn spelling(&self, undoing: &Undoing<'_>, client: &Client, search: &OsStr) -> Option<Spelling> {
        match (self.entry(undoing.place, client)?, undoing.behind) {
            (Entry::Local(local), Behind::Command { command, .. }) => {
                // Arguments that were edited since say nothing of the program, if it can be shown to be the same.
                let same = guard::same_but_for_spelling(&local, undoing.behind)
                    || resolve::leads_to(&local, search, command);
                same.then_some(Spelling::Command(local.command))
            }
            (Entry::Remote(remote), Behind::Url { .. }) => {
                Some(Spelling::Address { member: remote.url_member, kind: remote.kind })
            }
            _ => None,
        }
    }

    fn entry(&self, place: &Place, client: &Client) -> Option<Entry> {
        Some(Entry::read(at(&self.document, place)?, client))
    }
}
