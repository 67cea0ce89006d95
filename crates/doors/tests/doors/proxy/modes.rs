use super::stage::{JSON, Stage, became};
use semel_testkit::http::ApiAct;

#[test]
fn a_dry_run_says_what_would_happen_and_sends_nothing() {
    let stage = Stage::plain();
    let dry = |headers: &str, body: &str| {
        stage.send("POST", "/charges", &format!("{JSON}Semel-Dry-Run: 1\r\n{headers}"), body)
    };
    let first = dry("Idempotency-Key: k\r\n", "{}");
    assert_eq!(became(&first), (200, "dry_run".into(), String::new()));
    let told = first.json();
    assert_eq!((&told["would"], &told["effect"]), (&"run".into(), &"would_create".into()));
    for (method, path, effect) in
        [("DELETE", "/charges/1", "would_delete"), ("POST", "/emails", "would_send")]
    {
        let told = stage.send(method, path, &format!("{JSON}Semel-Dry-Run: 1\r\n"), "{}").json();
        assert_eq!(told["effect"], effect, "{method} {path}");
    }
    assert_eq!(stage.api.requests().len(), 0);
    assert_eq!(stage.charge("k", "{}").status, 201);
    assert_eq!(dry("Idempotency-Key: k\r\n", "{}").json()["would"], "replay");
    assert_eq!(dry("Idempotency-Key: k\r\n", r#"{"other":1}"#).json()["would"], "refuse");
    let read = stage.send("GET", "/charges", "Semel-Dry-Run: 1\r\n", "");
    assert_eq!((&read.json()["would"], &read.json()["effect"]), (&"run".into(), &"would_noop".into()));
    assert_eq!(stage.send("POST", "/charges", &format!("{JSON}Semel-Dry-Run: maybe\r\n"), "{}").status, 400);
    assert_eq!(stage.api.requests().len(), 1);
}

#[test]
fn an_upstreams_own_account_of_what_it_would_do_arrives_as_structure() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/own\"\ndry_run = { header = \"X-Dry-Run\" }\n";
    let stage = Stage::with(rule);
    let account = r#"{"effect":"noop","changes":[],"reason":"it is there already"}"#;
    stage.api.next(ApiAct::Refuse(200, "", account));
    let told = stage.send("POST", "/own", &format!("{JSON}Semel-Dry-Run: 1\r\n"), "{}").json();
    assert_eq!((&told["effect"], &told["reason"]), (&"would_noop".into(), &"it is there already".into()));
    assert_eq!((&told["changes"], stage.api.effects()), (&serde_json::json!([]), 0));
}

#[test]
fn an_upstreams_own_dry_run_is_asked_where_the_rule_says_how() {
    let rules = r#"
[[rule]]
match = "http:POST bank/header"
dry_run = { header = "X-Dry-Run", value = "yes" }
[[rule]]
match = "http:POST bank/query"
dry_run = { arg = "query.dryRun", value = "All" }
[[rule]]
match = "http:POST bank/body"
dry_run = { arg = "validate_only" }
"#;
    let stage = Stage::with(rules);
    let dry = |path: &str| {
        stage.api.next(ApiAct::Refuse(200, "", r#"{"would":"be fine"}"#));
        let headers = format!("{JSON}Semel-Dry-Run: 1\r\nIdempotency-Key: k\r\n");
        let told = stage.send("POST", path, &headers, r#"{"n":1.0}"#).json();
        assert_eq!(told["changes"], serde_json::json!([{"would": "be fine"}]), "{told}");
        let heard = stage.api.last();
        assert_eq!(heard.header("idempotency-key"), None);
        heard
    };
    assert_eq!(dry("/header").header("x-dry-run"), Some("yes"));
    assert_eq!(dry("/query?a=1").line(), "POST /query?a=1&dryRun=All HTTP/1.1");
    assert_eq!(dry("/body").text(), r#"{"n":1.0,"validate_only":true}"#);
    assert_eq!(stage.api.effects(), 0);
    assert!(stage.house.effects("").is_empty());
}

/// The upstream that takes it for a DELETE may not know the dry run of a POST.
#[test]
fn an_upstreams_own_dry_run_is_not_asked_for_a_request_that_names_another_method() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/own\"\nclass = \"consequential\"\ndry_run = { header = \"X-Dry-Run\" }\n";
    let stage = Stage::with(rule);
    for (path, header, body) in [
        ("/own", "X-HTTP-Method-Override: DELETE\r\n", "{}"),
        ("/own?_method=DELETE", "", "{}"),
        ("/own", "", r#"{"_method":"DELETE"}"#),
    ] {
        let told = stage.send("POST", path, &format!("{JSON}Semel-Dry-Run: 1\r\n{header}"), body);
        assert_eq!(became(&told).1, "dry_run", "{told:?}");
        let changes = &told.json()["changes"];
        assert!(changes[0]["what"].is_string(), "{told:?}");
        assert!(changes[1]["own_dry_run_not_asked"].to_string().contains("another method"), "{told:?}");
    }
    assert_eq!(stage.api.requests().len(), 0);
    // Its own method is no other one.
    let own = format!("{JSON}Semel-Dry-Run: 1\r\nX-HTTP-Method-Override: post\r\n");
    stage.api.next(ApiAct::Refuse(200, "", r#"{"would":"be fine"}"#));
    assert_eq!(stage.send("POST", "/own", &own, "{}").json()["changes"][0]["would"], "be fine");
    assert_eq!((stage.api.requests().len(), stage.api.effects()), (1, 0));
}

#[test]
fn observing_changes_nothing_and_writes_down_what_would_have_been_decided() {
    let stage = Stage::in_mode("observe", "");
    for _ in 0..2 {
        let answer = stage.charge("k", "{}");
        assert_eq!((answer.status, answer.header("semel-outcome")), (201, None));
    }
    assert_eq!(stage.send("POST", "/x", JSON, r#"{"a":1,"a":2}"#).status, 201);
    let large = "x".repeat(17 * 1024 * 1024);
    assert_eq!(stage.send("POST", "/x", "Content-Type: text/plain\r\n", &large).status, 201);
    assert_eq!(stage.api.last().body.len(), large.len());
    stage.api.next(ApiAct::Refuse(503, "", "busy"));
    assert_eq!(stage.charge("k", "{}").status, 503);
    assert_eq!(stage.api.effects(), 4);
    let dry = stage.send("POST", "/x", &format!("{JSON}Semel-Dry-Run: 1\r\n"), "{}");
    assert_eq!(became(&dry).1, "dry_run");
    assert!(stage.house.effects("").is_empty());
    let journal = stage.house.journal();
    assert!(journal.iter().any(|(kind, _)| kind == "observed"), "{journal:?}");
}

#[test]
fn in_strict_mode_every_write_is_consequential() {
    let stage = Stage::in_mode("strict", "");
    assert_eq!(became(&stage.send("PATCH", "/a", JSON, "{}")).1, "ran");
    assert_eq!(became(&stage.send("PATCH", "/a", JSON, "{}")).1, "replayed");
    assert_eq!(stage.get("/a").header("semel-outcome"), None);
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_rule_makes_a_post_a_read_and_a_get_a_write() {
    let rules = "[[rule]]\nmatch = \"http:POST bank/search\"\nclass = \"read\"\n[[rule]]\nmatch = \"http:GET bank/api/send\"\nclass = \"consequential\"\n";
    let stage = Stage::with(rules);
    for _ in 0..2 {
        let found = stage.send("POST", "/search", JSON, "{}");
        assert_eq!((found.status, found.header("semel-outcome")), (201, None));
    }
    assert_eq!(became(&stage.get("/api/send?text=hi")).1, "ran");
    assert_eq!(became(&stage.get("/api/send?text=hi")).1, "replayed");
    assert_eq!(became(&stage.get("/api/other")).1, "none");
}

#[test]
fn an_api_that_refuses_in_the_body_of_a_success_is_read_as_its_rule_says() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/api/*\"\nclass = \"consequential\"\nrefused = \"reply.ok ? false : reply.error == 'internal_error' ? reply.unclear : true\"\n";
    let stage = Stage::with(rule);
    let post = |path: &str| became(&stage.send("POST", path, JSON, "{}"));
    stage.api.next(ApiAct::Refuse(200, "", r#"{"ok":false,"error":"channel_not_found"}"#));
    let refused = stage.send("POST", "/api/a", JSON, "{}");
    assert_eq!((refused.status, refused.header("semel-effect")), (200, Some("none")));
    assert_eq!(post("/api/a").1, "ran");
    stage.api.next(ApiAct::Answer(200, "", r#"{"ok":false,"error":"internal_error"}"#.into()));
    assert_eq!(post("/api/b").2, "in_doubt");
    stage.api.next(ApiAct::Answer(200, "", r#"{"ok":true}"#.into()));
    assert_eq!((post("/api/c").1.as_str(), post("/api/c").1.as_str()), ("ran", "replayed"));
}

#[test]
fn a_page_may_ask_where_it_is_allowed_to() {
    let stage = Stage::plain();
    let origin = "Origin: http://localhost:5173\r\n";
    let asks = format!(
        "{origin}Access-Control-Request-Method: PATCH\r\nAccess-Control-Request-Headers: idempotency-key\r\n"
    );
    let allowed = stage.send("OPTIONS", "/charges", &asks, "");
    assert_eq!(allowed.status, 204);
    assert!(
        allowed.header("access-control-allow-methods").is_some_and(|methods| methods.contains("PATCH")),
        "{allowed:?}"
    );
    assert_eq!(stage.api.requests().len(), 0);
    let read = stage.send("GET", "/charges", origin, "");
    assert_eq!(read.header("access-control-allow-origin"), Some("http://localhost:5173"));
    assert_eq!(stage.api.last().header("origin"), None);
    let foreign = stage.send("POST", "/charges", &format!("{JSON}Origin: https://evil.example\r\n"), "{}");
    assert_eq!((foreign.status, stage.api.effects()), (403, 0));
}
