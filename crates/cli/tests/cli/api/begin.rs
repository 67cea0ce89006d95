//! Code that calls tools itself. The world here is a number that the tests count up when they are told to run.

use super::client::{ApiClient, charge, token};
use crate::home::Home;
use crate::serve::served::Served;
use semel_testkit::http::{Response, RouteReply, RoutedApi};
use serde_json::{Value, json};

fn agent(home: &Home) -> String {
    token(home, "agent", "local", "worker")
}

fn outcome(answer: &Response) -> Value {
    answer.json()["outcome"].clone()
}

fn code(answer: &Response) -> (u16, Value) {
    (answer.status, answer.json()["code"].clone())
}

fn confirmed_by(bank: &RoutedApi, within: &str) -> String {
    format!(
        "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\n\
         [rule.confirm]\nhttp = \"GET {}/charges/1\"\nok = \"status == 200\"\nwithin = \"{within}\"\n",
        bank.url()
    )
}

#[test]
fn a_lost_answer_is_asked_for_again_with_the_same_nonce_even_elsewhere() {
    let home = Home::new();
    let mut first = Served::start(&home, "");
    let token = agent(&home);
    let mut wish = charge("ann");
    wish["nonce"] = json!("01890a5d-ac96-774b-bcce-b302099a8057");
    let claim = ApiClient::new(&first.address, &token).claim(wish.clone());
    assert_eq!(ApiClient::new(&first.address, &token).claim(wish.clone()), claim);
    // Somebody else's nonce of the same name is another one.
    let stranger = super::client::token(&home, "agent", "local", "stranger");
    assert_ne!(ApiClient::new(&first.address, &stranger).claim(wish.clone())["claim"], claim["claim"]);
    first.kill();
    let second = Served::start(&home, "");
    let client = ApiClient::new(&second.address, &token);
    assert_eq!(client.claim(wish), claim, "a server that died took nothing with it");
    assert_eq!(code(&client.begin(charge("ann"))), (409, json!("in_flight")));
    assert_eq!(client.settle(&claim, "applied", json!("done")).status, 200);
    let replayed = client.begin(charge("ann"));
    assert_eq!((outcome(&replayed), &replayed.json()["data"]), (json!("replayed"), &json!("done")));
}

/// Whoever asked for its truth has gone with its process; whoever wants it again asks anew.
#[test]
fn a_success_is_asked_about_again_after_a_restart() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("GET /charges/1", [RouteReply::json(404, "{}")]);
    let mut served = Served::start(&home, &confirmed_by(&bank, "1h"));
    let token = agent(&home);
    let client = ApiClient::new(&served.address, &token);
    let claim = client.claim(charge("ann"));
    client.settle(&claim, "applied", json!({"id": "ch_1"}));
    served.kill();
    bank.tell("GET /charges/1", [RouteReply::json(200, "{}")]);
    let served = Served::again(&home);
    let client = ApiClient::new(&served.address, &token);
    assert_eq!(client.begin(charge("ann")).json()["outcome"], "replayed");
    home.wait_until("it is confirmed", || client.begin(charge("ann")).json()["evidence"] == "confirmed");
}

/// They wait for just that. And one holder's crowd leaves room for the others.
#[test]
fn a_crowd_that_waits_keeps_neither_the_settlement_nor_others_out() {
    let home = Home::new();
    let (ann, bob) = (token(&home, "agent", "local", "ann"), token(&home, "agent", "local", "bob"));
    // Room for sixteen connections, of which fifteen may have a request, and twelve one of the same holder.
    let served = Served::start_with_files(&home, "", 160);
    let mut wish = charge("ann");
    wish["wait"] = json!("60s");
    let crowd = |token: &str, size: usize| {
        let client = ApiClient::new(&served.address, token);
        let begin = || {
            let headers = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
            served.ask_raw("POST /api/v1/begin HTTP/1.1", &headers, &wish.to_string())
        };
        let mut waiting: Vec<_> = (1..size).map(|_| begin()).collect();
        // Which of two comes last is not known; one of them is the first that is refused. It may be one of the crowd.
        home.wait_until("there is no room", || {
            waiting.retain(|asked| !asked.is_answered());
            let refused = client.get("/effects").status == 503;
            if !refused && waiting.len() < size {
                waiting.push(begin());
            }
            refused
        });
        waiting
    };
    let clients = [ApiClient::new(&served.address, &ann), ApiClient::new(&served.address, &bob)];
    let claims = clients.each_ref().map(|client| client.claim(charge("ann")));
    let mut waiting = crowd(&ann, 12);
    assert_eq!(clients[1].get("/effects").status, 200, "there is room for others");
    waiting.extend(crowd(&bob, 3));
    for (client, claim) in clients.iter().zip(&claims) {
        assert_eq!(client.settle(claim, "applied", json!({"id": "ch_1"})).status, 200);
    }
    assert!(waiting.into_iter().all(|asked| asked.answer().status == 200));
}

/// The tool was called: to say that nothing was sent would be to call it again.
#[test]
fn a_settlement_that_cannot_be_recorded_is_to_be_brought_again() {
    let home = Home::new();
    let served = Served::start(&home, "");
    let client = ApiClient::new(&served.address, &agent(&home));
    let claim = client.claim(charge("ann"));
    let (file, away) = (home.state().join("ledger.db"), home.state().join("away.db"));
    std::fs::rename(&file, &away).expect("it is there");
    // Nor can it wait on the host's disk.
    let spool = home.state().join("ledger.spool");
    std::fs::write(&spool, "in the way").expect("writable");
    let lost = client.settle(&claim, "applied", json!({"id": "ch_1"}));
    assert_eq!((lost.status, &lost.json()["code"]), (503, &Value::Null), "{lost:?}");
    assert!(
        lost.body.contains("send it again, unchanged") && !lost.body.contains("Nothing was sent"),
        "{lost:?}"
    );
    std::fs::remove_file(&spool).expect("it is there");
    let kept = client.settle(&claim, "applied", json!({"id": "ch_1"}));
    assert!(kept.status == 200 && kept.body.contains("recorded on this host"), "{kept:?}");
    std::fs::rename(&away, &file).expect("it is there");
    assert_eq!(client.settle(&claim, "applied", json!({"id": "ch_1"})).status, 200);
}

#[test]
fn a_strict_policy_is_the_operators_word_and_no_call_weakens_it() {
    let home = Home::new();
    let served = Served::start(&home, "mode = \"strict\"\n");
    let agent = ApiClient::new(&served.address, &agent(&home));
    for class in ["read", "convergent", "act"] {
        let answer = agent.begin(json!({"action": "fn:charge", "arguments": {}, "class": class}));
        assert_eq!(answer.status, 403, "{class}: {answer:?}");
        let ran = home.semel(["run", "--class", class, "--policy", "semel.toml", "--", "touch", "there"]);
        assert_eq!((ran.code, home.work().join("there").exists()), (Some(125), false), "{class}: {ran:?}");
    }
    let answer = agent.begin(json!({"action": "fn:charge", "arguments": {}, "class": "consequential"}));
    assert_eq!(outcome(&answer), "run");
}
