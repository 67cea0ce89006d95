//! What is kept of an answer, what is told again, and what never is.

use super::line::{Judge, request};
use super::stage::{CASE, JSON, Stage};
use semel_testkit::http::Response;
use serde_json::json;

/// More than is kept of any answer.
const PADDING: usize = 6_000_000;

#[test]
fn an_answer_that_is_too_large_to_keep_is_passed_whole_and_its_retry_told_that_it_happened() {
    let stage = Stage::new();
    stage.world.fail("large", json!({"pad": PADDING}));
    let first = stage.post("large", "{}");
    assert!(first.status == 201 && first.body.len() > PADDING, "{} {}", first.status, first.body.len());
    let again = stage.post("large", "{}");
    assert_eq!((again.status, again.outcome()), (200, "replayed"), "{again:?}");
    assert!(again.body.contains("was not kept"), "{}", again.body);
    assert_eq!(stage.world.of("large").effects, 1);
}

#[test]
fn a_replay_has_none_of_what_was_meant_for_one_answer_alone() {
    let stage = Stage::new();
    let own = [
        ("Set-Cookie", "session=canary"),
        ("WWW-Authenticate", "Bearer canary"),
        ("Proxy-Authenticate", "canary"),
        ("Authentication-Info", "canary"),
        ("Strict-Transport-Security", "max-age=1"),
        ("Alt-Svc", "h3=canary"),
        ("Access-Control-Allow-Origin", "https://canary.example"),
        ("X-RateLimit-Remaining", "7"),
        ("Connection", "X-Hop"),
        ("X-Hop", "canary"),
        ("Keep-Alive", "timeout=canary"),
    ];
    let headers: serde_json::Map<_, _> =
        own.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    stage.world.fail("headers", json!({"headers": headers}));
    let first = stage.post("headers", "{}");
    assert_eq!(
        first.header("set-cookie"),
        Some("session=canary"),
        "the first caller gets its own: {first:?}"
    );
    for answer in [&first, &stage.post("headers", "{}")] {
        for hop in ["x-hop", "keep-alive"] {
            assert_eq!(answer.header(hop), None, "{answer:?}");
        }
    }
    let again = stage.post("headers", "{}");
    again.assert_replayed(&first);
    for (name, _) in own {
        let name = name.to_ascii_lowercase();
        assert!(
            again.header(&name).is_none_or(|value| name == "connection" && value != "X-Hop"),
            "{name}: {again:?}"
        );
    }
    assert_eq!(again.header("content-type"), first.header("content-type"));
    assert_eq!(again.header("location"), first.header("location"));
}

#[test]
fn no_secret_of_a_request_or_an_answer_is_written_anywhere() {
    let stage = Stage::new();
    let canaries =
        ["canary-authorization", "canary-cookie", "canary-api-key", "canary-answer", "canary-query"];
    stage
        .world
        .fail("secrets", json!({"headers": {"Set-Cookie": "s=canary-answer", "X-Api-Key": "canary-answer"}}));
    let bearer = format!("Bearer {}", canaries[0]);
    let headers = [
        (CASE, "secrets"),
        ("Idempotency-Key", "secrets"),
        ("Authorization", &bearer),
        ("Cookie", "c=canary-cookie"),
        ("X-Api-Key", canaries[2]),
        JSON,
    ];
    let ask = || stage.ask("POST", "/p/plain/rest?api_key=canary-query", &headers, "{}");
    assert_eq!(ask().status, 201);
    ask().assert_replayed(&ask());
    // A doubt keeps what was sent, for whoever has to look into it.
    stage.world.fail("doubt", json!({"cut_response": 0}));
    let headers = [&headers[2..], &[(CASE, "doubt"), ("Idempotency-Key", "doubt")]].concat();
    stage.ask("POST", "/p/plain/rest?api_key=canary-query", &headers, "{}").assert_in_doubt();
    let received = stage.world.received("secrets").remove(0);
    for canary in &canaries[..3] {
        assert!(received["headers"].to_string().contains(canary), "the upstream gets it: {received}");
    }
    let mut shown = stage.home.semel(["ledger", "list"]).stdout;
    shown.push_str(&stage.home.semel(["ledger", "export"]).stdout);
    shown.push_str(&stage.semel.said());
    for file in stage.home.state_files().iter().filter(|path| path.is_file()) {
        shown.push_str(&String::from_utf8_lossy(&std::fs::read(file).expect("it can be read")));
    }
    assert!(shown.contains("/rest"), "the effect is in the ledger");
    for canary in canaries {
        assert!(!shown.contains(canary), "{canary} was written down");
    }
}

