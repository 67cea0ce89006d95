//! What a file would become, server by server.

use super::behind::{Behind, Guarded};
use super::clients::{Candidate, Client};
use super::decide::{self, Decision, Surroundings};
use super::edit::Unreadable;
use super::entry::{Entry, Place, at, entries};
use super::write::Snapshot;
use super::{guard, known};
use serde::Serialize;

/// One file with its servers.
#[derive(Debug)]
pub struct Plan {
    pub candidate: Candidate,
    pub snapshot: Snapshot,
    pub rows: Vec<Row>,
    /// The file's text afterwards.
    pub text: String,
}

/// What happens to one server.
#[derive(Debug)]
pub struct Row {
    pub place: Place,
    pub action: Action,
    pub why: Option<String>,
    pub pack: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Guard,
    Undo,
    GuardedAlready,
    LeftAlone,
}

impl Action {
    pub fn words(self) -> &'static str {
        match self {
            Action::Guard => "guard",
            Action::Undo => "undo",
            Action::GuardedAlready => "guarded already",
            Action::LeftAlone => "left alone",
        }
    }
}

impl Plan {
    pub fn changes(&self) -> bool {
        self.text != self.snapshot.text
    }
}

/// Which servers, and which way.
#[derive(Debug)]
pub struct Wish<'a> {
    pub undo: bool,
    /// None named: all of them.
    pub servers: &'a [String],
    pub around: Surroundings<'a>,
}

pub fn plan(candidate: Candidate, snapshot: Snapshot, wish: &Wish<'_>) -> Result<Plan, Unreadable> {
    let client = candidate.client;
    let document = client.format.read(&snapshot.text)?;
    let mut text = snapshot.text.clone();
    let mut rows = Vec::new();
    let backups = if wish.undo { snapshot.backups() } else { Vec::new() };
    for (place, entry) in entries(&document, client) {
        if !wish.servers.is_empty() && !wish.servers.contains(&place.server) {
            continue;
        }
        let pack = decide::pack(&entry);
        let (action, why) = match wish.undo {
            true => undo(&mut text, &place, &entry, client, &backups),
            false => guard(&mut text, &place, &entry, client, &wish.around),
        };
        let why = why.or_else(|| misnamed(&place, action, pack));
        rows.push(Row { place, action, why, pack });
    }
    Ok(Plan { candidate, snapshot, rows, text })
}

/// A pack that fits the server but not its name would sit there without effect.
fn misnamed(place: &Place, action: Action, pack: Option<&str>) -> Option<String> {
    let guarded = matches!(action, Action::Guard | Action::GuardedAlready);
    let pack = pack.filter(|pack| guarded && !known::goes_by(pack, &place.server))?;
    Some(format!("the rules of pack:{pack} are for a server with {pack} in its name"))
}

type Done = (Action, Option<String>);

fn guard(
    text: &mut String,
    place: &Place,
    entry: &Entry,
    client: &Client,
    around: &Surroundings<'_>,
) -> Done {
    match decide::guard(place, entry, client, around) {
        Decision::LeftAlone { why } => (Action::LeftAlone, Some(why)),
        Decision::Guarded { note } => (Action::GuardedAlready, note),
        Decision::Guard { edits, note } => match client.format.apply(text, place, &edits) {
            Ok(edited) => {
                *text = edited;
                (Action::Guard, note)
            }
            Err(error) => (Action::LeftAlone, Some(error.to_string())),
        },
    }
}

fn undo(text: &mut String, place: &Place, entry: &Entry, client: &Client, backups: &[String]) -> Done {
    let Entry::Guarded(guarded) = entry else {
        return (Action::LeftAlone, Some("semel does not stand in front of it".to_owned()));
    };
    let Some(behind) = &guarded.behind else {
        return (
            Action::LeftAlone,
            Some("not in the form that semel init writes; change it by hand".to_owned()),
        );
    };
    let exact = backups.iter().find_map(|backup| proven(text, backup, place, guarded, behind, client));
    let undone = match exact {
        Some(original) => Ok(original),
        None => {
            let spelled = backups.iter().find_map(|backup| spelling(backup, place, behind, client));
            client.format.apply(text, place, &guard::undo(guarded, behind, client, spelled.as_deref()))
        }
    };
    match undone {
        Ok(undone) => {
            *text = undone;
            (Action::Undo, None)
        }
        Err(error) => (Action::LeftAlone, Some(error.to_string())),
    }
}

/// The text with the entry as a backup has it, if guarding that entry gives the text of today to the byte: then
/// nothing that was done since is lost, and nothing of the original either.
fn proven(
    text: &str,
    backup: &str,
    place: &Place,
    guarded: &Guarded,
    behind: &Behind,
    client: &Client,
) -> Option<String> {
    let original = original(backup, place, client)?;
    let edits = match (&original, behind) {
        (Entry::Local(_), Behind::Command { command, .. }) => guard::local(place, &guarded.semel, command),
        (Entry::Remote(remote), Behind::Url { .. }) => guard::remote(place, remote, client, &guarded.semel),
        _ => return None,
    };
    let candidate = client.format.transplant(text, backup, place)?;
    let again = client.format.apply(&candidate, place, &edits).ok()?;
    (again == text).then_some(candidate)
}

/// How the command was written before it was resolved, if all but that is still the same.
fn spelling(backup: &str, place: &Place, behind: &Behind, client: &Client) -> Option<String> {
    match original(backup, place, client)? {
        Entry::Local(local) => guard::same_but_for_spelling(&local, behind).then_some(local.command),
        _ => None,
    }
}

fn original(backup: &str, place: &Place, client: &Client) -> Option<Entry> {
    let document = client.format.read(backup).ok()?;
    Some(Entry::read(at(&document, place)?, client))
}
