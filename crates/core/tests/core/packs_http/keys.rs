//! Where the key of an effect goes, how it is written, and how long it counts.

use super::{Line, api, lines};
use regex::Regex;
use semel_core::class::{Class, Tier};
use semel_core::digest::Digest;
use semel_core::policy::ActionFacts;
use semel_core::policy::file::{Helps, ServerError, Stores};
use semel_core::policy::pack::PACKS;
use semel_core::policy::rule::{Inject, InjectInto};
use std::time::Duration;

const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const HOUR: u64 = 3600;

/// Preset, request, body, place, what the API takes there, and for how many hours it knows it.
type Placed = (&'static str, &'static str, &'static str, &'static str, &'static str, Option<u64>);

#[rustfmt::skip]
const INJECTED: &[Placed] = &[
    ("stripe", "POST /v1/charges", "amount=1&currency=usd", "header Idempotency-Key", "[ -~]{1,255}", Some(24)),
    ("stripe", "POST /v1/checkout/sessions", "mode=payment", "header Idempotency-Key", "[ -~]{1,255}", Some(24)),
    ("stripe", "POST /v2/core/accounts", "{}", "header Idempotency-Key", "[ -~]{1,255}", Some(30 * 24)),
    ("square", "POST /v2/payments", r#"{"source_id": "s"}"#, "body idempotency_key", "[ -~]{1,45}", Some(1)),
    ("square", "POST /v2/terminals/checkouts", "{}", "body idempotency_key", "[ -~]{1,64}", Some(1)),
    ("paypal", "POST /v2/checkout/orders", "{}", "header PayPal-Request-Id", "[ -~]{1,108}", Some(6)),
    ("paypal", "POST /v1/payments/sale/S/refund", "{}", "header PayPal-Request-Id", "[ -~]{1,78}", Some(30 * 24)),
    ("paypal", "POST /v2/payments/captures/C/refund", "{}", "header PayPal-Request-Id", "[ -~]{1,108}", Some(45 * 24)),
    ("paypal", "POST /v1/billing/subscriptions", "{}", "header PayPal-Request-Id", "[ -~]{1,108}", Some(72)),
    ("paypal", "POST /v3/vault/payment-tokens", "{}", "header PayPal-Request-Id", "[ -~]{1,108}", Some(3)),
    ("adyen", "POST /v72/payments", "{}", "header Idempotency-Key", "[ -~]{1,64}", Some(7 * 24)),
    ("shopify", "POST /admin/api/2026-04/graphql.json", r#"{"query": "mutation { refundCreate(input: {}) { userErrors { message } } }"}"#, "directive @idempotent", UUID, Some(24)),
    ("resend", "POST /emails", r#"{"to": ["a@x.example"], "subject": "Hello"}"#, "header Idempotency-Key", "[ -~]{1,256}", Some(24)),
    ("resend", "POST /emails/batch", "[]", "header Idempotency-Key", "[ -~]{1,256}", Some(24)),
    ("zendesk", "POST /api/v2/tickets.json", r#"{"ticket": {"subject": "s"}}"#, "header Idempotency-Key", "[ -~]{1,255}", Some(2)),
    ("checkout", "POST /payments", "{}", "header Cko-Idempotency-Key", UUID, Some(24)),
    ("mollie", "POST /v2/payments", "{}", "header Idempotency-Key", UUID, Some(1)),
    ("razorpay", "POST /v1/payouts", "{}", "header X-Payout-Idempotency", "[A-Za-z0-9_-]{4,36}", Some(1)),
    ("mercadopago", "POST /v1/payments", "{}", "header X-Idempotency-Key", UUID, Some(1)),
    ("plaid", "POST /transfer/authorization/create", "{}", "body idempotency_key", "[ -~]{1,50}", Some(48)),
    ("google", "POST /calendar/v3/calendars/primary/events", "{}", "body id", "[a-v0-9]{5,1024}", None),
    ("msgraph", "POST /v1.0/me/events", "{}", "body transactionId", "[ -~]{1,64}", Some(1)),
    ("linear", "POST /graphql", r#"{"query": "mutation { issueCreate(input: $input) { success } }", "variables": {"input": {}}}"#, "body variables.input.id", UUID, None),
];

fn injected(preset: &str, line: &str, body: &str) -> (Option<String>, Option<Inject>) {
    let request = api(preset).request(line, body, "");
    let (rule, explained) =
        api(preset).policy.explain(&ActionFacts::new(&request.action, &request.arguments));
    (explained.inject, rule.inject.clone())
}

#[test]
fn a_key_goes_where_the_api_looks_for_it_in_a_form_that_it_takes_for_as_long_as_it_counts() {
    for (preset, line, body, place, pattern, hours) in INJECTED {
        let (explained, inject) = injected(preset, line, body);
        let inject = inject.unwrap_or_else(|| panic!("[{preset}] {line}: no key"));
        assert_eq!(explained.as_deref(), Some(*place), "[{preset}] {line}");
        let known = hours.map(|hours| Duration::from_secs(hours * HOUR));
        assert_eq!(inject.valid_for, known, "[{preset}] {line}");
        for effect in [b"one", b"two"] {
            let key = inject.key(Digest::of(&[effect]));
            let taken = Regex::new(&format!("^(?:{pattern})$")).expect(pattern);
            assert!(taken.is_match(&key), "[{preset}] {line}: {key}");
        }
    }
}

#[test]
fn a_nonce_for_discord_is_sent_only_where_it_is_enforced() {
    let line = "POST /api/v10/channels/1/messages";
    let (explained, inject) = injected("discord", line, r#"{"content": "x", "enforce_nonce": true}"#);
    assert_eq!(explained.as_deref(), Some("body nonce"));
    assert_eq!(inject.expect("a nonce").key(Digest::of(&[b"one"])).len(), 25);
    assert_eq!(injected("discord", line, r#"{"content": "x", "enforce_nonce": false}"#).1, None);
}

/// What AWS takes is fixed by each service; these are the narrowest.
#[test]
fn a_token_for_aws_fits_the_narrowest_of_its_services() {
    for (body, place) in [
        ("Action=RunInstances&ImageId=ami-1", "body ClientToken"),
        (r#"{"clientToken": "x"}"#, "body clientToken"),
        (r#"{"ClientToken": "x"}"#, "body ClientToken"),
        (r#"{"ClientRequestToken": "x"}"#, "body ClientRequestToken"),
        (r#"{"clientRequestToken": "x"}"#, "body clientRequestToken"),
        (r#"{"IdempotencyToken": "x"}"#, "body IdempotencyToken"),
        (r#"{"CreatorRequestId": "x"}"#, "body CreatorRequestId"),
        (r#"{"requestId": "x"}"#, "body requestId"),
    ] {
        let (explained, inject) = injected("aws", "POST /", body);
        assert_eq!(explained.as_deref(), Some(place), "{body}");
        let key = inject.expect(body).key(Digest::of(&[b"one"]));
        // A UUID in lower case (AppFabric); 33 to 256 (Bedrock); letters, digits and dashes (CloudFormation); at most
        // 36 (DynamoDB); at least 36 (IoT).
        assert!(Regex::new(&format!("^{UUID}$")).expect("a pattern").is_match(&key), "{key}");
    }
    let (request_id, _) = injected("google", "DELETE /compute/v1/projects/p/zones/z/instances/web", "");
    assert_eq!(request_id.as_deref(), Some("query requestId"));
    let (explained, _) = injected("aws", "DELETE /things/1?clientToken=k", "");
    assert_eq!(explained.as_deref(), Some("query clientToken"));
    assert_eq!(injected("aws", "POST /", "Action=Publish&Message=x").1, None, "SNS takes none");
    assert_eq!(injected("aws", "POST /", r#"{"RequestId": "q-1"}"#).1, None, "it names an earlier request");
}

#[test]
fn an_api_that_does_not_help_is_sent_no_key_and_one_that_does_is() {
    for pack in PACKS {
        let Some(preset) = pack.preset() else { continue };
        let keyed = lines()
            .iter()
            .filter(|line| line.preset == pack.name)
            .any(|line| api(pack.name).rule(&line.request).inject.is_some());
        match preset.helps {
            Helps::Nothing => assert!(!keyed, "{} is said to give no help", pack.name),
            // The name of a thing is its caller's own.
            Helps::ClientId if pack.name == "kubernetes" => assert!(!keyed),
            Helps::Key | Helps::Partly | Helps::ClientId => {
                assert!(keyed, "{} helps with nothing", pack.name)
            }
        }
    }
}

/// Before 2026-01 the directive is an error.
#[test]
fn an_old_version_of_shopify_gets_no_directive() {
    let refund = r#"{"query": "mutation { refundCreate(input: {}) { userErrors { message } } }"}"#;
    for (version, keyed) in
        [("2025-10", false), ("2026-01", true), ("2026-10", true), ("2030-01", true), ("unstable", true)]
    {
        let (_, inject) = injected("shopify", &format!("POST /admin/api/{version}/graphql.json"), refund);
        assert_eq!(inject.is_some(), keyed, "{version}");
    }
}

/// The client's own value stands where ours goes, and is another one on each call: it must not tell two calls apart.
#[test]
fn the_place_of_the_key_never_tells_two_requests_apart() {
    let mut checked = 0;
    for Line { preset, written, request, .. } in lines() {
        let rule = api(preset).rule(&request);
        let place = match rule.inject.as_ref().map(|inject| &inject.into) {
            Some(InjectInto::Body(name)) => format!("body.{name}"),
            Some(InjectInto::Query(name)) => format!("query.{name}"),
            _ => continue,
        };
        let volatile = rule.sorting.volatile.iter().any(|path| path.to_string() == place);
        assert!(volatile, "[{preset}] {written}: {place} should be volatile");
        checked += 1;
    }
    assert!(checked >= 15, "{checked}");
}

#[test]
fn what_cannot_be_asked_again_is_opaque_and_says_so() {
    let tier = |preset: &str, line: &str, body: &str| {
        let request = api(preset).request(line, body, "");
        api(preset).rule(&request).tier()
    };
    assert_eq!(tier("twilio", "POST /2010-04-01/Accounts/AC1/Messages.json", "To=1&Body=x"), Tier::Opaque);
    assert_eq!(tier("jira", "POST /rest/api/3/issue", r#"{"fields": {}}"#), Tier::Opaque);
    assert_eq!(tier("slack", "POST /api/chat.postMessage", r#"{"channel": "C", "text": "t"}"#), Tier::Probed);
    assert_eq!(tier("github", "POST /repos/o/r/issues", r#"{"title": "t"}"#), Tier::Probed);
    assert_eq!(tier("stripe", "POST /v1/charges", "amount=1"), Tier::Keyed);
}

#[test]
fn a_read_has_no_key_and_a_refusal_is_left_to_an_api_that_remembers_its_own() {
    for Line { preset, written, request, .. } in lines() {
        let rule = api(preset).rule(&request);
        assert!(rule.class != Class::Read || rule.inject.is_none(), "[{preset}] {written}");
    }
    let keys = |preset: &str| &api(preset).policy.upstreams["it"].keys;
    for preset in ["stripe", "square", "paypal", "adyen", "shopify", "resend", "zendesk"] {
        assert_eq!(keys(preset).stores, Stores::Successes, "{preset}");
    }
    assert_eq!(keys("slack").stores, Stores::Refusals);
    assert_eq!((keys("stripe").server_error, keys("stripe").drift_status), (ServerError::InDoubt, 400));
    assert_eq!(keys("paypal").header, "PayPal-Request-Id");
    assert_eq!((keys("resend").drift_status, keys("zendesk").drift_status), (409, 400));
    assert_eq!(keys("adyen").pattern.as_deref(), Some(".{1,64}"));
}
