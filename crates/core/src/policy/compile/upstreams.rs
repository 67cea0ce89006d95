//! `[upstream.NAME]`, and what a pack's `[preset]` adds to it.

use super::check::{Checker, Input};
use crate::ids::Run;
use crate::policy::diagnostic::DiagnosticCode::BadServer;
use crate::policy::diagnostic::{Diagnostics, SourceText};
use crate::policy::file::{Entries, Helps, KeysTable, PresetTable, Speaks, Spot, UpstreamTable};
use crate::policy::glob::covers_host;
use crate::policy::nearest::suggest;
use crate::policy::pack::{self, Pack};
use crate::policy::upstreams::{HttpApi, KeyPolicy, Preset};
use std::ops::RangeInclusive;

/// Turns the preset off.
const NO_PRESET: &str = "none";

/// A longer expression was generated, and every key is matched against it.
const PATTERN_CHARS_MAX: usize = 256;

const ACCOUNT_CHARS_MAX: usize = 64;

/// The APIs of one file, and the packs whose presets they use.
pub fn upstreams(
    input: Input<'_>,
    tables: &Entries<Spot<UpstreamTable>>,
    found: &mut Diagnostics,
) -> Vec<(String, HttpApi)> {
    let mut check = Checker { input, found };
    let mut apis: Vec<(String, HttpApi)> = Vec::new();
    for (name, table) in &tables.0 {
        let Some(api) = check.http_api(name, table) else { continue };
        if let Some((other, _)) = apis.iter().find(|(_, other)| other.passes_for(&api)) {
            let what = format!(
                "`{}` is at the address of `{other}` with other headers, and nothing tells their calls apart",
                name.value
            );
            let help = format!(
                "say account = \"{}\" here, and `{other}` stays who it is; or the same account in both, if it is one",
                name.value
            );
            check.bad(name, what, help);
        }
        apis.push((name.value.clone(), api));
    }
    apis
}

/// A pack's statements about its API.
pub fn preset(source: SourceText<'_>, table: &PresetTable, found: &mut Diagnostics) -> Preset {
    let mut check = Checker { input: Input { source, whole: true }, found };
    let text = |text: &Option<Spot<String>>| text.as_ref().map(|text| text.value.clone());
    Preset {
        service: text(&table.service).unwrap_or_default(),
        hosts: table.hosts.iter().map(|host| host.value.clone()).collect(),
        speaks: table.speaks.unwrap_or(Speaks::Nothing),
        helps: table.helps.unwrap_or(Helps::Nothing),
        note: text(&table.note).unwrap_or_default(),
        keys: check.keys(&table.keys, KeyPolicy::default()),
    }
}

