use crate::home::Home;
use crate::llm;
use crate::mcp::peers;
use crate::proxy;
use crate::serve::served::{SESSION, Served, TOKEN, calling};
use semel_testkit::http::FakeModelApi;
use semel_testkit::http::{ApiAct, FakeMcpServer};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector of spans, as a process.
struct Collector {
    child: Child,
    address: String,
}

impl Collector {
    fn start(home: &Home, refuses: u32) -> Collector {
        let python = peers::installed("openapi").join("python/bin/python").to_string_lossy().into_owned();
        let words = [python, peers::script("otlp.py"), refuses.to_string()];
        let mut child = home.program(&words).stdout(Stdio::piped()).spawn().expect("the collector starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says its port");
        Collector { child, address: format!("http://127.0.0.1:{}", line.trim()) }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn spans(home: &Home) -> Vec<Value> {
    let heard = std::fs::read_to_string(home.work().join("heard")).unwrap_or_default();
    heard.lines().map(|line| serde_json::from_str(line).expect("a span is JSON")).collect()
}

fn attribute<'a>(span: &'a Value, name: &str) -> Option<&'a str> {
    let attributes = span["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
    found["value"].as_object()?.values().next()?.as_str()
}

fn call(served: &Served, parent: &str) {
    let mut message = calling(1, "charge", json!({"amount": 7, "card": "canary"}));
    message["params"]["_meta"]["claudecode/toolUseId"] = json!(format!("toolu_{parent}"));
    message["params"]["_meta"]["traceparent"] = json!(format!("00-{TRACE}-{parent}-01"));
    served.post(&message);
}

#[test]
fn an_attempt_has_a_span_and_every_collapsed_repeat_one_that_points_to_it() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let collector = Collector::start(&home, 1);
    let policy =
        format!("[mcp.bank]\nurl = \"{}\"\n[serve]\notlp = \"{}\"\n", upstream.url(), collector.address);
    let (mut first, mut second) = (Served::start(&home, &policy), Served::start(&home, &policy));
    call(&first, "00f067aa0ba902b1");
    call(&first, "00f067aa0ba902b2");
    // Another process, which knows nothing of the first but what the ledger says.
    call(&second, "00f067aa0ba902b3");
    assert_eq!(upstream.effects(), 1);
    assert!(first.stop().success() && second.stop().success());
    let spans = spans(&home);
    let by_parent = |parent: &str| below(&spans, parent);
    let attempt = by_parent("00f067aa0ba902b1");
    assert_eq!((&attempt["name"], &attempt["traceId"]), (&json!("execute_tool charge"), &json!(TRACE)));
    assert_eq!(attribute(attempt, "gen_ai.operation.name"), Some("execute_tool"));
    assert_eq!(attribute(attempt, "gen_ai.tool.name"), Some("charge"));
    assert_eq!(attribute(attempt, "gen_ai.tool.call.id"), Some("toolu_00f067aa0ba902b1"));
    assert_eq!(attribute(attempt, "semel.outcome"), Some("ran"));
    assert_eq!(attempt["links"], json!([]));
    assert_eq!(attempt["service"], json!("semel"));
    let link = json!([{"traceId": TRACE, "spanId": attempt["spanId"]}]);
    for parent in ["00f067aa0ba902b2", "00f067aa0ba902b3"] {
        let repeat = by_parent(parent);
        assert_eq!(repeat["links"], link, "{repeat:#}");
        assert_eq!(attribute(repeat, "semel.outcome"), Some("replayed"));
        assert_eq!(attribute(repeat, "semel.effect.id"), attribute(attempt, "semel.effect.id"));
        assert_ne!(repeat["spanId"], attempt["spanId"]);
    }
    assert_eq!(spans.len(), 3);
    assert!(spans.iter().all(|span| !span.to_string().contains("canary")), "arguments are the caller's");
}

/// The one span below this one.
fn below<'a>(spans: &'a [Value], parent: &str) -> &'a Value {
    let mut found = spans.iter().filter(|span| span["parentSpanId"] == parent);
    let one = found.next().unwrap_or_else(|| panic!("{parent} has a child in {spans:#?}"));
    assert!(found.next().is_none(), "{spans:#?}");
    one
}

