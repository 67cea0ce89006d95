//! Scores a command-line tool from 0 to 3.
//!
//! | score | the tool |
//! |---|---|
//! | 0 | has no mechanism: a retry is a duplicate |
//! | 1 | takes `--idempotency-key` with some commands |
//! | 2 | takes it with every command that changes something, and every response has `effect` |
//! | 3 | also has `--dry-run` with each of them |

use super::help::{self, HelpText};
use crate::child_process::{self, Ran, command};
use semel_core::class::Class;
use semel_core::judgement::recognise::{Annotations, SAFE_TO_REPEAT, class};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::time::Duration;

/// How long a help text or an example may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How deep subcommands are followed, and how many in all.
const DEPTH_MAX: usize = 3;
const COMMANDS_MAX: usize = 150;
/// A tool with more commands that do not answer is not asked any further.
const SILENT_MAX: usize = 3;

#[derive(Debug, Clone, Serialize)]
pub struct CommandCheck {
    pub command: String,
    pub changes_something: bool,
    /// Why it was taken for that.
    pub because: String,
    pub takes_key: bool,
    pub takes_dry_run: bool,
    /// The results of its example in the sandbox.
    pub tried: Option<Trial>,
}

/// An example, run twice under one key, and once as a dry run.
#[derive(Debug, Clone, Default, Serialize, PartialEq, Eq)]
pub struct Trial {
    /// How many effects the sandbox counted for two runs under one key.
    pub effects: u64,
    pub effect_word: Option<String>,
    pub second_effect_word: Option<String>,
    pub second_exit: Option<i32>,
    /// How many effects the dry run had. `None`: it was not tried.
    pub dry_run_effects: Option<u64>,
}

