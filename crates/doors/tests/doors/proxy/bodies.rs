//! Bodies that are large, slow, cut or not wanted.

use super::stage::{JSON, Stage, became};
use crate::house::TOKEN;
use semel_testkit::http::ApiAct;
use semel_testkit::wait_until;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

const LARGE: usize = 3_000_000;

#[test]
fn a_large_answer_goes_through_and_is_not_kept() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Large(LARGE));
    let first = stage.charge("k", "{}");
    assert_eq!((first.status, first.body.len()), (200, LARGE));
    assert_eq!(first.header("semel-outcome"), Some("ran"));
    let again = stage.charge("k", "{}");
    assert_eq!(became(&again), (200, "replayed".into(), String::new()));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("semel-reply"), Some("unknown"));
    let told = again.json();
    assert_eq!((&told["ok"], &told["effect"]), (&true.into(), &"noop".into()));
    assert!(
        told["reason"].as_str().is_some_and(|why| why.contains("its reply of 3000000 bytes was not kept")),
        "{told}"
    );
    assert_eq!(stage.api.effects(), 1);
}

/// As many as one caller has places for.
const LARGE_OF_ONE: usize = 8;

#[test]
fn a_large_question_keeps_its_place_until_it_is_answered() {
    let stage = Stage::with("[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"read\"\n");
    let question = format!(r#"{{"about":"{}"}}"#, "x".repeat(LARGE));
    let asked: Vec<_> = (0..LARGE_OF_ONE)
        .map(|_| {
            stage.api.next(ApiAct::Hold);
            stage.ask("POST", "/search", JSON, &question)
        })
        .collect();
    stage.api.wait_for_requests(LARGE_OF_ONE);
    let crowded = stage.send("POST", "/search", JSON, &question);
    assert_eq!((crowded.status, crowded.header("retry-after")), (503, Some("1")), "{crowded:?}");
    asked.iter().for_each(|_| stage.api.release());
    asked.into_iter().for_each(|asked| assert_eq!(asked.answer().status, 201));
    assert_eq!(stage.send("POST", "/search", JSON, &question).status, 201);
}

/// An answer of about so many bytes, as JSON.
fn padded(ok: bool, bytes: usize) -> String {
    format!(r#"{{"pad":"{}","ok":{ok}}}"#, "x".repeat(bytes))
}

const READS_ANSWERS: &str =
    "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\nrefused = \"!reply.ok\"\n";

#[test]
fn a_large_answer_that_a_rule_reads_goes_through_too() {
    // Of the last two the one is more than is held back, and the other more than an expression looks through.
    let many = format!(r#"{{"ok":true,"all":[{}1]}}"#, "1,".repeat(LARGE / 2));
    for answer in [padded(true, LARGE), padded(true, 17 << 20), many] {
        let stage = Stage::with(READS_ANSWERS);
        stage.api.next(ApiAct::Answer(200, JSON, answer.clone()));
        let first = stage.send("POST", "/charges", JSON, "{}");
        assert_eq!((first.status, first.body == answer), (200, true), "{} bytes", answer.len());
        assert_eq!(first.header("semel-outcome"), Some("ran"));
        assert_eq!(became(&stage.send("POST", "/charges", JSON, "{}")).1, "replayed");
        assert_eq!(stage.api.effects(), 1);
    }
}

#[test]
fn a_large_answer_that_refuses_is_a_refusal() {
    let stage = Stage::with(READS_ANSWERS);
    let refusal: &'static str = padded(false, LARGE).leak();
    stage.api.next(ApiAct::Refuse(200, JSON, refusal));
    let first = stage.send("POST", "/charges", JSON, "{}");
    assert_eq!((first.status, first.body == refusal), (200, true));
    stage.api.next(ApiAct::Answer(200, JSON, padded(true, 1)));
    assert_eq!(became(&stage.send("POST", "/charges", JSON, "{}")).1, "ran");
    assert_eq!(stage.api.effects(), 1);
}

/// Larger than what is kept, and than what a rule reads.
#[test]
fn a_refusal_of_any_size_counts_by_its_status() {
    let plain = "[[rule]]\nmatch = \"http:POST bank/*\"\nclass = \"consequential\"\n";
    for rule in [plain, READS_ANSWERS] {
        for status in [400, 403, 422] {
            let stage = Stage::with(rule);
            let refusal: &'static str = padded(false, 17 << 20).leak();
            stage.api.next(ApiAct::Refuse(status, JSON, refusal));
            let first = stage.send("POST", "/charges", JSON, "{}");
            assert_eq!((first.status, first.body == refusal), (status, true));
            stage.api.next(ApiAct::Answer(200, JSON, padded(true, 1)));
            assert_eq!(became(&stage.send("POST", "/charges", JSON, "{}")).1, "ran", "{status}");
            assert_eq!(stage.api.effects(), 1);
        }
    }
}

#[test]
fn a_client_that_goes_away_in_the_middle_of_a_large_answer_stops_nothing() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::LargeHalfHeld(LARGE));
    let mut asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    let head = asked.head();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-length: 3000000"), "{head}");
    drop(asked);
    stage.api.release();
    let again = stage.charge("k", "{}");
    assert_eq!(again.status, 200);
    assert!(again.body.contains("3000000 bytes was not kept"), "{again:?}");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_large_answer_that_breaks_off_is_a_doubt() {
    let stage = Stage::plain();
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n";
    stage.api.next(ApiAct::Raw(format!("{start}{}", "x".repeat(LARGE))));
    let mut asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), "{}");
    assert!(asked.head().starts_with("HTTP/1.1 200"));
    drop(asked);
    assert_eq!(became(&stage.charge("k", "{}")).2, "in_doubt");
    assert_eq!(stage.api.effects(), 1);
}

