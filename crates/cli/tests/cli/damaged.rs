//! One record that cannot be read: its own call is in doubt, and everything else goes on.

use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use serde_json::Value;
use std::fs;

/// A ledger of three effects, one of them unreadable, and its id.
fn damaged(home: &Home) -> String {
    for key in ["a", "b", "c"] {
        let script = format!("echo {key} >> world");
        let ran = home.semel(["run", "--run", key, "--key", key, "--", "sh", "-c", &script]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let id = home.json(["ledger", "list", "--run", "a"])["items"][0]["effect_id"].clone();
    meddle(home, "update effect set fixed=x'ff00ff' where id=1");
    id.as_str().expect("an id").to_owned()
}

/// Runs SQL on the ledger's file as a failing disk might.
fn meddle(home: &Home, sql: &str) {
    let file = home.state().join("ledger.db").to_string_lossy().into_owned();
    let meddle = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1])\nc.execute(sys.argv[2]); c.commit()";
    let meddled = home.program(&["python3", "-c", meddle, &file, sql].map(str::to_owned)).status();
    assert!(meddled.expect("python starts").success());
}

#[test]
fn a_damaged_reply_is_said_to_be_damaged_and_its_call_counts_as_done() {
    let home = Home::new();
    let run = || home.run(&["--key", "k"], "echo x >> world; echo out");
    assert_eq!(run().code, Some(0));
    meddle(&home, "update outcome set reply = zeroblob(length(reply))");
    let again = run();
    assert_eq!((again.code, again.stdout.as_str(), home.effects()), (Some(0), "", 1), "{again:?}");
    assert!(again.stderr.contains("its reply is damaged in the ledger"), "{again:?}");
    assert_eq!(home.json(["ledger", "list"])["items"][0]["reply"], "damaged");
    let reply = home.semel(["ledger", "reply", "--key", "k"]);
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(1), ""));
    assert!(reply.stderr.contains("has no reply to give: its reply is damaged in the ledger"), "{reply:?}");
    let shown = home.semel(["ledger", "show", "--key", "k"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("result ") && line.contains("damaged")), "{shown}");
}

#[test]
fn lists_go_on_past_it_and_say_so() {
    let home = Home::new();
    let id = damaged(&home);
    let run = || home.semel(["run", "--run", "a", "--key", "a", "--", "sh", "-c", "echo a >> world"]);
    assert_eq!(run().code, Some(121), "its own call is in doubt");
    for command in [&["ledger"][..], &["ledger", "list"], &["ledger", "export"], &["ledger", "--markdown"]] {
        let ran = home.semel(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("left out: 1 record that cannot be read"), "{command:?}: {ran:?}");
    }
    assert_eq!(home.json(["ledger", "list"])["items"].as_array().map(Vec::len), Some(2));
    let newest = home.semel(["ledger", "list", "--limit", "1"]);
    assert_eq!(newest.stderr.lines().count(), 1, "a list ends before it comes to the oldest: {newest:?}");
    assert_eq!(home.semel(["ledger", "list", "--run", "b"]).stderr, "", "nothing of it was left out");
    assert_eq!(home.semel(["ledger", "prune"]).code, Some(0));
    let unsure = home.semel(["ledger", "reply", "--key", "unknown"]);
    assert_eq!(unsure.code, Some(2), "what is asked for may be the one: {unsure:?}");
    let other = home.json(["cancel", "b"]);
    assert_eq!(other["applied"].as_array().map(Vec::len), Some(1));
    assert_eq!((&other["damaged"], &other["drained"]), (&Value::Null, &true.into()));
    let own = home.json(["cancel", "a"]);
    assert_eq!((&own["damaged"], &own["drained"]), (&1.into(), &false.into()));
    home.json(["cancel", "a", "--lift"]);
    let report = home.semel(["doctor", "--full"]);
    assert_eq!(report.code, Some(1));
    let named = report.stdout.lines().find(|line| line.contains("FAIL")).expect("it fails");
    assert!(named.contains(&format!("1 record cannot be read: {id}")), "{report:?}");
    assert_eq!(run().code, Some(121), "retention has not forgotten it");
    let ruled = home.semel(["ledger", "resolve", &id, "--applied", "--reason", "seen in the world"]);
    assert_eq!((ruled.code, run().code), (Some(0), Some(0)), "{ruled:?}");
    assert_eq!(fs::read_to_string(home.work().join("world")).expect("it was done"), "a\nb\nc\n");
}

#[test]
fn lists_over_http_count_it() {
    let home = Home::new();
    let _id = damaged(&home);
    let served = Served::start(&home, "version = 1\n");
    let headers = format!("Semel-Token: {TOKEN}\r\n");
    let ask = |what: &str| served.ask_raw(&format!("GET /api/v1/{what} HTTP/1.1"), &headers, "").answer();
    for what in ["effects", "runs"] {
        let answer = ask(what);
        let told = answer.json();
        assert_eq!(answer.status, 200, "{told}");
        assert_eq!(
            (told["items"].as_array().map(Vec::len), &told["damaged"]),
            (Some(2), &1.into()),
            "{told}"
        );
    }
    let told = ask("runs/b").json();
    assert_eq!((told["items"].as_array().map(Vec::len), told.get("damaged")), (Some(1), None), "{told}");
}
