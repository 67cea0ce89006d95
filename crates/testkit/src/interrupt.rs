//! Commands that can be interrupted. A shell's background jobs ignore SIGINT, and so do all their children.

use std::process::{Command, Stdio};

/// The same command with SIGINT as it is in the foreground, with the variables that it sets itself, and without input.
pub fn interruptible(command: &Command) -> Command {
    let mut env = Command::new("env");
    env.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    env.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => env.env(name, value),
            None => env.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        env.current_dir(directory);
    }
    env
}
