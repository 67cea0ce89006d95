//! The judgement of a line: pass, bracket or deny.

use crate::json::Json;
use crate::policy::{Policy, Rule};
use std::ops::Range;
use std::sync::Arc;

/// What becomes of a command line.
#[derive(Debug, Clone)]
pub enum Judgement {
    /// Nothing in it is guarded: it runs as it is, and no ledger is opened.
    Pass,
    /// One guarded command, whose end is known from the end of the line.
    Bracket(Box<Guarded>),
    /// Guarded commands whose end nobody could tell, or a line that nobody could read.
    Deny(Denial),
}

/// The one guarded command of a line.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// The pipeline that it ends, as bytes of the line.
    pub range: Range<usize>,
    /// Names the command to an agent: `gh pr create`.
    pub name: String,
    /// `cli:PROGRAM`, or of curl, wget and httpie `http:METHOD HOST/PATH`.
    pub action: String,
    /// As rules and keys know them: of a command `argv`, `cwd`, `stdin` (a digest, of a here-document or here-string) and
    /// `env` (variables set for it in the line); of a request `path`, `query`, `body`, `headers`.
    pub arguments: Json,
    /// Whether the arguments are all there is to know. If not (`$X`, `$(…)`, a glob, piped input), an equal call may be
    /// another one: it is a lookalike, and never answered from the record.
    pub is_known: bool,
    /// The rule that guards it, without an upstream key: nothing can be put into the command.
    pub rule: Arc<Rule>,
}

/// Guarded commands that must be run by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Names of the commands, in their order and each once: `git push`. Of a line that is not read, its programs.
    pub names: Vec<String>,
    pub reason: DenialReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialReason {
    /// It stands where its end is not told by the end of the line.
    Place,
    /// There are several, and each must be run by itself.
    Several,
    /// The line could not be read: an open quote, say.
    Unreadable,
}

impl Guarded {
    /// The line with the pipeline between two commands: `before && PIPELINE && behind`.
    pub fn bracketed(&self, line: &str, before: &str, behind: &str) -> String {
        let Range { start, end } = self.range;
        format!("{}{before} && {} && {behind}{}", &line[..start], &line[start..end], &line[end..])
    }
}

/// Judges a line that a shell runs in `cwd`. The policy is one for shells: [`Policy::for_shell`].
pub fn judge(_line: &str, _cwd: &str, _policy: &Policy) -> Judgement {
    Judgement::Pass
}