impl Trial {
    /// The deciding test: the second answer is a `noop` with exit 0, and there was one effect.
    pub fn is_once(&self) -> bool {
        self.effects == 1 && self.second_effect_word.as_deref() == Some("noop") && self.second_exit == Some(0)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct ToolReport {
    pub score: u8,
    /// Whether a sandbox proved it. Without one the score is what the help promises at most.
    pub proven: bool,
    pub commands: Vec<CommandCheck>,
    /// Changes to make, in this order.
    pub advice: Vec<String>,
    /// Limits of what was seen.
    pub notes: Vec<String>,
}

/// The commands of a tool, and limits of the walk that people should know.
#[derive(Debug, Default)]
pub struct ToolWalk {
    /// Empty: the tool prints no help.
    pub commands: Vec<CommandCheck>,
    pub notes: Vec<String>,
}

/// Walks the help of a tool: it is run with `--help`. So are the subcommands that its help lists, where that help names the
/// option; a subcommand that does not know it would do its work.
pub fn walk(tool: &[String]) -> io::Result<ToolWalk> {
    let mut found = ToolWalk::default();
    let (mut silent, mut unasked) = (Vec::new(), Vec::new());
    let mut open = vec![(tool.to_vec(), 0)];
    while let Some((words, depth)) = open.pop() {
        let help = if silent.len() < SILENT_MAX { read_help(&words)? } else { None };
        if help.is_none() {
            silent.push(words.join(" "));
        }
        let help = match help {
            None if depth == 0 => return Ok(found),
            help => help.unwrap_or_default(),
        };
        let deeper = depth < DEPTH_MAX && found.commands.len() + open.len() < COMMANDS_MAX;
        if help.subcommands.is_empty() || !deeper {
            found.commands.push(judged(tool.len(), &words, &help));
            continue;
        }
        let below = help.subcommands.iter().map(|name| [&words[..], std::slice::from_ref(name)].concat());
        if help.knows_help {
            open.extend(below.rev().map(|words| (words, depth + 1)));
        } else {
            unasked.push(words.join(" "));
            found.commands.extend(below.map(|words| judged(tool.len(), &words, &HelpText::default())));
        }
    }
    let mut note = |words: &[String], what: &str| {
        found.notes.extend((!words.is_empty()).then(|| format!("{}: {what}", words.join(", "))));
    };
    note(&silent, "no help came within 10 s each, so only the names were read");
    note(
        &unasked,
        "the help does not name --help, so the subcommands were not run and only their names were read",
    );
    if found.commands.iter().all(|check| check.command == tool.join(" ")) {
        found.notes.push("no list of subcommands was found in the help".to_owned());
    }
    Ok(found)
}

/// `None`: it has no help, or hangs.
fn read_help(words: &[String]) -> io::Result<Option<HelpText>> {
    let asked: Vec<String> = words.iter().cloned().chain(["--help".to_owned()]).collect();
    let Some(Ran { stdout, stderr, .. }) = run(&asked)? else { return Ok(None) };
    let text = if stdout.trim().is_empty() { stderr } else { stdout };
    Ok((!text.trim().is_empty()).then(|| help::read(&text)))
}

/// `None`: it did not end in time.
fn run(words: &[String]) -> io::Result<Option<Ran>> {
    let mut command = command(words);
    command.env("NO_COLOR", "1").env("TERM", "dumb").env("PAGER", "cat").env("CI", "1");
    child_process::run(command, PATIENCE)
}

fn judged(tool_words: usize, words: &[String], help: &HelpText) -> CommandCheck {
    // The last word is read as a tool's name, and the words before it as its server's: `pay runs list` lists.
    let action = match words[tool_words..].split_last() {
        Some((name, before)) => format!("mcp:{}/{name}", before.join("-")),
        None => format!("fn:{}", words[0]),
    };
    let hinted = |read_only| class(&action, Annotations { read_only, ..Annotations::default() }, false);
    let reads = |verb: &str| class(&format!("fn:{verb}"), Annotations::default(), false).0 == Class::Read;
    // A verb that no hint makes a read.
    let hint = Annotations { read_only: Some(true), ..Annotations::default() };
    let changes = |verb: &str| class(&format!("fn:{verb}"), hint, false).0 != Class::Read;
    let (mut class, mut because) = hinted(None);
    // The help is a tool's own word. A mark counts always; a description, unless the name speaks against it.
    if help.takes_key {
        if class == Class::Read {
            (class, because) = (Class::Act, "it takes --idempotency-key".to_owned());
        }
    } else if help.is_safe {
        (class, because) = (Class::Read, format!("its help says `{SAFE_TO_REPEAT}`"));
    } else if class != Class::Read && reads(&help.verb) && hinted(Some(true)).0 == Class::Read {
        (class, because) = (Class::Read, format!("its help begins with the read verb `{}`", help.verb));
    } else if class == Class::Read && changes(&help.verb) {
        (class, because) = (Class::Act, format!("its help begins with the verb `{}`", help.verb));
    }
    CommandCheck {
        command: words.join(" "),
        changes_something: !matches!(class, Class::Read | Class::Generate),
        because,
        takes_key: help.takes_key,
        takes_dry_run: help.takes_dry_run,
        tried: None,
    }
}

/// Takes commands, with all below them, for reads: somebody says so. The first that the tool does not have is returned.
pub fn take_for_reads<'r>(
    commands: &mut [CommandCheck],
    tool: &[String],
    reads: &'r [String],
) -> Result<(), &'r str> {
    for name in reads {
        let whole = format!("{} {name}", tool.join(" "));
        let mut of = commands.iter_mut().filter(|check| is_or_below(&check.command, &whole)).peekable();
        if of.peek().is_none() {
            return Err(name);
        }
        of.for_each(|check| (check.changes_something, check.because) = (false, "--reads says so".to_owned()));
    }
    Ok(())
}

