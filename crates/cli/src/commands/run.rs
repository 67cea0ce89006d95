//! `semel run`: any command, at most once.

use super::piped::{self, Piped};
use super::Context;
use crate::args::{Run as Args, StdinChoice};
use crate::house::{self, LocalGate, TENANT};
use crate::output::{ledger_hint, stderr_is_terminal};
use crate::policy_files::{self, Unusable};
use semel_core::answer::{Answer, Code, EffectWord, OutcomeWord, Retry, Trouble};
use semel_core::class::{Class, Tier};
use semel_core::ids::{IdempotencyKey, Reason, Run};
use semel_core::intent::{Ask, AskedBy, Intent};
use semel_core::json::Json;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::rule::{Again, Call, DryRun, Probe, Rule};
use semel_core::policy::template::Template;
use semel_core::policy::{ActionFacts, Policy, duration};
use semel_core::wording;
use semel_doors::command::intent::CommandLine;
use semel_doors::command::render::Output as CommandOutput;
use semel_doors::command::serve::{CommandUpstream, Options, Show};
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_gate::upstream::Upstream;
use semel_gate::{GivenReply, Passed};
use semel_ledger::holders::FileHolders;
use semel_ledger::prune::Retention;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// semel itself failed; nothing was started.
const EXIT_SEMEL_FAILED: u8 = 125;

/// How long after the last possible sending a probe's "no" begins to count, where nobody said.
const PROBE_QUIET: Duration = Duration::from_secs(5);

pub fn run(context: &Context, args: &Args) -> u8 {
    let parent = rustix::process::getppid();
    let asked = match Asked::understand(context, args) {
        Ok(asked) => asked,
        Err(error) => {
            context.output.error(&error);
            return EXIT_SEMEL_FAILED;
        }
    };
    let policy = match policy_files::load(&context.environment, context.global.policy.as_deref()) {
        Ok(policy) => policy,
        Err(unusable) => return policy_invalid(context, &unusable),
    };
    let arguments = asked.line.arguments();
    let action = args.action.as_ref().map_or_else(|| asked.line.action(), |name| named_action(name));
    let rule = asked.rule(&policy, &action, &arguments);
    let clock = SystemClock::start();
    let options = || Options {
        show: if context.output.json { Show::InAnswer } else { Show::Live },
        pass_input: asked.pass_input,
        search: context.environment.search.clone(),
        effect: asked.effect,
    };
    let file = context.environment.ledger_file(context.global.ledger.as_deref());
    let opened = file.map_err(|error| (error.to_string(), None)).and_then(|file| {
        house::ledger(&file, &context.environment, &clock).map_err(|error| (error.to_string(), ledger_hint(&error)))
    });
    let ledger = match opened {
        Ok(ledger) => ledger,
        // With the ledger unreachable, effects are refused before they are sent, and reads pass.
        Err(_) if rule.class == Class::Read && !args.dry_run => {
            let holders = FileHolders::in_directory(std::path::PathBuf::new());
            let mut upstream = CommandUpstream::new(&asked.line, &rule, &holders, &clock, options());
            let passed = block_on(semel_gate::unrecorded(&rule, &mut upstream));
            return give(context, &passed, &mut upstream).0;
        }
        Err((why, hint)) => return finish_unavailable(context, &rule, &why, hint),
    };
    let ask = asked.ask(&action, &arguments, &rule);
    let intent = match Intent::of(&ask, &rule, ledger.secret()) {
        Ok(intent) => intent,
        Err(missing) => return finish_trouble(context, &rule, wording::key_required(&missing)),
    };
    let gate = house::gate(ledger, clock, policy.mode);
    let mut upstream = CommandUpstream::new(&asked.line, &rule, gate.ledger.holders(), &gate.clock, options());
    if args.dry_run {
        return match block_on(gate.dry_run(&intent, &rule)) {
            Ok(answer) => dry_run(context, &rule, answer, &mut upstream),
            Err(error) => finish_unavailable(context, &rule, &error.to_string(), None),
        };
    }
    let passed = match block_on(gate.pass(&intent, &rule, &mut upstream)) {
        Ok(passed) => passed,
        Err(semel_gate::Error::Ledger(error)) => {
            return finish_unavailable(context, &rule, &error.to_string(), ledger_hint(&error));
        }
    };
    let (code, accepted) = give(context, &passed, &mut upstream);
    // A parent that has gone cannot have read the answer, whatever the pipe accepted.
    if let Some(delivery) = passed.delivery.filter(|_| accepted && rustix::process::getppid() == parent) {
        if let Err(error) = block_on(gate.delivered(&delivery)) {
            context.output.say(format_args!("semel: the answer is not marked as delivered: {error}"));
        }
    }
    // Its name goes with the lock, unless something that the command left behind still holds on to it.
    gate.ledger.holders().let_go();
    keep_house(context, &gate, &policy);
    code
}

