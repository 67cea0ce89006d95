use super::{assert_named, client_of, token};
use crate::house::{Home, House, TOKEN};
use semel_doors::api::{BASE, routes};
use semel_ledger::tokens::AccessScope;
use semel_testkit::http::{Response, charge};
use semel_testkit::wait_until;
use serde_json::json;

/// A path of the table with something in place of its parameters.
fn filled(path: &str) -> String {
    path.replace("{id}", "ef_01ARZ3NDEKTSV4RRFFQ69G5FAV").replace("{run}", "r")
}

/// What tells two refusals apart, if anything: all but the name that was asked for and the moment.
fn without(answer: &Response, name: &str) -> (u16, Vec<String>, String) {
    let lines = answer.head.lines().filter(|line| !line.starts_with("date: ")).map(str::to_owned);
    (answer.status, lines.collect(), answer.body.replace(name, "NAME"))
}

/// How often the ledger was written so far.
fn commits(house: &House) -> String {
    let headers = format!("Authorization: Bearer {TOKEN}\r\n");
    let text = house.ask("GET /metrics HTTP/1.1", &headers, "").answer().body;
    let line = text.lines().find(|line| line.starts_with("semel_ledger_commit_seconds_count"));
    line.expect("commits are counted").to_owned()
}

#[test]
fn every_route_needs_a_token_and_its_scope() {
    let home = Home::new();
    let house = House::start(&home, "");
    let tokens = AccessScope::ALL.map(|scope| (scope, token(&house, scope.word(), "local", scope.word())));
    for route in routes() {
        let first = format!("{} {BASE}{} HTTP/1.1", route.method, filled(route.path));
        let ask = |headers: &str| {
            let headers = format!("Content-Type: application/json\r\n{headers}");
            let answer = house.ask(&first, &headers, "{}").answer();
            assert_named(&route, &answer);
            answer
        };
        for none in
            ["", "Authorization: Bearer sk-somebodys\r\n", "Semel-Token: semel_x_y\r\n", "X-Api-Key: k\r\n"]
        {
            let answer = ask(none);
            assert_eq!(answer.status, 401, "{route:?} {none}: {answer:?}");
            assert!(answer.head.contains("www-authenticate"), "{route:?}");
        }
        for (scope, token) in &tokens {
            let answer = ask(&format!("Authorization: Bearer {token}\r\n"));
            assert!(!answer.body.contains(token), "{route:?}");
            let refused = *scope < route.scope;
            assert_eq!(answer.status == 403, refused, "{route:?} with {scope}: {answer:?}");
            assert!(answer.status != 401 && answer.status < 500, "{route:?} with {scope}: {answer:?}");
        }
        for headers in ["Host: evil.test\r\n", "Origin: https://evil.test\r\n", "Origin: null\r\n"] {
            let answer = ask(&format!("Authorization: Bearer {}\r\n{headers}", tokens[2].1));
            assert_eq!(answer.status, 403, "{route:?} {headers}");
        }
    }
}

#[test]
fn a_foreign_page_claims_nothing() {
    let home = Home::new();
    let house = House::start(&home, "");
    let agent = token(&house, "agent", "local", "a");
    let body = charge("ann").to_string();
    for headers in ["Origin: https://evil.test\r\n", "Origin: null\r\n", "Host: evil.test\r\n"] {
        let headers = format!("{headers}Authorization: Bearer {agent}\r\nContent-Type: application/json\r\n");
        let answer = house.ask("POST /api/v1/begin HTTP/1.1", &headers, &body).answer();
        assert_eq!(answer.status, 403);
    }
    // What a page can send without asking first: a simple request has no JSON type.
    let headers = format!("Authorization: Bearer {agent}\r\nContent-Type: text/plain\r\n");
    assert_eq!(house.ask("POST /api/v1/begin HTTP/1.1", &headers, &body).answer().status, 415);
    assert!(house.effects("").is_empty());
}

