use crate::home::Home;
use semel_gate::clock::{Clock, SystemClock, block_on};
use semel_ledger::entropy::{OsEntropy, nonce};
use semel_ledger::place::Place;
use semel_ledger::sqlite::{OpenOptions, OpenedStore, SqliteStore};
use semel_ledger::store::{Commit, Store};
use semel_testkit::store_suite::{index, named, record};
use serde_json::Value;
use std::sync::Arc;

#[test]
fn the_default_view_shows_doubts_with_the_consequential_first() {
    let home = Home::new();
    let first = home.doubt("a");
    let ran =
        home.semel(["run", "--key", "b", "--class", "consequential", "--", "sh", "-c", "kill -9 $$ # b"]);
    assert_eq!(ran.code, Some(121));
    home.semel(["run", "--", "true"]);
    let view = home.json(["ledger"]);
    let items = view["items"].as_array().expect("a list");
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["class"], "consequential");
    assert_eq!(items[1]["effect_id"], first.as_str());
    assert_eq!(items[1]["effect"], "unknown");
    assert_eq!(view["counts"]["applied"], 1);
    let text = home.semel(["ledger"]);
    assert!(text.stdout.contains("2 need a decision · 0 in flight · 1 applied"), "{text:?}");
    assert!(text.stdout.contains(&first), "ids are never cut");
    assert!(text.stderr.contains("hint: semel ledger show ef_"), "{text:?}");
}

#[test]
fn a_dead_holder_shows_as_in_doubt() {
    let home = Home::new();
    // The command kills the semel that runs it, and ends itself.
    let ran = home.semel(["run", "--", "sh", "-c", "kill -9 $PPID"]);
    assert_eq!(ran.code, None, "{ran:?}");
    let state = || home.json(["ledger", "list"])["items"][0]["state"].clone();
    // The command itself may live a moment longer, and keeps the lock as long.
    assert!((0..200).any(|_| state() == "in_doubt"));
    assert!(home.semel(["ledger"]).stdout.contains("the process that ran it ended"));
}

#[test]
fn the_list_is_newest_first_and_filters() {
    let home = Home::new();
    for name in ["one", "two", "three"] {
        assert_eq!(home.semel(["run", "--run", name, "--action", name, "--", "echo", name]).code, Some(0));
    }
    let actions = |args: &[&str]| -> Vec<String> {
        let list = home.json([&["ledger", "list"], args].concat());
        let items = list["items"].as_array().expect("a list").iter();
        items.map(|item| item["action"].as_str().expect("an action").to_owned()).collect()
    };
    assert_eq!(actions(&[]), ["cli:three", "cli:two", "cli:one"]);
    assert_eq!(actions(&["--run", "two"]), ["cli:two"]);
    let before = home.json(["ledger", "--run", "two", "list"]);
    assert_eq!(before["items"].as_array().map(Vec::len), Some(1), "the flag may stand before the word");
    assert_eq!(actions(&["--action", "o"]), ["cli:two", "cli:one"]);
    assert_eq!(actions(&["--state", "in_doubt"]), Vec::<String>::new());
    assert_eq!(actions(&["--state", "applied", "--since", "1h"]).len(), 3);
    assert_eq!(actions(&["--since", "0s"]).len(), 0);
    let page = home.json(["ledger", "list", "--limit", "2"]);
    let next = page["next"].as_str().expect("there is more");
    assert_eq!(actions(&["--limit", "2", "--before", next]), ["cli:one"]);
}

fn subjects(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["subject"].as_str().expect("one"))
        .collect()
}

