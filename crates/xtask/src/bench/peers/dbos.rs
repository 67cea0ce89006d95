//! DBOS, with its workflows in SQLite.

use super::driver::PeerDriver;
use super::{CALLERS, installed};
use crate::peers;
use crate::project::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = include_str!("../../peer_dbos.py");

/// The SQLite of older distributions lacks functions that DBOS's tables use by default.
const PACKAGES: [&str; 2] = ["dbos==3.3.0", "pysqlite3-binary==0.5.4.post2"];

pub fn start(directory: &Path) -> Result<PeerDriver> {
    let home = installed("dbos", &PACKAGES, |home| peers::install_with_pip(&PACKAGES, &home.join("python")))?;
    let script = directory.join("peer_dbos.py");
    fs::write(&script, SCRIPT)?;
    let mut python = Command::new(home.join("python/bin/python"));
    python.arg(&script).arg(directory.join("dbos.sqlite")).arg(CALLERS.to_string());
    PeerDriver::start(&mut python, None)
}
