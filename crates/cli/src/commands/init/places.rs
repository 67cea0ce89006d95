//! Where the clients keep their configurations.

use super::clients::{CLIENTS, Client, Containers};
use super::entry::Place;
use super::{foreign, vscode};
use crate::args::ClientChoice;
use crate::config::Environment;
use crate::output::Hinted;
use std::path::{Path, PathBuf};

/// A place where a configuration may lie.
#[derive(Debug)]
pub struct Candidate {
    pub client: &'static Client,
    pub path: PathBuf,
    /// Where in the file the servers are.
    pub containers: Containers,
    /// Made for other things, too.
    among_others: bool,
    /// In the project rather than in the home: others may share it.
    pub shared: bool,
    /// Why its servers are told of and it is not written, with what a person can do.
    pub hands_off: Option<&'static str>,
}

impl Candidate {
    /// Whether servers may be in a file of this text. One of settings is none of ours without them, and what its client
    /// forgives in it is no fault.
    pub fn may_hold_servers(&self, text: &str) -> bool {
        let is_there = |path: &&[&str]| path.iter().all(|step| text.contains(&format!("{step:?}")));
        !self.among_others || self.containers.iter().any(is_there)
    }

    /// What of the way to a server only this file says: a project of Claude Code.
    pub fn named_within<'a>(&self, place: &'a Place) -> Option<&'a str> {
        let fits = |path: &&&[&str]| {
            path.len() == place.container.len()
                && path.iter().zip(&place.container).all(|(step, name)| *step == "*" || step == name)
        };
        let at = self.containers.iter().find(fits)?.iter().position(|step| *step == "*")?;
        Some(&place.container[at])
    }
}

/// A file that a client reads.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    /// Where servers are among other things; `None` if the file is for servers.
    among_others: Option<Containers>,
    hands_off: Option<&'static str>,
}

impl File {
    pub fn of_servers(path: PathBuf) -> Self {
        File { path, among_others: None, hands_off: None }
    }

    pub fn among_others(path: PathBuf, containers: Containers) -> Self {
        File { path, among_others: Some(containers), hands_off: None }
    }

