//! The answer on its way out: streams, exit code, and what people and models read beside it.

use crate::context::Context;
use crate::output::stderr_is_terminal;
use crate::terminal_text;
use semel::policy_files::Unusable;
use semel_core::answer::{Answer, Code, OutcomeWord, Retry, Trouble};
use semel_core::class::{Class, Tier};
use semel_core::effect::Effect;
use semel_core::policy::diagnostic::Severity;
use semel_core::policy::rule::{DryRunOption, Rule};
use semel_core::wording;
use semel_doors::command::serve::CommandUpstream;
use semel_doors::process::stream::write_fully;
use semel_doors::reply::CommandOutput;
use semel_gate::{GivenReply, Passed};
use serde_json::json;
use std::io::Write;
use std::os::fd::AsFd;

/// semel itself failed; nothing was started.
pub const EXIT_SEMEL_FAILED: u8 = 125;

/// Gives the answer to the caller. Returns the exit code, and whether the last byte was accepted.
pub fn respond(context: &Context, passed: &Passed, upstream: &mut CommandUpstream<'_>) -> (u8, bool) {
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
    // After an unclear end of its own the caller has seen a part of the answer, or all of it.
    let rest = recorded.stdout.strip_prefix(upstream.shown_stdout()).unwrap_or(&recorded.stdout);
    let out = write_fully(std::io::stdout().as_fd(), rest);
    let err = write_fully(std::io::stderr().as_fd(), &recorded.stderr);
    (code, out && err && live)
}

