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

/// A repository whose pushes go to another one.
struct Repository {
    home: Home,
    commits: u32,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { home: Home::new(), commits: 0 };
        repository.git(&["init", "--bare", "-b", "main", "../remote.git"]);
        repository.git(&["init", "-b", "main"]);
        repository.git(&["remote", "add", "origin", "../remote.git"]);
        repository
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.example"]).args(words);
        let ran = git.current_dir(self.home.work()).env("HOME", self.home.path()).output().expect("git runs");
        assert!(ran.status.success(), "git {words:?}: {ran:?}");
        String::from_utf8(ran.stdout).expect("git prints text").trim().to_owned()
    }

    fn commit(&mut self) {
        self.commits += 1;
        self.git(&["commit", "--allow-empty", "-m", "more"]);
    }

    /// A push as a document advises it.
    fn push(&self, advised: &str) -> Option<i32> {
        self.home.semel(words(&advised.replace("COMMAND", "git push origin main")).split_off(1)).code
    }

    /// Whether all commits have arrived.
    fn is_pushed(&self) -> bool {
        let arrived = self.git(&["-C", "../remote.git", "rev-list", "--count", "main"]);
        arrived == self.commits.to_string()
    }

    /// The other side takes pushes, and dies before it says so.
    fn lose_answers(&self) {
        let hook = self.home.path().join("remote.git/hooks/post-receive");
        fs::write(&hook, "#!/bin/sh\necho push >> received\nkill -9 $PPID\n").expect("a hook");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it is executable");
    }

    fn received(&self) -> usize {
        let received = fs::read_to_string(self.home.path().join("remote.git/received"));
        received.unwrap_or_default().lines().count()
    }
}

#[test]
fn what_the_snippet_for_agents_md_advises_pushes_every_commit_and_holds_a_lost_push() {
    let text = fs::read_to_string(root().join("docs/contract.md")).expect("a document");
    let snippet = text.split("```markdown\n").nth(1).expect("a snippet").replace('\n', " ");
    let advised = snippet.split('`').find(|span| span.ends_with(" -- COMMAND")).expect("a command");
    let stricter = "semel run --class consequential -- COMMAND";
    let pack = "version = 1\ninclude = [\"pack:git\"]\n";
    // A doubt of what converges is sent again; elsewhere, and where more was asked for, it is held.
    for (policy, advised, after_doubt) in
        [("version = 1\n", advised, 121), (pack, advised, 0), (pack, stricter, 121)]
    {
        let mut repository = Repository::new();
        repository.home.file("semel.toml", policy);
        for _ in 0..2 {
            repository.commit();
            assert_eq!(repository.push(advised), Some(0), "{advised} under {policy}");
            assert!(repository.is_pushed(), "{advised} under {policy}");
        }
        repository.lose_answers();
        repository.commit();
        let first = repository.push(advised);
        assert_eq!(first, Some(if after_doubt == 0 { 0 } else { 121 }), "{advised} under {policy}");
        assert_eq!(repository.push(advised), Some(after_doubt), "{advised} under {policy}");
        assert_eq!((repository.received(), repository.is_pushed()), (1, true), "{advised} under {policy}");
        let held = repository.home.json(["ledger", "list", "--state", "in_doubt"]);
        let doubts = held["items"].as_array().map(Vec::len);
        assert_eq!(doubts, Some(usize::from(after_doubt != 0)), "{held}");
    }
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

/// The examples of the SDKs, as paths from the project's root.
fn examples() -> Vec<String> {
    let folders = ["sdk/python/examples", "sdk/typescript/examples"];
    let mut files = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).expect("a folder of examples") {
            files.push(format!("{folder}/{}", entry.expect("a file").file_name().to_string_lossy()));
        }
    }
    files.retain(|file| file.ends_with(".py") || file.ends_with(".ts"));
    files
}

#[test]
fn every_block_that_names_an_example_is_that_file_and_every_adapter_has_one() {
    let mut shown = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document is text");
        for block in text.split("\n```") {
            let (info, code) = block.split_once('\n').unwrap_or_default();
            let Some(("python" | "ts", file)) = info.split_once(' ') else { continue };
            let example = fs::read_to_string(root().join(file)).expect("an example");
            assert_eq!(format!("{code}\n"), example, "{}: {file}", path.display());
            shown.push(file.to_owned());
        }
    }
    let mut wanted = examples();
    wanted.retain(|file| !file.ends_with("/once.ts")); // of no framework
    wanted.sort();
    shown.sort();
    assert_eq!(shown, wanted);
}

/// Words in the lines that an example has for semel: the guard, and the rules for retries of two frameworks.
const OF_SEMEL: [&str; 5] = ["semel", "guard(", "Guard(", "may_be_retried", "RetryPolicy"];

#[test]
fn the_table_of_frameworks_counts_the_lines_of_each_example_and_names_tested_versions() {
    let table = fs::read_to_string(root().join("docs/guides/README.md")).expect("the guides");
    let tested = ["crates/xtask/src/peers.rs", "sdk/typescript/package.json"];
    let tested = tested.map(|file| fs::read_to_string(root().join(file)).expect("versions")).concat();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.contains("/examples/")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, versions, link, .., lines] = cells[..] else { panic!("a row has cells: {row}") };
        for version in versions.split(", ") {
            assert!(tested.contains(version), "no test has this version: {row}");
        }
        let file = link.split("(../../").nth(1).and_then(|rest| rest.strip_suffix(')')).expect("a link");
        let example = fs::read_to_string(root().join(file)).expect("an example");
        let of_semel = example.lines().filter(|line| OF_SEMEL.iter().any(|word| line.contains(word)));
        assert_eq!(lines, of_semel.count().to_string(), "{row}");
        rows += 1;
    }
    assert_eq!(rows, examples().len() - 1, "once.ts is of no framework");
}
