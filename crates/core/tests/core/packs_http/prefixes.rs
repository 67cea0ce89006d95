//! APIs behind a gateway, which has them below a path of its own.

use super::{Api, Request, api, lines};
use semel_core::json::Json;
use semel_core::policy::rule::{Rule, RuleCall};
use semel_core::policy::{ActionFacts, Policy, PolicyFile};
use std::collections::BTreeMap;
use std::sync::Arc;

fn behind(url: &str, preset: &str) -> Policy {
    let text = format!("[upstream.it]\nurl = \"{url}\"\npreset = \"{preset}\"\n");
    Policy::load(vec![PolicyFile { path: "semel.toml".into(), text }])
        .unwrap_or_else(|found| panic!("{found}"))
}

/// The same request below a prefix, as the door names it.
fn below(request: &Request, prefix: &str) -> Request {
    let (host, path) = request.action.split_once('/').expect(&request.action);
    let path = format!("{prefix}/{path}");
    let path = path.trim_end_matches('/');
    let mut arguments = request.arguments.clone();
    let Json::Object(parts) = &mut arguments else { panic!("a request has parts") };
    parts.insert("path", Json::str(path));
    Request { action: format!("{host}{path}"), arguments }
}

fn rule(policy: &Policy, request: &Request) -> Arc<Rule> {
    policy.rule_for(&ActionFacts::new(&request.action, &request.arguments))
}

#[test]
fn every_request_has_its_rule_below_whatever_path_the_api_is() {
    let mut policies: BTreeMap<(&str, String), Policy> = BTreeMap::new();
    for line in lines() {
        let expected = api(line.preset).rule(&line.request);
        let (_, path) = line.request.action.split_once('/').expect(line.written);
        let first = path.split('/').next().unwrap_or_default();
        // A gateway; two segments; and a url that ends with what the API's own paths begin with.
        let urls = [("/gw", ""), ("/gw/one", ""), ("/gw", first), ("", first)];
        for (prefix, own) in urls.into_iter().filter(|(prefix, own)| !prefix.is_empty() || !own.is_empty()) {
            let own = if own.is_empty() { String::new() } else { format!("/{own}") };
            let url = format!("http://127.0.0.1:9{prefix}{own}");
            let policy =
                policies.entry((line.preset, url.clone())).or_insert_with(|| behind(&url, line.preset));
            let found = rule(policy, &below(&line.request, prefix));
            assert_eq!(found.origin, expected.origin, "{url}: {}", line.written);
            assert_eq!(found.class, expected.class, "{url}: {}", line.written);
        }
    }
}

#[test]
fn what_a_rule_asks_and_takes_back_is_below_the_same_path() {
    let address = |call: &RuleCall| match call {
        RuleCall::Http { url, .. } => url.to_string(),
        call => panic!("not by HTTP: {call:?}"),
    };
    let charge = api("stripe").request("POST /v1/charges", "amount=1&currency=usd&customer=c", "");
    for (url, path) in [
        ("http://127.0.0.1:9/gw", "/gw/v1/charges"),
        ("http://127.0.0.1:9/gw/v1", "/gw/v1/charges"),
        ("http://127.0.0.1:9/v1", "/v1/charges"),
        ("http://127.0.0.1:9/v1", "/v1/v1/charges"),
    ] {
        let prefix = path.strip_suffix("/v1/charges").expect(path);
        let rule = rule(&behind(url, "stripe"), &below(&charge, prefix));
        let probe = address(&rule.probe.as_ref().expect("a probe").call);
        assert!(probe.starts_with(&format!("https://api.stripe.com{path}?")), "{url}: {probe}");
        let undo = address(rule.undo.as_ref().expect("an undo"));
        assert_eq!(undo, format!("https://api.stripe.com{prefix}/v1/refunds"), "{url}");
    }
    let pods = "POST /api/v1/namespaces/n/pods";
    let pod = api("kubernetes").request(pods, r#"{"metadata": {"name": "p"}}"#, "");
    let rule = rule(&behind("http://127.0.0.1:9/k8s/c1", "kubernetes"), &below(&pod, "/k8s/c1"));
    let probe = address(&rule.probe.as_ref().expect("a probe").call);
    assert_eq!(probe, "https://kubernetes/{path}/{body.metadata.name}", "the path is whole already");
}

#[test]
fn a_rule_of_ones_own_speaks_of_the_whole_path() {
    let text = "[upstream.it]\nurl = \"http://127.0.0.1:9/gw\"\npreset = \"stripe\"\n\
                [[rule]]\nmatch = \"http:POST api.stripe.com/gw/v1/charges\"\nclass = \"act\"\n\
                [[rule]]\nmatch = \"http:POST api.stripe.com/v1/refunds\"\nclass = \"act\"\n";
    let file = PolicyFile { path: "semel.toml".into(), text: text.into() };
    let policy = Policy::load(vec![file]).unwrap_or_else(|found| panic!("{found}"));
    let origin = |path: &str| {
        let action = format!("http:POST api.stripe.com/gw{path}");
        policy.rule_for(&ActionFacts::new(&action, &Json::Null)).origin.to_string()
    };
    assert_eq!(origin("/v1/charges"), "semel.toml:4");
    assert!(origin("/v1/refunds").starts_with("pack:stripe:"), "{}", origin("/v1/refunds"));
    assert!(policy.warnings.to_string().contains("guards nothing"), "{}", policy.warnings);
}

#[test]
fn an_effect_that_is_kept_is_under_the_rule_that_it_was_made_under() {
    let policy = behind("http://127.0.0.1:9/gw", "stripe");
    let charge = api("stripe").request("POST /v1/charges", "amount=1&currency=usd&customer=c", "");
    let made = rule(&policy, &below(&charge, "/gw"));
    let kept = policy.rule_kept("http:POST api.stripe.com/gw/v1/charges", &made.origin.to_string());
    assert_eq!((&kept.origin, kept.again), (&made.origin, made.again));
}

#[test]
fn two_apis_that_differ_in_their_path_alone_are_two_places() {
    let charge = api("stripe").request("POST /v1/charges", "amount=1&currency=usd&customer=c", "");
    let key = |prefix: &str, authority: &'static str| {
        let url = format!("http://127.0.0.1:9{prefix}");
        let api = Api { url: authority, policy: behind(&url, "stripe") };
        api.intent(&below(&charge, prefix), None).key
    };
    assert_ne!(key("/eu", "one"), key("/us", "one"));
    assert_eq!(key("/eu", "one"), key("/eu", "one"));
}
