//! `semel stats`: over all processes and doors, beside the world's own count.

use crate::api::client::{ApiClient, charge};
use crate::home::Home;
use crate::llm::stage::{Stage, request};
use crate::serve::served::{SESSION, Served, TOKEN, calling};
use semel_testkit::http::{FakeMcpServer, FakeModelApi};
use serde_json::{Value, json};

fn stats(home: &Home) -> Value {
    home.json(["stats"])
}

#[test]
fn what_commands_asked_and_did_adds_up() {
    let home = Home::new();
    assert_eq!(stats(&home)["total"]["asked"], json!(0));
    assert!(!home.state().exists(), "looking founds no ledger");
    let script = home.file("charge.sh", "echo charged >> world\n");
    let script = script.to_str().expect("a path");
    for _ in 0..3 {
        home.semel(["run", "--key", "k", "--", "sh", script]);
    }
    home.doubt("d");
    home.semel(["run", "--key", "d", "--", "sh", "-c", "kill -9 $$"]);
    home.semel(["run", "--class", "read", "--", "true"]);
    let cli = stats(&home)["doors"]["cli"].clone();
    let count = |name: &str| cli[name].as_u64().expect("a number");
    assert_eq!((count("asked"), count("sent"), count("passed_through")), (6, 3, 1), "{cli}");
    assert_eq!(
        (count("applied"), count("replayed"), count("in_doubt"), count("held")),
        (1, 2, 1, 1),
        "{cli}"
    );
    let world = std::fs::read_to_string(home.work().join("world")).expect("it happened");
    assert_eq!(world.lines().count(), 1);
    assert_eq!(cli["repeated"]["agent"], json!(3));
    let text = home.semel(["stats", "--since", "1d"]);
    assert!(text.stdout.contains("cli") && text.stdout.contains("HAPPENED"), "{text:?}");
    assert!(text.stderr.contains("1 in doubt now"), "{text:?}");
    assert_eq!(home.json(["stats", "--tenant", "other"])["total"]["asked"], json!(0));
}

#[test]
fn servers_count_for_their_tenants_and_write_it_down_at_the_latest_when_they_end() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = Served::before(&home, &upstream.url());
    for _ in 0..3 {
        served.call("charge", json!({"amount": 1}));
    }
    served.call("get_balance", json!({}));
    let acme = home.json(["token", "create", "--scope", "operator", "--tenant", "acme"]);
    let token = acme["token"].as_str().expect("a token");
    let headers = format!("Semel-Token: {token}\r\n{SESSION}");
    let body = calling(1, "charge", json!({"amount": 1})).to_string();
    served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &body).answer();
    let told = |token: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        served.ask_raw("GET /api/v1/stats HTTP/1.1", &headers, "").answer().json()["total"].clone()
    };
    let (ours, theirs) = (told(TOKEN), told(token));
    assert_eq!(
        (&ours["asked"], &ours["sent"], &ours["replayed"]),
        (&json!(4), &json!(2), &json!(2)),
        "{ours}"
    );
    assert_eq!((&theirs["asked"], &theirs["sent"]), (&json!(1), &json!(1)), "{theirs}");
    assert_eq!(upstream.effects(), 2);
    served.call("charge", json!({"amount": 1}));
    assert!(served.stop().success());
    let all = stats(&home);
    assert_eq!(
        (&all["doors"]["mcp"]["asked"], &all["doors"]["mcp"]["applied"]),
        (&json!(6), &json!(2)),
        "{all}"
    );
}

#[test]
fn a_doubt_that_is_cleared_counts_as_what_is_known_then_whoever_clears_it() {
    let home = Home::new();
    let mut served = Served::start(&home, "");
    let client = ApiClient::new(&served.address, TOKEN);
    let doubts = ["probe", "resolve", "resolve not", "command line"].map(|customer| {
        let claim = client.claim(charge(customer));
        client.settle(&claim, "in_doubt", json!(null));
        claim["effect_id"].as_str().expect("an id").to_owned()
    });
    let told = |id: &str, how: &str, body: Value| {
        let answer = client.post(&format!("/effects/{id}/{how}"), body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    told(&doubts[0], "probe", json!({"found": "yes"}));
    told(&doubts[1], "resolve", json!({"verdict": "applied", "reason": "seen"}));
    told(&doubts[2], "resolve", json!({"verdict": "not_applied", "reason": "looked"}));
    let headers = format!("Authorization: Bearer {TOKEN}\r\n");
    let metrics = served.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
    for (state, count) in [("applied", 2), ("not_applied", 1), ("in_doubt", 4)] {
        let line = format!("semel_effects_total{{door=\"fn\",state=\"{state}\"}} {count}\n");
        assert!(metrics.contains(&line), "no {line}in\n{metrics}");
    }
    assert!(served.stop().success());
    home.semel(["ledger", "resolve", &doubts[3], "--reason", "seen", "--applied"]);
    let by_functions = &stats(&home)["doors"]["fn"];
    assert_eq!(
        [&by_functions["applied"], &by_functions["not_applied"], &by_functions["in_doubt"]],
        [&json!(3), &json!(1), &json!(4)],
        "{by_functions}"
    );
}

#[test]
fn a_generation_that_was_lost_needs_nobody_and_nothing_says_otherwise() {
    let mut stage = Stage::new();
    assert_eq!(stage.answer(FakeModelApi::Chat, &request("cut-once")).status, 502);
    assert_eq!(stage.count("in_doubt"), 1);
    let operator = stage.home.json(["token", "create", "--scope", "operator"]);
    let headers = format!("Authorization: Bearer {}\r\n", operator["token"].as_str().expect("a token"));
    let metrics = stage.served.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
    assert!(metrics.contains("semel_effects_in_doubt 0\n"), "{metrics}");
    assert!(stage.served.stop().success());
    let home = &stage.home;
    let (ledger, told) = (home.semel(["ledger"]), home.semel(["stats"]));
    assert!(ledger.stdout.contains("nothing needs a decision"), "{ledger:?}");
    assert!(!told.stderr.contains("in doubt now"), "{told:?}");
    assert_eq!(stats(home)["in_doubt_now"], json!(0));
    home.semel(["ledger", "mark-restored", "--reason", "restored"]);
    let accepted = home.semel(["ledger", "end-quarantine"]);
    assert!(accepted.code == Some(0) && !accepted.stderr.contains("still in doubt"), "{accepted:?}");
    home.doubt("d");
    assert_eq!(stats(home)["in_doubt_now"], json!(1));
    let accepted = home.semel(["ledger", "end-quarantine"]);
    assert!(accepted.stderr.contains("1 effect is still in doubt"), "{accepted:?}");
}
