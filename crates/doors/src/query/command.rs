//! Asking through a command.

use super::backends::Shell;
use super::pages::next_page;
use super::response::{ANSWER_BYTES_MAX, QueryResponse, ResponseKind, TAKES_MAX};
use crate::caller::without_own_tokens;
use crate::process::child::{self, ChildPlan, Signals};
use crate::process::program;
use crate::process::stream::Sink;
use semel_core::json::Json;
use semel_core::policy::template::{Encoding, Template};
use semel_gate::clock::{Clock, SystemClock};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use tokio::runtime::Handle;

pub async fn ask(
    argv: &[Template],
    places: &Json,
    shell: &Shell,
    signals: Option<&Signals>,
) -> Result<QueryResponse, String> {
    let words = argv.iter().map(|word| word.render(places, Encoding::Argument));
    let words: Vec<String> = words.collect::<Result<_, _>>().map_err(|missing| missing.to_string())?;
    if let Some(signals) = signals {
        return run(&words, shell, signals);
    }
    let shell = shell.clone();
    let unheard = move || run(&words, &shell, &Signals::unheard().map_err(|error| error.to_string())?);
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(unheard).await.unwrap_or_else(|error| Err(error.to_string())),
        // `semel run` has none, and nobody else to wait for.
        Err(_) => unheard(),
    }
}

fn run(words: &[String], shell: &Shell, signals: &Signals) -> Result<QueryResponse, String> {
    let first = words.first().ok_or("there is no command to ask with")?;
    let program = program::find(first, &shell.search, &shell.cwd).map_err(|not_started| not_started.why)?;
    let mut command = Command::new(program);
    command.args(&words[1..]).current_dir(&shell.cwd).stdin(Stdio::null()).env_remove("SEMEL_FAILPOINTS");
    without_own_tokens(&mut command);
    let plan = ChildPlan {
        command,
        input: None,
        stdout: Sink::Nowhere,
        stderr: Sink::Nowhere,
        kept_max: ANSWER_BYTES_MAX,
        timeout: Some(TAKES_MAX),
        output_drain: None,
    };
    let clock = SystemClock::start();
    let ended = child::run(plan, signals, &|| clock.elapsed(), |_| ()).map_err(|error| error.to_string())?;
    if ended.timed_out || ended.stdout.total > ANSWER_BYTES_MAX as u64 {
        return Err("it did not end in time, or said too much".into());
    }
    let printed = ended.stdout.kept;
    let resp = response(ended.status, &printed, &ended.stderr.kept);
    let more = next_page(&resp);
    Ok(QueryResponse { resp, kind: ResponseKind::Command { exit: ended.status.code(), printed }, more })
}

/// `resp.exit`, `resp.text`, `resp.stderr`, and the members of its output if that is JSON.
fn response(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Json {
    let exit = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    let text = Json::str(&String::from_utf8_lossy(stdout));
    let json = semel_core::json::parse_bytes(stdout.trim_ascii()).unwrap_or(Json::Null);
    let mut members: Vec<(String, Json)> = match &json {
        Json::Object(object) => object.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        _ => Vec::new(),
    };
    let (exit, stderr) = (Json::from(Value::from(exit)), Json::str(&String::from_utf8_lossy(stderr)));
    let own = [("exit", exit), ("text", text), ("stderr", stderr), ("json", json)];
    members.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Json::Object(members.into_iter().collect())
}
