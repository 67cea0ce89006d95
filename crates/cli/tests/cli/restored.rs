//! An older ledger that is put back: what was done since happens once all the same.

use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::FakeMcpServer;
use serde_json::json;
use std::fs;

/// What `sqlite3 FROM ".backup TO"` does, and `.restore` the other way round.
const COPY: &str =
    "import sqlite3,sys; a,b=map(sqlite3.connect,sys.argv[1:]); a.backup(b); a.close(); b.close()";

impl Home {
    fn copy(&self, from: &str, to: &str) {
        let paths = [from, to].map(|name| self.state().join(name).to_string_lossy().into_owned());
        let [from, to] = paths;
        let copied = self.program(&["python3", "-c", COPY, &from, &to].map(str::to_owned)).status();
        assert!(copied.expect("python starts").success());
    }
}

/// A server that has charged twice, with a copy of its ledger from in between.
fn charged_since_the_copy(home: &Home, upstream: &FakeMcpServer) -> Served {
    let served = Served::before(home, &upstream.url());
    assert_eq!(served.call("charge", json!({"n": 1})).tool_outcome(), "ran");
    home.copy("ledger.db", "old.db");
    assert_eq!(served.call("charge", json!({"n": 2})).tool_outcome(), "ran");
    served
}

#[test]
fn an_older_state_put_back_under_a_server_lets_nothing_happen_twice() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = charged_since_the_copy(&home, &upstream);
    home.copy("old.db", "ledger.db");
    assert_eq!(served.call("charge", json!({"n": 2})).tool_outcome(), "held");
    assert_eq!(served.call("charge", json!({"n": 1})).tool_outcome(), "replayed");
    assert_eq!(home.json(["ledger", "quarantine"])["number"], 2);
    assert!(served.stop().success());
    let again = Served::again(&home);
    assert_eq!(again.call("charge", json!({"n": 2})).tool_outcome(), "held");
    assert_eq!(upstream.effects(), 2);
}

#[test]
fn an_older_state_put_back_under_a_command_lets_nothing_happen_twice() {
    // The second takes the mark away too: then only the command knows what was there.
    for meanwhile in ["true", ": > ledger.lock"] {
        let home = Home::new();
        assert_eq!(home.semel(["run", "--key", "first", "--", "true"]).code, Some(0));
        home.copy("ledger.db", "old.db");
        let script = format!(
            "echo done >> world; cd {}; {meanwhile}; exec python3 -c '{COPY}' old.db ledger.db",
            home.state().display()
        );
        let run = || home.semel(["run", "--key", "k", "--", "sh", "-c", &script]);
        let lost = run();
        assert_eq!(lost.code, Some(121), "{meanwhile}: {lost:?}");
        assert_eq!(run().code, Some(121), "{meanwhile}");
        assert_eq!(home.json(["ledger", "quarantine"])["number"], 2, "{meanwhile}");
        assert_eq!(fs::read_to_string(home.work().join("world")).expect("it was done"), "done\n");
    }
}

#[test]
fn a_server_that_ended_leaves_one_file_in_whose_place_an_older_one_is_recognised() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = charged_since_the_copy(&home, &upstream);
    assert!(served.stop().success());
    let log = home.state().join("ledger.db-wal");
    assert_eq!(log.metadata().map_or(0, |found| found.len()), 0);
    let old = fs::read(home.state().join("old.db")).expect("readable");
    fs::write(home.state().join("ledger.db"), old).expect("put back");
    let again = Served::again(&home);
    assert_eq!(again.call("charge", json!({"n": 2})).tool_outcome(), "held");
    assert_eq!(upstream.effects(), 2);
}

#[test]
fn a_server_whose_ledger_was_replaced_says_once_that_it_has_to_be_started_again() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    assert_eq!(served.call("charge", json!({"n": 1})).tool_outcome(), "ran");
    let file = home.state().join("ledger.db");
    fs::rename(&file, home.state().join("aside.db")).expect("moved");
    fs::copy(home.state().join("aside.db"), &file).expect("copied");
    let refused = served.call("charge", json!({"n": 2})).json().to_string();
    assert!(refused.contains("start this process again"), "{refused}");
    home.wait_until("it says so", || served.said().contains("start this process again"));
    let ready = served.ask_raw("GET /readyz HTTP/1.1", &format!("Semel-Token: {TOKEN}\r\n"), "").answer();
    assert_eq!((ready.status, upstream.effects()), (503, 1));
}

#[test]
fn an_accepted_epoch_says_what_stays_in_doubt() {
    let home = Home::new();
    home.semel(["ledger", "mark-restored", "--reason", "restored"]);
    assert_eq!(home.semel(["run", "--key", "k", "--", "true"]).code, Some(121));
    let accepted = home.semel(["ledger", "end-quarantine"]);
    assert!(accepted.stderr.contains("1 effect is still in doubt"), "{accepted:?}");
    assert!(accepted.stderr.contains("hint: semel ledger"), "{accepted:?}");
}
