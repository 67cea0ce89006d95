//! `semel policy presets`: the HTTP APIs that packs know, and what each does against duplicates by itself.

use crate::context::Context;
use crate::output::Hinted;
use crate::table;
use semel_core::policy::duration;
use semel_core::policy::file::{Helps, ServerError, Speaks, Stores};
use semel_core::policy::nearest::nearest;
use semel_core::policy::pack::PACKS;
use semel_core::policy::upstreams::{KeyPolicy, Preset};
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, Serialize)]
struct KnownApi {
    name: &'static str,
    /// The name that replaces the host in the names of its actions.
    service: String,
    hosts: Vec<String>,
    speaks: Speaks,
    helps: Helps,
    note: String,
    keys: ApiAnswers,
}

/// The answers that clients get for their keys.
#[derive(Debug, Serialize)]
struct ApiAnswers {
    header: String,
    pattern: Option<String>,
    required: bool,
    stores: Stores,
    server_error: ServerError,
    drift_status: u16,
    in_flight_status: u16,
    created_status: u16,
    life: Option<String>,
}

pub fn run(context: &Context, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut known: Vec<KnownApi> =
        PACKS.iter().filter_map(|pack| Some(KnownApi::of(pack.name, pack.preset()?))).collect();
    known.sort_by_key(|known| known.name);
    let Some(name) = name else {
        list(context, &known);
        return Ok(ExitCode::SUCCESS);
    };
    let Some(one) = known.iter().find(|known| known.name == name) else {
        let near = nearest(name, known.iter().map(|known| known.name));
        let hint =
            near.map_or("semel policy presets lists them".to_owned(), |near| format!("did you mean {near}?"));
        return Err(Hinted::error(format!("there is no preset {name}"), hint));
    };
    if context.output.json {
        context.output.document(one);
    } else {
        context.output.data(text(one).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, known: &[KnownApi]) {
    if context.output.json {
        context.output.list(known, None);
        return;
    }
    let rows = known.iter().map(|known| vec![known.name.to_owned(), word(known.helps), known.note.clone()]);
    context.output.data(
        table::plain(&["PRESET", "HELPS", "WHAT THE API ITSELF DOES AGAINST DUPLICATES"], rows).join("\n"),
    );
    context.output.say("hint: [upstream.NAME] finds its preset by the host, or preset = \"stripe\" names it");
}

/// As the policy writes it.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn text(it: &KnownApi) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: &str| {
        let _infallible = writeln!(text, "{name:<14}{value}");
    };
    fact("preset", it.name);
    fact("hosts", &it.hosts.join(", "));
    fact("actions", &format!("http:METHOD {}/…", it.service));
    if it.speaks != Speaks::Nothing {
        fact("speaks", &word(it.speaks));
    }
    fact("helps", &word(it.helps));
    fact("", &it.note);
    fact("key header", &it.keys.header);
    if let Some(pattern) = &it.keys.pattern {
        fact("key pattern", pattern);
    }
    fact("stores", &word(it.keys.stores));
    fact("server error", &word(it.keys.server_error));
    fact("drift", &it.keys.drift_status.to_string());
    fact("in flight", &it.keys.in_flight_status.to_string());
    fact("created", &it.keys.created_status.to_string());
    fact("life", it.keys.life.as_deref().unwrap_or("for ever"));
    text
}

impl KnownApi {
    fn of(name: &'static str, preset: Preset) -> KnownApi {
        let KeyPolicy {
            header,
            pattern,
            required,
            stores,
            server_error,
            drift_status,
            in_flight_status,
            created_status,
            life,
        } = preset.keys;
        KnownApi {
            name,
            service: preset.service,
            hosts: preset.hosts,
            speaks: preset.speaks,
            helps: preset.helps,
            note: preset.note,
            keys: ApiAnswers {
                header,
                pattern,
                required,
                stores,
                server_error,
                drift_status,
                in_flight_status,
                created_status,
                life: life.map(duration::text),
            },
        }
    }
}
