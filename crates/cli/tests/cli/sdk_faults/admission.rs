//! Who may ask, what may be asked, and what is not read at all.

use super::findings::Findings;
use super::line::{Judge, request};
use super::stage::{CASE, JSON, Stage, asked};
use crate::home::Home;
use crate::serve::served::TOKEN;
use semel_testkit::http::RawClient;
use serde_json::json;

/// A request to the plain API, as written but for what the test puts into its head.
fn raw(stage: &Stage, first: &str, head: &str, body: &str) -> RawClient {
    let mut line = stage.line();
    let host =
        if head.contains("Host:") { String::new() } else { format!("Host: {}\r\n", stage.semel.address) };
    line.write(format!(
        "{first}\r\n{host}Semel-Token: {TOKEN}\r\nContent-Type: application/json\r\n{head}\r\n{body}"
    ));
    line
}

#[test]
fn one_key_of_two_callers_is_two_effects_and_neither_sees_the_others() {
    let stage = Stage::new();
    let token = |name: &str, tenant: &str| {
        let made =
            stage.home.json(["token", "create", "--scope", "agent", "--name", name, "--tenant", tenant]);
        made["token"].as_str().expect("a token").to_owned()
    };
    let callers = [token("one", "local"), token("two", "local"), token("one", "other")];
    let ask = |caller: &str, canary: &str| {
        let mut line = stage.line();
        let headers = [("Semel-Token", caller), (CASE, canary), ("Idempotency-Key", "shared"), JSON];
        request(&mut line, "POST", "/p/plain/rest", &headers, "{}");
        line.next_answer()
    };
    let firsts: Vec<_> =
        callers.iter().enumerate().map(|(at, caller)| ask(caller, &format!("caller {at}"))).collect();
    for (at, (caller, first)) in callers.iter().zip(&firsts).enumerate() {
        assert_eq!((first.status, first.outcome()), (201, "ran"), "{first:?}");
        ask(caller, &format!("caller {at}")).assert_replayed(first);
        assert_eq!(stage.world.of(&format!("caller {at}")).effects, 1);
        assert_eq!(firsts.iter().filter(|other| other.body == first.body).count(), 1);
    }
    // Two keys of the upstream are two callers, too.
    let passed = |key: &str| {
        let mut line = stage.line();
        let bearer = format!("Bearer {key}");
        let headers = [("Authorization", bearer.as_str()), (CASE, key), ("Idempotency-Key", "shared"), JSON];
        request(&mut line, "POST", "/p/plain/rest", &headers, "{}");
        line.next_answer()
    };
    let (a, b) = (passed("sk_a"), passed("sk_b"));
    assert_eq!((a.outcome(), b.outcome()), ("ran", "ran"), "{a:?} {b:?}");
    passed("sk_a").assert_replayed(&a);
}

#[test]
fn a_web_page_from_elsewhere_changes_nothing() {
    let stage = Stage::new();
    let heads = [
        "Host: evil.test\r\n",
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Origin: https://evil.test\r\nSec-Fetch-Mode: no-cors\r\n",
        "Host: localhost\r\nHost: evil.test\r\n",
    ];
    for head in heads {
        let mut line =
            raw(&stage, "POST /p/plain/rest HTTP/1.1", &format!("{head}Content-Length: 2\r\n"), "{}");
        let answer = line.next_answer();
        assert!(matches!(answer.status, 400 | 403), "{head}: {answer:?}");
    }
    // Without any token, and with a wrong one.
    for token in ["", "Semel-Token: wrong\r\n"] {
        let mut line = stage.line();
        line.write(format!(
            "POST /p/plain/rest HTTP/1.1\r\nHost: {}\r\n{token}Content-Length: 2\r\n\r\n{{}}",
            stage.semel.address
        ));
        assert_eq!(line.next_answer().status, 401);
    }
    assert_eq!(stage.world.log().len(), 0, "nothing reached the world");
    assert_eq!(stage.home.json(["ledger", "list"])["items"], json!([]), "nothing was claimed");
}

