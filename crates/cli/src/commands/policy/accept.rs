//! `semel policy accept`: tools whose definition changed since their first use, and taking the change over.

use crate::args::PolicyAccept;
use crate::commands::Context;
use crate::neutral;
use crate::output::Hinted;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::pins::{Pin, name_of};
use serde_json::json;
use similar::TextDiff;
use std::process::ExitCode;

/// As much of a hash as tells two definitions apart.
const HASH_CHARS: usize = 12;

pub fn run(context: &Context, args: &PolicyAccept) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    match &args.tool {
        Some(named) => accept(context, named, args.r#as.as_deref(), &clock),
        None => list(context, &clock),
    }
}

fn accept(
    context: &Context,
    named: &str,
    seen: Option<&str>,
    clock: &SystemClock,
) -> anyhow::Result<ExitCode> {
    if seen.is_some_and(|seen| seen.len() < HASH_CHARS) {
        return Err(Hinted::error(
            format!("--as takes {HASH_CHARS} characters of a hash or more"),
            "semel policy accept",
        ));
    }
    let named = named.strip_prefix("mcp:").unwrap_or(named);
    let (server, tool) = match named.split_once('/') {
        Some((server, tool)) => (server, Some(tool)),
        None => (named, None),
    };
    let accepted = match context.existing_ledger(clock)? {
        Some(ledger) => block_on(ledger.accept_pins(server, tool, seen, clock.now()))?,
        None => Vec::new(),
    };
    if accepted.is_empty() {
        let seen = seen.map_or_else(String::new, |seen| format!(" as {}", neutral::line(seen)));
        let what = format!("no changed definition waits under {}{seen}", neutral::line(named));
        return Err(Hinted::error(what, "semel policy accept lists what waits"));
    }
    if context.output.json {
        let tools: Vec<&String> = accepted.iter().map(|(tool, _)| tool).collect();
        context.output.document(&json!({"server": server, "accepted": tools}));
    } else {
        // What was taken over may be newer than what was looked at.
        for (tool, before) in &accepted {
            context.output.data(format_args!("accepted {}/{}", neutral::line(server), neutral::line(tool)));
            if let Some(change) = change(before) {
                context.output.data(change);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    let pins = match context.existing_ledger(clock)? {
        Some(ledger) => block_on(ledger.all_pins())?,
        None => Default::default(),
    };
    let waiting: Vec<(&str, &String, &Pin)> = pins
        .iter()
        .flat_map(|(server, pins)| pins.0.iter().map(move |(tool, pin)| (name_of(server), tool, pin)))
        .filter(|(_, _, pin)| pin.offered.is_some())
        .collect();
    if context.output.json {
        let item = |(server, tool, pin): &(&str, &String, &Pin)| json!({"server": server, "tool": tool, "pinned": pin.hash, "since": pin.since.to_string(), "offered": pin.offered, "was": pin.text, "is": pin.offered_text});
        let items: Vec<_> = waiting.iter().map(item).collect();
        context.output.document(&json!({"schema_version": 1, "items": items, "next": null}));
        return Ok(ExitCode::SUCCESS);
    }
    for (server, tool, pin) in &waiting {
        let (server, tool) = (neutral::line(server), neutral::line(tool));
        let (hash, since) = (short(pin), pin.since);
        context.output.data(format_args!("{server}/{tool}  {hash}  changed; first used as it was {since}"));
        if let Some(change) = change(pin) {
            context.output.data(change);
        }
    }
    match waiting.first() {
        None => context.output.say("Every tool is as it was when it was first used."),
        Some((server, tool, pin)) => {
            let accept = format!(
                "semel policy accept {}/{} --as {}",
                neutral::line(server),
                neutral::line(tool),
                short(pin)
            );
            context.output.say(format_args!("hint: if the tool may be so: {accept}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The beginning of the hash of what is offered.
fn short(pin: &Pin) -> String {
    let hash = pin.offered.map(|offered| offered.to_string()).unwrap_or_default();
    hash.chars().take(HASH_CHARS).collect()
}

/// What changed of a definition, line by line. Of one that was pinned by an older semel only what it is now is known.
fn change(pin: &Pin) -> Option<String> {
    let is = pin.offered_text.as_deref()?;
    let was = pin.text.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(was, is);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(1).to_string();
    // The changed lines alone: whose they are stands above them.
    let lines = unified.lines().filter(|line| !line.starts_with("@@"));
    Some(lines.map(|line| format!("  {}", neutral::line(line))).collect::<Vec<_>>().join("\n"))
}
