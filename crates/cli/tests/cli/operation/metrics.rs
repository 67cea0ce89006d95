use crate::api::client::token;
use crate::home::{Home, Ran};
use crate::mcp::peers;
use crate::serve::served::{Served, TOKEN};
use crate::serve::upstream::Upstream;
use serde_json::{Value, json};

fn scrape(served: &Served, token: &str) -> (u16, String) {
    let headers = format!("Authorization: Bearer {token}\r\n");
    let answer = served.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer();
    (answer.status, answer.body)
}

/// What the official parser of OpenMetrics reads: samples as (name, labels, value).
fn parsed(home: &Home, text: &str) -> Vec<Value> {
    let file = home.file("metrics.txt", text);
    let script = "import json,sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as families\n\
        print(json.dumps([[s.name, s.labels, s.value] for f in families(open(sys.argv[1]).read()) for s in f.samples]))";
    let python = peers::installed("openapi").join("python/bin/python").to_string_lossy().into_owned();
    let words = [python, "-c".to_owned(), script.to_owned(), file.to_string_lossy().into_owned()];
    let ran = Ran::of(home.program(&words).output().expect("python starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json().as_array().expect("a list").clone()
}

fn value(samples: &[Value], name: &str, labels: Value) -> Option<f64> {
    samples
        .iter()
        .find(|sample| sample[0] == name && sample[1] == labels)
        .and_then(|sample| sample[2].as_f64())
}

#[test]
fn what_was_done_can_be_scraped_and_labels_come_from_closed_sets() {
    let home = Home::new();
    let upstream = Upstream::start();
    let served = Served::before(&home, &upstream.url());
    for _ in 0..3 {
        served.call("charge", json!({"amount": 1}));
    }
    served.call("get_balance", json!({"account": "canary-account"}));
    home.doubt("k");
    let (status, text) = scrape(&served, TOKEN);
    assert_eq!(status, 200);
    let samples = parsed(&home, &text);
    let requests =
        |outcome: &str| value(&samples, "semel_requests_total", json!({"door": "mcp", "outcome": outcome}));
    assert_eq!(
        (requests("ran"), requests("replayed"), requests("passed_through")),
        (Some(1.0), Some(2.0), Some(1.0))
    );
    assert_eq!(value(&samples, "semel_attempts_total", json!({"door": "mcp"})), Some(2.0));
    let applied = value(&samples, "semel_effects_total", json!({"door": "mcp", "state": "applied"}));
    assert_eq!(applied, Some(upstream.effects() as f64));
    assert_eq!(value(&samples, "semel_effects_in_doubt", json!({})), Some(1.0), "of other processes too");
    assert_eq!(value(&samples, "semel_duplicates_detected_total", json!({"door": "mcp"})), Some(0.0));
    assert_eq!(value(&samples, "semel_claim_seconds_count", json!({})), Some(1.0));
    assert_eq!(value(&samples, "semel_settle_seconds_count", json!({})), Some(1.0));
    assert!(value(&samples, "semel_ledger_commit_seconds_count", json!({})) >= Some(2.0));
    home.wait_until("only this very connection is open", || {
        scrape(&served, TOKEN).1.contains("semel_connections_open 1\n")
    });
    assert_eq!(value(&samples, "semel_calls_in_flight", json!({})), Some(0.0));
    for name in ["charge", "canary", "bank", "ef_", "local"] {
        assert!(!text.contains(name), "{name} is in\n{text}");
    }
}

#[test]
fn metrics_are_for_this_machines_operator_unless_the_policy_says_otherwise() {
    let home = Home::new();
    let served = Served::start(&home, "");
    assert_eq!(served.ask_raw("GET /metrics HTTP/1.1", "", "").answer().status, 401);
    for (scope, tenant, status) in [
        ("agent", "local", 403),
        ("operator", "local", 200),
        ("operator", "acme", 403),
        ("admin", "acme", 403),
    ] {
        assert_eq!(scrape(&served, &token(&home, scope, tenant, "x")).0, status, "{scope} of {tenant}");
    }
    let open = Served::start(&home, "[serve]\nmetrics = \"open\"\n");
    let answer = open.ask_raw("GET /metrics HTTP/1.1", "", "").answer();
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("application/openmetrics-text"), "{answer:?}");
    assert_eq!(
        open.ask_raw("GET /api/v1/stats HTTP/1.1", "", "").answer().status,
        401,
        "and nothing else is"
    );
}
