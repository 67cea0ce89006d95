//! What a server is called, what is behind the name, and what the policy says of it.

use super::stage::{Stage, greeted, listing};
use crate::home::Ran;
use crate::mcp::line::Line;
use crate::mcp::peers::script;
use crate::mcp::{receipt, text};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const TOOLS: [&str; 1] = ["create_order"];

/// Copies the server into a directory, as `server.py`.
fn project(stage: &Stage, directory: &str) -> PathBuf {
    let place = stage.work().join(directory);
    std::fs::create_dir_all(&place).expect("a directory");
    for (from, to) in [(script("told.py"), "server.py"), ("told.json".to_owned(), "told.json")] {
        std::fs::copy(stage.work().join(from), place.join(to)).expect("a copy");
    }
    place
}

/// semel before the server of a project, not started yet.
fn guarded_in(stage: &Stage, directory: &str, flags: &[&str], command: &[&str]) -> Command {
    let semel = [env!("CARGO_BIN_EXE_semel"), "mcp"];
    let words = semel.iter().chain(flags).chain(&["--"]).chain(command).map(|word| word.to_string());
    let mut program = stage.program(&words.collect::<Vec<_>>());
    program.current_dir(project(stage, directory));
    program
}

const BILLING: [&str; 2] = ["--name", "billing"];
const MODULE: [&str; 4] = ["python3", "-S", "-m", "server"];

