//! Commands that did their work and then failed: a reported failure is not "it did not happen".

use super::answer;
use crate::home::Home;

/// Ways to fail after the work was done.
const FAILS: [&str; 6] = [
    "exit 1",
    "echo failed >&2; exit 1",
    "echo An unexpected error occurred >&2; exit 2",
    "echo HTTP 500 >&2; exit 1",
    "echo gateway timeout; exit 1",
    "echo invalid amount >&2; exit 1",
];

#[test]
fn a_command_that_did_its_work_and_failed_happens_once_under_a_key_or_if_it_is_consequential() {
    for fails in FAILS {
        for flags in [&["--key", "k", "--json"][..], &["--class", "consequential", "--json"]] {
            let home = Home::new();
            for _ in 0..2 {
                let ran = home.run(flags, &format!("echo x >> world; {fails}"));
                let object = answer(&ran);
                assert_eq!((ran.code, object["code"].as_str()), (Some(121), Some("in_doubt")), "{fails}");
                assert_eq!(object["is_it_safe_to_retry"], "no", "{fails}");
            }
            assert_eq!(home.effects(), 1, "{fails}");
        }
    }
}

#[test]
fn a_failure_in_doubt_names_the_way_out() {
    let home = Home::new();
    let ran = home.run(&["--key", "k", "--json"], "exit 3");
    assert!(answer(&ran)["what_happened"].as_str().unwrap().contains("`--refused-exit 3`"), "{ran:?}");
}

#[test]
fn without_a_key_the_commands_word_is_taken_and_called_that() {
    let home = Home::new();
    let script = "echo x >> world; exit 1";
    let first = home.run(&["--json"], script);
    let object = answer(&first);
    assert_eq!((first.code, object["code"].as_str()), (Some(1), Some("upstream_refused")));
    assert_eq!((&object["is_it_safe_to_retry"], &object["effect"]), (&"yes".into(), &"none".into()));
    let second = home.run(&[], script);
    assert_eq!(second.code, Some(1));
    let expected = "The command failed (exit 1). Whether it changed anything is not known. It may run again, because \
                    nothing says that it must happen only once; give it a `--key` to change that.";
    assert!(second.stderr.contains(expected), "{second:?}");
    assert!(!format!("{first:?}{second:?}").contains("not happen"), "{first:?} {second:?}");
    assert_eq!(home.effects(), 2);
}

#[test]
fn words_of_a_lost_answer_count_on_both_streams_and_at_their_end() {
    for says in ["echo upstream: gateway timeout", "echo connection reset >&2", "seq 100000; echo HTTP 503"] {
        let home = Home::new();
        for _ in 0..2 {
            assert_eq!(home.run(&[], &format!("echo x >> world; {says}; exit 1")).code, Some(121), "{says}");
        }
        assert_eq!(home.effects(), 1, "{says}");
    }
}

#[test]
fn listed_exit_codes_prove_that_nothing_happened() {
    let home = Home::new();
    let script = |code: u8| format!("echo x >> tries; exit {code}");
    for (number, list) in ["2,3", "any"].iter().enumerate() {
        let flags = ["--key", &format!("k{number}"), "--json", "--refused-exit", list];
        for code in [2, 3] {
            let ran = home.run(&flags, &script(code));
            assert_eq!(ran.code, Some(i32::from(code)), "{ran:?}");
            let what = answer(&ran)["what_happened"].clone();
            assert!(what.as_str().unwrap().starts_with("It did not happen: refused"), "{what}");
        }
    }
    assert_eq!(home.lines("tries"), 4);
    assert_eq!(home.run(&["--key", "other", "--refused-exit", "2"], &script(1)).code, Some(121));
    // A nested semel has said that nobody knows.
    assert_eq!(home.run(&["--key", "nested", "--refused-exit", "any"], &script(121)).code, Some(121));
    // No exit code at all.
    assert_eq!(home.run(&["--key", "killed", "--refused-exit", "any"], "kill -9 $$").code, Some(121));
}

#[test]
fn the_flag_adds_to_the_list_of_the_rule_and_a_rule_that_doubts_everything_stands() {
    let home = Home::new();
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\n";
    home.file("semel.toml", &format!("{rule}refused_exit = [8]\n"));
    assert_eq!(home.run(&["--refused-exit", "9"], "exit 8").code, Some(8));
    assert_eq!(home.run(&["--refused-exit", "9"], "exit 9").code, Some(9));
    home.file("semel.toml", &format!("{rule}failure = \"in_doubt\"\n"));
    assert_eq!(home.run(&["--refused-exit", "any"], "exit 7").code, Some(121));
}

#[test]
fn what_is_no_exit_code_is_refused_before_anything_starts() {
    let home = Home::new();
    for list in ["0", "256", "-1", "one", "", "1,,2", "all"] {
        let ran = home.run(&["--refused-exit", list], "echo x >> world");
        assert_eq!((ran.code, home.effects()), (Some(125), 0), "{list}: {ran:?}");
    }
}
