//! Where the clients keep their configurations: the person's file and the project's, of each client.

use super::clients::{CLIENTS, McpClient};
use super::edit::EntryPath;
use crate::args::ClientChoice;
use crate::config::Environment;
use crate::output::Hinted;
use std::path::{Path, PathBuf};

/// A place where a configuration may lie.
#[derive(Debug)]
pub struct Candidate {
    pub client: &'static McpClient,
    pub path: PathBuf,
    /// The project that it lies in, where others may share it, rather than in the home.
    pub project: Option<PathBuf>,
}

impl Candidate {
    /// The directory that the client starts this server in, if it is always the same.
    pub fn directory(&self, place: &EntryPath) -> Option<PathBuf> {
        self.project.clone().or_else(|| self.named_within(place).map(PathBuf::from))
    }

    /// The part of the way to a server that only this file says: a project of Claude Code.
    pub fn named_within<'a>(&self, place: &'a EntryPath) -> Option<&'a str> {
        let fits = |path: &&&[&str]| {
            path.len() == place.container.len()
                && path.iter().zip(&place.container).all(|(step, name)| *step == "*" || step == name)
        };
        let at = self.client.containers.iter().find(fits)?.iter().position(|step| *step == "*")?;
        Some(&place.container[at])
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
pub fn find(environment: &Environment) -> anyhow::Result<Vec<Candidate>> {
    let Some(home) = &environment.settings.home else {
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
        there && !seen.contains(&real) && {
            seen.push(real);
            true
        }
    });
    Ok(found)
}

fn candidates(environment: &Environment, home: &Path, platform: Platform) -> Vec<Candidate> {
    let mut found = Vec::new();
    for client in &CLIENTS {
        let of_project = projects(&environment.settings.cwd).filter_map(|directory| {
            Some((project_file(client.choice, directory)?, Some(directory.to_owned())))
        });
        let of_user = user_files(client.choice, environment, home, platform);
        let files = of_project.chain(of_user.into_iter().map(|path| (path, None)));
        found.extend(files.map(|(path, project)| Candidate { client, path, project }));
    }
    found
}

/// From here up to the repository's root; outside of a repository, here alone.
fn projects(cwd: &Path) -> impl Iterator<Item = &Path> {
    let root = cwd.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(cwd);
    cwd.ancestors().take_while(move |directory| directory.starts_with(root))
}

fn project_file(client: ClientChoice, directory: &Path) -> Option<PathBuf> {
    let name = match client {
        ClientChoice::ClaudeCode => ".mcp.json",
        ClientChoice::Cursor => ".cursor/mcp.json",
        ClientChoice::VsCode => ".vscode/mcp.json",
        ClientChoice::Gemini => ".gemini/settings.json",
        ClientChoice::Codex => ".codex/config.toml",
        ClientChoice::ClaudeDesktop | ClientChoice::Windsurf => return None,
    };
    Some(directory.join(name))
}

fn user_files(
    client: ClientChoice,
    environment: &Environment,
    home: &Path,
    platform: Platform,
) -> Vec<PathBuf> {
    let desktop =
        desktop(platform, home, environment.settings.xdg_config.as_deref(), environment.app_data.as_deref());
    let or = |directory: &Option<PathBuf>, otherwise: PathBuf| directory.clone().unwrap_or(otherwise);
    match client {
        ClientChoice::ClaudeCode => {
            vec![or(&environment.claude_config_dir, home.to_owned()).join(".claude.json")]
        }
        ClientChoice::ClaudeDesktop => vec![desktop.join("Claude/claude_desktop_config.json")],
        ClientChoice::Cursor => vec![home.join(".cursor/mcp.json")],
        ClientChoice::VsCode => ["Code", "Code - Insiders", "VSCodium"]
            .map(|edition| desktop.join(edition).join("User/mcp.json"))
            .into(),
        // The editor, its preview, and the plugin for other editors.
        ClientChoice::Windsurf => {
            ["windsurf/mcp_config.json", "windsurf-next/mcp_config.json", "mcp_config.json"]
                .map(|name| home.join(".codeium").join(name))
                .into()
        }
        ClientChoice::Gemini => {
            vec![or(&environment.gemini_home, home.to_owned()).join(".gemini/settings.json")]
        }
        ClientChoice::Codex => vec![or(&environment.codex_home, home.join(".codex")).join("config.toml")],
    }
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
