//! Answers that are lost, and a server that is away.

use super::{Office, TOUCH, lose_answer};
use crate::serve::served::Served;
use semel_testkit::proxy::Proxy;
use serde_json::json;
use std::process::Stdio;

#[test]
fn an_answer_of_begin_or_settle_that_is_lost_is_asked_for_again() {
    let office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    for (n, path) in ["/calls/begin", "/calls/settle", "/calls/delivered"].into_iter().enumerate() {
        lose_answer(&proxy, path);
        let key = format!("key-{n}");
        let ran = laptop.run(&["--key", &key, "--json"], TOUCH);
        assert_eq!((ran.code, &ran.json()["attempt"]), (Some(0), &json!(1)), "{path}: {ran:?}");
        assert_eq!((proxy.cuts_left(), office.effects()), (0, n + 1), "{path}");
        let replayed = laptop.run(&["--key", &key, "--json"], TOUCH);
        assert_eq!(replayed.json()["outcome"], "replayed", "{path}: {replayed:?}");
    }
    assert_eq!((office.effects(), office.recorded().len()), (3, 3));
}

#[test]
fn without_the_server_effects_are_refused_and_reads_pass() {
    let mut office = Office::open("");
    let laptop = office.laptop("ci");
    office.served.kill();
    let refused = laptop.run(&["--key", "k", "--json"], TOUCH);
    assert_eq!(
        (refused.code, &refused.json()["code"]),
        (Some(125), &json!("ledger_unavailable")),
        "{refused:?}"
    );
    assert!(refused.json()["what_happened"].as_str().expect("words").starts_with("Nothing was sent"));
    let read = laptop.run(&["--class", "read"], "echo read");
    assert_eq!((read.code, read.stdout.as_str()), (Some(0), "read\n"), "{read:?}");
    assert_eq!(office.effects(), 0);
    let doctor = laptop.semel(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(!laptop.has_a_ledger());
}

/// A command that changes the world, and ends once it is let go.
const WAITING: &str = "echo x >> \"$WORLD\"; touch begun; until [ -e go ]; do sleep 0.05; done; echo done";

#[test]
fn a_server_that_was_restarted_meanwhile_gets_the_outcome() {
    let mut office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    let mut running = laptop.command(&["run", "--key", "k", "--", "sh", "-c", WAITING]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
    laptop.home.wait_until("it runs", || laptop.home.work().join("begun").exists());
    office.served.kill();
    laptop.home.file("go", "");
    office.served = Served::again(&office.home);
    proxy.lead_to(office.target());
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), b"done\n".as_slice()), "{ended:?}");
    let replayed = laptop.run(&["--key", "k"], WAITING);
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), "done\n"), "{replayed:?}");
    assert_eq!(office.effects(), 1);
}

#[test]
fn an_outcome_that_nobody_takes_is_never_told_as_recorded() {
    let mut office = Office::open("");
    let proxy = Proxy::to(office.target());
    let laptop = office.laptop_behind("ci", &proxy);
    let mut running = laptop.command(&["run", "--json", "--key", "k", "--", "sh", "-c", WAITING]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
    laptop.home.wait_until("it runs", || laptop.home.work().join("begun").exists());
    office.served.kill();
    laptop.home.file("go", "");
    let ended = crate::home::Ran::of(running.wait_with_output().expect("it ends"));
    let answer = ended.json();
    assert_eq!((ended.code, &answer["code"], &answer["ok"]), (Some(121), &json!("in_doubt"), &json!(false)));
    assert_eq!(answer["data"]["stdout"], "done\n", "its caller sees what it printed: {answer}");
    let what_happened = answer["what_happened"].as_str().expect("words");
    assert!(what_happened.contains("could not be recorded"), "{answer}");
    assert!(what_happened.contains("in flight until its deadline"), "{answer}");
    // Nobody else runs it.
    office.served = Served::again(&office.home);
    proxy.lead_to(office.target());
    let other = laptop.run(&["--json", "--key", "k", "--wait", "0s"], WAITING);
    assert_eq!((other.code, &other.json()["code"]), (Some(122), &json!("in_flight")), "{other:?}");
    assert_eq!(office.effects(), 1);
}
