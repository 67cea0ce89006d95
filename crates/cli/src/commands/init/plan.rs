//! The plan for one file, server by server.

use super::backups::Backups;
use super::decide::{self, GuardDecision, Surroundings};
use super::edit::{EntryChange, EntryPath, ParseProblem};
use super::entry::{Entry, entries};
use super::places::Candidate;
use super::write::FileSnapshot;
use super::{known, verify};
use serde::Serialize;
use std::collections::BTreeSet;

/// One file with its servers.
#[derive(Debug)]
pub struct FilePlan {
    pub candidate: Candidate,
    pub snapshot: FileSnapshot,
    pub rows: Vec<ServerRow>,
    /// The file's text afterwards.
    pub text: String,
    /// Texts of the file that may be shown.
    pub shown: BTreeSet<String>,
}

/// The plan for one server.
#[derive(Debug)]
pub struct ServerRow {
    pub place: EntryPath,
    pub action: Treatment,
    pub why: Option<String>,
    pub pack: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    Guard,
    Undo,
    GuardedAlready,
    LeftAlone,
}

impl Treatment {
    pub fn words(self) -> &'static str {
        match self {
            Treatment::Guard => "guard",
            Treatment::Undo => "undo",
            Treatment::GuardedAlready => "guarded already",
            Treatment::LeftAlone => "left alone",
        }
    }
}

impl FilePlan {
    pub fn changes(&self) -> bool {
        self.text != self.snapshot.text
    }
}

/// Puts semel in front of the named servers, or of all of them where none is named.
pub fn guard(
    candidate: Candidate,
    snapshot: FileSnapshot,
    servers: &[String],
    around: &Surroundings<'_>,
) -> Result<FilePlan, ParseProblem> {
    let client = candidate.client;
    let document = client.format.read(&snapshot.text)?;
    let (mut rows, mut changes, mut shown) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (place, entry) in entries(&document, client) {
        if !servers.is_empty() && !servers.contains(&place.server) {
            continue;
        }
        let pack = known::pack(&entry.words());
        let (action, why) = match decide::guard(&place, &entry, &candidate, around) {
            GuardDecision::LeftAlone { why } => (Treatment::LeftAlone, Some(why)),
            GuardDecision::Guarded { note } => (Treatment::GuardedAlready, note),
            GuardDecision::Guard { edits, shown: own, note } => {
                shown.extend(around.front.all_words(&place).into_iter().chain(own));
                changes.push(EntryChange { place: place.clone(), edits });
                (Treatment::Guard, note)
            }
        };
        let why = why.or_else(|| misnamed(&place, action, pack));
        rows.push(ServerRow { place, action, why, pack });
    }
    let verified = verify::apply(&snapshot.text, &changes, client.format);
    for (place, why) in verified.refused {
        for row in rows.iter_mut().filter(|row| row.place == place) {
            (row.action, row.why) = (Treatment::LeftAlone, Some(why.to_owned()));
        }
    }
    Ok(FilePlan { candidate, snapshot, rows, text: verified.text, shown })
}

/// Takes semel out of a file: the backup comes back, if the file is still as semel wrote it.
pub fn undo(
    candidate: Candidate,
    snapshot: FileSnapshot,
    backups: &Backups,
) -> Result<FilePlan, ParseProblem> {
    let document = candidate.client.format.read(&snapshot.text)?;
    let mut entries = entries(&document, candidate.client);
    entries.retain(|(_, entry)| matches!(entry, Entry::Guarded { .. }));
    let former = if entries.is_empty() { None } else { snapshot.former(backups) };
    let (action, why) = match &former {
        Some(_) => (Treatment::Undo, None),
        None => (
            Treatment::LeftAlone,
            Some(match snapshot.newest_backup(backups) {
                Some(backup) => format!(
                    "the file has changed since semel wrote it: take semel's words out of this entry by hand; as it \
                     was: {}",
                    backup.display()
                ),
                None => {
                    "semel init did not write it: take semel's words out of this entry by hand".to_owned()
                }
            }),
        ),
    };
    let mut shown = BTreeSet::new();
    let rows = entries.into_iter().map(|(place, entry)| {
        let words = entry.words();
        shown.extend(words.first().cloned());
        ServerRow { action, why: why.clone(), pack: known::pack(&words), place }
    });
    let rows = rows.collect();
    let text = former.unwrap_or_else(|| snapshot.text.clone());
    Ok(FilePlan { candidate, snapshot, rows, text, shown })
}

/// A pack that fits the server but not its name would sit there without effect.
fn misnamed(place: &EntryPath, action: Treatment, pack: Option<&str>) -> Option<String> {
    let guarded = matches!(action, Treatment::Guard | Treatment::GuardedAlready);
    let pack = pack.filter(|pack| guarded && !known::goes_by(pack, &place.server))?;
    Some(format!("the rules of pack:{pack} are for a server with {pack} in its name"))
}
