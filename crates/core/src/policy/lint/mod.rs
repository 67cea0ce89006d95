//! Settings that are allowed and probably not meant.

mod paths;

use super::compile::{RuleCondition, RuleEntry};
use super::diagnostic::{DiagnosticCode, Diagnostics, SourceText};
use super::file::{RuleTable, Spot};
use super::glob::Pattern;
use super::rule::{EffectWording, RuleOrigin};
use super::servers::Serve;
use super::upstreams::HttpApi;
use crate::class::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Looks at a rule that was built, with the rules before it.
pub fn rule(
    source: SourceText<'_>,
    table: &RuleTable,
    entry: &RuleEntry,
    earlier: &[RuleEntry],
    found: &mut Diagnostics,
) {
    let matched = table.pattern.as_ref().map_or(0..0, |text| text.span.clone());
    let (rule, pattern) = (&entry.rule, entry.pattern.text());
    let covered_by = |before: &&RuleEntry| match &before.when {
        None => covers(&before.pattern, pattern),
        condition => before.pattern.text() == pattern && is_same_condition(condition, &entry.when),
    };
    if let Some(before) = earlier.iter().find(covered_by) {
        let how = match before.pattern.text() == pattern {
            true if before.when.is_some() => "has the same `match` and `when`",
            true => "has the same `match` and no `when`",
            false => "matches all of it and has no `when`",
        };
        found.warning(
            source,
            matched.clone(),
            DiagnosticCode::Shadowed,
            format!("this rule never applies: an earlier one {how}"),
            match &before.rule.origin {
                RuleOrigin::File { path, line } => format!("it stands at {}:{line}", path.display()),
                RuleOrigin::Pack { name, line } => format!("it stands in pack:{name}, line {line}"),
                RuleOrigin::Default => "it is the default".to_owned(),
            },
        );
    }
    paths::check(source, table, entry, found);
    if let Some((path, name)) = pattern.strip_prefix("cli:").and_then(program_by_path) {
        found.warning(
            source,
            matched.clone(),
            DiagnosticCode::NeverMatches,
            format!("a command is called by its program's last name, so `{path}` matches none"),
            format!("such as \"cli:{name} *\""),
        );
    }
    if entry.class == Some(Class::Consequential) && rule.probe.is_none() && rule.inject.is_none() {
        found.note(
            source,
            matched.clone(),
            DiagnosticCode::Unprobed,
            "a lost answer of this consequential action stays in doubt until a person decides",
            "add [rule.probe], or `inject` if the upstream takes an idempotency key",
        );
    }
    if let (Some(inject), Some(table)) = (&rule.inject, &table.inject)
        && !inject.into.is_of(pattern)
    {
        found.warning(
            source,
            table.span.clone(),
            DiagnosticCode::WithoutEffect,
            "such an action has no place of this kind, so no key is sent",
            "commands take `flag` or `env`, models `header`, requests also `body`, `query` or `directive`",
        );
    }
    if let (Some(inject), Some(table)) = (&rule.inject, &table.inject)
        && inject.valid_for.is_none()
    {
        found.note(
            source,
            table.span.clone(),
            DiagnosticCode::KeyWithoutEnd,
            "without `valid_for` the upstream's key counts as honoured for ever",
            "say how long the upstream remembers keys, such as valid_for = \"24h\"",
        );
    }
    let idle = match entry.class {
        Some(Class::Read) => Some((
            vec![
                ("key", !rule.sorting.key.is_empty()),
                ("inject", rule.inject.is_some()),
                ("probe", rule.probe.is_some()),
                ("confirm", rule.confirm.is_some()),
                ("undo", rule.undo.is_some()),
                ("refused", rule.refused.is_some()),
                ("again", table.again.is_some()),
                ("rulings", table.rulings.is_some()),
                ("failure", table.failure.is_some()),
                ("budget", table.budget.is_some()),
                ("window", table.window.is_some()),
            ],
            ("reads pass through", "leave it out, or choose another class"),
        )),
        _ if pattern.starts_with("fn:") => Some((
            vec![
                ("refused", rule.refused.is_some()),
                ("refused_exit", !rule.refused_exit.is_empty()),
                ("effect", matches!(rule.effect, Some(EffectWording::Expression(_)))),
            ],
            (
                "a client that calls a tool itself says what became of it",
                "leave it out, and say it at settle",
            ),
        )),
        _ => None,
    };
    if let Some((settings, (why, help))) = idle {
        let given = settings.iter().filter(|(_, given)| *given).map(|(name, _)| format!("`{name}`"));
        let given: Vec<String> = given.collect();
        if !given.is_empty() {
            let message = format!("{why}, so {} does nothing here", given.join(", "));
            found.warning(source, matched, DiagnosticCode::WithoutEffect, message, help);
        }
    }
}

