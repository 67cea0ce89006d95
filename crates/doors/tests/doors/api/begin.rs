//! Code that calls tools itself. The world here is a number that the tests count up when they are told to run.

use super::{client_of, token};
use crate::house::{Home, House};
use semel_testkit::http::{Response, RouteReply, RoutedApi, charge};
use semel_testkit::wait_until;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn agent(house: &House) -> String {
    token(house, "agent", "local", "worker")
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
fn of_many_workers_at_two_servers_one_does_it_and_all_get_its_answer() {
    let home = Home::new();
    let servers = [House::start(&home, ""), House::start(&home, "")];
    let token = agent(&servers[0]);
    let world = AtomicUsize::new(0);
    let reply = r#"{"id":"ch_1","amount":9007199254740993,"rate":1.10}"#;
    let wish = json!({"action": "fn:charge", "arguments": {"customer": "ann"}});
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (servers, token, world, wish) = (&servers, &token, &world, &wish);
            scope.spawn(move || {
                let here = client_of(&servers[worker % 2], token);
                let there = client_of(&servers[(worker + 1) % 2], token);
                let answer = here.begin(wish.clone());
                if outcome(&answer) == json!("run") {
                    world.fetch_add(1, Ordering::SeqCst);
                    let claim = answer.json()["claim"].clone();
                    let body = format!(
                        r#"{{"claim":{claim},"outcome":"applied","effect":"created","reply":{reply}}}"#
                    );
                    let settled = there.ask("POST", "/settle", "Content-Type: application/json\r\n", &body);
                    assert_eq!(
                        (settled.status, &settled.json()["effect"]),
                        (200, &json!("created")),
                        "{settled:?}"
                    );
                } else {
                    assert_eq!(answer.status, 200, "{answer:?}");
                    assert!(
                        ["joined", "replayed"].map(Value::from).contains(&outcome(&answer)),
                        "{answer:?}"
                    );
                    assert!(answer.body.contains(reply), "to the digit: {answer:?}");
                }
            });
        }
    });
    assert_eq!(world.load(Ordering::SeqCst), 1);
    assert_eq!(servers[0].effects("").len(), 1);
}

#[test]
fn settling_again_is_answered_alike_and_otherwise_is_refused() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let claim = client.claim(charge("ann"));
    let first = client.settle(&claim, "applied", json!(1));
    let again = client.settle(&claim, "applied", json!(1));
    assert_eq!((first.status, &first.body), (200, &again.body));
    assert_eq!(client.settle(&claim, "not_applied", json!(1)).status, 409);
    let mut forged = claim.clone();
    let text = claim["claim"].as_str().expect("a claim");
    forged["claim"] =
        json!(format!("{}{}", &text[..text.len() - 1], if text.ends_with('0') { '1' } else { '0' }));
    assert_eq!(client.settle(&forged, "applied", json!(1)).status, 404);
}

#[test]
fn what_is_never_settled_is_in_doubt_at_its_deadline_until_somebody_looks() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let mut wish = charge("ann");
    wish["timeout"] = json!("1s");
    let claim = client.claim(wish.clone());
    let id = claim["effect_id"].as_str().expect("an id");
    wait_until("it is in doubt", || client.begin(wish.clone()).status == 423);
    let held = client.begin(wish.clone());
    assert_eq!(code(&held), (423, json!("in_doubt")));
    assert!(held.head.contains("x-should-retry: false"), "{held:?}");
    assert_eq!((&held.json()["effect_id"], &held.json()["effect"]), (&json!(id), &json!("unknown")));
    // A no that was asked too early does not count, nor does one that does not say when it was asked.
    let probe = |body: Value| client.post(&format!("/effects/{id}/probe"), body);
    assert_eq!(probe(json!({"found": "no"})).status, 409);
    assert_eq!(probe(json!({"found": "no", "asked_ms_ago": 0})).status, 409);
    assert_eq!(probe(json!({"found": "no", "asked_ms_ago": 3_600_001})).status, 400);
    let found = probe(json!({"found": "yes", "reply": {"id": "ch_1"}}));
    assert_eq!((found.status, &found.json()["evidence"]), (200, &json!("probed")));
    let replayed = client.begin(wish);
    assert_eq!(replayed.json()["data"], json!({"id": "ch_1"}));
    let late = client.settle(&claim, "applied", json!({"id": "ch_1"}));
    assert_eq!((late.status, &late.json()["ok"]), (200, &json!(true)), "the same success, told twice");
}

