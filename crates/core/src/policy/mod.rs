//! The policy: which rule holds for an action, and why.
//!
//! Texts come in as arguments; nothing here reads a file. A policy either loads whole or not at all.

pub mod call_arguments;
pub mod diagnostic;
pub mod duration;
pub mod example;
pub mod explain;
pub mod expression;
pub mod file;
pub mod glob;
pub mod graphql;
pub mod nearest;
pub mod pack;
pub mod prices;
pub mod retention;
pub mod rule;
pub mod schema;
pub mod servers;
pub mod template;
pub mod undo;
pub mod upstreams;

mod compile;
mod cost;
mod lint;
mod read;
mod select;

pub use crate::judgement::recognise::Annotations;
pub use diagnostic::Diagnostics;
pub use file::{File, Mode};
pub use retention::Retention;
pub use rule::Rule;

use crate::class::Class;
use crate::json::Json;
use compile::{Choices, RuleEntry};
use diagnostic::SourceText;
use rule::{RuleOrigin, WINDOW_NAMED};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A compiled policy. Its default is what holds without any file.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub mode: Mode,
    pub retention: Retention,
    /// Findings that did not keep the policy from loading.
    pub warnings: Diagnostics,
    /// HTTP APIs by name, of the first file that has each.
    pub upstreams: BTreeMap<String, upstreams::HttpApi>,
    /// MCP servers by name, of the first file that has each.
    pub mcp: BTreeMap<String, servers::McpServer>,
    pub serve: servers::Serve,
    /// Of the first file that has it.
    pub notify: Option<servers::Notify>,
    pub prices: prices::Prices,
    /// Comparisons of `semel reconcile` by name, of the first file that has each.
    pub reconcile: BTreeMap<String, file::ReconcileTable>,
    /// In the order in which they are tried: local files first, then packs.
    rules: Vec<RuleEntry>,
    defaults: Choices,
}

/// The facts about a call that select its rule.
#[derive(Debug, Clone, Copy)]
pub struct ActionFacts<'a> {
    /// The full name, such as `mcp:github/create_issue` or `cli:kubectl`.
    pub action: &'a str,
    /// An object with the names that paths begin with: `args` for tools, `argv` (program first) for commands.
    pub arguments: &'a Json,
    pub annotations: Annotations,
    /// Whether the operator trusts the annotations of this upstream. `readOnlyHint` and `idempotentHint` take
    /// protection away, so an upstream that is not trusted cannot use them.
    pub trusted: bool,
    /// The operator's choice for this one call (`--class`).
    pub class_override: Option<Class>,
}

impl<'a> ActionFacts<'a> {
    /// A call about which no more is known than its name and arguments.
    pub fn new(action: &'a str, arguments: &'a Json) -> ActionFacts<'a> {
        ActionFacts {
            action,
            arguments,
            annotations: Annotations::default(),
            trusted: false,
            class_override: None,
        }
    }
}

/// One file, read by someone else.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    /// As findings should name it.
    pub path: PathBuf,
    pub text: String,
}

impl Policy {
    /// Why a call must not have this class. The policy is the operator's, and a caller may ask for more
    /// protection than it gives, not for less; without a rule only a strict policy has said anything of it.
    pub fn too_weak(&self, class: Class, operators: &Rule) -> Option<String> {
        let who = match &operators.origin {
            RuleOrigin::Default if self.mode == Mode::Strict => "the strict mode".to_owned(),
            RuleOrigin::Default => return None,
            origin => origin.to_string(),
        };
        let says = operators.class;
        class.is_weaker_than(says).then(|| format!("{class} is weaker than {who}, which says {says}"))
    }

