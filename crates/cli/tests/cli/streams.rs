use crate::home::{Home, Ran};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_reader_that_went_away_is_no_error() {
    let home = Home::new();
    home.semel(["run", "--key", "k", "--", "echo", "hello"]);
    let commands: &[&[&str]] = &[
        &["ledger"],
        &["ledger", "list"],
        &["ledger", "list", "--json"],
        &["ledger", "reply", "--key", "k"],
        &["ledger", "export"],
        &["ledger", "tail", "--no-follow"],
        &["ledger", "tail"],
        &["policy", "schema"],
        &["explain"],
        &["init"],
    ];
    for args in commands {
        let mut child = home
            .command(args.iter())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("semel starts");
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().expect("semel ends"));
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("error"), "{args:?}: {ran:?}");
    }
}

#[test]
fn what_could_not_be_written_is_an_error_and_a_lost_answer_is_not_delivered() {
    let home = Home::new();
    home.semel(["run", "--key", "k", "--", "echo", "hello"]);
    let full =
        || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device is there");
    for args in [&["ledger", "export"][..], &["ledger", "list", "--json"], &["policy", "schema"]] {
        let ran = Ran::of(home.command(args).stdout(full()).output().expect("semel starts"));
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("standard output could not be written"), "{args:?}: {ran:?}");
    }
    let args = ["run", "--key", "other", "--", "sh", "-c", "echo x >> world; echo hello"];
    let lost = Ran::of(home.command(args).stdout(full()).output().expect("semel starts"));
    assert!(lost.stderr.contains("not all of its output could be written"), "{lost:?}");
    let given = home.semel(args);
    assert_eq!((given.stdout.as_str(), home.effects()), ("hello\n", 1), "{given:?}");
}

#[test]
fn what_a_command_leaves_running_may_go_on_talking() {
    let home = Home::new();
    // The reading end closes a second after the command's end; the sleeper speaks after that.
    let script = "(sleep 2; echo late; echo late >&2; echo x >> world) & echo $! > left; echo started";
    let ran = home.run(&["--key", "k"], script);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "started\n"), "{ran:?}");
    let left = std::fs::read_to_string(home.work().join("left")).expect("something was left running");
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", left.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while home.effects() == 0 && runs() {
        std::thread::yield_now();
    }
    assert_eq!(home.effects(), 1, "it was killed at its next word");
}

#[test]
fn tail_follows_the_journal_from_before_its_beginning_until_nobody_reads() {
    let home = Home::new();
    let mut child =
        home.command(["ledger", "tail", "--json"]).stdout(Stdio::piped()).spawn().expect("semel starts");
    assert_eq!(home.semel(["run", "--", "echo", "hello"]).code, Some(0));
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let line: serde_json::Value =
            serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
        kinds.push(line["kind"].as_str().expect("a kind").to_owned());
    }
    assert_eq!(kinds, ["claimed", "settled_applied"]);
    drop(lines);
    assert_eq!(child.wait().expect("semel ends").code(), Some(0));
}

#[test]
fn a_ledger_whose_founding_was_cut_short_is_not_there_yet_for_readers() {
    for point in ["found.before_tables", "found.after_tables", "found.after_secret"] {
        let home = Home::new();
        let mut cut = home.command(["run", "--", "true"]);
        let cut = cut.env("SEMEL_FAILPOINTS", format!("{point}=abort")).output().expect("semel starts");
        assert!(!cut.status.success(), "{point} was not passed");
        let tail = home.semel(["ledger", "tail", "--no-follow", "--json"]);
        assert_eq!((tail.code, tail.stdout.as_str()), (Some(0), ""), "{point}: {}", tail.stderr);
    }
}

#[test]
fn tail_begins_with_the_last_lines() {
    let home = Home::new();
    for _ in 0..5 {
        home.semel(["run", "--", "true"]);
    }
    for lines in [0, 1, 7, 15, 100] {
        let ran = home.semel(["ledger", "tail", "--no-follow", "--json", "-n", &lines.to_string()]);
        assert_eq!(ran.stdout.lines().count(), lines.min(10), "{lines}");
    }
}

#[test]
fn escape_sequences_in_recorded_text_are_shown_and_not_obeyed() {
    let home = Home::new();
    let evil = "\u{1b}]0;title\u{7}\u{1b}[31mevil";
    home.semel(["run", "--key", "k", "--run", "r", "--action", evil, "--", "printf", "%s", evil]);
    let id = home.json(["ledger", "list"])["items"][0]["effect_id"].as_str().unwrap().to_owned();
    let commands: &[&[&str]] = &[
        &["ledger", "list", "--wide"],
        &["ledger", "show", &id],
        &["ledger", "tail", "--no-follow"],
        &["ledger", "--markdown"],
        &["cancel", "r"],
        &["policy", "explain", &format!("fn:{evil}")],
    ];
    for args in commands {
        // With colours forced, nothing but our own neutralising stands between the text and the terminal.
        let ran = home.semel(["--color", "always"].iter().chain(args.iter()));
        assert!(ran.stdout.contains("\\u{1b}[31mevil"), "{args:?}: {ran:?}");
        assert!(!ran.stdout.contains("\u{1b}[31mevil") && !ran.stdout.contains('\u{7}'), "{args:?}: {ran:?}");
    }
    assert_eq!(home.semel(["ledger", "reply", "--key", "k"]).stdout, evil, "data is given as it was");
}

#[test]
fn colours_are_only_for_those_who_want_them() {
    let home = Home::new();
    home.doubt("k");
    assert!(!home.semel(["ledger"]).stdout.contains('\u{1b}'));
    assert!(home.semel(["--color", "always", "ledger"]).stdout.contains("\u{1b}[33min doubt"));
}
