//! The paths of a rule: whether each can exist at the rule's door, and whether its key tells calls apart.

use crate::json::{Path, PathStep};
use crate::judgement::arguments::{self, ArgumentKind};
use crate::policy::compile::{ARGUMENTS, RuleCondition, RuleEntry};
use crate::policy::diagnostic::{DiagnosticCode, Diagnostics, SourceText};
use crate::policy::expression::Expression;
use crate::policy::file::{RuleTable, Spot, WhenCondition};
use crate::policy::nearest::nearest;
use crate::policy::rule::{Rule, RuleCall};
use crate::policy::template::Template;
use std::collections::BTreeSet;
use std::ops::Range;

/// The roots of a door's calls: section 1 of `spec/intent-key.md`.
struct DoorRoots {
    /// How its actions begin.
    prefix: &'static str,
    call: &'static str,
    roots: &'static [&'static str],
    /// The root that most arguments stand below.
    main: &'static str,
}

const REQUEST: &[&str] = &["path", "path_parameters", "query", "body", "document", "part_types", "headers"];

const DOORS: [DoorRoots; 5] = [
    DoorRoots { prefix: "cli:", call: "command", roots: &["argv", "cwd", "stdin"], main: "argv" },
    DoorRoots { prefix: "mcp:", call: "tool of an MCP server", roots: &["args"], main: "args" },
    DoorRoots { prefix: "fn:", call: "function", roots: &["args"], main: "args" },
    DoorRoots {
        prefix: "llm:",
        call: "call of a model",
        roots: &["args", "path", "query", "headers"],
        main: "args",
    },
    DoorRoots { prefix: "http:", call: "request", roots: REQUEST, main: "body" },
];

/// A pattern that does not say which door it is for.
const ANY_DOOR: DoorRoots = DoorRoots { prefix: "", call: "call", roots: ARGUMENTS, main: "args" };

/// Looks at every path, expression and template of a rule.
pub fn check(source: SourceText<'_>, table: &RuleTable, entry: &RuleEntry, found: &mut Diagnostics) {
    let pattern = entry.pattern.text();
    let door = DOORS.into_iter().find(|door| pattern.starts_with(door.prefix)).unwrap_or(ANY_DOOR);
    for text in &table.key {
        volatile(source, text, found);
    }
    constant_key(source, table, entry, found);
    for text in path_texts(table) {
        if let Ok(path) = Path::parse(&text.value) {
            door.check_path(source, &path, text.span.clone(), found);
        }
    }
    for (span, expression) in expressions(table, entry) {
        door.check_expression(source, expression, span, found);
    }
    for (span, call) in calls(table, &entry.rule) {
        // An undo is filled in from the answer too.
        let of_call = |path: &&Path| matches!(path.steps().first(), Some(PathStep::Member(root)) if ARGUMENTS.contains(&root.as_str()));
        for path in call.templates().into_iter().flat_map(Template::places).filter(of_call) {
            door.check_path(source, path, span.clone(), found);
        }
    }
}

fn path_texts(table: &RuleTable) -> impl Iterator<Item = &Spot<String>> {
    let lists = [&table.key, &table.content, &table.volatile].into_iter().flatten();
    // A part of an answer can be a secret too.
    let secret = table.secret.iter().filter(|text| !text.value.starts_with("reply"));
    let normalized = table.normalize.0.iter().map(|(path, _)| path);
    let compared = match table.when.as_ref().map(|when| &when.value) {
        Some(WhenCondition::Equal(entries)) => entries.0.as_slice(),
        _ => &[],
    };
    let compared = compared.iter().map(|(path, _)| path);
    lists.chain(secret).chain(normalized).chain(compared).chain(&table.serialize_by)
}

fn expressions<'r>(table: &RuleTable, entry: &'r RuleEntry) -> Vec<(Range<usize>, &'r Expression)> {
    let (probe, rule_probe) = (table.probe.as_ref().map(|it| &it.value), entry.rule.probe.as_ref());
    let when = match &entry.when {
        Some(RuleCondition::Expression(expression)) => Some(expression),
        _ => None,
    };
    let places = [
        (table.when.as_ref().map(|it| &it.span), when),
        (probe.and_then(|it| Some(&it.found.as_ref()?.span)), rule_probe.and_then(|it| it.found.as_ref())),
        (probe.and_then(|it| Some(&it.reply.as_ref()?.span)), rule_probe.and_then(|it| it.reply.as_ref())),
        (table.confirm.as_ref().map(|it| &it.span), entry.rule.confirm.as_ref().map(|it| &it.ok)),
    ];
    places.into_iter().filter_map(|(span, expression)| Some((span?.clone(), expression?))).collect()
}

