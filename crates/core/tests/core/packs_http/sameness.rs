//! What is one intent and what is another.

use super::{Api, api};
use semel_core::decide::{Claiming, Decision, Past, Replay, Situation, decide};
use semel_core::effect::{Evidence, Verdict};
use semel_core::policy::rule::{Again, CallerKey};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Are {
    /// One intent.
    Same,
    /// Another one.
    Two,
    /// One intent that asks for something else now: refused.
    Drift,
}
use Are::{Drift, Same, Two};

fn are(api: &Api, line: &str, one: &str, other: &str) -> Are {
    let of = |body: &str| api.intent(&api.request(line, body, ""), None);
    let (one, other) = (of(one), of(other));
    match (one.key == other.key, one.marks.fingerprint == other.marks.fingerprint) {
        (true, true) => Same,
        (true, false) => Drift,
        (false, _) => Two,
    }
}

/// Preset, request, a body, and others that are held against it.
type Held = (&'static str, &'static str, &'static str, &'static [(Are, &'static str)]);

const PAIRS: &[Held] = &[
    (
        "stripe",
        "POST /v1/charges",
        "amount=2000&currency=usd&customer=cus_1&metadata[order]=7&description=March",
        &[
            (
                Same,
                "description=Again,+March&customer=cus_1&currency=usd&amount=2000&metadata[order]=7&expand[0]=customer",
            ),
            (Two, "amount=2001&currency=usd&customer=cus_1&metadata[order]=7&description=March"),
            (Two, "amount=2000&currency=eur&customer=cus_1&metadata[order]=7&description=March"),
            (Two, "amount=2000&currency=usd&customer=cus_2&metadata[order]=7&description=March"),
            (Two, "amount=2000&currency=usd&customer=cus_1&metadata[order]=8&description=March"),
            (Two, "amount=2000&currency=usd&customer=cus_1&description=March"),
        ],
    ),
    (
        "stripe",
        "POST /v1/payment_intents",
        "amount=2000&currency=usd&customer=cus_1&payment_method=pm_1&confirm=true&metadata[order]=7",
        &[
            (
                Same,
                "amount=2000&currency=usd&customer=cus_1&payment_method=pm_1&confirm=true&metadata[order]=7&description=x",
            ),
            (
                Two,
                "amount=2000&currency=usd&customer=cus_1&payment_method=pm_2&confirm=true&metadata[order]=7",
            ),
        ],
    ),
    (
        "stripe",
        "POST /v1/refunds",
        "payment_intent=pi_1&amount=500&reason=duplicate",
        &[
            (Same, "payment_intent=pi_1&amount=500&reason=requested_by_customer"),
            (Two, "payment_intent=pi_1&amount=600"),
        ],
    ),
    (
        "stripe",
        "POST /v1/customers",
        "email=ann@example.com&name=Ann",
        &[(Same, "email=Ann@Example.com&name=Ann+Smith"), (Two, "email=bob@example.com&name=Ann")],
    ),
    ("stripe", "POST /v1/customers", "name=Ann", &[(Two, "name=Bob")]),
    ("stripe", "POST /v1/products", "name=Tea", &[(Same, "name=Tea&description=Green"), (Two, "name=Cup")]),
    (
        "square",
        "POST /v2/payments",
        r#"{"idempotency_key": "a", "source_id": "ccof:1", "amount_money": {"amount": 100, "currency": "USD"}, "order_id": "o1", "note": "n"}"#,
        &[
            (
                Same,
                r#"{"idempotency_key": "b", "source_id": "ccof:1", "amount_money": {"amount": 100, "currency": "USD"}, "order_id": "o1", "note": "m"}"#,
            ),
            (
                Two,
                r#"{"idempotency_key": "a", "source_id": "ccof:1", "amount_money": {"amount": 101, "currency": "USD"}, "order_id": "o1", "note": "n"}"#,
            ),
            (
                Two,
                r#"{"idempotency_key": "a", "source_id": "ccof:1", "amount_money": {"amount": 100, "currency": "USD"}, "order_id": "o2", "note": "n"}"#,
            ),
        ],
    ),
    (
        "paypal",
        "POST /v1/payments/payouts",
        r#"{"sender_batch_header": {"sender_batch_id": "a"}, "items": [{"receiver": "a@example.com", "sender_item_id": "i", "note": "x", "amount": {"value": "1.00", "currency": "USD"}}]}"#,
        &[
            (
                Same,
                r#"{"sender_batch_header": {"sender_batch_id": "b"}, "items": [{"receiver": "a@example.com", "sender_item_id": "i", "note": "y", "amount": {"value": "1.00", "currency": "USD"}}]}"#,
            ),
            (
                Two,
                r#"{"sender_batch_header": {"sender_batch_id": "a"}, "items": [{"receiver": "a@example.com", "sender_item_id": "i", "note": "x", "amount": {"value": "2.00", "currency": "USD"}}]}"#,
            ),
        ],
    ),
    (
        "paypal",
        "POST /v2/payments/captures/C1/refund",
        r#"{"amount": {"value": "1.00", "currency_code": "USD"}, "note_to_payer": "sorry"}"#,
        &[
            (
                Same,
                r#"{"amount": {"value": "1.00", "currency_code": "USD"}, "note_to_payer": "our apologies"}"#,
            ),
            (Two, r#"{"amount": {"value": "2.00", "currency_code": "USD"}}"#),
        ],
    ),
    (
        "adyen",
        "POST /v72/payments",
        r#"{"merchantAccount": "m", "reference": "r1", "amount": {"value": 100, "currency": "EUR"}, "paymentMethod": {"encryptedCardNumber": "x1"}}"#,
        &[
            (
                Same,
                r#"{"merchantAccount": "m", "reference": "r1", "amount": {"value": 100, "currency": "EUR"}, "paymentMethod": {"encryptedCardNumber": "x2"}}"#,
            ),
            (
                Two,
                r#"{"merchantAccount": "m", "reference": "r1", "amount": {"value": 200, "currency": "EUR"}}"#,
            ),
            (
                Two,
                r#"{"merchantAccount": "m", "reference": "r2", "amount": {"value": 100, "currency": "EUR"}}"#,
            ),
            (
                Drift,
                r#"{"merchantAccount": "m", "reference": "r1", "amount": {"value": 100, "currency": "EUR"}, "captureDelayHours": 1}"#,
            ),
        ],
    ),
    (
        "shopify",
        "POST /admin/api/2026-04/graphql.json",
        r#"{"query": "mutation($input: RefundInput!) { refundCreate(input: $input) { userErrors { message } } }", "variables": {"input": {"orderId": "1", "note": "n"}, "idempotencyKey": "a"}}"#,
        &[
            (
                Same,
                r#"{"query": "mutation($input: RefundInput!)  {\n refundCreate(input: $input) { userErrors { message } } }", "variables": {"input": {"orderId": "1", "note": "m"}, "idempotencyKey": "b"}}"#,
            ),
            (
                Two,
                r#"{"query": "mutation($input: RefundInput!) { refundCreate(input: $input) { userErrors { message } } }", "variables": {"input": {"orderId": "2"}}}"#,
            ),
        ],
    ),
    (
        "resend",
        "POST /emails",
        r#"{"from": "me@x.example", "to": ["ann@x.example"], "subject": "Your invoice 17", "html": "<p>a</p>"}"#,
        &[
            (
                Same,
                r#"{"from": "me@x.example", "to": ["Ann <ANN@x.example>"], "subject": "Your invoice  17", "html": "<p>b</p>", "headers": {"X-Entity-Ref-ID": "1"}}"#,
            ),
            (
                Two,
                r#"{"from": "me@x.example", "to": ["ann@x.example"], "subject": "Your invoice 18", "html": "<p>a</p>"}"#,
            ),
            (
                Two,
                r#"{"from": "me@x.example", "to": ["bob@x.example"], "subject": "Your invoice 17", "html": "<p>a</p>"}"#,
            ),
        ],
    ),
    (
        "resend",
        "POST /emails",
        r#"{"to": ["ann@x.example"], "subject": "Your login code", "text": "1234"}"#,
        &[
            (Same, r#"{"to": ["ann@x.example"], "subject": "Your login code", "text": "1234"}"#),
            (Two, r#"{"to": ["ann@x.example"], "subject": "Your login code", "text": "9876"}"#),
        ],
    ),
    (
        "twilio",
        "POST /2010-04-01/Accounts/AC1/Messages.json",
        "To=+15550001&From=+15550002&Body=Your+code+is+1234",
        &[
            (Same, "From=+15550002&To=+15550001&Body=Your+code+is+1234&StatusCallback=https://x.example"),
            (Two, "To=+15550001&From=+15550002&Body=Your+code+is+9876"),
        ],
    ),
    (
        "slack",
        "POST /api/chat.postMessage",
        r#"{"channel": "C1", "text": "deployed 1.2"}"#,
        &[
            (Same, r#"{"channel": "C1", "text": "deployed 1.2 ", "unfurl_links": false}"#),
            (Two, r#"{"channel": "C1", "text": "deployed 1.3"}"#),
            (Two, r#"{"channel": "C2", "text": "deployed 1.2"}"#),
            (Two, r#"{"channel": "C1", "text": "deployed 1.2", "thread_ts": "1.2"}"#),
        ],
    ),
    (
        "github",
        "POST /repos/o/r/issues",
        r#"{"title": "It is broken", "body": "a", "labels": ["bug"]}"#,
        &[
            (Same, r#"{"title": "It is  broken", "body": "b"}"#),
            (Two, r#"{"title": "It is not broken", "body": "a"}"#),
        ],
    ),
    (
        "jira",
        "POST /rest/api/3/issue",
        r#"{"fields": {"project": {"key": "A"}, "summary": "Write tests", "parent": {"key": "A-1"}, "description": "a"}}"#,
        &[
            (
                Same,
                r#"{"fields": {"project": {"key": "A"}, "summary": "Write tests", "parent": {"key": "A-1"}, "description": "b", "labels": ["x"]}}"#,
            ),
            (
                Two,
                r#"{"fields": {"project": {"key": "A"}, "summary": "Write tests", "parent": {"key": "A-2"}, "description": "a"}}"#,
            ),
            (
                Two,
                r#"{"fields": {"project": {"key": "B"}, "summary": "Write tests", "parent": {"key": "A-1"}, "description": "a"}}"#,
            ),
            (
                Drift,
                r#"{"fields": {"project": {"key": "A"}, "summary": "Write tests", "parent": {"key": "A-1"}, "customfield_1": 3}}"#,
            ),
        ],
    ),
    (
        "linear",
        "POST /graphql",
        r#"{"query": "mutation a($input: IssueCreateInput!) { issueCreate(input: $input) { success } }", "variables": {"input": {"teamId": "t", "title": "It is broken", "description": "a", "id": "1"}}}"#,
        &[
            (
                Same,
                r#"{"query": "mutation b($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id } } }", "variables": {"input": {"teamId": "t", "title": "It is broken", "priority": 1}}}"#,
            ),
            (
                Two,
                r#"{"query": "mutation a($input: IssueCreateInput!) { issueCreate(input: $input) { success } }", "variables": {"input": {"teamId": "t", "title": "It is broken", "parentId": "p"}}}"#,
            ),
            (
                Two,
                r#"{"query": "mutation a($input: IssueCreateInput!) { issueCreate(input: $input) { success } }", "variables": {"input": {"teamId": "u", "title": "It is broken"}}}"#,
            ),
        ],
    ),
    (
        "notion",
        "POST /v1/pages",
        r#"{"parent": {"page_id": "p"}, "properties": {"title": [{"text": {"content": "Notes"}}]}, "children": [{"a": 1}]}"#,
        &[
            (
                Same,
                r#"{"parent": {"page_id": "p"}, "properties": {"title": [{"text": {"content": "Notes"}}]}, "children": []}"#,
            ),
            (
                Two,
                r#"{"parent": {"page_id": "q"}, "properties": {"title": [{"text": {"content": "Notes"}}]}}"#,
            ),
        ],
    ),
    (
        "zendesk",
        "POST /api/v2/tickets",
        r#"{"ticket": {"subject": "Login fails", "comment": {"body": "a"}, "requester": {"email": "ann@x.example"}}}"#,
        &[
            (
                Same,
                r#"{"ticket": {"subject": "Login fails", "comment": {"body": "b"}, "requester": {"email": "Ann@x.example"}, "priority": "high"}}"#,
            ),
            (
                Two,
                r#"{"ticket": {"subject": "Login fails", "comment": {"body": "a"}, "requester": {"email": "bob@x.example"}}}"#,
            ),
        ],
    ),
    (
        "zendesk",
        "PUT /api/v2/tickets/1",
        r#"{"ticket": {"comment": {"body": "Solved"}}}"#,
        &[
            (Same, r#"{"ticket": {"comment": {"body": "Solved"}}}"#),
            (Two, r#"{"ticket": {"comment": {"body": "Not yet"}}}"#),
        ],
    ),
    (
        "aws",
        "POST /",
        "Action=RunInstances&ImageId=ami-1&ClientToken=a",
        &[
            (Same, "Action=RunInstances&ImageId=ami-1&ClientToken=b"),
            (Two, "Action=RunInstances&ImageId=ami-2&ClientToken=a"),
        ],
    ),
    (
        "aws",
        "POST /",
        r#"{"cluster": "c", "clientToken": "a"}"#,
        &[
            (Same, r#"{"cluster": "c", "clientToken": "b"}"#),
            (Two, r#"{"cluster": "d", "clientToken": "a"}"#),
        ],
    ),
    (
        "kubernetes",
        "POST /apis/batch/v1/namespaces/n/jobs",
        r#"{"metadata": {"name": "migrate"}, "spec": {"a": 1}}"#,
        &[
            (Same, r#"{"metadata": {"name": "migrate"}, "spec": {"a": 1}}"#),
            (Drift, r#"{"metadata": {"name": "migrate"}, "spec": {"a": 2}}"#),
            (Two, r#"{"metadata": {"name": "other"}, "spec": {"a": 1}}"#),
        ],
    ),
    (
        "checkout",
        "POST /payments",
        r#"{"source": {"id": "s"}, "amount": 100, "currency": "EUR", "reference": "o1", "description": "a"}"#,
        &[
            (
                Same,
                r#"{"source": {"id": "s"}, "amount": 100, "currency": "EUR", "reference": "o1", "description": "b"}"#,
            ),
            (Two, r#"{"source": {"id": "s"}, "amount": 101, "currency": "EUR", "reference": "o1"}"#),
            (Two, r#"{"source": {"id": "s"}, "amount": 100, "currency": "EUR", "reference": "o2"}"#),
        ],
    ),
    (
        "mollie",
        "POST /v2/payments",
        r#"{"amount": {"value": "1.00"}, "sequenceType": "recurring", "customerId": "c", "description": "a"}"#,
        &[
            (
                Same,
                r#"{"amount": {"value": "1.00"}, "sequenceType": "recurring", "customerId": "c", "description": "b"}"#,
            ),
            (Two, r#"{"amount": {"value": "2.00"}, "sequenceType": "recurring", "customerId": "c"}"#),
        ],
    ),
    (
        "razorpay",
        "POST /v1/payouts",
        r#"{"fund_account_id": "f", "amount": 100, "reference_id": "r1", "narration": "a"}"#,
        &[
            (Same, r#"{"fund_account_id": "f", "amount": 100, "reference_id": "r1", "narration": "b"}"#),
            (Two, r#"{"fund_account_id": "f", "amount": 200, "reference_id": "r1"}"#),
        ],
    ),
    (
        "mercadopago",
        "POST /v1/payments",
        r#"{"transaction_amount": 10, "token": "t1", "external_reference": "o1"}"#,
        &[
            (
                Same,
                r#"{"transaction_amount": 10.0, "token": "t2", "external_reference": "o1", "description": "b"}"#,
            ),
            (Two, r#"{"transaction_amount": 11, "token": "t1", "external_reference": "o1"}"#),
        ],
    ),
    (
        "mercadopago",
        "POST /v1/payments",
        r#"{"transaction_amount": 10, "token": "t1"}"#,
        &[(Two, r#"{"transaction_amount": 10, "token": "t2"}"#)],
    ),
    (
        "plaid",
        "POST /transfer/create",
        r#"{"authorization_id": "a", "description": "x", "secret": "s1"}"#,
        &[
            (Same, r#"{"authorization_id": "a", "description": "y", "secret": "s2"}"#),
            (Two, r#"{"authorization_id": "b"}"#),
        ],
    ),
    (
        "discord",
        "POST /api/v10/channels/1/messages",
        r#"{"content": "deployed 1.2", "nonce": "1"}"#,
        &[(Same, r#"{"content": "deployed 1.2", "nonce": "2"}"#), (Two, r#"{"content": "deployed 1.3"}"#)],
    ),
    (
        "discord",
        "POST /api/v10/channels/1/messages",
        r#"{"content": "deployed 1.2", "nonce": "1", "enforce_nonce": true}"#,
        &[
            (Same, r#"{"content": "deployed 1.2", "nonce": "2", "enforce_nonce": true}"#),
            (Two, r#"{"content": "deployed 1.3", "nonce": "1", "enforce_nonce": true}"#),
        ],
    ),
    (
        "sendgrid",
        "POST /v3/mail/send",
        r#"{"personalizations": [{"to": [{"email": "a@x.example"}], "custom_args": {"n": "1"}}], "subject": "Hello", "content": [{"value": "a"}]}"#,
        &[
            (
                Same,
                r#"{"personalizations": [{"to": [{"email": "a@x.example"}], "custom_args": {"n": "2"}}], "subject": "Hello", "content": [{"value": "b"}]}"#,
            ),
            (Two, r#"{"personalizations": [{"to": [{"email": "b@x.example"}]}], "subject": "Hello"}"#),
        ],
    ),
    (
        "postmark",
        "POST /email",
        r#"{"To": "A@x.example", "Subject": "Hello", "TextBody": "a"}"#,
        &[
            (Same, r#"{"To": "a@x.example", "Subject": "Hello", "TextBody": "b"}"#),
            (Two, r#"{"To": "b@x.example", "Subject": "Hello", "TextBody": "a"}"#),
        ],
    ),
    (
        "google",
        "POST /calendar/v3/calendars/primary/events",
        r#"{"summary": "Standup", "start": {"dateTime": "1"}, "description": "a", "id": "abcde"}"#,
        &[
            (
                Same,
                r#"{"summary": "Standup", "start": {"dateTime": "1"}, "description": "b", "attendees": []}"#,
            ),
            (Two, r#"{"summary": "Standup", "start": {"dateTime": "2"}}"#),
        ],
    ),
    (
        "msgraph",
        "POST /v1.0/me/events",
        r#"{"subject": "Standup", "start": {"dateTime": "1"}, "body": {"content": "a"}}"#,
        &[
            (Same, r#"{"subject": "Standup", "start": {"dateTime": "1"}, "transactionId": "t"}"#),
            (Two, r#"{"subject": "Retro", "start": {"dateTime": "1"}}"#),
        ],
    ),
    (
        "openai",
        "POST /v1/batches",
        r#"{"input_file_id": "f", "endpoint": "/v1/responses", "metadata": {"at": "1"}}"#,
        &[
            (Same, r#"{"input_file_id": "f", "endpoint": "/v1/responses", "metadata": {"at": "2"}}"#),
            (Two, r#"{"input_file_id": "g", "endpoint": "/v1/responses"}"#),
        ],
    ),
    (
        "anthropic",
        "POST /v1/messages/batches",
        r#"{"requests": [{"custom_id": "1"}]}"#,
        &[(Same, r#"{"requests": [{"custom_id": "1"}]}"#), (Two, r#"{"requests": [{"custom_id": "2"}]}"#)],
    ),
];

#[test]
fn equal_requests_are_one_intent_and_what_is_asked_for_makes_another() {
    for (preset, line, one, others) in PAIRS {
        for (expected, other) in *others {
            assert_eq!(
                are(api(preset), line, one, other),
                *expected,
                "[{preset}] {line}\n  {one}\n  {other}"
            );
        }
    }
}

/// What the SDKs bring a new key for, or whoever calls writes one for.
const MINTED: &[(&str, &str, &str)] = &[
    ("stripe", "POST /v1/charges", "amount=2000&currency=usd&customer=cus_1"),
    ("stripe", "POST /v1/payment_intents", "amount=2000&currency=usd&customer=cus_1&confirm=true"),
    ("stripe", "POST /v1/refunds", "payment_intent=pi_1"),
    ("stripe", "POST /v1/transfers", "amount=2000&currency=usd&destination=acct_1"),
    ("stripe", "POST /v1/subscriptions", "customer=cus_1&items[0][price]=price_1"),
    ("square", "POST /v2/payments", r#"{"source_id": "s", "amount_money": {"amount": 1}}"#),
    ("square", "POST /v2/refunds", r#"{"payment_id": "s", "amount_money": {"amount": 1}}"#),
    ("paypal", "POST /v1/payments/payouts", r#"{"items": [{"receiver": "a", "amount": {"value": "1"}}]}"#),
    ("paypal", "POST /v2/payments/captures/C1/refund", r#"{"amount": {"value": "1"}}"#),
    ("adyen", "POST /v72/payments", r#"{"merchantAccount": "m", "reference": "r", "amount": {"value": 1}}"#),
    ("adyen", "POST /v72/payments/P/refunds", r#"{"merchantAccount": "m", "amount": {"value": 1}}"#),
    ("checkout", "POST /payments", r#"{"amount": 1}"#),
    ("mollie", "POST /v2/payments/tr_1/refunds", r#"{"amount": {"value": "1.00"}}"#),
    ("razorpay", "POST /v1/payouts", r#"{"amount": 1}"#),
    ("mercadopago", "POST /v1/payments", r#"{"transaction_amount": 1}"#),
    ("plaid", "POST /transfer/authorization/create", r#"{"amount": "1.00"}"#),
    ("paypal", "POST /v2/payments/captures/C1/refund", ""),
    ("aws", "POST /", "Action=RunInstances&ImageId=ami-1"),
    ("discord", "POST /api/v10/channels/1/messages", r#"{"content": "x", "enforce_nonce": true}"#),
];

#[test]
fn three_keys_of_an_sdk_for_one_request_are_one_intent() {
    for (preset, line, body) in MINTED {
        let api = api(preset);
        let request = api.request(line, body, "");
        let of = |key| api.intent(&request, key);
        let keys =
            [of(None).key, of(Some("stripe-node-retry-1")).key, of(Some("k2")).key, of(Some("k3")).key];
        assert!(keys.iter().all(|key| *key == keys[0]), "[{preset}] {line}");
        assert!(of(Some("k2")).alias.is_some() && of(Some("k2")).alias != of(Some("k3")).alias);
    }
}

#[test]
fn a_clients_key_decides_where_no_sdk_mints_one() {
    for (preset, line, body) in [
        ("slack", "POST /api/chat.postMessage", r#"{"channel": "C", "text": "t"}"#),
        ("github", "POST /repos/o/r/issues", r#"{"title": "t"}"#),
        ("zendesk", "POST /api/v2/tickets", r#"{"ticket": {"subject": "s", "comment": {"body": "b"}}}"#),
        ("twilio", "POST /2010-04-01/Accounts/AC1/Messages.json", "To=1&Body=x"),
        ("resend", "POST /emails", r#"{"to": ["a@x.example"], "subject": "Hello"}"#),
        ("discord", "POST /api/v10/channels/1/messages", r#"{"content": "x"}"#),
    ] {
        let api = api(preset);
        let request = api.request(line, body, "");
        assert_eq!(api.rule(&request).caller_key, CallerKey::Decides, "{preset}");
        assert_ne!(api.intent(&request, Some("a")).key, api.intent(&request, Some("b")).key, "{preset}");
    }
}

#[test]
fn money_is_repeated_by_a_person_alone() {
    for (preset, line, body) in MINTED.iter().filter(|(preset, ..)| !["aws", "discord"].contains(preset)) {
        assert_eq!(
            api(preset).rule(&api(preset).request(line, body, "")).again,
            Again::Person,
            "{preset} {line}"
        );
    }
}

/// What a repeat gets some time after a delivered success.
fn repeat(api: &Api, (line, body): (&str, &str), key: Option<&str>, after: Duration) -> Decision {
    let request = api.request(line, body, "");
    let (rule, intent) = (api.rule(&request), api.intent(&request, key));
    let mut effect =
        crate::scene::effect(crate::scene::applied(Evidence::Reported, Some(1)), &[Verdict::Applied]);
    effect.marks = Arc::clone(&intent.marks);
    effect.delivered_at = Some(crate::scene::CLAIMED);
    let situation = Situation {
        now: crate::scene::after(after),
        uptime: None,
        newest_on_record: None,
        fenced: false,
        memory_boundary: None,
        forgotten_before: None,
        stands_for: None,
        reached_by_key: false,
        past: Past::default(),
    };
    decide(Some(&effect), &intent, &rule, &situation)
}

#[test]
fn two_equal_charges_without_a_reference_are_one_for_an_hour_and_with_one_for_a_day() {
    const MINUTE: Duration = Duration::from_secs(60);
    let runs = Decision::Claim(Claiming::NextEffect { reason: None, possible_repeat: true });
    let replays = Decision::Replay(Replay::Repeat);
    for (preset, line, bare, with) in [
        (
            "stripe",
            "POST /v1/charges",
            "amount=1&currency=usd&customer=c",
            "amount=1&currency=usd&customer=c&metadata[order]=7",
        ),
        (
            "stripe",
            "POST /v1/transfers",
            "amount=1&currency=usd&destination=a",
            "amount=1&currency=usd&destination=a&transfer_group=g",
        ),
        (
            "stripe",
            "POST /v1/payment_intents",
            "amount=1&currency=usd&confirm=true",
            "amount=1&currency=usd&confirm=true&metadata[order]=7",
        ),
        ("square", "POST /v2/payments", r#"{"source_id": "s"}"#, r#"{"source_id": "s", "order_id": "o"}"#),
    ] {
        let get = |body, hours_and_minutes: (u32, u32)| {
            let after = MINUTE * (60 * hours_and_minutes.0 + hours_and_minutes.1);
            repeat(api(preset), (line, body), Some("another key"), after)
        };
        assert_eq!(
            [get(bare, (0, 59)), get(bare, (1, 0))],
            [replays.clone(), runs.clone()],
            "{preset} {line}"
        );
        assert_eq!(
            [get(with, (23, 0)), get(with, (24, 0))],
            [replays.clone(), runs.clone()],
            "{preset} {line}"
        );
    }
}

#[test]
fn what_may_be_wanted_again_at_any_moment_is_never_answered_from_the_record() {
    for (preset, line, body) in [
        ("stripe", "POST /v1/payment_intents", "amount=1&currency=usd"),
        ("stripe", "POST /v1/customers/cus_1", "name=Ann"),
        ("stripe", "POST /v1/payment_intents/pi_1/confirm", "payment_method=pm_1"),
        ("paypal", "POST /v2/checkout/orders", r#"{"intent": "CAPTURE", "purchase_units": []}"#),
        ("kubernetes", "POST /apis/batch/v1/namespaces/n/jobs", r#"{"metadata": {"name": "migrate"}}"#),
        ("github", "POST /repos/o/r/issues/1/comments", r#"{"body": "/retest"}"#),
        ("linear", "POST /graphql", r#"{"query": "mutation { issueUpdate(id: 1) { success } }"}"#),
    ] {
        let decision = repeat(api(preset), (line, body), None, Duration::from_secs(60));
        assert!(
            matches!(decision, Decision::Claim(Claiming::NextEffect { .. })),
            "{preset} {line}: {decision:?}"
        );
    }
}
