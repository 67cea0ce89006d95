//! An API is known by its host.

use super::{Api, sections};
use semel_core::policy::file::Speaks;
use semel_core::policy::pack::PACKS;
use std::collections::BTreeSet;

#[test]
fn an_api_is_known_by_its_host() {
    for (preset, url) in sections() {
        assert_eq!(Api::at(url).preset(), Some(preset), "{url}");
    }
    for (url, preset) in [
        ("https://connect.squareupsandbox.com", "square"),
        ("https://api-m.paypal.com", "paypal"),
        ("https://1797a841fbb37ca7-AcmeCorp-checkout-live.adyenpayments.com/checkout", "adyen"),
        ("https://pal-test.adyen.com", "adyen"),
        ("https://www.slack.com", "slack"),
        ("https://api.atlassian.com/ex/jira/11223344", "jira"),
        ("https://sqs.eu-west-1.amazonaws.com", "aws"),
        ("https://eks.eu-west-1.amazonaws.com", "aws"),
        ("https://0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com", "kubernetes"),
        ("https://acme-dns-1a2b.hcp.westeurope.azmk8s.io:443", "kubernetes"),
        ("https://API.STRIPE.COM:443/", "stripe"),
    ] {
        assert_eq!(Api::at(url).preset(), Some(preset), "{url}");
    }
    for url in [
        "https://api.stripe.com.evil.example",
        "https://stripe.com",
        "https://example.com",
        "http://127.0.0.1:9",
        "https://myshopify.com",
        "https://notslack.com",
    ] {
        assert_eq!(Api::at(url).preset(), None, "{url}");
    }
}

#[test]
fn only_the_model_apis_speak() {
    let speaking: Vec<_> = PACKS
        .iter()
        .filter_map(|pack| Some((pack.name, pack.preset()?.speaks)))
        .filter(|(_, speaks)| *speaks != Speaks::Nothing)
        .collect();
    assert_eq!(speaking, [("anthropic", Speaks::Anthropic), ("openai", Speaks::Openai)]);
}

#[test]
fn a_live_address_with_a_path_of_its_own_gets_the_same_rules() {
    let live = Api::at("https://1797a841fbb37ca7-AcmeCorp-checkout-live.adyenpayments.com/checkout");
    let payment = r#"{"merchantAccount": "m", "reference": "r", "amount": {"value": 1, "currency": "EUR"}}"#;
    let rule = live.rule(&live.request("POST /checkout/v72/payments", payment, ""));
    assert!(rule.inject.is_some(), "{}", rule.origin);
    let jira = Api::at("https://api.atlassian.com/ex/jira/11223344");
    let issue = r#"{"fields": {"project": {"key": "A"}, "summary": "s"}}"#;
    let rule = jira.rule(&jira.request("POST /ex/jira/11223344/rest/api/3/issue", issue, ""));
    assert_eq!(rule.sorting.key.len(), 2, "{}", rule.origin);
}

#[test]
fn no_two_presets_claim_one_service_and_each_says_what_it_is() {
    let mut services = BTreeSet::new();
    for pack in PACKS {
        let Some(preset) = pack.preset() else { continue };
        assert!(services.insert(preset.service.clone()), "{}", preset.service);
        assert!(!preset.hosts.is_empty() && !preset.service.is_empty(), "{}", pack.name);
        assert!(preset.note.ends_with('.') && preset.note.len() > 40, "{}: {}", pack.name, preset.note);
    }
    assert!(services.len() >= 17, "{services:?}");
}
