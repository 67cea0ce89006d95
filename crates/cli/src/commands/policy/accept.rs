//! `semel policy accept`: tools whose definition changed since their first use, and taking the change over.

use crate::args::PolicyAccept;
use crate::commands::Context;
use crate::neutral;
use crate::output::Hinted;
use semel_core::identity::quoted_for_a_shell;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::pins::{Pin, name_of};
use serde_json::json;
use similar::TextDiff;
use std::process::ExitCode;

/// As much of a hash as tells two definitions apart.
const HASH_CHARS: usize = 12;

pub fn run(context: &Context, args: &PolicyAccept) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let named = args.tool.as_deref().map(Named::parse);
    match (named, args.r#as.as_deref()) {
        (Some(named), Some(seen)) => accept(context, named, seen, &clock),
        (Some(named), None) => show(context, named, &clock),
        (None, _) => list(context, &clock),
    }
}

/// What somebody wants to accept: one tool of a server, or all of them.
#[derive(Clone, Copy)]
struct Named<'a> {
    text: &'a str,
    server: &'a str,
    tool: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn parse(text: &'a str) -> Named<'a> {
        let text = text.strip_prefix("mcp:").unwrap_or(text);
        match text.split_once('/') {
            Some((server, tool)) => Named { text, server, tool: Some(tool) },
            None => Named { text, server: text, tool: None },
        }
    }

    fn nothing_waits(self, seen: &str) -> anyhow::Error {
        let what = format!("no changed definition waits under {}{seen}", neutral::line(self.text));
        Hinted::error(what, "semel policy accept lists what waits")
    }
}

fn accept(context: &Context, named: Named<'_>, seen: &str, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    if seen.len() < HASH_CHARS {
        return Err(Hinted::error(
            format!("--as takes {HASH_CHARS} characters of a hash or more"),
            "semel policy accept",
        ));
    }
    let Named { server, tool, .. } = named;
    let accepted = match context.existing_ledger(clock)? {
        Some(ledger) => block_on(ledger.accept_pins(server, tool, seen, clock.now()))?,
        None => Vec::new(),
    };
    if accepted.is_empty() {
        return Err(named.nothing_waits(&format!(" as {}", neutral::line(seen))));
    }
    if context.output.json {
        let tools: Vec<&String> = accepted.iter().map(|(tool, _)| tool).collect();
        context.output.document(&json!({"server": server, "accepted": tools}));
    } else {
        for (tool, before) in &accepted {
            context.output.data(format_args!("accepted {}/{}", neutral::line(server), neutral::line(tool)));
            if let Some(change) = change(before) {
                context.output.data(change);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Nobody has seen yet what would be taken over, so it is shown, and nothing is done.
fn show(context: &Context, named: Named<'_>, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    let mut waiting = waiting(context, clock)?;
    waiting.retain(|one| one.server == named.server && named.tool.is_none_or(|tool| tool == one.tool));
    if waiting.is_empty() {
        return Err(named.nothing_waits(""));
    }
    give(context, &waiting);
    context.output.warn("Nothing was accepted. If the tool may be so:");
    for one in &waiting {
        context.output.warn(format_args!("  {}", one.accept()));
    }
    Ok(ExitCode::from(crate::EXIT_FAILED))
}

fn list(context: &Context, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    let waiting = waiting(context, clock)?;
    give(context, &waiting);
    match waiting.first() {
        _ if context.output.json => {}
        None => context.output.say("Every tool is as it was when it was first used."),
        Some(first) => context.output.say(format_args!("hint: if the tool may be so: {}", first.accept())),
    }
    Ok(ExitCode::SUCCESS)
}

/// A definition that nobody has accepted.
struct Waiting {
    server: String,
    tool: String,
    pin: Pin,
}

impl Waiting {
    /// What takes over this definition and no other. A server chose the name of its tool, and people paste commands.
    fn accept(&self) -> String {
        let tool = neutral::line(&format!("{}/{}", self.server, self.tool));
        format!("semel policy accept {} --as {}", quoted_for_a_shell(&tool), short(&self.pin))
    }
}

fn waiting(context: &Context, clock: &SystemClock) -> anyhow::Result<Vec<Waiting>> {
    let pins = match context.existing_ledger(clock)? {
        Some(ledger) => block_on(ledger.all_pins())?,
        None => Default::default(),
    };
    let all = pins.into_iter().flat_map(|(server, pins)| {
        let server = name_of(&server).to_owned();
        pins.0.into_iter().map(move |(tool, pin)| Waiting { server: server.clone(), tool, pin })
    });
    Ok(all.filter(|one| one.pin.offered.is_some()).collect())
}

fn give(context: &Context, waiting: &[Waiting]) {
    if context.output.json {
        let item = |Waiting { server, tool, pin }: &Waiting| json!({"server": server, "tool": tool, "pinned": pin.hash, "since": pin.since.to_string(), "offered": pin.offered, "was": pin.text, "is": pin.offered_text});
        let items: Vec<_> = waiting.iter().map(item).collect();
        context.output.document(&json!({"schema_version": 1, "items": items, "next": null}));
        return;
    }
    for Waiting { server, tool, pin } in waiting {
        let (server, tool) = (neutral::line(server), neutral::line(tool));
        let (hash, since) = (short(pin), pin.since);
        context.output.data(format_args!("{server}/{tool}  {hash}  changed; first used as it was {since}"));
        if let Some(change) = change(pin) {
            context.output.data(change);
        }
    }
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
