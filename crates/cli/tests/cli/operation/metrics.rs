use crate::api::client::token;
use crate::home::{Home, Ran};
use crate::llm::stage::{Stage, ask};
use crate::mcp::Way;
use crate::mcp::line::Line;
use crate::mcp::peers::{self, Server};
use crate::proxy;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::fake_model::generate_two_of_five;
use semel_testkit::http::{ApiAct, FakeMcpServer};
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
    let upstream = FakeMcpServer::start();
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

#[test]
fn tokens_money_and_repeats_are_scraped_as_the_model_and_semel_stats_count_them() {
    let mut stage = Stage::with("[prices.\"*\"]\ninput = 1\noutput = 10\n");
    generate_two_of_five(&stage.model, |api, headers, body| ask(&stage.served, api, headers, body));
    stage.home.wait_until("all is settled", || stage.count("in_flight") == 0);
    let (status, text) = scrape(&stage.served, &token(&stage.home, "operator", "local", "x"));
    assert_eq!(status, 200);
    let samples = parsed(&stage.home, &text);
    let of = |name: &str, label: &str, word: &str| value(&samples, name, json!({label: word})).expect(word);
    let tokens =
        ["input", "output", "saved_input", "saved_output"].map(|kind| of("semel_tokens_total", "kind", kind));
    let cost = ["spent", "saved"].map(|kind| of("semel_cost_nanos_total", "kind", kind));
    let layers = ["transport", "sdk", "agent", "process"];
    let repeats = layers.map(|layer| {
        let labels = json!({"door": "llm", "layer": layer});
        value(&samples, "semel_repeats_total", labels).expect(layer)
    });
    let generated = stage.model.asked() as f64;
    assert_eq!(of("semel_attempts_total", "door", "llm"), generated);
    assert_eq!(generated, 2.0);
    assert_eq!(tokens, [9.0 * generated, 5.0 * generated, 27.0, 15.0]);
    // 9 at a millionth and 5 at ten of them.
    assert_eq!(cost, [59_000.0 * generated, 177_000.0]);
    assert_eq!(repeats, [0.0, 1.0, 2.0, 0.0]);
    assert!(stage.served.stop().success());
    let stats = stage.home.json(["stats"]);
    let llm = &stats["doors"]["llm"];
    let told =
        |path: &str| llm.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {stats}"));
    let paths = ["/tokens/input", "/tokens/output", "/saved_tokens/input", "/saved_tokens/output"];
    assert_eq!(paths.map(told), tokens, "{stats}");
    assert_eq!(["/cost", "/saved_cost"].map(|path| (told(path) * 1e9).round()), cost, "{stats}");
    assert_eq!(layers.map(|layer| told(&format!("/repeated/{layer}"))), repeats, "{stats}");
}

#[test]
fn what_other_processes_on_the_ledger_did_is_scraped_beside_what_this_one_did() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    for _ in 0..2 {
        assert_eq!(home.semel(["run", "--key", "k", "--", "sh", "-c", "echo did >> here"]).code, Some(0));
    }
    let mut line = Line::open(&home, Way::Guarded, Server::Python);
    line.call("charge", json!({"customer": "ada", "amount": 3}));
    assert!(line.close().success());
    served.call("charge", json!({"amount": 1}));
    let samples = parsed(&home, &scrape(&served, TOKEN).1);
    let of = |name: &str, labels: Value| value(&samples, name, labels).unwrap_or_else(|| panic!("{name}"));
    let runs = std::fs::read_to_string(home.work().join("here")).expect("it happened").lines().count();
    let charges = home.effects() + upstream.effects();
    assert_eq!((runs, charges), (1, 2), "the world's own count");
    for (door, process, ledger) in [("cli", 0.0, runs as f64), ("mcp", 1.0, charges as f64)] {
        let applied = json!({"door": door, "state": "applied"});
        let happened =
            ["semel_effects_total", "semel_ledger_effects_total"].map(|name| of(name, applied.clone()));
        assert_eq!(happened, [process, ledger], "{door}");
        assert_eq!(of("semel_ledger_attempts_total", json!({"door": door})), ledger, "{door}");
    }
    let asked = |outcome: &str| of("semel_ledger_requests_total", json!({"door": "cli", "outcome": outcome}));
    assert_eq!((asked("ran"), asked("replayed")), (1.0, 1.0));
    assert_eq!(of("semel_ledger_repeats_total", json!({"door": "cli", "layer": "agent"})), 1.0);
    assert_eq!(of("semel_ledger_duplicates_detected_total", json!({"door": "cli"})), 0.0);
    assert_eq!(of("semel_ledger_tokens_total", json!({"kind": "output"})), 0.0);
    let stats = home.json(["stats"]);
    for door in ["cli", "mcp"] {
        let sent = of("semel_ledger_attempts_total", json!({"door": door}));
        assert_eq!(stats["doors"][door]["sent"].as_f64(), Some(sent), "{stats}");
    }
}

