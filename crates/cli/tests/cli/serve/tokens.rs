//! Tokens of the ledger: made and revoked on the command line, honoured by every server on that ledger.

use super::served::{SESSION, Served, calling};
use super::upstream::Upstream;
use crate::home::Home;
use serde_json::json;

fn token(home: &Home, more: &[&str]) -> (String, String) {
    let made = home.json(["token", "create"].iter().chain(more));
    (made["token"].as_str().expect("a token").to_owned(), made["id"].as_str().expect("an id").to_owned())
}

fn status(served: &Served, token: &str) -> u16 {
    served
        .ask_raw("GET /mcp/bank HTTP/1.1", &format!("Authorization: Bearer {token}\r\n"), "")
        .answer()
        .status
}

#[test]
fn a_token_works_on_every_server_of_its_ledger_until_it_is_revoked() {
    let home = Home::new();
    let upstream = Upstream::start();
    let servers = [Served::before(&home, &upstream.url()), Served::before(&home, &upstream.url())];
    let (token, id) = token(&home, &["--scope", "agent", "--name", "ci", "--expires", "1h"]);
    for served in &servers {
        assert_eq!(status(served, &token), 200);
        assert_eq!(status(served, &format!("{token}0")), 401);
    }
    let listed = home.json(["token", "list"]);
    assert_eq!(listed["items"][0]["id"], json!(id));
    assert_eq!(
        (&listed["items"][0]["scope"], &listed["items"][0]["tenant"]),
        (&json!("agent"), &json!("local"))
    );
    home.json(["token", "revoke", &id]);
    for served in &servers {
        home.wait_until("it is refused", || status(served, &token) == 401);
    }
    assert_eq!(home.semel(["token", "revoke", &id]).code, Some(2));
    let (short, _) = self::token(&home, &["--scope", "agent", "--expires", "1ms"]);
    assert_eq!(status(&servers[0], &short), 401, "it is over");
    assert!(upstream.heard().iter().all(|heard| !heard.head.contains("semel_")), "no token goes further");
}

#[test]
fn a_token_is_shown_once_and_written_nowhere() {
    let home = Home::new();
    let ran = home.semel(["token", "create", "--scope", "admin"]);
    let token = ran.stdout.trim();
    assert!(token.starts_with("semel_") && token.len() > 64, "{ran:?}");
    assert!(!ran.stderr.contains(token));
    let secret = token.rsplit('_').next().expect("its last part");
    for file in home.state_files().iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(file).expect("it can be read");
        let written = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!written, "{} has it", file.display());
    }
    assert!(!home.semel(["token", "list"]).stdout.contains(secret));
    for bad in [
        &["--scope", "root"][..],
        &["--scope", "agent", "--tenant", "a/b"],
        &["--scope", "agent", "--name", ""],
        &["--scope", "agent", "--expires", "soon"],
        &[],
    ] {
        let ran = home.semel(["token", "create"].iter().chain(bad));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{bad:?}");
    }
}

#[test]
fn the_same_key_of_two_tenants_or_two_principals_is_two_effects() {
    let home = Home::new();
    let upstream = Upstream::start();
    let served = Served::before(&home, &upstream.url());
    let acme = token(&home, &["--scope", "agent", "--tenant", "acme", "--name", "ci"]).0;
    let other = token(&home, &["--scope", "agent", "--tenant", "other", "--name", "ci"]).0;
    let nightly = token(&home, &["--scope", "agent", "--tenant", "acme", "--name", "nightly"]).0;
    let renewed = token(&home, &["--scope", "agent", "--tenant", "acme", "--name", "ci"]).0;
    let mut message = calling(1, "charge", json!({"amount": 1}));
    message["params"]["idempotencyKey"] = json!("order-1");
    let call = |token: &str| {
        let headers = format!("Semel-Token: {token}\r\n{SESSION}");
        served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &message.to_string()).answer()
    };
    let first = call(&acme);
    assert_eq!(first.outcome(), "ran");
    for (token, outcome, effects) in
        [(&acme, "replayed", 1), (&other, "ran", 2), (&nightly, "ran", 3), (&renewed, "replayed", 3)]
    {
        let answer = call(token);
        assert_eq!((answer.outcome(), upstream.effects()), (json!(outcome), effects));
        let same = answer.json()["result"]["content"][0] == first.json()["result"]["content"][0];
        assert_eq!(same, outcome == "replayed", "no answer crosses: {answer:?}");
    }
}

#[test]
fn a_session_of_one_principal_is_closed_to_another_that_knows_its_id() {
    let home = Home::new();
    let upstream = Upstream::start();
    let served = Served::before(&home, &upstream.url());
    let [ann, bob] = ["ann", "bob"].map(|name| token(&home, &["--scope", "agent", "--name", name]).0);
    let ask = |token: &str, method: &str, headers: &str, body: &str| {
        let headers = format!("Semel-Token: {token}\r\n{headers}");
        served.ask_raw(&format!("{method} /mcp/bank HTTP/1.1"), &headers, body).answer()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let kind = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    assert_eq!(ask(&ann, "POST", kind, &hello.to_string()).status, 200);
    let session = "Mcp-Session-Id: s-1\r\n";
    let before = upstream.heard().len();
    assert_eq!(ask(&bob, "DELETE", session, "").status, 404);
    assert_eq!(ask(&bob, "GET", session, "").status, 404);
    assert_eq!(upstream.heard().len(), before, "the server hears nothing of it");
    assert_eq!(ask(&ann, "DELETE", session, "").status, 200);
}
