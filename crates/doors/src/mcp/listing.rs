//! Listings as a client is shown them, and how a server introduces itself.

use super::decorate::{self, Decoration};
use super::door::Door;
use super::era;
use super::intent;
use super::own_tools;
use super::render::LookWith;
use super::server::Server;
use super::tools::{Definition, Tools};
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::policy::Rule;
use semel_core::policy::rule::{Again, RuleCall, server_and_tool};
use std::sync::Arc;

/// Read tools that a doubt names, in the server's order: enough to choose from, few enough to be read.
const READS_NAMED_MAX: usize = 5;

/// A longer name is a sentence.
const PLAIN_CHARS_MAX: usize = 64;

impl Door {
    /// The tools of the same server that may show whether a call of `tool` has happened.
    pub(super) fn look_with<'a>(
        &self,
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
        let reads = tools.iter().filter(|other| is_plain(&other.name) && self.is_read(server, other));
        LookWith::Reads(reads.take(READS_NAMED_MAX).map(|read| read.name.as_str()).collect())
    }

    fn is_read(&self, server: &Server, definition: &Definition) -> bool {
        self.rule_by_name(server, definition).class == Class::Read
    }

    /// The rule of a tool, whatever its arguments.
    pub fn rule_by_name(&self, server: &Server, definition: &Definition) -> Arc<Rule> {
        let action = server.action(&definition.name);
        let none = Json::object([("args", Json::object::<&str, 0>([]))]);
        self.services.policy.rule_for(&intent::facts(&action, &none, server, Some(definition)))
    }

    /// How a server introduces itself, as the client should see it. `None`: as it came.
    pub fn hello(&self, server: &Server, method: &str, result: &str) -> Option<String> {
        era::hear(server, method, result);
        if self.services.observes() { None } else { era::with_idempotency(result) }
    }

    /// A listing's result as the client should see it. `None`: as it came.
    pub fn listing(&self, server: &Server, result: &str) -> Option<String> {
        if self.services.observes() {
            return None;
        }
        let mut page = Tools::default();
        page.add_page(result);
        let decoration = |name: &str| {
            let rule = self.rule_by_name(server, page.get(name)?);
            let guarded = server.settings.decorate && rule.class != Class::Read;
            guarded.then_some(Decoration {
                replays: rule.class == Class::Consequential,
                again: rule.again == Again::Agent,
                dry_run: server.settings.dry_run_argument,
            })
        };
        let tools = server.known_tools().unwrap_or_default();
        let guards_any = tools.iter().any(|tool| !self.is_read(server, tool));
        let own = match server.settings.own_tools && guards_any {
            true => own_tools::definitions(self, server, &tools),
            false => Vec::new(),
        };
        decorate::listing(result, decoration, &own)
    }
}

/// A name stands among semel's own words, and a server could write words of its own into it.
fn is_plain(name: &str) -> bool {
    name.chars().count() <= PLAIN_CHARS_MAX
        && name.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c))
}
