//! The outcome of one configuration file.

use super::plan::{FilePlan, ServerRow};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum FileOutcome {
    Planned(FilePlan),
    /// With where the former content is kept.
    Written(FilePlan, PathBuf),
    NotWritten(FilePlan, anyhow::Error),
    NotRead {
        client: &'static str,
        path: PathBuf,
        error: anyhow::Error,
    },
}

impl FileOutcome {
    pub fn plan(&self) -> Option<&FilePlan> {
        match self {
            FileOutcome::Planned(plan) | FileOutcome::Written(plan, _) | FileOutcome::NotWritten(plan, _) => {
                Some(plan)
            }
            FileOutcome::NotRead { .. } => None,
        }
    }

    /// The error, and its file.
    pub fn error(&self) -> Option<(&Path, &anyhow::Error)> {
        match self {
            FileOutcome::Planned(_) | FileOutcome::Written(..) => None,
            FileOutcome::NotWritten(plan, error) => Some((&plan.candidate.path, error)),
            FileOutcome::NotRead { path, error, .. } => Some((path, error)),
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = (&FilePlan, &ServerRow)> {
        self.plan().into_iter().flat_map(|plan| plan.rows.iter().map(move |row| (plan, row)))
    }
}
