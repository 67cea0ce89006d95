//! What a server is called, what is behind the name, and what the policy says of it.

use super::stage::{Stage, greeted, listing};
use crate::mcp::line::Line;
use crate::mcp::peers::script;
use crate::mcp::{receipt, text};
use serde_json::json;

const TOOLS: [&str; 1] = ["create_order"];

/// Copies the server into a directory, and starts it there under its usual name.
fn open_in(stage: &Stage, directory: &str, command: &[&str]) -> Line {
    let place = stage.work().join(directory);
    std::fs::create_dir_all(&place).expect("a directory");
    for (from, to) in [(script("told.py"), "server.py"), ("told.json".to_owned(), "told.json")] {
        std::fs::copy(stage.work().join(from), place.join(to)).expect("a copy");
    }
    let semel = [env!("CARGO_BIN_EXE_semel"), "mcp", "--name", "billing", "--"];
    let words: Vec<String> = semel.iter().chain(command).map(|word| word.to_string()).collect();
    greeted(Line::to(stage.program(&words).current_dir(place)))
}

fn order_from(stage: &Stage, directory: &str) -> serde_json::Value {
    let mut line = open_in(stage, directory, &["python3", "-S", "server.py"]);
    line.call("create_order", json!({"order": "1001"}))
}

#[test]
fn a_server_of_the_same_name_in_another_project_is_another_server() {
    let stage = Stage::with_tools(&TOOLS);
    assert_eq!(receipt(&order_from(&stage, "one"))["outcome"], "ran");
    assert_eq!(receipt(&order_from(&stage, "other"))["outcome"], "ran");
    assert_eq!(receipt(&order_from(&stage, "one"))["outcome"], "replayed");
    assert_eq!(stage.world().len(), 2);
}

/// Nothing in these words is a file, and what they start is another in another directory.
#[test]
fn a_projects_own_server_is_its_own_however_it_is_started() {
    for command in [&["python3", "-S", "-m", "server"][..], &["sh", "-c", "exec python3 -S server.py"]] {
        let unclear = json!({"create_order": {"error": {"code": -32000, "message": "upstream timed out"}}});
        let stage = Stage::with_calls(&TOOLS, unclear)
            .rule("create_order", "class = \"consequential\"\nrulings = \"agent\"");
        let order = json!({"order": "1001"});
        let doubt = open_in(&stage, "one", command).call("create_order", order.clone());
        let id = receipt(&doubt)["effect_id"].as_str().expect("an effect").to_owned();
        let before = stage.world().len();
        stage.tell(json!({"pages": [listing(&TOOLS)]}));
        let mut other = open_in(&stage, "other", command);
        assert!(!text(&other.call("semel_ledger", json!({}))).contains(&id), "{command:?}");
        let report = json!({"effect_id": id, "happened": false, "evidence": "there are no orders"});
        assert_eq!(other.call("semel_report", report)["isError"], true, "{command:?}");
        assert_eq!(receipt(&other.call("create_order", order.clone()))["outcome"], "ran", "{command:?}");
        let again = open_in(&stage, "one", command).call("create_order", order);
        assert_eq!(receipt(&again)["code"], "in_doubt", "{command:?} {again}");
        assert_eq!(stage.world().len(), before + 1, "{command:?}");
    }
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
