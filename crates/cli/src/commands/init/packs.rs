//! Which packs fit the servers, and where to include them. That file is written by people, so it is only named.

use super::outcome::FileOutcome;
use super::plan::{ServerRow, Treatment};
use crate::context::Context;
use semel::policy_files;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Packs {
    /// With `pack:` before each.
    fitting: Vec<String>,
    /// The line to write, and where, if not all of them are included.
    pub advice: Option<Advice>,
}

#[derive(Debug)]
pub struct Advice {
    pub file: PathBuf,
    /// With what the file includes already: the key can stand in it once.
    pub line: String,
}

impl Packs {
    pub fn of(outcomes: &[FileOutcome], context: &Context) -> Packs {
        let guarded = |row: &ServerRow| matches!(row.action, Treatment::Guard | Treatment::GuardedAlready);
        let rows = outcomes.iter().flat_map(FileOutcome::rows).filter(|(_, row)| guarded(row));
        let mut fitting: Vec<String> =
            rows.filter_map(|(_, row)| Some(format!("pack:{}", row.pack?))).collect();
        fitting.sort_unstable();
        fitting.dedup();
        let (environment, flag) = (&context.environment, context.global.policy.as_deref());
        let held = policy_files::found(&environment.settings, flag);
        let held: Vec<String> = held.iter().flat_map(|file| included(file)).collect();
        let missing: Vec<&String> = fitting.iter().filter(|pack| !held.contains(pack)).collect();
        let file = policy_files::everywhere(&environment.settings, flag).filter(|_| !missing.is_empty());
        let advice = file.map(|file| {
            let all = included(&file).into_iter().chain(missing.into_iter().cloned());
            let all: Vec<String> = all.map(|name| format!("{name:?}")).collect();
            Advice { line: format!("include = [{}]", all.join(", ")), file }
        });
        Packs { fitting, advice }
    }

    pub fn text(&self, near: impl Fn(&Path) -> String) -> Option<String> {
        let Packs { fitting, advice } = self;
        if fitting.is_empty() {
            return None;
        }
        Some(match advice {
            None => format!("Packs that fit, included already: {}", fitting.join(", ")),
            Some(Advice { file, line }) => {
                let yet = if file.is_file() { "" } else { ", a file that is not there yet" };
                format!(
                    "Packs that fit have rules for these servers. They are yours to include, at the top of\n{}{yet}:\n  {line}",
                    near(file)
                )
            }
        })
    }
}

/// The includes of a policy. One that cannot be read includes nothing; `semel policy lint` says why.
fn included(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let document = text.parse::<toml_edit::DocumentMut>().unwrap_or_default();
    let names = document.get("include").and_then(|include| include.as_array());
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
