//! Why a call gets the rule it gets: for `semel policy explain`.

use super::compile::Choices;
use super::pack::PACKS;
use super::rule::{
    Again, CallerKey, EffectWording, Failure, InjectInto, Rule, RuleCall, RuleOrigin, Rulings, ScopeChoice,
    server_and_tool,
};
use super::select::MatchResult;
use super::{ActionFacts, Diagnostics, Mode, Policy, duration};
use crate::class::{Class, Tier};
use crate::identity;
use crate::json::{Json, Path};
use crate::judgement::arguments::{self, ArgumentKind, each_leaf};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nobody reads more arguments of one kind.
const PATHS_SHOWN_MAX: usize = 32;

/// The rule, what it means for this call, and why earlier rules did not take it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    pub action: String,
    pub mode: Mode,
    /// `semel.toml:12`, `pack:gh:8`, or `default`.
    pub rule: String,
    /// The rules that were tried before, in order.
    pub earlier: Vec<SkippedRule>,
    pub class: Class,
    pub because: String,
    pub tier: Tier,
    pub identity: IdentityExplanation,
    /// Empty: the run where the caller names one, else global.
    pub scope: Option<ScopeChoice>,
    pub caller_key: CallerKey,
    pub again: Again,
    pub rulings: Rulings,
    pub failure: Failure,
    pub effect: Option<String>,
    /// When an answer that looks like a success is a refusal.
    pub refused: Option<String>,
    /// Empty: 24h in a named run, with key fields or on one connection, else 1h.
    pub window: Option<String>,
    pub wait: String,
    pub timeout: Option<String>,
    pub late_after: String,
    pub budget: u32,
    pub serialize_by: Option<String>,
    pub inject: Option<String>,
    pub probe: Option<String>,
    /// How long after the last possible sending its "no" begins to count.
    pub probe_quiet: Option<String>,
    pub confirm: Option<String>,
    pub undo: Option<String>,
    /// A shipped pack that has a rule for the call, where no rule of the policy takes it.
    pub fitting_pack: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRule {
    pub rule: String,
    #[serde(rename = "match")]
    pub pattern: String,
    pub why_not: WhyNot,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "part")]
