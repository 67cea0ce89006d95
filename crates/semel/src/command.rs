//! Command-line tools that agents call: safe to repeat, or a change that takes a key and a dry run. The feature `command`.
//!
//! Each subcommand is one of two kinds, and its help tells `semel check` which:
//!
//! - a **safe** one says [`SAFE`] behind its help;
//! - a **changing** one flattens [`ChangeArgs`], which are `--idempotency-key` and `--dry-run`, and answers with a member
//!   `effect`: `created`, `updated`, `deleted`, `sent`, `noop`, or `would_create` and its like.
//!
//! [`ChangeArgs::run`] makes the change at most once, by the ledger of [`crate::Semel::open`]: a repeat under the same key
//! answers `noop`, and so does one without a key and with the same arguments, for as long as the policy's `window`. A tool
//! that keeps keys itself, or hands them to its upstream, takes [`ChangeArgs::key`] and builds the [`Change`]; that alone
//! prevents no repeat.
//!
//! A whole tool, `examples/notes.rs`, which scores 3 by `semel check`:
//!
//! ```no_run
#![doc = include_str!("../examples/notes.rs")]
//! ```

use crate::call::BadCall;
use crate::{Effect, Error, Failure, Semel};
use clap::{Args, Command};
use semel_core::answer::Would;
use semel_core::identity::{IntentDigest, Sorting, sort};
use semel_core::json::{self, Json};
use semel_gate::clock::block_on;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::future::ready;
use std::io::Write;
use std::process::ExitCode;

pub use crate::call::settle::DoneWord;
pub use semel_core::answer::EffectWord;
pub use semel_core::ids::IdempotencyKey;
/// The line of a help that marks a subcommand as safe to repeat: `#[command(after_help = SAFE)]`.
pub use semel_core::judgement::recognise::SAFE_TO_REPEAT as SAFE;

// As `semel run` has them.
const EXIT_NOTHING_DONE: u8 = 120;
const EXIT_SEMEL_FAILED: u8 = 125;

#[cfg_attr(doc, doc = "The options of a subcommand that changes something.")]
#[cfg_attr(not(doc), allow(missing_docs, reason = "clap would take it for the help of each subcommand"))]
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
    /// A key for this command: the same command again under it changes nothing and answers `noop`.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Say what would change, and change nothing.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

