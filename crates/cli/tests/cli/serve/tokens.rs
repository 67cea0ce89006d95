//! Tokens of the ledger: made and revoked on the command line, honoured by every server on that ledger.

use super::served::{SESSION, Served, TOKEN, calling};
use crate::api::client::ApiClient;
use crate::home::Home;
use crate::proxy;
use semel_testkit::http::{ApiAct, FakeMcpServer};
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
    let upstream = FakeMcpServer::start();
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
    assert_eq!(home.json(["token", "revoke", &id])["effect"], "noop");
    let (short, _) = self::token(&home, &["--scope", "agent", "--expires", "1ms"]);
    assert_eq!(status(&servers[0], &short), 401, "it is over");
    assert!(
        upstream.requests().iter().all(|heard| !heard.head.text.contains("semel_")),
        "no token goes further"
    );
}

#[test]
fn a_token_is_shown_once_and_written_nowhere() {
    let home = Home::new();
    let ran = home.semel(["token", "create", "--scope", "admin"]);
    let token = ran.stdout.trim();
    assert!(token.starts_with("semel_") && token.len() > 64, "{ran:?}");
    assert!(!ran.stderr.contains(token));
    assert!(ran.stderr.contains("It shares effects with no other token"), "{ran:?}");
    let named = home.semel(["token", "create", "--scope", "agent", "--name", "ci"]);
    assert!(named.stderr.contains("It shares effects only with tokens named ci."), "{named:?}");
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
    let upstream = FakeMcpServer::start();
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
    assert_eq!(first.tool_outcome(), "ran");
    for (token, outcome, effects) in
        [(&acme, "replayed", 1), (&other, "ran", 2), (&nightly, "ran", 3), (&renewed, "replayed", 3)]
    {
        let answer = call(token);
        assert_eq!((answer.tool_outcome(), upstream.effects()), (json!(outcome), effects));
        let same = answer.json()["result"]["content"][0] == first.json()["result"]["content"][0];
        assert_eq!(same, outcome == "replayed", "no answer crosses: {answer:?}");
    }
}

#[test]
fn a_session_of_one_principal_is_closed_to_another_that_knows_its_id() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
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
    let before = upstream.requests().len();
    assert_eq!(ask(&bob, "DELETE", session, "").status, 404);
    assert_eq!(ask(&bob, "GET", session, "").status, 404);
    assert_eq!(upstream.requests().len(), before, "the server hears nothing of it");
    assert_eq!(ask(&ann, "DELETE", session, "").status, 200);
}

/// How many requests are under way, this question included.
fn wait_for_requests(home: &Home, served: &Served, count: usize) {
    let headers = format!("Authorization: Bearer {TOKEN}\r\n");
    let open = format!("semel_requests_open {count}\n");
    let text = || served.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
    home.wait_until("they are under way", || text().contains(&open));
}

/// Revokes it, and waits until this server knows.
fn revoke(home: &Home, served: &Served, (token, id): &(String, String)) {
    home.json(["token", "revoke", id]);
    let headers = format!("Authorization: Bearer {token}\r\n");
    let status = || served.ask_raw("GET /api/v1/effects HTTP/1.1", &headers, "").answer().status;
    home.wait_until("it is refused", || status() == 401);
}

/// They take turns, and the token of whoever comes second is revoked while it waits for the first.
#[test]
fn what_waits_for_its_turn_is_not_sent_for_a_token_that_was_revoked_meanwhile() {
    let rule = |action: &str, turn: &str| {
        format!(
            "[[rule]]\nmatch = \"{action}\"\nclass = \"consequential\"\nwait = \"60s\"\nserialize_by = \"{turn}\"\n"
        )
    };

    let stage = proxy::stage::Stage::with(&rule("http:POST bank/*", "body.account"));
    let bob = token(&stage.home, &["--scope", "agent", "--name", "bob"]);
    stage.api.next(ApiAct::Hold);
    let first = stage.ask("POST", "/charges", proxy::stage::JSON, r#"{"account":7,"n":1}"#);
    stage.api.wait_for_requests(1);
    let headers = format!("Semel-Token: {}\r\n{}", bob.0, proxy::stage::JSON);
    let waits = stage.served.ask_raw("POST /p/api/charges HTTP/1.1", &headers, r#"{"account":7,"n":2}"#);
    wait_for_requests(&stage.home, &stage.served, 3);
    revoke(&stage.home, &stage.served, &bob);
    stage.api.release();
    assert_eq!(first.answer().status, 201);
    let refused = waits.answer();
    assert_eq!((refused.status, &refused.json()["code"]), (502, &json!("not_started")), "{refused:?}");
    assert!(refused.json()["what_happened"].to_string().contains("revoked"), "{refused:?}");
    assert_eq!((stage.api.requests().len(), stage.api.effects()), (1, 1));

    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let policy =
        format!("[mcp.bank]\nurl = \"{}\"\n{}", upstream.url(), rule("mcp:bank/charge", "args.account"));
    let served = Served::start(&home, &policy);
    let bob = token(&home, &["--scope", "agent", "--name", "bob"]);
    let ask = |token: &str, arguments| {
        let headers = format!("Semel-Token: {token}\r\n{SESSION}");
        served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &calling(1, "charge", arguments).to_string())
    };
    let first = ask(TOKEN, json!({"account": 7, "n": 1, "waits": true}));
    home.wait_until("the first is under way", || upstream.effects() == 1);
    let waits = ask(&bob.0, json!({"account": 7, "n": 2}));
    wait_for_requests(&home, &served, 3);
    revoke(&home, &served, &bob);
    upstream.release();
    assert!(first.answer().body.contains("charged"));
    // The stream that the token had opened breaks off with it, so what counts is that nothing was sent.
    home.wait_until("nothing is under way", || {
        let listed = home.json(["ledger", "list", "--state", "in_flight"]);
        listed["items"] == json!([]) && served.calls_in_flight() == 0
    });
    assert_eq!(upstream.effects(), 1);
    drop(waits);

    let admin = ApiClient::new(&served.address, TOKEN);
    let carol = token(&home, &["--scope", "agent", "--name", "carol"]);
    let wish = |name: &str, wait: &str| json!({"action": format!("fn:{name}"), "serialize_by": "account 7", "wait": wait});
    let claim = admin.claim(wish("first", "0s"));
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", carol.0);
    let body = wish("second", "60s").to_string();
    let waits = served.ask_raw("POST /api/v1/begin HTTP/1.1", &headers, &body);
    wait_for_requests(&home, &served, 2);
    revoke(&home, &served, &carol);
    assert_eq!(admin.settle(&claim, "applied", json!(1)).status, 200);
    let refused = waits.answer();
    assert_eq!((refused.status, &refused.json()["code"]), (502, &json!("not_started")), "{refused:?}");
    let listed = home.json(["ledger", "list"]);
    assert!(!listed.to_string().contains("fn:second"), "{listed}");
}