pub enum WhyNot {
    Match,
    When { condition: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdentityExplanation {
    /// Empty: all arguments but content and volatile ones.
    pub key: Vec<String>,
    pub key_required: bool,
    /// Key paths that this call has no value for.
    pub missing: Vec<String>,
    pub content: Vec<String>,
    pub volatile: Vec<String>,
    pub secret: Vec<String>,
    /// The arguments of this call by kind, where their names decide.
    pub by_name: BTreeMap<&'static str, Vec<String>>,
}

impl Policy {
    /// The rule for a call together with the reasons.
    pub fn explain(&self, facts: &ActionFacts<'_>) -> (Arc<Rule>, Explanation) {
        let mut earlier = Vec::new();
        let rule = self.select(facts, &mut |entry, tried| {
            let why_not = match tried {
                MatchResult::OtherAction => WhyNot::Match,
                MatchResult::OtherArguments { condition } => WhyNot::When { condition },
                MatchResult::Matched | MatchResult::Undecided { .. } => return,
            };
            let pattern = entry.pattern.text().to_owned();
            earlier.push(SkippedRule { rule: entry.rule.origin.to_string(), pattern, why_not });
        });
        let missing = identity::sort(facts.arguments, &rule.sorting).missing_key_paths;
        let identity = IdentityExplanation {
            key: texts(&rule.sorting.key),
            key_required: rule.key_required,
            missing: texts(&missing),
            content: texts(&rule.sorting.content),
            volatile: texts(&rule.sorting.volatile),
            secret: texts(&rule.sorting.secret),
            by_name: by_name(facts.arguments, &rule),
        };
        let explanation = Explanation {
            action: facts.action.to_owned(),
            mode: self.mode,
            rule: rule.origin.to_string(),
            earlier,
            class: rule.class,
            because: rule.class_because.to_string(),
            tier: rule.tier(),
            identity,
            scope: rule.scope,
            caller_key: rule.caller_key,
            again: rule.again,
            rulings: rule.rulings,
            failure: rule.failure,
            effect: rule.effect.as_ref().map(|effect| match effect {
                EffectWording::Word(word) => format!("{word:?}").to_lowercase(),
                EffectWording::Expression(expression) => expression.source().to_owned(),
            }),
            refused: rule.refused.as_ref().map(|refused| refused.source().to_owned()),
            window: rule.window.map(duration::text),
            wait: duration::text(rule.wait),
            timeout: rule.timeout.map(duration::text),
            late_after: duration::text(rule.late_after),
            budget: rule.budget,
            serialize_by: rule.serialize_by.as_ref().map(ToString::to_string),
            inject: rule.inject.as_ref().map(|inject| match &inject.into {
                InjectInto::Header(name) => format!("header {name}"),
                InjectInto::Arg(name) => format!("arg {name}"),
                InjectInto::Body(path) => format!("body {path}"),
                InjectInto::Query(name) => format!("query {name}"),
                InjectInto::Directive(name) => format!("directive @{name}"),
                InjectInto::Flag(name) => format!("flag {name}"),
                InjectInto::Env(name) => format!("env {name}"),
            }),
            probe: rule.probe.as_ref().map(|probe| call_text(&probe.call, facts.action)),
            probe_quiet: rule.probe.as_ref().map(|probe| duration::text(probe.quiet)),
            confirm: rule.confirm.as_ref().map(|confirm| call_text(&confirm.call, facts.action)),
            undo: rule.undo.as_ref().map(|undo| call_text(undo, facts.action)),
            fitting_pack: fitting_pack(facts, &rule),
        };
        (rule, explanation)
    }
}

/// How the names of a call's arguments sort them. A rule's key fields come before that.
fn by_name(arguments: &Json, rule: &Rule) -> BTreeMap<&'static str, Vec<String>> {
    let mut kinds: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let volatile = texts(&arguments::volatile(arguments));
    each_leaf(arguments, &mut |leaf| {
        let mut path = String::new();
        leaf.write_path(&mut path);
        let kind = match leaf.kind {
            ArgumentKind::Volatile if !volatile.contains(&path) => ArgumentKind::Other,
            kind => kind,
        };
        let counts = rule.sorting.key.is_empty() || kind == ArgumentKind::Volatile;
        let paths = kinds.entry(kind.word()).or_default();
        if counts && paths.len() < PATHS_SHOWN_MAX {
            paths.push(path);
        }
        true
    });
    kinds.retain(|_, paths| !paths.is_empty());
    kinds
}

/// The pack that would say more of a call than its name does. Of two reads neither says more.
fn fitting_pack(facts: &ActionFacts<'_>, rule: &Rule) -> Option<&'static str> {
    if rule.origin != RuleOrigin::Default {
        return None;
    }
    // The tests see to it that a pack has no findings.
    let mut found = Diagnostics::default();
    PACKS.iter().find_map(|pack| {
        let policy = Policy { rules: pack.rules(&Choices::default(), &mut found), ..Policy::default() };
        let better = policy.rule_for(facts);
        let reads = rule.class == Class::Read && better.class == Class::Read;
        (better.origin != RuleOrigin::Default && !reads).then_some(pack.name)
    })
}

fn texts(paths: &[Path]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn call_text(call: &RuleCall, action: &str) -> String {
    match call {
        RuleCall::Mcp { tool, .. } => match server_and_tool(tool, action) {
            Some((server, tool)) => format!("mcp {server}/{tool}"),
            None => format!("mcp {tool}"),
        },
        RuleCall::Http { method, url, .. } => format!("http {method} {url}"),
        RuleCall::Command { argv } => {
            let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
            format!("cmd {}", words.join(" "))
        }
    }
}

impl std::fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RuleOrigin::File { path, line } => write!(f, "{}:{line}", path.display()),
            RuleOrigin::Pack { name, line } => write!(f, "pack:{name}:{line}"),
            RuleOrigin::Default => f.write_str("default"),
        }
    }
}