fn traced(parent: &str) -> String {
    format!("traceparent: 00-{TRACE}-{parent}-01\r\n")
}

#[test]
fn a_generation_says_what_it_took_and_whoever_joined_it_points_to_it() {
    let home = Home::new();
    let collector = Collector::start(&home, 0);
    let mut stage = llm::stage::Stage::told_to(&collector.address);
    let body = llm::stage::streamed("waits");
    let mut first =
        llm::stage::ask(&stage.served, FakeModelApi::Responses, &traced("00f067aa0ba902b1"), &body);
    first.head();
    first.chunk();
    let retry = format!("x-stainless-retry-count: 1\r\n{}", traced("00f067aa0ba902b2"));
    let mut retry = llm::stage::ask(&stage.served, FakeModelApi::Responses, &retry, &body);
    retry.head();
    stage.model.release();
    first.chunks();
    retry.chunks();
    assert!(stage.served.stop().success());
    assert_eq!(stage.model.asked(), 1);
    let spans = spans(&home);
    let (attempt, joined) = (below(&spans, "00f067aa0ba902b1"), below(&spans, "00f067aa0ba902b2"));
    assert_eq!((&attempt["name"], attribute(attempt, "semel.outcome")), (&json!("chat waits"), Some("ran")));
    assert_eq!(attribute(attempt, "gen_ai.usage.input_tokens"), Some("9"));
    assert_eq!(attribute(attempt, "gen_ai.usage.output_tokens"), Some("5"));
    assert_eq!(attribute(joined, "semel.outcome"), Some("joined"), "{joined:#}");
    assert_eq!(attribute(joined, "semel.repeated_by"), Some("sdk"));
    assert_eq!(joined["links"], json!([{"traceId": TRACE, "spanId": attempt["spanId"]}]));
    assert_eq!(attribute(joined, "gen_ai.usage.output_tokens"), None, "it took nothing");
    assert_eq!(spans.len(), 2);
}

#[test]
fn a_retry_that_its_budget_refuses_has_a_span_that_points_to_what_failed() {
    let home = Home::new();
    let collector = Collector::start(&home, 0);
    let mut stage = llm::stage::Stage::told_to(&collector.address);
    let parents = [1, 2, 3, 4].map(|n| format!("00f067aa0ba902b{n}"));
    let body = llm::stage::request("status-500");
    let statuses = parents.each_ref().map(|parent| {
        llm::stage::ask(&stage.served, FakeModelApi::Chat, &traced(parent), &body).answer().status
    });
    assert_eq!((statuses, stage.model.asked()), ([500, 500, 500, 503], 3));
    assert!(stage.served.stop().success());
    let spans = spans(&home);
    let (last, refused) = (below(&spans, &parents[2]), below(&spans, &parents[3]));
    assert_eq!(attribute(refused, "semel.outcome"), Some("refused"), "{refused:#}");
    assert_eq!(attribute(refused, "semel.repeated_by"), Some("agent"));
    assert_eq!(attribute(refused, "error.type"), Some("budget_spent"));
    assert_eq!(refused["links"], json!([{"traceId": TRACE, "spanId": last["spanId"]}]));
    assert_eq!(spans.len(), 4);
}

