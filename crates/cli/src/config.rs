//! The environment, read once. Flag over environment over project file over user file.

use crate::output::Output;
use semel::settings::{self, Settings, address, path, text};
use semel_core::own_tokens::{CLIENT_TOKEN, CLIENT_TOKEN_FILE, OPERATOR_TOKEN, SERVE_TOKEN};
use std::ffi::OsString;
use std::path::PathBuf;

/// The surroundings of this process.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where its ledger and its policy are.
    pub settings: Settings,
    /// Where Claude Code, Codex and Gemini CLI keep their configuration, if not below the home; and Windows programs.
    pub claude_config_dir: Option<PathBuf>,
    pub codex_home: Option<PathBuf>,
    pub gemini_home: Option<PathBuf>,
    pub curl_home: Option<PathBuf>,
    pub app_data: Option<PathBuf>,
    /// The server that the ledger is behind, its own roots of trust, and our token for it.
    pub server: Option<String>,
    pub server_ca: Option<PathBuf>,
    pub client_token: Option<String>,
    pub client_token_file: Option<PathBuf>,
    /// The effect that this process is an attempt of: it runs under `semel run`.
    pub effect_id: Option<String>,
    /// Codex has started it in a sandbox from which nothing can leave.
    pub sandbox_without_network: bool,
    pub failpoints: Option<String>,
    /// The token that clients of `semel serve` show, instead of the one in the state directory.
    pub serve_token: Option<String>,
    /// The token of whoever rules without a terminal.
    pub operator_token: Option<String>,
    /// OpenTelemetry's own variables.
    pub otel: Otel,
    pub search: OsString,
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
        let on_new_ledger: fn(&str) =
            |server| Output::warn_everybody(format_args!("semel: began a new ledger at {server}"));
        Ok(Environment {
            settings: Settings { on_new_ledger, ..Settings::read()? },
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            codex_home: path("CODEX_HOME"),
            gemini_home: path("GEMINI_CLI_HOME"),
            curl_home: path("CURL_HOME"),
            app_data: path("APPDATA"),
            sandbox_without_network: text("CODEX_SANDBOX_NETWORK_DISABLED")?.as_deref() == Some("1"),
            server: address("SEMEL_SERVER")?,
            server_ca: path("SEMEL_SERVER_CA"),
            client_token: text(CLIENT_TOKEN)?,
            client_token_file: path(CLIENT_TOKEN_FILE),
            effect_id: text("SEMEL_EFFECT_ID")?,
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
            search: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
        })
    }

    /// A variable that the operator named in the configuration.
    pub fn variable(&self, name: &str) -> anyhow::Result<String> {
        Ok(settings::named(name)?)
    }
}
