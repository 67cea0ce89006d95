//! SQLite, beside a bare table that commits in groups.

use super::{Engine, Goals, ToolLoad};
use crate::baseline::{BareTable, KeyOrder, group_commit};
use crate::house;
use std::time::Duration;
use tempfile::TempDir;
use xtask::project::{self, Result};

#[derive(Debug)]
pub struct Sqlite {
    directory: TempDir,
}

impl Sqlite {
    pub fn start() -> Result<Sqlite> {
        Ok(Sqlite { directory: tempfile::tempdir_in(project::scratch()?)? })
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn tool(&self) -> &'static str {
        "bare table"
    }

    /// `alone` and `busy` have them.
    fn goals(&self) -> Goals {
        Goals::default()
    }

    fn address(&self, ledger: &str) -> String {
        let directory = self.directory.path().join(ledger);
        directory.join("ledger.db").display().to_string()
    }

    fn pairs(&self, clients: usize, span: Duration) -> Result<ToolLoad> {
        let directory = tempfile::tempdir_in(self.directory.path())?;
        let table = BareTable::open(&directory.path().join("bare.db"))?;
        let mut load = group_commit(&house::runtime()?, table, KeyOrder::Hash, clients, span);
        Ok(ToolLoad { per_second: load.per_second(), p50_us: load.times.median() })
    }
}
