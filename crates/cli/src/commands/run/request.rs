//! The request of one `semel run`, parsed and checked before anything is opened.

use super::piped::{self, PipedInput};
use crate::args::{RefusedExit, RunArgs, StdinChoice};
use crate::context::Context;
use crate::open::TENANT;
use semel_core::answer::EffectWord;
use semel_core::class::Class;
use semel_core::ids::{IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, AskedBy};
use semel_core::json::Json;
use semel_core::policy::rule::{Probe, Rule, RuleCall, RuleOrigin};
use semel_core::policy::template::Template;
use semel_core::policy::{ActionFacts, Policy};
use semel_doors::command::intent::CommandLine;
use semel_gate::clock::SystemClock;
use std::sync::Arc;
use std::time::Duration;

/// How long after the last possible sending a probe's "no" begins to count, where nobody said.
const PROBE_QUIET: Duration = Duration::from_secs(5);

/// One call of `semel run`.
pub struct RunRequest {
    pub line: CommandLine,
    /// The caller's standard input is handed through unread.
    pub pass_input: bool,
    pub key: Option<IdempotencyKey>,
    pub run: Option<Run>,
    pub again: Option<Reason>,
    pub class: Option<Class>,
    pub refused_exit: Vec<i32>,
    pub effect: Option<EffectWord>,
    pub timeout: Option<Duration>,
    pub wait: Option<Duration>,
    pub probe: Option<Probe>,
    pub serialize_by: Option<String>,
}

impl RunRequest {
    pub fn parse(context: &Context, args: &RunArgs) -> anyhow::Result<RunRequest> {
        use anyhow::Context as _;
        let key = args.key.as_deref().map(IdempotencyKey::parse).transpose().context("--key")?;
        let run = context.environment.settings.run_id(args.run.as_deref());
        let run = run.as_deref().map(Run::named).transpose().context("--run")?;
        let again = args.again.as_deref().map(Reason::parse).transpose().context("--again")?;
        let quiet = args.probe_quiet.unwrap_or(PROBE_QUIET);
        let probe = args.probe.as_deref().map(|text| probe(text, quiet)).transpose()?;
        if args.serialize_by.as_ref().is_some_and(|resource| resource.is_empty() || resource.len() > 1_024) {
            anyhow::bail!("--serialize-by needs 1 to 1024 characters");
        }
        // Arguments are checked before input is read, which may take long.
        CommandLine::new(&args.command, &context.environment.settings.cwd, None)?;
        let input = match args.stdin {
            StdinChoice::Read => piped::read(key.is_some(), &SystemClock::start())?,
            StdinChoice::Pass => PipedInput::Unread,
        };
        let pass_input = input == PipedInput::Unread;
        if pass_input && args.stdin == StdinChoice::Read {
            context
                .output
                .say("semel: standard input is open and silent; it is handed through and not compared");
        }
        let line = CommandLine::new(&args.command, &context.environment.settings.cwd, input.bytes())?;
        let serialize_by = args.serialize_by.clone();
        let codes = |entry: &RefusedExit| match entry {
            RefusedExit::Any => 1..=255,
            RefusedExit::Code(code) => i32::from(*code)..=i32::from(*code),
        };
        let refused_exit = args.refused_exit.iter().flat_map(codes).collect();
        Ok(RunRequest {
            line,
            pass_input,
            key,
            run,
            again,
            class: args.class,
            refused_exit,
            effect: args.effect,
            timeout: args.timeout,
            wait: args.wait,
            probe,
            serialize_by,
        })
    }

    /// The policy's rule, with what this one call says about itself.
    pub fn rule(&self, policy: &Policy, action: &str, arguments: &Json) -> anyhow::Result<Rule> {
        let written = |action: &str| policy.rule_for(&ActionFacts::new(action, arguments));
        // Another name does not take a program out of the rules that are written for it.
        let own = self.line.action();
        let renamed =
            written(action).origin == RuleOrigin::Default && written(&own).origin != RuleOrigin::Default;
        let action = if renamed { own.as_str() } else { action };
        let operator = written(action);
        if let Some(weaker) = self.class.and_then(|class| policy.too_weak(class, &operator)) {
            anyhow::bail!("--class {weaker}");
        }
        let facts = ActionFacts { class_override: self.class, ..ActionFacts::new(action, arguments) };
        let mut rule = Arc::unwrap_or_clone(policy.rule_for(&facts));
        self.line.set_surroundings_aside(&mut rule.sorting, self.key.is_some());
        rule.refused_exit.extend(&self.refused_exit);
        rule.timeout = self.timeout.or(rule.timeout);
        rule.wait = self.wait.unwrap_or(rule.wait);
        // The operator's question stands: a call must not bring one that answers as it likes.
        rule.probe = rule.probe.or_else(|| self.probe.clone());
        Ok(rule)
    }

    pub fn ask<'a>(&self, action: &'a str, arguments: &'a Json) -> Ask<'a> {
        Ask {
            tenant: TENANT,
            principal: TENANT,
            authority: "",
            action,
            arguments,
            run: self.run.clone(),
            key: self.key.clone(),
            again: self.again.clone(),
            asked_by: AskedBy::Agent,
            call_id: None,
            live_connection: false,
            serialize_by: self.serialize_by.clone(),
            replay_refusals: false,
        }
    }
}

pub fn named_action(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("cli:{name}") }
}

fn probe(text: &str, quiet: Duration) -> anyhow::Result<Probe> {
    let words =
        shlex::split(text).ok_or_else(|| anyhow::anyhow!("--probe: the quotes in it do not match"))?;
    if words.is_empty() {
        anyhow::bail!("--probe names no command");
    }
    Ok(Probe {
        call: RuleCall::Command {
            argv: words.iter().map(|word| Template::literal(Json::str(word))).collect(),
        },
        found: None,
        reply: None,
        quiet,
        before: false,
    })
}
