//! `semel run`, whose answer was lost, and an API that may know what became of it.

use crate::home::{Home, Ran};
use semel_testkit::http::{RouteReply, RoutedApi};
use std::time::Duration;

/// It happens, and its answer is lost.
const LOST: &str = "echo x >> world; kill -9 $$";

const FOUND: &str = "resp.charges.exists(c, c.order == argv[4])";

/// A rule that asks the API, with its `found` and what else it says.
fn asking(home: &Home, api: &RoutedApi, found: &str, more: &str) {
    let rule = format!(
        "[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\nkey = [\"argv[4]\"]\n{more}\n[rule.probe]\n\
         http = \"GET {}/charges?order={{argv[4]}}\"\nfound = \"{found}\"\nquiet = \"0s\"\n",
        api.url()
    );
    home.file("semel.toml", &rule);
}

fn charge(home: &Home, script: &str) -> Ran {
    home.semel(["--json", "run", "--", "sh", "-c", script, "charge", "1001"])
}

fn charges(orders: &str) -> RouteReply {
    RouteReply::json(200, &format!(r#"{{"charges": [{orders}]}}"#))
}

#[test]
fn a_yes_makes_it_done_with_what_was_found() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, FOUND, "");
    api.tell("GET /charges", [charges(r#"{"order": "1001", "id": "ch_7"}"#)]);
    let ran = charge(&home, LOST);
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"probed".into()), "{ran:?}");
    assert_eq!(ran.json()["tier"], "probed");
    assert_eq!(charge(&home, LOST).json()["outcome"], "replayed");
    assert_eq!(home.effects(), 1);
    assert_eq!(api.count("GET /charges?order=1001"), 1);
}

#[test]
fn a_no_lets_the_next_call_run() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, FOUND, "");
    api.tell("GET /charges", [charges("")]);
    let ran = charge(&home, "kill -9 $$");
    assert_eq!(ran.json()["effect"], "none", "{ran:?}");
    assert_eq!(
        (&ran.json()["what_happened"], &ran.json()["next_step"]),
        (
            &"It did not happen: a probe did not find it.".into(),
            &"It is safe to call it again, unchanged, if it is still wanted.".into()
        ),
        "nobody refused it, and there is no error to read"
    );
    let next = charge(&home, "echo x >> world");
    assert_eq!((next.code, &next.json()["outcome"]), (Some(0), &"ran".into()), "{next:?}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn not_found_is_a_no_for_a_rule_that_asks_for_the_status() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, "status == 200", "");
    api.tell("GET /charges", [RouteReply::json(404, r#"{"error": "no such charge"}"#)]);
    assert_eq!(charge(&home, "kill -9 $$").json()["effect"], "none");
    assert_eq!(charge(&home, "echo x >> world").code, Some(0));
    assert_eq!(home.effects(), 1);
}

#[test]
fn whatever_is_no_answer_to_the_question_holds_the_call() {
    let redirected = RoutedApi::start();
    let moved: &'static str =
        Box::leak(format!("Location: {}/charges\r\n", redirected.url()).into_boxed_str());
    let cases = [
        ("404 without a word of the status", FOUND, RouteReply::json(404, r#"{"charges": []}"#)),
        ("500", "status == 200", RouteReply::json(500, r#"{"charges": []}"#)),
        ("429", "status == 200", RouteReply::json(429, "{}")),
        ("401", "status == 200", RouteReply::json(401, "{}")),
        ("a redirect", "status == 200", RouteReply::json(302, "").with(moved)),
        ("one page of several", FOUND, RouteReply::json(200, r#"{"charges": [], "has_more": true}"#)),
        ("a part", FOUND, RouteReply::json(206, r#"{"charges": []}"#)),
        ("broken JSON", FOUND, RouteReply::json(200, r#"{"charges": ["#)),
        ("a text", FOUND, RouteReply::json(200, "all is well").with("Content-Type: text/plain\r\n")),
        ("no answer", FOUND, RouteReply::nothing()),
        ("too much", FOUND, RouteReply::json(200, &format!("[{}]", "1,".repeat(600_000) + "1"))),
    ];
    for (what, found, says) in cases {
        let (home, api) = (Home::new(), RoutedApi::start());
        asking(&home, &api, found, "");
        api.tell("GET /charges", [says]);
        for _ in 0..2 {
            let ran = charge(&home, LOST);
            assert_eq!((ran.code, &ran.json()["code"]), (Some(121), &"in_doubt".into()), "{what}: {ran:?}");
            let reason = ran.json()["reason"].as_str().unwrap_or_default().to_owned();
            assert!(reason.starts_with("the probe could not tell: "), "{what}: {reason}");
        }
        assert_eq!((home.effects(), api.requests().len()), (1, 2), "{what}");
    }
    assert!(redirected.requests().is_empty(), "a redirect was followed");
}

#[test]
fn a_read_that_lags_does_not_make_it_happen_twice() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, FOUND, "wait = \"20s\"");
    let policy = std::fs::read_to_string(home.work().join("semel.toml")).expect("a policy");
    home.file("semel.toml", &policy.replace("quiet = \"0s\"", "quiet = \"1h\""));
    let there = charges(r#"{"order": "1001"}"#);
    api.tell("GET /charges", [charges(""), charges(""), there]);
    let ran = charge(&home, LOST);
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"probed".into()), "{ran:?}");
    assert_eq!((home.effects(), api.requests().len()), (1, 3));
}

#[test]
fn a_slow_answer_is_waited_for() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, FOUND, "");
    api.tell("GET /charges", [charges(r#"{"order": "1001"}"#).taking(Duration::from_millis(1500))]);
    assert_eq!(charge(&home, LOST).json()["evidence"], "probed");
}

#[test]
fn an_argument_stays_inside_its_place_in_the_address() {
    let (home, api) = (Home::new(), RoutedApi::start());
    asking(&home, &api, FOUND, "");
    let order = "1001&admin=1#x/../..";
    let ran = home.semel(["--json", "run", "--", "sh", "-c", LOST, "charge", order]);
    assert_eq!(ran.code, Some(121), "{ran:?}");
    assert_eq!(api.requests()[0].what(), "GET /charges?order=1001%26admin%3D1%23x%2F..%2F..");
}