impl ChangeArgs {
    /// Makes a change at most once, or says what it would be. NAME is the subcommand's, without spaces; the ledger shows it
    /// as `fn:NAME`. `change` returns the members of the answer. Its own `effect` wins over `word`, such as a `noop` where
    /// there was nothing left to do.
    ///
    /// An error leaves a doubt, which holds the repeats, unless `change` calls [`Effect::refused`] before it.
    pub fn run<E: Display>(
        &self,
        word: DoneWord,
        name: &str,
        arguments: Value,
        change: impl FnOnce(&Effect) -> Result<Value, E>,
    ) -> Result<Change, Failure<E>> {
        let semel = Semel::open().map_err(Failure::Semel)?;
        let call = semel.once(name).arguments(arguments);
        let call = match &self.idempotency_key {
            Some(key) => call.key(key.as_str()),
            None => call,
        };
        if self.dry_run {
            let foreseen = block_on(call.dry_run()).map_err(Failure::Semel)?.dry_run;
            let runs = foreseen.as_ref().is_some_and(|dry_run| dry_run.would == Would::Run);
            return Ok(Change::would(if runs { word } else { DoneWord::Noop }.into(), json!(foreseen)));
        }
        let word = EffectWord::from(word);
        let tool = |effect: Effect| ready(change(&effect).map(|done| with_effect(done, word, false)));
        let word_of = |done: &Value| DoneWord::deserialize(&done["effect"]).ok();
        let done = block_on(call.run_or_repeat(tool, word_of));
        semel.flush();
        match done {
            Ok((done, true)) => Ok(Change::noop(done, "It was done before; nothing was changed.")),
            Ok((done, false)) => {
                let effect = word_of(&done).map_or(word, EffectWord::from);
                Ok(Change::new(effect, done, effect.word()))
            }
            Err(Failure::ReplyUnknown { why, .. }) => {
                Ok(Change::noop(json!({"reason": why}), format!("It was done before, but {why}.")))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The key that was given, or the one that `semel key fn:NAME --args JSON` prints for these arguments where no policy
    /// has a rule for them. For a tool that keeps keys itself.
    pub fn key(&self, name: &str, arguments: &Value) -> Result<String, Error> {
        if let Some(key) = &self.idempotency_key {
            return Ok(key.as_str().to_owned());
        }
        let arguments =
            json::parse(&arguments.to_string()).map_err(|error| BadCall::new(error.to_string()))?;
        let arguments = Json::object([("args", arguments)]);
        let identity = sort(&arguments, &Sorting::default()).identity;
        Ok(IntentDigest::of(&format!("fn:{name}"), &identity).idempotency_key())
    }
}

/// The answer of a subcommand that changes something.
#[derive(Debug)]
#[must_use]
pub struct Change {
    /// What it did, or would do.
    pub effect: EffectWord,
    /// One object, for programs. Its `effect` is the one above.
    pub document: Value,
    /// The same, for people.
    pub text: String,
    /// Said to people after the answer.
    pub hint: Option<String>,
    /// How the process ends.
    pub code: ExitCode,
}

impl Change {
    /// A change with its answer, for programs and for people.
    pub fn new(effect: EffectWord, document: Value, text: impl Into<String>) -> Change {
        let document = with_effect(document, effect, true);
        Change { effect, document, text: text.into(), hint: None, code: ExitCode::SUCCESS }
    }

    /// Something is there that was not.
    pub fn created(document: Value, text: impl Into<String>) -> Change {
        Change::new(EffectWord::Created, document, text)
    }

    /// Something is different.
    pub fn updated(document: Value, text: impl Into<String>) -> Change {
        Change::new(EffectWord::Updated, document, text)
    }

    /// Something is gone.
    pub fn deleted(document: Value, text: impl Into<String>) -> Change {
        Change::new(EffectWord::Deleted, document, text)
    }

    /// Nothing was left to do.
    pub fn noop(document: Value, text: impl Into<String>) -> Change {
        Change::new(EffectWord::Noop, document, text)
    }

    /// A dry run: the effect that it would have.
    pub fn would(effect: EffectWord, document: Value) -> Change {
        let effect = effect.would();
        Change::new(effect, document, format!("{effect} (dry run; nothing was changed)"))
    }
}

fn with_effect(document: Value, effect: EffectWord, replace: bool) -> Value {
    let mut members = match document {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => Map::from_iter([("data".to_owned(), other)]),
    };
    if replace || !members.contains_key("effect") {
        members.insert("effect".to_owned(), effect.word().into());
    }
    Value::Object(members)
}

/// Prints the answer, for people or as one JSON document, and says how the process ends. 0: it is done, or was done before.
/// 120: nothing was done. 121: in doubt. 122: in flight. 123: the key came with other arguments. 125: semel failed.
pub fn answer<E: Display>(change: Result<Change, Failure<E>>, json: bool) -> ExitCode {
    let failure = match change {
        Ok(Change { document, text, hint, code, .. }) => {
            let shown = match json {
                true => document.to_string(),
                false => text,
            };
            let talk = hint.filter(|_| !json).map_or(Ok(()), |hint| writeln!(std::io::stderr(), "{hint}"));
            return match writeln!(std::io::stdout(), "{shown}").and(talk) {
                Ok(()) => code,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(failure) => failure,
    };
    let document = match &failure {
        Failure::InDoubt { answer, .. } | Failure::Held(answer) | Failure::Unrecorded(answer) => {
            json!(answer)
        }
        Failure::Refused(error) => json!({"ok": false, "effect": "none", "error": error.to_string()}),
        other => json!({"ok": false, "effect": "unknown", "error": other.to_string()}),
    };
    // Whoever cannot be told still gets the exit code.
    let _unheard = writeln!(std::io::stderr(), "error: {failure}");
    let _unheard = json.then(|| writeln!(std::io::stdout(), "{document}"));
    ExitCode::from(match &failure {
        Failure::InDoubt { answer, .. } | Failure::Held(answer) | Failure::Unrecorded(answer) => {
            answer.trouble.as_ref().and_then(|trouble| trouble.code.exit()).unwrap_or(EXIT_NOTHING_DONE)
        }
        Failure::Refused(_) => EXIT_NOTHING_DONE,
        Failure::ReplyUnknown { .. } => 0,
        Failure::Read(_) => 1,
        Failure::Semel(_) => EXIT_SEMEL_FAILED,
    })
}

/// The subcommands that are neither safe nor a change, or both. The test of a tool asserts that there are none.
pub fn unmarked(mut tool: Command) -> Vec<String> {
    tool.build();
    let mut found = Vec::new();
    collect(&tool, "", &mut found);
    found
}

fn collect(command: &Command, name: &str, found: &mut Vec<String>) {
    let below = command.get_subcommands().filter(|part| !part.is_hide_set() && part.get_name() != "help");
    let mut below = below.peekable();
    if below.peek().is_none() {
        let takes = |long: &str| {
            command
                .get_arguments()
                .any(|arg| arg.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long)))
        };
        let changes = takes("idempotency-key") && takes("dry-run");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if changes == help.lines().any(|line| line == SAFE) {
            found.push(name.trim().to_owned());
        }
    }
    below.for_each(|part| collect(part, &format!("{name} {}", part.get_name()), found));
}
