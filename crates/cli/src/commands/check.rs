//! `semel check`: what breaks if an agent does it twice.

use crate::args::{CheckArgs, CheckCommand, CheckTool};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, counted, stderr_is_terminal};
use crate::table;
use crate::terminal_text;
use anyhow::{Context as _, anyhow};
use owo_colors::OwoColorize;
use semel::policy_files;
use semel_core::class::Class;
use semel_core::policy::Policy;
use semel_detect::check::known_help::is_known;
use semel_detect::check::openapi;
use semel_detect::check::surface::{self, OperationCheck};
use semel_detect::check::tool::{self, Sandbox, ToolReport};
use semel_detect::judge::with_packs;
use semel_detect::mcp_server_process::McpServerProcess;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

pub fn run(context: &Context, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => check_tool(context, &args.tool),
        Some(CheckCommand::Mcp { name, words }) => print_surface(context, &tools(context, name, words)?),
        Some(CheckCommand::Http { openapi }) => {
            let document = read_openapi(context, openapi)?;
            print_surface(context, &surface::of_openapi(&document, &policy(context)?))
        }
        Some(CheckCommand::Concurrent { sandbox, words }) => {
            let at_once = Sandbox { words: shell_words(sandbox)? }.try_at_once(words)?;
            let (is_good, verdict) = at_once.verdict();
            if context.output.json {
                context.output.document(&at_once);
            } else {
                let effects = counted(at_once.effects as usize, "effect", "effects");
                let told = at_once.succeeded;
                context.output.data(format_args!("{told} of 2 callers succeeded, {effects}: {verdict}."));
            }
            Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
        }
    }
}

/// The tools of an MCP server, which is started and asked for its listing.
pub fn tools(context: &Context, name: &str, words: &[String]) -> anyhow::Result<Vec<OperationCheck>> {
    let port = McpServerProcess::start(words, &[], None)
        .with_context(|| format!("cannot ask {}", words.join(" ")))?;
    Ok(surface::of_tools(name, &port.tools, &policy(context)?))
}

pub fn read_openapi(context: &Context, path: &Path) -> anyhow::Result<serde_json::Value> {
    let shown = path.display();
    let text = std::fs::read_to_string(context.environment.settings.cwd.join(path))
        .with_context(|| shown.to_string())?;
    openapi::parse(&text).with_context(|| format!("cannot read {shown}"))
}

/// The policy that holds here, with every shipped pack behind it.
pub fn policy(context: &Context) -> anyhow::Result<Policy> {
    let files = policy_files::read(&context.environment.settings, context.global.policy.as_deref())?;
    with_packs(files).map_err(|found| {
        context.output.warn(found.render(stderr_is_terminal()));
        Hinted::error("the policy does not hold together".to_owned(), "semel policy lint")
    })
}

fn shell_words(text: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(|| anyhow!("`{text}` is no command"))
}

fn check_tool(context: &Context, args: &CheckTool) -> anyhow::Result<ExitCode> {
    if args.words.is_empty() {
        return Err(Hinted::error("name a tool".to_owned(), "semel check -- TOOL"));
    }
    let (shown, cwd) = (terminal_text::line(&args.words.join(" ")), &context.environment.settings.cwd);
    // A sandbox is the place where a tool may do anything.
    if args.sandbox.is_none() && !args.run_help && !is_known(&args.words, &context.environment.search, cwd) {
        let what = "is not known to have help, and a tool that does not know --help does its work";
        let sure = format!("semel check --run-help -- {shown}, if you know that it changes nothing then");
        return Err(Hinted::error(format!("{shown} {what}; it was not run"), sure));
    }
    context.output.say(format_args!(
        "semel: runs `{shown} --help`, and the same of the subcommands that it lists{}",
        if args.sandbox.is_some() { "; then the examples of the sandbox" } else { "" }
    ));
    let mut walk = tool::walk(&args.words).with_context(|| format!("cannot run {}", args.words[0]))?;
    if walk.commands.is_empty() {
        return Err(anyhow!("{} prints no help within 10 s", args.words.join(" ")));
    }
    if let Err(name) = tool::take_for_reads(&mut walk.commands, &args.words, &args.reads) {
        return Err(anyhow!("--reads: {} has no command {name}", args.words.join(" ")));
    }
    if let Some(sandbox) = &args.sandbox {
        Sandbox { words: shell_words(sandbox)? }.try_all(&args.words, &mut walk.commands)?;
    }
    let report = tool::report(walk);
    if context.output.json {
        context.output.document(&report);
    } else {
        context.output.data(tool_text(&report).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

fn tool_text(report: &ToolReport) -> String {
    let sure =
        if report.proven { "as the sandbox shows" } else { "at most, as its help says; --sandbox proves it" };
    let mut text = format!("{} of 3, {sure}.\n\n", format!("Score {}", report.score).bold());
    let mark = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let rows = report.commands.iter().map(|check| {
        let tried = check.tried.as_ref().map_or_else(String::new, |trial| {
            if trial.is_once() {
                "once".to_owned()
            } else {
                format!("{} for one key", counted(trial.effects as usize, "effect", "effects"))
            }
        });
        let changes = if check.changes_something { "changes" } else { "reads" };
        let blank = |value: String| if check.changes_something { value } else { String::new() };
        vec![
            terminal_text::line(&check.command),
            changes.to_owned(),
            blank(mark(check.takes_key)),
            blank(mark(check.takes_dry_run)),
            tried,
            terminal_text::line(&check.because),
        ]
    });
    for line in table::plain(&["COMMAND", "KIND", "KEY", "DRY RUN", "TRIED", "BECAUSE"], rows) {
        let _ = writeln!(text, "{line}");
    }
    for note in &report.notes {
        let _ = writeln!(text, "\nNote: {}.", terminal_text::line(note));
    }
    if !report.advice.is_empty() {
        let _ = writeln!(text, "\nTo change, in this order:");
    }
    for (number, advice) in report.advice.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}.", number + 1, terminal_text::line(advice));
    }
    text
}

fn print_surface(context: &Context, operations: &[OperationCheck]) -> anyhow::Result<ExitCode> {
    if context.output.json {
        context.output.document(&json!({"schema_version": 1, "items": operations}));
    } else {
        let twice = operations.iter().filter(|operation| operation.twice() == "it happens twice").count();
        let changing = operations.iter().filter(|operation| operation.class != Class::Read).count();
        let rows = operations.iter().map(|operation| {
            vec![
                terminal_text::line(&operation.action),
                operation.class.to_string(),
                operation.twice().to_owned(),
                terminal_text::line(operation.key.as_deref().unwrap_or_default()),
                terminal_text::line(operation.probe.as_deref().unwrap_or_default()),
                terminal_text::line(&operation.because),
            ]
        });
        let header = ["OPERATION", "CLASS", "SENT TWICE", "KEY", "PROBE", "BECAUSE"];
        let mut text = format!(
            "{}: {changing} change something, {twice} would happen twice.\n\n",
            counted(operations.len(), "operation", "operations")
        );
        for line in table::plain(&header, rows) {
            let _ = writeln!(text, "{line}");
        }
        context.output.data(text.trim_end());
        context.output.say("hint: semel policy init writes a policy for them");
    }
    Ok(ExitCode::SUCCESS)
}