impl Checker<'_> {
    fn http_api(&mut self, name: &Spot<String>, table: &Spot<UpstreamTable>) -> Option<HttpApi> {
        self.name_of_server(name);
        self.names_of_headers(&table.value.headers, true);
        self.headers_of_variables(&table.value.headers_env);
        let run = table.value.run.as_ref();
        if let Some(run) = run.filter(|run| Run::named(&run.value).is_err()) {
            let what = format!("`{}` cannot name a run", run.value);
            self.bad(run, what, "visible characters, not too many");
        }
        let Some(url) = &table.value.url else {
            let what = format!("`{}` has no `url`", name.value);
            self.absent(name, BadServer, what, "url = \"https://api.example.com\"");
            return None;
        };
        let Some(host) = canonical_host(&url.value, self.behind_scheme(url)?) else {
            let what = format!("`{}` is more than scheme, host and path", url.value);
            self.bad(url, what, "such as https://api.example.com/v1, without user, query or fragment");
            return None;
        };
        if !self.is_read_by_the_client(url) {
            return None;
        }
        let pack = match &table.value.preset {
            Some(named) if named.value == NO_PRESET => None,
            Some(named) => self.named_preset(named),
            None => pack::PACKS
                .iter()
                .find(|pack| pack.preset().is_some_and(|preset| covers_host(&preset.hosts, bare(&host)))),
        };
        let preset = pack.and_then(Pack::preset);
        if let (Some(service), Some(preset)) = (&table.value.service, &preset)
            && !service.value.is_empty()
            && service.value != preset.service
        {
            let what = format!(
                "the rules of its preset are written for `{}`, and would match nothing",
                preset.service
            );
            self.bad(service, what, "leave `service` out, or say preset = \"none\"");
        }
        let service = table.value.service.as_ref().map(|service| service.value.clone());
        let account = table.value.account.as_ref();
        if let Some(account) = account.filter(|account| !is_account(&account.value)) {
            let what = format!("`{}` cannot name an account", account.value);
            let help = format!("1 to {ACCOUNT_CHARS_MAX} visible characters, such as \"main\"");
            self.bad(account, what, help);
        }
        let otherwise = preset.as_ref().map(|preset| preset.keys.clone()).unwrap_or_default();
        let keys = self.keys(&table.value.keys, otherwise);
        let source = self.input.source;
        Some(HttpApi {
            path: source.path.to_owned(),
            line: source.line_of(name.span.start),
            url: url.value.clone(),
            preset: pack.map(|pack| pack.name),
            service: (service.filter(|service| !service.is_empty()))
                .or_else(|| preset.as_ref().map(|preset| preset.service.clone()))
                .unwrap_or(host),
            account: account.map(|account| account.value.clone()),
            speaks: (table.value.speaks)
                .or(preset.as_ref().map(|preset| preset.speaks))
                .unwrap_or(Speaks::Nothing),
            headers: super::servers::pairs(&table.value.headers),
            headers_env: super::servers::pairs(&table.value.headers_env),
            private: table.value.private.as_ref().is_some_and(|private| private.value),
            run: run.map(|run| run.value.clone()),
            keys,
        })
    }

    fn named_preset(&mut self, named: &Spot<String>) -> Option<&'static Pack> {
        let with_presets = || pack::PACKS.iter().filter(|pack| pack.preset().is_some());
        if let Some(pack) = with_presets().find(|pack| pack.name == named.value) {
            return Some(pack);
        }
        let names: Vec<&str> = with_presets().map(|pack| pack.name).chain([NO_PRESET]).collect();
        let help = suggest(&named.value, &names);
        self.bad(named, format!("there is no preset `{}`", named.value), help);
        None
    }

    /// These, and the others' where these are silent.
    fn keys(&mut self, table: &KeysTable, otherwise: KeyPolicy) -> KeyPolicy {
        if let Some(header) = &table.header {
            let entry = Entries(vec![(header.clone(), String::new())]);
            self.names_of_headers(&entry, false);
        }
        if let Some(pattern) = &table.pattern {
            let long = pattern.value.chars().count() > PATTERN_CHARS_MAX;
            if long || regex::Regex::new(&pattern.value).is_err() {
                let what = format!("`{}` is no regular expression of a key", pattern.value);
                self.bad(pattern, what, "such as [A-Za-z0-9_-]{1,64}");
            }
        }
        let refusal = (400..=499, "a refusal");
        let drift_status = self.status(table.drift_status.as_ref(), &refusal);
        let in_flight_status = self.status(table.in_flight_status.as_ref(), &refusal);
        let created_status = self.status(table.created_status.as_ref(), &(200..=299, "a success"));
        KeyPolicy {
            header: table.header.as_ref().map_or(otherwise.header, |header| header.value.clone()),
            pattern: table.pattern.as_ref().map(|pattern| pattern.value.clone()).or(otherwise.pattern),
            required: table.required.unwrap_or(otherwise.required),
            stores: table.stores.unwrap_or(otherwise.stores),
            server_error: table.server_error.unwrap_or(otherwise.server_error),
            drift_status: drift_status.unwrap_or(otherwise.drift_status),
            in_flight_status: in_flight_status.unwrap_or(otherwise.in_flight_status),
            created_status: created_status.unwrap_or(otherwise.created_status),
            life: self.some_time(table.life.as_ref()).or(otherwise.life),
        }
    }

    fn status(
        &mut self,
        status: Option<&Spot<i64>>,
        (range, kind): &(RangeInclusive<u16>, &str),
    ) -> Option<u16> {
        let status = status?;
        let code = u16::try_from(status.value).ok().filter(|code| range.contains(code));
        if code.is_none() {
            let what = format!("{} is not the status of {kind}", status.value);
            self.bad(status, what, format!("from {} to {}", range.start(), range.end()));
        }
        code
    }
}

fn is_account(name: &str) -> bool {
    let visible = |c: char| !c.is_control() && !c.is_whitespace();
    !name.is_empty() && name.chars().all(visible) && name.chars().count() <= ACCOUNT_CHARS_MAX
}

/// Host and port of an address, in the one spelling that names of actions have: in small letters, without a dot at its
/// end, and without the port that its scheme has anyway.
fn canonical_host(url: &str, behind_scheme: &str) -> Option<String> {
    if behind_scheme.contains(['?', '#', ' ', '@']) {
        return None;
    }
    let written = behind_scheme.split('/').next()?.to_ascii_lowercase();
    let port = written.strip_prefix(bare(&written))?;
    let own_port = if url.starts_with("https:") { ":443" } else { ":80" };
    let name = bare(&written).trim_end_matches('.');
    let port = if port == own_port { "" } else { port };
    (!name.is_empty()).then(|| format!("{name}{port}"))
}

/// Without its port.
fn bare(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
