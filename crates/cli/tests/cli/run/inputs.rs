use super::TOUCH;
use crate::home::{Home, Ran};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

#[test]
fn piped_input_is_part_of_what_is_asked() {
    let home = Home::new();
    let args = ["run", "--class", "consequential", "--", "sh", "-c", "cat >> world"];
    for input in ["one\n", "one\n", "two\n"] {
        assert_eq!(home.semel_reading(args, input.as_bytes()).code, Some(0));
    }
    assert_eq!(std::fs::read_to_string(home.work().join("world")).expect("the world"), "one\ntwo\n");
}

#[test]
fn other_input_under_one_key_is_drift() {
    let home = Home::new();
    let args = ["run", "--key", "k", "--", "cat"];
    assert_eq!(home.semel_reading(args, b"one").code, Some(0));
    assert_eq!(home.semel_reading(args, b"two").code, Some(123));
}

#[test]
fn a_silent_pipe_is_handed_through_when_there_is_a_key() {
    let home = Home::new();
    let mut command = home.command(["run", "--key", "k", "--", "sh", "-c", TOUCH]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("semel starts");
    let silent = child.stdin.take().expect("a pipe");
    assert_eq!(Ran::of(child.wait_with_output().expect("it ends")).stdout, "touched\n");
    drop(silent);
}

#[test]
fn bad_input_is_refused_before_anything_is_sent() {
    let home = Home::new();
    let long = "k".repeat(10_000);
    let flags: &[&[&str]] = &[
        &["--key", ""],
        &["--key", &long],
        &["--key", "a\nb"],
        &["--run", ""],
        &["--again", " "],
        &["--class", "dangerous"],
        &["--effect", "exploded"],
        &["--timeout", "soon"],
        &["--probe", "'"],
        &["--probe", ""],
        &["--serialize-by", ""],
        &["--no-such-flag"],
    ];
    for flags in flags {
        let ran = home.run(flags, TOUCH);
        assert_eq!(ran.code, Some(125), "{flags:?} {ran:?}");
        assert!(ran.stderr.contains("error"), "{ran:?}");
    }
    assert_eq!(home.semel(["run"]).code, Some(125));
    assert_eq!(home.semel(["run", "--"]).code, Some(125));
    assert_eq!(home.semel(["run", "--", ""]).code, Some(125));
    assert_eq!(home.effects(), 0);
}

#[test]
fn arguments_that_are_not_utf_8_are_refused() {
    let home = Home::new();
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let ran = home.semel([OsStr::new("run"), OsStr::new("--"), OsStr::new("echo"), odd]);
    assert_eq!(ran.code, Some(125));
    assert!(ran.stderr.contains("argument 1 is not valid UTF-8"), "{ran:?}");
    let run = home.command(["run", "--", "true"]).env("SEMEL_RUN_ID", odd).output().expect("semel runs");
    assert_eq!(run.status.code(), Some(125));
}

#[test]
fn without_a_ledger_effects_are_refused_and_reads_pass() {
    let home = Home::new();
    let file = home.file("state-is-a-file", "");
    let run = |class: &str| {
        let args = ["run", "--json", "--class", class, "--", "sh", "-c", TOUCH];
        Ran::of(home.command(args).env("SEMEL_STATE_DIR", &file).output().expect("semel runs"))
    };
    let refused = run("act");
    assert_eq!((refused.code, refused.json()["code"].as_str()), (Some(125), Some("ledger_unavailable")));
    assert_eq!(home.effects(), 0);
    assert_eq!(run("read").code, Some(0));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_ledger_on_an_engine_that_semel_lacks_is_refused_with_its_name() {
    let home = Home::new();
    for engine in ["mysql", "mongodb"] {
        let place = format!("{engine}://somewhere/x");
        let mut by_variable = home.command(["run", "--json", "--", "sh", "-c", TOUCH]);
        by_variable.env("SEMEL_LEDGER", &place);
        let by_flag = home.command(["run", "--json", "--ledger", &place, "--", "sh", "-c", TOUCH]);
        for mut command in [by_variable, by_flag] {
            let ran = Ran::of(command.output().expect("semel runs"));
            assert_eq!(ran.code, Some(125), "{ran:?}");
            let says = |text: &str| text.contains(&format!("names the engine {engine}"));
            assert!(ran.json()["what_happened"].as_str().is_some_and(says), "{ran:?}");
            assert_eq!(ran.json()["next_step"], "Fix the cause, then call it again, unchanged.", "{ran:?}");
        }
        for args in [["ledger", "list"], ["token", "list"], ["ledger", "prune"]] {
            let ran = home.semel(args.into_iter().chain(["--ledger", &place]));
            assert_eq!(ran.code, Some(2), "{ran:?}");
        }
        assert!(!home.work().join(format!("{engine}:")).exists(), "no directory is made of an address");
    }
    assert_eq!((home.effects(), home.state().exists()), (0, false));
    for place in ["sqlite:own.db", "file:own.db", "a:b.db"] {
        assert_eq!(home.semel(["run", "--ledger", place, "--", "true"]).code, Some(0), "{place}");
    }
    assert!(home.work().join("own.db").exists() && home.work().join("a:b.db").exists());
}

#[test]
fn a_state_directory_that_depends_on_where_one_stands_is_refused() {
    let home = Home::new();
    let mut command = home.command(["run", "--key", "k", "--", "sh", "-c", TOUCH]);
    let ran = Ran::of(command.env("SEMEL_STATE_DIR", "state").output().expect("semel starts"));
    assert_eq!((ran.code, home.effects()), (Some(125), 0), "{ran:?}");
    assert!(ran.stderr.contains("absolute path"), "{ran:?}");
}

#[test]
fn a_file_that_may_not_grow_is_a_doubt_and_not_the_end_of_semel() {
    let home = Home::new();
    let semel = env!("CARGO_BIN_EXE_semel");
    let (mut doubts, mut refused) = (0, 0);
    for blocks in [40, 80, 120, 160, 200, 240] {
        let key = format!("k{blocks}");
        // dash counts in blocks of 512 bytes.
        let script = format!("ulimit -f {blocks}; {semel} run --json --key {key} -- sh -c 'echo x >> {key}'");
        let words = ["sh", "-c", &script].map(str::to_owned);
        let ran = Ran::of(home.program(&words).output().expect("a shell"));
        assert!(matches!(ran.code, Some(0 | 121 | 125)), "{blocks}: {ran:?}");
        let happened = home.lines(&key);
        assert_eq!(ran.json()["ok"], ran.code == Some(0), "{blocks}: {ran:?}");
        assert!(happened <= 1 && (ran.code != Some(125) || happened == 0), "{blocks}: {ran:?}");
        doubts += u32::from(ran.code == Some(121));
        refused += u32::from(ran.code == Some(125));
    }
    assert!(doubts + refused > 0, "no limit was met");
}

#[test]
fn a_call_that_makes_no_sense_is_answered_with_an_object_too() {
    let home = Home::new();
    for args in
        [&["run", "--json"][..], &["run", "--json", "--bogus", "--", "true"], &["run", "--json", "--class"]]
    {
        let ran = home.semel(args);
        assert_eq!((ran.code, ran.json()["code"].as_str()), (Some(125), Some("not_started")), "{ran:?}");
    }
    let other = home.semel(["run", "--bogus", "--", "true", "--json"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(125), ""), "{other:?}");
}