/// The arguments are not kept, and the rule that they chose is the effect's all the same.
#[test]
fn a_rule_with_a_condition_holds_to_the_end() {
    let home = Home::new();
    let rule = "[[rule]]\nmatch = \"fn:charge\"\nwhen = \"args.amount > 1000\"\nclass = \"consequential\"\neffect = \"sent\"\n";
    let house = House::start(&home, rule);
    let client = client_of(&house, &agent(&house));
    let wish = json!({"action": "fn:charge", "arguments": {"amount": 5000}, "wait": "0s"});
    let claim = client.claim(wish.clone());
    let settled = client.settle(&claim, "applied", json!({"id": "ch_1"}));
    assert_eq!((settled.status, &settled.json()["effect"]), (200, &json!("sent")), "{settled:?}");
    // The same holds for what is looked up by the client itself.
    let doubt = client.claim(json!({"action": "fn:charge", "arguments": {"amount": 6000}, "wait": "0s"}));
    client.settle(&doubt, "in_doubt", Value::Null);
    let id = doubt["effect_id"].as_str().expect("an id");
    client.post(&format!("/effects/{id}/probe"), json!({"found": "yes"}));
    let replayed = client.get(&format!("/effects/{id}")).json();
    assert_eq!(replayed["effect"], "sent", "{replayed}");
}

#[test]
fn a_success_that_was_disproved_is_not_brought_back_by_the_same_settlement() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("GET /charges/1", [RouteReply::json(404, "{}")]);
    let house = House::start(&home, &confirmed_by(&bank, "1s"));
    let client = client_of(&house, &agent(&house));
    let claim = client.claim(charge("ann"));
    client.settle(&claim, "applied", json!({"id": "ch_1"}));
    wait_until("it is disproved", || client.begin(charge("ann")).json()["code"] == "refuted");
    let again = client.settle(&claim, "applied", json!({"id": "ch_1"}));
    assert_eq!(again.status, 409, "{again:?}");
    assert!(again.body.contains("disproved"), "{again:?}");
    assert_eq!(client.begin(charge("ann")).json()["code"], "refuted");
}

/// A model's call has an id of its own each time; the key says that it is the same request.
#[test]
fn a_key_that_joins_is_the_same_request_after_the_window_whatever_the_id_of_the_call() {
    let home = Home::new();
    let rule = "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\nkey = [\"args.customer\"]\n\
                caller_key = \"joins\"\nwindow = \"1s\"\n";
    let house = House::start(&home, rule);
    let client = client_of(&house, &agent(&house));
    let wish = |customer: &str, key: &str, call: &str| {
        let mut wish = charge(customer);
        (wish["key"], wish["call_id"]) = (key.into(), call.into());
        wish
    };
    for customer in ["ann", "bob"] {
        let claim = client.claim(wish(customer, &format!("k-{customer}"), "toolu_01a"));
        client.settle(&claim, "applied", json!({"id": customer}));
        // Its answer has arrived.
        client.begin(wish(customer, &format!("k-{customer}"), "toolu_01a"));
    }
    let mut others = 0..;
    wait_until("bob's window is over, and with it ann's", || {
        let other = format!("other-{:?}", others.next().expect("numbers do not end"));
        client.begin(wish("bob", &other, "toolu_01b")).json()["outcome"] == "run"
    });
    let again = client.begin(wish("ann", "k-ann", "toolu_01c"));
    assert_eq!(again.json()["outcome"], "replayed", "{again:?}");
    assert_eq!(client.begin(wish("ann", "new", "toolu_01d")).json()["outcome"], "run");
}

