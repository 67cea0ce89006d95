//! The server dies, cannot write, or does not start.

use super::stage::{JSON, Stage, became};
use crate::home::Home;
use crate::serve::served::TOKEN;
use semel_testkit::http::{ApiAct, RawClient};
use semel_testkit::wait_until;

const LARGE: usize = 3_000_000;

#[test]
fn the_end_of_an_answer_that_cannot_be_settled_is_never_sent() {
    for (act, length) in [(ApiAct::Large(LARGE), None), (ApiAct::LargeHalfHeld(LARGE), Some(LARGE))] {
        let mut stage = Stage::plain();
        stage.restart_failing("gate.after_send=error");
        stage.api.release();
        stage.api.next(act);
        let headers = format!("Semel-Token: {TOKEN}\r\n{JSON}Idempotency-Key: k\r\n");
        let mut client =
            RawClient::ask(&stage.served.address, "POST /p/api/charges HTTP/1.1", &headers, "{}");
        let text = client.rest();
        assert!(text.starts_with("HTTP/1.1 200"), "{}", &text[..80]);
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        match length {
            Some(length) => assert!(body.len() < length, "{}", body.len()),
            None => assert!(!body.ends_with("0\r\n\r\n")),
        }
        stage.restart();
        assert_eq!(became(&stage.charge("k", "{}")).2, "in_doubt");
        assert_eq!(stage.api.effects(), 1);
    }
}

/// Rule 7. An upstream that goes by its keys would carry it out under each of them.
#[test]
fn a_lost_request_is_not_sent_again_under_another_key() {
    let inject = "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
                  inject = { header = \"X-Key\", valid_for = \"24h\" }\n";
    for (first, other) in [
        ("X-Key: k\r\n", "X-Key: \"k\"\r\n"),
        ("X-Key: k\r\n", "Idempotency-Key: k\r\n"),
        ("Idempotency-Key: k\r\n", "X-Key: k\r\n"),
    ] {
        let mut stage = Stage::with(inject);
        stage.api.next(ApiAct::Hold);
        let lost = stage.ask("POST", "/charges", &format!("{JSON}{first}"), "{}");
        stage.api.wait_for_requests(1);
        stage.crash();
        drop(lost);
        let held = stage.send("POST", "/charges", &format!("{JSON}{other}"), "{}");
        assert_eq!(became(&held), (423, "held".into(), "in_doubt".into()), "{first}{other}");
        stage.api.release();
        stage.send("POST", "/charges", &format!("{JSON}{first}"), "{}");
        let keys = ["x-key", "idempotency-key"];
        let heard = stage.api.requests();
        let of = |n: usize| keys.map(|key| heard[n].header(key).map(str::to_owned));
        assert_eq!((heard.len(), of(0)), (2, of(1)), "as before it is sent again: {first}");
    }
}

/// Many upstreams repeat a refusal to its key for a day, also once its cause was mended.
#[test]
fn what_was_refused_is_tried_again_under_another_key_and_what_was_lost_under_the_same() {
    let mut stage = Stage::with(
        "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n\
         inject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n",
    );
    stage.api.next(ApiAct::Refuse(402, "", r#"{"error":{"message":"declined"}}"#));
    assert_eq!(stage.send("POST", "/charges", JSON, "{}").status, 402);
    stage.api.next(ApiAct::Hold);
    let lost = stage.ask("POST", "/charges", JSON, "{}");
    stage.api.wait_for_requests(2);
    stage.crash();
    drop(lost);
    stage.api.release();
    assert_eq!(stage.send("POST", "/charges", JSON, "{}").status, 201);
    let keys: Vec<_> =
        stage.api.requests().iter().map(|heard| heard.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys.len() == 3 && keys[0] != keys[1] && keys[1] == keys[2], "{keys:?}");
}

/// The ledger was locked, say, just when an answer had left.
#[test]
fn a_mark_that_could_not_be_written_is_written_later() {
    let mut stage = Stage::plain();
    stage.restart_failing("gate.before_deliver=error@1");
    assert_eq!(became(&stage.send("POST", "/ticks", JSON, "{}")).1, "ran");
    let is_marked = || {
        let listed = stage.home.json(["ledger", "list"]);
        let id = listed["items"][0]["effect_id"].as_str().expect("an effect").to_owned();
        !stage.home.json(["ledger", "show", &id])["delivered_at"].is_null()
    };
    wait_until("it is marked", is_marked);
    assert_eq!(became(&stage.send("POST", "/ticks", JSON, "{}")).1, "ran");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn semel_that_was_killed_in_the_middle_leaves_a_doubt_and_not_a_second_effect() {
    let mut stage = Stage::plain();
    stage.api.next(ApiAct::Hold);
    let asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    stage.api.wait_for_requests(1);
    stage.crash();
    stage.api.release();
    drop(asked);
    assert_eq!(became(&stage.charge("k", "{}")), (423, "held".into(), "in_doubt".into()));
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (1, 1));
}

#[test]
fn an_address_that_leads_where_it_should_not_is_refused_at_the_start() {
    for url in [
        "http://2130706433/",
        "http://0x7f.1/",
        "http://user:pass@127.0.0.1/",
        "ftp://127.0.0.1/",
        "http://127.1/",
    ] {
        let home = Home::new();
        home.file("semel.toml", &format!("[upstream.api]\nurl = \"{url}\"\n"));
        let ran = home.semel(["serve", "--listen", "127.0.0.1:0"]);
        assert_ne!(ran.code, Some(0), "{url}: {ran:?}");
    }
}
