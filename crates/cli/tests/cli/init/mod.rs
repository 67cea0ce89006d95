//! `semel init` on the configurations of all clients: what it shows, what it writes, and that it can be taken back.

mod refusals;
mod remote;
mod scene;

use scene::{CONFIGS, SECRET, Scene};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn everything() -> Scene {
    let scene = Scene::new();
    for config in &CONFIGS {
        scene.file(config.file, config.before);
    }
    scene
}

#[test]
fn every_client_gets_semel_in_front_and_gives_it_back_to_the_byte() {
    let scene = everything();
    scene.done(["--write"]);
    for config in &CONFIGS {
        assert_eq!(scene.read(config.file), scene.fill_in(config.after), "{}", config.file);
        let mode = fs::metadata(scene.home.path().join(config.file)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", config.file);
        let backup = scene.backup(config.file);
        assert_eq!(fs::read_to_string(&backup).expect("a backup"), config.before, "{}", config.file);
        let mode = fs::metadata(&backup).expect("a backup").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", config.file);
    }
    let again = scene.done(["--write"]);
    assert!(again.stdout.ends_with("Nothing to change.\n"), "{again:?}");
    for config in &CONFIGS {
        assert_eq!(scene.read(config.file), scene.fill_in(config.after), "a second time changes nothing");
        assert!(!scene.backup(config.file).with_extension("semel-backup.2").exists());
    }
    scene.done(["--undo"]);
    assert_eq!(scene.read(CONFIGS[0].file), scene.fill_in(CONFIGS[0].after), "undoing is shown first, too");
    scene.done(["--undo", "--write"]);
    for config in &CONFIGS {
        assert_eq!(scene.read(config.file), config.before, "{}", config.file);
    }
    let again = scene.done(["--undo", "--write"]);
    assert!(again.stdout.ends_with("Nothing to change.\n"), "{again:?}");
}

/// Two servers as semel wrote them, one that somebody has changed, and one that somebody has guarded by hand.
#[test]
fn each_entry_that_is_as_written_is_undone_whatever_else_has_changed_and_the_lines_of_the_others_are_named() {
    let json = "{\n  \"mcpServers\": {\n    \"gh\": {\n      \"command\": \"npx\", // ours\n      \"args\": [\n        \"-y\", // yes\n        \"gh\"\n      ]\n    },\n    \"pay\": {\n      \"url\": \"https://pay.example/mcp\",\n      \"headers\": {\"Authorization\": \"hunter2\"}\n    },\n    \"db\": {\n      \"command\": \"uvx\",\n      \"args\": [\"db\"]\n    }\n  }\n}\n";
    let toml = "[mcp_servers.gh]\ncommand = \"npx\" # ours\nargs = [\n  \"-y\", # yes\n  \"gh\",\n]\n\n[mcp_servers.pay]\nurl = \"https://pay.example/mcp\"\nhttp_headers = { Authorization = \"hunter2\" }\n\n[mcp_servers.db]\ncommand = \"uvx\"\nargs = [\"db\"]\n";
    for (file, before, lines) in
        [(".cursor/mcp.json", json, "in lines "), (".codex/config.toml", toml, "in lines ")]
    {
        let scene = Scene::new();
        scene.file(file, before);
        scene.done(["--write"]);
        let changed = scene.read(file).replace("\"db\"]", "\"db\", \"--fast\"]");
        let by_hand = match file.ends_with("toml") {
            true => format!("theme = \"dark\"\n{changed}\n[mcp_servers.own]\ncommand = \"semel\"\nargs = [\"mcp\", \"--\", \"own\"]\n"),
            false => changed.replacen('{', "{\n  \"theme\": \"dark\",", 1).replacen(
                "\"mcpServers\": {",
                "\"mcpServers\": {\n    \"own\": {\"command\": \"semel\", \"args\": [\"mcp\", \"--\", \"own\"]},",
                1,
            ),
        };
        scene.file(file, &by_hand);
        let ran = scene.done(["--undo", "--write"]);
        let after = scene.read(file);
        let row = |server: &str| {
            let of = |line: &&str| line.split(' ').next() == Some(server);
            ran.stdout.lines().find(of).unwrap_or_else(|| panic!("{server}: {ran:?}")).to_owned()
        };
        for server in ["gh", "pay"] {
            assert!(row(server).contains(" undo "), "{server}: {ran:?}");
        }
        assert!(
            row("db").contains("it is not as semel init wrote it") && row("db").contains(lines),
            "{ran:?}"
        );
        let at = after.lines().position(|line| line.contains("--fast")).expect("the line is there") + 1;
        let named: Vec<usize> =
            row("db").split(' ').filter_map(|word| word.trim_end().parse().ok()).collect();
        assert!(named.len() == 2 && (named[0]..=named[1]).contains(&at), "{at}: {ran:?}\n{after}");
        assert_eq!(after.matches("\"mcp\"").count(), 2, "db and own: {after}");
        for kept in ["dark", "// ours", "// yes", "# ours", "# yes", "https://pay.example/mcp", "hunter2"] {
            assert_eq!(after.contains(kept), before.contains(kept) || kept == "dark", "{kept}: {after}");
        }
        assert!(!ran.stdout.contains(SECRET), "{ran:?}");
    }
}

#[test]
fn clients_and_servers_can_be_chosen() {
    let scene = everything();
    let ran = scene.done(["--client", "codex", "--client", "cursor", "--server", "gh", "--write"]);
    assert_eq!(scene.read(".cursor/mcp.json"), scene.fill_in(CONFIGS[4].after), "{ran:?}");
    assert_eq!(scene.read(".codex/config.toml"), CONFIGS[7].before);
    let ran = scene.done(["--server", "time"]);
    assert!(ran.stdout.ends_with("semel init --server time --write\n"), "{ran:?}");
}

#[test]
fn nothing_is_written_and_no_secret_is_printed_without_being_asked() {
    let scene = everything();
    for flags in [&[][..], &["--json"], &["--undo"], &["--undo", "--json"]] {
        let ran = scene.done(flags);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{flags:?}: {ran:?}");
    }
    for config in &CONFIGS {
        assert_eq!(scene.read(config.file), config.before, "{}", config.file);
        assert!(!scene.backup(config.file).exists());
    }
    let ran = scene.done(["--write"]);
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
    let ran = scene.done(["--undo"]);
    assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
}

#[test]
fn the_whole_answer() {
    let scene = Scene::new();
    scene.file(CONFIGS[0].file, CONFIGS[0].before);
    let ran = scene.done::<&str>([]);
    let expected = r#"--- HOME/work/.mcp.json
+++ HOME/work/.mcp.json
@@ billing @@
- "headers": {"Authorization":"***"}
- "type": "http"
- "url": "${BILLING:-https://billing.example}/mcp"
+ "command": "semel"
+ "args": ["mcp","--name","billing","--url","${BILLING:-https://billing.example}/mcp","--header-env","Authorization=***"]
+ "env": {"{}_HEADER_1":"***"}
+ "type": "stdio"
@@ github @@
- "command": "npx"
- "args": ["-y","@modelcontextprotocol/server-github"]
+ "command": "semel"
+ "args": ["mcp","--name","github","--","npx","-y","@modelcontextprotocol/server-github"]
@@ time @@
- "command": "uvx"
- "args": ["mcp-server-time"]
+ "command": "semel"
+ "args": ["mcp","--name","time","--","uvx","mcp-server-time"]

SERVER   CLIENT       FILE       ACTION      PACK    WHY
billing  Claude Code  .mcp.json  guard       -
github   Claude Code  .mcp.json  guard       github
linear   Claude Code  .mcp.json  left alone  linear  it signs in by OAuth, most likely, which a process cannot do for it; use semel serve, or --server linear if it does not
time     Claude Code  .mcp.json  guard       -

Packs that fit have rules for these servers. They are yours to include, at the top of
~/.config/semel/semel.toml, a file that is not there yet:
  include = ["pack:github"]

Nothing is written yet. To write it: semel init --write
"#;
    assert_eq!(ran.stdout, scene.fill_in(expected));
    let note = "note: HOME/work/.mcp.json belongs to the project; whoever uses it needs semel on the PATH\n";
    assert_eq!(ran.stderr, scene.fill_in(note));
}

#[test]
fn the_document_says_what_happens_to_each_server_and_file() {
    let scene = everything();
    let document = scene.done(["--json", "--write"]).json();
    assert_eq!((&document["schema_version"], &document["next"]), (&1.into(), &serde_json::Value::Null));
    let items = document["items"].as_array().expect("items");
    let of = |server: &str| items.iter().find(|item| item["server"] == server).expect("the server");
    assert_eq!(of("gh")["action"], "guard");
    assert_eq!((&of("gh")["client"], &of("gh")["pack"]), (&"cursor".into(), &"github".into()));
    assert_eq!(of("stripe")["container"], serde_json::json!(["projects", "/srv/shop", "mcpServers"]));
    assert_eq!(of("notes")["reason"], "its command is not there");
    assert!(of("figma")["reason"].as_str().expect("a reason").contains("env_http_headers"));
    let files = document["files"].as_array().expect("files");
    assert_eq!(files.len(), CONFIGS.len());
    for file in files {
        assert_eq!(file["state"], "changed");
        assert!(file["backup"].as_str().expect("a backup").ends_with(".semel-backup"));
        assert!(file["diff"].as_str().expect("a diff").starts_with("--- "));
    }
    let packs = r#"include = ["pack:filesystem", "pack:github", "pack:notion", "pack:playwright", "pack:postgres", "pack:resend", "pack:slack", "pack:stripe"]"#;
    assert_eq!(document["include"], packs);
    let file = scene.home.path().join(".config/semel/semel.toml").display().to_string();
    assert_eq!(document["include_file"], file);
}

#[test]
fn the_packs_to_include_are_those_that_are_missing_and_the_file_is_the_one_that_holds() {
    let scene = Scene::new();
    let entry = |package: &str| format!(r#"{{"command": "npx", "args": ["-y", "{package}"]}}"#);
    let (github, stripe) = (entry("@modelcontextprotocol/server-github"), entry("@stripe/mcp"));
    scene.file("work/.mcp.json", &format!(r#"{{"mcpServers": {{"github": {github}, "stripe": {stripe}}}}}"#));
    let user = ".config/semel/semel.toml";
    scene.file(user, "# mine\ninclude = [\"pack:gh\", \"pack:stripe\"]\n");
    let said = scene.done::<&str>([]).stdout;
    let advice = "at the top of\n~/.config/semel/semel.toml:\n  include = [\"pack:gh\", \"pack:stripe\", \"pack:github\"]\n";
    assert!(said.contains(advice), "{said}");
    let own = scene.file("work/rules.toml", "include = [\"pack:github\"]\n");
    let document = scene.done(["--json", "--policy", "rules.toml"]).json();
    assert_eq!(document["include"], r#"include = ["pack:github", "pack:stripe"]"#);
    assert_eq!(document["include_file"], own.display().to_string());
    // What the project includes need not be said again.
    scene.file("work/semel.toml", "include = [\"pack:github\"]\n");
    let said = scene.done::<&str>([]).stdout;
    assert!(said.contains("Packs that fit, included already: pack:github, pack:stripe\n"), "{said}");
    let document = scene.done(["--json"]).json();
    assert_eq!(
        (&document["include"], &document["include_file"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}

/// A file that git ignores may hold keys, and what lies beside it is not ignored with it.
#[test]
fn nothing_is_left_beside_a_file_and_no_copy_is_for_others() {
    let scene = Scene::new();
    let before = r#"{"mcpServers": {"b": {"command": "npx", "env": {"API_KEY": "hunter2"}}}}"#;
    let path = scene.file("work/.mcp.json", before);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("its mode");
    let listed = || {
        let entries = fs::read_dir(scene.home.work()).expect("a project");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let there = listed();
    let ran = scene.done(["--write"]);
    let backup = scene.backup("work/.mcp.json");
    assert!(ran.stdout.contains(&backup.display().to_string()), "{ran:?}");
    assert_eq!(listed(), there);
    scene.done(["--undo", "--write"]);
    assert_eq!(listed(), there);
    assert_eq!(scene.read("work/.mcp.json"), before);
    let mode = |path: &std::path::Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o600);
    assert_eq!(mode(&scene.home.state().join("init-backups")), 0o700);
    assert_eq!(mode(&path), 0o644, "the file itself is as it was");
}

#[test]
fn a_client_that_keeps_its_files_elsewhere_is_found_there() {
    let scene = Scene::new();
    let codex = scene.file("elsewhere/config.toml", "[mcp_servers.code]\ncommand = \"github-mcp-server\"\n");
    let claude = scene.file("elsewhere/.claude.json", "{\"mcpServers\": {\"a\": {\"command\": \"npx\"}}}");
    let gemini =
        scene.file("elsewhere/.gemini/settings.json", "{\"mcpServers\": {\"b\": {\"command\": \"npx\"}}}");
    let mut command = scene.home.command(["init", "--json"]);
    let elsewhere = scene.home.path().join("elsewhere");
    command.env("CODEX_HOME", &elsewhere).env("CLAUDE_CONFIG_DIR", &elsewhere);
    command.env("GEMINI_CLI_HOME", &elsewhere);
    let document = crate::home::Ran::of(command.output().expect("semel starts")).json();
    let file = |index: usize| document["items"][index]["file"].as_str().expect("a file").to_owned();
    assert_eq!([file(0), file(1), file(2)], [claude, gemini, codex].map(|path| path.display().to_string()));
    assert_eq!(document["items"][2]["pack"], "github");
    assert_eq!(document["items"][2]["reason"], "its command is not on this PATH");
}

#[test]
fn the_preview_and_the_plugin_of_windsurf_have_files_of_their_own() {
    let scene = Scene::new();
    let before = "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\"-y\"]}}}";
    let files = [".codeium/windsurf-next/mcp_config.json", ".codeium/mcp_config.json"];
    for file in files {
        scene.file(file, before);
    }
    scene.done(["--client", "windsurf", "--write"]);
    for file in files {
        assert!(scene.read(file).contains(scene::SEMEL), "{file}");
    }
    scene.done(["--undo", "--write"]);
    for file in files {
        assert_eq!(scene.read(file), before, "{file}");
    }
}

#[test]
fn a_pack_that_does_not_know_the_server_by_its_name_is_said_to() {
    let scene = Scene::new();
    let entry = r#"{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"]}"#;
    scene.file(".cursor/mcp.json", &format!("{{\"mcpServers\": {{\"code\": {entry}, \"gh\": {entry}}}}}"));
    let items = scene.done(["--json"]).json()["items"].clone();
    assert_eq!(items[0]["reason"], "the rules of pack:github are for a server with github in its name");
    assert_eq!(items[1]["reason"], serde_json::Value::Null);
}

/// A name that is good enough for a client's file is not always one for a rule.
#[test]
fn a_server_of_any_name_starts_with_semel_in_front() {
    let scene = Scene::new();
    let before = r#"{"mcpServers": {"@scope/my-server": {"command": "npx"}, "a (b)": {"command": "npx"}}}"#;
    scene.file("work/.mcp.json", before);
    let ran = scene.done(["--absolute", "--write"]);
    assert!(ran.stdout.contains(r#"as "@scope-my-server" in rules and records"#), "{ran:?}");
    let written: serde_json::Value = serde_json::from_str(&scene.read("work/.mcp.json")).expect("JSON");
    for server in ["@scope/my-server", "a (b)"] {
        let args = written["mcpServers"][server]["args"].as_array().expect("args");
        let args: Vec<&str> = args.iter().map(|arg| arg.as_str().expect("a text")).collect();
        let started = scene.home.semel(args);
        assert_eq!(started.code, Some(0), "{server}: {started:?}");
    }
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read("work/.mcp.json"), before);
}

#[test]
fn the_policy_and_the_ledger_that_were_given_hold_for_the_servers() {
    let scene = Scene::new();
    let before = r#"{"mcpServers": {"github": {"command": "npx", "args": ["-y"]}}}"#;
    scene.file("work/.mcp.json", before);
    let flags = ["--policy", "rules.toml", "--ledger", "my ledger.db"];
    let shown = scene.done(flags);
    let work = scene.home.work().display().to_string();
    let hint = format!("semel init --policy {work}/rules.toml --ledger '{work}/my ledger.db' --write\n");
    assert!(shown.stdout.ends_with(&hint), "{shown:?}");
    scene.done(flags.iter().chain(&["--write"]));
    let written: serde_json::Value = serde_json::from_str(&scene.read("work/.mcp.json")).expect("JSON");
    let policy = format!("{work}/rules.toml");
    let ledger = format!("{work}/my ledger.db");
    let words =
        ["mcp", "--policy", "rules.toml", "--ledger", "my ledger.db", "--name", "github", "--", "npx", "-y"];
    assert_eq!(written["mcpServers"]["github"]["args"], serde_json::json!(words));
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read("work/.mcp.json"), before);
    scene.done(flags.iter().chain(&["--absolute", "--write"]));
    let written: serde_json::Value = serde_json::from_str(&scene.read("work/.mcp.json")).expect("JSON");
    let npx = scene.fill_in("HOME/bin/npx");
    let words = ["mcp", "--policy", &policy, "--ledger", &ledger, "--name", "github", "--", &npx, "-y"];
    assert_eq!(written["mcpServers"]["github"]["args"], serde_json::json!(words));
}

/// The command that a client starts for each server of a file.
fn started_by(scene: &Scene, file: &str) -> Vec<(String, Vec<String>)> {
    let written: serde_json::Value = serde_json::from_str(&scene.read(file)).expect("JSON");
    let servers = written["mcpServers"].as_object().expect("servers");
    let words = |entry: &serde_json::Value| {
        let args = entry["args"].as_array().expect("args").iter();
        args.map(|arg| arg.as_str().expect("a text").to_owned()).collect()
    };
    servers
        .values()
        .map(|entry| (entry["command"].as_str().expect("a text").to_owned(), words(entry)))
        .collect()
}

#[test]
fn files_that_others_share_get_words_that_hold_everywhere_and_ones_own_get_whole_paths() {
    let before = r#"{"mcpServers": {"bill": {"command": "docker", "args": ["bill.py"]}}}"#;
    let own = scene::SEMEL.to_owned();
    for (flags, portable) in
        [(&[][..], [true, false]), (&["--portable"], [true, true]), (&["--absolute"], [false, false])]
    {
        let scene = Scene::new();
        let files = ["work/.mcp.json", ".cursor/mcp.json"];
        files.iter().for_each(|file| drop(scene.file(file, before)));
        let ran = scene.done(flags.iter().chain(&["--write"]));
        for (file, portable) in files.into_iter().zip(portable) {
            let (semel, words) = started_by(&scene, file).remove(0);
            let docker = if portable { "docker".to_owned() } else { scene.fill_in("HOME/bin/docker") };
            assert_eq!(semel, if portable { "semel" } else { &own }, "{flags:?} {file}");
            assert!(words.ends_with(&["--".to_owned(), docker, "bill.py".to_owned()]), "{words:?}");
        }
        let note = if portable[0] { "needs semel on the PATH" } else { "hold on this machine only" };
        assert!(ran.stderr.contains(note), "{ran:?}");
        let both = scene.init(["--portable", "--absolute"]);
        assert_eq!(both.code, Some(2), "{both:?}");
    }
}

/// Whatever the clients call them, and in whichever file they are.
#[test]
fn different_commands_never_get_one_name_and_each_of_them_starts() {
    let scene = Scene::new();
    let entry = |word: &str| format!(r#"{{"command": "npx", "args": ["{word}"]}}"#);
    let file = |servers: &[(&str, &str)]| {
        let servers: Vec<_> =
            servers.iter().map(|(name, word)| format!("{name:?}: {}", entry(word))).collect();
        format!(r#"{{"mcpServers": {{{}}}}}"#, servers.join(", "))
    };
    scene.file("work/.mcp.json", &file(&[("a/b", "one"), ("a-b", "two"), ("same", "three")]));
    scene.done(["--client", "claude-code", "--absolute", "--write"]);
    // One that is guarded already keeps its name, and the same command gets the same.
    scene.file(".cursor/mcp.json", &file(&[("a-b", "four"), ("same", "three")]));
    let ran = scene.done(["--client", "cursor", "--write"]);
    assert!(ran.stdout.contains(r#"as "a-b-3" in rules and records"#), "{ran:?}");
    let started: Vec<Vec<String>> = ["work/.mcp.json", ".cursor/mcp.json"]
        .into_iter()
        .flat_map(|file| started_by(&scene, file))
        .map(|(_, words)| words)
        .collect();
    let name =
        |words: &[String]| words[words.iter().position(|word| word == "--name").expect("a name") + 1].clone();
    let names: Vec<String> = started.iter().map(|words| name(words)).collect();
    assert_eq!(names, ["a-b", "a-b-2", "same", "a-b-3", "same"]);
    for words in &started {
        let ran = scene.home.semel(words);
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
}

#[test]
fn the_same_project_starts_in_another_worktree_and_another_project_does_not() {
    let scene = Scene::new();
    fs::remove_dir(scene.home.work().join(".git")).expect("no repository yet");
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.example"]).args(words);
        let ran =
            git.current_dir(scene.home.work()).env("HOME", scene.home.path()).output().expect("git runs");
        assert!(ran.status.success(), "git {words:?}: {ran:?}");
    };
    git(&["init", "-b", "main"]);
    scene.file("work/server.sh", "cat > /dev/null\n");
    scene.file("work/.mcp.json", r#"{"mcpServers": {"bill": {"command": "sh", "args": ["server.sh"]}}}"#);
    scene.done(["--write"]);
    git(&["add", "."]);
    git(&["commit", "-m", "all"]);
    git(&["worktree", "add", "../other"]);
    git(&["clone", ".", "../clone"]);
    let (_, words) = started_by(&scene, "work/.mcp.json").remove(0);
    for (directory, code) in [("work", 0), ("other", 0), ("work", 0), ("clone", 2)] {
        let place = scene.home.path().join(directory);
        let ran = scene.home.command(&words).current_dir(place).output().expect("semel starts");
        assert_eq!(ran.status.code(), Some(code), "{directory}: {ran:?}");
    }
}

#[test]
fn the_diff_masks_variables_headers_and_words_that_look_secret_and_shows_the_rest() {
    let scene = Scene::new();
    let before = r#"{"apiKey": "hunter2", "mcpServers": {
  "a": {"command": "npx", "args": ["-y", "@stripe/mcp", "--api-key=hunter2", "--token", "hunter2", "--tools=all"], "env": {"ANY": "hunter2"}},
  "b": {"url": "https://pay.example/mcp", "headers": {"X-Team": "hunter2", "Authorization": "hunter2"}}}}"#;
    scene.file(".cursor/mcp.json", before);
    for flags in [&[][..], &["--json"], &["--write"], &["--undo"], &["--undo", "--json"]] {
        let ran = scene.done(flags);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{flags:?}: {ran:?}");
        let shown = ran.stdout.replace('\\', "");
        for part in
            ["@stripe/mcp", "--tools=all", "https://pay.example/mcp", "X-Team", "Authorization", "***"]
        {
            assert!(shown.contains(part), "{part} {flags:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_pack_fits_also_what_a_shell_starts() {
    let scene = Scene::new();
    let content = r#"{"mcpServers": {
        "stripe": {"command": "/bin/bash", "args": ["-c", "npx -y @stripe/mcp --api-key=hunter2"]},
        "stripe-sh": {"command": "/bin/sh", "args": ["-lc", "cd /srv && exec npx -y '@stripe/mcp@0.2'; true"]},
        "stripe-cmd": {"command": "cmd", "args": ["/c", "npx -y @stripe/mcp"]},
        "stripe-env": {"command": "/usr/bin/env", "args": ["A=b", "bash", "-c", "npx -y @stripe/mcp"]}}}"#;
    scene.file(".cursor/mcp.json", content);
    for flags in [&["--json", "--write"][..], &["--json"]] {
        let ran = scene.done(flags);
        assert!(!ran.stdout.contains(SECRET), "{ran:?}");
        let document = ran.json();
        let items = document["items"].as_array().expect("items");
        assert!(items.len() == 4 && items.iter().all(|item| item["pack"] == "stripe"), "{document}");
        assert_eq!(document["include"], r#"include = ["pack:stripe"]"#);
    }
}