/// The client brings its arguments with each begin, so semel can ask what the rule asks.
#[test]
fn a_doubt_is_cleared_by_the_probe_of_its_rule() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("GET /charges", [RouteReply::json(200, r#"{"id": "ch_9", "token": "t0p", "iban": "DE00"}"#)]);
    let rule = format!(
        "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\nsecret = [\"reply.iban\"]\n\
         [rule.probe]\nhttp = \"GET {}/charges?customer={{args.customer}}\"\nfound = \"status == 200\"\nreply = \"resp\"\n",
        bank.url()
    );
    let house = House::start(&home, &rule);
    let client = client_of(&house, &agent(&house));
    let claim = client.claim(charge("ann"));
    client.settle(&claim, "in_doubt", Value::Null);
    let answer = client.begin(charge("ann")).json();
    assert_eq!((&answer["outcome"], &answer["evidence"]), (&json!("replayed"), &json!("probed")), "{answer}");
    let kept = json!({"id": "ch_9", "token": "[redacted]", "iban": "[redacted]"});
    assert_eq!(answer["data"], kept, "what its rule calls secret is not written");
    assert_eq!(bank.requests().last().expect("it was asked").what(), "GET /charges?customer=ann");
}

#[test]
fn a_late_not_applied_leaves_the_doubt() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let mut wish = charge("ann");
    wish["timeout"] = json!("1s");
    let claim = client.claim(wish.clone());
    wait_until("it is in doubt", || client.begin(wish.clone()).status == 423);
    client.settle(&claim, "not_applied", Value::Null);
    assert_eq!(code(&client.begin(wish)), (423, json!("in_doubt")));
}

#[test]
fn whose_turn_it_is_is_told_to_nobody_else() {
    let home = Home::new();
    let house = House::start(&home, "");
    let (ann, bob) = (token(&house, "agent", "local", "ann"), token(&house, "agent", "local", "bob"));
    let (ann, bob) = (client_of(&house, &ann), client_of(&house, &bob));
    let turn = |name: &str| json!({"action": format!("fn:{name}"), "arguments": {"x": "private"}, "serialize_by": "account 7", "wait": "0s"});
    let claim = ann.claim(turn("secret_project"));
    let waits = bob.begin(turn("credit"));
    assert_eq!(code(&waits), (409, json!("in_flight")));
    let id = claim["effect_id"].as_str().expect("an id");
    assert!(!waits.body.contains("secret_project") && !waits.body.contains(id), "{waits:?}");
    assert!(ann.begin(turn("credit")).body.contains("secret_project"), "her own she is told of");
}

#[test]
fn an_operator_rules_on_a_doubt_and_takes_it_back() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let operator = client_of(&house, &token(&house, "operator", "local", "op"));
    let claim = client.claim(charge("ann"));
    let id = claim["effect_id"].as_str().expect("an id");
    let resolve = |body: Value| operator.post(&format!("/effects/{id}/resolve"), body);
    let applied = json!({"verdict": "applied", "reason": "seen", "reply": {"id": 7}});
    assert_eq!(resolve(applied.clone()).status, 409, "it is in flight");
    let unclear = client.settle(&claim, "in_doubt", Value::Null);
    assert_eq!((unclear.status, &unclear.json()["code"]), (200, &json!("in_doubt")));
    assert_eq!(resolve(json!({"verdict": "not_applied", "reason": "x", "reply": 1})).status, 422);
    let headers = "Content-Type: application/json\r\nSemel-Run-Id: r1\r\n";
    let in_a_run = operator.ask("POST", &format!("/effects/{id}/resolve"), headers, &applied.to_string());
    assert_eq!(in_a_run.status, 403, "a run does not rule on its own doubts: {in_a_run:?}");
    assert_eq!(resolve(json!({"verdict": "applied", "reason": " "})).status, 400);
    let ruled = resolve(applied);
    assert_eq!((ruled.status, &ruled.json()["evidence"]), (200, &json!("ruled")));
    assert_eq!(client.begin(charge("ann")).json()["data"], json!({"id": 7}));
    let journal = house.journal();
    assert!(journal.iter().any(|(_, data)| data["by"] == "operator token op"), "{journal:?}");
    let reopened = operator.post(&format!("/effects/{id}/reopen"), json!({"reason": "wrong one"}));
    assert_eq!((reopened.status, &reopened.json()["state"]), (200, &json!("in_doubt")));
    assert_eq!(operator.post(&format!("/effects/{id}/reopen"), json!({"reason": "again"})).status, 409);
    assert_eq!(resolve(json!({"verdict": "not_applied", "reason": "looked again"})).status, 200);
    let next = client.claim(charge("ann"));
    assert_eq!((&next["effect_id"], &next["attempt"]), (&json!(id), &json!(2)));
}