#[test]
fn what_is_another_tenants_is_as_good_as_absent() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = |scope: &str, tenant: &str| client_of(&house, &token(&house, scope, tenant, "x"));
    let ours = client("admin", "acme");
    // One that its own tenant will find lapsed, and write that down.
    let brief = json!({"action": "fn:charge", "arguments": {"n": 2}, "wait": "0s", "timeout": "1ms"});
    let overdue = ours.claim(brief)["effect_id"].as_str().expect("an id").to_owned();
    let theirs = client("admin", "other");
    let wish = json!({"action": "fn:charge", "arguments": {"canary": "sings"}, "run": "r1", "key": "k1", "wait": "0s"});
    let claim = ours.claim(wish.clone());
    let id = claim["effect_id"].as_str().expect("an id").to_owned();
    let before = commits(&house);
    let absent = "ef_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (method, path, body) in [
        ("GET", "/effects/{}", None),
        ("GET", "/effects/{}/reply", None),
        ("POST", "/effects/{}/resolve", Some(json!({"verdict": "applied", "reason": "x"}))),
        ("POST", "/effects/{}/reopen", Some(json!({"reason": "x"}))),
        ("POST", "/effects/{}/again", Some(json!({"reason": "x"}))),
        ("POST", "/effects/{}/probe", Some(json!({"found": "yes"}))),
        ("POST", "/effects/{}/undo", Some(json!({"reason": "x"}))),
    ] {
        let ask = |id: &str| {
            let body = body.as_ref().map(ToString::to_string).unwrap_or_default();
            theirs.ask(method, &path.replace("{}", id), "Content-Type: application/json\r\n", &body)
        };
        let (hers, late, none) = (ask(&id), ask(&overdue), ask(absent));
        assert_eq!(without(&hers, &id), without(&none, absent), "{method} {path}");
        assert_eq!(without(&late, &overdue), without(&none, absent), "{method} {path}");
        assert_eq!(hers.status, 404, "{method} {path}: {hers:?}");
        assert_eq!(ask(&id[20..]).status, 404, "nor by its end");
    }
    assert_eq!(without(&theirs.get("/runs/r1"), "r1"), without(&theirs.get("/runs/r2"), "r2"));
    assert_eq!(commits(&house), before, "nothing was written because they asked");
    assert_eq!(ours.get(&format!("/effects/{overdue}")).json()["state"], "in_doubt");
    assert_ne!(commits(&house), before, "its own tenant sees it as it is now");
    assert_eq!(theirs.get("/runs/r1").status, 404);
    for list in ["/effects", "/runs", "/effects?run=r1"] {
        assert_eq!(theirs.get(list).json()["items"], json!([]), "{list}");
    }
    // Possession of a claim, a key or a run's name opens nothing.
    assert_eq!(theirs.settle(&claim, "applied", json!(1)).status, 404);
    assert_ne!(theirs.claim(wish.clone())["effect_id"], json!(id), "the same key is another effect");
    assert_eq!(
        theirs.post("/runs/r1/cancel", json!({})).json()["in_flight"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(
        ours.get("/runs/r1").json()["cancelled"],
        json!(false),
        "their run of that name is another one"
    );
    assert_eq!(ours.settle(&claim, "applied", json!(1)).status, 200);
    assert_eq!(theirs.get("/tokens").json()["items"].as_array().map(Vec::len), Some(1));
    let ours_listed = ours.get("/tokens").json();
    let theirs_asks =
        theirs.ask("DELETE", &format!("/tokens/{}", ours_listed["items"][0]["id"].as_str().unwrap()), "", "");
    assert_eq!(theirs_asks.status, 404);
}

#[test]
fn an_admin_makes_tokens_for_its_own_tenant_and_they_can_be_revoked() {
    let home = Home::new();
    let house = House::start(&home, "");
    let admin = client_of(&house, &token(&house, "admin", "acme", "root"));
    let made = admin.post("/tokens", json!({"scope": "agent", "name": "ci"})).json();
    assert_eq!(made["tenant"], json!("acme"));
    let agent = client_of(&house, made["token"].as_str().expect("a token"));
    agent.claim(charge("ann"));
    assert_eq!(agent.post("/tokens", json!({"scope": "admin"})).status, 403);
    assert_eq!(admin.post("/tokens", json!({"scope": "agent", "tenant": "other"})).status, 400);
    let revoked = admin.ask("DELETE", &format!("/tokens/{}", made["id"].as_str().expect("an id")), "", "");
    assert_eq!(revoked.status, 200);
    wait_until("it is refused", || agent.get("/effects").status == 401);
}
