use super::TOUCH;
use crate::home::{Home, Ran};
use std::process::Child;

fn end(child: Child) -> Ran {
    Ran::of(child.wait_with_output().expect("semel ends"))
}

#[test]
fn twelve_processes_at_once_change_the_world_once_and_all_get_the_answer() {
    let home = Home::new();
    let script = "sleep 0.3; echo x >> world; echo touched $$";
    let twelve: Vec<Child> = (0..12).map(|_| home.start(&["--key", "k"], script)).collect();
    let answers: Vec<Ran> = twelve.into_iter().map(end).collect();
    assert_eq!(home.effects(), 1);
    assert!(answers.iter().all(|ran| ran.code == Some(0) && ran.stdout == answers[0].stdout), "{answers:?}");
}

#[test]
fn a_twin_of_a_refused_call_gets_the_same_refusal() {
    let home = Home::new();
    let script = "echo x >> tries; sleep 0.5; echo no >&2; exit 4";
    // By a refusal that is proven, and by one that is only reported.
    for (tries, flags) in [(1, &["--key", "k", "--refused-exit", "4"][..]), (2, &[])] {
        let first = home.start(flags, script);
        while home.lines("tries") < tries {
            std::thread::yield_now();
        }
        let twin = end(home.start(flags, script));
        assert_eq!((twin.code, end(first).code), (Some(4), Some(4)));
        assert!(twin.stderr.contains("no\n"), "{twin:?}");
        assert_eq!(home.lines("tries"), tries);
    }
}

#[test]
fn whoever_looks_at_a_terminal_is_told_that_a_twin_waits() {
    let home = Home::new();
    let script = "echo x >> world; sleep 1";
    let first = home.start(&["--key", "k"], script);
    while home.effects() == 0 {
        std::thread::yield_now();
    }
    let piped = home.start(&["--key", "k"], script);
    let in_a_terminal = "import os, pty, sys\n\
                         sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let semel = env!("CARGO_BIN_EXE_semel");
    let words = ["python3", "-c", in_a_terminal, semel, "run", "--key", "k", "--", "sh", "-c", script];
    let twin = home.program(&words.map(str::to_owned)).output().expect("python starts");
    let (twin, piped) = (Ran::of(twin), end(piped));
    assert!(twin.stdout.contains("waiting for its answer"), "{twin:?}");
    assert!(!piped.stderr.contains("waiting for its answer"), "{piped:?}");
    assert_eq!((twin.code, piped.code, end(first).code), (Some(0), Some(0), Some(0)));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_twin_that_will_not_wait_is_told_that_it_is_in_flight() {
    let home = Home::new();
    let script = "echo x >> world; sleep 1";
    let first = home.start(&["--key", "k"], script);
    while home.effects() == 0 {
        std::thread::yield_now();
    }
    let twin = end(home.start(&["--key", "k", "--wait", "50ms", "--json"], script));
    assert_eq!(twin.code, Some(122));
    assert_eq!(twin.json()["is_it_safe_to_retry"], "wait");
    assert_eq!(end(first).code, Some(0));
}

#[test]
fn calls_on_one_resource_take_turns() {
    let home = Home::new();
    let script = "echo in >> turns; sleep 0.1; echo out >> turns";
    let calls: Vec<Child> = (0..5)
        .map(|n| home.start(&["--serialize-by", "account-7", "--key", &format!("k{n}")], script))
        .collect();
    assert!(calls.into_iter().map(end).all(|ran| ran.code == Some(0)));
    let turns = std::fs::read_to_string(home.work().join("turns")).expect("turns were taken");
    assert_eq!(turns, "in\nout\n".repeat(5));
}

#[test]
fn an_equal_call_of_another_run_waits_and_is_held_while_the_first_is_in_doubt() {
    let home = Home::new();
    let script = "echo x >> world; kill -9 $$";
    assert_eq!(home.run(&["--run", "a", "--class", "consequential"], script).code, Some(121));
    assert_eq!(home.run(&["--run", "b", "--class", "consequential"], script).code, Some(121));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_repeat_on_purpose_waits_for_the_doubt_to_be_settled() {
    let home = Home::new();
    assert_eq!(home.run(&["--key", "k"], "kill -9 $$").code, Some(121));
    assert_eq!(home.run(&["--key", "k", "--again", "once more"], "kill -9 $$").code, Some(121));
    assert_eq!(home.run(&["--key", "other"], TOUCH).code, Some(0));
}