pub fn exit_code(answer: &Answer, recorded: Option<&CommandOutput>) -> u8 {
    let own = || {
        let code =
            recorded.map(|output| i64::from(output.exit_code)).or_else(|| answer.data["exit_code"].as_i64());
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

/// The text for people and models on stderr, beside the command's own output.
pub fn talk(context: &Context, answer: &Answer) {
    use owo_colors::OwoColorize;
    let id = answer.effect_id.map(|id| id.to_string()).unwrap_or_default();
    if let Some(trouble) = &answer.trouble {
        if trouble.code == Code::UpstreamRefused {
            let (semel, Trouble { what_happened, next_step, .. }) = ("semel:".bold(), trouble);
            context.output.say(format_args!("{semel} {what_happened} {next_step} ({id})"));
            return;
        }
        let code = trouble.code.word().replace('_', " ");
        let space = if id.is_empty() { "" } else { " " };
        context.output.warn(format_args!("{} {}{space}{id}", "semel:".bold(), code.yellow().bold()));
        if let Some(reason) = &answer.reason {
            context.output.warn(format_args!("  {reason}."));
        }
        context.output.warn(format_args!("  {}", trouble.what_happened));
        let safe = match trouble.is_it_safe_to_retry {
            Retry::Yes => "yes",
            Retry::No => "no",
            Retry::Wait => "wait",
        };
        context.output.warn(format_args!("  safe to retry: {safe}. {}", trouble.next_step));
        context.output.warn(format_args!("  {} {}", "hint:".cyan(), trouble.human_next_step));
        return;
    }
    if answer.possible_repeat {
        context.output.say(format_args!("{} {} ({id})", "semel:".bold(), wording::POSSIBLE_REPEAT));
    }
    match (answer.outcome, &answer.reason) {
        // An undone effect is told even to a quiet caller.
        (OutcomeWord::Replayed | OutcomeWord::Joined, Some(reason)) if answer.undone_by.is_some() => {
            context.output.warn(format_args!("{} {} ({id})", "semel:".bold(), reason.yellow()));
        }
        (OutcomeWord::Replayed | OutcomeWord::Joined, Some(reason)) => {
            context.output.say(format_args!("{} {} ({id})", "semel:".bold(), reason.blue()));
        }
        (OutcomeWord::Ran, Some(reason)) if answer.ok => {
            context.output.say(format_args!("{} {reason} ({id})", "semel:".bold()));
        }
        _ => {}
    }
}

/// To somebody who looks at a terminal in which nothing happens.
pub fn say_waiting(effect: &Effect) {
    use owo_colors::OwoColorize;
    let _nobody_listens = writeln!(
        anstream::stderr(),
        "{} the same call is running already; waiting for its answer ({})",
        "semel:".bold(),
        effect.id
    );
}

pub fn dry_run(context: &Context, rule: &Rule, mut answer: Answer, upstream: &mut CommandUpstream<'_>) -> u8 {
    if let Some(dry_run) = &mut answer.dry_run
        && dry_run.would == semel_core::answer::Would::Run
        && rule.class != Class::Read
    {
        answer.effect = upstream.foreseen_word().would();
        if let Some(DryRunOption::Flag(flag)) = &rule.dry_run {
            match upstream.own_dry_run(flag) {
                Ok(said) => answer.take_own_dry_run(said, upstream.ruled_word()),
                Err(not_started) => dry_run.changes.push(json!({"own_dry_run_failed": not_started.why})),
            }
        }
    }
    if context.output.json {
        context.output.document(&answer);
        return 0;
    }
    let Some(dry_run) = &answer.dry_run else { return 0 };
    context.output.data(format_args!("{}", answer.effect));
    if let Some(reason) = &answer.reason {
        context.output.data(format_args!("  {}", terminal_text::line(reason)));
    }
    for change in &dry_run.changes {
        let text = change["what"].as_str().map_or_else(|| change.to_string(), str::to_owned);
        context.output.data(format_args!("  {text}"));
    }
    context
        .output
        .say(format_args!("semel: dry run; rule {}, intent digest {}", dry_run.rule, dry_run.intent_digest));
    0
}

pub fn finish_trouble(context: &Context, rule: &Rule, trouble: Trouble) -> u8 {
    let answer = Answer::of_trouble(rule.tier(), OutcomeWord::Refused, trouble);
    if context.output.json {
        context.output.document(&answer);
    } else {
        talk(context, &answer);
    }
    exit_code(&answer, None)
}

pub fn finish_unavailable(context: &Context, rule: &Rule, why: &str, hint: Option<String>) -> u8 {
    finish_hinted(context, rule, wording::ledger_unavailable(why), hint)
}

pub fn finish_unopened(context: &Context, rule: &Rule, why: &str, waits: bool, hint: Option<String>) -> u8 {
    finish_hinted(context, rule, wording::ledger_not_opened(why, waits), hint)
}

fn finish_hinted(context: &Context, rule: &Rule, mut trouble: Trouble, hint: Option<String>) -> u8 {
    if let Some(hint) = hint {
        trouble.human_next_step = hint;
    }
    finish_trouble(context, rule, trouble)
}

/// The call itself is at fault: nothing was started, and the answer says so in its own form.
pub fn not_understood(context: &Context, error: &anyhow::Error) -> u8 {
    if context.output.json {
        context.output.document(&not_understood_answer(&format!("{error:#}")));
    } else {
        context.output.error(error);
    }
    EXIT_SEMEL_FAILED
}

/// The answer to a call that makes no sense.
pub fn not_understood_answer(why: &str) -> Answer {
    let answer = Answer::of_trouble(Tier::Opaque, OutcomeWord::Refused, wording::not_started(why));
    Answer { data: json!({"exit_code": EXIT_SEMEL_FAILED}), ..answer }
}

pub fn policy_invalid(context: &Context, unusable: &Unusable) -> u8 {
    let (what, details) = match unusable {
        Unusable::File(error) => (format!("{error:#}"), None),
        Unusable::Content(found) => {
            let first = found
                .iter()
                .find(|d| d.severity == Severity::Error)
                .map(|d| format!("{}:{}:{}: {}", d.file.display(), d.line, d.column, d.message));
            (first.unwrap_or_default(), Some(found))
        }
    };
    let trouble = Trouble {
        code: Code::PolicyInvalid,
        what_happened: format!("Nothing was sent: the policy does not hold together ({what})."),
        is_it_safe_to_retry: Code::PolicyInvalid.retry(),
        next_step: "Tell the user that the policy must be mended first.".into(),
        human_next_step: "semel policy lint".into(),
        differing: Vec::new(),
    };
    let mut answer = Answer::of_trouble(Tier::Opaque, OutcomeWord::Refused, trouble);
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