/// A start that is refused, before anything is started.
fn refused(mut program: Command) -> String {
    let ran = Ran::of(program.stdin(Stdio::null()).output().expect("semel starts"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    ran.stderr
}

/// Two projects whose servers start with the same words, on one ledger: an agent of one must not see, settle or repeat
/// the other's doubt.
#[test]
fn a_name_belongs_to_the_server_that_used_it_first() {
    let script = ["sh", "-c", "exec python3 -S server.py"];
    for command in [&MODULE[..], &script, &["python3", "-S", "server.py"]] {
        let unclear = json!({"create_order": {"error": {"code": -32000, "message": "upstream timed out"}}});
        let stage = Stage::with_calls(&TOOLS, unclear)
            .rule("create_order", "class = \"consequential\"\nrulings = \"agent\"");
        let order = json!({"order": "1001"});
        let doubt = greeted(Line::to(&mut guarded_in(&stage, "one", &BILLING, command)))
            .call("create_order", order.clone());
        let id = receipt(&doubt)["effect_id"].as_str().expect("an effect").to_owned();
        let before = stage.world().len();
        stage.tell(json!({"pages": [listing(&TOOLS)]}));
        let said = refused(guarded_in(&stage, "other", &BILLING, command));
        for part in ["the name billing belongs to another server", "/one.", "/other.", "--name NAME"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(stage.world().len(), before, "nothing was started");
        let mut other = greeted(Line::to(&mut guarded_in(&stage, "other", &["--name", "other"], command)));
        assert!(!text(&other.call("semel_ledger", json!({}))).contains(&id), "{command:?}");
        let report = json!({"effect_id": id, "happened": false, "evidence": "there are no orders"});
        assert_eq!(other.call("semel_report", report)["isError"], true, "{command:?}");
        assert_eq!(receipt(&other.call("create_order", order.clone()))["outcome"], "ran", "{command:?}");
        let again =
            greeted(Line::to(&mut guarded_in(&stage, "one", &BILLING, command))).call("create_order", order);
        assert_eq!(receipt(&again)["code"], "in_doubt", "{command:?} {again}");
        assert_eq!(stage.world().len(), before + 1, "{command:?}");
    }
}

/// A client that sees a process die tells its user nothing.
#[test]
fn the_client_of_a_refused_server_hears_at_its_first_request_what_to_do() {
    let stage = Stage::with_tools(&TOOLS);
    drop(greeted(Line::to(&mut guarded_in(&stage, "one", &BILLING, &MODULE))));
    let mut program = guarded_in(&stage, "other", &BILLING, &MODULE);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut refused = program.spawn().expect("semel starts");
    let mut input = refused.stdin.take().expect("its input is a pipe");
    let said = [
        json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    for message in said {
        writeln!(input, "{message}").expect("it reads");
    }
    drop(input);
    let ran = Ran::of(refused.wait_with_output().expect("it ends"));
    let answers: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((ran.code, answers.len()), (Some(2), 2), "{ran:?}");
    for (answer, id) in answers.iter().zip([json!("a"), json!(2)]) {
        let words = answer["error"]["message"].as_str().expect("words");
        assert_eq!(answer["id"], id, "{answer}");
        assert!(words.contains("belongs to another server") && words.contains("--name NAME"), "{words}");
        assert!(!words.contains("same-server"), "only a person rules: {words}");
    }
    assert_eq!(stage.world().len(), 0, "nothing was called");
}

#[test]
fn a_server_that_has_moved_keeps_its_doubts_once_a_person_says_that_it_is_the_same() {
    let unclear = json!({"create_order": {"error": {"code": -32000, "message": "upstream timed out"}}});
    let stage = Stage::with_calls(&TOOLS, unclear).rule("create_order", "class = \"consequential\"");
    let order = json!({"order": "1001"});
    let mut first = greeted(Line::to(&mut guarded_in(&stage, "one", &BILLING, &MODULE)));
    assert_eq!(receipt(&first.call("create_order", order.clone()))["code"], "in_doubt");
    drop(first);
    let nothing = stage.semel(["ledger", "same-server", "billing"]);
    assert!(nothing.code == Some(0) && nothing.stdout.contains("no start of it is refused"), "{nothing:?}");
    let secret = ["python3", "-S", "-m", "server", "--api-key", "hunter2"];
    let said = refused(guarded_in(&stage, "moved", &BILLING, &secret));
    assert!(said.contains("a person says so") && !said.contains("hunter2"), "{said}");
    let accepted = stage.json(["ledger", "same-server", "billing"]);
    assert_eq!(accepted["command"], "python3 -S -m server --api-key [redacted]");
    let mut moved = greeted(Line::to(&mut guarded_in(&stage, "moved", &BILLING, &secret)));
    assert_eq!(receipt(&moved.call("create_order", order))["code"], "in_doubt", "the doubt is still there");
    refused(guarded_in(&stage, "one", &BILLING, &MODULE));
    let journal = stage.semel(["ledger", "tail", "--no-follow", "--json"]).stdout;
    assert!(journal.contains("server_accepted") && !journal.contains("hunter2"), "{journal}");
}

#[test]
fn a_server_that_is_the_same_in_every_directory_is_started_in_each() {
    let stage = Stage::with_tools(&TOOLS);
    let flags = ["--name", "billing", "--any-directory"];
    let server = ["python3", "-S", &script("told.py")];
    let outcome = |directory: &str| {
        let mut line = greeted(Line::to(&mut guarded_in(&stage, directory, &flags, &server)));
        receipt(&line.call("create_order", json!({"order": "1001"})))["outcome"].clone()
    };
    assert_eq!([outcome("one"), outcome("other")], ["ran", "replayed"]);
    refused(guarded_in(&stage, "one", &flags, &MODULE));
}

#[test]
fn the_policys_table_of_a_name_holds_and_can_start_it() {
    let stage = Stage::with_tools(&TOOLS);
    let command = json!(["python3", "-S", script("told.py")]);
    stage.file("semel.toml", &format!("version = 1\n[mcp.billing]\ncommand = {command}\ntools = false\n"));
    let words = [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", "billing"].map(str::to_owned);
    let open = || greeted(Line::to(&mut stage.program(&words)));
    assert_eq!(receipt(&open().call("create_order", json!({"order": "1"})))["outcome"], "ran");
    // The same table holds where the command is given.
    for mut line in [open(), stage.open()] {
        let listed = line.request("tools/list", json!({})).to_string();
        assert!(listed.contains("create_order") && !listed.contains("semel_ledger"), "{listed}");
    }
}

#[test]
fn a_name_that_no_rule_could_speak_of_is_refused() {
    let stage = Stage::with_tools(&TOOLS);
    for name in ["", "a/b", "a\nb"] {
        let ran = stage.semel(["mcp", "--name", name, "--", "true"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("--name"), "{ran:?}");
    }
    let ran = stage.semel(["mcp"]);
    assert!(ran.stderr.contains("there is no server to start"), "{ran:?}");
}

#[test]
fn its_run_holds_where_nobody_names_another() {
    let stage = Stage::with_tools(&TOOLS);
    let command = json!(["python3", "-S", script("told.py")]);
    stage
        .file("semel.toml", &format!("version = 1\n[mcp.billing]\ncommand = {command}\nrun = \"nightly\"\n"));
    let run = |flags: &[&str], surrounding: Option<&str>, order: &str| {
        let mut command = stage.guarded(flags);
        surrounding.map(|run| command.env("SEMEL_RUN_ID", run));
        let answered = greeted(Line::to(&mut command)).call("create_order", json!({"order": order}));
        assert_eq!(receipt(&answered)["outcome"], "ran", "{answered}");
        let recorded = stage.recorded();
        let of = |effect: &&serde_json::Value| effect["effect_id"] == receipt(&answered)["effect_id"];
        recorded.iter().find(of).expect("it is on record")["run"].clone()
    };
    assert_eq!(run(&[], None, "1"), "nightly");
    assert_eq!(run(&[], Some("hourly"), "2"), "hourly");
    assert_eq!(run(&["--run", "once"], Some("hourly"), "3"), "once");
    assert_eq!(stage.semel(["cancel", "nightly"]).code, Some(0));
    let fenced = stage.open().call("create_order", json!({"order": "4"}));
    assert_eq!(receipt(&fenced)["code"], "cancelled", "{fenced}");
    assert_eq!(stage.world().len(), 3);
}
