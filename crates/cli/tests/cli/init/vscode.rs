//! All the files in which VS Code keeps servers, and what it forgives in those that hold none.

use super::scene::{SEMEL, Scene};
use serde_json::Value;

/// As a person writes it, with a gap for the object that holds the servers.
const SERVERS: &str = r#"{
		// pushes to the fork
		"gh": {
			"command": "npx", /* any */
			"args": ["-y", "@modelcontextprotocol/server-github",], // the last one
			"env": { "TOKEN": "hunter2", },
		},
		"tickets": { "type": "http", "url": "https://tickets.example/mcp", "headers": { "Authorization": "Bearer hunter2" } },
	}"#;

const ALONE: &str = "{\n\t// of the person\n\t\"servers\": {},\n\t\"inputs\": [],\n}\n";
const SETTING: &str = "{\r\n\t\"editor.tabSize\": 2, // narrow\r\n\t\"mcp\": {\r\n\t\t\"inputs\": [],\r\n\t\t\"servers\": {},\r\n\t},\r\n\t/* last */\r\n}";
const DOTTED: &str =
    "\u{feff}{\n\t\"http.proxy\": \"http://u:hunter2@proxy\",\n\t\"mcp.servers\": {}, // older\n}\n";
const WORKSPACE: &str = "{\n\t\"folders\": [{ \"path\": \".\" }],\n\t\"settings\": {\n\t\t// ours\n\t\t\"mcp\": { \"servers\": {} },\n\t},\n}\n";
const WORKSPACE_DOTTED: &str = "{ \"folders\": [], \"settings\": { \"mcp.servers\": {} } }";

/// Where they lie on Linux, how each is written, and the way to its servers.
const FILES: [(&str, &str, &[&str]); 15] = [
    ("work/.vscode/mcp.json", ALONE, &["servers"]),
    ("work/.vscode/settings.json", SETTING, &["mcp", "servers"]),
    ("work/shop.code-workspace", WORKSPACE, &["settings", "mcp", "servers"]),
    ("work/two words.code-workspace", WORKSPACE_DOTTED, &["settings", "mcp.servers"]),
    (".config/Code/User/mcp.json", ALONE, &["servers"]),
    (".config/Code/User/settings.json", SETTING, &["mcp", "servers"]),
    (".config/Code/User/profiles/-5c5f1b2a/mcp.json", ALONE, &["servers"]),
    (".config/Code/User/profiles/-5c5f1b2a/settings.json", DOTTED, &["mcp.servers"]),
    (".config/Code/User/profiles/1f2e3d4c/mcp.json", ALONE, &["servers"]),
    (".config/Code - Insiders/User/settings.json", DOTTED, &["mcp.servers"]),
    (".config/Code - Insiders/User/profiles/7a/mcp.json", ALONE, &["servers"]),
    (".config/VSCodium/User/mcp.json", ALONE, &["servers"]),
    (".vscode-server/data/User/mcp.json", ALONE, &["servers"]),
    (".vscode-server/data/Machine/settings.json", SETTING, &["mcp", "servers"]),
    (".vscode-remote/data/Machine/settings.json", DOTTED, &["mcp.servers"]),
];

/// The text with servers in it; the lines end as the others do.
fn with_servers(form: &str) -> String {
    let (before, after) = form.split_once("ervers\": {}").expect("a gap");
    let text = format!("{before}ervers\": {SERVERS}{after}");
    if form.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text }
}

fn comments(text: &str) -> usize {
    text.matches(" // ").count() + text.matches("\t// ").count() + text.matches("/*").count()
}

#[test]
fn every_file_of_vs_code_is_found_shown_written_and_given_back_to_the_byte() {
    let scene = Scene::new();
    for (file, form, _) in FILES {
        scene.file(file, &with_servers(form));
    }
    let shown = scene.done::<&str>([]);
    assert!(!shown.stdout.contains("hunter2"), "{shown:?}");
    let document = scene.done(["--json"]).json();
    for (file, form, container) in FILES {
        assert_eq!(scene.read(file), with_servers(form), "{file}: nothing is written yet");
        let path = scene.home.path().join(file).display().to_string();
        assert!(shown.stdout.contains(&format!("+++ {path}\n")), "{file}: {shown:?}");
        let items = document["items"].as_array().expect("items").iter();
        let here: Vec<&Value> = items.filter(|item| item["file"] == path.as_str()).collect();
        assert_eq!(here.len(), 2, "{file}: {document}");
        for item in here {
            assert_eq!((&item["client"], &item["action"]), (&"vscode".into(), &"guard".into()), "{item}");
            assert_eq!(item["container"], serde_json::json!(container), "{item}");
        }
    }
    assert!(!shown.stdout.contains("(servers)"), "only a name that the file gives is said: {shown:?}");

    scene.done(["--write"]);
    for (file, form, _) in FILES {
        let (before, after) = (with_servers(form), scene.read(file));
        assert_eq!(after.matches(SEMEL).count(), 2, "{file}: {after}");
        assert_eq!(comments(&after), comments(&before), "{file}: {after}");
        assert_eq!(std::fs::read_to_string(scene.backup(file)).expect("a backup"), before, "{file}");
    }
    let again = scene.done(["--write"]);
    assert!(again.stdout.ends_with("Nothing to change.\n"), "{again:?}");

    scene.done(["--undo", "--write"]);
    for (file, form, _) in FILES {
        assert_eq!(scene.read(file), with_servers(form), "{file}");
    }
}

#[test]
fn what_belongs_to_the_workspace_is_said_to() {
    let scene = Scene::new();
    for (file, form, _) in FILES {
        scene.file(file, &with_servers(form));
    }
    let ran = scene.done::<&str>([]);
    let notes: Vec<&str> = ran.stderr.lines().collect();
    let shared = FILES.iter().filter(|(file, ..)| file.starts_with("work/")).count();
    assert_eq!(notes.len(), shared, "{ran:?}");
    assert!(notes.iter().all(|note| note.contains("belongs to the project")), "{ran:?}");
}

/// VS Code forgives in its settings what semel cannot write back with certainty.
#[test]
fn settings_without_servers_are_none_of_ours_whatever_is_wrong_with_them() {
    let scene = Scene::new();
    for settings in [
        "",
        "{",
        "{\"a\": 1, \"a\": 2}",
        "{\"mcp\": {\"inputs\": []}, \"a\": 1, \"a\": 2}",
        "{'chat.mcp.enabled': true}",
        "{\"chat.mcp.discovery.enabled\": true, \"a\": 1, \"a\": 2}",
    ] {
        scene.file(".config/Code/User/settings.json", settings);
        scene.file("work/.vscode/settings.json", settings);
        scene.file("work/a.code-workspace", settings);
        let ran = scene.done(["--write"]);
        assert_eq!(ran.stdout, "No configuration of an MCP client was found here or in your home.\n");
        assert_eq!(scene.read(".config/Code/User/settings.json"), settings);
    }
    let twice = "{\"mcp\": {\"servers\": {\"a\": {\"command\": \"npx\"}}}, \"a\": 1, \"a\": 2}";
    scene.file("work/.vscode/settings.json", twice);
    let ran = scene.init(["--write"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("\"a\" stands here a second time"), "{ran:?}");
    assert_eq!(scene.read("work/.vscode/settings.json"), twice);
}