#[test]
fn a_body_that_is_too_large_causes_nothing() {
    let stage = Stage::plain();
    let large = "x".repeat(17 * 1024 * 1024);
    let refused = stage.send("POST", "/charges", "Content-Type: text/plain\r\n", &large);
    assert_eq!(refused.status, 413);
    let promised =
        stage.send("POST", "/charges", "Content-Length: 99999999999\r\nExpect: 100-continue\r\n", "");
    assert_eq!(promised.status, 413);
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let refused =
        stage.send("POST", "/charges", "Transfer-Encoding: chunked\r\nX-Content-Length: 0\r\n", &chunked);
    assert_eq!(refused.status, 413);
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (0, 0));
    assert!(stage.house.effects("").is_empty());
}

#[test]
fn a_client_that_leaves_before_its_body_is_whole_causes_nothing() {
    let stage = Stage::plain();
    let mut stream = TcpStream::connect(&stage.house.address).expect("semel listens");
    let head = format!(
        "POST /p/api/charges HTTP/1.1\r\nHost: localhost\r\nSemel-Token: {TOKEN}\r\n{JSON}Idempotency-Key: k\r\nContent-Length: 20\r\n\r\n{{\"a\":"
    );
    stream.write_all(head.as_bytes()).expect("it is taken");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut rest = String::new();
    let _closed = stream.read_to_string(&mut rest);
    assert!(!rest.starts_with("HTTP/1.1 2"), "{rest}");
    drop(stream);
    assert_eq!(became(&stage.charge("k", "{}")).1, "ran");
    assert_eq!((stage.api.effects(), stage.api.requests().len()), (1, 1));
}

#[test]
fn a_client_that_leaves_after_sending_stops_nothing() {
    // A large one is in the hands of another thread.
    let large = format!("{{\"note\": \"{}\"}}", "x".repeat(300 * 1024));
    for body in ["{}", &large] {
        let stage = Stage::plain();
        stage.api.next(ApiAct::Hold);
        let asked = stage.ask("POST", "/charges", &format!("{JSON}Idempotency-Key: k\r\n"), body);
        stage.api.wait_for_requests(1);
        drop(asked);
        stage.api.release();
        let again = stage.charge("k", body);
        assert_eq!((again.status, again.body.as_str()), (201, "{\"id\":\"held\"}"));
        assert_ne!(became(&again).1, "ran");
        assert_eq!(stage.api.effects(), 1);
    }
}

#[test]
fn a_client_that_left_with_a_stray_byte_has_not_got_its_answer() {
    let stage = Stage::plain();
    stage.api.next(ApiAct::Hold);
    let asked = stage.ask("POST", "/notes", &format!("{JSON}Content-Length: 2\r\n"), "{}x");
    stage.api.wait_for_requests(1);
    drop(asked);
    stage.api.release();
    wait_until("it is settled", || stage.house.effects("?state=applied").len() == 1);
    let again = stage.send("POST", "/notes", JSON, "{}");
    assert_eq!((again.status, became(&again).1.as_str()), (201, "replayed"));
    assert_eq!(became(&stage.send("POST", "/notes", JSON, "{}")).1, "ran", "now it is another one");
    assert_eq!(stage.api.effects(), 2);
}

#[test]
fn an_answer_that_ends_with_its_connection_is_whole_only_if_it_can_be_read() {
    let stage = Stage::plain();
    let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
    stage.api.next(ApiAct::Raw(format!("{head}{{\"id\":1}}")));
    assert_eq!(stage.charge("whole", "{}").body, "{\"id\":1}");
    stage.api.next(ApiAct::Raw(format!("{head}{{\"id\":")));
    assert_eq!(became(&stage.charge("cut", "{}")).2, "in_doubt");
    assert_eq!(became(&stage.charge("whole", "{}")).1, "replayed");
}

#[test]
fn a_connection_that_closed_while_it_was_idle_leaves_no_doubt() {
    let stage = Stage::plain();
    for i in 1..=20 {
        // The API closes after each of these answers without a word of warning.
        stage.api.next(ApiAct::Raw("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}".into()));
        assert_eq!(stage.charge(&format!("key-{i}"), "{}").status, 201, "{i}");
        stage.api.wait_for_closed(i);
    }
    assert_eq!((stage.api.effects(), stage.api.connections()), (20, 20));
}
