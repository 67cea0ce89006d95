//! `semel eval`: scripted agents try a guard, semel itself unless told otherwise.

use crate::args::{EVAL_WORLD, EvalArgs, EvalDoor, EvalWorldArgs};
use crate::context::{Context, EXIT_FINDINGS};
use crate::output::{Hinted, stderr_is_terminal};
use anyhow::{Context as _, anyhow};
use owo_colors::OwoColorize;
use semel_detect::eval::mcp_server;
use semel_detect::eval::port::serve_http;
use semel_detect::eval::run::{EvalSubject, run as try_all};
use semel_detect::eval::scenario::{self, Scenario};
use semel_detect::eval::score::{Numbers, ScenarioResult};
use semel_detect::eval::world::World;
use semel_detect::report::junit;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

/// How many failing scenarios the screen names.
const NAMED_MAX: usize = 15;

#[derive(Debug, Serialize)]
struct DoorReport {
    door: &'static str,
    guard: String,
    numbers: Numbers,
    results: Vec<ScenarioResult>,
}

pub fn run(context: &Context, args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let scenarios: Vec<Scenario> = scenario::shipped()
        .into_iter()
        .filter(|scenario| args.only.as_ref().is_none_or(|text| scenario.name.contains(text.as_str())))
        .collect();
    if scenarios.is_empty() {
        return Err(Hinted::error(
            "no scenario has such a name".to_owned(),
            "semel eval --json lists them all",
        ));
    }
    let directory = tempfile::tempdir()?;
    let mut reports = Vec::new();
    for (door, guard) in doors(args) {
        let below = directory.path().join(door_word(door));
        std::fs::create_dir_all(&below)?;
        reports.push(try_door(context, args, door, guard, &scenarios, &below)?);
    }
    if let Some(path) = &args.junit {
        let cases = reports.iter().flat_map(|report| {
            let named = |result: &ScenarioResult| {
                let why = (!result.is_right()).then(|| wrong(result));
                (format!("{}: {}", report.door, result.name), why)
            };
            report.results.iter().map(named).collect::<Vec<_>>()
        });
        std::fs::write(path, junit::cases("semel eval", &cases.collect::<Vec<_>>()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if context.output.json {
        context.output.document(&serde_json::json!({"schema_version": 1, "doors": reports}));
    } else {
        for report in &reports {
            context.output.data(screen(report).trim_end());
        }
    }
    let is_right =
        reports.iter().all(|report| report.numbers.ran_twice + report.numbers.wrongly_suppressed == 0);
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
}

/// The guard of a door: semel, none, or one that was given.
#[derive(Debug, Clone)]
enum GuardChoice {
    Semel,
    None,
    Words(Vec<String>),
    At(String),
}

fn doors(args: &EvalArgs) -> Vec<(EvalDoor, GuardChoice)> {
    let words = |text: &str| GuardChoice::Words(shlex::split(text).unwrap_or_default());
    let given: Vec<(EvalDoor, GuardChoice)> = [
        (EvalDoor::Command, args.command.as_deref().map(words)),
        (EvalDoor::Mcp, args.mcp.as_deref().map(words)),
        (EvalDoor::Http, args.http.clone().map(GuardChoice::At)),
    ]
    .into_iter()
    .filter_map(|(door, guard)| Some((door, guard?)))
    .collect();
    if !given.is_empty() {
        return given;
    }
    let all = [EvalDoor::Command, EvalDoor::Mcp, EvalDoor::Http];
    let guard = if args.unguarded { GuardChoice::None } else { GuardChoice::Semel };
    let wanted = |door: &EvalDoor| args.door.is_empty() || args.door.contains(door);
    all.into_iter().filter(wanted).map(|door| (door, guard.clone())).collect()
}

fn door_word(door: EvalDoor) -> &'static str {
    match door {
        EvalDoor::Command => "command",
        EvalDoor::Mcp => "mcp",
        EvalDoor::Http => "http",
    }
}

fn try_door(
    context: &Context,
    args: &EvalArgs,
    door: EvalDoor,
    guard: GuardChoice,
    scenarios: &[Scenario],
    directory: &Path,
) -> anyhow::Result<DoorReport> {
    let semel = std::env::current_exe()?.to_string_lossy().into_owned();
    let tool = vec![semel.clone(), EVAL_WORLD.to_owned(), "{world}".to_owned()];
    let semel_words = |words: &[&str]| -> Vec<String> {
        [semel.as_str()].iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    let name = match &guard {
        GuardChoice::Semel => "semel".to_owned(),
        GuardChoice::None => "no guard".to_owned(),
        GuardChoice::Words(words) => words.join(" "),
        GuardChoice::At(url) => url.clone(),
    };
    let mut served = None;
    let subject = match (door, guard) {
        (EvalDoor::Command, guard) => {
            let guard = match guard {
                GuardChoice::Semel => semel_words(&["run", "--key", "{step}", "--"]),
                GuardChoice::Words(words) => words,
                _ => Vec::new(),
            };
            EvalSubject::Command { guard, tool }
        }
        (EvalDoor::Mcp, guard) => {
            let guard = match guard {
                GuardChoice::Semel => semel_words(&["mcp", "--name", "world", "--"]),
                GuardChoice::Words(words) => words,
                _ => Vec::new(),
            };
            EvalSubject::Mcp { guard, server: tool }
        }
        (EvalDoor::Http, guard) => {
            let listener =
                TcpListener::bind(args.world.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))))?;
            let world = listener.local_addr()?;
            serve_http(listener, directory.to_owned());
            match guard {
                GuardChoice::Semel => {
                    let (child, address) = serve(&semel, directory, world)?;
                    served = Some(child);
                    let host = address.to_string();
                    EvalSubject::Http { address, host, base: "/p/world".to_owned() }
                }
                GuardChoice::At(url) => at(&url)?,
                _ => EvalSubject::Http { address: world, host: world.to_string(), base: String::new() },
            }
        }
    };
    let states = directory.join("state");
    let environment = |number: usize| {
        let state = states.join(number.to_string()).to_string_lossy().into_owned();
        vec![("SEMEL_STATE_DIR".to_owned(), state), ("SEMEL_POLICY".to_owned(), String::new())]
    };
    let is_shown = stderr_is_terminal() && !context.output.quiet;
    let all = scenarios.len();
    let progress = |done: usize| {
        if is_shown {
            let _nobody_looks = write!(std::io::stderr(), "\r{} door: {done} of {all}", door_word(door));
        }
    };
    let results = try_all(scenarios, &subject, directory, &environment, &progress);
    if is_shown {
        let _nobody_looks = write!(std::io::stderr(), "\r{:40}\r", "");
    }
    if let Some(mut child) = served {
        let _gone = child.kill();
        let _reaped = child.wait();
    }
    let results =
        results.with_context(|| format!("{name} could not be tried at the {} door", door_word(door)))?;
    Ok(DoorReport { door: door_word(door), guard: name, numbers: Numbers::of(&results), results })
}