/// Retention runs by itself. Its trouble must not change the answer of a command that ran.
fn keep_house(context: &Context, gate: &LocalGate, policy: &Policy) {
    let retention =
        Retention { replies: policy.retention.replies, facts: policy.retention.facts };
    match block_on(gate.ledger.prune_if_due(retention, gate.clock.now())) {
        Ok(Some(_)) => gate.ledger.holders().sweep(),
        Ok(None) => {}
        Err(error) => context.output.say(format_args!("semel: retention did not run: {error}")),
    }
}

/// A call of `semel run`, understood and checked before anything is opened.
struct Asked {
    line: CommandLine,
    /// The caller's standard input is handed through unread.
    pass_input: bool,
    key: Option<IdempotencyKey>,
    run: Option<Run>,
    again: Option<Reason>,
    class: Option<Class>,
    effect: Option<EffectWord>,
    timeout: Option<Duration>,
    wait: Option<Duration>,
    probe: Option<Probe>,
    serialize_by: Option<String>,
}

impl Asked {
    fn understand(context: &Context, args: &Args) -> anyhow::Result<Asked> {
        use anyhow::Context as _;
        let span = |flag: &str, text: &Option<String>| -> anyhow::Result<Option<Duration>> {
            text.as_ref().map(|text| duration::parse(text).map_err(|e| anyhow::anyhow!("{flag} {text}: {e}"))).transpose()
        };
        let word = |flag: &str, text: &str, words: &str| anyhow::anyhow!("{flag} {text}: expected {words}");
        let classes = "read, convergent, act, generate or consequential";
        let effects = "created, updated, deleted, sent, noop or none";
        let key = args.key.as_deref().map(IdempotencyKey::parse).transpose().context("--key")?;
        let run = context.environment.run_id(args.run.as_deref());
        let run = run.as_deref().map(Run::named).transpose().context("--run")?;
        let again = args.again.as_deref().map(Reason::parse).transpose().context("--again")?;
        let class = args.class.as_deref().map(|c| Class::parse(c).ok_or_else(|| word("--class", c, classes)));
        let effect = args.effect.as_deref().map(|e| EffectWord::parse(e).ok_or_else(|| word("--effect", e, effects)));
        let quiet = span("--probe-quiet", &args.probe_quiet)?.unwrap_or(PROBE_QUIET);
        let probe = args.probe.as_deref().map(|text| probe(text, quiet)).transpose()?;
        let timeout = span("--timeout", &args.timeout)?;
        let wait = span("--wait", &args.wait)?;
        if args.serialize_by.as_ref().is_some_and(|resource| resource.is_empty() || resource.len() > 1_024) {
            anyhow::bail!("--serialize-by needs 1 to 1024 characters");
        }
        let (class, effect) = (class.transpose()?, effect.transpose()?);
        // Arguments are checked before input is read, which may take long.
        CommandLine::new(&args.command, &context.environment.cwd, None)?;
        let input = match args.stdin {
            StdinChoice::Read => piped::read(key.is_some(), &SystemClock::start())?,
            StdinChoice::Pass => Piped::Unread,
        };
        let pass_input = input == Piped::Unread;
        let line = CommandLine::new(&args.command, &context.environment.cwd, input.bytes())?;
        let serialize_by = args.serialize_by.clone();
        Ok(Asked { line, pass_input, key, run, again, class, effect, timeout, wait, probe, serialize_by })
    }

    /// The policy's rule, with what this one call says about itself.
    fn rule(&self, policy: &Policy, action: &str, arguments: &Json) -> Rule {
        let facts = ActionFacts { class_override: self.class, ..ActionFacts::new(action, arguments) };
        let mut rule = policy.rule_for(&facts);
        rule.timeout = self.timeout.or(rule.timeout);
        rule.wait = self.wait.unwrap_or(rule.wait);
        rule.probe = self.probe.clone().or(rule.probe);
        rule
    }