/// Looks at an address to listen on, once it is known what all files say together.
pub fn listen(source: SourceText<'_>, span: Range<usize>, serve: &Serve, found: &mut Diagnostics) {
    let Some(address) = serve.listen.filter(|address| !address.ip().is_loopback()) else { return };
    let (what, help) = match (serve.allow_remote, serve.require_token) {
        (Some(true), Some(false)) => {
            ("`semel serve` refuses it without tokens", "leave out require_token = false under [serve]")
        }
        (Some(true), _) => return,
        _ => (
            "`semel serve` refuses it without `allow_remote`",
            "if it is meant: allow_remote = true under [serve]",
        ),
    };
    let message = format!("{address} can be reached by other machines, and {what}");
    found.warning(source, span, DiagnosticCode::BadServer, message, help);
}

/// Looks at where a rule about requests says that they go, once all upstreams are known. A place that no upstream has
/// is guarded by nothing.
pub fn place(
    source: SourceText<'_>,
    pattern: &Spot<String>,
    upstreams: &BTreeMap<String, HttpApi>,
    found: &mut Diagnostics,
) {
    let Some((_, place)) = pattern.value.strip_prefix("http:").and_then(|rest| rest.split_once(' ')) else {
        return;
    };
    let plain = |text: &str| !text.contains(['*', '?', '[', '{']);
    let mut never = |what: String, help: String| {
        found.warning(source, pattern.span.clone(), DiagnosticCode::NeverMatches, what, help);
    };
    let known = || {
        let names: BTreeSet<String> = upstreams.values().map(beginning).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let such_as = || match upstreams.values().next() {
        Some(api) => format!("such as \"http:POST {}/…\"", beginning(api)),
        None => "such as \"http:POST api.example.com/…\"".to_owned(),
    };
    if place.contains("://") || place.starts_with('/') {
        return never("no request is called so: a host and its path are meant".into(), such_as());
    }
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if upstreams.is_empty() || !plain(host) {
        return;
    }
    let mut there = upstreams.values().filter(|api| api.service == host).peekable();
    if there.peek().is_none() {
        return never(
            format!("no upstream is at `{host}`, so this rule guards nothing"),
            format!("requests of the upstreams begin with {}", known()),
        );
    }
    // As far as it is written out.
    let fixed = &path[..path.find(['*', '?', '[', '{']).unwrap_or(path.len())];
    let fits = |api: &HttpApi| {
        let base = api.base();
        fixed.starts_with(base) || base.starts_with(fixed)
    };
    if !there.any(fits) {
        never(
            "its upstream has no such path, so this rule guards nothing".into(),
            format!("requests of the upstreams begin with {}", known()),
        );
    }
}

fn beginning(api: &HttpApi) -> String {
    format!("{}{}", api.service, api.base())
}

/// Whether a pattern matches whatever another one does, as far as that is plain to see: one that begins like it and
/// then lets anything follow.
fn covers(pattern: &Pattern, other: &str) -> bool {
    let begins_it = pattern
        .text()
        .strip_suffix('*')
        .is_some_and(|beginning| !beginning.contains(['*', '?', '[', '{']) && other.starts_with(beginning));
    begins_it || pattern.text() == other
}

fn is_same_condition(one: &Option<RuleCondition>, other: &Option<RuleCondition>) -> bool {
    match (one, other) {
        (Some(RuleCondition::Equal(one)), Some(RuleCondition::Equal(other))) => one == other,
        (Some(RuleCondition::Expression(one)), Some(RuleCondition::Expression(other))) => {
            one.source() == other.source()
        }
        _ => false,
    }
}

/// The path and the last name of a program that a pattern writes with a path.
fn program_by_path(command: &str) -> Option<(&str, &str)> {
    let program = command.split(' ').next().unwrap_or_default();
    let (_, name) = program.rsplit_once('/')?;
    (!name.is_empty() && !program.contains(['*', '?', '[', '{'])).then_some((program, name))
}
