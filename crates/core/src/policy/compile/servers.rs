//! `[mcp.NAME]`, `[serve]` and `[notify]`.

use super::check::{Checker, Input, Located};
use crate::address;
use crate::ids::Run;
use crate::policy::diagnostic::DiagnosticCode::{BadServer, WithoutEffect};
use crate::policy::diagnostic::Diagnostics;
use crate::policy::duration;
use crate::policy::file::{Entries, File, McpTable, NotifyTable, ServeTable, Spot, TlsTable};
use crate::policy::servers::{McpEndpoint, McpServer, Notify, NotifyCommand, NotifyUrl, Serve, TlsFiles};
use std::time::Duration;

/// A name is part of every action of its server, and of the path at which it is offered.
const NAME_CHARS_MAX: usize = 64;

/// Supervisors kill a server some time after they stop it.
const GRACE_MAX: Duration = Duration::from_secs(600);

/// Headers that a connection writes itself.
const CONNECTION_HEADERS: [&str; 6] =
    ["host", "connection", "content-length", "transfer-encoding", "upgrade", "te"];

pub fn mcp_servers(
    input: Input<'_>,
    tables: &Entries<Spot<McpTable>>,
    found: &mut Diagnostics,
) -> Vec<(String, McpServer)> {
    let mut check = Checker { input, found };
    tables
        .0
        .iter()
        .filter_map(|(name, table)| Some((name.value.clone(), check.mcp_server(name, table)?)))
        .collect()
}

