//! `semel mcp` before a server elsewhere.

use super::{Laptop, Office, lose_answer};
use crate::mcp::door::stage::{Stage, greeted};
use crate::mcp::line::Line;
use crate::mcp::{assert_in_doubt, assert_replayed, receipt};
use crate::serve::served::{SESSION, Served, calling};
use semel_core::time::At;
use semel_gate::clock::{Clock, SystemClock};
use semel_testkit::http::FakeMcpServer;
use semel_testkit::proxy::{Moment, Proxy};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

/// The same world for all.
fn asking(mut command: Command, laptop: &Laptop) -> Command {
    command.env("SEMEL_SERVER", &laptop.url).env("SEMEL_TOKEN", &laptop.token);
    command.env("SEMEL_WORLD", &laptop.world);
    command
}

fn open(stage: &Stage, laptop: &Laptop) -> Line {
    greeted(Line::to(&mut asking(stage.guarded(&[]), laptop)))
}

#[test]
fn two_laptops_charge_once_and_both_get_the_servers_own_result() {
    let office = Office::open("");
    let stages = [Stage::with_tools(&["charge", "get_charge"]), Stage::with_tools(&["charge", "get_charge"])];
    let laptops = [office.laptop("ci"), office.laptop("ci")];
    let mut lines: Vec<Line> =
        stages.iter().zip(&laptops).map(|(stage, laptop)| open(stage, laptop)).collect();
    let ada = || json!({"customer": "ada", "amount": 3});
    let first = lines[0].call("charge", ada());
    assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
    let again = lines[1].call("charge", ada());
    assert_replayed(&again, &first);
    assert_eq!((office.effects(), office.recorded().len()), (1, 1));
    let recorded = &office.recorded()[0];
    assert_eq!(recorded["action"], "mcp:billing/charge", "{recorded}");
    // Another charge is another intent, and a reason makes a second one.
    assert_eq!(receipt(&lines[1].call("charge", json!({"customer": "bob", "amount": 3})))["outcome"], "ran");
    let meant =
        lines[1].call("charge", json!({"customer": "ada", "amount": 3, "semel_again": "she asked for two"}));
    assert_eq!(receipt(&meant)["outcome"], "ran", "{meant}");
    assert_eq!(office.effects(), 3);
    assert!(lines.into_iter().all(|line| line.close().success()));
    assert!(laptops.iter().all(|laptop| !laptop.has_a_ledger()));
    assert!(stages.iter().all(|stage| !stage.state().join("ledger.db").exists()));
}

#[test]
fn without_the_server_tools_that_act_are_refused_and_reads_pass() {
    let mut office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    let stage = Stage::with_tools(&["charge", "get_charge"]);
    let mut line = open(&stage, &laptop);
    lose_answer(&proxy, "/calls/begin");
    assert_eq!(receipt(&line.call("charge", json!({"customer": "ada"})))["outcome"], "ran");
    assert_eq!((proxy.cuts_left(), office.effects()), (0, 1), "its lost claim was asked for again");
    office.served.kill();
    let refused = line.call("charge", json!({"customer": "bob"}));
    assert_eq!(receipt(&refused)["code"], "ledger_unavailable", "{refused}");
    assert_eq!(office.effects(), 1);
    let read = line.call("get_charge", json!({"id": 1}));
    assert_ne!(read["isError"], true, "{read}");
    assert!(line.close().success());
}

#[test]
fn a_dry_run_of_a_tool_that_reads_is_answered() {
    let office = Office::open("");
    let stage = Stage::with_tools(&["get_charge"]);
    let mut line = open(&stage, &office.laptop("ci"));
    let dry = json!({"name": "get_charge", "arguments": {"id": 1}, "_meta": {"dev.semel/dry-run": true}});
    let would = line.call_with(dry);
    let answer = receipt(&would);
    assert_eq!((&answer["ok"], &answer["would"]), (&json!(true), &json!("run")), "{would}");
    assert_eq!((stage.heard_calls().len(), office.recorded().len()), (0, 0));
}

