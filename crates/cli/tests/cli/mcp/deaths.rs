//! Somebody dies after the effect: the server by itself, the server by force, semel by force.

use super::line::Line;
use super::peers::Server;
use super::{Way, assert_in_doubt, receipt, text};
use crate::home::Home;
use serde_json::{Value, json};
use std::process::Command;

fn ada() -> Value {
    json!({"customer": "ada", "amount": 3})
}

fn slow(home: &Home) -> Value {
    json!({"customer": "ada", "amount": 3, "until": home.work().join("until")})
}

#[test]
fn without_semel_a_server_that_dies_after_the_effect_is_made_to_do_it_again() {
    for server in [Server::Python, Server::TypeScript] {
        let home = Home::new();
        for _ in 0..2 {
            let mut client = Line::open(&home, Way::Direct, server);
            assert_eq!(client.call_if_it_lives("die_after_charge", ada()), None);
        }
        assert_eq!(home.effects(), 2);
    }
}

#[test]
fn a_server_that_dies_after_the_effect_leaves_a_doubt_that_holds_the_next_call() {
    for server in [Server::Python, Server::TypeScript] {
        let home = Home::new();
        let mut client = Line::open(&home, Way::Guarded, server);
        assert_in_doubt(&client.call("die_after_charge", ada()));
        // The server's death is semel's own end, as it would be without semel.
        assert_eq!(client.read(), None);
        // Another agent, another process, the same ledger.
        assert_in_doubt(&Line::open(&home, Way::Guarded, server).call("die_after_charge", ada()));
        assert_eq!(home.effects(), 1);
    }
}

/// The server can be asked, so nobody has to be.
#[test]
fn a_doubt_with_a_probe_is_answered_with_what_happened_and_never_run() {
    let home = Home::new();
    home.file(
        "semel.toml",
        r#"version = 1
        [[rule]]
        match = "mcp:billing/die_after_charge"
        class = "consequential"
        [rule.probe]
        mcp = "billing/list_charges"
        args = {}
        found = "resp.charges.exists(c, c.customer == args.customer && c.amount == args.amount)"
        reply = "resp.charges.filter(c, c.customer == args.customer)[0]"
        quiet = "1s"
        "#,
    );
    let mut client = Line::open(&home, Way::Guarded, Server::Python);
    client.call_if_it_lives("die_after_charge", ada());
    let result = Line::open(&home, Way::Guarded, Server::Python).call("die_after_charge", ada());
    assert_eq!(receipt(&result)["ok"], true, "{result}");
    assert_eq!(receipt(&result)["evidence"], "probed", "{result}");
    assert!(text(&result).contains(home.world()[0]["id"].as_str().expect("an id")), "{result}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_doubt_holds_its_own_call_and_no_other() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    assert_in_doubt(&client.call("die_after_charge", ada()));
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    let result = client.call("charge", json!({"customer": "bob", "amount": 3}));
    assert!(text(&result).starts_with("charged: "), "{result}");
    assert_eq!(home.effects(), 2);
}

#[test]
fn a_server_killed_after_the_effect_leaves_a_doubt() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    client.ask("tools/call", json!({"name": "slow_charge", "arguments": slow(&home)}));
    home.wait_until("the server has charged", || home.effects() == 1);
    kill(&home.world()[0]["pid"]);
    let (answer, _) = client.read_answer().expect("the call is answered");
    assert_in_doubt(&answer["result"]);
    home.file("until", "");
    assert_in_doubt(&Line::open(&home, Way::Guarded, Server::TypeScript).call("slow_charge", slow(&home)));
    assert_eq!(home.effects(), 1);
}

#[test]
fn semel_killed_after_the_effect_holds_the_call_when_it_is_back() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    client.ask("tools/call", json!({"name": "slow_charge", "arguments": slow(&home)}));
    home.wait_until("the server has charged", || home.effects() == 1);
    client.kill();
    home.file("until", "");
    assert_in_doubt(&Line::open(&home, Way::Guarded, Server::TypeScript).call("slow_charge", slow(&home)));
    assert_eq!(home.effects(), 1);
}

/// What the agent's crash looks like from here: the input ends while a call is at work.
#[test]
fn a_client_that_goes_away_leaves_an_effect_that_is_finished_and_kept() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    client.ask("tools/call", json!({"name": "slow_charge", "arguments": slow(&home)}));
    home.wait_until("the server has charged", || home.effects() == 1);
    home.file("until", "");
    client.close();
    let result = Line::open(&home, Way::Guarded, Server::TypeScript).call("slow_charge", slow(&home));
    assert!(text(&result).contains(home.world()[0]["id"].as_str().expect("an id")), "{result}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_server_ends_when_the_client_is_done() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::TypeScript);
    client.call("charge", ada());
    let server = home.world()[0]["pid"].clone();
    let ended = client.close();
    assert!(ended.success(), "{ended}");
    home.wait_until("the server has ended", || !lives(&server));
}

fn kill(process: &Value) {
    let ended = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(ended.is_ok_and(|status| status.success()), "the server was there to be killed");
}

fn lives(process: &Value) -> bool {
    std::path::Path::new("/proc").join(process.to_string()).exists()
}
