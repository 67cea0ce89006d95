//! APIs that a preset knows, as their clients call them.

use super::stage::{FORM, JSON, Stage, became};
use semel_testkit::http::ApiAct;

/// What came of a request: the outcome in one word.
fn sent(stage: &Stage, line: &str, headers: &str, body: &str) -> String {
    let (method, path) = line.split_once(' ').expect(line);
    let kind = if body.starts_with(['{', '[']) { JSON } else { FORM };
    let kind = if body.is_empty() { "" } else { kind };
    became(&stage.send(method, path, &format!("{kind}{headers}"), body)).1
}

#[test]
fn three_automatic_keys_of_a_stripe_sdk_are_one_charge() {
    let stage = Stage::known("stripe");
    let charge = |key: &str, body: &str| {
        sent(&stage, "POST /v1/charges", &format!("Idempotency-Key: stripe-node-retry-{key}\r\n"), body)
    };
    let body = "amount=2000&currency=usd&customer=cus_1&metadata[order]=7&description=March";
    assert_eq!(charge("1", body), "ran");
    assert_eq!(charge("2", body), "replayed");
    assert_eq!(charge("3", &body.replace("March", "The+month+of+March")), "replayed");
    assert_eq!(stage.api.effects(), 1);
    assert_eq!(charge("4", &body.replace("=7", "=8")), "ran", "another order");
    assert_eq!(charge("5", &body.replace("2000", "2001")), "ran", "another amount");
    assert_eq!(stage.api.effects(), 3);
    let key = |at: usize| stage.api.requests()[at].header("idempotency-key").expect("a key").to_owned();
    assert!(key(0) != key(1) && key(1) != key(2), "one key for each effect");
}

