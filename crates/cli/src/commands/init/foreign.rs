//! Files whose servers are told of and that are never written: another program writes them anew, or what they start
//! runs where this machine's paths do not hold.

use super::clients::Containers;
use super::places::{File, inside};
use super::vscode;
use serde_json::Value;
use std::path::{Path, PathBuf};

const IN_A_CONTAINER: &str = "it runs in the container, where this machine's paths do not hold; \
    with semel in its image, let it start semel mcp there";
const IN_A_SANDBOX: &str = "Flatpak starts it in a sandbox, where this machine's paths need not hold; \
    with semel in the sandbox, let it start semel mcp there";
const OF_AN_EXTENSION: &str = "it belongs to an extension, whose updates write it anew; \
    a server of the same name in .gemini/settings.json takes its place and can be guarded";
const OF_A_PLUGIN: &str = "it belongs to a plugin, whose updates write it anew; \
    switch it off in /mcp and configure it yourself, and it can be guarded";

/// What VS Code puts into the container: servers, and settings of the older form.
const DEVCONTAINER: Containers = &[
    &["customizations", "vscode", "mcp", "servers"],
    &["customizations", "vscode", "settings", "mcp", "servers"],
    &["customizations", "vscode", "settings", "mcp.servers"],
];
const MANIFEST: Containers = &[&["mcpServers"]];
/// A plugin's own file may leave the outer object away.
const PLUGIN: Containers = &[&["mcpServers"], &[]];

/// The editions that there are as Flatpaks.
const FLATPAKS: [&str; 5] = [
    "com.visualstudio.code",
    "com.visualstudio.code.insiders",
    "com.visualstudio.code-oss",
    "com.vscodium.codium",
    "com.vscodium.codium-insiders",
];

/// The three places that the specification of development containers names.
pub fn devcontainers(directory: &Path) -> Vec<File> {
    let folder = directory.join(".devcontainer");
    let mut paths = vec![directory.join(".devcontainer.json"), folder.join("devcontainer.json")];
    paths.extend(inside(&folder).into_iter().map(|inner| inner.join("devcontainer.json")));
    told_of(paths, DEVCONTAINER, IN_A_CONTAINER)
}

pub fn vscode_of_flatpak(home: &Path) -> Vec<File> {
    let configs = FLATPAKS.iter().map(|app| home.join(".var/app").join(app).join("config"));
    configs
        .flat_map(|config| vscode::edition_files(&config))
        .map(|file| file.hands_off(IN_A_SANDBOX))
        .collect()
}

/// `gemini` is a `.gemini`, of a home or of a project.
pub fn gemini_extensions(gemini: &Path) -> Vec<File> {
    let extensions = inside(&gemini.join("extensions"));
    let manifests = extensions.into_iter().map(|extension| extension.join("gemini-extension.json"));
    told_of(manifests, MANIFEST, OF_AN_EXTENSION)
}

/// Those that are installed, by the list that Claude Code keeps: older versions lie beside them.
pub fn claude_plugins(config: &Path) -> Vec<File> {
    let list = std::fs::read(config.join("plugins/installed_plugins.json")).unwrap_or_default();
    let list: Value = serde_json::from_slice(&list).unwrap_or_default();
    let plugins = list["plugins"].as_object().into_iter().flat_map(|plugins| plugins.values());
    // The first version of the list has one installation of each, the second several.
    let installed =
        plugins.flat_map(|plugin| plugin.as_array().map_or(std::slice::from_ref(plugin), Vec::as_slice));
    let mut files = Vec::new();
    for root in installed.filter_map(|installed| installed["installPath"].as_str()) {
        let root = Path::new(root);
        files.extend(told_of([root.join(".mcp.json")], PLUGIN, OF_A_PLUGIN));
        files.extend(told_of([root.join(".claude-plugin/plugin.json")], MANIFEST, OF_A_PLUGIN));
    }
    files
}

fn told_of(paths: impl IntoIterator<Item = PathBuf>, containers: Containers, why: &'static str) -> Vec<File> {
    paths.into_iter().map(|path| File::among_others(path, containers).hands_off(why)).collect()
}
