//! Every command that a document shows is run: in a directory with the scripts that the documents speak of, on a
//! ledger that holds one effect in doubt.

use crate::home::Home;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A place where the documents' commands make sense.
struct Scene {
    home: Home,
    doubt: String,
}

impl Scene {
    fn new() -> Scene {
        let home = Home::new();
        for name in ["charge.sh", "charged.sh", "ship.sh", "deploy.sh", "build.sh", "lost.sh"] {
            let path = home.file(name, "#!/bin/sh\necho \"$0 $*\"\n");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script is executable");
        }
        let server = home.file("billing-server", "#!/bin/sh\ncat >/dev/null\n");
        fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("a server is executable");
        let sessions = home.path().join(".claude/projects/p");
        fs::create_dir_all(&sessions).expect("a directory");
        fs::write(sessions.join("s.jsonl"), "{\"type\":\"summary\",\"sessionId\":\"s\"}\n")
            .expect("a session");
        let doubt = home.doubt("doubt");
        assert_eq!(home.semel(["ledger", "backup", "../monday.db"]).code, Some(0));
        Scene { home, doubt }
    }

    /// A server has no end of its own: it says where it listens, and ends when it is asked to.
    fn serves(&self) {
        let mut command = self.home.command(["serve", "--listen", "127.0.0.1:0"]);
        let mut server = command.stderr(Stdio::piped()).spawn().expect("semel starts");
        let mut said = String::new();
        let mut output = BufReader::new(server.stderr.take().expect("its words are piped"));
        output.read_line(&mut said).expect("it says where it listens");
        assert!(said.starts_with("semel: listening on http://127.0.0.1:"), "{said}");
        let asked = Command::new("kill").arg(server.id().to_string()).status();
        assert!(asked.is_ok_and(|status| status.success()), "it was there to be asked");
        assert!(server.wait().expect("it is our child").success());
    }

    /// A shown command with its placeholders filled in.
    fn fill_in(&self, shown: &str) -> Vec<String> {
        let mut filled = shown.replace("\"$SEMEL_RUN_ID\"", "r1");
        for (placeholder, value) in [
            ("EFFECT", self.doubt.as_str()),
            ("RUN", "r1"),
            ("KEY", "some-key"),
            ("CODE", "in_doubt"),
            ("ACTION", "cli:charge.sh"),
            ("COMMAND", "true"),
            ("TEXT", "because"),
            ("SHELL", "bash"),
            ("DIR", "man"),
            ("OLD", &self.home.state().join("ledger.db").to_string_lossy()),
            ("NEW", &self.home.path().join("new.db").to_string_lossy()),
            ("BACKUP", &self.home.path().join("monday.db").to_string_lossy()),
            ("FILE", &self.home.path().join("copy.db").to_string_lossy()),
        ] {
            filled = filled
                .split(' ')
                .map(|word| if word == placeholder { value } else { word })
                .collect::<Vec<_>>()
                .join(" ");
        }
        words(&filled)
    }
}

fn words(line: &str) -> Vec<String> {
    shlex::split(line).unwrap_or_else(|| panic!("the quotes of a shown command match: {line}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project has a root")
}

fn documents() -> Vec<PathBuf> {
    let root = root();
    let folders = ["", "docs", "docs/errors", "docs/guides", "docs/decisions", "spec"];
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder of documents"));
    let mut files: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files
}

/// Whole commands: lines of `sh` blocks, prompts of `console` blocks, indented lines.
fn shown_commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(info.trim()) };
            continue;
        }
        let command = match fence {
            Some("sh" | "") => line.trim(),
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            Some(_) => "",
            None => line.strip_prefix("    ").unwrap_or_default(),
        };
        let command = command.split("  #").next().unwrap_or_default().trim();
        if command.starts_with("semel ") {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// Commands that are only named, in `code` inside a sentence.
fn named_commands(text: &str) -> Vec<String> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with("semel ") && !span.contains('…')).map(str::to_owned).collect()
}

#[test]
fn every_command_that_a_document_shows_runs() {
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document is text");
        for shown in shown_commands(&text) {
            // A ruling can be made once, so every command finds the doubt as it was.
            let scene = Scene::new();
            if shown == "semel serve" {
                scene.serves();
                count += 1;
                continue;
            }
            let ran = scene.home.semel(&scene.fill_in(&shown)[1..]);
            let understood = matches!(ran.code, Some(0 | 1 | 120..=123));
            assert!(understood, "{}: {shown}: {ran:?}", path.display());
            count += 1;
        }
    }
    assert!(count >= 12, "the documents show commands; only {count} were found");
}

#[test]
fn every_command_that_a_document_names_exists() {
    let scene = Scene::new();
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document is text");
        for named in named_commands(&text) {
            // The words before the first flag, key or placeholder name a command; each must know its own help.
            let command: Vec<String> = named
                .split(' ')
                .skip(1)
                .take_while(|word| {
                    word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
                })
                .map(str::to_owned)
                .chain(["--help".to_owned()])
                .collect();
            let ran = scene.home.semel(&command);
            assert_eq!(ran.code, Some(0), "{}: `{named}` names no command of semel", path.display());
            count += 1;
        }
    }
    assert!(count >= 20, "the documents name commands; only {count} were found");
}

#[test]
fn every_policy_that_a_document_shows_holds_together() {
    let scene = Scene::new();
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document is text");
        for block in text.split("```toml\n").skip(1) {
            let policy = block.split("```").next().unwrap_or_default();
            scene.home.file("shown.toml", policy);
            let ran = scene.home.semel(["policy", "lint", "shown.toml"]);
            assert_eq!(ran.code, Some(0), "{}: {ran:?}", path.display());
            let examples = scene.home.semel(["--policy", "shown.toml", "policy", "test"]);
            assert_eq!(examples.code, Some(0), "{}: {examples:?}", path.display());
            count += 1;
        }
    }
    assert!(count >= 1, "the README shows a policy");
}
