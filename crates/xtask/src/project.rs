//! Where the project lies, and how its other tools are started.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Tasks have no callers that tell failures apart: all of them are shown to a person.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("this crate lies two directories below the root").to_owned()
}

/// A directory under `target/`, made if it is missing.
pub fn scratch() -> Result<PathBuf> {
    let directory = target().join("bench");
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Where cargo put this very program: `target/<profile>/xtask`, or its tests below `deps`.
pub fn target() -> PathBuf {
    let program = std::env::current_exe().ok();
    let profile = program.as_deref().and_then(|program| {
        let directory = program.parent()?;
        if directory.ends_with("deps") { directory.parent() } else { Some(directory) }
    });
    profile.and_then(Path::parent).map_or_else(|| root().join("target"), Path::to_owned)
}

pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root());
    cargo
}

/// Runs a command whose failure ends the task.
pub fn must(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Asks the system's own package manager for what is missing, where that is Debian's.
pub fn install_with_apt(what: &str, packages: &[&str]) -> Result<()> {
    if Path::new("/usr/bin/apt-get").exists() {
        eprintln!("xtask: there is no {what}; installing {} with apt-get", packages.join(" "));
        must(Command::new("apt-get").arg("update"))?;
        must(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends"]).args(packages))?;
    }
    Ok(())
}