pub fn serve(input: Input<'_>, table: &ServeTable, found: &mut Diagnostics) -> Serve {
    let mut check = Checker { input, found };
    let listen = table.listen.as_ref().and_then(|listen| match listen.value.parse() {
        Ok(address) => Some(address),
        Err(_) => {
            let what = format!("`{}` is no address with a port", listen.value);
            check.bad(listen, what, "such as 127.0.0.1:7777 or [::1]:7777");
            None
        }
    });
    for origin in &table.allowed_origins {
        let rest = origin.value.strip_prefix("https://").or_else(|| origin.value.strip_prefix("http://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['/', '*', ' '])) {
            let what = format!("`{}` is no origin", origin.value);
            check.bad(origin, what, "scheme, host and port alone, such as https://app.example.com");
        }
    }
    for host in &table.allowed_hosts {
        if host.value.is_empty() || host.value.contains(['/', '*', ' ', '@']) {
            let what = format!("`{}` is no host name", host.value);
            check.bad(host, what, "the name alone, such as semel.example.com");
        }
    }
    let texts = |list: &[Spot<String>]| list.iter().map(|text| text.value.clone()).collect();
    Serve {
        listen,
        allow_remote: table.allow_remote,
        tls: table.tls.as_ref().and_then(|table| check.tls(table)),
        allowed_origins: texts(&table.allowed_origins),
        allowed_hosts: texts(&table.allowed_hosts),
        require_token: table.require_token,
        metrics: table.metrics,
        otlp: table.otlp.as_ref().and_then(|url| check.web_address(url)),
        grace: table.grace.as_ref().and_then(|grace| check.grace(grace)),
    }
}

/// `[notify]`, also under the name that it had.
pub fn notify(input: Input<'_>, file: &File, found: &mut Diagnostics) -> Option<Notify> {
    let mut check = Checker { input, found };
    if let Some(old) = &file.serve.webhook {
        let (what, help) = match file.notify {
            None => ("`[serve.webhook]` is called `[notify]` now", "the same keys under [notify]"),
            Some(_) => ("`[serve.webhook]` does nothing beside `[notify]`", "take it out"),
        };
        check.found.warning(input.source, old.span.clone(), WithoutEffect, what, help);
    }
    check.notify(file.notify.as_ref().or(file.serve.webhook.as_ref())?)
}

impl Checker<'_> {
    pub(super) fn bad(&mut self, at: impl Located, what: impl Into<String>, help: impl Into<String>) {
        self.error(at, BadServer, what, help);
    }

    fn web_address(&mut self, url: &Spot<String>) -> Option<String> {
        let rest = self.behind_scheme(url)?;
        if rest.is_empty() || rest.starts_with('/') {
            let what = format!("`{}` names no host", url.value);
            self.bad(url, what, "such as https://example.com/path");
            return None;
        }
        self.is_read_by_the_client(url).then(|| url.value.clone())
    }

    /// Nothing passes here that the server would refuse when it starts.
    pub(super) fn is_read_by_the_client(&mut self, url: &Spot<String>) -> bool {
        let read = address::parse(&url.value);
        if let Err(invalid) = &read {
            self.bad(url, invalid.to_string(), "such as https://example.com/path");
        }
        read.is_ok()
    }

    /// The part after `https://` or `http://`: an address begins with one of them.
    pub(super) fn behind_scheme<'a>(&mut self, url: &'a Spot<String>) -> Option<&'a str> {
        let rest = url.value.strip_prefix("https://").or_else(|| url.value.strip_prefix("http://"));
        if rest.is_none() {
            let (what, help) = match url.value.split_once("://") {
                Some((scheme, rest)) => (
                    format!("`{scheme}://` is not spoken here"),
                    format!("only https:// and http:// are: https://{rest}"),
                ),
                None => (
                    format!("`{}` does not begin with https:// or http://", url.value),
                    format!("write https://{}", url.value),
                ),
            };
            self.bad(url, what, help);
        }
        rest
    }

    fn grace(&mut self, grace: &Spot<String>) -> Option<Duration> {
        match duration::parse(&grace.value) {
            Ok(span) if span <= GRACE_MAX => Some(span),
            Ok(_) => {
                self.bad(grace, "nobody waits so long for a server to stop", "at most 10m");
                None
            }
            Err(error) => {
                self.bad(grace, error.to_string(), "such as 25s");
                None
            }
        }
    }

    fn tls(&mut self, table: &Spot<TlsTable>) -> Option<TlsFiles> {
        let TlsTable { certificate: Some(certificate), key: Some(key) } = &table.value else {
            let help = "tls = { certificate = \"cert.pem\", key = \"key.pem\" }";
            self.absent(table, BadServer, "TLS needs both `certificate` and `key`", help);
            return None;
        };
        for file in [certificate, key].into_iter().filter(|file| file.value.is_empty()) {
            self.bad(file, "this names no file", "such as cert.pem, beside the policy");
        }
        let path = |file: &Spot<String>| self.beside_the_file(&file.value);
        Some(TlsFiles { certificate: path(certificate), key: path(key) })
    }

    fn notify(&mut self, table: &Spot<NotifyTable>) -> Option<Notify> {
        let NotifyTable { command, url, secret_env, private } = &table.value;
        if command.is_none() && url.is_none() {
            let help = "command = [\"notify-me\"], or url = \"https://…\"";
            self.absent(table, BadServer, "`notify` has neither `command` nor `url`", help);
        }
        if let Some(command) = command.as_ref().filter(|it| it.value.first().is_none_or(String::is_empty)) {
            self.bad(command, "`command` names no program", "such as [\"notify-me\", \"--urgent\"]");
        }
        if url.is_none() {
            let help = "a command knows its secrets from elsewhere";
            for place in [secret_env.as_ref().map(|it| &it.span), private.as_ref().map(|it| &it.span)] {
                place.into_iter().for_each(|place| self.bad(place, "this goes with `url`", help));
            }
        }
        let url = url.as_ref().and_then(|url| {
            Some(NotifyUrl {
                url: self.web_address(url)?,
                secret_env: secret_env.as_ref().map(|variable| variable.value.clone()),
                private: private.as_ref().is_some_and(|private| private.value),
            })
        });
        let command = command.as_ref().map(|command| NotifyCommand {
            argv: command.value.clone(),
            directory: self.beside_the_file(""),
        });
        Some(Notify { command, url })
    }

    fn mcp_server(&mut self, name: &Spot<String>, table: &Spot<McpTable>) -> Option<McpServer> {
        self.name_of_server(name);
        let reach = self.reach(name, &table.value);
        let run = table.value.run.as_ref();
        if let Some(run) = run.filter(|run| Run::named(&run.value).is_err()) {
            self.bad(run, format!("`{}` cannot name a run", run.value), "visible characters, not too many");
        }
        let source = self.input.source;
        Some(McpServer {
            path: source.path.to_owned(),
            line: source.line_of(name.span.start),
            reach: reach?,
            trusted: table.value.trusted,
            decorate: table.value.decorate,
            own_tools: table.value.tools,
            dry_run_argument: table.value.dry_run_argument,
            run: run.map(|run| run.value.clone()),
        })
    }

    pub(super) fn name_of_server(&mut self, name: &Spot<String>) {
        let text = &name.value;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if text.is_empty() || text.len() > NAME_CHARS_MAX || !text.bytes().all(plain) || text.starts_with('.')
        {
            let help = "letters, digits, `_`, `-` and `.`, at most 64, beginning with none of the dots";
            self.bad(name, format!("`{text}` cannot name a server"), help);
        }
    }

    fn reach(&mut self, name: &Spot<String>, table: &McpTable) -> Option<McpEndpoint> {
        match (&table.command, &table.url) {
            (Some(command), None) => {
                if command.value.first().is_none_or(String::is_empty) {
                    self.bad(command, "`command` names no program", "such as [\"npx\", \"-y\", \"server\"]");
                }
                for (header, _) in table.headers.0.iter().chain(&table.headers_env.0) {
                    self.bad(header, "a command has no headers", "they go with `url`; a command has `env`");
                }
                if let Some(private) = &table.private {
                    self.bad(private, "a command has no address", "`private` goes with `url`");
                }
                self.names_of_env(&table.env);
                let cwd = table.cwd.as_ref().map(|cwd| self.beside_the_file(&cwd.value));
                Some(McpEndpoint::Command { argv: command.value.clone(), env: pairs(&table.env), cwd })
            }
            (None, Some(url)) => {
                for (variable, _) in &table.env.0 {
                    self.bad(variable, "an address has no environment", "`env` goes with `command`");
                }
                if let Some(cwd) = &table.cwd {
                    self.bad(cwd, "an address has no directory", "`cwd` goes with `command`");
                }
                self.names_of_headers(&table.headers, true);
                self.headers_of_variables(&table.headers_env);
                Some(McpEndpoint::Url {
                    url: self.web_address(url)?,
                    private: table.private.as_ref().is_some_and(|private| private.value),
                    headers: pairs(&table.headers),
                    headers_env: pairs(&table.headers_env),
                })
            }
            (None, None) => {
                let what = format!("`{}` has neither `command` nor `url`", name.value);
                self.absent(name, BadServer, &what, "command = [\"server\"], or url = \"https://…\"");
                None
            }
            (Some(_), Some(url)) => {
                self.bad(url, "there are both `command` and `url`", "a server is reached in one way");
                None
            }
        }
    }

    fn beside_the_file(&self, path: &str) -> std::path::PathBuf {
        self.input.source.path.parent().unwrap_or(std::path::Path::new("")).join(path)
    }

    fn names_of_env(&mut self, env: &Entries<String>) {
        for (variable, value) in &env.0 {
            if variable.value.is_empty() || variable.value.contains(['=', '\0']) || value.contains('\0') {
                let what = format!("`{}` cannot be an environment variable", variable.value);
                self.bad(variable, what, "no `=` and no NUL");
            }
        }
    }

    /// Headers whose values are names of variables.
    pub(super) fn headers_of_variables(&mut self, headers: &Entries<String>) {
        self.names_of_headers(headers, false);
        for (header, variable) in &headers.0 {
            if variable.is_empty() || variable.contains(['=', '\0']) || variable.contains(char::is_whitespace)
            {
                self.bad(
                    header,
                    format!("`{}` does not come from a variable of a name that there can be", header.value),
                    "such as headers_env = { Authorization = \"API_AUTHORIZATION\" }; the variable has the value",
                );
            }
        }
    }

    pub(super) fn names_of_headers(&mut self, headers: &Entries<String>, with_values: bool) {
        for (header, value) in &headers.0 {
            let name = &header.value;
            let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(token) {
                self.bad(header, format!("`{name}` is no header name"), "such as Authorization");
            } else if CONNECTION_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                self.bad(header, format!("`{name}` is written by the connection itself"), "leave it out");
            }
            if with_values && value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7F) {
                self.bad(header, format!("the value of `{name}` has control characters"), "one line of text");
            }
        }
    }
}

pub(super) fn pairs(entries: &Entries<String>) -> Vec<(String, String)> {
    entries.0.iter().map(|(name, value)| (name.value.clone(), value.clone())).collect()
}