#[test]
fn an_answer_whose_headers_are_no_headers_is_no_answer() {
    let stage = Stage::new();
    let answers = [
        ("bare CR", "HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\n{}"),
        ("NUL", "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 2\r\n\r\n{}"),
        ("folded", "HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}"),
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
        ("name with space", "HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 2\r\n\r\n{}"),
    ];
    for (case, raw) in answers {
        stage.world.fail(case, json!({"raw": raw}));
        let answer = stage.post(case, "{}");
        answer.assert_in_doubt();
        assert_eq!(answer.header("set-cookie"), None);
        stage.post(case, "{}").assert_in_doubt();
        assert_eq!(stage.world.of(case).requests, 1, "{case}");
    }
}

#[test]
fn a_body_that_should_have_been_longer_is_no_answer() {
    let stage = Stage::new();
    let answers = [
        ("short", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{}"),
        ("no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        ("half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}"),
        ("chunks that are none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    ];
    for (case, raw) in answers {
        stage.world.fail(case, json!({"raw": raw}));
        // Its head was already passed on, so the line is cut; or it was held back, and the caller is told.
        let first: Option<Response> = {
            let mut line = stage.line();
            let token = ("Semel-Token", crate::serve::served::TOKEN);
            request(
                &mut line,
                "POST",
                "/p/plain/rest",
                &[token, (CASE, case), ("Idempotency-Key", case), JSON],
                "{}",
            );
            line.answer_if_any()
        };
        assert!(first.is_none_or(|answer| answer.status == 423), "{case}");
        stage.post(case, "{}").assert_in_doubt();
        assert_eq!(stage.world.of(case).requests, 1, "{case}");
    }
}

/// The API says yes and does nothing. Nobody can tell from its answer; a look at the thing itself can.
#[test]
fn a_success_that_is_not_true_is_refuted_by_a_look_and_never_told_again() {
    let stage = Stage::with(
        "4s",
        r#"
[[rule]]
match = "http:POST lying.example/v1/charges"
class = "consequential"
[rule.confirm]
http = "GET WORLD/v1/charges/{reply.id}"
ok = "status == 200 && resp.status == 'succeeded'"
within = "3s"
"#,
    );
    for (case, effect, refuted) in [("true", "now", false), ("lie", "never", true)] {
        stage.world.fail(case, json!({"method": "POST", "effect": effect}));
        let headers =
            [(CASE, case), ("Idempotency-Key", case), ("Content-Type", "application/x-www-form-urlencoded")];
        let ask = || stage.ask("POST", "/p/lying/v1/charges", &headers, "amount=1");
        assert_eq!(ask().status, 200);
        stage.home.wait_until("it was looked at", || {
            let again = ask();
            if refuted { again.status == 403 } else { again.body.contains("\"charge\"") && confirmed(&stage) }
        });
        assert_eq!(stage.world.of(case).requests, stage.world.of(case).effects.max(1), "{case}");
    }
}

fn confirmed(stage: &Stage) -> bool {
    let listed = stage.home.json(["ledger", "list"]);
    let mut items = listed["items"].as_array().into_iter().flatten();
    items.any(|item| item["evidence"] == "confirmed")
}
