//! What a client is told of a server and its tools.

use super::decorate::{self, Decoration};
use super::door::Door;
use super::era;
use super::own_tools;
use super::server::Server;
use super::tools::{Definition, Tools};
use semel_core::class::Class;
use semel_core::json::Json;
use semel_core::policy::rule::Again;
use semel_core::policy::{ActionFacts, Rule};

impl Door {
    /// The read-only tool of the same server that most likely shows whether `tool` has happened.
    pub(super) fn to_check<'a>(&self, server: &Server, tools: &'a Tools, tool: &str) -> Option<&'a str> {
        tools.to_check(tool, |other| self.is_read(server, other))
    }

    fn is_read(&self, server: &Server, definition: &Definition) -> bool {
        self.rule_by_name(server, definition).class == Class::Read
    }

    /// The rule of a tool, whatever its arguments.
    pub fn rule_by_name(&self, server: &Server, definition: &Definition) -> Rule {
        let action = server.action(&definition.name);
        let none = Json::object([("args", Json::object::<&str, 0>([]))]);
        self.hall.policy.rule_for(&ActionFacts {
            annotations: definition.annotations,
            trusted: server.settings.trusted,
            ..ActionFacts::new(&action, &none)
        })
    }

    /// How a server introduces itself, as the client should see it. `None`: as it came.
    pub fn hello(&self, server: &Server, method: &str, result: &str) -> Option<String> {
        era::hear(server, method, result);
        if self.hall.observes() { None } else { era::with_idempotency(result) }
    }

    /// A listing's result as the client should see it. `None`: as it came.
    pub fn listing(&self, server: &Server, result: &str) -> Option<String> {
        if self.hall.observes() {
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
