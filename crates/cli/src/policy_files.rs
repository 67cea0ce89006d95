//! Which policy files hold here, and whether they may be trusted.

use crate::config::Environment;
use anyhow::Context;
use semel_core::policy::{Diagnostics, Policy, PolicyFile};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A policy is written by hand; a larger file is something else.
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// Why there is no policy to go by.
#[derive(Debug)]
pub enum Unusable {
    /// A file cannot be read, or must not be trusted.
    File(anyhow::Error),
    /// Its rules do not hold together.
    Content(Diagnostics),
}

/// Loads the flag's or the environment's file alone, or else the project's over the user's.
pub fn load(environment: &Environment, flag: Option<&Path>) -> Result<Policy, Unusable> {
    let files = read(environment, flag).map_err(Unusable::File)?;
    if files.is_empty() {
        return Ok(Policy::default());
    }
    Policy::load(files).map_err(Unusable::Content)
}

/// The ledger that the files name. The rest of them may be wrong, and is not looked at: the ledger must be found all the
/// same.
pub fn ledger(environment: &Environment, flag: Option<&Path>) -> anyhow::Result<Option<(PathBuf, String)>> {
    for PolicyFile { path, text } in read(environment, flag)? {
        let file: toml_edit::DocumentMut =
            text.parse().with_context(|| format!("the policy {} is no TOML", path.display()))?;
        match file.get("ledger").map(|ledger| ledger.as_str()) {
            Some(Some(ledger)) => return Ok(Some((path, ledger.to_owned()))),
            Some(None) => anyhow::bail!("`ledger` in the policy {} must be a text", path.display()),
            None => {}
        }
    }
    Ok(None)
}

pub fn read(environment: &Environment, flag: Option<&Path>) -> anyhow::Result<Vec<PolicyFile>> {
    found(environment, flag).iter().map(read_one).collect()
}

/// The files that hold here, in order of precedence.
pub fn found(environment: &Environment, flag: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = explicit(environment, flag) {
        return vec![path];
    }
    let project =
        environment.cwd.ancestors().map(|directory| directory.join("semel.toml")).find(|path| is_there(path));
    let user = of_the_user(environment).filter(|path| environment.config.is_some() || path.is_file());
    project.into_iter().chain(user).collect()
}

/// The file whose rules hold wherever a client starts semel, whether it is there or not.
pub fn everywhere(environment: &Environment, flag: Option<&Path>) -> Option<PathBuf> {
    explicit(environment, flag).or_else(|| of_the_user(environment))
}

/// One that was named holds alone.
fn explicit(environment: &Environment, flag: Option<&Path>) -> Option<PathBuf> {
    let named = flag.map(Path::to_owned).or_else(|| environment.policy.clone());
    named.map(|path| environment.cwd.join(path))
}

fn of_the_user(environment: &Environment) -> Option<PathBuf> {
    let named = environment.config.as_ref().map(|path| environment.cwd.join(path));
    named.or_else(|| Some(environment.user_config_dir()?.join("semel.toml")))
}

/// Anything of that name: a link that leads nowhere must not silently mean that there are no rules.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub fn read_one(path: &PathBuf) -> anyhow::Result<PolicyFile> {
    let about = || format!("cannot read the policy {}", path.display());
    let metadata = path.metadata().with_context(about)?;
    if !metadata.is_file() {
        anyhow::bail!("the policy {} is not a regular file", path.display());
    }
    let me = rustix::process::geteuid().as_raw();
    // A rule can name commands, so a file that somebody else may write is somebody else's program.
    if metadata.uid() != me && metadata.uid() != 0 {
        anyhow::bail!("the policy {} belongs to another user (uid {})", path.display(), metadata.uid());
    }
    if metadata.mode() & 0o002 != 0 {
        anyhow::bail!(
            "everybody can write the policy {} (mode {:o})",
            path.display(),
            metadata.mode() & 0o777
        );
    }
    if metadata.len() > POLICY_BYTES_MAX {
        anyhow::bail!(
            "the policy {} has {} bytes; at most {POLICY_BYTES_MAX} are read",
            path.display(),
            metadata.len()
        );
    }
    let text = std::fs::read_to_string(path).with_context(about)?;
    Ok(PolicyFile { path: path.clone(), text })
}
