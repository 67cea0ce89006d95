//! Programs by their absolute paths: desktop applications start servers with another search path than a shell's.

use anyhow::Context;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The path of this semel, by which others should start it.
pub fn this_program(search: &OsStr) -> anyhow::Result<String> {
    let running = std::env::current_exe().context("cannot tell where this semel lies")?;
    // A package manager's link outlives the version that it leads to today.
    let linked = on_path("semel", search).filter(|path| {
        path.canonicalize().is_ok_and(|real| running.canonicalize().is_ok_and(|running| real == running))
    });
    let path = linked.unwrap_or(running);
    anyhow::ensure!(path.is_file(), "this semel is no longer at {}", path.display());
    let shown = path.display().to_string();
    path.into_os_string()
        .into_string()
        .map_err(|_| anyhow::anyhow!("the path of this semel, {shown}, is not valid UTF-8"))
}

/// How the command of an entry is to be started.
#[derive(Debug, PartialEq, Eq)]
pub enum Program {
    Absolute(String),
    /// It stays as it is, for a reason that may be worth a word.
    AsItIs(Option<&'static str>),
    /// It is a line for a shell rather than a program.
    StatsLine,
}

pub fn program(command: &str, own_path: bool, search: &OsStr) -> Program {
    if command.contains('$') || command.starts_with('~') {
        // The client puts something in its place.
        return Program::AsItIs(None);
    }
    if Path::new(command).is_absolute() {
        let found = is_executable(Path::new(command));
        return Program::AsItIs((!found).then_some("its command is not there"));
    }
    if command.contains('/') {
        return Program::AsItIs(None);
    }
    if own_path {
        return Program::AsItIs(Some("its command is looked up on its own PATH"));
    }
    match on_path(command, search).and_then(|path| path.into_os_string().into_string().ok()) {
        Some(path) => Program::Absolute(path),
        None if command.contains(char::is_whitespace) => Program::StatsLine,
        None => Program::AsItIs(Some("its command is not on this PATH")),
    }
}

fn on_path(name: &str, search: &OsStr) -> Option<PathBuf> {
    // A relative directory of a search path means another place for every client.
    let directories = std::env::split_paths(search).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_anything_else_stays() {
        let search = OsStr::new("relative:/usr/bin:/bin");
        assert!(matches!(program("sh", false, search), Program::Absolute(path) if path.ends_with("/bin/sh")));
        assert_eq!(
            program("sh", true, search),
            Program::AsItIs(Some("its command is looked up on its own PATH"))
        );
        for command in ["/bin/sh", "${HOME}/bin/x", "$HOME/x", "./server", "~/bin/x"] {
            assert_eq!(program(command, false, search), Program::AsItIs(None), "{command}");
        }
        assert_eq!(program("npx -y thing", false, search), Program::StatsLine);
        assert!(matches!(program("no-such-program", false, search), Program::AsItIs(Some(_))));
    }
}
