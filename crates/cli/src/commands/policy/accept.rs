//! `semel policy accept`: tools whose definition changed since their first use, and taking the change over.

use super::change;
use crate::args::PolicyAccept;
use crate::context::Context;
use crate::neutral;
use crate::open::TENANT;
use crate::operator::Operator;
use crate::output::Hinted;
use semel_core::identity::quoted_for_a_shell;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::pins::{Pin, name_of};
use serde_json::json;
use std::process::ExitCode;

/// As much of a hash as tells two definitions apart.
const HASH_CHARS: usize = 12;

pub fn run(context: &Context, args: &PolicyAccept) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::start();
    let named = args.tool.as_deref().map(Named::parse);
    match (named, args.r#as.as_deref()) {
        (Some(named), Some(seen)) => {
            let operator = Operator::find(context, args.operator.token.as_deref())?;
            accept(context, &operator, named, seen, &clock)
        }
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

    fn is(self, one: &Waiting) -> bool {
        one.server == self.server && self.tool.is_none_or(|tool| tool == one.tool)
    }

    fn nothing_waits(self, seen: &str) -> anyhow::Error {
        let what = format!("no changed definition waits under {}{seen}", neutral::line(self.text));
        Hinted::error(what, "semel policy accept lists what waits")
    }
}

fn accept(
    context: &Context,
    operator: &Operator<'_>,
    named: Named<'_>,
    seen: &str,
    clock: &SystemClock,
) -> anyhow::Result<ExitCode> {
    if seen.len() < HASH_CHARS {
        return Err(Hinted::error(
            format!("--as takes {HASH_CHARS} characters of a hash or more"),
            "semel policy accept",
        ));
    }
    let Named { server, tool, .. } = named;
    let accepted = match context.existing_ledger(clock)? {
        Some(ledger) => {
            let what = format!("Accept {} as {}?", neutral::line(named.text), neutral::line(seen));
            let by = operator.confirm(&ledger, TENANT, what)?;
            block_on(ledger.accept_pins(server, tool, seen, &by, clock.now()))?
        }
        None => Vec::new(),
    };
    if accepted.is_empty() {
        let waiting = waiting(context, clock)?;
        let unseen = waiting.iter().find(|one| named.is(one) && hash(&one.pin).starts_with(seen));
        return Err(match unseen.and_then(Waiting::obstacle) {
            Some(Hindered { what, instead }) => Hinted::error(what, instead),
            None => named.nothing_waits(&format!(" as {}", neutral::line(seen))),
        });
    }
    if context.output.json {
        let tools: Vec<&String> = accepted.iter().map(|(tool, _)| tool).collect();
        context.output.document(&json!({"server": server, "accepted": tools}));
    } else {
        for (tool, before) in &accepted {
            context.output.data(format_args!("accepted {}/{}", neutral::line(server), neutral::line(tool)));
            context.output.data(change::shown(before));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Nobody has seen yet what would be taken over, so it is shown, and nothing is done.
fn show(context: &Context, named: Named<'_>, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    let mut waiting = waiting(context, clock)?;
    waiting.retain(|one| named.is(one));
    if waiting.is_empty() {
        return Err(named.nothing_waits(""));
    }
    give(context, &waiting);
    let (hindered, free): (Vec<_>, Vec<_>) = waiting.iter().partition(|one| one.obstacle().is_some());
    context.output.warn(match free.is_empty() {
        true => "Nothing was accepted.",
        false => "Nothing was accepted. If the tool may be so:",
    });
    for one in free {
        context.output.warn(format_args!("  {}", one.accept()));
    }
    for Hindered { what, instead } in hindered.into_iter().filter_map(Waiting::obstacle) {
        context.output.warn(format_args!("{what}\nhint: {instead}"));
    }
    Ok(ExitCode::from(crate::EXIT_FAILED))
}

fn list(context: &Context, clock: &SystemClock) -> anyhow::Result<ExitCode> {
    let waiting = waiting(context, clock)?;
    give(context, &waiting);
    if context.output.json {
        return Ok(ExitCode::SUCCESS);
    }
    if waiting.is_empty() {
        context.output.say("Every tool is as it was when it was first used.");
    }
    for Hindered { what, instead } in waiting.iter().filter_map(Waiting::obstacle) {
        context.output.say(format_args!("{what}\nhint: {instead}"));
    }
    if let Some(first) = waiting.iter().find(|one| one.obstacle().is_none()) {
        context.output.say(format_args!("hint: if the tool may be so: {}", first.accept()));
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

    /// Why it cannot be accepted: not all of it can be shown.
    fn obstacle(&self) -> Option<Hindered> {
        if self.pin.can_be_accepted() {
            return None;
        }
        let server = neutral::line(&self.server);
        let named = format!("{server}/{}", neutral::line(&self.tool));
        let kept = self.pin.is().map_or(0, |is| is.text.len());
        Some(match self.pin.is().and_then(|is| is.bytes) {
            Some(bytes) => Hindered {
                what: format!(
                    "{named} cannot be accepted: its definition has {bytes} bytes, and only the first {kept} are kept"
                ),
                instead: format!(
                    "have the definition shortened where {server} comes from, or let its tools change: \
                     without --pin, without `pin` in [mcp.{server}], and not in strict mode"
                ),
            },
            None => Hindered {
                what: format!(
                    "{named} cannot be accepted yet: an older semel kept only the beginning of its definition"
                ),
                instead: format!(
                    "have a client list the tools of {server} again, then semel policy accept shows all of it"
                ),
            },
        })
    }
}

struct Hindered {
    what: String,
    instead: String,
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
        let item = |Waiting { server, tool, pin }: &Waiting| json!({"server": server, "tool": tool, "pinned": pin.hash, "since": pin.since.to_string(), "offered": pin.offered, "was": pin.text, "is": pin.offered_text, "can_be_accepted": pin.can_be_accepted()});
        let items: Vec<_> = waiting.iter().map(item).collect();
        context.output.document(&json!({"schema_version": 1, "items": items, "next": null}));
        return;
    }
    for Waiting { server, tool, pin } in waiting {
        let (server, tool) = (neutral::line(server), neutral::line(tool));
        let (hash, since) = (short(pin), pin.since);
        context.output.data(format_args!("{server}/{tool}  {hash}  changed; first used as it was {since}"));
        context.output.data(change::shown(pin));
    }
}

/// The beginning of the hash of what is offered.
fn short(pin: &Pin) -> String {
    hash(pin).chars().take(HASH_CHARS).collect()
}

fn hash(pin: &Pin) -> String {
    pin.offered.map(|offered| offered.to_string()).unwrap_or_default()
}
