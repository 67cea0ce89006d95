//! Where VS Code keeps its servers: in files of their own since 1.102, among the settings before, and both of them
//! for the person, each profile, the other end of a remote window, and the workspace.

use super::clients::Containers;
use super::places::{File, inside};
use std::path::{Path, PathBuf};

/// A setting's name is a path, whether it is written as one or not.
pub const SETTINGS: Containers = &[&["mcp", "servers"], &["mcp.servers"]];
pub const WORKSPACE: Containers = &[&["settings", "mcp", "servers"], &["settings", "mcp.servers"]];

/// The editions that share its files' form.
const EDITIONS: [&str; 4] = ["Code", "Code - Insiders", "Code - OSS", "VSCodium"];

/// What runs at the other end of a remote window keeps its files here.
const SERVERS: [&str; 4] =
    [".vscode-server", ".vscode-server-insiders", ".vscode-remote", ".vscodium-server"];

pub fn project_files(directory: &Path) -> Vec<File> {
    let mut files =
        vec![File::of_servers(directory.join(".vscode/mcp.json")), settings(directory.join(".vscode"))];
    let workspaces = inside(directory)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "code-workspace"));
    files.extend(workspaces.map(|path| File::among_others(path, WORKSPACE)));
    files
}

/// `desktop` is where programs with a window keep their files. The snap keeps them there as well.
pub fn user_files(home: &Path, desktop: &Path) -> Vec<File> {
    let mut files = edition_files(desktop);
    for server in SERVERS {
        let data = home.join(server).join("data");
        files.push(File::of_servers(data.join("User/mcp.json")));
        files.push(settings(data.join("Machine")));
    }
    files
}

/// What all editions keep below a directory for programs with a window.
pub fn edition_files(desktop: &Path) -> Vec<File> {
    let mut files = Vec::new();
    for edition in EDITIONS {
        let user = desktop.join(edition).join("User");
        let profiles = inside(&user.join("profiles"));
        for directory in std::iter::once(user).chain(profiles) {
            files.push(File::of_servers(directory.join("mcp.json")));
            files.push(settings(directory));
        }
    }
    files
}

fn settings(directory: PathBuf) -> File {
    File::among_others(directory.join("settings.json"), SETTINGS)
}
