//! Answers with status 200 that refuse.

use super::api;
use semel_core::json::parse;
use semel_core::policy::graphql::GraphqlRequest;

/// `None`: nobody can say.
fn refuses(preset: &str, line: &str, body: &str, reply: &str) -> Option<bool> {
    let request = api(preset).request(line, body, "");
    // The documents of these tests have one field.
    let asked = GraphqlRequest::Document { only_asks: false, fields: 1 };
    api(preset).rule(&request).refuses(&asked, || parse(reply).expect(reply)).ok()
}

#[test]
fn slack_refuses_with_ok_false() {
    for line in ["POST /api/chat.postMessage", "POST /api/conversations.create", "POST /api/views.open"] {
        let says = |reply: &str| refuses("slack", line, r#"{"channel": "C", "text": "t"}"#, reply);
        assert_eq!(says(r#"{"ok": true, "ts": "1.2"}"#), Some(false));
        assert_eq!(says(r#"{"ok": false, "error": "channel_not_found"}"#), Some(true));
        assert_eq!(says(r#"{"ok": false, "error": "internal_error"}"#), None, "it may have been done");
        assert_eq!(says(r#""<html>""#), None);
    }
}

#[test]
fn a_payment_that_the_bank_refuses_is_refused() {
    let payment = r#"{"merchantAccount": "m", "reference": "r", "amount": {"value": 1}}"#;
    let says = |reply: &str| refuses("adyen", "POST /v72/payments", payment, reply);
    assert_eq!(says(r#"{"resultCode": "Authorised", "pspReference": "P"}"#), Some(false));
    assert_eq!(says(r#"{"resultCode": "RedirectShopper"}"#), Some(false));
    assert_eq!(says(r#"{"resultCode": "Refused", "refusalReason": "no funds"}"#), Some(true));
}

#[test]
fn a_mutation_is_refused_only_where_nothing_of_it_was_carried_out() {
    let linear = [
        r#"{"query": "mutation { issueCreate(input: $input) { success } }", "variables": {"input": {}}}"#,
        r#"{"query": "mutation { commentCreate(input: $input) { success } }", "variables": {"input": {}}}"#,
        r#"{"query": "mutation { projectCreate(input: $input) { success } }", "variables": {"input": {}}}"#,
        r#"{"query": "mutation { issueCreate(input: {}) { success } }"}"#,
        r#"{"query": "mutation { issueUpdate(id: 1) { success } }"}"#,
    ];
    let github = [r#"{"query": "mutation { createIssue(input: $input) { issue { id } } }"}"#];
    let shopify = [
        r#"{"query": "mutation { refundCreate(x: 1) { userErrors { message } } }"}"#,
        r#"{"query": "mutation { orderCreate(x: 1) { userErrors { message } } }"}"#,
        r#"{"query": "mutation { productCreate(x: 1) { userErrors { message } } }"}"#,
    ];
    let place = "POST /graphql";
    let all: [(&str, &str, &[&str]); 3] = [
        ("linear", place, &linear),
        ("github", place, &github),
        ("shopify", "POST /admin/api/2026-04/graphql.json", &shopify),
    ];
    for (preset, line, bodies) in all {
        for body in bodies {
            for (reply, expected) in [
                (r#"{"data": {"m": {"success": true, "issue": {"id": 1}}}}"#, Some(false)),
                (r#"{"errors": [{"path": ["m", "a"]}], "data": {"m": {"id": 1, "a": null}}}"#, Some(false)),
                (r#"{"errors": [{"message": "no such field"}]}"#, Some(true)),
                (r#"{"errors": [{"extensions": {"code": "THROTTLED"}}]}"#, Some(true)),
                (r#"{"errors": [{"path": ["m"]}], "data": null}"#, Some(true)),
                (
                    r#"{"errors": [{"path": ["m"], "extensions": {"code": "ACCESS_DENIED"}}], "data": {"m": null}}"#,
                    Some(true),
                ),
                (r#"{"errors": [{"path": ["m", "issue", "team"]}], "data": null}"#, None),
                (r#"{"errors": [{"path": ["m", "issue"]}], "data": {"m": null}}"#, None),
                (r#"{"errors": [{"path": ["b"]}], "data": {"a": {"id": 1}, "b": null}}"#, None),
                (r#"{"errors": [{"extensions": {"code": "INTERNAL_SERVER_ERROR"}}], "data": null}"#, None),
                (r#"{"text": "<html>"}"#, None),
            ] {
                assert_eq!(refuses(preset, line, body, reply), expected, "{preset}: {body}: {reply}");
            }
        }
    }
}

#[test]
fn shopify_refuses_with_user_errors() {
    for mutation in ["refundCreate", "orderCreate", "productCreate"] {
        let body =
            format!(r#"{{"query": "mutation {{ {mutation}(x: 1) {{ userErrors {{ message }} }} }}"}}"#);
        let says = |reply: &str| refuses("shopify", "POST /admin/api/2026-04/graphql.json", &body, reply);
        let no = r#"{"refund": null, "userErrors": [{"message": "no"}]}"#;
        let yes = r#"{"refund": {"id": 1}, "userErrors": []}"#;
        assert_eq!(says(&format!(r#"{{"data": {{"m": {yes}}}}}"#)), Some(false));
        assert_eq!(says(&format!(r#"{{"data": {{"m": {no}}}}}"#)), Some(true));
        assert_eq!(says(&format!(r#"{{"data": {{"a": {yes}, "b": {no}}}}}"#)), None, "the first was made");
        let both = r#"{"data": {"m": {"refund": {"id": 1}, "userErrors": [{"message": "no"}]}}}"#;
        assert_eq!(says(both), None, "it was made, and something is wrong with it");
    }
}

#[test]
fn a_status_says_enough_elsewhere() {
    for (preset, line) in [("stripe", "POST /v1/charges"), ("github", "POST /repos/o/r/issues")] {
        assert_eq!(refuses(preset, line, "{}", r#"{"anything": 1}"#), Some(false));
    }
}
