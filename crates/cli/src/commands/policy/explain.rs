//! `semel policy explain`: which rule an action has, and what it means for a call.

use crate::args::PolicyExplain;
use crate::commands::key::{action, arguments};
use crate::context::Context;
use semel_core::class::{Class, Tier};
use semel_core::json::Json;
use semel_core::policy::ActionFacts;
use semel_core::policy::explain::{Explanation, SkippedRule, WhyNot};
use semel_doors::command::intent::CommandLine;
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

pub fn run(context: &Context, args: &PolicyExplain) -> anyhow::Result<ExitCode> {
    let (action, arguments): (String, Json) = match &args.action {
        Some(name) if args.command.is_empty() => {
            let name = action(name)?;
            (name.to_owned(), arguments(name, args.args.as_deref().unwrap_or("{}"))?)
        }
        Some(_) => anyhow::bail!("either an action or a command after --, not both"),
        None => {
            let line = CommandLine::new(&args.command, &context.environment.settings.cwd, None)?;
            (line.action(), line.arguments())
        }
    };
    let (_, explanation) = context.policy()?.explain(&ActionFacts::new(&action, &arguments));
    if context.output.json {
        context.output.document(&explanation);
    } else {
        context.output.data(text(&explanation).trim_end());
        if let Some(pack) = explanation.fitting_pack {
            context.output.say(format_args!(
                "hint: pack:{pack} has a rule for it: include = [\"pack:{pack}\"] in semel.toml"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(it: &Explanation) -> String {
    let mut facts = ExplainedFacts::default();
    facts.fact("action", &it.action);
    facts.fact("rule", &it.rule);
    facts.fact("class", format!("{}: {}", it.class, it.because));
    facts.fact("mode", word(it.mode));
    match it.class {
        // Everything else in a rule is about recorded calls.
        Class::Read => {
            facts
                .fact("repeat", "passes each time: a read is not held, recorded or answered from the record");
            facts.fact("timeout", or(&it.timeout, ""));
        }
        _ => guarded(it, &mut facts),
    }
    facts.0 + &earlier(it)
}

/// Lines of a name and a value.
#[derive(Default)]
struct ExplainedFacts(String);

impl ExplainedFacts {
    fn fact(&mut self, name: &str, value: impl AsRef<str>) {
        if !value.as_ref().is_empty() {
            let _infallible = writeln!(self.0, "{name:<14}{}", crate::terminal_text::line(value.as_ref()));
        }
    }
}

/// As the policy writes it.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn or(value: &Option<String>, otherwise: &str) -> String {
    value.clone().unwrap_or_else(|| otherwise.to_owned())
}

fn list(paths: &[String], otherwise: &str) -> String {
    if paths.is_empty() { otherwise.to_owned() } else { paths.join(", ") }
}

fn guarded(it: &Explanation, facts: &mut ExplainedFacts) {
    let mut fact = |name: &str, value: String| facts.fact(name, value);
    fact("tier", word(it.tier));
    fact("key", list(&it.identity.key, "all arguments but volatile ones"));
    for (kind, paths) in &it.identity.by_name {
        fact(&format!("  {kind}"), paths.join(", "));
    }
    if !it.identity.missing.is_empty() {
        let then =
            if it.identity.key_required { "such a call is refused" } else { "all arguments count instead" };
        fact("missing", format!("{}: {then}", it.identity.missing.join(", ")));
    }
    fact("content", list(&it.identity.content, ""));
    fact("volatile", list(&it.identity.volatile, ""));
    fact("secret", list(&it.identity.secret, ""));
    let scope = it.scope.map(word);
    fact("scope", or(&scope, "the run where one is named, else global"));
    fact("caller's key", word(it.caller_key));
    fact("again", word(it.again));
    fact("failure", word(it.failure));
    fact("effect", or(&it.effect, ""));
    fact("refused if", or(&it.refused, ""));
    fact("window", or(&it.window, "24h in a named run, with key fields or on one connection, else 1h"));
    fact("wait", it.wait.clone());
    let timeout = match it.class {
        Class::Generate => "1h",
        _ => "5m of silence; for a command none",
    };
    fact("timeout", or(&it.timeout, timeout));
    fact("budget", it.budget.to_string());
    fact("serialize by", or(&it.serialize_by, ""));
    fact("inject", or(&it.inject, ""));
    let lost = match it.tier {
        Tier::Keyed => "none: a lost call is sent again under its key, while that lives",
        Tier::Convergent => "none: a lost call is sent again",
        _ => "none: a lost answer waits for a person",
    };
    fact("probe", or(&it.probe, lost));
    if let Some(quiet) = &it.probe_quiet {
        fact("quiet", format!("a no of the probe counts {quiet} after the last sending"));
    }
    fact("confirm", or(&it.confirm, ""));
    fact("undo", or(&it.undo, ""));
}

/// Rules of another door say nothing about this action, and neither do those of a pack about another tool: nobody who
/// includes one reads all of it.
fn earlier(it: &Explanation) -> String {
    let door = |name: &str| name.split(':').next().map(str::to_owned);
    let tool = it.action.strip_prefix("mcp:").and_then(|name| name.split_once('/')).map(|(_, tool)| tool);
    let is_shown = |earlier: &&SkippedRule| match earlier.why_not {
        WhyNot::When { .. } => true,
        WhyNot::Match if earlier.rule.starts_with("pack:") => {
            tool.is_some_and(|tool| earlier.pattern.contains(tool))
        }
        WhyNot::Match => !earlier.pattern.contains(':') || door(&earlier.pattern) == door(&it.action),
    };
    let mut text = String::new();
    for earlier in it.earlier.iter().filter(is_shown) {
        let why = match &earlier.why_not {
            WhyNot::Match => format!("match = \"{}\" is another action", earlier.pattern),
            WhyNot::When { condition } => format!("match fits, when does not hold: {condition}"),
        };
        if text.is_empty() {
            text.push_str("\nearlier rules that did not take it\n");
        }
        let _infallible = writeln!(text, "  {}  {}", earlier.rule, crate::terminal_text::line(&why));
    }
    text
}
