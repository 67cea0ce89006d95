//! Servers that are told of and whose files are never written.

use super::scene::{SECRET, Scene};

const ENTRY: &str = r#"{"command": "npx", "args": ["-y", "@stripe/mcp", "--api-key=hunter2"]}"#;

/// Where they lie, how they are written around `ENTRY`, whose they are, and a part of the reason.
const FILES: [(&str, &str, &str, &str); 11] = [
    (
        "work/.devcontainer/devcontainer.json",
        "{\"customizations\": {\"vscode\": {\"mcp\": {\"servers\": {\"S\": ENTRY,}}}}} // ours",
        "vscode",
        "in the container",
    ),
    (
        "work/.devcontainer.json",
        r#"{"customizations": {"vscode": {"settings": {"mcp": {"servers": {"S": ENTRY}}}}}}"#,
        "vscode",
        "in the container",
    ),
    (
        "work/.devcontainer/api/devcontainer.json",
        r#"{"customizations": {"vscode": {"settings": {"mcp.servers": {"S": ENTRY}}}}}"#,
        "vscode",
        "in the container",
    ),
    (
        ".var/app/com.visualstudio.code/config/Code/User/mcp.json",
        r#"{"servers": {"S": ENTRY}}"#,
        "vscode",
        "Flatpak",
    ),
    (
        ".var/app/com.vscodium.codium/config/VSCodium/User/profiles/1f/settings.json",
        r#"{"mcp": {"servers": {"S": ENTRY}}}"#,
        "vscode",
        "Flatpak",
    ),
    (
        ".gemini/extensions/pay/gemini-extension.json",
        r#"{"name": "pay", "mcpServers": {"S": ENTRY}}"#,
        "gemini",
        ".gemini/settings.json",
    ),
    (
        "work/.gemini/extensions/pay/gemini-extension.json",
        r#"{"name": "pay", "mcpServers": {"S": ENTRY}}"#,
        "gemini",
        ".gemini/settings.json",
    ),
    ("plugins/flat/.mcp.json", r#"{"S": ENTRY}"#, "claude-code", "a plugin"),
    ("plugins/nested/.mcp.json", r#"{"mcpServers": {"S": ENTRY}}"#, "claude-code", "a plugin"),
    (
        "plugins/manifest/.claude-plugin/plugin.json",
        r#"{"name": "x", "mcpServers": {"S": ENTRY}}"#,
        "claude-code",
        "a plugin",
    ),
    ("plugins/first/.mcp.json", r#"{"S": ENTRY}"#, "claude-code", "a plugin"),
];

fn text(form: &str) -> String {
    form.replace("ENTRY", ENTRY)
}

/// All of them, and the list by which Claude Code knows its plugins.
fn everything() -> Scene {
    let scene = Scene::new();
    for (file, form, ..) in FILES {
        scene.file(file, &text(form));
    }
    let at = |name: &str| format!(r#"{{"installPath": "{}/plugins/{name}"}}"#, scene.home.path().display());
    let several = ["flat", "nested", "manifest", "gone"]
        .map(|name| format!(r#""{name}@m": [{{"version": "0", "scope": "user"}}, {}]"#, at(name)));
    let list =
        format!(r#"{{"version": 2, "plugins": {{{}, "first@m": {}}}}}"#, several.join(", "), at("first"));
    scene.file(".claude/plugins/installed_plugins.json", &list);
    // An older version of a plugin, which nothing starts.
    scene.file("plugins/older/.mcp.json", &text(r#"{"S": ENTRY}"#));
    scene
}

#[test]
fn what_others_write_or_start_elsewhere_is_told_of_and_not_touched() {
    let scene = everything();
    for flags in [&["--json"][..], &["--json", "--write"], &["--json", "--write", "--all"]] {
        let ran = scene.done(flags);
        assert!(!ran.stdout.contains(SECRET) && ran.stderr.is_empty(), "{ran:?}");
        let document = ran.json();
        let items = document["items"].as_array().expect("items");
        assert_eq!(items.len(), FILES.len(), "{document}");
        for (file, form, client, why) in FILES {
            let path = scene.home.path().join(file).display().to_string();
            let item = items.iter().find(|item| item["file"] == path.as_str()).expect(file);
            assert_eq!((&item["server"], &item["client"]), (&"S".into(), &client.into()), "{item}");
            assert_eq!((&item["action"], &item["pack"]), (&"left_alone".into(), &"stripe".into()), "{item}");
            assert!(item["reason"].as_str().expect("a reason").contains(why), "{item}");
            assert_eq!(scene.read(file), text(form), "{file}");
            assert!(!scene.backup(file).exists(), "{file}");
        }
    }
    let shown = scene.done::<&str>([]);
    assert!(shown.stdout.ends_with("Nothing to change.\n"), "{shown:?}");
}

/// Somebody put semel there by hand, by a path that holds in the container.
#[test]
fn semel_in_a_container_counts_and_is_not_taken_out() {
    let scene = Scene::new();
    let file = "work/.devcontainer/devcontainer.json";
    let content = r#"{"customizations": {"vscode": {"mcp": {"servers": {"S":
        {"command": "/opt/semel", "args": ["mcp", "--name", "S", "--", "npx", "-y", "@stripe/mcp"]}}}}}}"#;
    scene.file(file, content);
    let item = &scene.done(["--json", "--write"]).json()["items"][0];
    assert_eq!(
        (&item["action"], item["reason"].as_str()),
        (&"guarded_already".into(), Some(MISNAMED)),
        "{item}"
    );
    let item = &scene.done(["--json", "--undo", "--write"]).json()["items"][0];
    assert_eq!(item["action"], "left_alone", "{item}");
    assert_eq!(scene.read(file), content);
}

const MISNAMED: &str = "the rules of pack:stripe are for a server with stripe in its name";

#[test]
fn a_file_without_servers_is_none_of_ours_whatever_is_wrong_with_it() {
    let scene = Scene::new();
    for file in [
        "work/.devcontainer/devcontainer.json",
        ".gemini/extensions/pay/gemini-extension.json",
        ".claude/plugins/installed_plugins.json",
    ] {
        for content in ["", "{", "{\"customizations\": {\"vscode\": {\"a\": 1, \"a\": 2}}}", "[]"] {
            scene.file(file, content);
            let ran = scene.done(["--write"]);
            assert_eq!(ran.stdout, "No configuration of an MCP client was found here or in your home.\n");
        }
    }
}
