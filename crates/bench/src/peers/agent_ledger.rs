//! agent-ledger, with its effects in PostgreSQL.

use super::driver::PeerDriver;
use super::{CALLERS, installed};
use crate::engines::Postgres;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::peers;
use xtask::project::Result;

const SCRIPT: &str = include_str!("peer_agent_ledger.py");

const PACKAGES: [&str; 3] =
    ["agent-ledger[postgres]==0.2.1", "psycopg[binary]==3.3.8", "psycopg-pool==3.3.3"];

pub fn start(directory: &Path, postgres: &Postgres) -> Result<PeerDriver> {
    let install = |home: &Path| peers::install_with_pip(&PACKAGES, &home.join("python"));
    let home = installed("agent-ledger", &PACKAGES, install)?;
    let script = directory.join("peer_agent_ledger.py");
    fs::write(&script, SCRIPT)?;
    let mut python = Command::new(home.join("python/bin/python"));
    python.arg(&script).arg(postgres.place()).arg(CALLERS.to_string());
    PeerDriver::start(&mut python)
}
