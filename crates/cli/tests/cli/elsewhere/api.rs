//! The routes of such calls, asked by a client that does not keep to the rules.

use super::Office;
use crate::api::client::charge;
use crate::home::Home;
use crate::serve::served::Served;
use semel_core::time::At;
use semel_testkit::http::ApiClient;
use serde_json::{Value, json};
use std::time::Duration;

fn call(key: &str) -> Value {
    json!({
        "action": "cli:pay", "arguments": {"argv": ["pay"], "cwd": "/"}, "rule": {"origin": null, "class": "act"},
        "key": key, "nonce": format!("nonce-of-the-call-{key}"), "timeout_ms": 60_000, "wait_ms": 0,
    })
}

fn client(office: &Office, name: &str) -> ApiClient {
    ApiClient::new(&office.served.address, &office.token(name))
}

#[test]
fn a_claim_is_settled_by_its_own_principal_at_its_own_route() {
    let office = Office::open("");
    let (ann, bob) = (client(&office, "ann"), client(&office, "bob"));
    let begun = ann.post("/calls/begin", call("k")).json();
    assert_eq!((&begun["outcome"], &begun["attempt"]), (&json!("run"), &json!(1)), "{begun}");
    assert_eq!(ann.post("/calls/begin", call("k")).json()["claim"], begun["claim"], "the same nonce");
    let settle = |client: &ApiClient, path: &str, more: Value| {
        let mut form = json!({"claim": begun["claim"], "outcome": "applied"});
        form.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        client.post(path, form).status
    };
    assert_eq!(settle(&bob, "/calls/settle", json!({})), 404);
    assert_eq!(settle(&ann, "/settle", json!({"reply": 1})), 404, "its reply has another form");
    for bad in [
        json!({"evidence": "ruled"}),
        json!({"evidence": "confirmed"}),
        json!({"reply_base64": "?"}),
        json!({"reply_base64": "bm9uc2Vuc2U="}),
        json!({"why": "x".repeat(501)}),
        json!({"outcome": "done"}),
    ] {
        let status = settle(&ann, "/calls/settle", bad.clone());
        assert!(matches!(status, 400 | 422), "{status} {bad}");
    }
    assert_eq!(office.recorded()[0]["state"], "in_flight");
    assert_eq!(settle(&ann, "/calls/settle", json!({})), 200);
    assert_eq!(settle(&ann, "/calls/settle", json!({})), 200, "brought again");
    assert_eq!(settle(&ann, "/calls/settle", json!({"outcome": "refused"})), 409);
    let delivered =
        |client: &ApiClient| client.post("/calls/delivered", json!({"effect_id": begun["effect_id"]}));
    assert_eq!(office.recorded()[0]["delivered_at"], Value::Null, "nobody said so");
    assert_eq!(delivered(&bob).status, 404);
    assert_eq!(delivered(&ann).json(), json!({"delivered": true}));
    assert!(office.recorded()[0]["delivered_at"].is_string());
    // A claim of code that calls tools itself is none of a door.
    let claim = ann.claim(charge("ann"));
    let settled = ann.post("/calls/settle", json!({"claim": claim["claim"], "outcome": "applied"}));
    assert_eq!(settled.status, 404, "{settled:?}");
}

#[test]
fn a_call_that_makes_no_sense_begins_nothing() {
    let office = Office::open("");
    let ann = client(&office, "ann");
    for (member, value) in [
        ("action", json!("fn:charge")),
        ("action", json!("http:POST api.stripe.com/v1/charges")),
        ("action", json!("cli:")),
        ("action", json!(format!("cli:{}", "x".repeat(600)))),
        ("arguments", json!([1])),
        ("nonce", json!("short")),
        ("timeout_ms", json!(0)),
        ("timeout_ms", json!(86_400_001)),
        ("wait_ms", json!(60_001)),
        ("rule", json!({"origin": null, "class": "read"})),
        ("rule", json!({"origin": "a:1", "class": "act", "key": ["["]})),
        ("tenant", json!("other")),
        ("key", json!("")),
    ] {
        let mut form = call("k");
        form[member] = value.clone();
        let refused = ann.post("/calls/begin", form);
        assert!(matches!(refused.status, 400 | 422), "{member} {value}: {refused:?}");
    }
    assert_eq!(office.recorded().len(), 0);
    let whoami = ann.get("/whoami").json();
    assert_eq!((&whoami["scope"], &whoami["tenant"]), (&json!("agent"), &json!("local")), "{whoami}");
}

#[test]
fn a_reason_is_kept_without_an_operators_secrets() {
    let rule = "[[rule]]\nmatch = \"cli:pay\"\nclass = \"act\"\nsecret = [\"reply.card.pin\"]\n";
    let office = Office::open(rule);
    let ann = client(&office, "ann");
    for outcome in ["refused", "reported", "in_doubt"] {
        // A caller without a rule, and one whose own rule hides nothing.
        for origin in [Value::Null, json!("semel.toml:1")] {
            for why in [r#"{"card":{"pin":"4711"}}"#, "the pin was 4711"] {
                let mut form = call(&format!("{outcome}-{}-{}", origin.is_null(), why.len()));
                form["rule"]["origin"] = origin.clone();
                let claim = ann.post("/calls/begin", form).json()["claim"].take();
                let settlement = json!({"claim": claim, "outcome": outcome, "why": why});
                let answer = ann.post("/calls/settle", settlement);
                assert!(matches!(answer.status, 423 | 424), "{answer:?}");
                assert!(answer.body.contains("[redacted]") && !answer.body.contains("4711"), "{answer:?}");
            }
        }
    }
    assert!(!json!(office.recorded()).to_string().contains("4711"));
}

#[test]
fn a_claim_that_took_long_is_not_sent_after_its_deadline() {
    let home = Home::new();
    let pause = [("SEMEL_FAILPOINTS", "gate.before_claim=pause(1500)")];
    let served = Served::start_with(&home, "", &pause);
    let office = Office { home, served };
    let ann = client(&office, "ann");
    let at = |value: &Value| At::parse(value.as_str().expect("a time")).expect("a time");
    let asked_on = at(&ann.get("/whoami").json()["time"]);
    let begun = ann.post("/calls/begin", call("k")).json();
    let again = ann.post("/calls/begin", call("k")).json();
    assert_eq!(begun["claim"], again["claim"]);
    for claim in [begun, again] {
        let waited = Duration::from_millis(claim["waited_ms"].as_u64().expect("a number"));
        let last_moment = asked_on.plus(waited + Duration::from_secs(60));
        // Both times are cut to a millisecond.
        assert!(last_moment <= at(&claim["deadline"]).plus(Duration::from_millis(1)), "{claim}");
    }
}

#[test]
fn an_operators_rule_makes_a_callers_failure_a_doubt() {
    let office =
        Office::open("[[rule]]\nmatch = \"cli:pay\"\nclass = \"consequential\"\nfailure = \"in_doubt\"\n");
    let ann = client(&office, "ann");
    let begun = ann.post("/calls/begin", call("k")).json();
    assert_eq!(begun["class"], "consequential", "{begun}");
    let settled =
        ann.post("/calls/settle", json!({"claim": begun["claim"], "outcome": "refused", "why": "no"}));
    assert_eq!((settled.status, &settled.json()["code"]), (423, &json!("in_doubt")), "{settled:?}");
}
