use super::stage::{JSON, Stage, ask, became};
use crate::house::Home;
use crate::house::{House, TOKEN};
use semel_testkit::http::ApiAct;
use serde_json::json;
use std::io::Read;
use std::net::TcpListener;

#[test]
fn an_answer_that_was_lost_is_a_doubt_and_nothing_is_sent_again() {
    for act in [ApiAct::Vanish, ApiAct::Cut] {
        let mut stage = Stage::plain();
        stage.api.next(act.clone());
        let lost = stage.charge("k", "{}");
        assert_eq!(became(&lost), (423, "ran".into(), "in_doubt".into()), "{act:?}");
        assert_eq!(lost.header("x-should-retry"), Some("false"));
        assert_eq!(lost.json()["is_it_safe_to_retry"], "no");
        assert_eq!(became(&stage.charge("k", "{}")), (423, "held".into(), "in_doubt".into()));
        stage.restart();
        assert_eq!(became(&stage.charge("k", "{}")), (423, "held".into(), "in_doubt".into()));
        assert_eq!((stage.api.effects(), stage.api.requests().len()), (1, 1), "{act:?}");
        let id = lost.header("semel-effect-id").expect("an effect").to_owned();
        stage
            .house
            .rule(&format!("/effects/{id}/resolve"), &json!({"verdict": "not_applied", "reason": "looked"}));
        assert_eq!(stage.charge("k", "{}").status, 201);
    }
}

/// What most SDKs show of a refusal is `error.message`, and often it is all that a model sees.
#[test]
fn a_doubt_says_what_to_do_where_it_is_read_and_is_resolved_with_its_answer() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Vanish);
    let lost = stage.charge("k", "{}").json();
    let id = lost["effect_id"].as_str().expect("an effect");
    let message = lost["error"]["message"].as_str().expect("a message");
    assert!(message.contains(lost["next_step"].as_str().expect("a step")), "{message}");
    assert!(message.contains(id), "{message}");
    let answer = r#"{"id":"ch_1","amount":10.50}"#;
    let ruling = format!(r#"{{"verdict":"applied","reason":"seen","reply":{answer}}}"#);
    let first = format!("POST /api/v1/effects/{id}/resolve HTTP/1.1");
    let headers = format!("Semel-Token: {TOKEN}\r\n{JSON}");
    assert_eq!(stage.house.ask(&first, &headers, &ruling).answer().status, 200);
    let again = stage.charge("k", "{}");
    assert_eq!(became(&again).1, "replayed", "{again:?}");
    assert_eq!(
        (again.header("content-type"), again.json()["id"].as_str()),
        (Some("application/json"), Some("ch_1"))
    );
    assert_eq!(stage.api.requests().len(), 1);
}

#[test]
fn server_errors_and_other_redirects_do_not_tell() {
    let stage = Stage::plain();
    for status in [500, 502, 503, 504, 408, 409, 425, 302, 303] {
        // Each is another charge, so that none looks like one in doubt.
        let (key, body) = (format!("k-{status}"), format!("{{\"order\":{status}}}"));
        stage.api.next(ApiAct::Refuse(status, "Location: http://127.0.0.1:9/\r\n", "{\"error\":\"odd\"}"));
        let unclear = stage.charge(&key, &body);
        assert_eq!(became(&unclear), (423, "ran".into(), "in_doubt".into()), "{status}");
        assert_eq!(unclear.json()["data"]["status"], status);
        assert_eq!(stage.charge(&key, &body).status, 423);
    }
    stage.api.next(ApiAct::Refuse(307, "Location: http://127.0.0.1:9/\r\n", ""));
    // Many clients would follow it by themselves, past semel.
    let elsewhere = stage.charge("k-307", "{}");
    assert_eq!((elsewhere.status, elsewhere.header("location")), (307, None));
    assert!(elsewhere.header("semel-reason").is_some_and(|why| why.contains("http://127.0.0.1:9/")));
    assert_eq!(stage.charge("k-307", "{}").status, 201);
    assert_eq!(stage.api.effects(), 1);
}

const KEYED: &str = "[[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\n\
                     inject = { header = \"Idempotency-Key\", valid_for = \"24h\", form = \"uuid\" }\n";

