//! Repeats that are meant, and those that are not; answers that are late; processes that end.

use super::stage::{JSON, Stage, became, post};
use semel_testkit::http::{ApiAct, RawClient, Response};
use semel_testkit::wait_until;
use serde_json::json;
use std::time::Duration;

fn posted(client: &mut RawClient, path: &str) -> Response {
    post(client, path, JSON, "{}");
    client.next_answer()
}

#[test]
fn a_step_that_is_repeated_on_purpose_runs_every_time() {
    let stage = Stage::plain();
    let mut line = stage.connect();
    for i in 0..20 {
        let answer = posted(&mut line, "/ticks");
        assert_eq!(became(&answer).1, "ran", "{i}");
        assert_eq!(answer.header("semel-possible-repeat"), (i > 0).then_some("true"), "{i}");
    }
    // An answer without a body is delivered as well.
    for i in 0..20 {
        stage.api.next(ApiAct::Answer(204, "", String::new()));
        assert_eq!(became(&posted(&mut line, "/empty")), (204, "ran".into(), String::new()), "{i}");
    }
    assert_eq!(stage.api.effects(), 40);
}

#[test]
fn an_answer_that_nobody_took_is_handed_over_instead() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Hold);
    let asked = stage.ask("POST", "/ticks", JSON, "{}");
    stage.api.wait_for_requests(1);
    drop(asked);
    stage.api.release();
    let retry = stage.send("POST", "/ticks", JSON, "{}");
    assert_eq!(retry.body, "{\"id\":\"held\"}");
    assert_eq!(stage.api.effects(), 1);
    assert_eq!(became(&stage.send("POST", "/ticks", JSON, "{}")).1, "ran");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn what_converges_is_sent_again_within_its_budget() {
    let stage = Stage::plain();
    for method in ["PUT", "DELETE"] {
        stage.api.next(ApiAct::Vanish);
        stage.api.next(ApiAct::Refuse(503, "", "busy"));
        let answer = stage.send(method, "/things/1", JSON, "{}");
        assert_eq!((answer.status, answer.header("semel-attempt")), (201, Some("3")), "{method}: {answer:?}");
    }
    for _ in 0..3 {
        stage.api.next(ApiAct::Refuse(503, "", "busy"));
    }
    assert_eq!(became(&stage.send("PUT", "/things/2", JSON, "{}")), (423, "ran".into(), "in_doubt".into()));
    assert_eq!(stage.api.requests().len(), 9);
}

