//! The environment, read once. Flag over environment over project file over user file.

use crate::output::Hinted;
use anyhow::{Context, bail};
use semel_core::own_tokens::{CLIENT_TOKEN, CLIENT_TOKEN_FILE, OPERATOR_TOKEN, SERVE_TOKEN};
use std::ffi::OsString;
use std::path::PathBuf;

/// The surroundings of this process.
#[derive(Debug, Clone)]
pub struct Environment {
    pub home: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub xdg_state: Option<PathBuf>,
    pub xdg_config: Option<PathBuf>,
    /// Where Claude Code, Codex and Gemini CLI keep their configuration, if not below the home; and Windows programs.
    pub claude_config_dir: Option<PathBuf>,
    pub codex_home: Option<PathBuf>,
    pub gemini_home: Option<PathBuf>,
    pub curl_home: Option<PathBuf>,
    pub app_data: Option<PathBuf>,
    pub ledger: Option<String>,
    /// The ledger must be one that other hosts share: a file would be another ledger on each of them.
    pub shared_ledger: bool,
    /// The server that the ledger is behind, its own roots of trust, and our token for it.
    pub server: Option<String>,
    pub server_ca: Option<PathBuf>,
    pub client_token: Option<String>,
    pub client_token_file: Option<PathBuf>,
    pub policy: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub run_id: Option<String>,
    /// The effect that this process is an attempt of: it runs under `semel run`.
    pub effect_id: Option<String>,
    pub baggage: Option<String>,
    pub failpoints: Option<String>,
    /// The token that clients of `semel serve` show, instead of the one in the state directory.
    pub serve_token: Option<String>,
    /// The token of whoever rules without a terminal.
    pub operator_token: Option<String>,
    /// OpenTelemetry's own variables.
    pub otel: Otel,
    pub allow_network_fs: bool,
    pub search: OsString,
    pub cwd: PathBuf,
}

#[derive(Debug, Clone, Default)]
pub struct Otel {
    pub disabled: bool,
    pub endpoint: Option<String>,
    pub traces_endpoint: Option<String>,
    pub headers: Option<String>,
    pub service: Option<String>,
}

#[allow(clippy::disallowed_methods, reason = "the one home of the environment")]
impl Environment {
    pub fn read() -> anyhow::Result<Self> {
        // A name that cannot be read must not silently become no name.
        let text = |name: &str| match std::env::var(name) {
            Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => bail!("{name} is not valid UTF-8"),
        };
        // An empty one is a template that was not filled in, and would mean another ledger than the others share. A
        // secret that comes from a file often ends with a line's end.
        let address = |name: &str| {
            let given = text(name)?.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            match given.is_none() && std::env::var_os(name).is_some() {
                true => Err(Hinted::error(
                    format!("{name} is set and empty; nothing was sent"),
                    "write the address into it, or unset it: then the ledger is the one of this machine",
                )),
                false => Ok(given),
            }
        };
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Environment {
            home: path("HOME"),
            state_dir: path("SEMEL_STATE_DIR"),
            xdg_state: path("XDG_STATE_HOME").filter(|path| path.is_absolute()),
            xdg_config: path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()),
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            codex_home: path("CODEX_HOME"),
            gemini_home: path("GEMINI_CLI_HOME"),
            curl_home: path("CURL_HOME"),
            app_data: path("APPDATA"),
            ledger: address("SEMEL_LEDGER")?,
            shared_ledger: text("SEMEL_SHARED_LEDGER")?.is_some_and(|value| value != "0"),
            server: address("SEMEL_SERVER")?,
            server_ca: path("SEMEL_SERVER_CA"),
            client_token: text(CLIENT_TOKEN)?,
            client_token_file: path(CLIENT_TOKEN_FILE),
            policy: path("SEMEL_POLICY"),
            config: path("SEMEL_CONFIG"),
            run_id: text("SEMEL_RUN_ID")?,
            effect_id: text("SEMEL_EFFECT_ID")?,
            baggage: text("BAGGAGE")?,
            failpoints: text("SEMEL_FAILPOINTS")?,
            serve_token: text(SERVE_TOKEN)?,
            operator_token: text(OPERATOR_TOKEN)?,
            otel: Otel {
                disabled: text("OTEL_SDK_DISABLED")?.is_some_and(|value| value.eq_ignore_ascii_case("true"))
                    || text("OTEL_TRACES_EXPORTER")?.is_some_and(|exporter| exporter == "none"),
                endpoint: text("OTEL_EXPORTER_OTLP_ENDPOINT")?,
                traces_endpoint: text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")?,
                headers: text("OTEL_EXPORTER_OTLP_HEADERS")?,
                service: text("OTEL_SERVICE_NAME")?,
            },
            allow_network_fs: text("SEMEL_ALLOW_NETWORK_FS")?.is_some_and(|value| value != "0"),
            search: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            cwd: std::env::current_dir().context("the working directory is gone")?,
        })
    }

    /// A variable that the operator named in the configuration.
    pub fn variable(&self, name: &str) -> anyhow::Result<String> {
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(value),
            Ok(_) | Err(std::env::VarError::NotPresent) => {
                bail!("the environment variable {name} is not set")
            }
            Err(std::env::VarError::NotUnicode(_)) => bail!("{name} is not valid UTF-8"),
        }
    }

    /// Where semel keeps what it must not lose.
    pub fn state_directory(&self) -> anyhow::Result<PathBuf> {
        Ok(match (&self.state_dir, &self.xdg_state, &self.home) {
            (Some(directory), _, _) if directory.is_relative() => bail!(
                "SEMEL_STATE_DIR is {}, and must be an absolute path: the ledger is the same one from every directory",
                directory.display()
            ),
            (Some(directory), _, _) => directory.clone(),
            (None, Some(state), _) => state.join("semel"),
            (None, None, Some(home)) if home.is_absolute() => home.join(".local/state/semel"),
            (None, None, _) => {
                bail!("neither SEMEL_STATE_DIR nor HOME is set, so the ledger has no place")
            }
        })
    }

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