/// `semel serve` in front of the world.
fn serve(semel: &str, directory: &Path, world: SocketAddr) -> anyhow::Result<(Child, SocketAddr)> {
    let policy = directory.join("semel.toml");
    std::fs::write(
        &policy,
        format!(
            "version = 1\n\n[serve]\nrequire_token = false\n\n[upstream.world]\nurl = \"http://{world}\"\n"
        ),
    )?;
    let mut child = Command::new(semel)
        .args(["serve", "--json", "--listen", "127.0.0.1:0", "--policy"])
        .arg(&policy)
        .env("SEMEL_STATE_DIR", directory.join("serve-state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it was asked for")).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line).with_context(|| format!("semel serve said {line:?}"))?;
    let address = told["listen"].as_str().unwrap_or_default();
    Ok((child, address.parse().with_context(|| format!("semel serve said {line:?}"))?))
}

/// A guard that somebody else started.
fn at(url: &str) -> anyhow::Result<EvalSubject> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| anyhow!("--http takes an address that begins with http://"))?;
    let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
    let address = host.to_socket_addrs()?.next().ok_or_else(|| anyhow!("{host} has no address"))?;
    let base = if base.is_empty() { String::new() } else { format!("/{}", base.trim_end_matches('/')) };
    Ok(EvalSubject::Http { address, host: host.to_owned(), base })
}

fn screen(report: &DoorReport) -> String {
    let Numbers { scenarios, ran_twice, lost, wrongly_suppressed, honestly_reported, verified, sent_again } =
        report.numbers;
    let title = format!("{} at the {} door, {scenarios} scenarios", report.guard, report.door);
    let mut text = format!("{}\n", title.bold());
    for (name, value) in [
        ("ran twice", ran_twice.to_string()),
        ("lost", lost.to_string()),
        ("wrongly suppressed", wrongly_suppressed.to_string()),
        ("honestly reported", honestly_reported.to_string()),
        ("verified before retry", format!("{verified} of {sent_again}")),
    ] {
        let _ = writeln!(text, "  {name:<24}{value}");
    }
    let _ =
        writeln!(text, "\n  {:<24}{:>8}{:>8}{:>12}", "the first answer lost", "once", "twice", "not at all");
    for (name, commits) in [("it had happened", true), ("it had not", false)] {
        let counted = |test: fn(&ScenarioResult) -> bool| {
            let of = |result: &&ScenarioResult| result.committed == Some(commits) && test(result);
            report.results.iter().filter(of).count()
        };
        let _ = writeln!(
            text,
            "  {name:<24}{:>8}{:>8}{:>12}",
            counted(|result| result.happened == 1),
            counted(|result| result.happened > 1),
            counted(|result| result.happened == 0),
        );
    }
    let failing: Vec<&ScenarioResult> = report.results.iter().filter(|result| !result.is_right()).collect();
    for result in failing.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "\n  {}: {}", result.name, wrong(result));
        let _ = writeln!(text, "    semel eval --door {} --only '{}'", report.door, result.name);
    }
    if failing.len() > NAMED_MAX {
        let _ = writeln!(text, "\n  {} more; --json lists all", failing.len() - NAMED_MAX);
    }
    text
}

fn wrong(result: &ScenarioResult) -> String {
    let what = match result {
        ScenarioResult { ran_twice: true, .. } => "ran too often",
        ScenarioResult { wrongly_suppressed: true, .. } => "a repeat that was meant did not run",
        _ => "the agent was told what is not so",
    };
    format!("{what} (intended {}, happened {}, told {})", result.intended, result.happened, result.told)
}

/// The hidden command that is the world's tool.
pub fn world(args: &EvalWorldArgs) -> anyhow::Result<ExitCode> {
    let world = World::open(&args.directory);
    let (output, errors) = (std::io::stdout().lock(), std::io::stderr().lock());
    match &args.tool {
        None => {
            mcp_server::serve(&world, std::io::stdin().lock(), output)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(tool) => {
            let args: Value = serde_json::from_str(args.args.as_deref().unwrap_or("{}"))?;
            Ok(ExitCode::from(mcp_server::run_command(&world, tool, &args, output, errors)?))
        }
    }
}
