//! Which policy files hold here, and whether they may be trusted.

use crate::BadSetting;
use crate::settings::Settings;
use semel_core::policy::{Diagnostics, Policy, PolicyFile};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A policy is written by hand; a larger file is something else.
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

/// Why there is no policy to go by.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A file cannot be read, or must not be trusted.
    #[error(transparent)]
    File(#[from] BadSetting),
    /// Its rules do not hold together.
    #[error("{}", .0.render(false))]
    Content(Diagnostics),
}

/// Loads the flag's or the settings's file alone, or else the project's over the user's.
pub fn load(settings: &Settings, flag: Option<&Path>) -> Result<Policy, Unusable> {
    let files = read(settings, flag).map_err(Unusable::File)?;
    if files.is_empty() {
        return Ok(Policy::default());
    }
    Policy::load(files).map_err(Unusable::Content)
}

/// The ledger that the files name. The rest of them may be wrong, and is not looked at: the ledger must be found all the
/// same.
pub fn ledger(settings: &Settings, flag: Option<&Path>) -> Result<Option<(PathBuf, String)>, BadSetting> {
    for PolicyFile { path, text } in read(settings, flag)? {
        let file: toml_edit::DocumentMut = text
            .parse()
            .map_err(|error| BadSetting::new(format!("the policy {} is no TOML: {error}", path.display())))?;
        match file.get("ledger").map(|ledger| ledger.as_str()) {
            Some(Some(ledger)) => return Ok(Some((path, ledger.to_owned()))),
            Some(None) => {
                let what = format!("`ledger` in the policy {} must be a text", path.display());
                return Err(BadSetting::new(what));
            }
            None => {}
        }
    }
    Ok(None)
}

/// The files of the policy that holds here.
pub fn read(settings: &Settings, flag: Option<&Path>) -> Result<Vec<PolicyFile>, BadSetting> {
    found(settings, flag).iter().map(read_one).collect()
}

/// The files that hold here, in order of precedence.
pub fn found(settings: &Settings, flag: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = explicit(settings, flag) {
        return vec![path];
    }
    let project =
        settings.cwd.ancestors().map(|directory| directory.join("semel.toml")).find(|path| is_there(path));
    let user = of_the_user(settings).filter(|path| settings.config.is_some() || path.is_file());
    project.into_iter().chain(user).collect()
}

/// The file whose rules hold wherever a client starts semel, whether it is there or not.
pub fn everywhere(settings: &Settings, flag: Option<&Path>) -> Option<PathBuf> {
    explicit(settings, flag).or_else(|| of_the_user(settings))
}

/// One that was named holds alone.
fn explicit(settings: &Settings, flag: Option<&Path>) -> Option<PathBuf> {
    let named = flag.map(Path::to_owned).or_else(|| settings.policy.clone());
    named.map(|path| settings.cwd.join(path))
}

fn of_the_user(settings: &Settings) -> Option<PathBuf> {
    let named = settings.config.as_ref().map(|path| settings.cwd.join(path));
    named.or_else(|| Some(settings.user_config_dir()?.join("semel.toml")))
}

/// Anything of that name: a link that leads nowhere must not silently mean that there are no rules.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// One file of a policy.
pub fn read_one(path: &PathBuf) -> Result<PolicyFile, BadSetting> {
    let name = path.display();
    let unreadable = |error| BadSetting::new(format!("cannot read the policy {name}: {error}"));
    let refuse = |why: String| Err(BadSetting::new(format!("the policy {name} {why}")));
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return refuse("is not a regular file".to_owned());
    }
    let me = rustix::process::geteuid().as_raw();
    // A rule can name commands, so a file that somebody else may write is somebody else's program.
    if metadata.uid() != me && metadata.uid() != 0 {
        return refuse(format!("belongs to another user (uid {})", metadata.uid()));
    }
    if metadata.mode() & 0o002 != 0 {
        return refuse(format!("can be written by everybody (mode {:o})", metadata.mode() & 0o777));
    }
    if metadata.len() > POLICY_BYTES_MAX {
        return refuse(format!("has {} bytes; at most {POLICY_BYTES_MAX} are read", metadata.len()));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(PolicyFile { path: path.clone(), text })
}
