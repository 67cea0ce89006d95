//! What the network does between semel and an API that gives no help, and between a client and semel.

use super::line::{Judge, request};
use super::stage::{CASE, JSON, Stage, asked};
use super::world::World;
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::RawClient;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// A port that nobody listens on.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address")
}

#[test]
fn what_could_not_be_reached_was_never_sent_and_runs_when_it_can() {
    let home = Home::new();
    let (later, plain) = (nobody(), World::start(&home));
    let policy = format!(
        "version = 1\n[upstream.refused]\nurl = \"http://{later}\"\n[upstream.unknown]\nurl = \"http://nobody.invalid\"\n\
         [upstream.plaintext]\nurl = \"https://{}\"\n",
        plain.address
    );
    let semel = Served::start(&home, &policy);
    let ask = |name: &str| {
        let headers = [(CASE, name), ("Idempotency-Key", name), JSON];
        asked(&semel.address, "POST", &format!("/p/{name}/rest"), &headers, "{}")
    };
    for name in ["refused", "unknown", "plaintext"] {
        for turn in ["first", "again"] {
            let answer = ask(name);
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (502, "not_started"),
                "{name}, {turn}: {answer:?}"
            );
        }
    }
    assert_eq!(home.json(["ledger"])["items"], json!([]), "nothing is in doubt");
    let world = World::start_at(&home, later);
    let answer = ask("refused");
    assert_eq!((answer.status, answer.outcome()), (201, "ran"), "{answer:?} {}", answer.body);
    assert_eq!(world.of("refused").effects, 1);
}

#[test]
fn a_black_hole_is_in_doubt_at_its_deadline_and_not_asked_again_before() {
    let stage = Stage::with("1s", "");
    stage.world.fail("hole", json!({"hold": "never"}));
    let (first, twin) = std::thread::scope(|scope| {
        let first = scope.spawn(|| stage.post("hole", "{}"));
        stage.home.wait_until("it was sent", || stage.world.of("hole").effects == 1);
        let twin = scope.spawn(|| stage.post("hole", "{}"));
        (first.join().expect("an answer"), twin.join().expect("an answer"))
    });
    first.assert_in_doubt();
    twin.assert_in_doubt();
    stage.post("hole", "{}").assert_in_doubt();
    assert_eq!(stage.world.of("hole").requests, 1);
}

#[test]
fn an_answer_that_comes_after_the_deadline_ends_the_doubt() {
    let stage = Stage::with("1s", "");
    stage.world.fail("late", json!({"hold": "late"}));
    stage.post("late", "{}").assert_in_doubt();
    stage.world.release("late");
    stage.home.wait_until("the late answer is recorded", || {
        let answer = stage.post("late", "{}");
        answer.status == 201 && answer.header("idempotent-replayed") == Some("true")
    });
    assert_eq!(stage.world.of("late").requests, 1);
}

#[test]
fn a_server_error_is_in_doubt_and_a_rate_limit_may_be_tried_again() {
    let stage = Stage::new();
    for (status, effect) in [(500, "now"), (502, "never"), (503, "now"), (504, "never"), (500, "never")] {
        let case = format!("{status} {effect}");
        stage.world.fail(&case, json!({"status": status, "effect": effect}));
        stage.post(&case, "{}").assert_in_doubt();
        stage.post(&case, "{}").assert_in_doubt();
        let happened = stage.world.of(&case);
        assert_eq!((happened.requests, happened.effects), (1, usize::from(effect == "now")), "{case}");
    }
    stage.world.fail("429", json!({"status": 429, "effect": "never", "headers": {"Retry-After": "0"}}));
    let limited = stage.post("429", "{}");
    assert_eq!(limited.status, 429, "{limited:?}");
    assert_eq!(stage.post("429", "{}").status, 201);
    assert_eq!(stage.world.of("429").effects, 1);
}

