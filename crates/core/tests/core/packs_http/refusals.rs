//! Answers with status 200 that refuse.

use super::api;
use semel_core::json::parse;

/// `None`: nobody can say.
fn refuses(preset: &str, line: &str, body: &str, reply: &str) -> Option<bool> {
    let request = api(preset).request(line, body, "");
    api(preset).rule(&request).refuses(|| parse(reply).expect(reply)).ok()
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
fn a_mutation_without_data_was_not_carried_out() {
    let linear =
        r#"{"query": "mutation { issueCreate(input: $input) { success } }", "variables": {"input": {}}}"#;
    let github = r#"{"query": "mutation { createIssue(input: $input) { issue { id } } }"}"#;
    for (preset, body) in [("linear", linear), ("github", github)] {
        let says = |reply: &str| refuses(preset, "POST /graphql", body, reply);
        assert_eq!(says(r#"{"data": {"x": {"success": true}}}"#), Some(false));
        assert_eq!(says(r#"{"errors": [{"message": "no team"}], "data": null}"#), Some(true));
        assert_eq!(says(r#"{"errors": [{"message": "no team"}], "data": {"x": null}}"#), Some(true));
        assert_eq!(says(r#"{"errors": [{"message": "no team"}]}"#), Some(true));
        assert_eq!(says(r#"{"errors": [{"message": "a field"}], "data": {"x": {"id": 1}}}"#), Some(false));
        assert_eq!(
            says(r#"{"errors": [{"extensions": {"code": "INTERNAL_SERVER_ERROR"}}], "data": null}"#),
            None
        );
    }
}

#[test]
fn shopify_refuses_with_user_errors() {
    for mutation in ["refundCreate", "orderCreate", "productCreate"] {
        let body =
            format!(r#"{{"query": "mutation {{ {mutation}(x: 1) {{ userErrors {{ message }} }} }}"}}"#);
        let says = |reply: &str| refuses("shopify", "POST /admin/api/2026-04/graphql.json", &body, reply);
        assert_eq!(says(r#"{"data": {"m": {"refund": {"id": 1}, "userErrors": []}}}"#), Some(false));
        assert_eq!(says(r#"{"data": {"m": {"userErrors": [{"message": "no"}]}}}"#), Some(true));
        assert_eq!(says(r#"{"errors": [{"extensions": {"code": "THROTTLED"}}]}"#), Some(true));
        assert_eq!(says(r#"{"errors": [{"extensions": {"code": "INTERNAL_SERVER_ERROR"}}]}"#), None);
    }
}

#[test]
fn a_status_says_enough_elsewhere() {
    for (preset, line) in [("stripe", "POST /v1/charges"), ("github", "POST /repos/o/r/issues")] {
        assert_eq!(refuses(preset, line, "{}", r#"{"anything": 1}"#), Some(false));
    }
}