#[test]
fn each_request_that_joined_another_has_a_span_that_points_to_it() {
    let home = Home::new();
    let collector = Collector::start(&home, 0);
    let mut stage = proxy::stage::Stage::with(&format!("[serve]\notlp = \"{}\"\n", collector.address));
    let ask = |parent: &str| {
        let headers = format!("{}Idempotency-Key: k\r\n{}", proxy::stage::JSON, traced(parent));
        stage.ask("POST", "/charges", &headers, "{}")
    };
    let all_are_under_way = || {
        let headers = format!("Authorization: Bearer {TOKEN}\r\n");
        let text = stage.served.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
        text.contains("semel_calls_in_flight 9\n")
    };
    stage.api.next(ApiAct::Hold);
    let first = ask("00f067aa0ba902b0");
    stage.api.wait_for_requests(1);
    let parents = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| format!("00f067aa0ba902b{n}"));
    let twins = parents.each_ref().map(|parent| ask(parent));
    stage.home.wait_until("all are under way", all_are_under_way);
    stage.api.release();
    let first = first.answer();
    let outcomes = twins.map(|twin| {
        let answer = twin.answer();
        assert_eq!(answer.body, first.body);
        proxy::stage::became(&answer).1
    });
    // One that has not looked yet when the first is settled is answered from the record.
    assert!(outcomes.iter().any(|outcome| outcome == "joined"), "{outcomes:?}");
    assert!(stage.served.stop().success());
    assert_eq!(stage.api.effects(), 1);
    let spans = spans(&home);
    let attempt = below(&spans, "00f067aa0ba902b0");
    assert_eq!(attribute(attempt, "semel.outcome"), Some("ran"));
    for (parent, outcome) in parents.iter().zip(&outcomes) {
        let twin = below(&spans, parent);
        assert_eq!(attribute(twin, "semel.outcome"), Some(outcome.as_str()));
        assert_eq!(attribute(twin, "semel.repeated_by"), Some("agent"), "no header names a library");
        assert_eq!(attribute(twin, "semel.effect.id"), attribute(attempt, "semel.effect.id"));
        assert_eq!(twin["links"], json!([{"traceId": TRACE, "spanId": attempt["spanId"]}]));
    }
    assert_eq!(spans.len(), 9);
}

#[test]
fn a_doubt_is_an_error_and_what_is_not_sampled_is_not_told() {
    let home = Home::new();
    let collector = Collector::start(&home, 0);
    let endpoint = format!("{}/", collector.address);
    let variables = [
        ("OTEL_SERVICE_NAME", "guard"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc"),
    ];
    let mut served = Served::start_with(&home, "", &variables);
    let ask = |path: &str, headers: &str, body: Value| {
        let headers = format!("Semel-Token: {TOKEN}\r\nContent-Type: application/json\r\n{headers}");
        served.ask_raw(&format!("POST /api/v1/{path} HTTP/1.1"), &headers, &body.to_string()).answer().json()
    };
    let wish =
        |customer: &str| json!({"action": "fn:charge", "arguments": {"customer": customer}, "wait": "0s"});
    let claim = ask("begin", &format!("traceparent: 00-{TRACE}-00f067aa0ba902b1-01\r\n"), wish("ann"));
    ask("settle", "", json!({"claim": claim["claim"], "outcome": "in_doubt", "why": "502"}));
    ask("begin", "", wish("ann"));
    ask("begin", &format!("traceparent: 00-{TRACE}-00f067aa0ba902b9-00\r\n"), wish("ann"));
    assert!(served.stop().success());
    let spans = spans(&home);
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let (attempt, held) = match attribute(&spans[0], "semel.outcome") {
        Some("ran") => (&spans[0], &spans[1]),
        _ => (&spans[1], &spans[0]),
    };
    assert_eq!((&attempt["traceId"], &attempt["status"]["code"]), (&json!(TRACE), &json!(2)));
    assert_eq!(attribute(attempt, "error.type"), Some("in_doubt"));
    assert_eq!(
        (attribute(held, "semel.outcome"), attribute(held, "error.type")),
        (Some("held"), Some("in_doubt"))
    );
    assert_eq!(held["links"], json!([{"traceId": TRACE, "spanId": attempt["spanId"]}]));
    assert_eq!((&held["service"], &held["authorization"]), (&json!("guard"), &json!("Basic abc")));
}

#[test]
fn a_collector_that_is_away_or_hangs_keeps_nobody_waiting_and_what_was_lost_is_told() {
    let hangs = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let hanging = format!("http://{}", hangs.local_addr().expect("its address"));
    for collector in ["http://127.0.0.1:9", &hanging] {
        let home = Home::new();
        let upstream = FakeMcpServer::start();
        let policy = format!("[mcp.bank]\nurl = \"{}\"\n[serve]\notlp = \"{collector}\"\n", upstream.url());
        let mut served = Served::start(&home, &policy);
        let headers = format!("Semel-Token: {TOKEN}\r\n{SESSION}");
        let body = calling(1, "charge", json!({})).to_string();
        let answer = served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &body).answer();
        assert_eq!((answer.status, upstream.effects()), (200, 1));
        assert!(served.stop().success());
        assert!(served.said().contains("spans that did not reach the collector: 1"), "{}", served.said());
    }
}
