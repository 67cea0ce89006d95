//! Where an API is: below a path, under a host name of its own, and nowhere else.

use super::stage::{JSON, Stage, became};
use crate::house::TOKEN;
use semel_testkit::http::ApiAct;
use semel_testkit::http::Response;

/// Asks for a path of the server's own, and not below that of an API.
fn ask(stage: &Stage, line: &str, headers: &str, body: &str) -> Response {
    stage.house.ask(&format!("{line} HTTP/1.1"), headers, body).answer()
}

#[test]
fn where_no_api_is_the_names_of_those_that_are_there_are_told_instead_of_asking_for_a_token() {
    let stage = Stage::plain();
    let key = "Authorization: Bearer sk_test_1\r\n";
    for line in ["POST /v1/charges", "GET /", "GET /p/", "GET /p/api", "GET /p/other/v1/charges"] {
        for headers in ["", key, &format!("Semel-Token: {TOKEN}\r\n")] {
            let answer = ask(&stage, line, headers, "");
            assert_eq!(answer.status, 404, "{line} {headers}: {answer:?}");
            let message = answer.json()["error"]["message"].as_str().expect("a message").to_owned();
            assert!(message.contains("nothing was sent") && message.contains(": api."), "{message}");
            assert!(!message.contains("127.0.0.1"), "no address: {message}");
        }
    }
    for line in ["GET /p/api/v1", "GET /mcp/x", "GET /api/v1/effects", "GET /metrics"] {
        assert_eq!(ask(&stage, line, "", "").status, 401, "{line}");
    }
    assert_eq!(ask(&stage, "GET /v1", "Host: evil.example\r\n", "").status, 403);
    assert!(stage.api.requests().is_empty());
}

#[test]
fn a_host_name_is_the_same_api_as_its_path() {
    let stage = Stage::plain();
    let under = |host: &str| format!("Host: {host}\r\nSemel-Token: {TOKEN}\r\n{JSON}");
    let keyed = format!("{}Idempotency-Key: k\r\n", under("api.localhost:7777"));
    assert_eq!(became(&ask(&stage, "POST /charges?x=1", &keyed, "{}")).1, "ran");
    assert_eq!(stage.api.last().line(), "POST /charges?x=1 HTTP/1.1");
    let by_path = stage.send("POST", "/charges?x=1", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    assert_eq!((became(&by_path).1.as_str(), stage.api.effects()), ("replayed", 1));
    // All of its paths are the API's own.
    for path in ["/healthz", "/metrics", "/p/api/x", "/mcp/x"] {
        assert_eq!(ask(&stage, &format!("GET {path}"), &under("API.localhost"), "").status, 200, "{path}");
        assert_eq!(stage.api.last().line(), format!("GET {path} HTTP/1.1"));
    }
    for host in ["other.localhost", "api.localhost.evil", "api.example"] {
        assert_eq!(ask(&stage, "POST /charges", &under(host), "{}").status, 403, "{host}");
    }
    assert_eq!(ask(&stage, "POST /charges", "Host: api.localhost\r\n", "{}").status, 401);
    stage.api.next(ApiAct::Refuse(307, "Location: /v2/charges\r\n", ""));
    let moved = ask(&stage, "PUT /charges/1", &under("api.localhost:7777"), "{}");
    assert_eq!(moved.header("location"), Some("/v2/charges"));
}
