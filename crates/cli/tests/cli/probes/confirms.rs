//! A command said that it did it: is it true?

use crate::api::client::ApiClient;
use crate::home::{Home, Ran};
use crate::run::TOUCH;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{RouteReply, RoutedApi};
use std::process::Stdio;

fn paid() -> RouteReply {
    RouteReply::json(200, r#"{"status": "succeeded"}"#)
}

fn unpaid() -> RouteReply {
    RouteReply::json(200, r#"{"status": "pending"}"#)
}

const CHARGE: &str = "echo x >> world; echo '{\"id\": \"ch_7\"}'";

/// A home whose commands are confirmed by the API, which answers with these in turn.
fn stage(within: &str, says: impl IntoIterator<Item = RouteReply>) -> (Home, RoutedApi) {
    let (home, api) = (Home::new(), RoutedApi::start());
    let rule = format!(
        "[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\n[rule.confirm]\n\
         http = \"GET {}/charges/{{reply.id}}\"\nok = \"resp.status == 'succeeded'\"\nwithin = \"{within}\"\n",
        api.url()
    );
    home.file("semel.toml", &rule);
    api.tell("GET /charges/ch_7", says);
    (home, api)
}

fn charge(home: &Home) -> Ran {
    home.run(&["--json"], CHARGE)
}

fn state(home: &Home) -> (String, Option<String>) {
    let item = home.json(["ledger", "list"])["items"][0].take();
    (item["state"].as_str().unwrap_or_default().into(), item["evidence"].as_str().map(Into::into))
}

#[test]
fn a_success_that_can_be_seen_is_confirmed_before_the_command_exits() {
    let (home, api) = stage("20s", [paid()]);
    let ran = charge(&home);
    let answer = ran.json();
    assert_eq!((ran.code, &answer["evidence"]), (Some(0), &"confirmed".into()), "{ran:?}");
    assert_eq!((&answer["reason"], &answer["outcome"]), (&serde_json::Value::Null, &"ran".into()));
    assert_eq!(state(&home), ("applied".into(), Some("confirmed".into())));
    assert_eq!(charge(&home).json()["evidence"], "confirmed");
    assert_eq!((home.effects(), api.requests().len()), (1, 1), "what is confirmed is not asked about again");
}

#[test]
fn a_truth_that_lags_is_waited_for() {
    let (home, api) =
        stage("20s", [unpaid(), RouteReply::json(503, "{}"), RouteReply::json(404, "{}"), paid()]);
    assert_eq!(charge(&home).json()["evidence"], "confirmed");
    assert_eq!((home.effects(), api.requests().len()), (1, 4));
}

#[test]
fn a_success_that_is_clearly_not_there_in_the_end_is_refuted_and_never_replayed() {
    let (home, _api) = stage("1s", [unpaid()]);
    let ran = charge(&home);
    let answer = ran.json();
    assert_eq!((ran.code, &answer["code"], &answer["ok"]), (Some(120), &"refuted".into(), &false.into()));
    let what = answer["what_happened"].as_str().expect("a sentence");
    assert!(what.contains("/charges/… did not show it within 1s"), "{what}");
    assert!(!what.contains("reply.id") && what.matches("reported as done").count() == 1, "{what}");
    for _ in 0..2 {
        let again = charge(&home);
        assert_eq!((again.code, &again.json()["code"]), (Some(120), &"refuted".into()), "{again:?}");
        assert_eq!(again.json()["outcome"], "refused");
        assert_eq!(again.json()["data"], serde_json::Value::Null, "nothing of the false success is shown");
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_read_that_fails_refutes_nothing() {
    for says in [
        RouteReply::json(500, "{}"),
        RouteReply::json(404, "{}"),
        RouteReply::nothing(),
        RouteReply::json(200, "{}"),
    ] {
        let (home, api) = stage("600ms", [says]);
        let ran = charge(&home);
        let answer = ran.json();
        assert_eq!((ran.code, &answer["evidence"]), (Some(0), &"reported".into()), "{ran:?}");
        assert_eq!(answer["reason"], "reported, not confirmed yet");
        assert!(api.requests().len() >= 2, "it was asked until its time was over");
        assert_eq!(charge(&home).json()["outcome"], "replayed");
        assert_eq!(home.effects(), 1);
    }
}

#[test]
fn what_it_printed_is_there_before_the_question_is_answered() {
    let (home, _api) = stage("1s", [unpaid()]);
    let ran = home.run(&[], CHARGE);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(120), "{\"id\": \"ch_7\"}\n"), "{ran:?}");
    assert!(ran.stderr.contains("semel: refuted ef_"), "{ran:?}");
}

/// Whoever retries after that gets the answer, and asks for the rest of the time.
#[test]
fn a_process_that_died_while_it_asked_leaves_the_question_to_the_next() {
    let (home, api) = stage("1h", [unpaid()]);
    let args = ["run", "--json", "--", "sh", "-c", CHARGE];
    let mut first =
        home.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while api.requests().is_empty() {
        std::thread::yield_now();
    }
    first.kill().expect("it is there");
    first.wait().expect("it is our child");
    api.tell("GET /charges/ch_7", [unpaid(), paid()]);
    let next = charge(&home);
    let answer = next.json();
    assert_eq!((next.code, &answer["outcome"]), (Some(0), &"replayed".into()), "{next:?}");
    assert_eq!((&answer["evidence"], home.effects()), (&"confirmed".into(), 1), "{next:?}");
    let why = answer["reason"].as_str().unwrap_or_default();
    assert!(why.contains("the first caller may not have got the answer"), "{next:?}");
}

/// What became of it later is another matter than whether it was true.
#[test]
fn a_success_is_not_asked_about_once_its_time_is_over() {
    let (home, api) = stage("300ms", [RouteReply::json(500, "{}")]);
    assert_eq!(charge(&home).json()["evidence"], "reported");
    let asked = api.requests().len();
    api.tell("GET /charges/ch_7", [unpaid()]);
    let again = charge(&home);
    assert_eq!((again.code, &again.json()["outcome"]), (Some(0), &"replayed".into()), "{again:?}");
    assert_eq!(api.requests().len(), asked);
}

#[test]
fn a_queued_answer_is_accepted_and_says_so() {
    let home = Home::new();
    let script = "echo x >> world; echo '{\"status\": \"queued\"}'";
    let ran = home.run(&["--key", "k", "--json"], script);
    assert_eq!(ran.json()["evidence"], "accepted");
    assert_eq!(ran.json()["reason"], "accepted, not confirmed");
    let again = home.run(&["--key", "k"], script);
    assert!(again.stderr.contains("accepted, not confirmed, "), "{again:?}");
    assert_eq!((again.code, home.effects()), (Some(0), 1));
}

#[test]
fn a_queued_answer_can_be_confirmed() {
    let (home, api) = stage("20s", [unpaid(), paid()]);
    let ran = home.run(&["--json"], "echo x >> world; echo '{\"status\": \"queued\", \"id\": \"ch_7\"}'");
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"confirmed".into()), "{ran:?}");
    assert_eq!((home.effects(), api.requests().len()), (1, 2));
}

