//! What the API says to whoever asks it wrongly.

use super::client_of;
use crate::house::{Home, House, TOKEN};
use semel_doors::api::routes;
use semel_testkit::http::charge;
use serde_json::json;

#[test]
fn what_cannot_be_understood_is_said_in_plain_words() {
    let home = Home::new();
    let house = House::start(&home, "");
    let admin = client_of(&house, TOKEN);
    let claim = admin.claim(charge("ann"));
    let id = claim["effect_id"].as_str().expect("an id");
    let bodies = [
        "1",
        "null",
        "[]",
        "[1]",
        "\"x\"",
        "{",
        "{}x",
        "{\"no\":1}",
        "{\"reason\":1}",
        "{\"reason\":{}}",
        "{\"action\":[]}",
        "{\"action\":\"fn:x\",\"class\":\"loud\"}",
        "{\"action\":\"fn:x\",\"class\":1}",
        "{\"claim\":\"x\",\"outcome\":\"maybe\"}",
        "{\"claim\":\"x\",\"outcome\":{}}",
        "{\"found\":\"perhaps\"}",
        "{\"found\":\"no\",\"asked_ms_ago\":\"1\"}",
        "{\"verdict\":\"x\"}",
        "{\"scope\":\"root\"}",
        "{\"lift\":\"yes\"}",
    ];
    let mut count = 0;
    for route in routes().iter().filter(|route| route.body.is_some()) {
        let path = route.path.replace("{id}", id).replace("{run}", "r");
        for body in bodies {
            let answer = admin.ask("POST", &path, "Content-Type: application/json\r\n", body);
            if answer.status == 200 {
                continue;
            }
            let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
            for theirs in
                ["struct", "variant", "enum", "map", "sequence", "unit", "u64", "bool,", "deserialize"]
            {
                assert!(!detail.contains(theirs), "{path} {body}: {detail}");
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
    for query in ["?limit=x", "?limit=-1", "?state=lost", "?no=1", "?limit=1&limit=2"] {
        let answer = admin.get(&format!("/effects{query}"));
        let detail = answer.json()["detail"].as_str().expect("a detail").to_owned();
        assert_eq!(answer.status, 400, "{query}: {detail}");
        assert!(!detail.contains("deserialize") && !detail.contains("variant"), "{query}: {detail}");
    }
    let said = |body: &str| {
        let answer = admin.ask("POST", "/begin", "Content-Type: application/json\r\n", body);
        answer.json()["detail"].as_str().expect("a detail").to_owned()
    };
    assert!(said("[]").contains("expected an object"), "{}", said("[]"));
    assert!(said("{}").contains("missing field `action`"), "{}", said("{}"));
    assert_eq!(said(""), "semel: the body is empty");
}

#[test]
fn a_run_is_cancelled_without_a_word_and_an_unknown_one_says_so() {
    let home = Home::new();
    let house = House::start(&home, "");
    let admin = client_of(&house, TOKEN);
    let cancelled = admin.ask("POST", "/runs/r1/cancel", "", "");
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let told = cancelled.json();
    assert_eq!(
        (&told["cancelled"], &told["known"], &told["drained"]),
        (&json!(true), &json!(false), &json!(true))
    );
    let mut wish = charge("ann");
    wish["run"] = json!("r1");
    let fenced = admin.begin(wish.clone());
    assert_eq!((fenced.status, &fenced.json()["code"]), (403, &json!("cancelled")), "the fence holds");
    for (headers, body) in [
        ("Content-Length: 0\r\n", ""),
        ("Content-Type: application/json\r\nContent-Length: 0\r\n", ""),
        ("Content-Type: application/json\r\n", "{}"),
    ] {
        let again = admin.ask("POST", "/runs/r1/cancel", headers, body);
        assert_eq!((again.status, &again.json()["known"]), (200, &json!(true)), "{headers}: {again:?}");
    }
    assert_eq!(admin.ask("POST", "/runs/r1/cancel", "Content-Type: text/plain\r\n", "{}").status, 415);
    assert_eq!(admin.ask("POST", "/runs/r1/cancel", "", "{}").status, 415, "what is said must be JSON");
    let document = admin.get("/openapi.json").json();
    let body = |path: &str| document["paths"][path]["post"]["requestBody"]["required"].clone();
    assert_eq!(body("/api/v1/runs/{run}/cancel"), json!(false));
    assert_eq!(body("/api/v1/begin"), json!(true));
}