    fn ask<'a>(&self, action: &'a str, arguments: &'a Json, rule: &Rule) -> Ask<'a> {
        let person = self.again.is_some() && rule.again == Again::Person && person_confirms(action);
        Ask {
            tenant: TENANT,
            principal: TENANT,
            authority: "",
            action,
            arguments,
            run: self.run.clone(),
            key: self.key.clone(),
            again: self.again.clone(),
            asked_by: if person { AskedBy::Person } else { AskedBy::Agent },
            call_id: None,
            live_connection: false,
            serialize_by: self.serialize_by.clone(),
        }
    }
}

fn named_action(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("cli:{name}") }
}

fn probe(text: &str, quiet: Duration) -> anyhow::Result<Probe> {
    let words = shlex::split(text).ok_or_else(|| anyhow::anyhow!("--probe: the quotes in it do not match"))?;
    if words.is_empty() {
        anyhow::bail!("--probe names no command");
    }
    Ok(Probe {
        call: Call::Command { argv: words.iter().map(|word| Template::literal(Json::str(word))).collect() },
        found: None,
        reply: None,
        quiet,
        before: false,
    })
}

/// A rule may leave deliberate repeats to a person: one who sits at a terminal and says yes.
fn person_confirms(action: &str) -> bool {
    if !std::io::stdin().is_terminal() || !stderr_is_terminal() {
        return false;
    }
    let mut err = std::io::stderr();
    let asked = write!(err, "semel: repeat {action} on purpose? Type yes: ").and_then(|()| err.flush());
    let mut line = String::new();
    asked.is_ok() && std::io::stdin().read_line(&mut line).is_ok() && line.trim() == "yes"
}

/// Gives the answer to the caller. Returns the exit code, and whether the last byte was accepted.
fn give<U: Upstream + Live>(context: &Context, passed: &Passed, upstream: &mut U) -> (u8, bool) {
    let recorded = match &passed.reply {
        GivenReply::Recorded(bytes) => CommandOutput::decode(bytes),
        GivenReply::Live | GivenReply::None => None,
    };
    let code = exit_code(&passed.answer, recorded.as_ref());
    if context.output.json {
        let mut answer = passed.answer.clone();
        if let Some(recorded) = &recorded {
            answer.data = recorded.data();
        }
        return (code, context.output.document(&answer));
    }
    let live = upstream.deliver();
    talk(context, &passed.answer);
    let Some(recorded) = recorded else { return (code, live) };
    let mut stdout = std::io::stdout().lock();
    let out = stdout.write_all(&recorded.stdout).and_then(|()| stdout.flush());
    let err = std::io::stderr().write_all(&recorded.stderr);
    (code, out.is_ok() && err.is_ok() && live)
}

/// The part of an upstream that streams while it runs.
trait Live {
    fn deliver(&mut self) -> bool;
}

impl<C: Clock> Live for CommandUpstream<'_, C> {
    fn deliver(&mut self) -> bool {
        CommandUpstream::deliver(self)
    }
}

fn exit_code(answer: &Answer, recorded: Option<&CommandOutput>) -> u8 {
    let own = || {
        let code = recorded.map(|output| i64::from(output.exit_code)).or_else(|| answer.data["exit_code"].as_i64());
        code.and_then(|code| u8::try_from(code).ok())
    };
    match &answer.trouble {
        Some(trouble) => match trouble.code {
            Code::UpstreamRefused => own().filter(|code| *code != 0).unwrap_or(1),
            Code::NotStarted => own().unwrap_or(EXIT_SEMEL_FAILED),
            code => code.exit().unwrap_or(EXIT_SEMEL_FAILED),
        },
        // A success whose reply is not known exits 0; one that a probe found exits 0 too, whatever the child said.
        None if answer.ok && answer.evidence == Some(semel_core::effect::Evidence::Probed) => 0,
        None if answer.ok => own().unwrap_or(0),
        // A read, or observe mode: the command's own.
        None => own().unwrap_or(1),
    }
}

