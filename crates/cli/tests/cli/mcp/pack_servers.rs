//! A pack before the real server that it is written for, which `cargo xtask packs` installs: what its probes come to
//! when an answer is lost, judged by the files.

use super::door::stage::greeted;
use super::line::Line;
use super::peers::{node, script};
use super::{assert_in_doubt, receipt, text};
use crate::home::Home;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What of a call is lost on the way.
#[derive(Debug, Clone, Copy)]
enum Lost {
    Answer,
    Call,
}

/// The reference server for files.
fn server() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_semel")).ancestors().nth(2).expect("target/<profile>");
    let packs = target.join("peers/packs");
    let installed = packs.join("installed.txt").exists();
    assert!(installed, "these tests need the servers of the packs; `cargo xtask packs` installs them");
    packs.join("node_modules/.bin/mcp-server-filesystem")
}

/// semel with its pack before the server, in a directory of their own.
fn open(home: &Home, lost: Lost, tool: &str) -> Line {
    home.file("semel.toml", "version = 1\ninclude = [\"pack:filesystem\"]\n");
    let lost = match lost {
        Lost::Answer => "answer",
        Lost::Call => "call",
    };
    // Other words start another server, which needs a name of its own.
    let name = format!("filesystem-{lost}-{tool}");
    let words = [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", &name, "--", "python3", "-S"];
    let mut words = words.map(str::to_owned).to_vec();
    words.extend([script("losing.py"), lost.to_owned(), tool.to_owned(), "--".to_owned(), node()]);
    words.extend([server(), home.work()].map(|path| path.to_string_lossy().into_owned()));
    let mut command = home.program(&words);
    command.stderr(File::create(home.work().join("stderr")).expect("a file for stderr"));
    greeted(Line::to(&mut command))
}

#[test]
fn what_was_written_is_read_back_from_the_real_server() {
    let home = Home::new();
    let [file, directory] = ["a.txt", "made/here"].map(|name| home.work().join(name));
    let mut line = open(&home, Lost::Answer, "write_file");
    let written = line.call("write_file", json!({"path": file, "content": "one\ntwo\n"}));
    assert_eq!(
        (&receipt(&written)["ok"], &receipt(&written)["evidence"]),
        (&true.into(), &"probed".into()),
        "{written}"
    );
    assert!(text(&written).contains("Successfully wrote to"), "{written}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "one\ntwo\n");

    let mut line = open(&home, Lost::Answer, "create_directory");
    let made = line.call("create_directory", json!({"path": directory}));
    assert_eq!(
        (&receipt(&made)["ok"], &receipt(&made)["evidence"]),
        (&true.into(), &"probed".into()),
        "{made}"
    );
    assert!(directory.is_dir());
}

#[test]
fn what_was_not_written_is_not_read_back_from_the_real_server() {
    let home = Home::new();
    let file = home.work().join("a.txt");
    home.file("a.txt", "older\n");
    let mut line = open(&home, Lost::Call, "write_file");
    assert_in_doubt(&line.call("write_file", json!({"path": file, "content": "older"})));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "older\n");
}

#[test]
fn an_edit_that_did_not_reach_the_real_server_did_not_happen_and_one_that_did_is_not_made_twice() {
    let home = Home::new();
    let file = home.work().join("a.txt");
    home.file("a.txt", "x = 1\nx = 1\n");
    let edit = json!({"path": file, "edits": [{"oldText": "x = 1", "newText": "x = 2"}]});
    let lost = open(&home, Lost::Call, "edit_file").call("edit_file", edit.clone());
    assert!(text(&lost).contains("did not happen"), "{lost}");

    let mut line = open(&home, Lost::Answer, "edit_file");
    for _ in 0..2 {
        assert_in_doubt(&line.call("edit_file", edit.clone()));
    }
    let mut spelled_out = edit;
    spelled_out["dryRun"] = false.into();
    assert_in_doubt(&line.call("edit_file", spelled_out));
    assert_eq!(home.world().len(), 1);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "x = 2\nx = 1\n");
}

#[test]
fn a_move_that_did_not_reach_the_real_server_did_not_happen_and_one_that_did_stays_in_doubt() {
    let home = Home::new();
    home.file("a.txt", "a\n");
    fs::create_dir(home.work().join("d")).expect("a directory");
    for (from, to) in [("a.txt", "b.txt"), ("d", "e")] {
        let [source, destination] = [from, to].map(|name| home.work().join(name));
        let move_it = json!({"source": source, "destination": destination});
        let lost = open(&home, Lost::Call, "move_file").call("move_file", move_it.clone());
        assert!(text(&lost).contains("did not happen"), "{lost}");
        let mut line = open(&home, Lost::Answer, "move_file");
        for _ in 0..2 {
            assert_in_doubt(&line.call("move_file", move_it.clone()));
        }
        assert!(destination.exists() && !source.exists());
    }
    assert_eq!(home.world().len(), 2);
}