fn calls<'r>(table: &RuleTable, rule: &'r Rule) -> Vec<(Range<usize>, &'r RuleCall)> {
    let places = [
        (table.probe.as_ref().map(|it| &it.span), rule.probe.as_ref().map(|it| &it.call)),
        (table.confirm.as_ref().map(|it| &it.span), rule.confirm.as_ref().map(|it| &it.call)),
        (table.undo.as_ref().map(|it| &it.span), rule.undo.as_ref()),
    ];
    places.into_iter().filter_map(|(span, call)| Some((span?.clone(), call?))).collect()
}

impl DoorRoots {
    /// A first name that no call of this door has is most likely misspelt; an error would forbid doors to come.
    fn check_path(&self, source: SourceText<'_>, path: &Path, span: Range<usize>, found: &mut Diagnostics) {
        let Some(PathStep::Member(root)) = path.steps().first() else { return };
        if self.roots.contains(&root.as_str()) {
            return;
        }
        let help = match (nearest(root, self.roots.iter().copied()), path.to_string()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) if self.main == "argv" => format!("there are: {}", self.roots.join(", ")),
            (None, text) if ARGUMENTS.contains(&root.as_str()) => {
                format!("write `{}{}`", self.main, &text[root.len().min(text.len())..])
            }
            (None, text) => format!("write `{}.{text}`", self.main),
        };
        self.warn(source, root, span, help, found);
    }

    fn check_expression(
        &self,
        source: SourceText<'_>,
        expression: &Expression,
        span: Range<usize>,
        found: &mut Diagnostics,
    ) {
        let elsewhere =
            |name: &&str| ARGUMENTS.contains(name) && !self.roots.contains(name) && *name != "action";
        let names: BTreeSet<&str> = expression.variables().filter(elsewhere).collect();
        for name in names {
            self.warn(source, name, span.clone(), format!("there are: {}", self.roots.join(", ")), found);
        }
    }

    fn warn(
        &self,
        source: SourceText<'_>,
        root: &str,
        span: Range<usize>,
        help: String,
        found: &mut Diagnostics,
    ) {
        let message = format!("no {} has `{root}`, so this finds nothing", self.call);
        found.warning(source, span, DiagnosticCode::UnknownRoot, message, help);
    }
}

/// A key field that carries a clock or a random number.
fn volatile(source: SourceText<'_>, text: &Spot<String>, found: &mut Diagnostics) {
    const MORE: [&str; 7] = ["time", "now", "call_id", "random", "seed", "attempt", "retry_count"];
    let Ok(path) = Path::parse(&text.value) else { return };
    let mut names = path.steps().iter().rev().filter_map(|step| match step {
        PathStep::Member(name) => Some(name.as_str()),
        _ => None,
    });
    let Some(name) = names.next() else { return };
    // Headers of one's own begin with `x-`.
    let bare = name.strip_prefix("x-").unwrap_or(name);
    let is_volatile = matches!(arguments::kind(bare), ArgumentKind::Volatile | ArgumentKind::Stamp)
        || MORE.iter().any(|more| arguments::is_spelling_of(bare, more));
    if is_volatile {
        found.warning(
            source,
            text.span.clone(),
            DiagnosticCode::VolatileKey,
            format!("`{name}` looks different on every call, so no two calls would be the same intent"),
            "list it under `volatile`, unless it really names the thing",
        );
    }
}

/// A key that has the same value in every call that the rule matches makes all of them one intent.
fn constant_key(source: SourceText<'_>, table: &RuleTable, entry: &RuleEntry, found: &mut Diagnostics) {
    let key = &entry.rule.sorting.key;
    let (Some(first), Some(last)) = (table.key.first(), table.key.last()) else { return };
    if !key.is_empty() && key.iter().all(|path| is_constant(path, entry)) {
        found.warning(
            source,
            first.span.start..last.span.end,
            DiagnosticCode::ConstantKey,
            "all calls that this rule matches have the same value here, so they would be one intent",
            "name an argument that tells them apart, or leave `key` out: then all arguments count",
        );
    }
}

fn is_constant(path: &Path, entry: &RuleEntry) -> bool {
    let is_literal = |text: &str| !text.contains(['*', '?', '[', '{', '\\']);
    let pattern = entry.pattern.text();
    match path.steps() {
        _ if matches!(&entry.when, Some(RuleCondition::Equal(pairs)) if pairs.iter().any(|(known, _)| known == path)) => {
            true
        }
        [PathStep::Member(root)] if root == "path" => pattern
            .strip_prefix("http:")
            .and_then(|it| it.split_once(' '))
            .is_some_and(|(_, it)| is_literal(it)),
        [PathStep::Member(root), PathStep::Element(index)] if root == "argv" => {
            let words = pattern.strip_prefix("cli:").unwrap_or_default().split(' ');
            words.take_while(|word| !word.is_empty() && is_literal(word)).count() > *index
        }
        _ => false,
    }
}
