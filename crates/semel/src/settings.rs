//! Where a process finds its ledger and its policy: the environment, read once.

use crate::BadSetting;
use std::path::PathBuf;

/// What the environment says of the ledger, the policy and the run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `SEMEL_STATE_DIR`.
    pub state_dir: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub xdg_state: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub xdg_config: Option<PathBuf>,
    /// `SEMEL_LEDGER`.
    pub ledger: Option<String>,
    /// The ledger must be one that other hosts share: a file would be another ledger on each of them.
    pub shared_ledger: bool,
    /// `SEMEL_POLICY`.
    pub policy: Option<PathBuf>,
    /// `SEMEL_CONFIG`.
    pub config: Option<PathBuf>,
    /// `SEMEL_RUN_ID`.
    pub run_id: Option<String>,
    /// `BAGGAGE`, in which W3C puts what callers pass on.
    pub baggage: Option<String>,
    /// `SEMEL_ALLOW_NETWORK_FS`.
    pub allow_network_fs: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// Hears that a ledger was begun on a server: a mistyped name means a new one, which knows nothing.
    pub on_new_ledger: fn(&str),
}

#[allow(clippy::disallowed_methods, reason = "the one home of these variables")]
impl Settings {
    /// Reads the environment.
    pub fn read() -> Result<Settings, BadSetting> {
        Ok(Settings {
            home: path("HOME"),
            state_dir: path("SEMEL_STATE_DIR"),
            xdg_state: path("XDG_STATE_HOME").filter(|path| path.is_absolute()),
            xdg_config: path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()),
            ledger: address("SEMEL_LEDGER")?,
            shared_ledger: text("SEMEL_SHARED_LEDGER")?.is_some_and(|value| value != "0"),
            policy: path("SEMEL_POLICY"),
            config: path("SEMEL_CONFIG"),
            run_id: text("SEMEL_RUN_ID")?,
            baggage: text("BAGGAGE")?,
            allow_network_fs: text("SEMEL_ALLOW_NETWORK_FS")?.is_some_and(|value| value != "0"),
            cwd: std::env::current_dir()
                .map_err(|error| BadSetting::new(format!("the working directory is gone: {error}")))?,
            on_new_ledger: |_| {},
        })
    }

    /// Where semel keeps what it must not lose.
    pub fn state_directory(&self) -> Result<PathBuf, BadSetting> {
        Ok(match (&self.state_dir, &self.xdg_state, &self.home) {
            (Some(directory), _, _) if directory.is_relative() => {
                return Err(BadSetting::new(format!(
                    "SEMEL_STATE_DIR is {}, and must be an absolute path: the ledger is the same one from every directory",
                    directory.display()
                )));
            }
            (Some(directory), _, _) => directory.clone(),
            (None, Some(state), _) => state.join("semel"),
            (None, None, Some(home)) if home.is_absolute() => home.join(".local/state/semel"),
            (None, None, _) => {
                return Err(BadSetting::new(
                    "neither SEMEL_STATE_DIR nor HOME is set, so the ledger has no place",
                ));
            }
        })
    }

    /// Where a user's configuration of semel lies.
    pub fn user_config_dir(&self) -> Option<PathBuf> {
        self.xdg_config
            .clone()
            .or_else(|| Some(self.home.as_ref()?.join(".config")))
            .map(|path| path.join("semel"))
    }

    /// The run a call belongs to: flag, `SEMEL_RUN_ID`, W3C baggage `semel.run_id`, else none.
    pub fn run_id(&self, flag: Option<&str>) -> Option<String> {
        let from_baggage = || {
            let entries = self.baggage.as_ref()?.split(',');
            let entry = entries
                .filter_map(|entry| entry.trim().split_once('='))
                .find(|(name, _)| *name == "semel.run_id");
            entry.map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_owned())
        };
        // An empty flag is a mistake, and is refused where names are checked.
        flag.map(str::to_owned)
            .or_else(|| self.run_id.clone())
            .or_else(|| from_baggage().filter(|run| !run.is_empty()))
    }
}

/// A variable. One that cannot be read must not silently become none.
#[allow(clippy::disallowed_methods, reason = "the one home of these variables")]
pub fn text(name: &str) -> Result<Option<String>, BadSetting> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(BadSetting::new(format!("{name} is not valid UTF-8"))),
    }
}

/// A variable with an address. An empty one is a template that was not filled in, and would mean another ledger than the
/// others share. A secret that comes from a file often ends with a line's end.
#[allow(clippy::disallowed_methods, reason = "the one home of these variables")]
pub fn address(name: &str) -> Result<Option<String>, BadSetting> {
    let given = text(name)?.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    match given.is_none() && std::env::var_os(name).is_some() {
        true => Err(BadSetting::hinted(
            format!("{name} is set and empty; nothing was sent"),
            "write the address into it, or unset it: then the ledger is the one of this machine",
        )),
        false => Ok(given),
    }
}

/// A variable with a path.
#[allow(clippy::disallowed_methods, reason = "the one home of these variables")]
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A variable that the operator named in the configuration.
#[allow(clippy::disallowed_methods, reason = "the one home of these variables")]
pub fn named(name: &str) -> Result<String, BadSetting> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        Ok(_) | Err(std::env::VarError::NotPresent) => {
            Err(BadSetting::new(format!("the environment variable {name} is not set")))
        }
        Err(std::env::VarError::NotUnicode(_)) => Err(BadSetting::new(format!("{name} is not valid UTF-8"))),
    }
}