#[test]
fn three_charges_without_a_key_or_a_rule_are_one_charge() {
    let stage = Stage::plain();
    let charge = || became(&stage.send("POST", "/v1/charges", JSON, r#"{"amount":20}"#)).1;
    assert_eq!([charge(), charge(), charge()], ["ran", "replayed", "replayed"]);
    assert_eq!(stage.api.effects(), 1);
    assert_eq!(became(&stage.send("POST", "/v1/charges", JSON, r#"{"amount":30}"#)).1, "ran");
    let again =
        stage.send("POST", "/v1/charges", &format!("{JSON}Semel-Again: a tip\r\n"), r#"{"amount":20}"#);
    assert_eq!((became(&again).1.as_str(), stage.api.effects()), ("ran", 3));
    for path in ["/v1/charges/ch_1", "/v1/charges/search", "/webhooks"] {
        let send = || became(&stage.send("POST", path, JSON, "{}")).1;
        assert_eq!([send(), send()], ["ran", "ran"], "{path}");
    }
    assert_eq!(stage.api.effects(), 9);
}

#[test]
fn a_removal_that_is_sent_again_and_finds_nothing_has_converged() {
    let stage = Stage::plain();
    let gone = |answer: Response| {
        let document = answer.json();
        assert_eq!((answer.status, document["effect"].as_str()), (200, Some("deleted")), "{document}");
        assert_eq!(document["reason"], "gone; whether by this call is not known");
    };
    for (path, status) in [("/things/1", 404), ("/things/2", 410)] {
        stage.api.next(ApiAct::Vanish);
        stage.api.next(ApiAct::Refuse(status, "", "{}"));
        gone(stage.send("DELETE", path, "", ""));
    }
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (2, 4));
    // A first one that finds nothing was refused, and so is a second after that.
    for _ in 0..2 {
        stage.api.next(ApiAct::Refuse(404, "", "{}"));
        assert_eq!(became(&stage.send("DELETE", "/things/3", "", "")).0, 404);
    }
    // Its client asks again, after a doubt.
    (0..3).for_each(|_| stage.api.next(ApiAct::Vanish));
    assert_eq!(became(&stage.send("DELETE", "/things/4", "", "")).2, "in_doubt");
    stage.api.next(ApiAct::Refuse(404, "", "{}"));
    gone(stage.send("DELETE", "/things/4", "", ""));
    // Only a removal.
    stage.api.next(ApiAct::Vanish);
    (0..2).for_each(|_| stage.api.next(ApiAct::Refuse(404, "", "{}")));
    assert_eq!(became(&stage.send("PUT", "/things/5", JSON, "{}")).2, "in_doubt");
}

#[test]
fn a_spent_budget_is_no_matter_of_credentials() {
    let rule = "[[rule]]\nmatch = \"http:POST bank/*\"\nbudget = 1\n\
                inject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n";
    let stage = Stage::with(rule);
    (0..2).for_each(|_| stage.api.next(ApiAct::Vanish));
    assert_eq!(became(&stage.send("POST", "/things", JSON, "{}")).2, "in_doubt");
    let spent = stage.send("POST", "/things", JSON, "{}");
    assert_eq!(became(&spent), (503, "refused".into(), "budget_spent".into()));
    assert_eq!(spent.json()["is_it_safe_to_retry"], "wait");
    assert_eq!((spent.header("retry-after"), spent.header("x-should-retry")), (Some("60"), Some("false")));
    assert_eq!(stage.api.requests().len(), 2);
}

/// A reason that was answered with something nobody had got yet stands for that.
#[test]
fn a_retried_repeat_is_safe_also_where_the_first_answer_had_reached_nobody() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n");
    stage.api.next(ApiAct::Hold);
    let first = stage.ask("POST", "/charges", JSON, "{}");
    wait_until("it is under way", || stage.api.requests().len() == 1);
    drop(first);
    stage.api.release();
    wait_until("it is settled", || stage.house.effects("?state=applied").len() == 1);
    let again = |why: &str| {
        let headers = format!("{JSON}Semel-Again: {why}\r\n");
        became(&stage.send("POST", "/charges", &headers, "{}")).1
    };
    assert_eq!([again("why"), again("why")], ["replayed", "replayed"]);
    assert_eq!(stage.api.effects(), 1);
    assert_eq!([again("another"), again("another"), again("why")], ["ran", "replayed", "replayed"]);
    assert_eq!(stage.api.effects(), 2);
}

/// Whoever has gone may have written something else since.
#[test]
fn what_converges_is_not_sent_again_for_a_client_that_has_gone() {
    let mut stage = Stage::plain();
    stage.api.next(ApiAct::HoldAndVanish);
    let first = stage.ask("PUT", "/things/1", JSON, r#"{"v":1}"#);
    wait_until("it is under way", || stage.api.effects() == 1);
    drop(first);
    assert_eq!(became(&stage.send("PUT", "/things/1", JSON, r#"{"v":2}"#)).1, "ran");
    stage.api.release();
    // It ends once all that is under way has ended.
    stage.house.stop();
    let heard: Vec<String> = stage.api.requests().iter().map(|heard| heard.text()).collect();
    assert_eq!(heard, [r#"{"v":1}"#, r#"{"v":2}"#]);
    // Whoever asks again gets it, and knows what it asks for.
    stage.house = stage.second();
    assert_eq!(became(&stage.send("PUT", "/things/1", JSON, r#"{"v":1}"#)).1, "ran");
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn after_its_timeout_a_request_is_in_doubt_until_its_answer_comes() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:POST bank/*\"\ntimeout = \"200ms\"\n");
    stage.api.next(ApiAct::Hold);
    let late = stage.charge("k", "{}");
    assert_eq!(became(&late).2, "in_doubt");
    assert_eq!(became(&stage.charge("k", "{}")), (423, "held".into(), "in_doubt".into()));
    stage.api.release();
    let answer = loop {
        let answer = stage.charge("k", "{}");
        if answer.status != 423 {
            break answer;
        }
        std::thread::yield_now();
    };
    assert_eq!((became(&answer).1.as_str(), answer.body.as_str()), ("replayed", "{\"id\":\"held\"}"));
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn an_api_that_hangs_is_a_doubt_without_any_rule_until_its_answer_comes() {
    let stage = Stage::plain().bearing(Duration::from_millis(200));
    stage.api.next(ApiAct::Hold);
    let hung = stage.charge("k", "{}");
    assert_eq!(became(&hung), (423, "ran".into(), "in_doubt".into()));
    assert_eq!(became(&stage.charge("k", "{}")), (423, "held".into(), "in_doubt".into()));
    stage.api.release();
    wait_until("its answer is on record", || stage.house.effects("")[0]["state"] == "applied");
    let answer = stage.charge("k", "{}");
    assert_eq!((became(&answer).1.as_str(), answer.body.as_str()), ("replayed", "{\"id\":\"held\"}"));
    assert_eq!((stage.api.effects(), stage.house.effects("").len()), (1, 1));
}

/// Its caller has the beginning by then, and gets the end once that is settled.
#[test]
fn a_large_answer_that_stalls_is_a_doubt_until_its_end() {
    let stage = Stage::plain().bearing(Duration::from_millis(200));
    stage.api.next(ApiAct::LargeHalfHeld(3_000_000));
    let asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    let state = || stage.house.effects("").first().map(|effect| effect["state"].clone());
    wait_until("it is a doubt", || state() == Some("in_doubt".into()));
    stage.api.release();
    assert_eq!(asked.answer().body.len(), 3_000_000);
    wait_until("it is on record", || state() == Some("applied".into()));
    assert_eq!((stage.api.effects(), stage.house.effects("").len()), (1, 1));
}

#[test]
fn semel_ends_only_after_what_was_sent_is_settled() {
    let mut stage = Stage::plain();
    stage.api.next(ApiAct::Hold);
    let asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    stage.api.wait_for_requests(1);
    let (api, address) = (stage.api.clone(), stage.house.address.clone());
    let releasing = std::thread::spawn(move || {
        // Whoever ends takes nobody in any more.
        while std::net::TcpStream::connect(&address).is_ok() {
            std::thread::yield_now();
        }
        api.release();
    });
    stage.restart();
    releasing.join().expect("it was released");
    assert_eq!(asked.answer().status, 201);
    assert_eq!(became(&stage.charge("k", "{}")).1, "replayed");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_key_that_has_a_life_means_something_new_after_it() {
    let stage = Stage::with("[upstream.api.keys]\nlife = \"1s\"\n");
    assert_eq!(became(&stage.charge("k", "{}")).1, "ran");
    assert_eq!(became(&stage.charge("k", r#"{"other":1}"#)).2, "drift");
    stage.api.next(ApiAct::Refuse(402, "", "no"));
    assert_eq!(stage.charge("r", "{}").status, 402);
    stage.house.pass(Duration::from_secs(2));
    let over = stage.charge("k", r#"{"other":1}"#);
    assert_eq!((became(&over).1.as_str(), over.header("semel-possible-repeat")), ("ran", Some("true")));
    assert_eq!(stage.charge("r", "{}").status, 201);
    assert_eq!(stage.api.effects(), 3);
}

#[test]
fn an_effect_is_taken_back_through_the_call_that_its_rule_names() {
    let rule = r#"
[[rule]]
match = "http:POST bank/charges"
class = "consequential"
[rule.undo]
http = "POST {API}/refunds"
body = { charge = "{reply.id}" }
"#;
    let stage = Stage::with(rule);
    let charged = stage.charge("k", "{}");
    let id = charged.header("semel-effect-id").expect("an effect").to_owned();
    let undone = stage.house.rule(&format!("/effects/{id}/undo"), &json!({"reason": "wrong customer"}));
    assert_eq!(undone.status, 200, "{undone:?}");
    let heard = stage.api.last();
    assert_eq!(heard.line(), "POST /refunds HTTP/1.1");
    assert!(heard.text().contains(r#""charge":"ch_1""#), "{}", heard.text());
    assert_eq!(stage.api.effects(), 2);
}
