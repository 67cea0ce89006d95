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

pub mod judge;

pub use judge::{Denial, DenialReason, Guarded, Judgement, judge};