#[test]
fn an_effect_is_found_by_a_part_of_its_subject_by_its_key_its_run_and_its_id() {
    let home = Home::new();
    home.semel(["run", "--run", "Nightly-7", "--", "echo", "order", "1001"]);
    home.semel(["run", "--key", "refund-ann", "--", "echo", "2002"]);
    let id = home.doubt("k");
    let find = |text: &str| home.json(["ledger", "find", text]);
    assert_eq!(subjects(&find("1001")), ["echo order 1001"]);
    assert_eq!(subjects(&find("nightly")), ["echo order 1001"]);
    assert_eq!(subjects(&find("REFUND")), ["key=refund-ann echo 2002"]);
    for name in [id.clone(), id[id.len() - 6..].to_lowercase(), "key=k".into()] {
        let found = find(&name);
        assert_eq!(
            (found["items"].as_array().map(Vec::len), &found["next"]),
            (Some(1), &Value::Null),
            "{name}"
        );
        assert_eq!(found["items"][0]["effect_id"], id.as_str());
    }
    let page = home.json(["ledger", "find", "echo", "--limit", "1"]);
    assert_eq!(subjects(&page), ["key=refund-ann echo 2002"]);
    let next = page["next"].as_str().expect("there is more");
    assert_eq!(subjects(&home.json(["ledger", "find", "echo", "--before", next])), ["echo order 1001"]);
    assert_eq!(subjects(&home.json(["ledger", "find", "echo", "--since", "0s"])), Vec::<&str>::new());
    let none = home.semel(["ledger", "find", "3003"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.stderr.contains("no effect with 3003"), "{none:?}");
    assert!(!none.stderr.contains("looked at"), "all were: {none:?}");
}

/// Writes rows that are newer than all others.
fn bury(home: &Home, effects: u128) {
    let place = Place::at(home.state().join("ledger.db"));
    let options = OpenOptions { blocking: true, ..OpenOptions::at(place, SystemClock::start().now()) };
    let OpenedStore { store, .. } = SqliteStore::open(options).expect("a ledger");
    for first in (0..effects).step_by(500) {
        let row = |effect: u128| record(named(&effect.to_string()), 1, 0, index(effect, false));
        let commit = Commit::of(nonce(&OsEntropy), (first..first + 500).map(row).collect());
        block_on(store.commit(Arc::new(commit))).expect("it lands");
    }
}

#[test]
fn a_find_says_how_far_it_looked_and_finds_what_is_open_however_old_it_is() {
    let home = Home::new();
    let open = home.doubt("order-1001");
    home.semel(["run", "--", "echo", "1001"]);
    bury(&home, 10_000);
    let found = home.json(["ledger", "find", "1001"]);
    assert_eq!(found["looked_at"]["effects"], 10_000);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["items"][0]["effect_id"], open.as_str());
    let text = home.semel(["ledger", "find", "1001"]);
    assert!(text.stderr.contains("looked at every open effect and 10000 of all"), "{text:?}");
    let place = found["next"].as_str().expect("there is more");
    assert!(text.stderr.contains(&format!("--before {place}")), "{text:?}");
    let both = ["echo 1001", "key=order-1001 sh -c 'kill -9 $$'"];
    for args in [&["--before", place][..], &["--all"]] {
        let found = home.json([&["ledger", "find", "1001"], args].concat());
        let mut subjects = subjects(&found);
        subjects.sort_unstable();
        assert_eq!((subjects, &found["next"]), (both.to_vec(), &Value::Null));
    }
}

#[test]
fn a_keyed_command_shows_its_key_and_a_wide_list_cuts_nothing() {
    let home = Home::new();
    let long = "x".repeat(150);
    home.semel(["run", "--key", "refund-1001", "--", "echo", &long]);
    let subject = format!("key=refund-1001 echo {long}");
    let wide = home.semel(["ledger", "list", "--wide"]);
    assert!(wide.stdout.contains(&subject), "{wide:?}");
    let shown = home.json(["ledger", "list"]);
    assert_eq!(subjects(&shown), [subject.as_str()]);
    let id = shown["items"][0]["effect_id"].as_str().expect("an id");
    assert!(home.semel(["ledger", "show", id]).stdout.contains(&subject));
    let table = home.semel(["ledger", "list"]).stdout;
    assert!(table.contains("key=refund-1001") && !table.contains(&subject), "{table}");
}