/// Its SDKs raise the error that they raise for a key of Stripe's own.
#[test]
fn one_key_for_two_things_is_an_idempotency_error_to_clients_of_stripe() {
    let stage = Stage::known("stripe");
    let headers = format!("{FORM}Idempotency-Key: order-7\r\n");
    let charge =
        |amount: u32| stage.send("POST", "/v1/charges", &headers, &format!("amount={amount}&currency=usd"));
    assert_eq!(became(&charge(2000)).1, "ran");
    let drifted = charge(2001);
    assert_eq!(became(&drifted), (400, "refused".into(), "drift".into()));
    assert_eq!(drifted.header("stripe-should-retry"), Some("false"));
    let document = drifted.json();
    assert_eq!(document["error"]["type"], "idempotency_error");
    assert_eq!(document["differing"], serde_json::json!(["body.amount"]));
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_lost_answer_of_stripe_is_asked_for_again_under_the_same_key() {
    let stage = Stage::known("stripe");
    stage.api.next(ApiAct::Vanish);
    let headers = "Idempotency-Key: stripe-node-retry-1\r\n";
    assert_eq!(sent(&stage, "POST /v1/refunds", headers, "payment_intent=pi_1"), "ran");
    let keys: Vec<_> =
        stage.api.requests().iter().map(|heard| heard.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
}

#[test]
fn a_key_in_a_body_that_is_written_anew_does_not_make_another_payment() {
    let stage = Stage::known("square");
    let pay = |key: &str, amount: u32| {
        let body = format!(
            r#"{{"idempotency_key": "{key}", "source_id": "ccof:1", "amount_money": {{"amount": {amount}}}, "order_id": "o"}}"#
        );
        sent(&stage, "POST /v2/payments", "", &body)
    };
    assert_eq!([pay("a", 100), pay("b", 100), pay("c", 200)], ["ran", "replayed", "ran"]);
    assert_eq!(stage.api.effects(), 2);
    assert!(stage.api.last().text().contains("\"idempotency_key\":"), "{}", stage.api.last().text());
    assert_eq!(sent(&stage, "POST /v2/orders/search", "", "{}"), "none", "a read passes");
}

#[test]
fn a_request_without_a_body_is_one_intent_whatever_its_id() {
    let stage = Stage::known("paypal");
    let refund = |id: &str| {
        sent(&stage, "POST /v2/payments/captures/C1/refund", &format!("PayPal-Request-Id: {id}\r\n"), "")
    };
    assert_eq!([refund("a"), refund("b")], ["ran", "replayed"]);
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn slack_may_be_asked_again_after_it_refused_with_200() {
    let stage = Stage::known("slack");
    let post =
        || sent(&stage, "POST /api/chat.postMessage", "", r#"{"channel": "C1", "text": "deployed 1.2"}"#);
    let refusal = r#"{"ok": false, "error": "not_in_channel"}"#;
    stage.api.next(ApiAct::Refuse(200, JSON, refusal));
    post();
    assert_eq!(stage.api.effects(), 0);
    stage.api.next(ApiAct::Answer(200, JSON, r#"{"ok": true, "ts": "1.2"}"#.to_owned()));
    assert_eq!(post(), "ran", "the refusal is not replayed");
    assert_eq!(post(), "replayed");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn what_is_created_in_linear_gets_an_id_and_a_query_passes() {
    let stage = Stage::known("linear");
    let issue = |title: &str, description: &str| {
        let body = serde_json::json!({
            "query": "mutation createIssue($input: IssueCreateInput!) { issueCreate(input: $input) { success } }",
            "variables": {"input": {"teamId": "t", "title": title, "description": description}},
        });
        stage.api.next(ApiAct::Answer(
            200,
            JSON,
            r#"{"data": {"issueCreate": {"success": true}}}"#.to_owned(),
        ));
        sent(&stage, "POST /graphql", "", &body.to_string())
    };
    assert_eq!(issue("It is broken", "a"), "ran");
    let heard: serde_json::Value = serde_json::from_str(&stage.api.last().text()).expect("JSON");
    let id = heard["variables"]["input"]["id"].as_str().expect("an id").to_owned();
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'), "a UUID of version 4: {id}");
    assert_eq!(issue("It is broken", "b"), "replayed");
    assert_eq!(stage.api.effects(), 1);
    assert_eq!(sent(&stage, "POST /graphql", "", r#"{"query": "query { viewer { id } }"}"#), "none");
}

/// A mutation, as a request to the preset of that name.
struct Mutation {
    preset: &'static str,
    document: &'static str,
}

const ISSUE: Mutation = Mutation {
    preset: "linear",
    document: "mutation { issueCreate(input: {}) { issue { id team { key } } } }",
};
const TWO_ISSUES: Mutation = Mutation {
    preset: "linear",
    document: "mutation { a: issueCreate(input: {}) { success } b: issueCreate(input: {}) { success } }",
};
const GITHUB_ISSUE: Mutation = Mutation {
    preset: "github",
    document: "mutation { createIssue(input: {}) { issue { id author { login } } } }",
};
const ORDER: Mutation =
    Mutation { preset: "shopify", document: "mutation { orderCreate(order: {}) { order { id } } }" };
const TWO_ORDERS: Mutation = Mutation {
    preset: "shopify",
    document: "mutation { a: orderCreate(order: {}) { order { id } } b: orderCreate(order: {}) { order { id } } }",
};

impl Mutation {
    fn sent(&self, stage: &Stage) -> String {
        let path = if self.preset == "shopify" { "/admin/api/2026-01/graphql.json" } else { "/graphql" };
        let body = serde_json::json!({ "query": self.document }).to_string();
        sent(stage, &format!("POST {path}"), "", &body)
    }
}

#[test]
fn a_mutation_whose_answer_could_not_be_shown_is_not_sent_again() {
    for (mutation, data, errors) in [
        (ISSUE, "null", r#"{"path": ["issueCreate", "issue", "team"], "extensions": {"code": "FORBIDDEN"}}"#),
        (TWO_ISSUES, "null", r#"{"path": ["b"], "extensions": {"code": "INPUT_ERROR"}}"#),
        (
            GITHUB_ISSUE,
            r#"{"createIssue": null}"#,
            r#"{"path": ["createIssue", "issue"], "type": "FORBIDDEN"}"#,
        ),
        (ORDER, r#"{"orderCreate": null}"#, r#"{"path": ["orderCreate", "order", "customer"]}"#),
        (ORDER, "null", r#"{"path": ["orderCreate", "order", "customer"]}"#),
        (ORDER, r#"{"orderCreate": {"order": {"id": 1}, "userErrors": [{"message": "odd"}]}}"#, ""),
        (
            TWO_ORDERS,
            r#"{"a": {"order": {"id": 1}}, "b": {"order": null, "userErrors": [{"message": "no"}]}}"#,
            "",
        ),
    ] {
        // Some servers add a status that refuses.
        for status in [200, 400] {
            let stage = Stage::known(mutation.preset);
            let answer = format!(r#"{{"data": {data}, "errors": [{errors}]}}"#);
            stage.api.next(ApiAct::Answer(status, JSON, answer.clone()));
            mutation.sent(&stage);
            assert_eq!(mutation.sent(&stage), "held", "{status}: {answer}");
            assert_eq!(stage.api.effects(), 1, "{status}: {answer}");
        }
    }
}

#[test]
fn a_mutation_that_was_refused_may_be_sent_again() {
    for (mutation, refusal, done) in [
        (
            ISSUE,
            r#"{"errors": [{"path": ["issueCreate"], "extensions": {"code": "INPUT_ERROR"}}], "data": null}"#,
            r#"{"data": {"issueCreate": {"issue": {"id": 1}}}}"#,
        ),
        (
            GITHUB_ISSUE,
            r#"{"data": {"createIssue": null}, "errors": [{"type": "NOT_FOUND", "path": ["createIssue"]}]}"#,
            r#"{"data": {"createIssue": {"issue": {"id": 1}}}}"#,
        ),
        (
            ORDER,
            r#"{"data": {"orderCreate": null},
                "errors": [{"path": ["orderCreate"], "extensions": {"code": "ACCESS_DENIED"}}]}"#,
            r#"{"data": {"orderCreate": {"order": {"id": 1}}}}"#,
        ),
        (
            TWO_ORDERS,
            r#"{"data": {"a": {"order": null, "userErrors": [{"message": "no"}]}, "b": null},
                "errors": [{"path": ["b"]}]}"#,
            r#"{"data": {"a": {"order": {"id": 1}}, "b": {"order": {"id": 2}}}}"#,
        ),
    ] {
        let stage = Stage::known(mutation.preset);
        stage.api.next(ApiAct::Refuse(200, JSON, refusal));
        mutation.sent(&stage);
        assert_eq!(stage.api.effects(), 0);
        stage.api.next(ApiAct::Answer(200, JSON, done.to_owned()));
        assert_eq!(mutation.sent(&stage), "ran", "{refusal}");
        assert_eq!(mutation.sent(&stage), "replayed", "{done}");
        assert_eq!(stage.api.effects(), 1, "{refusal}");
    }
}

#[test]
fn a_refund_in_shopify_carries_its_key_as_a_directive() {
    let stage = Stage::known("shopify");
    let body =
        r#"{"query": "mutation { refundCreate(input: {orderId: \"1\"}) { userErrors { message } } }"}"#;
    let refund = |version: &str| {
        stage.api.next(ApiAct::Answer(
            200,
            JSON,
            r#"{"data": {"refundCreate": {"userErrors": []}}}"#.to_owned(),
        ));
        sent(&stage, &format!("POST /admin/api/{version}/graphql.json"), "", body)
    };
    assert_eq!([refund("2026-04"), refund("2026-04")], ["ran", "replayed"]);
    assert_eq!(stage.api.effects(), 1);
    assert!(stage.api.last().text().contains("@idempotent(key:"), "{}", stage.api.last().text());
}

#[test]
fn a_comment_by_put_is_said_once_and_a_state_is_set_each_time() {
    let stage = Stage::known("zendesk");
    let put = |body: &str| sent(&stage, "PUT /api/v2/tickets/1", "", body);
    let comment = r#"{"ticket": {"comment": {"body": "Solved"}}}"#;
    assert_eq!([put(comment), put(comment)], ["ran", "replayed"]);
    let state = r#"{"ticket": {"status": "solved"}}"#;
    assert_eq!([put(state), put(state)], ["ran", "ran"]);
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn a_name_keeps_a_thing_of_kubernetes_single_and_not_the_ledger() {
    let stage = Stage::known("kubernetes");
    let create =
        || sent(&stage, "POST /apis/batch/v1/namespaces/n/jobs", "", r#"{"metadata": {"name": "migrate"}}"#);
    assert_eq!([create(), create()], ["ran", "ran"], "it may have been deleted meanwhile");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn a_token_of_an_aws_sdk_does_not_start_another_machine() {
    let stage = Stage::known("aws");
    let run = |token: &str| {
        sent(&stage, "POST /", "", &format!("Action=RunInstances&ImageId=ami-1&ClientToken={token}"))
    };
    assert_eq!([run("a"), run("b")], ["ran", "replayed"]);
    assert_eq!(sent(&stage, "POST /", "", "Action=DescribeInstances"), "none", "a read passes");
    assert_eq!(stage.api.effects(), 2, "this API counts every POST");
}

#[test]
fn a_nonce_that_is_written_anew_does_not_make_another_message() {
    let stage = Stage::known("discord");
    for enforced in [true, false] {
        let before = stage.api.effects();
        let post = |nonce: &str| {
            let body = serde_json::json!({"content": format!("deployed {enforced}"), "nonce": nonce, "enforce_nonce": enforced});
            sent(&stage, "POST /api/v10/channels/1/messages", "", &body.to_string())
        };
        assert_eq!([post("1"), post("2"), post("3")], ["ran", "replayed", "replayed"], "{enforced}");
        assert_eq!(stage.api.effects() - before, 1, "{enforced}");
    }
}

#[test]
fn an_operation_of_aws_is_sent_again_with_its_token_under_each_of_its_names() {
    for token in ["clientToken", "IdempotencyToken", "CreatorRequestId", "requestId"] {
        let stage = Stage::known("aws");
        stage.api.next(ApiAct::Vanish);
        let body = format!(r#"{{"Name": "n", "{token}": "from-the-sdk"}}"#);
        assert_eq!(sent(&stage, "POST /prod/channels", "", &body), "ran", "{token}");
        let texts: Vec<String> = stage.api.requests().iter().map(|heard| heard.text()).collect();
        assert!(texts.len() == 2 && texts[0] == texts[1], "{token}: {texts:?}");
        assert!(texts[0].contains("from-the-sdk"), "{token}: {texts:?}");
    }
    let stage = Stage::known("aws");
    stage.api.next(ApiAct::Vanish);
    sent(&stage, "POST /", "", r#"{"RequestId": "q-1"}"#);
    assert_eq!(stage.api.effects(), 1, "a reference is no token");
    assert!(stage.api.last().text().contains("q-1"), "{}", stage.api.last().text());
}
