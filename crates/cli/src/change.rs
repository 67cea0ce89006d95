//! Semel's own commands that change something: [`semel::command`], and what a ledger adds to it.
//!
//! Most of them converge: the second time there is nothing left to do, whatever key they come with, so the key needs no
//! store. Where a repeat would do more (a token, a quarantine, a secret), the ledger keeps the key beside the thing made.

use crate::context::Context;
use semel::command::{Change, ChangeArgs};
use semel_core::digest::Digest;
use semel_ledger::command_key::CommandKey;
use std::process::ExitCode;

/// The key as the ledger keeps it, with the arguments that it stands for.
pub fn key(change: &ChangeArgs, arguments: &[&[u8]]) -> Option<CommandKey> {
    let key = change.idempotency_key.as_ref()?;
    Some(CommandKey { key: Digest::plain(key.as_str().as_bytes()), arguments: Digest::of(arguments) })
}

impl Context {
    pub fn answer(&self, change: Change) -> ExitCode {
        if self.output.json {
            self.output.document(&change.document);
        } else {
            self.output.data(change.text.trim_end());
            change.hint.iter().for_each(|hint| self.output.say(hint));
        }
        change.code
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn a_command_is_safe_or_takes_a_key_and_a_dry_run() {
        assert_eq!(semel::command::unmarked(crate::args::Cli::command()), Vec::<String>::new());
    }
}