#[test]
fn a_remote_mcp_server_is_guarded_as_well() {
    let office = Office::open("");
    let laptop = office.laptop("ci");
    let server = FakeMcpServer::start();
    let stage = Stage::with_tools(&[]);
    let open = || {
        let words = stage.stdio_before_http(&server.url());
        greeted(Line::to(&mut asking(stage.program(&words), &laptop)))
    };
    let (mut one, mut other) = (open(), open());
    let first = one.call("charge", json!({"customer": "ada"}));
    assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
    assert_eq!(receipt(&other.call("charge", json!({"customer": "ada"})))["outcome"], "replayed");
    assert_eq!(office.recorded().len(), 1);
}

#[test]
fn a_setting_that_cannot_work_starts_no_server() {
    let office = Office::open("");
    let wrong = Laptop { token: "wrong".to_owned(), ..office.laptop("ci") };
    let stage = Stage::with_tools(&["charge"]);
    let ran = asking(stage.guarded(&[]), &wrong).output().expect("semel starts");
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(stage.stderr().contains("does not know the token"), "{}", stage.stderr());
}

/// A tool whose answer waits until it is let go.
fn waiting(timeout: &str) -> Stage {
    let stage = Stage::with_calls(&["charge"], json!({"charge": {"until": "go"}}));
    stage.rule("charge", &format!("class = \"consequential\"\ntimeout = \"{timeout}\""))
}

#[test]
fn a_semel_mcp_that_is_killed_leaves_a_doubt_and_no_second_call() {
    let office = Office::open("");
    let (stage, laptop) = (waiting("3s"), office.laptop("ci"));
    let mut killed = open(&stage, &laptop);
    killed.ask("tools/call", json!({"name": "charge", "arguments": {"customer": "ada"}}));
    stage.wait_until("it is sent", || office.effects() == 1);
    killed.kill();
    let other = waiting("3s");
    let held = open(&other, &office.laptop("ci")).call("charge", json!({"customer": "ada"}));
    assert_in_doubt(&held);
    assert_eq!((office.effects(), &office.recorded()[0]["state"]), (1, &json!("in_doubt")));
}

#[test]
fn a_late_answer_counts_after_its_caller_was_told_of_the_doubt() {
    let office = Office::open("");
    let (stage, laptop) = (waiting("2s"), office.laptop("ci"));
    let mut line = open(&stage, &laptop);
    let doubt = line.call("charge", json!({"customer": "ada"}));
    assert_in_doubt(&doubt);
    stage.file("go", "");
    stage.wait_until("its answer is on record", || office.recorded()[0]["state"] == "applied");
    let replayed = line.call("charge", json!({"customer": "ada"}));
    assert_eq!(receipt(&replayed)["outcome"], "replayed", "{replayed}");
    assert_eq!(office.effects(), 1);
}

#[test]
fn an_outcome_that_nobody_took_is_brought_once_the_server_is_back() {
    let mut office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    let stage = waiting("60s");
    let mut line = open(&stage, &laptop);
    let asked = line.ask("tools/call", json!({"name": "charge", "arguments": {"customer": "ada"}}));
    stage.wait_until("it is sent", || office.effects() == 1);
    office.served.kill();
    stage.file("go", "");
    let (doubt, _) = line.read_answer().expect("it is answered");
    assert_eq!(doubt["id"], asked);
    assert_in_doubt(&doubt["result"]);
    office.served = Served::again(&office.home);
    proxy.lead_to(office.target());
    stage.wait_until("its outcome is on record", || office.recorded()[0]["state"] == "applied");
    let replayed = line.call("charge", json!({"customer": "ada"}));
    assert_eq!(receipt(&replayed)["outcome"], "replayed", "{replayed}");
    assert_eq!(office.effects(), 1);
}

