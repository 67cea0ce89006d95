//! Which requests are the same.

use super::line::Judge;
use super::stage::{CASE, JSON, Stage};
use semel_testkit::http::Response;
use serde_json::json;

#[test]
fn a_key_with_another_body_is_refused_and_changes_nothing() {
    let stage = Stage::new();
    assert_eq!(stage.post("drift", r#"{"amount": 1}"#).status, 201);
    let other = stage.post("drift", r#"{"amount": 2}"#);
    assert_eq!((other.status, other.code().as_str()), (422, "drift"), "{other:?}");
    assert!(other.body.contains("amount"), "the answer names what differs: {}", other.body);
    stage.world.fail("doubt", json!({"cut_response": 0}));
    stage.post("doubt", r#"{"amount": 1}"#).assert_in_doubt();
    let other = stage.post("doubt", r#"{"amount": 2}"#);
    assert_eq!((other.status, other.code().as_str()), (422, "drift"), "also while in doubt: {other:?}");
    for case in ["drift", "doubt"] {
        assert_eq!(stage.world.of(case).requests, 1, "{case}");
    }
    // Another path or method under the same key is something else, too.
    let elsewhere =
        stage.ask("POST", "/p/plain/rest/2", &[(CASE, "drift"), ("Idempotency-Key", "drift"), JSON], "{}");
    assert_eq!(elsewhere.status, 422, "{elsewhere:?}");
    assert_eq!(stage.world.of("drift").requests, 1);
}

#[test]
fn a_body_with_another_key_is_meant_again() {
    let stage = Stage::new();
    for key in ["one", "two"] {
        let headers = [(CASE, "meant"), ("Idempotency-Key", key), JSON];
        let answer = stage.ask("POST", "/p/plain/rest", &headers, "{}");
        assert_eq!((answer.status, answer.outcome()), (201, "ran"), "{answer:?}");
    }
    assert_eq!(stage.world.of("meant").effects, 2);
}

#[test]
fn how_a_body_is_written_does_not_make_it_another() {
    let stage = Stage::new();
    let multipart = |boundary: &str| {
        let part = |name: &str, value: &str| {
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        format!("{}{}--{boundary}--\r\n", part("a", "1"), part("b", "2"))
    };
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    let cases = [
        (
            "order and space",
            json,
            r#"{"a": 1, "b": [true, null]}"#.to_owned(),
            json,
            "{\"b\":[true,null],\n\"a\":1}".to_owned(),
        ),
        ("numbers", json, r#"{"a": 1, "b": 100}"#.to_owned(), json, r#"{"a": 1.0, "b": 1e2}"#.to_owned()),
        ("escapes", json, r#"{"a": "é/"}"#.to_owned(), json, r#"{"a": "\u00e9\/"}"#.to_owned()),
        ("form", form, "a=x+y&b=%7E".to_owned(), form, "a=x%20y&b=~".to_owned()),
        (
            "parts",
            "multipart/form-data; boundary=one",
            multipart("one"),
            "multipart/form-data; boundary=two",
            multipart("two"),
        ),
    ];
    for (case, kind, body, other_kind, other) in &cases {
        let ask = |kind: &str, body: &str| -> Response {
            let headers = [(CASE, *case), ("Idempotency-Key", *case), ("Content-Type", kind)];
            stage.ask("POST", "/p/plain/upload", &headers, body)
        };
        let first = ask(kind, body);
        assert_eq!((first.status, first.outcome()), (201, "ran"), "{case}: {first:?}");
        ask(other_kind, other).assert_replayed(&first);
        assert_eq!(stage.world.of(case).effects, 1, "{case}");
    }
    // Two integers that floating point would take for one are two.
    let headers = [(CASE, "large"), ("Idempotency-Key", "large"), JSON];
    let large = |body: &str| stage.ask("POST", "/p/plain/rest", &headers, body).status;
    assert_eq!(large(r#"{"id": 9007199254740993}"#), 201);
    assert_eq!(large(r#"{"id": 9007199254740992}"#), 422);
}

#[test]
fn a_key_is_the_same_with_and_without_its_quotes() {
    let stage = Stage::new();
    let ask = |key: &str| {
        let headers = [(CASE, "quoted"), ("Idempotency-Key", key), JSON];
        stage.ask("POST", "/p/plain/rest", &headers, "{}")
    };
    let first = ask("\"8e03978e-40d5\"");
    assert_eq!((first.status, first.outcome()), (201, "ran"), "{first:?}");
    ask("8e03978e-40d5").assert_replayed(&first);
    for bad in ["", "\"\"", "with space\u{7f}", &"k".repeat(256)] {
        let answer = ask(bad);
        assert_eq!(answer.status, 400, "{bad:?}: {answer:?}");
    }
    assert_eq!(stage.world.of("quoted").effects, 1);
}
