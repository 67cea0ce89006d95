//! Reading the command lines that agents give to a shell, as the guard of the hook and the audit do.
//!
//! A line is read into its simple commands, wherever they stand. A command that the policy guards is bracketed if its
//! end tells how it went, and denied elsewhere: one more turn, and no guess. `spec/shell.md` is the normative page.
//!
//! | module | does |
//! |---|---|
//! | `reader` | reads a line into simple commands, each with its place |
//! | `call` | finds the call behind a command: without wrappers, in the words that rules know |
//! | `request` | reads the request that `curl`, `wget` or `http` makes |
//! | `judge` | says for a line: pass, bracket or deny |

mod call;
mod judge;
mod reader;
mod request;

pub use call::{ShellCall, calls, calls_of_argv};
pub use judge::{Denial, DenialReason, Guarded, Judgement, judge};

use std::ops::Range;

/// A simple command as it is written: wrappers and assignments included, redirections left out.
#[derive(Debug, Clone)]
struct Command {
    words: Vec<Word>,
    input: Input,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// As the program gets it; what only the shell knows stands as it is written.
    text: String,
    /// Whether it has nothing that only the shell knows: `$X`, `$(…)`, a glob.
    is_known: bool,
}

impl Default for Word {
    fn default() -> Word {
        Word { text: String::new(), is_known: true }
    }
}

/// The input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Input {
    None,
    /// A here-document or a here-string.
    Text(String),
    /// A pipe or a file.
    Unknown,
}

#[derive(Debug, Clone)]
struct Place {
    /// Of the last command of a pipeline: all of the pipeline, as bytes of the line.
    pipeline: Range<usize>,
    is_last: bool,
    /// Within `$(…)`, backquotes or `<(…)`.
    is_nested: bool,
    /// Nothing tells whether it ran: it stands behind `||`, in a branch, a loop or a function.
    is_conditional: bool,
}
