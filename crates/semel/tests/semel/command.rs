//! The tool of `examples/notes.rs`. Its notes are counted in its file.

use clap::{CommandFactory, Parser};
use semel::command::{ChangeArgs, SAFE, unmarked};
use semel_detect::check::tool::{self, Sandbox};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a directory"))
    }

    fn at(&self) -> &Path {
        self.0.path()
    }

    /// The words that run the tool here, beside nothing of the environment's.
    fn tool(&self) -> Vec<String> {
        let here = self.at().display();
        let words = ["env", "-i", "-C"].map(str::to_owned).into_iter();
        words.chain([here.to_string(), format!("HOME={here}"), notes().display().to_string()]).collect()
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, Value) {
        let tool = self.tool();
        let ran = Command::new(&tool[0]).args(&tool[1..]).args(words).output().expect("the tool starts");
        (
            ran.status.code(),
            serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")),
        )
    }

    fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.at().join("notes.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Cargo builds a crate's examples with its tests, but not for `--test semel` alone.
fn notes() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let target = test.parent().and_then(Path::parent).expect("target/debug");
    let example = target.join("examples/notes");
    assert!(example.exists(), "without the examples: cargo test -p semel --features command");
    example
}

#[test]
fn a_tool_of_thirty_lines_scores_three_in_its_sandbox() {
    let lines = include_str!("../../examples/notes.rs").lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 35, "{lines} lines");
    let desk = Desk::new();
    let script = "cd \"$0\" && case $1 in examples) echo 'add hello';; count) cat notes.txt 2>/dev/null | wc -l;; esac";
    let script = ["sh", "-c", script, &desk.at().display().to_string()];
    let mut walk = tool::walk(&desk.tool()).expect("it starts");
    Sandbox { words: script.map(str::to_owned).to_vec() }
        .try_all(&desk.tool(), &mut walk.commands)
        .expect("a sandbox");
    let report = tool::report(walk);
    assert_eq!((report.score, report.proven, &report.advice[..]), (3, true, &[][..]), "{report:#?}");
    let kinds: Vec<bool> = report.commands.iter().map(|command| command.changes_something).collect();
    assert_eq!(kinds, [true, false], "{report:#?}");
    assert_eq!(desk.notes(), ["hello"]);
}

#[test]
fn a_change_that_is_repeated_happens_once_with_a_key_and_without() {
    let desk = Desk::new();
    let keyed = ["add", "milk", "--idempotency-key", "k"];
    let done = (Some(0), json!({"effect": "created", "text": "milk"}));
    let again = (Some(0), json!({"effect": "noop", "text": "milk"}));
    assert_eq!([desk.run(&keyed), desk.run(&keyed)], [done, again]);
    let words = [desk.run(&["add", "bread"]), desk.run(&["add", "bread"])]
        .map(|(_, answer)| answer["effect"].clone());
    assert_eq!(words, ["created", "noop"]);
    let (code, drift) = desk.run(&["add", "eggs", "--idempotency-key", "k"]);
    assert_eq!((code, &drift["code"]), (Some(123), &json!("drift")));
    assert_eq!(desk.notes(), ["milk", "bread"]);
}

#[test]
fn two_callers_of_a_change_at_once_make_one() {
    let desk = Desk::new();
    let call = || desk.run(&["add", "milk", "--idempotency-key", "k"]).1["effect"].clone();
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(call);
        [call(), other.join().expect("an answer")]
    });
    assert!(both.contains(&json!("created")) && both.contains(&json!("noop")), "{both:?}");
    assert_eq!(desk.notes(), ["milk"]);
}

#[test]
fn a_dry_run_changes_nothing_and_knows_a_repeat() {
    let desk = Desk::new();
    let dry = || desk.run(&["add", "milk", "--dry-run"]).1["effect"].clone();
    assert_eq!((dry(), desk.notes().len()), (json!("would_create"), 0));
    desk.run(&["add", "milk"]);
    assert_eq!((dry(), desk.notes().len()), (json!("would_noop"), 1));
}

#[test]
fn a_refused_change_runs_the_next_time() {
    let desk = Desk::new();
    let notes = desk.at().join("notes.txt");
    std::fs::create_dir(&notes).expect("a directory in the way");
    let (code, refused) = desk.run(&["add", "milk"]);
    assert_eq!((code, &refused["effect"]), (Some(120), &json!("none")), "{refused}");
    std::fs::remove_dir(&notes).expect("an empty directory");
    assert_eq!(desk.run(&["add", "milk"]).1["effect"], "created");
    assert_eq!(desk.notes(), ["milk"]);
}

#[derive(Parser)]
enum Marks {
    Neither,
    #[command(after_help = SAFE)]
    Safe,
    Change(ChangeArgs),
    #[command(after_help = SAFE)]
    Both(ChangeArgs),
}

#[test]
fn a_subcommand_without_a_mark_or_with_both_is_found() {
    assert_eq!(unmarked(Marks::command()), ["neither", "both"]);
    let about = Marks::command().find_subcommand("change").and_then(|change| change.get_about().cloned());
    assert_eq!(about.map(|about| about.to_string()), None, "the options bring no help of their own");
}

#[test]
fn a_derived_key_is_the_one_that_semel_prints() {
    let key = |words: &[&str]| {
        let Marks::Change(change) = Marks::parse_from(["marks", "change"].iter().chain(words)) else {
            panic!()
        };
        change.key("charge", &json!({"amount": 4900, "order": "1001"})).expect("arguments")
    };
    assert_eq!(key(&["--idempotency-key", "mine"]), "mine");
    // semel key fn:charge --args '{"order": "1001", "amount": 4900}'
    assert_eq!(key(&[]), "semel_d7a76f312e6f0fe7267fe7631f7b4d2553c4231d");
}