fn is_or_below(words: &str, above: &str) -> bool {
    words.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Two callers at once: how many were told that they succeeded, and how many effects there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AtOnce {
    pub succeeded: u64,
    pub effects: u64,
    /// Both came with one idempotency key.
    pub one_key: bool,
}

impl AtOnce {
    /// The verdict, and whether it is a good one.
    pub fn verdict(self) -> (bool, &'static str) {
        match self {
            AtOnce { effects, one_key: true, .. } if effects > 1 => (false, "one key, and it happened twice"),
            AtOnce { succeeded: 0, effects: 0, .. } => {
                (false, "neither caller did anything, so nothing was tried")
            }
            AtOnce { succeeded, effects, .. } if succeeded > effects => {
                (false, "an update was lost: more callers succeeded than effects happened")
            }
            AtOnce { succeeded, effects, .. } if succeeded < effects => {
                (false, "an effect happened that no caller was told of")
            }
            _ => (true, "each caller was told what happened"),
        }
    }
}

/// A command that sets up a place to try things in. It is called with `setup`, `examples`, `count` and `teardown`.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub words: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox's `{step}` did not end within {} s", PATIENCE.as_secs())]
    Hangs { step: String },
    #[error("the sandbox's `{step}` failed: {what}")]
    Failed { step: String, what: String },
    #[error("the sandbox's `count` printed {0:?} instead of a number")]
    Count(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Sandbox {
    fn step(&self, step: &str) -> Result<String, SandboxError> {
        let words: Vec<String> = self.words.iter().cloned().chain([step.to_owned()]).collect();
        match run(&words)? {
            None => Err(SandboxError::Hangs { step: step.to_owned() }),
            Some(ran) if ran.code != Some(0) => {
                Err(SandboxError::Failed { step: step.to_owned(), what: ran.stderr.trim().to_owned() })
            }
            Some(ran) => Ok(ran.stdout),
        }
    }

    fn count(&self) -> Result<u64, SandboxError> {
        let text = self.step("count")?;
        text.trim().parse().map_err(|_| SandboxError::Count(text))
    }

    /// Tries the examples: each line is the arguments of one call of the tool.
    pub fn try_all(&self, tool: &[String], commands: &mut [CommandCheck]) -> Result<(), SandboxError> {
        self.step("setup")?;
        let tried = self.step("examples").and_then(|examples| {
            for (number, line) in examples.lines().filter(|line| !line.trim().is_empty()).enumerate() {
                let args = shlex::split(line).unwrap_or_default();
                let words: Vec<String> = tool.iter().cloned().chain(args).collect();
                let trial = self.try_one(&words, number)?;
                let text = words.join(" ");
                let of = commands.iter_mut().filter(|check| is_or_below(&text, &check.command));
                if let Some(check) = of.max_by_key(|check| check.command.len()) {
                    check.changes_something = true;
                    // One example that fails decides.
                    if check.tried.as_ref().is_none_or(Trial::is_once) {
                        check.tried = Some(trial);
                    }
                }
            }
            Ok(())
        });
        let ended = self.step("teardown");
        tried.and(ended.map(drop))
    }

    /// Runs a command by two callers at once, and counts.
    pub fn try_at_once(&self, words: &[String]) -> Result<AtOnce, SandboxError> {
        self.step("setup")?;
        let tried = (|| {
            let before = self.count()?;
            let both = std::thread::scope(|scope| {
                let other = scope.spawn(|| run(words));
                [run(words), other.join().unwrap_or(Ok(None))]
            });
            // A caller that is told of a repeat claims no effect of its own.
            let claims = |ran: &Option<Ran>| {
                ran.as_ref().is_some_and(|ran| {
                    ran.code == Some(0) && effect_word(&ran.stdout).as_deref() != Some("noop")
                })
            };
            let both = both.into_iter().collect::<io::Result<Vec<_>>>()?;
            let succeeded = both.iter().filter(|ran| claims(ran)).count() as u64;
            let one_key = words.iter().any(|word| word.split('=').next() == Some("--idempotency-key"));
            Ok(AtOnce { succeeded, effects: self.count()?.saturating_sub(before), one_key })
        })();
        let ended = self.step("teardown");
        tried.and_then(|at_once| ended.map(|_| at_once))
    }

    fn try_one(&self, words: &[String], number: usize) -> Result<Trial, SandboxError> {
        // Words behind two dashes belong to another command.
        let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let with = |more: &[&str]| -> Vec<String> {
            let more = more.iter().map(|word| (*word).to_owned());
            words[..own].iter().cloned().chain(more).chain(words[own..].iter().cloned()).collect()
        };
        let key = format!("semel-check-{number}");
        let mut trial = Trial::default();
        let start = self.count()?;
        let dry = run(&with(&["--dry-run"]))?;
        trial.dry_run_effects = dry.map(|_| self.count()).transpose()?.map(|now| now.saturating_sub(start));
        let before = self.count()?;
        for round in 0..2 {
            let ran = run(&with(&["--idempotency-key", &key]))?;
            let word = ran.as_ref().and_then(|ran| effect_word(&ran.stdout));
            if round == 0 {
                trial.effect_word = word;
            } else {
                trial.second_effect_word = word;
                trial.second_exit = ran.and_then(|ran| ran.code);
            }
        }
        trial.effects = self.count()?.saturating_sub(before);
        Ok(trial)
    }
}

/// The member `effect` of a response, which is one JSON document or ends with one.
fn effect_word(output: &str) -> Option<String> {
    let document = |text: &str| serde_json::from_str::<Value>(text).ok();
    let value = document(output.trim()).or_else(|| document(output.trim().lines().last()?))?;
    value.get("effect").and_then(Value::as_str).map(str::to_owned)
}

pub fn report(ToolWalk { commands, notes }: ToolWalk) -> ToolReport {
    let changing: Vec<&CommandCheck> = commands.iter().filter(|check| check.changes_something).collect();
    let proven = !changing.is_empty() && changing.iter().all(|check| check.tried.is_some());
    let all =
        |test: fn(&CommandCheck) -> bool| !changing.is_empty() && changing.iter().all(|check| test(check));
    let is_tried_well = |check: &CommandCheck| {
        check.tried.as_ref().is_none_or(|trial| trial.is_once() && trial.effect_word.is_some())
    };
    let is_dry_well = |check: &CommandCheck| {
        check.takes_dry_run && check.tried.as_ref().is_none_or(|trial| trial.dry_run_effects == Some(0))
    };
    let score = match () {
        () if changing.is_empty() => 3,
        () if all(|check| check.takes_key) && changing.iter().all(|check| is_tried_well(check)) => {
            if changing.iter().all(|check| is_dry_well(check)) { 3 } else { 2 }
        }
        () if changing.iter().any(|check| check.takes_key) => 1,
        () => 0,
    };
    let mut advice = Vec::new();
    let names = |test: &dyn Fn(&CommandCheck) -> bool| -> Vec<String> {
        changing.iter().filter(|check| test(check)).map(|check| format!("`{}`", check.command)).collect()
    };
    let mut advise = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            let more = names.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            advice.push(format!(
                "{what}: {}{more}",
                names.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
    };
    advise("Take --idempotency-key KEY", names(&|check| !check.takes_key));
    let tried = |check: &CommandCheck, test: fn(&Trial) -> bool| check.tried.as_ref().is_some_and(test);
    advise(
        "Do it once: the same key again must change nothing",
        names(&|check| tried(check, |trial| trial.effects != 1)),
    );
    advise(
        "Answer with `effect`: created, updated or deleted, and noop for a repeat, which exits with 0",
        names(&|check| {
            tried(check, |trial| trial.effects == 1 && !(trial.is_once() && trial.effect_word.is_some()))
        }),
    );
    advise("Take --dry-run", names(&|check| !check.takes_dry_run));
    advise(
        "Change nothing in a dry run",
        names(&|check| check.takes_dry_run && tried(check, |trial| trial.dry_run_effects != Some(0))),
    );
    advise(
        "Give the sandbox an example",
        if proven { Vec::new() } else { names(&|check| check.tried.is_none()) },
    );
    ToolReport { score, proven, commands, advice, notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_stronger_than_a_name_and_a_description() {
        let (safe, key) = ("Safe to repeat.\n", "Options:\n  --idempotency-key KEY\n");
        for (name, help, changes) in [
            ("export", "Print them.\n\n", true),
            ("export", safe, false),
            ("show", "Prints.\n\n", false),
            ("show", key, true),
            ("frob", "Show it.\n\nOptions:\n  --idempotency-key KEY\n", true),
            ("export", &format!("{safe}\n{key}"), true),
            ("export", "It is not Safe to repeat.\n", true),
        ] {
            let check = judged(1, &["tool".to_owned(), name.to_owned()], &help::read(help));
            assert_eq!(check.changes_something, changes, "{name}: {help}: {}", check.because);
        }
    }
}