#[test]
fn a_refusal_is_replayed_to_its_key_and_not_sent_again() {
    let stage = Stage::new();
    let first = stage.post("invalid", r#"{"invalid": true}"#);
    assert_eq!(first.status, 422, "{first:?}");
    let again = stage.post("invalid", r#"{"invalid": true}"#);
    assert_eq!((again.status, &again.body), (first.status, &first.body), "{again:?}");
    assert_eq!(stage.world.of("invalid").requests, 1);
}

#[test]
fn fifty_deliveries_of_one_request_are_one_effect() {
    let stage = Stage::patient();
    stage.world.fail("fifty", json!({"hold": "all"}));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..50).map(|_| scope.spawn(|| stage.post("fifty", "{}"))).collect();
        stage.home.wait_until("one was sent", || stage.world.of("fifty").effects == 1);
        stage.world.release("all");
        asking.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let ran = answers.iter().filter(|answer| answer.outcome() == "ran").count();
    assert_eq!(ran, 1, "{answers:?}");
    for answer in &answers {
        let told = answer.status == 201 && answer.body == answers[0].body;
        let waits = answer.code() == "in_flight" && answer.header("retry-after-ms").is_some();
        assert!(told || waits, "{answer:?}");
    }
    let happened = stage.world.of("fifty");
    assert_eq!((happened.requests, happened.effects), (1, 1));
}

#[test]
fn a_client_that_goes_away_stops_nothing_and_its_retry_is_answered() {
    let stage = Stage::patient();
    stage.world.fail("left", json!({"hold": "left"}));
    let headers = [("Semel-Token", TOKEN), (CASE, "left"), ("Idempotency-Key", "left"), JSON];
    let mut line = stage.line();
    request(&mut line, "POST", "/p/plain/rest", &headers, "{}");
    stage.home.wait_until("it was sent", || stage.world.of("left").effects == 1);
    drop(line);
    stage.world.release("left");
    let retry = stage.post("left", "{}");
    assert_eq!((retry.status, retry.outcome() == "ran"), (201, false), "{retry:?}");
    let happened = stage.world.of("left");
    assert_eq!((happened.requests, happened.effects, happened.gone), (1, 1, 0));
}

#[test]
fn a_client_that_goes_away_in_its_own_request_has_asked_for_nothing() {
    let stage = Stage::new();
    let mut line = stage.line();
    let address = &stage.semel.address;
    line.write(format!(
        "POST /p/plain/rest HTTP/1.1\r\nHost: {address}\r\nSemel-Token: {TOKEN}\r\n{CASE}: half\r\n\
         Idempotency-Key: half\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{{\"half"
    ));
    drop(line);
    // What comes later on another connection shows that semel has seen the first one's end.
    assert_eq!(stage.post("after", "{}").status, 201);
    assert_eq!(stage.world.of("half").requests, 0);
    assert_eq!(stage.post("half", "{}").outcome(), "ran");
}

#[test]
fn a_client_that_does_not_read_its_replay_holds_nobody_up() {
    let stage = Stage::new();
    stage.world.fail("slow reader", json!({"pad": 200_000}));
    let first = stage.post("slow reader", "{}");
    assert_eq!(first.status, 201, "{first:?}");
    let headers = [("Semel-Token", TOKEN), (CASE, "slow reader"), ("Idempotency-Key", "slow reader"), JSON];
    let mut slow: Vec<RawClient> = (0..20).map(|_| stage.line()).collect();
    for line in &mut slow {
        request(line, "POST", "/p/plain/rest", &headers, "{}");
    }
    stage.post("slow reader", "{}").assert_replayed(&first);
    assert_eq!(stage.post("another", "{}").outcome(), "ran");
    assert_eq!(stage.home.json(["ledger"])["counts"]["in_flight"], 0);
    for mut line in slow {
        line.next_answer().assert_replayed(&first);
    }
    assert_eq!(stage.world.of("slow reader").effects, 1);
}

#[test]
fn a_redirect_is_returned_and_not_followed() {
    let stage = Stage::new();
    for status in [301, 302, 303, 307, 308] {
        let case = format!("to {status}");
        stage.world.fail(&case, json!({"redirect": status, "effect": "never"}));
        let answer = stage.post(&case, "{}");
        let refused = matches!(status, 307 | 308);
        assert_eq!(answer.status, if refused { status } else { 423 }, "{answer:?}");
        assert_eq!(answer.header("location"), None, "many clients would go there by themselves: {answer:?}");
        assert_eq!(stage.world.of(&case).elsewhere, 0);
        // What only reads is told where to go, and goes there by itself.
        stage.world.fail(&case, json!({"redirect": status}));
        let read = stage.ask("GET", "/p/plain/rest", &[(CASE, &case)], "");
        assert_eq!((read.status, read.header("location").is_some()), (status, true), "{read:?}");
        assert_eq!(stage.world.of(&case).elsewhere, 0);
    }
}
