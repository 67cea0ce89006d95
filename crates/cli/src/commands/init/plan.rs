//! What a file would become, server by server.

use super::backups::Backups;
use super::decide::{self, Decision, Surroundings};
use super::edit::{Change, Unreadable};
use super::entry::{Place, entries};
use super::places::Candidate;
use super::verify::{Way, made};
use super::write::Snapshot;
use super::{known, undo};
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
    pub backups: &'a Backups,
}

pub fn plan(candidate: Candidate, snapshot: Snapshot, wish: &Wish<'_>) -> Result<Plan, Unreadable> {
    let client = candidate.client;
    let document = client.format.read(&snapshot.text)?;
    let mut entries = entries(&document, client, candidate.containers);
    entries.retain(|(place, _)| wish.servers.is_empty() || wish.servers.contains(&place.server));
    let (mut rows, mut changes, mut undoings) = (Vec::new(), Vec::new(), Vec::new());
    for (place, entry) in &entries {
        let pack = decide::pack(entry);
        let (action, why) = if wish.undo {
            match undo::undoing(place, entry) {
                Ok(_) if candidate.hands_off.is_some() => {
                    (Action::LeftAlone, candidate.hands_off.map(str::to_owned))
                }
                Ok(undoing) => {
                    undoings.push(undoing);
                    (Action::Undo, None)
                }
                Err(why) => (Action::LeftAlone, Some(why.to_owned())),
            }
        } else {
            let mut decision = decide::guard(place, entry, client, &wish.around);
            if let Some(why) = candidate.hands_off {
                decision = decision.without_writing(why);
            }
            match decision {
                Decision::LeftAlone { why } => (Action::LeftAlone, Some(why)),
                Decision::Guarded { note } => (Action::GuardedAlready, note),
                Decision::Guard { edits, note } => {
                    changes.push(Change { place: place.clone(), edits });
                    (Action::Guard, note)
                }
            }
        };
        let why = why.or_else(|| misnamed(place, action, pack));
        rows.push(Row { place: place.clone(), action, why, pack });
    }
    let made = match wish.undo {
        true => undo::undone(&snapshot, &undoings, client, wish),
        false => made(&snapshot.text, &changes, client, Way::Guard),
    };
    for (place, why) in made.refused {
        for row in rows.iter_mut().filter(|row| row.place == place) {
            (row.action, row.why) = (Action::LeftAlone, Some(why.to_owned()));
        }
    }
    Ok(Plan { candidate, snapshot, rows, text: made.text })
}

/// A pack that fits the server but not its name would sit there without effect.
fn misnamed(place: &Place, action: Action, pack: Option<&str>) -> Option<String> {
    let guarded = matches!(action, Action::Guard | Action::GuardedAlready);
    let pack = pack.filter(|pack| guarded && !known::goes_by(pack, &place.server))?;
    Some(format!("the rules of pack:{pack} are for a server with {pack} in its name"))
}
