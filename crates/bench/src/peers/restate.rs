//! Restate: its server, and handlers in its TypeScript SDK.

use super::driver::PeerDriver;
use super::{CALLERS, installed};
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::peers;
use xtask::project::Result;

const SCRIPT: &str = include_str!("peer_restate.mjs");

const PACKAGES: [&str; 2] = ["@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2"];

pub fn start(directory: &Path) -> Result<PeerDriver> {
    let home = installed("restate", &PACKAGES, |home| {
        fs::write(home.join("package.json"), "{\"private\": true}\n")?;
        peers::install_with_npm(&PACKAGES.map(str::to_owned), home)
    })?;
    // Node looks for packages from where the script lies.
    let script = home.join("peer_restate.mjs");
    fs::write(&script, SCRIPT)?;
    // The SDK asks for more than the Node of many distributions has, and its handlers then fail without an end.
    let mut node = Command::new("node");
    node.env("PATH", peers::path_with_node()?);
    node.arg(&script).arg(directory).arg(CALLERS.to_string());
    PeerDriver::start(&mut node)
}