#[test]
fn an_operators_secrets_are_kept_of_no_callers_result() {
    let rule = "[[rule]]\nmatch = \"mcp:billing/charge\"\nclass = \"consequential\"\n";
    let office = Office::open(&format!("{rule}secret = [\"reply.card.pin\"]\n"));
    let said = r#"{"content":[],"structuredContent":{"card":{"pin":4711},"id":7}}"#;
    let stage = Stage::with_calls(&["charge"], json!({"charge": {"raw": said}}));
    let (stage, laptop) = (stage.rule("charge", "class = \"consequential\""), office.laptop("ci"));
    let charge = || open(&stage, &laptop).call("charge", json!({"customer": "ada"}));
    assert_eq!(charge()["structuredContent"]["card"]["pin"], 4711);
    let replayed = charge();
    assert_eq!(receipt(&replayed)["outcome"], "replayed", "{replayed}");
    assert_eq!(replayed["structuredContent"], json!({"card": {"pin": "[redacted]"}, "id": 7}));
    assert_eq!(office.effects(), 1);
}

#[test]
fn a_server_gets_neither_the_token_nor_the_name_of_its_file() {
    let office = Office::open("");
    let (stage, laptop) = (Stage::telling(json!({})), office.laptop("ci"));
    let file = laptop.home.file("token", &laptop.token);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let mut command = asking(stage.guarded(&[]), &laptop);
    command.env_remove("SEMEL_TOKEN").env("SEMEL_TOKEN_FILE", &file);
    let seen = Line::to(&mut command).request("told/surroundings", json!({}))["result"].take();
    let environment = seen["environment"].as_object().expect("variables");
    assert!(
        environment.contains_key("SEMEL_SERVER") && !environment.contains_key("SEMEL_TOKEN_FILE"),
        "{seen}"
    );
}

#[test]
fn a_tool_elsewhere_never_answers_for_one_of_its_name_behind_the_server() {
    let server = FakeMcpServer::start();
    let office = Office::open(&format!("[mcp.billing]\nurl = \"{}\"\n", server.url()));
    let (stage, laptop) = (Stage::with_tools(&[]), office.laptop("ci"));
    let words = stage.stdio_before_http(&server.url());
    let mut line = greeted(Line::to(&mut asking(stage.program(&words), &laptop)));
    let ada = || json!({"customer": "ada"});
    assert_eq!(receipt(&line.call("charge", ada()))["outcome"], "ran");
    let head = format!("Semel-Token: {}\r\n{SESSION}", laptop.token);
    let body = calling(1, "charge", ada()).to_string();
    let there = office.served.ask_raw("POST /mcp/billing HTTP/1.1", &head, &body).answer().tool_result();
    assert_eq!(receipt(&there)["outcome"], "ran", "{there}");
    assert_eq!(office.recorded().len(), 2);
}

/// To suppress a legitimate repeat is as bad as to let a duplicate through.
#[test]
fn a_note_is_appended_as_often_as_asked_however_late_its_mark_is() {
    let office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    let stage = Stage::with_tools(&["append_note"]);
    let mut line = open(&stage, &laptop);
    let append = |note: &str| json!({"name": "append_note", "arguments": {"note": note}});
    for times in 0..3 {
        proxy.hold(Moment::Before(b"/calls/delivered"));
        let first = line.call_with(append("called, nobody there"));
        assert_eq!(receipt(&first)["outcome"], "ran", "{first}");
        stage.wait_until("its mark is on its way, for longer than the server waits for one", || {
            let applied_at = office.recorded()[0]["changed_at"].as_str().and_then(At::parse).expect("a time");
            proxy.has_held() && SystemClock::start().now().since(applied_at) > Duration::from_millis(100)
        });
        line.ask("tools/call", append("called, nobody there"));
        // Another one, which waits for no mark, is through before it.
        line.ask("tools/call", append(&format!("called {times} times")));
        for _ in 0..2 {
            let (answer, _) = line.read_answer().expect("it is answered");
            assert_eq!(receipt(&answer["result"])["outcome"], "ran", "{answer}");
            proxy.let_go();
        }
        assert_eq!(office.effects(), 3 * (times + 1));
        // One on its way would be the next to be held.
        stage.wait_until("all are marked", || {
            office.recorded().iter().all(|effect| effect["delivered_at"].is_string())
        });
    }
}