#[test]
fn a_cancelled_run_starts_nothing_and_says_what_it_did() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let operator = client_of(&house, &token(&house, "operator", "local", "op"));
    let wish = |customer: &str| {
        let mut wish = charge(customer);
        wish["run"] = json!("night/1");
        wish
    };
    let (done, open) = (client.claim(wish("ann")), client.claim(wish("bob")));
    client.settle(&done, "applied", json!(1));
    let cancel = |body: Value| operator.post("/runs/night%2F1/cancel", body).json();
    let told = cancel(json!({"reason": "enough"}));
    let ids = |list: &Value| {
        let list = list.as_array().expect("a list");
        list.iter().map(|effect| effect["effect_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(&told["applied"]), ids(&told["in_flight"])),
        (vec![done["effect_id"].clone()], vec![open["effect_id"].clone()])
    );
    assert_eq!(told["drained"], json!(false), "a client may still send");
    let refused = client.begin(wish("eve"));
    assert_eq!(code(&refused), (403, json!("cancelled")));
    client.settle(&open, "not_applied", json!("declined"));
    let told = cancel(json!({}));
    assert_eq!((&told["drained"], &told["prevented"][0]["action"]), (&json!(true), &json!("fn:charge")));
    assert_eq!(client.get("/runs/night%2F1").json()["cancelled"], json!(true));
    assert_eq!(cancel(json!({"lift": true}))["cancelled"], json!(false));
    client.claim(wish("eve"));
}

#[test]
fn a_wish_is_understood_or_refused_before_anything_is_claimed() {
    let home = Home::new();
    let policy = "[[rule]]\nmatch = \"fn:pay_*\"\nclass = \"consequential\"\nkey = [\"args.invoice\"]\nkey_required = true\n";
    let house = House::start(&home, policy);
    let client = client_of(&house, &agent(&house));
    let long = "x".repeat(300);
    for (wish, status) in [
        (json!({}), 400),
        (json!({"action": "charge"}), 400),
        (json!({"action": "fn:"}), 400),
        (json!({"action": "mcp:a/b"}), 400),
        (json!({"action": format!("fn:{long}")}), 400),
        (json!({"action": "fn:a b"}), 400),
        (json!({"action": "fn:a", "arguments": []}), 400),
        (json!({"action": "fn:a", "key": ""}), 400),
        (json!({"action": "fn:a", "key": long}), 400),
        (json!({"action": "fn:a", "run": "a\nb"}), 400),
        (json!({"action": "fn:a", "nonce": "short"}), 400),
        (json!({"action": "fn:a", "timeout": "2d"}), 400),
        (json!({"action": "fn:a", "wait": "61s"}), 400),
        (json!({"action": "fn:a", "class": "harmless"}), 400),
        (json!({"action": "fn:a", "unknown": 1}), 400),
        (json!({"action": "fn:pay_bill"}), 400),
        (json!({"action": "fn:pay_bill", "arguments": {"invoice": 1}, "class": "read"}), 403),
    ] {
        let answer = client.begin(wish.clone());
        assert_eq!(answer.status, status, "{wish}: {answer:?}");
        assert!(answer.head.contains("application/problem+json"), "{answer:?}");
        assert_eq!(answer.json()["status"], json!(status));
    }
    let raw = |headers: &str, body: &str| client.ask("POST", "/begin", headers, body).status;
    let kind = "Content-Type: application/json\r\n";
    assert_eq!(raw(kind, "{"), 400);
    assert_eq!(raw(kind, r#"{"action":"fn:a","action":"fn:b"}"#), 400);
    assert_eq!(raw(kind, r#"{"action":"fn:a","arguments":{"x":1,"x":2}}"#), 400);
    assert_eq!(
        raw(
            kind,
            &format!(
                r#"{{"action":"fn:a","arguments":{{"x":{}1{}}}}}"#,
                "[".repeat(9_999),
                "]".repeat(9_999)
            )
        ),
        400
    );
    assert_eq!(raw("Content-Type: text/plain\r\n", "{}"), 415);
    assert_eq!(raw(&format!("{kind}Content-Encoding: gzip\r\n"), "{}"), 415);
    assert_eq!(raw(&format!("{kind}Content-Length: 99999999\r\n"), "{}"), 413);
    assert_eq!(raw(&format!("{kind}Semel-Run-Id: \u{1}\r\n"), "{}"), 400);
    assert!(house.effects("").is_empty());
    let refused = client.begin(json!({"action": "fn:pay_bill"}));
    assert_eq!(code(&refused), (400, json!("key_required")));
}

#[test]
fn drift_dry_runs_reads_and_turns_are_answered_as_everywhere() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &agent(&house));
    let keyed = |amount: u64| json!({"action": "fn:charge", "key": "k", "arguments": {"amount": amount}, "wait": "0s"});
    let dry =
        client.begin(json!({"action": "fn:charge", "key": "k", "arguments": {"amount": 1}, "dry_run": true}));
    assert_eq!((outcome(&dry), &dry.json()["would"]), (json!("dry_run"), &json!("run")));
    client.claim(keyed(1));
    let drift = client.begin(keyed(2));
    assert_eq!((code(&drift), &drift.json()["differing"]), ((422, json!("drift")), &json!(["args.amount"])));
    let read = client.claim(json!({"action": "fn:get_balance", "arguments": {}}));
    assert_eq!(read["claim"], Value::Null, "a read is not recorded");
    let turn =
        |name: &str| json!({"action": format!("fn:{name}"), "serialize_by": "account 7", "wait": "0s"});
    let first = client.claim(turn("debit"));
    assert_eq!(code(&client.begin(turn("credit"))), (409, json!("in_flight")));
    client.settle(&first, "applied", json!(1));
    client.claim(turn("credit"));
}

/// Who asks for a dry run, in the body or in a header, is handed no claim.
#[test]
fn a_dry_run_that_a_header_asks_for_hands_out_no_claim() {
    let home = Home::new();
    let house = House::start(&home, "");
    let client = client_of(&house, &token(&house, "operator", "local", "boss"));
    let wish = charge("ann").to_string();
    let post = |path: &str, header: &str, body: &str| {
        client.ask("POST", path, &format!("Content-Type: application/json\r\n{header}\r\n"), body)
    };
    let dry = post("/begin", "Semel-Dry-Run: 1", &wish);
    assert_eq!((outcome(&dry), &dry.json()["would"]), (json!("dry_run"), &json!("run")), "{dry:?}");
    for odd in ["Semel-Dryrun: 1", "X-Semel-Dry-Run: 1", "Semel-Dry-Run: maybe"] {
        assert_eq!(post("/begin", odd, &wish).status, 400, "{odd}");
    }
    assert_eq!(house.effects("").len(), 0);
    // What has no dry run is not done instead.
    let claim = client.claim(charge("ann"));
    let settles = json!({"claim": claim["claim"], "outcome": "applied", "reply": 1}).to_string();
    let settled = post("/settle", "Semel-Dry-Run: 1", &settles);
    assert!(settled.status == 400 && settled.body.contains("no dry run"), "{settled:?}");
    assert_eq!(house.effects("")[0]["state"], "in_flight");
    assert_eq!(client.ask("GET", "/effects", "Semel-Dry-Run: 1\r\n", "").status, 200, "it changes nothing");
    assert_eq!(post("/settle", "Semel-Dry-Run: 0", &settles).status, 200);
    let again = post("/begin", "Semel-Again: the second month", &wish);
    assert_eq!(outcome(&again), json!("run"), "{again:?}");
}

#[test]
fn a_reply_is_kept_without_secrets_and_a_giant_one_not_at_all() {
    let home = Home::new();
    let house = House::start(&home, "[[rule]]\nmatch = \"fn:*\"\nsecret = [\"reply.card.number\"]\n");
    let client = client_of(&house, &agent(&house));
    let claim = client.claim(charge("ann"));
    client.settle(
        &claim,
        "applied",
        json!({"id": 1, "api_key": "hunter2hunter2", "card": {"number": "hunter2", "expires": "12/30"}}),
    );
    let replayed = client.begin(charge("ann"));
    assert!(!replayed.body.contains("hunter2") && replayed.body.contains("12/30"), "{replayed:?}");
    assert_eq!(replayed.json()["data"]["id"], json!(1));
    let claim = client.claim(charge("bob"));
    let settled = client.settle(&claim, "applied", json!("x".repeat(2 << 20)));
    assert_eq!(settled.status, 200);
    let replayed = client.begin(charge("bob")).json();
    assert_eq!((&replayed["ok"], &replayed["data"]), (&json!(true), &Value::Null));
    assert!(replayed["reason"].as_str().is_some_and(|reason| reason.contains("was not kept")), "{replayed}");
    let id = claim["effect_id"].as_str().expect("an id");
    assert_eq!(client.get(&format!("/effects/{id}/reply")).json()["reply"], json!("too_large"));
    let claim = client.claim(charge("eve"));
    let why = r#"it answered {"card": {"number": "hunter2"}, "card": 1}"#;
    let settled = json!({"claim": claim["claim"], "outcome": "in_doubt", "why": why});
    assert_eq!(client.post("/settle", settled).status, 200);
    assert!(!home.holds("hunter2"));
}

/// In memory a wish takes many times its length, for as long as it waits.
#[test]
fn large_wishes_wait_a_few_at_a_time_and_what_was_done_can_be_brought_meanwhile() {
    let home = Home::new();
    let house = House::start(&home, "");
    let (token, other) = (agent(&house), token(&house, "agent", "local", "another"));
    let client = client_of(&house, &token);
    let wish = |wait: &str| {
        let arguments = json!({"customer": "ann", "note": "x".repeat(300_000)});
        json!({"action": "fn:charge", "arguments": arguments, "wait": wait})
    };
    let claim = client.claim(wish("0s"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let twins: Vec<_> = (0..6).map(|_| scope.spawn(|| client.begin(wish("9s")).status)).collect();
        twins.into_iter().map(|twin| twin.join().expect("it ends")).collect()
    });
    // Four of one client wait, and the others are turned away; nobody else is.
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 2, "{statuses:?}");
    assert_eq!(client_of(&house, &other).begin(wish("0s")).status, 200);
    assert_eq!(client.settle(&claim, "applied", json!({})).status, 200);
}