    /// Compiles files in order of precedence: what an earlier one says wins, and its rules are tried first.
    pub fn load(files: Vec<PolicyFile>) -> Result<Policy, Diagnostics> {
        let mut found = Diagnostics::default();
        let mut policy = Policy::default();
        let mut mode = None;
        let mut retention = retention::RetentionChoices::default();
        let mut packs: Vec<&'static pack::Pack> = Vec::new();
        let mut listens = None;
        let mut places = Vec::new();
        let mut read_files = Vec::new();
        for PolicyFile { path, text } in &files {
            let source = SourceText { path, text };
            let read::ParsedFile { file, whole } = read::read(source, &mut found);
            let input = compile::Input { source, whole };
            policy.defaults = policy.defaults.or(&compile::defaults(input, &file.defaults, &mut found));
            read_files.push((input, file));
        }
        for (input @ compile::Input { source, whole }, file) in read_files {
            compile::version(source, &file, &mut found);
            mode = mode.or(file.mode);
            retention = retention.or(compile::retention(input, &file.retention, &mut found));
            for include in &file.include {
                if let Some(pack) = pack::find(source, include, &mut found)
                    && !packs.iter().any(|known| known.name == pack.name)
                {
                    packs.push(pack);
                }
            }
            for table in &file.rule {
                let origin = rule::RuleOrigin::File {
                    path: source.path.to_owned(),
                    line: source.line_of(table.span.start),
                };
                if let Some(rule) = compile::rule(input, origin, table, &policy.defaults, &mut found) {
                    if whole {
                        lint::rule(source, &table.value, &rule, &policy.rules, &mut found);
                        places.extend(table.value.pattern.clone().map(|pattern| (source, pattern)));
                    }
                    policy.rules.push(rule);
                }
            }
            for (name, server) in compile::mcp_servers(input, &file.mcp, &mut found) {
                policy.mcp.entry(name).or_insert(server);
            }
            let notify = compile::notify(input, &file, &mut found);
            policy.notify = policy.notify.or(notify);
            policy.serve = policy.serve.or(compile::serve(input, &file.serve, &mut found));
            listens = listens.or(file.serve.listen.as_ref().map(|listen| (source, listen.span.clone())));
            for (model, price) in compile::prices(input, &file.prices, &mut found) {
                policy.prices.0.entry(model).or_insert(price);
            }
            for (name, table) in &file.reconcile.0 {
                policy.reconcile.entry(name.value.clone()).or_insert_with(|| table.clone());
            }
            for (name, api) in compile::upstreams(input, &file.upstream, &mut found) {
                policy.upstreams.entry(name).or_insert(api);
            }
            if let Some(server) = &file.server {
                let what = "only a pack says by what its servers are recognised";
                let help = "[mcp.NAME] is a server of your own";
                found.error(source, server.span.clone(), diagnostic::DiagnosticCode::BadServer, what, help);
            }
            if let Some(preset) = &file.preset {
                let what = "only a pack says what an API is like";
                let help = "[upstream.NAME] has the same keys, and `preset` names a pack";
                found.error(source, preset.span.clone(), diagnostic::DiagnosticCode::BadServer, what, help);
            }
        }
        if let Some((source, span)) = listens {
            lint::listen(source, span, &policy.serve, &mut found);
        }
        for (source, pattern) in &places {
            lint::place(*source, pattern, &policy.upstreams, &mut found);
        }
        // An API that is known brings its rules along.
        for pack in policy.upstreams.values().filter_map(|api| pack::named(api.preset?)) {
            if !packs.iter().any(|known| known.name == pack.name) {
                packs.push(pack);
            }
        }
        let roots = policy.roots();
        for entry in packs.into_iter().flat_map(|pack| pack.rules(&policy.defaults, &mut found)) {
            policy.rules.extend(roots.iter().filter_map(|(service, prefix)| entry.below(service, prefix)));
            policy.rules.push(entry);
        }
        policy.mode = mode.unwrap_or_default();
        policy.retention = retention.complete(policy.longest_window());
        let paths: Vec<&Path> = files.iter().map(|file| file.path.as_path()).collect();
        let found = found.sorted(&paths);
        if found.has_errors() {
            return Err(found);
        }
        policy.warnings = found;
        Ok(policy)
    }

    /// The paths below which APIs may have their root. A pack speaks of an API from the API's own root, and an upstream
    /// may have that root below a path: a gateway at `https://gateway/stripe` has `/stripe/v1/charges` where the pack
    /// says `/v1/charges`. A url may also end with the first parts of the API's own paths, so that any number of its
    /// segments may be the gateway's. The longest come first: a pattern that begins with a wildcard matches below
    /// several, and knows the API's root best without the path before it.
    fn roots(&self) -> Vec<(String, String)> {
        let with_base = self.upstreams.values().filter(|api| !api.base().is_empty());
        let roots = with_base.flat_map(|api| {
            let base = api.base();
            let slashes = base.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
            slashes.chain([base.len()]).map(|end| (api.service.clone(), base[..end].to_owned()))
        });
        let mut roots: Vec<(String, String)> = roots.collect();
        roots.sort_by(|one, other| other.1.len().cmp(&one.1.len()).then_with(|| one.cmp(other)));
        roots.dedup();
        roots
    }

    fn longest_window(&self) -> Duration {
        let rules = self.rules.iter().filter_map(|entry| entry.choices.window);
        let keys = self.upstreams.values().filter_map(|api| api.keys.life);
        // The next effect of a record that was forgotten would come under the key of the first.
        let sent = self.rules.iter().filter_map(|entry| entry.rule.inject.as_ref()?.valid_for);
        rules.chain(keys).chain(sent).chain(self.defaults.window).max().unwrap_or_default().max(WINDOW_NAMED)
    }

    /// The effective rule. There always is one.
    pub fn rule_for(&self, facts: &ActionFacts<'_>) -> Arc<Rule> {
        self.select(facts, &mut |_, _| {})
    }

    /// Whether any rule may be about an action whose name begins so. `false` spares a door the asking.
    pub fn may_speak_of(&self, beginning: &str) -> bool {
        self.rules.iter().any(|rule| rule.pattern.may_match(beginning))
    }

    /// The MCP servers that probes and confirms name: a door in front of another one must be able to reach them.
    pub fn asked_servers(&self) -> BTreeSet<&str> {
        let probes = self.rules.iter().filter_map(|entry| Some(&entry.rule.probe.as_ref()?.call));
        let confirms = self.rules.iter().filter_map(|entry| Some(&entry.rule.confirm.as_ref()?.call));
        let servers = probes.chain(confirms).filter_map(|call| match call {
            rule::RuleCall::Mcp { tool, .. } => tool.split_once('/').map(|(server, _)| server),
            _ => None,
        });
        servers.filter(|server| *server != rule::SAME_SERVER).collect()
    }

    /// Whether any rule matches by expression, and so whether asking may start the expression engine.
    pub fn uses_expressions(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.when, Some(compile::RuleCondition::Expression(_))))
    }
}

#[cfg(test)]
mod tests;