/// What people and models read on stderr beside the command's own output.
fn talk(context: &Context, answer: &Answer) {
    use owo_colors::OwoColorize;
    let id = answer.effect_id.map(|id| id.to_string()).unwrap_or_default();
    if let Some(trouble) = &answer.trouble {
        if trouble.code == Code::UpstreamRefused {
            return;
        }
        let code = trouble.code.word().replace('_', " ");
        context.output.warn(format_args!("{} {} {id}", "semel:".bold(), code.yellow().bold()));
        context.output.warn(format_args!("  {}", trouble.what_happened));
        let safe = match trouble.is_it_safe_to_retry {
            Retry::Yes => "yes",
            Retry::No => "no",
            Retry::Wait => "wait",
        };
        context.output.warn(format_args!("  safe to retry: {safe}. {}", trouble.next_step));
        context.output.warn(format_args!("  {} {}", "hint:".cyan(), trouble.human_next_step));
        if !stderr_is_terminal() {
            // One line that a program can tell from a command's own exit codes.
            context.output.warn(serde_json::to_string(answer).expect("an answer has string keys"));
        }
        return;
    }
    match (answer.outcome, &answer.reason) {
        (OutcomeWord::Replayed | OutcomeWord::Joined, Some(reason)) => {
            context.output.say(format_args!("{} {} ({id})", "semel:".bold(), reason.blue()));
        }
        (OutcomeWord::Ran, Some(reason)) if answer.ok => {
            context.output.say(format_args!("{} {reason} ({id})", "semel:".bold()));
        }
        _ => {}
    }
}

fn dry_run<C: Clock>(
    context: &Context,
    rule: &Rule,
    mut answer: Answer,
    upstream: &mut CommandUpstream<'_, C>,
) -> u8 {
    if let Some(dry_run) = &mut answer.dry_run
        && dry_run.would == semel_core::answer::Would::Run
        && let Some(DryRun::Flag(flag)) = &rule.dry_run
    {
        match upstream.own_dry_run(flag) {
            Ok(said) => dry_run.changes = vec![said],
            Err(not_started) => dry_run.changes.push(json!({"own_dry_run_failed": not_started.why})),
        }
    }
    if context.output.json {
        context.output.document(&answer);
        return 0;
    }
    let Some(dry_run) = &answer.dry_run else { return 0 };
    context.output.data(format_args!("{}", answer.effect));
    for change in &dry_run.changes {
        let text = change["what"].as_str().map_or_else(|| change.to_string(), str::to_owned);
        context.output.data(format_args!("  {text}"));
    }
    context.output.say(format_args!("semel: dry run; rule {}, intent digest {}", dry_run.rule, dry_run.intent_digest));
    0
}

fn finish_trouble(context: &Context, rule: &Rule, trouble: Trouble) -> u8 {
    let answer = refusal(rule.tier(), trouble);
    if context.output.json {
        context.output.document(&answer);
    } else {
        talk(context, &answer);
    }
    exit_code(&answer, None)
}

fn finish_unavailable(context: &Context, rule: &Rule, why: &str, hint: Option<String>) -> u8 {
    let mut trouble = wording::ledger_unavailable(why);
    if let Some(hint) = hint {
        trouble.human_next_step = hint;
    }
    finish_trouble(context, rule, trouble)
}

fn policy_invalid(context: &Context, unusable: &Unusable) -> u8 {
    let (what, details) = match unusable {
        Unusable::File(error) => (format!("{error:#}"), None),
        Unusable::Content(found) => {
            let first = found.iter().find(|d| d.severity == Severity::Error).map(|d| format!("{}:{}:{}: {}", d.file.display(), d.line, d.column, d.message));
            (first.unwrap_or_default(), Some(found))
        }
    };
    let trouble = Trouble {
        code: Code::PolicyInvalid,
        what_happened: format!("Nothing was sent: the policy does not hold together ({what})."),
        is_it_safe_to_retry: Code::PolicyInvalid.retry(),
        next_step: "Tell the user that the policy must be mended first.".into(),
        human_next_step: "semel policy check".into(),
        differing: Vec::new(),
    };
    let mut answer = refusal(Tier::Opaque, trouble);
    match details {
        Some(found) if context.output.json => {
            answer.data = json!({"diagnostics": serde_json::to_value(found).unwrap_or_default()});
        }
        Some(found) => context.output.warn(found.render(stderr_is_terminal())),
        None => {}
    }
    if context.output.json {
        context.output.document(&answer);
    } else {
        talk(context, &answer);
    }
    EXIT_SEMEL_FAILED
}

fn refusal(tier: Tier, trouble: Trouble) -> Answer {
    Answer {
        ok: false,
        effect: EffectWord::None,
        outcome: OutcomeWord::Refused,
        effect_id: None,
        attempt: None,
        tier,
        evidence: None,
        reason: None,
        trouble: Some(trouble),
        dry_run: None,
        possible_repeat: false,
        data: Value::Null,
    }
}
