//! DBOS, with its workflows in SQLite, which is its default, or in PostgreSQL.

use super::driver::PeerDriver;
use super::{CALLERS, installed};
use crate::engines::Postgres;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::peers;
use xtask::project::Result;

const SCRIPT: &str = include_str!("peer_dbos.py");

/// The SQLite of older distributions lacks functions that DBOS's tables use by default.
const PACKAGES: [&str; 2] = ["dbos==3.3.0", "pysqlite3-binary==0.5.4.post2"];

pub fn on_sqlite(directory: &Path, _postgres: &Postgres) -> Result<PeerDriver> {
    start(directory, &format!("sqlite:///{}", directory.join("dbos.sqlite").display()))
}

pub fn on_postgres(directory: &Path, postgres: &Postgres) -> Result<PeerDriver> {
    start(directory, &postgres.url("dbos"))
}

fn start(directory: &Path, url: &str) -> Result<PeerDriver> {
    let home = installed("dbos", &PACKAGES, |home| peers::install_with_pip(&PACKAGES, &home.join("python")))?;
    let script = directory.join("peer_dbos.py");
    fs::write(&script, SCRIPT)?;
    let mut python = Command::new(home.join("python/bin/python"));
    python.arg(&script).arg(url).arg(CALLERS.to_string());
    PeerDriver::start(&mut python)
}
