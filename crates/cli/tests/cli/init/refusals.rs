//! Files and entries that `semel init` leaves alone, and how it says so.

use super::scene::{SEMEL, Scene};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const GOOD: &str = "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": []}}}\n";

#[test]
fn what_cannot_be_read_is_left_alone_and_the_others_go_on() {
    let scene = Scene::new();
    scene.file(".cursor/mcp.json", GOOD);
    let broken = [
        ("work/.mcp.json", "{\n  \"mcpServers\": {\"a\": {\"command\": hunter2}}\n}", "line 2, column"),
        (
            ".claude.json",
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "line 1, column 20: \"mcpServers\" stands",
        ),
        (".codex/config.toml", "[mcp_servers.a]\ncommand = \"npx\"\nkey = hunter2\n", "line 3, column"),
    ];
    for (file, content, _) in broken {
        scene.file(file, content);
    }
    let ran = scene.init(["--write"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for (file, content, place) in broken {
        assert_eq!(scene.read(file), content);
        let path = scene.home.path().join(file);
        let line = ran.stderr.lines().find(|line| line.contains(path.to_str().expect("text")));
        assert!(line.is_some_and(|line| line.contains(place)), "{file}: {ran:?}");
    }
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    assert!(scene.read(".cursor/mcp.json").contains(SEMEL));
    let document = scene.init(["--json"]).json();
    let failed = document["files"].as_array().expect("files").iter().filter(|file| file["state"] == "failed");
    assert_eq!(failed.count(), 3);
}

#[test]
fn files_that_must_not_be_written_are_not() {
    let scene = Scene::new();
    let path = scene.file(".cursor/mcp.json", GOOD);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("its mode");
    fs::create_dir_all(scene.home.path().join(".gemini/settings.json")).expect("a directory of that name");
    fs::create_dir_all(scene.home.path().join(".codex")).expect("a directory");
    fs::write(scene.home.path().join(".codex/config.toml"), b"a = \"\xff\"\n").expect("a file");
    symlink("nowhere", scene.home.work().join(".mcp.json")).expect("a link");
    let ran = scene.init(["--write"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for what in ["is read-only (mode 400)", "is not a regular file", "is not valid UTF-8", "cannot be read"] {
        assert!(ran.stderr.contains(what), "{what}: {ran:?}");
    }
    assert!(ran.stdout.ends_with("Nothing is written; see the errors.\n"), "{ran:?}");
    assert_eq!(scene.read(".cursor/mcp.json"), GOOD);
    assert!(!scene.backup(".cursor/mcp.json").exists());
}

#[test]
#[ignore = "gives a file away: run it as root with --ignored"]
fn a_file_of_somebody_else_is_not_written() {
    let scene = Scene::new();
    let path = scene.file(".cursor/mcp.json", GOOD);
    std::os::unix::fs::chown(&path, Some(12345), None).expect("only root can give a file away");
    let ran = scene.init(["--write"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("belongs to another user (uid 12345)"), "{ran:?}");
    assert_eq!(scene.read(".cursor/mcp.json"), GOOD);
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let scene = Scene::new();
    let real = scene.file("dotfiles/cursor.json", GOOD);
    fs::create_dir(scene.home.path().join(".cursor")).expect("a directory");
    let link = scene.home.path().join(".cursor/mcp.json");
    symlink(&real, &link).expect("a link");
    scene.done(["--write"]);
    assert!(link.symlink_metadata().expect("a link").is_symlink());
    assert!(scene.read("dotfiles/cursor.json").contains(SEMEL));
    assert_eq!(fs::read_to_string(scene.backup("dotfiles/cursor.json")).expect("a backup"), GOOD);
}

#[test]
fn without_a_home_or_with_a_name_that_nobody_has_nothing_happens() {
    let scene = Scene::new();
    scene.file(".cursor/mcp.json", GOOD);
    let mut command = scene.home.command(["init"]);
    let homeless = crate::home::Ran::of(command.env_remove("HOME").output().expect("semel starts"));
    assert_eq!(homeless.code, Some(2), "{homeless:?}");
    assert!(homeless.stderr.contains("HOME is not set"), "{homeless:?}");
    let unknown = scene.init(["--server", "b", "--write"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("no configuration has a server \"b\""), "{unknown:?}");
    assert_eq!(scene.read(".cursor/mcp.json"), GOOD);
    scene.file("work/.mcp.json", &GOOD.replace("\"a\"", "\"b\""));
    let elsewhere = scene.init(["--client", "cursor", "--server", "b", "--write"]);
    assert_eq!(elsewhere.code, Some(2), "{elsewhere:?}");
    assert!(elsewhere.stderr.contains("that --client cursor chooses has a server \"b\""), "{elsewhere:?}");
    let none = Scene::new();
    assert!(none.done::<&str>([]).stdout.starts_with("No configuration"));
}

#[test]
fn entries_that_a_process_cannot_stand_for_are_left_alone_with_the_reason() {
    let scene = Scene::new();
    let servers = [
        ("bearer", r#"{"url": "https://x.example/mcp", "headers": {"X-Team": "blue"}}"#, "OAuth"),
        (
            "oauth",
            r#"{"url": "https://x.example/mcp", "headers": {"Authorization": "x"}, "auth": {}}"#,
            "(auth)",
        ),
        (
            "old",
            r#"{"type": "sse", "url": "https://x.example/sse", "headers": {"Authorization": "x"}}"#,
            "SSE",
        ),
        (
            "leaky",
            r#"{"url": "https://x.example/mcp?token=hunter2", "headers": {"X-Key": "x"}}"#,
            "holds a secret",
        ),
        (
            "served",
            r#"{"url": "http://127.0.0.1:7777/mcp/billing", "headers": {"Authorization": "x"}}"#,
            "by semel serve",
        ),
        ("line", r#"{"command": "npx -y thing"}"#, "a line for a shell"),
        ("both", r#"{"command": "npx", "url": "https://x.example"}"#, "both"),
        ("empty", "{}", "neither"),
        ("text", "\"npx\"", "not an object"),
        ("numbers", r#"{"command": "npx", "args": [1]}"#, "not a list of texts"),
        ("-x", r#"{"command": "npx"}"#, "cannot stand on a command line"),
        ("by-hand", r#"{"command": "npx", "args": ["-y", "semel", "mcp", "--", "thing"]}"#, "by npx"),
    ];
    let entries: Vec<String> =
        servers.iter().map(|(name, entry, _)| format!("\"{name}\": {entry}")).collect();
    let content = format!("{{\"mcpServers\": {{\n{}\n}}}}\n", entries.join(",\n"));
    scene.file(".cursor/mcp.json", &content);
    let ran = scene.done(["--write"]);
    for (name, _, why) in servers {
        let line = ran.stdout.lines().find(|line| line.split(' ').next() == Some(name)).unwrap_or_default();
        assert!(line.contains(why), "{name}: {ran:?}");
    }
    assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
    assert_eq!(scene.read(".cursor/mcp.json"), content);
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read(".cursor/mcp.json"), content, "what semel init did not write it does not undo");
}

#[test]
fn a_mark_at_the_beginning_and_names_that_need_escapes_survive() {
    let scene = Scene::new();
    let content = "\u{feff}{\"mcpServers\": {\"a \\\"b\\\" \\u001b[31m\": {\"command\": \"npx\"}}}";
    scene.file(".cursor/mcp.json", content);
    let ran = scene.done(["--color", "always", "--write"]);
    assert!(!ran.stdout.contains("\u{1b}[31ma") && ran.stdout.contains("\\u{1b}[31m"), "{ran:?}");
    let written = scene.read(".cursor/mcp.json");
    assert!(
        written.starts_with('\u{feff}')
            && written.contains(r#""--name", "a -b- --31m", "--any-directory", "--""#),
        "{written}"
    );
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read(".cursor/mcp.json"), content);
}
