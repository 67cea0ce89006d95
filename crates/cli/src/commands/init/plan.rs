//! The plan for one file, server by server.

use super::backups::Backups;
use super::decide::{self, GuardDecision, Surroundings};
use super::edit::{EntryChange, EntryPath, ParseProblem};
use super::entry::{Entry, entries};
use super::format::Format;
use super::names::{Names, ServerCommand};
use super::places::Candidate;
use super::write::FileSnapshot;
use super::{known, verify};
use serde::Serialize;
use serde_json::Value;

/// A file as it is.
#[derive(Debug)]
pub struct FoundFile {
    pub candidate: Candidate,
    pub snapshot: FileSnapshot,
    document: Value,
    entries: Vec<(EntryPath, Entry)>,
}

impl FoundFile {
    pub fn of(candidate: Candidate, snapshot: FileSnapshot) -> Result<FoundFile, ParseProblem> {
        let document = candidate.client.format.read(&snapshot.text)?;
        let entries = entries(&document, candidate.client);
        Ok(FoundFile { candidate, snapshot, document, entries })
    }

    /// The names that its guarded servers have.
    pub fn take_names(&self, names: &mut Names) {
        for (place, entry) in &self.entries {
            if let Some((name, words)) = entry.guarded() {
                names.take(name, ServerCommand { words, directory: self.candidate.directory(place) });
            }
        }
    }
}

/// One file with its servers.
#[derive(Debug)]
pub struct FilePlan {
    pub candidate: Candidate,
    pub snapshot: FileSnapshot,
    pub rows: Vec<ServerRow>,
    /// The file's text afterwards.
    pub text: String,
}

/// The plan for one server.
#[derive(Debug)]
pub struct ServerRow {
    pub place: EntryPath,
    pub action: Treatment,
    pub why: Option<String>,
    pub pack: Option<&'static str>,
    pub change: Option<EntryChange>,
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

    /// With those of the changes that can be made.
    fn of(file: FoundFile, mut rows: Vec<ServerRow>) -> FilePlan {
        let FoundFile { candidate, snapshot, .. } = file;
        let changes: Vec<EntryChange> = rows.iter().filter_map(|row| row.change.clone()).collect();
        let verified = verify::apply(&snapshot.text, &changes, candidate.client.format);
        for row in rows.iter_mut().filter(|row| verified.refused.contains(&row.place)) {
            let why = "not everything in it would be kept; change it by hand".to_owned();
            (row.action, row.why, row.change) = (Treatment::LeftAlone, Some(why), None);
        }
        FilePlan { candidate, snapshot, rows, text: verified.text }
    }
}

/// Puts semel in front of the named servers, or of all of them where none is named.
pub fn guard(file: FoundFile, servers: &[String], around: &Surroundings<'_>, names: &mut Names) -> FilePlan {
    let mut rows = Vec::new();
    let wanted = |place: &EntryPath| servers.is_empty() || servers.contains(&place.server);
    for (place, entry) in file.entries.iter().filter(|(place, _)| wanted(place)) {
        let pack = known::pack(&entry.words());
        let before = place.entry(&file.document).cloned().unwrap_or_default();
        let decision = decide::guard(place, (entry, &before), &file.candidate, around, names);
        let (action, why, change) = match decision {
            GuardDecision::LeftAlone { why } => (Treatment::LeftAlone, Some(why), None),
            GuardDecision::Guarded { note } => (Treatment::GuardedAlready, note, None),
            GuardDecision::Guard { after, note } => {
                (Treatment::Guard, note, Some(EntryChange { place: place.clone(), before, after }))
            }
        };
        let why = why.or_else(|| misnamed(place, action, pack));
        rows.push(ServerRow { place: place.clone(), action, why, pack, change });
    }
    FilePlan::of(file, rows)
}

/// Takes semel's words out of each entry that is as semel wrote it, whatever else has changed. A file that is as semel
/// wrote it comes back to the byte.
pub fn undo(file: FoundFile, backups: &Backups) -> FilePlan {
    let format = file.candidate.client.format;
    let rewritings = file.snapshot.rewritings(backups);
    let documents: Vec<(Value, Value)> = (rewritings.iter())
        .filter_map(|(former, written)| Some((format.read(former).ok()?, format.read(written).ok()?)))
        .collect();
    let mut rows = Vec::new();
    for (place, entry) in &file.entries {
        let (Entry::Guarded { .. }, Some(now)) = (entry, place.entry(&file.document)) else { continue };
        // Each step goes to an older text, so it ends.
        let former = documents.iter().fold(now, |now, (former, written)| {
            let is_as_written = place.entry(written) == Some(now);
            place.entry(former).filter(|_| is_as_written).unwrap_or(now)
        });
        let change = (former != now).then(|| EntryChange {
            place: place.clone(),
            before: now.clone(),
            after: former.clone(),
        });
        let action = if change.is_some() { Treatment::Undo } else { Treatment::LeftAlone };
        let pack = known::pack(&entry.words());
        rows.push(ServerRow { place: place.clone(), action, why: None, pack, change });
    }
    let mut plan = FilePlan::of(file, rows);
    let whole = rewritings.iter().fold(None, |whole: Option<&String>, (former, written)| {
        if whole.unwrap_or(&plan.snapshot.text) == written { Some(former) } else { whole }
    });
    if let Some(former) = whole {
        plan.text.clone_from(former);
    }
    for row in plan.rows.iter_mut().filter(|row| row.action == Treatment::LeftAlone) {
        row.why = Some(by_hand(format, &plan.text, &row.place, !rewritings.is_empty()));
    }
    plan
}

/// What a person does about an entry that semel leaves alone, and where.
fn by_hand(format: Format, text: &str, place: &EntryPath, has_written: bool) -> String {
    let why = if has_written { "it is not as semel init wrote it" } else { "semel init did not write it" };
    let lines = format.command_lines(text, place).unwrap_or(1..=1);
    format!("{why}: take semel's words out by hand, in lines {} to {}", lines.start(), lines.end())
}

/// A pack that fits the server but not its name would sit there without effect.
fn misnamed(place: &EntryPath, action: Treatment, pack: Option<&str>) -> Option<String> {
    let guarded = matches!(action, Treatment::Guard | Treatment::GuardedAlready);
    let pack = pack.filter(|pack| guarded && !known::goes_by(pack, &place.server))?;
    Some(format!("the rules of pack:{pack} are for a server with {pack} in its name"))
}
