//! Spellings by which a request could get past the rule that is meant for it.

use super::stage::{FORM, JSON, Stage, became};
use crate::house::TOKEN;

const CHARGES: &str = r#"
[[rule]]
match = "http:POST bank/v1/charges"
class = "consequential"
key = ["body.invoice"]
"#;

#[test]
fn a_place_is_one_place_with_whatever_stands_behind_it() {
    let stage = Stage::with(CHARGES);
    let send = |path: &str| became(&stage.send("POST", path, JSON, r#"{"invoice":"1001"}"#));
    assert_eq!(send("/v1/charges").1, "ran");
    for same in ["/v1/charges/", "/v1/charges//", "/v1//charges"] {
        assert_eq!(send(same).1, "replayed", "{same}");
    }
    for drifted in ["/v1/charges;x=1", "/v1;a/charges", "/v1/charges%3Bx=1", "/v1/charges/;x"] {
        assert_eq!(send(drifted).2, "drift", "{drifted}");
    }
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (1, 1));
    // Letters' case and a format behind the path make another place, which the rule does not know.
    for other in ["/V1/charges", "/v1/charges.json", "/v1/refunds/"] {
        assert_eq!(send(other).1, "ran", "{other}");
    }
    assert!(stage.api.last().line().starts_with("POST /v1/refunds/ "), "the upstream gets what was written");
}

#[test]
fn a_rule_holds_with_whatever_slash_it_is_written() {
    let stage = Stage::with(&CHARGES.replace("v1/charges", "v1/charges/"));
    for (path, outcome) in [("/v1/charges/", "ran"), ("/v1/charges", "replayed")] {
        let answer = stage.send("POST", path, JSON, r#"{"invoice":"1001"}"#);
        assert_eq!(became(&answer).1, outcome, "{path}");
    }
    assert_eq!(stage.api.effects(), 1);
}

/// Some servers believe a header about the address.
#[test]
fn a_header_that_names_another_address_is_refused() {
    let stage = Stage::with(CHARGES);
    for name in ["X-Original-URL", "X-Rewrite-URL"] {
        for method in ["POST", "GET"] {
            let headers = format!("{JSON}{name}: /v1/charges\r\n");
            let body = if method == "POST" { "{}" } else { "" };
            assert_eq!(stage.send(method, "/v1/other", &headers, body).status, 400, "{name} {method}");
        }
    }
    let twice = "Semel-Run-Id: a\r\nSemel-Run-Id: b\r\n";
    assert_eq!(stage.send("POST", "/v1/charges", &format!("{JSON}{twice}"), "{}").status, 400);
    assert_eq!(stage.api.requests().len(), 0);
}

#[test]
fn parameters_of_a_path_tell_requests_apart() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:POST *\"\nclass = \"consequential\"\n");
    let send = |path: &str| became(&stage.send("POST", path, JSON, "{}")).1;
    assert_eq!((send("/pay;to=ann").as_str(), send("/pay;to=bob").as_str()), ("ran", "ran"));
    assert_eq!(send("/pay;to=ann"), "replayed");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn a_body_behind_a_read_may_make_it_no_read() {
    let stage = Stage::plain();
    let mutation = r#"{"query":"mutation { pay }"}"#;
    for (path, headers, body) in [
        ("/x", FORM, "_method=DELETE"),
        ("/x", FORM, "_METHOD=delete"),
        ("/x", JSON, r#"{"_Method":"delete"}"#),
        ("/x?_METHOD=DELETE", "", ""),
        ("/x?x-http-method-override=delete", "", ""),
        ("/x", "X_HTTP_METHOD_OVERRIDE: DELETE\r\n", ""),
        ("/graphql", JSON, mutation),
        ("/graphql/", JSON, mutation),
        ("/graphql;x", JSON, mutation),
        ("/graphql", FORM, "query=mutation%7Bpay%7D"),
        ("/graphql", "Content-Type: application/graphql\r\n", "mutation { pay }"),
    ] {
        let answer = stage.send("GET", path, headers, body);
        assert!(answer.header("semel-effect-id").is_some(), "{path} {headers} {body}: {answer:?}");
    }
    for (path, headers, body) in [
        ("/x", JSON, r#"{"query":{"match_all":{}}}"#),
        ("/x", FORM, "payment_method=pm_1"),
        ("/graphql", JSON, r#"{"query":"query { me }"}"#),
    ] {
        let answer = stage.send("GET", path, headers, body);
        assert_eq!((answer.status, answer.header("semel-effect-id")), (200, None), "{path} {body}");
        assert_eq!(stage.api.last().text(), body, "it goes on as it came");
    }
}

#[test]
fn a_wish_that_nobody_knows_has_no_effect() {
    let stage = Stage::plain();
    for odd in [
        "Semel-Dryrun: 1",
        "Semel_Dry_Run: 1",
        "semel-dry: 1",
        "SemelDryRun: 1",
        "X-Semel-Dry-Run: 1",
        "Semel-Effect: none",
    ] {
        for method in ["POST", "GET"] {
            let answer = stage.send(method, "/charges", &format!("{odd}\r\n"), "");
            assert_eq!(answer.status, 400, "{odd}: {answer:?}");
            assert!(answer.body.contains("Semel-Dry-Run"), "{answer:?}");
        }
    }
    assert_eq!(stage.api.requests().len(), 0);
    // It means something at the doors of models alone.
    assert_eq!(stage.send("POST", "/charges", "Semel-Step: 1\r\n", "").status, 400);
    assert_eq!(stage.api.requests().len(), 0);
    let known = "Semel-Run-Id: r\r\nSemel-Dry-Run: 0\r\n";
    assert_eq!(became(&stage.send("POST", "/charges", known, "")).1, "ran");
}

#[test]
fn whoever_asks_for_the_head_alone_is_held_by_the_rule_for_all_of_it() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:GET bank/do/*\"\nclass = \"consequential\"\n");
    let outcome = || stage.send("HEAD", "/do/pay", "", "").header("semel-outcome").map(str::to_owned);
    assert_eq!(outcome().as_deref(), Some("ran"));
    assert_eq!(outcome().as_deref(), Some("replayed"));
    assert_eq!(stage.api.requests().len(), 1);
    assert_eq!(stage.send("HEAD", "/see", "", "").header("semel-outcome"), None);
}

#[test]
fn semels_own_token_goes_no_further_in_whichever_header_it_stands() {
    let stage = Stage::plain();
    for name in ["Authorization: Bearer ", "X-Api-Key: ", "Api-Key: "] {
        for (method, path) in [("GET", "/x"), ("POST", "/charges")] {
            let headers = format!("{name}{TOKEN}\r\nX-Kept: yes\r\n");
            assert!(stage.send(method, path, &headers, "").status < 300, "{name}");
            let heard = stage.api.last();
            assert!(heard.head.text.contains("yes") && !heard.head.text.contains(TOKEN), "{heard:?}");
        }
    }
}
