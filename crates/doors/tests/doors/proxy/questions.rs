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
    assert_eq!(became(&found), (200, "ran".into(), String::new()), "{found:?}");
    assert_eq!(found.json()["id"], "ch_1");
    assert_eq!(found.header("semel-evidence"), Some("probed"));
    let asked =
        stage.api.requests().into_iter().find(|heard| heard.line().starts_with("GET")).expect("a probe");
    assert_eq!(asked.header("authorization"), Some("Bearer user"));
    assert_eq!(became(&stage.send("POST", "/charges", &headers, r#"{"invoice":7}"#)).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
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
