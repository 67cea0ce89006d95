//! Listings as a client is shown them, and how a server introduces itself.

use super::decorate::{self, Decoration};
use super::era;
use super::intent;
use super::own_tools;
use super::render::LookWith;
use super::server::Server;
use super::tools::{Definition, Tools};
use crate::services::Services;
use crate::wire::members::Members;
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::judgement::recognise;
use semel_core::policy::Rule;
use semel_core::policy::rule::{Again, RuleCall, server_and_tool};
use std::sync::Arc;

/// Read tools that a doubt names, in the server's order: enough to choose from, few enough to be read.
const READS_NAMED_MAX: usize = 5;

/// A longer name is a sentence.
const PLAIN_CHARS_MAX: usize = 64;

/// The tools of the same server that may show whether a call of `tool` has happened.
pub fn look_with<'a>(
    services: &Services,
    server: &Server,
    tools: &'a Tools,
    tool: &str,
    rule: &Rule,
) -> LookWith<'a> {
    let action = server.action(tool);
    let probe = match rule.probe.as_ref().map(|probe| &probe.call) {
        Some(RuleCall::Mcp { tool, .. }) => server_and_tool(tool, &action),
        _ => None,
    };
    let probe = probe.filter(|(of, _)| *of == server.name).and_then(|(_, probe)| tools.get(probe));
    if let Some(probe) = probe.filter(|probe| is_plain(&probe.name)) {
        return LookWith::Probe(&probe.name);
    }
    if tools.get(tool).is_none() {
        return LookWith::NotKnown;
    }
    let things = recognise::things(&server.name, tool);
    let speaks_of_it =
        |other: &str| recognise::things(&server.name, other).iter().any(|thing| things.contains(thing));
    let reads = tools.iter().filter(|other| {
        is_plain(&other.name) && is_read(services, server, other) && speaks_of_it(&other.name)
    });
    LookWith::Reads(reads.take(READS_NAMED_MAX).map(|read| read.name.as_str()).collect())
}

fn is_read(services: &Services, server: &Server, definition: &Definition) -> bool {
    rule_by_name(services, server, definition).class == Class::Read
}

/// The rule of a tool, whatever its arguments.
fn rule_by_name(services: &Services, server: &Server, definition: &Definition) -> Arc<Rule> {
    let action = server.action(&definition.name);
    let none = Json::object([("args", Json::object::<&str, 0>([]))]);
    services.policy.rule_for(&intent::facts(&action, &none, server, Some(definition)))
}

/// How a server introduces itself, as the client should see it. `None`: as it came.
pub fn hello(
    services: &Services,
    server: &Server,
    method: &str,
    result: &str,
    is_shared: bool,
) -> Option<String> {
    era::learn(server, method, result);
    let changed = if services.observes() { None } else { era::with_idempotency(result) };
    match is_shared {
        true => without_unshared(changed.as_deref().unwrap_or(result)).or(changed),
        false => changed,
    }
}

/// Without the abilities that a server cannot offer to many: its log, and subscriptions.
fn without_unshared(hello: &str) -> Option<String> {
    let mut members = Members::parse(hello)?;
    let mut capabilities = Members::parse(members.get("capabilities")?)?;
    let logs = capabilities.remove("logging");
    let mut resources = capabilities.object("resources");
    let subscribes = resources.remove("subscribe");
    if subscribes {
        let resources = resources.to_string();
        capabilities.set("resources", resources);
    }
    if !logs && !subscribes {
        return None;
    }
    let capabilities = capabilities.to_string();
    members.set("capabilities", capabilities);
    Some(members.to_string())
}

/// A listing's result as the client should see it. `None`: as it came.
pub fn listing(services: &Services, server: &Server, result: &str) -> Option<String> {
    if services.observes() {
        return None;
    }
    let mut page = Tools::default();
    page.add_page(result);
    let decoration = |name: &str| {
        let rule = rule_by_name(services, server, page.get(name)?);
        let guarded = server.settings.decorate && rule.class != Class::Read;
        guarded.then_some(Decoration {
            replays: rule.class == Class::Consequential,
            again: rule.again == Again::Agent,
            dry_run: server.settings.dry_run_argument,
        })
    };
    let tools = server.known_tools().unwrap_or_default();
    let guards_any = tools.iter().any(|tool| !is_read(services, server, tool));
    let own = match server.settings.own_tools && guards_any {
        true => own_tools::definitions(services, server, &tools),
        false => Vec::new(),
    };
    decorate::listing(result, decoration, &own)
}

/// A name stands among semel's own words, and a server could write words of its own into it.
fn is_plain(name: &str) -> bool {
    name.chars().count() <= PLAIN_CHARS_MAX
        && name.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c))
}
