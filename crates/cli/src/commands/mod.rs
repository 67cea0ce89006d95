//! One file per command.
pub mod demo;
mod piped;
pub mod run;

use crate::args::Global;
use crate::config::Environment;
use crate::output::Output;

/// What every command is given.
#[derive(Debug)]
pub struct Context {
    pub global: Global,
    pub environment: Environment,
    pub output: Output,
}