#[test]
fn what_a_client_says_that_it_did_is_asked_about_too() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("GET /charges/ch_7", [unpaid(), paid()]);
    let policy = format!(
        "[[rule]]\nmatch = \"fn:charge\"\nclass = \"consequential\"\n[rule.confirm]\n\
         http = \"GET {}/charges/{{reply.id}}\"\nok = \"resp.status == 'succeeded'\"\nwithin = \"20s\"\n",
        bank.url()
    );
    let served = Served::start(&home, &policy);
    let admin = ApiClient::new(&served.address, TOKEN);
    let claim = admin.claim(crate::api::client::charge("ann"));
    let settled = admin.settle(&claim, "applied", serde_json::json!({"id": "ch_7"})).json();
    assert_eq!(settled["reason"], "reported, not confirmed yet", "{settled}");
    home.wait_until("it is confirmed", || state(&home).1.as_deref() == Some("confirmed"));
    assert_eq!(bank.requests().len(), 2);
}

/// What was taken back is not there, and was there all the same.
#[test]
fn what_was_undone_meanwhile_is_not_refuted() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\n[rule.confirm]\n\
         cmd = [\"test\", \"-e\", \"shown\"]\nok = \"resp.exit == 0\"\nwithin = \"3s\"\n\
         [rule.undo]\ncmd = [\"touch\", \"taken-back\"]\n",
    );
    let mut first = home.start(&[], CHARGE);
    home.wait_until("it is done", || home.effects() == 1 && state(&home).0 == "applied");
    let id = home.json(["ledger", "list"])["items"][0]["effect_id"].as_str().expect("an id").to_owned();
    let undone = home.semel(["ledger", "undo", &id, "--reason", "a mistake"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(first.wait().expect("it ends").success());
    let shown = home.json(["ledger", "show", &id]).to_string();
    assert!(shown.contains("\"applied\"") && !shown.contains("disproved"), "{shown}");
}

/// A person who presses Ctrl-C is not kept until the rule's time is over.
#[test]
fn whoever_is_asked_to_end_stops_asking() {
    let (home, api) = stage("1h", [unpaid()]);
    let mut command = home.command(["run", "--json", "--", "sh", "-c", TOUCH]);
    let policy = std::fs::read_to_string(home.work().join("semel.toml")).expect("a policy");
    home.file("semel.toml", &policy.replace("{reply.id}", "ch_7"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
    while api.requests().is_empty() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"reported".into()), "{ran:?}");
    assert_eq!(state(&home), ("applied".into(), Some("reported".into())));
}