/// Whoever reads the answer may come back; an SDK would be back at once.
#[test]
fn a_doubt_that_waits_for_its_upstream_is_not_for_an_sdk() {
    let (home, upstream) = (Home::new(), TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let address = upstream.local_addr().expect("an address");
    let api = format!("mode = \"guard\"\n[upstream.api]\nurl = \"http://{address}\"\nservice = \"bank\"\n");
    let house = House::start(&home, &(api + KEYED));
    let hears_one = std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().expect("a connection");
        // Nobody is there for the next one.
        drop(upstream);
        stream.read(&mut [0; 4096]).expect("a request")
    });
    let lost = ask(&house, "POST", "/charges", JSON, r#"{"amount":1}"#).answer();
    assert!(hears_one.join().expect("it listens") > 0);
    assert_eq!(became(&lost), (423, "ran".into(), "in_doubt".into()));
    assert_eq!(lost.json()["is_it_safe_to_retry"], "wait", "{lost:?}");
    assert_eq!(lost.header("x-should-retry"), Some("false"));
}

#[test]
fn what_may_be_sent_again_is_and_has_one_key_for_the_upstream() {
    let stage = Stage::with(KEYED);
    stage.api.next(ApiAct::Refuse(500, "", "oops"));
    stage.api.next(ApiAct::Vanish);
    let answer = stage.send("POST", "/charges", JSON, r#"{"amount":1}"#);
    assert_eq!(became(&answer), (201, "ran".into(), String::new()));
    assert_eq!(answer.header("semel-attempt"), Some("3"));
    let keys: Vec<_> =
        stage.api.requests().iter().map(|heard| heard.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys[0].as_ref().is_some_and(|key| key.len() == 36), "{keys:?}");
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn an_upstream_that_is_not_there_leaves_no_doubt() {
    let stage = Stage::with("[upstream.gone]\nurl = \"http://127.0.0.1:9\"\n");
    let ask = |method: &str, body: &str| {
        let headers = format!("Semel-Token: {}\r\n{JSON}", TOKEN);
        stage.house.ask(&format!("{method} /p/gone/x HTTP/1.1"), &headers, body).answer()
    };
    assert_eq!(ask("GET", "").status, 502);
    for _ in 0..2 {
        assert_eq!(became(&ask("POST", "{}")), (502, "refused".into(), "not_started".into()));
    }
    assert!(stage.house.effects("").is_empty());
}

#[test]
fn a_cancelled_run_sends_nothing_more() {
    let stage = Stage::plain();
    let run = format!("{JSON}Semel-Run-Id: r1\r\n");
    assert_eq!(stage.send("POST", "/a", &run, "{}").status, 201);
    assert_eq!(stage.house.rule("/runs/r1/cancel", &json!({})).status, 200);
    let refused = stage.send("POST", "/b", &run, "{}");
    assert_eq!(became(&refused), (403, "refused".into(), "cancelled".into()));
    assert_eq!(refused.header("x-should-retry"), Some("false"));
    assert_eq!(stage.send("POST", "/b", JSON, "{}").status, 201);
    let baggage = format!("{JSON}baggage: a=1,semel.run_id=r1\r\n");
    assert_eq!(stage.send("POST", "/c", &baggage, "{}").status, 403);
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn what_was_only_accepted_is_said_to_be_only_accepted() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Answer(202, "", "{\"status\":\"queued\"}".into()));
    let accepted = stage.charge("k", "{}");
    assert_eq!(became(&accepted), (202, "ran".into(), String::new()));
    assert_eq!(accepted.header("semel-evidence"), Some("accepted"));
    assert_eq!(accepted.header("semel-reason"), Some("accepted, not confirmed"));
    let again = stage.charge("k", "{}");
    assert_eq!((again.status, again.header("semel-evidence")), (202, Some("accepted")));
    assert_eq!(stage.api.effects(), 1);
}

/// On, off, on: an outage does not take the switch away.
#[test]
fn a_put_that_was_lost_in_an_outage_is_sent_for_whoever_wants_it_again() {
    let stage = Stage::plain();
    for _ in 0..3 {
        stage.api.next(ApiAct::Refuse(503, "", "{}"));
    }
    assert_eq!(stage.send("PUT", "/light", JSON, r#"{"on":true}"#).status, 423);
    assert_eq!(became(&stage.send("PUT", "/light", JSON, r#"{"on":false}"#)).1, "ran");
    let again = stage.send("PUT", "/light", JSON, r#"{"on":true}"#);
    assert_eq!(became(&again).1, "ran", "{again:?}");
}