/// What the metrics say of one door: calls by what they got, attempts, repeats, and what became known of effects.
fn counts(home: &Home, served: &Served, door: &str) -> Value {
    let samples = parsed(home, &scrape(served, TOKEN).1);
    let of = |name: &str, labels: Value| value(&samples, name, labels).unwrap_or_else(|| panic!("{name}"));
    let outcomes = ["ran", "replayed", "joined", "held", "refused", "passed_through"];
    let requests = outcomes.map(|word| of("semel_requests_total", json!({"door": door, "outcome": word})));
    let states = ["applied", "not_applied", "in_doubt"];
    let effects = states.map(|word| of("semel_effects_total", json!({"door": door, "state": word})));
    let layers = ["transport", "sdk", "agent", "process"];
    let repeats = layers.map(|word| of("semel_repeats_total", json!({"door": door, "layer": word})));
    let attempts = of("semel_attempts_total", json!({"door": door}));
    json!({"requests": requests, "attempts": attempts, "effects": effects, "repeats": repeats.iter().sum::<f64>()})
}

/// Its caller is answered from a second look; it is one call all the same, and the doubt in between is one.
#[test]
fn a_call_that_is_answered_after_its_timeout_is_one_call_and_was_in_doubt() {
    let in_doubt = json!({"requests": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], "attempts": 1.0, "effects": [0.0, 0.0, 1.0], "repeats": 0.0});
    let cleared = json!({"requests": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], "attempts": 1.0, "effects": [1.0, 0.0, 1.0], "repeats": 0.0});
    let applied = |home: &Home| home.json(["ledger", "list", "--state", "applied"])["items"][0].is_object();

    let mut stage =
        proxy::stage::Stage::with("[[rule]]\nmatch = \"http:POST bank/*\"\ntimeout = \"200ms\"\n");
    stage.api.next(ApiAct::Hold);
    let late = stage.charge("k", "{}");
    let became = proxy::stage::became(&late);
    assert_eq!(
        (became.1.as_str(), became.2.as_str()),
        ("ran", "in_doubt"),
        "it was this very call that sent it"
    );
    assert_eq!(counts(&stage.home, &stage.served, "http"), in_doubt);
    stage.api.release();
    stage.home.wait_until("the late answer is known", || applied(&stage.home));
    stage.home.wait_until("and counted", || counts(&stage.home, &stage.served, "http") == cleared);
    assert!(stage.served.stop().success());
    let http = &stage.home.json(["stats"])["doors"]["http"];
    assert_eq!((&http["asked"], &http["sent"], stage.api.effects()), (&1.into(), &1.into(), 1), "{http}");

    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let rule = "[[rule]]\nmatch = \"mcp:bank/charge\"\nclass = \"consequential\"\ntimeout = \"200ms\"\n";
    let mut served = Served::start(&home, &format!("[mcp.bank]\nurl = \"{}\"\n{rule}", upstream.url()));
    let answer = served.call("charge", json!({"amount": 1, "waits": true}));
    assert_eq!(answer.tool_outcome(), "ran", "{answer:?}");
    assert_eq!(counts(&home, &served, "mcp"), in_doubt);
    upstream.release();
    home.wait_until("the late answer is known", || applied(&home));
    home.wait_until("and counted", || counts(&home, &served, "mcp") == cleared);
    assert!(served.stop().success());
    let mcp = &home.json(["stats"])["doors"]["mcp"];
    assert_eq!((&mcp["asked"], &mcp["sent"], upstream.effects()), (&1.into(), &1.into(), 1), "{mcp}");
}