    pub fn hands_off(self, why: &'static str) -> Self {
        File { hands_off: Some(why), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    Linux,
    MacOs,
    Windows,
}

const HERE: Platform = if cfg!(target_os = "macos") {
    Platform::MacOs
} else if cfg!(windows) {
    Platform::Windows
} else {
    Platform::Linux
};

/// The configurations that are there, each once, of the project first.
pub fn find(environment: &Environment, only: &[ClientChoice]) -> anyhow::Result<Vec<Candidate>> {
    let Some(home) = &environment.home else {
        return Err(Hinted::error(
            "HOME is not set, so the configurations of the clients have no place",
            "HOME=/home/YOU semel init",
        ));
    };
    let mut seen = Vec::new();
    let mut found = candidates(environment, home, HERE);
    found.retain(|candidate| {
        // A home that is also the project has its files under two names.
        let there = candidate.path.symlink_metadata().is_ok();
        let real = candidate.path.canonicalize().unwrap_or_else(|_| candidate.path.clone());
        let wanted = only.is_empty() || only.contains(&candidate.client.choice);
        wanted && there && !seen.contains(&real) && {
            seen.push(real);
            true
        }
    });
    Ok(found)
}

fn candidates(environment: &Environment, home: &Path, platform: Platform) -> Vec<Candidate> {
    let mut found = Vec::new();
    for client in &CLIENTS {
        let project =
            projects(&environment.cwd).flat_map(|directory| project_files(client.choice, directory));
        let user = user_files(client.choice, environment, home, platform);
        let files = project.map(|file| (file, true)).chain(user.into_iter().map(|file| (file, false)));
        found.extend(files.map(|(File { path, among_others, hands_off }, shared)| Candidate {
            client,
            path,
            containers: among_others.unwrap_or(client.containers),
            among_others: among_others.is_some(),
            shared,
            hands_off,
        }));
    }
    found
}

/// From here up to the repository's root; outside of a repository, here alone.
fn projects(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd);
    cwd.ancestors().take_while(move |directory| directory.starts_with(root))
}

fn project_files(client: ClientChoice, directory: &Path) -> Vec<File> {
    let file = |name: &str| vec![File::of_servers(directory.join(name))];
    match client {
        ClientChoice::ClaudeCode => file(".mcp.json"),
        ClientChoice::Cursor => file(".cursor/mcp.json"),
        ClientChoice::VsCode => {
            let mut files = vscode::project_files(directory);
            files.extend(foreign::devcontainers(directory));
            files
        }
        ClientChoice::Gemini => {
            let mut files = file(".gemini/settings.json");
            files.extend(foreign::gemini_extensions(&directory.join(".gemini")));
            files
        }
        ClientChoice::Codex => file(".codex/config.toml"),
        ClientChoice::ClaudeDesktop | ClientChoice::Windsurf => Vec::new(),
    }
}

fn user_files(client: ClientChoice, environment: &Environment, home: &Path, platform: Platform) -> Vec<File> {
    let desktop = desktop(platform, home, environment.xdg_config.as_deref(), environment.app_data.as_deref());
    let or = |directory: &Option<PathBuf>, otherwise: PathBuf| directory.clone().unwrap_or(otherwise);
    let file = |path: PathBuf| vec![File::of_servers(path)];
    match client {
        ClientChoice::ClaudeCode => {
            let mut files = file(or(&environment.claude_config_dir, home.to_owned()).join(".claude.json"));
            files.extend(foreign::claude_plugins(&or(&environment.claude_config_dir, home.join(".claude"))));
            files
        }
        ClientChoice::ClaudeDesktop => file(desktop.join("Claude/claude_desktop_config.json")),
        ClientChoice::Cursor => file(home.join(".cursor/mcp.json")),
        ClientChoice::VsCode => {
            let mut files = vscode::user_files(home, &desktop);
            files.extend(foreign::vscode_of_flatpak(home));
            files
        }
        // The editor, its preview, and the plugin for other editors.
        ClientChoice::Windsurf => {
            ["windsurf/mcp_config.json", "windsurf-next/mcp_config.json", "mcp_config.json"]
                .map(|name| File::of_servers(home.join(".codeium").join(name)))
                .into()
        }
        ClientChoice::Gemini => {
            let gemini = or(&environment.gemini_home, home.to_owned()).join(".gemini");
            let mut files = file(gemini.join("settings.json"));
            files.extend(foreign::gemini_extensions(&gemini));
            files
        }
        ClientChoice::Codex => file(or(&environment.codex_home, home.join(".codex")).join("config.toml")),
    }
}

/// What lies in a directory, by name: in another order the answer would be another one each time.
pub fn inside(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Where programs with a window keep what belongs to a person.
fn desktop(platform: Platform, home: &Path, xdg_config: Option<&Path>, app_data: Option<&Path>) -> PathBuf {
    let or = |directory: Option<&Path>, otherwise: &str| {
        directory.map_or_else(|| home.join(otherwise), Path::to_owned)
    };
    match platform {
        Platform::Linux => or(xdg_config, ".config"),
        Platform::MacOs => home.join("Library/Application Support"),
        Platform::Windows => or(app_data, "AppData/Roaming"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_a_window_keep_their_files_where_the_platform_does() {
        let (home, other) = (Path::new("/home/a"), Path::new("/other"));
        for (platform, plain, told) in [
            (Platform::Linux, "/home/a/.config", "/other"),
            (Platform::MacOs, "/home/a/Library/Application Support", "/home/a/Library/Application Support"),
            (Platform::Windows, "/home/a/AppData/Roaming", "/other"),
        ] {
            assert_eq!(desktop(platform, home, None, None), Path::new(plain));
            assert_eq!(desktop(platform, home, Some(other), Some(other)), Path::new(told));
        }
    }

    #[test]
    fn a_project_ends_at_the_root_of_its_repository() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let inner = directory.path().join("repo/a/b");
        std::fs::create_dir_all(&inner).expect("directories");
        assert_eq!(projects(&inner).count(), 1, "outside of a repository it is the directory alone");
        std::fs::create_dir(directory.path().join("repo/.git")).expect("a repository");
        let names: Vec<_> =
            projects(&inner).map(|path| path.file_name().expect("a name").to_owned()).collect();
        assert_eq!(names, ["b", "a", "repo"]);
    }
}