#[test]
fn a_request_with_two_ends_is_refused_and_its_connection_closed() {
    let stage = Stage::new();
    let post = "POST /p/plain/rest HTTP/1.1";
    let smuggled =
        "POST /p/plain/rest HTTP/1.1\r\nHost: localhost\r\nX-Case: smuggled\r\nContent-Length: 2\r\n\r\n{}";
    let cases = [
        ("both", post, "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("two lengths", post, "Content-Length: 2\r\nContent-Length: 4\r\n", "{}  "),
        ("a list of lengths", post, "Content-Length: 2, 4\r\n", "{}  "),
        ("length with a sign", post, "Content-Length: +2\r\n", "{}"),
        (
            "chunks of 1.0",
            "POST /p/plain/rest HTTP/1.0",
            "Transfer-Encoding: chunked\r\n",
            "2\r\n{}\r\n0\r\n\r\n",
        ),
        ("other coding", post, "Transfer-Encoding: gzip, chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        (
            "coding twice",
            post,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "2\r\n{}\r\n0\r\n\r\n",
        ),
        ("chunked and more", post, "Transfer-Encoding: chunked, identity\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("hidden coding", post, "Transfer-Encoding: \u{b}chunked\r\nContent-Length: 2\r\n", "{}"),
        ("folded", post, "X-A: a\r\n b\r\nContent-Length: 2\r\n", "{}"),
        ("space before the colon", post, "Content-Length : 2\r\n", "{}"),
        ("bare CR", post, "X-A: a\rContent-Length: 0\r\nContent-Length: 2\r\n", "{}"),
        ("NUL", post, "X-A: a\0b\r\nContent-Length: 2\r\n", "{}"),
        ("chunk of nonsense", post, "Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
    ];
    let mut findings = Findings::default();
    for (case, first, head, body) in cases {
        let head = format!("{CASE}: {case}\r\n{head}");
        let mut line = raw(&stage, first, &head, &format!("{body}{smuggled}"));
        let status = line.answer_if_any().map(|answer| answer.status);
        // With both, the chunks count alone, as the standard allows, and the connection ends there.
        let refused = status.is_none_or(|status| (400..500).contains(&status));
        findings.expect(refused || case == "both", case, format_args!("{status:?}"));
        findings.expect(line.is_closed(), case, "what follows would be read as another request");
        findings.same(stage.world.of(case).requests, usize::from(!refused), case, "it reached the API");
    }
    findings.same(stage.world.of("smuggled").requests, 0, "smuggled", "it reached the API");
    findings.assert_none();
}

#[test]
fn an_upgrade_and_a_tunnel_are_not_opened() {
    let stage = Stage::new();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\nIdempotency-Key: up\r\nX-Case: up\r\n";
    let smuggled =
        "POST /p/plain/rest HTTP/1.1\r\nHost: localhost\r\nX-Case: smuggled\r\nContent-Length: 2\r\n\r\n{}";
    let mut line = raw(&stage, "POST /p/plain/rest HTTP/1.1", upgrade, &format!("{{}}{smuggled}"));
    let answer = line.next_answer();
    assert_ne!(answer.status, 101, "{answer:?}");
    for received in stage.world.received("up") {
        let headers = received["headers"].to_string().to_ascii_lowercase();
        assert!(!headers.contains("upgrade"), "{received}");
    }
    // What followed is a request of its own, and without a token it is refused.
    if let Some(answer) = line.answer_if_any() {
        assert_eq!(answer.status, 401, "{answer:?}");
    }
    assert_eq!(stage.world.of("smuggled").requests, 0);
    let mut line = raw(&stage, "CONNECT 127.0.0.1:22 HTTP/1.1", "", "");
    assert!(line.answer_if_any().is_none_or(|answer| answer.status >= 400));
    let mut line = raw(&stage, "GET http://127.0.0.1:22/ HTTP/1.1", "", "");
    assert!(line.answer_if_any().is_none_or(|answer| answer.status >= 400));
}

#[test]
fn headers_between_two_neighbours_go_no_further() {
    let stage = Stage::new();
    let head = "Connection: close, X-Hop, X-Case\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: 9\r\nProxy-Connection: x\r\n\
                Proxy-Authorization: Basic canary\r\nSemel-Run-Id: r\r\nX-Kept: yes\r\nContent-Length: 2\r\n";
    let answer = raw(&stage, "POST /p/plain/rest HTTP/1.1", head, "{}").answer();
    assert_eq!(answer.status, 201, "{answer:?}");
    let received = stage.world.log().into_iter().find(|line| line["at"] == "received").expect("it arrived");
    let headers = received["headers"].to_string().to_ascii_lowercase();
    assert!(headers.contains("x-kept"), "{headers}");
    for hop in ["x-hop", "x-case", "\"te\"", "keep-alive", "proxy-", "semel-"] {
        assert!(!headers.contains(hop), "{hop}: {headers}");
    }
}

#[test]
fn an_upstream_is_named_plainly_or_not_at_all() {
    for url in
        ["http://2130706433", "http://0x7f.1", "http://0177.0.0.1", "http://127.1", "http://user@127.0.0.1"]
    {
        let home = Home::new();
        home.file("semel.toml", &format!("version = 1\n[upstream.x]\nurl = \"{url}\"\n"));
        let ran = home.semel(["serve", "--listen", "127.0.0.1:0"]);
        assert_ne!(ran.code, Some(0), "{url}: {ran:?}");
        assert!(ran.stderr.contains("upstream.x") || ran.stderr.contains(url), "{ran:?}");
    }
    // Nothing in a request says where it goes.
    let stage = Stage::new();
    let elsewhere =
        ["/p/http:%2f%2f127.0.0.1:1/rest", "/p/plain/../../x", "/p/plain@127.0.0.1:1/rest", "/p//plain/rest"];
    for path in elsewhere {
        let answer = asked(&stage.semel.address, "POST", path, &[JSON], "{}");
        assert!(answer.status >= 400, "{path}: {answer:?}");
    }
    assert_eq!(stage.world.log().len(), 0);
}

#[test]
fn a_path_stays_below_its_upstream() {
    let stage = Stage::with("4s", "");
    for path in
        ["/p/below/../rest", "/p/below/%2e%2e/rest", "/p/below/x/..%2f..%2frest", "/p/below/%2e%2e%2frest"]
    {
        let answer = asked(&stage.semel.address, "GET", path, &[(CASE, path)], "");
        let outside = stage.world.received(path).iter().any(|seen| {
            let path = seen["path"].as_str().expect("a path").to_owned();
            !path.starts_with("/below/") || path.contains("..")
        });
        assert!(!outside, "{path}: {answer:?}");
    }
}

#[test]
fn what_is_too_large_or_too_deep_is_refused_before_anything_is_claimed() {
    let stage = Stage::new();
    let ask = |case: &str, more: &[(&str, &str)], body: &str| {
        let headers = [&[(CASE, case), ("Idempotency-Key", case), JSON], more].concat();
        stage.ask("POST", "/p/plain/rest", &headers, body).status
    };
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(ask("deep", &[], &deep), 400);
    assert_eq!(ask("twice", &[], r#"{"a": 1, "a": 2}"#), 400);
    let long = "x".repeat(70_000);
    assert!(matches!(ask("head", &[("X-Long", &long)], "{}"), 400 | 431));
    let many: Vec<(&str, &str)> = vec![("X-Many", "1"); 200];
    assert!(matches!(ask("many", &many, "{}"), 400 | 431));
    // Announced, so that nobody has to send it.
    let mut line =
        raw(&stage, "POST /p/plain/rest HTTP/1.1", "X-Case: huge\r\nContent-Length: 99999999999\r\n", "");
    assert_eq!(line.next_answer().status, 413);
    let body = format!("\"{}\"", "x".repeat(65 << 20));
    let mut line =
        raw(&stage, "POST /p/plain/rest HTTP/1.1", "X-Case: huge\r\nTransfer-Encoding: chunked\r\n", "");
    line.write(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
    assert!(line.answer_if_any().is_none_or(|answer| answer.status == 413), "without an announcement");
    // A text is none that is compressed, whatever it is called.
    assert_eq!(ask("unpacked", &[("Content-Encoding", "gzip")], "{}"), 400);
    // Compressed, it is not what semel could compare; it is not unpacked either.
    let packed = "X-Case: packed\r\nIdempotency-Key: packed\r\n\
                  Content-Encoding: gzip\r\nContent-Length: 2\r\n";
    let mut line = raw(&stage, "POST /p/plain/rest HTTP/1.1", packed, "");
    line.write([0x1f, 0x8b]);
    let packed = line.next_answer().status;
    assert!(matches!(packed, 201 | 415), "{packed}");
    for case in ["deep", "twice", "head", "many", "huge", "unpacked"] {
        assert_eq!(stage.world.of(case).requests, 0, "{case}");
    }
    assert_eq!(stage.home.json(["ledger"])["counts"]["in_flight"], 0);
}

#[test]
fn a_client_that_sends_a_byte_at_a_time_holds_nobody_up() {
    let stage = Stage::new();
    let mut slow: Vec<RawClient> = (0..50).map(|_| stage.line()).collect();
    for byte in "POST /p/plain/rest HTTP/1.1\r\nHos".bytes() {
        slow.iter_mut().for_each(|line| line.write([byte]));
    }
    assert_eq!(stage.post("quick", "{}").status, 201);
    drop(slow);
    assert_eq!(stage.world.log().iter().filter(|line| line["at"] == "received").count(), 1);
}
