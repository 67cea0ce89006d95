//! The one way in and out of commands that change something: they all take [`ChangeArgs`], and answer with a [`Change`].
//!
//! Most of them converge: the second time there is nothing left to do, whatever key they come with, so the key needs no
//! store. Where a repeat would do more (a token, a quarantine, a secret), the ledger keeps the key beside the thing made.

use crate::context::Context;
use clap::Args;
use semel_core::answer::EffectWord;
use semel_core::digest::Digest;
use semel_core::ids::IdempotencyKey;
use semel_ledger::command_key::CommandKey;
use serde_json::Value;
use std::process::ExitCode;

// The options of every command that changes something. No help text: it would be that of each of them.
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
    /// The key as the ledger keeps it, with the arguments that it stands for.
    pub fn key(&self, arguments: &[&[u8]]) -> Option<CommandKey> {
        let key = self.idempotency_key.as_ref()?;
        Some(CommandKey { key: Digest::plain(key.as_str().as_bytes()), arguments: Digest::of(arguments) })
    }
}

/// The answer of a command that changes something.
#[derive(Debug)]
#[must_use]
pub struct Change {
    pub effect: EffectWord,
    /// One object, for `--json`. Its `effect` is the one above.
    pub document: Value,
    pub text: String,
    /// Said to people after the answer.
    pub hint: Option<String>,
    pub code: ExitCode,
}

impl Change {
    pub fn new(effect: EffectWord, document: Value, text: impl Into<String>) -> Change {
        Change { effect, document, text: text.into(), hint: None, code: ExitCode::SUCCESS }
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

    pub fn answer(mut self, context: &Context) -> ExitCode {
        if context.output.json {
            self.document["effect"] = self.effect.word().into();
            context.output.document(&self.document);
        } else {
            context.output.data(self.text.trim_end());
            self.hint.iter().for_each(|hint| context.output.say(hint));
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::{Command, CommandFactory};

    /// The commands that change nothing: they read, work in a temporary place, or pass calls on that are guarded one by
    /// one. `semel check` is told of those whose names do not say so.
    const READS: &[&str] = &[
        "audit",
        "check",
        "completions",
        "demo",
        "doctor",
        "eval",
        "explain",
        "key",
        "ledger export",
        "ledger find",
        "ledger list",
        "ledger quarantine",
        "ledger reply",
        "ledger runs",
        "ledger show",
        "ledger tail",
        "mcp",
        "policy explain",
        "policy lint",
        "policy presets",
        "policy schema",
        "policy test",
        "serve",
        "stats",
        "token list",
    ];

    fn leaves(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
        let below = command.get_subcommands().filter(|part| !part.is_hide_set() && part.get_name() != "help");
        let below: Vec<&Command> = below.collect();
        if below.is_empty() {
            found.push((name.trim().to_owned(), command.clone()));
        }
        below.into_iter().for_each(|part| leaves(part, &format!("{name} {}", part.get_name()), found));
    }

    #[test]
    fn a_command_changes_nothing_or_takes_a_key_and_a_dry_run() {
        let mut root = Cli::command();
        root.build();
        let mut found = Vec::new();
        leaves(&root, "", &mut found);
        for (name, command) in found {
            let longs = command.get_arguments().flat_map(|arg| arg.get_long_and_visible_aliases());
            let longs: Vec<&str> = longs.flatten().collect();
            let takes_both = ["idempotency-key", "dry-run"].iter().all(|long| longs.contains(long));
            let is_read = |read: &&str| name == *read || name.starts_with(&format!("{read} "));
            assert_ne!(takes_both, READS.iter().any(is_read), "semel {name}");
        }
    }
}
