//! Probes before and after a doubt, and confirms after a success.

use super::stage::{JSON, Stage, became};
use semel_testkit::http::ApiAct;
use semel_testkit::wait_until;

const PROBED: &str = r#"
[[rule]]
match = "http:POST bank/charges"
class = "consequential"
key = ["body.invoice"]
[rule.probe]
http = "GET {API}/charges?invoice={body.invoice}"
found = "resp.data.exists(c, c.invoice == body.invoice)"
reply = "resp.data.filter(c, c.invoice == body.invoice)[0]"
quiet = "0s"
"#;

#[test]
fn a_probe_finds_what_was_lost_and_brings_its_reply() {
    let stage = Stage::with(PROBED);
    stage.api.shows("/charges?invoice=7", r#"{"data":[{"id":"ch_1","invoice":7}]}"#);
    stage.api.next(ApiAct::Vanish);
    let headers = format!("{JSON}Authorization: Bearer user\r\n");
    let found = stage.send("POST", "/charges", &headers, r#"{"invoice":7}"#);
    assert_eq!(became(&found), (201, "ran".into(), String::new()), "{found:?}");
    assert_eq!(found.json()["id"], "ch_1");
    assert_eq!(
        (found.header("content-type"), found.header("semel-effect")),
        (Some("application/json"), Some("created"))
    );
    assert_eq!(found.header("semel-evidence"), Some("probed"));
    let asked =
        stage.api.requests().into_iter().find(|heard| heard.line().starts_with("GET")).expect("a probe");
    assert_eq!(asked.header("authorization"), Some("Bearer user"));
    let again = stage.send("POST", "/charges", &headers, r#"{"invoice":7}"#);
    assert_eq!(
        (became(&again), again.body.as_str()),
        ((201, "replayed".into(), String::new()), found.body.as_str())
    );
    assert_eq!(stage.api.effects(), 1);
}

/// An SDK of the API reads the answer: it must be the API's, or be no answer of the API's at all.
#[test]
fn a_ruled_request_is_answered_with_the_apis_reply_or_plainly_without_one() {
    let stage = Stage::plain();
    let order = |number: u32| stage.send("POST", "/orders", JSON, &format!(r#"{{"order":{number}}}"#));
    let lost = |number: u32| {
        stage.api.next(ApiAct::Vanish);
        let lost = order(number);
        assert_eq!(became(&lost).2, "in_doubt");
        lost.header("semel-effect-id").expect("an effect").to_owned()
    };
    let rule = |id: &str, ruling: serde_json::Value| {
        assert_eq!(stage.house.rule(&format!("/effects/{id}/resolve"), &ruling).status, 200);
    };
    let reply = serde_json::json!({"id": "or_1", "order": 1});
    rule(&lost(1), serde_json::json!({"verdict": "applied", "reason": "seen", "reply": reply}));
    let given = order(1);
    assert_eq!((became(&given), given.json()), ((201, "replayed".into(), String::new()), reply));
    assert_eq!((given.header("content-type"), given.header("semel-reply")), (Some("application/json"), None));
    let id = lost(2);
    rule(&id, serde_json::json!({"verdict": "applied", "reason": "seen"}));
    let bare = order(2);
    assert_eq!(became(&bare), (200, "replayed".into(), String::new()));
    assert_eq!(bare.header("semel-reply"), Some("unknown"));
    assert_eq!(bare.header("content-type"), Some("application/problem+json"));
    let document = bare.json();
    assert_eq!((&document["title"], &document["ok"]), (&"reply_unknown".into(), &true.into()));
    assert_eq!((&document["effect_id"], document.get("error")), (&id.into(), None));
    assert!(document["detail"].as_str().is_some_and(|detail| detail.contains("not known")), "{document}");
    assert_eq!((stage.api.effects(), stage.house.effects("").len()), (2, 2));
}

#[test]
fn a_probe_that_cannot_tell_leaves_the_doubt() {
    let stage = Stage::with(PROBED);
    stage.api.next(ApiAct::Vanish);
    let unclear = stage.send("POST", "/charges", JSON, r#"{"invoice":8}"#);
    assert_eq!(became(&unclear).2, "in_doubt");
    assert_eq!(became(&stage.send("POST", "/charges", JSON, r#"{"invoice":8}"#)).2, "in_doubt");
    assert_eq!(stage.api.effects(), 1);
}

/// After the rule's timeout the caller looks again. It is the same call, and it has sent.
#[test]
fn a_no_that_counts_after_the_timeout_lets_the_next_call_run_and_not_this_one() {
    let rule = PROBED.replace("class =", "timeout = \"100ms\"\nwait = \"20s\"\nclass =");
    let stage = Stage::with(&rule.replace("quiet = \"0s\"", "quiet = \"500ms\""));
    stage.api.shows("/charges?invoice=7", r#"{"data":[]}"#);
    stage.api.next(ApiAct::Refuse(500, "", "{}"));
    let first = stage.send("POST", "/charges", JSON, r#"{"invoice":7}"#);
    assert_eq!(became(&first), (424, "ran".into(), "upstream_refused".into()), "{first:?}");
    let posts = || stage.api.requests().iter().filter(|heard| heard.line().starts_with("POST")).count();
    assert_eq!(posts(), 1, "it was sent once");
    assert_eq!(became(&stage.send("POST", "/charges", JSON, r#"{"invoice":7}"#)).1, "ran");
    assert_eq!((posts(), stage.api.effects()), (2, 1));
}

#[test]
fn a_success_that_is_not_true_is_refuted_and_not_repeated() {
    let rule = r#"
[[rule]]
match = "http:POST bank/charges"
class = "consequential"
key = ["body.invoice"]
[rule.confirm]
http = "GET {API}/charges/{reply.id}"
ok = "resp.status == 'succeeded'"
within = "1s"
"#;
    let stage = Stage::with(rule);
    stage.api.shows("/charges/true", r#"{"status":"succeeded"}"#);
    stage.api.shows("/charges/false", r#"{"status":"failed"}"#);
    let charge =
        |invoice: &str| stage.send("POST", "/charges", JSON, &format!(r#"{{"invoice":"{invoice}"}}"#));
    for (invoice, outcome) in [("true", "replayed"), ("false", "refused")] {
        stage.api.next(ApiAct::Answer(202, "", format!(r#"{{"id":"{invoice}"}}"#)));
        let reported = charge(invoice);
        assert_eq!(reported.status, 202);
        assert_eq!(reported.header("semel-reason"), Some("accepted, not confirmed yet"));
        let id = reported.header("semel-effect-id").expect("an effect").to_owned();
        wait_until("it is known", || {
            let known = stage.house.effect(&id).to_string();
            known.contains("\"confirmed\"") || known.contains("disproved")
        });
        assert_eq!(became(&charge(invoice)).1, outcome, "{invoice}");
    }
    assert_eq!(became(&charge("false")), (403, "refused".into(), "refuted".into()));
    assert_eq!(stage.api.effects(), 2);
}