#[test]
fn an_effect_may_be_named_by_the_end_of_its_id() {
    let home = Home::new();
    let id = home.doubt("k");
    let end = id[id.len() - 6..].to_lowercase();
    assert_eq!(home.json(["ledger", "show", &end])["effect_id"], id.as_str());
    let short = home.semel(["ledger", "show", &id[id.len() - 3..]]);
    assert_eq!(short.code, Some(2));
    assert!(short.stderr.contains("at least 4"), "{short:?}");
    let unknown = home.semel(["ledger", "show", "ZZZZZZ"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("no effect ZZZZZZ") && unknown.stderr.contains("hint:"), "{unknown:?}");
    let unseen = home.semel(["ledger", "show", "ef_01M7EKAPXHFBNB8RWXV0YHRBJC"]);
    assert_eq!(unseen.code, Some(2), "{unseen:?}");
}

#[test]
fn the_recorded_reply_comes_back_by_id_and_by_key() {
    let home = Home::new();
    let ran = home.semel(["run", "--key", "k1", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(ran.code, Some(0));
    let by_key = home.semel(["ledger", "reply", "--key", "k1"]);
    assert_eq!((by_key.code, by_key.stdout.as_str(), by_key.stderr.as_str()), (Some(0), "out\n", "err\n"));
    let id = home.json(["ledger", "list"])["items"][0]["effect_id"].as_str().unwrap().to_owned();
    assert_eq!(home.semel(["ledger", "reply", &id]).stdout, "out\n");
    assert_eq!(home.json(["ledger", "reply", &id])["data"]["stdout"], "out\n");
    for key in ["k1", "invoice-1001", "invoice 1001", "KEY1"] {
        let taken = home.semel(["ledger", "reply", key]);
        assert_eq!(taken.code, Some(2), "{taken:?}");
        let quoted = if key.contains(' ') { format!("'{key}'") } else { key.to_owned() };
        let hint = format!("if it is an idempotency key: --key {quoted}\n");
        assert!(taken.stderr.ends_with(&hint), "{taken:?}");
    }
    let unknown = home.semel(["ledger", "reply", "--key", "k2"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
    let open = home.doubt("k3");
    let none = home.semel(["ledger", "reply", &open]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    assert!(none.stderr.contains("in doubt"), "{none:?}");
}

#[test]
fn an_effect_is_shown_and_ruled_on_by_its_idempotency_key() {
    let home = Home::new();
    let id = home.doubt("k");
    assert_eq!(home.json(["ledger", "show", "--key", "k"])["effect_id"], id.as_str());
    let ruled = home.json(["ledger", "resolve", "--key", "k", "--not-applied", "--reason", "looked"]);
    assert_eq!((&ruled["effect_id"], &ruled["state"]), (&id.as_str().into(), &"not_applied".into()));
    let unknown = home.semel(["ledger", "show", "--key", "other"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""), "{unknown:?}");
    let unknown = home.semel(["ledger", "resolve", "--key", "other", "--applied", "--reason", "looked"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
}

#[test]
fn runs_are_listed_with_the_last_changed_one_first() {
    let home = Home::new();
    for (run, script) in [("one", "true"), ("two", "true"), ("two", "kill -9 $$"), ("one", "echo again")] {
        home.semel(["run", "--run", run, "--", "sh", "-c", script]);
    }
    home.semel(["run", "--", "true"]);
    let list = home.json(["ledger", "runs"]);
    let of = |item: &serde_json::Value| {
        let number = |name: &str| item[name].as_u64().expect("a number");
        (
            item["run"].as_str().expect("a name").to_owned(),
            number("effects"),
            number("open"),
            number("in_doubt"),
        )
    };
    let items: Vec<_> = list["items"].as_array().expect("a list").iter().map(of).collect();
    assert_eq!(items, [("one".to_owned(), 2, 0, 0), ("two".to_owned(), 2, 1, 1)]);
    assert_eq!((&list["schema_version"], &list["next"]), (&1.into(), &serde_json::Value::Null));
    assert_eq!(home.json(["ledger", "runs", "--limit", "1"])["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_key_that_only_joins_finds_the_effect_of_the_rule() {
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n[[rule]]\nmatch = \"cli:echo*\"\nclass = \"consequential\"\nkey = [\"argv[1]\"]\ncaller_key = \"joins\"\n",
    );
    assert_eq!(home.semel(["run", "--key", "sdk-1", "--", "echo", "1001"]).code, Some(0));
    assert_eq!(home.semel(["ledger", "reply", "--key", "sdk-1"]).stdout, "1001\n");
}

#[test]
fn a_pruned_reply_is_said_to_be_pruned_and_the_fact_stays() {
    let home = Home::new();
    home.semel(["run", "--key", "k1", "--", "echo", "hello"]);
    let pruned = home.json(["ledger", "prune", "--replies", "0s"]);
    assert_eq!((&pruned["replies_dropped"], &pruned["facts_dropped"]), (&1.into(), &0.into()));
    assert_eq!(home.json(["ledger", "list"])["items"][0]["reply"], "pruned");
    let gone = home.semel(["ledger", "reply", "--key", "k1"]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("no longer kept"), "{gone:?}");
}

#[test]
fn show_explains_its_words_beside_them() {
    let home = Home::new();
    let run = || home.run(&["--key", "k"], "kill -9 $PPID");
    assert_eq!((run().code, run().code), (None, Some(121)));
    let shown = home.semel(["ledger", "show", "--key", "k"]).stdout;
    for words in [
        "1 (the same call, repeated on purpose, is the next one)",
        "unproven (no answer says whether it happened)",
        "holder_died (the process that ran it ended before its answer was recorded)",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// A year after the newest line either the clock is wrong or nobody was here for a year.
#[test]
fn a_clock_far_past_the_newest_line_prunes_only_if_told_twice() {
    let home = Home::new();
    home.semel(["run", "--class", "consequential", "--", "sh", "-c", "echo x >> world; echo hello"]);
    let file = home.state().join("ledger.db").to_string_lossy().into_owned();
    let meddle = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1])\n\
                  c.execute('update journal set at = at - 31536000000000'); c.commit()";
    let words = ["python3", "-c", meddle, &file].map(str::to_owned);
    assert!(home.program(&words).status().expect("python starts").success());
    let refused = home.semel(["ledger", "prune", "--replies", "0s"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for said in ["nothing was pruned", "--clock-is-right"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    assert_eq!(home.json(["ledger", "list"])["items"][0]["reply"], "kept");
    let pruned = home.json(["ledger", "prune", "--replies", "0s", "--clock-is-right"]);
    assert_eq!((&pruned["replies_dropped"], &pruned["facts_dropped"]), (&1.into(), &0.into()));
}

#[test]
fn show_lists_attempts_journal_and_other_occurrences() {
    let home = Home::new();
    let again = |why: &str| home.semel(["run", "--key", "k", "--again", why, "--", "echo", "hello"]).code;
    assert_eq!((again("first"), again("second shipment")), (Some(0), Some(0)));
    let newest = &home.json(["ledger", "list"])["items"][0];
    let shown = home.json(["ledger", "show", newest["effect_id"].as_str().unwrap()]);
    assert_eq!((&shown["occurrence"], &shown["again"]), (&2.into(), &"second shipment".into()));
    assert_eq!(shown["other_occurrences"][0]["occurrence"], 1);
    assert_eq!(shown["attempts"][0]["verdict"], "applied");
    assert_eq!(shown["reply_summary"]["first_line"], "hello");
    let kinds: Vec<&str> =
        shown["journal"].as_array().unwrap().iter().map(|l| l["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["claimed", "settled_applied"]);
    let text = home.semel(["ledger", "show", newest["effect_id"].as_str().unwrap()]);
    assert!(text.stdout.contains("on purpose: second shipment"), "{text:?}");
}

#[test]
fn markdown_tells_a_model_what_not_to_repeat() {
    let home = Home::new();
    home.semel(["run", "--run", "r1", "--", "sh", "-c", "echo; echo '`issue` 812'; echo more"]);
    home.semel(["run", "--run", "r1", "--", "sh", "-c", "kill -9 $$"]);
    home.semel(["run", "--run", "r1", "--", "sh", "-c", "exit 3"]);
    home.semel(["run", "--run", "r1", "--refused-exit", "4", "--", "sh", "-c", "exit 4"]);
    home.semel(["run", "--run", "r2", "--", "echo", "elsewhere"]);
    let text = home.semel(["ledger", "--run", "r1", "--markdown"]).stdout;
    for expected in [
        "# Done in run `r1`",
        "## Done (1)",
        "## In doubt (1)",
        "## Failed (1)\n\nWhether these changed anything is not known.",
        "## Not applied (1)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.contains("None needs to be done again"), "{text}");
    assert!(text.contains("result: `'issue' 812`"), "{text}");
    assert!(!text.contains("elsewhere"), "{text}");
    assert!(home.semel(["ledger", "--markdown"]).stdout.contains("elsewhere"));
    let unknown = home.semel(["ledger", "--run", "r3", "--markdown"]).stdout;
    assert!(unknown.contains("Nothing is recorded. If the name of the run is not certain"), "{unknown}");
    let unset = home.semel(["ledger", "--run", "", "--markdown"]);
    assert_eq!((unset.code, unset.stdout.as_str()), (Some(2), ""), "{unset:?}");
}

#[test]
fn export_prints_one_effect_a_line_with_its_reply() {
    let home = Home::new();
    home.semel(["run", "--", "echo", "hello"]);
    home.doubt("k");
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let ran = home.semel([&["ledger", "export"], args].concat());
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("one document a line")).collect()
    };
    let all = lines(&[]);
    assert_eq!(all.len(), 2);
    assert_eq!((&all[0]["data"]["stdout"], &all[1]["state"]), (&"hello\n".into(), &"in_doubt".into()));
    assert!(lines(&["--no-replies"])[0].get("data").is_none());
}

#[test]
fn a_ledger_of_an_older_format_is_refused_with_a_way_on() {
    let home = Home::new();
    let run = || home.semel(["run", "--key", "k", "--", "echo", "once"]);
    assert_eq!(run().stdout, "once\n");
    let file = home.state().join("ledger.db").to_string_lossy().into_owned();
    let age = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
               c.executescript('UPDATE meta SET format = 1, min_reader = 1, min_writer = 1;')";
    let words = ["python3", "-c", age, &file].map(str::to_owned);
    assert!(home.program(&words).status().expect("python starts").success());
    let refused = run();
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    assert!(refused.stderr.contains("format 1 of an older build"), "{refused:?}");
    assert!(refused.stderr.contains("leave ledger.secret"), "{refused:?}");
}
