//! The line ends at byte n of the request, and at byte n of the response: some n always, every n with
//! `SEMEL_EVERY_BYTE=1`, as `cargo xtask test --long` says it.

use super::line::{Judge, request};
use super::stage::Stage;
use semel_testkit::http::RawClient;
use serde_json::json;

const BODY: &str = r#"{"item": "one"}"#;

#[allow(clippy::disallowed_methods, reason = "how much to try is the caller's choice")]
pub fn is_every_byte_wanted() -> bool {
    std::env::var_os("SEMEL_EVERY_BYTE").is_some()
}

/// Bytes at which something changes, and some between them.
fn places(whole: usize) -> Vec<usize> {
    match is_every_byte_wanted() {
        true => (0..whole).collect(),
        false => vec![0, 1, whole / 4, whole / 2, whole - BODY.len(), whole - 2, whole - 1],
    }
}

/// Cases of one length, so that byte n is the same byte for all of them.
fn case(n: usize) -> String {
    format!("byte {n:06}")
}

#[test]
fn a_request_that_is_reset_at_any_byte_is_in_doubt_and_never_sent_again() {
    let stage = Stage::new();
    assert_eq!(stage.post(&case(999_999), BODY).status, 201);
    let bytes = stage.world.received(&case(999_999))[0]["bytes"].as_u64().expect("a length");
    let whole = usize::try_from(bytes).expect("it is short");
    let places = places(whole);
    for n in &places {
        let case = case(*n);
        stage.world.fail(&case, json!({"cut_request": n}));
        stage.post(&case, BODY).assert_in_doubt();
        stage.post(&case, BODY).assert_in_doubt();
    }
    for n in places {
        let happened = stage.world.of(&case(n));
        assert_eq!((happened.requests, happened.effects), (1, 0), "byte {n}");
    }
}

#[test]
fn a_response_that_is_cut_at_any_byte_is_in_doubt_and_no_part_of_it_is_an_answer() {
    let stage = Stage::new();
    let whole = {
        // As long as the others will be: from the status line to the last byte of the body.
        let mut line = RawClient::connect(&stage.world.address);
        request(&mut line, "POST", "/rest", &[super::stage::JSON], BODY);
        let answer = line.next_answer();
        answer.head.len() + answer.body.len()
    };
    let places = places(whole);
    for n in &places {
        let case = case(*n);
        let how = if n % 2 == 0 { "close" } else { "reset" };
        stage.world.fail(&case, json!({"cut_response": n, "how": how}));
        stage.post(&case, BODY).assert_in_doubt();
        stage.post(&case, BODY).assert_in_doubt();
    }
    for n in places {
        let happened = stage.world.of(&case(n));
        assert_eq!((happened.requests, happened.effects), (1, 1), "byte {n}");
    }
    assert_eq!(stage.post(&case(whole), BODY).status, 201, "all bytes are an answer");
}
