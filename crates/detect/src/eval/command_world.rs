//! The world as a command.

use super::world::{ToolReply, World, wait_for_late_effects, wait_for_slow_answer};
use serde_json::Value;
use std::io::{self, Write};

/// Carries out one call, and gives its exit code.
pub fn run(
    world: &World,
    tool: &str,
    args: &Value,
    mut output: impl Write,
    mut errors: impl Write,
) -> io::Result<u8> {
    Ok(match world.call(tool, args)? {
        ToolReply::Success(words) => {
            writeln!(output, "{words}")?;
            0
        }
        ToolReply::Slow(words) => {
            wait_for_slow_answer();
            writeln!(output, "{words}")?;
            0
        }
        ToolReply::Error(_, words) => {
            writeln!(errors, "{words}")?;
            1
        }
        ToolReply::Lost => {
            writeln!(errors, "connection reset by peer")?;
            wait_for_late_effects();
            1
        }
        ToolReply::Crash => std::process::abort(),
    })
}
