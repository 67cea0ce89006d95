//! What somebody tried who wanted the promise broken.

use super::{TOUCH, answer};
use crate::home::{Home, Ran};
use std::os::fd::AsFd;
use std::process::Stdio;

#[test]
fn a_call_that_was_told_to_end_has_not_delivered_its_answer() {
    for signal in ["TERM", "INT", "HUP"] {
        let home = Home::new();
        let script = "trap '' TERM INT HUP; touch begun; sleep 0.4; echo x >> world; echo charged";
        let mut child = home
            .command(["run", "--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("semel starts");
        while !home.work().join("begun").exists() {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        let told = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(told.is_ok_and(|status| status.success()));
        child.wait().expect("semel ends");
        let retry = home.run(&[], script);
        assert_eq!((retry.stdout.as_str(), home.effects()), ("charged\n", 1), "{signal}");
    }
}

#[test]
fn a_silent_command_whose_reader_went_away_is_not_delivered() {
    let home = Home::new();
    let script = "sleep 0.3; echo x >> world";
    let mut command = home.command(["run", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("semel starts");
    drop(child.stdout.take());
    child.wait().expect("semel ends");
    assert_eq!(home.run(&[], script).code, Some(0));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_retried_repeat_is_safe_however_many_there_were() {
    let home = Home::new();
    home.run(&["--key", "k"], TOUCH);
    for n in 0..40 {
        assert_eq!(home.run(&["--key", "k", "--again", &format!("week {n}")], TOUCH).code, Some(0));
    }
    assert_eq!(home.run(&["--key", "k", "--again", "week 0"], TOUCH).code, Some(0));
    assert_eq!(home.effects(), 41);
}

#[test]
fn repeats_for_different_reasons_at_once_all_run() {
    let home = Home::new();
    home.run(&["--key", "k"], TOUCH);
    let script = "sleep 0.2; echo x >> world; echo touched";
    let home_ref = &home;
    home.run(&["--key", "j"], script);
    let calls: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|reason| {
            let args = ["run", "--key", "j", "--again", reason, "--", "sh", "-c", script];
            home_ref
                .command(args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("semel starts")
        })
        .collect();
    for call in calls {
        let ran = Ran::of(call.wait_with_output().expect("semel ends"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(home.effects(), 5);
}

#[test]
fn a_flag_does_not_make_a_doubt_repeatable() {
    let home = Home::new();
    let script = "echo x >> world; echo timed out >&2; exit 1";
    assert_eq!(home.run(&[], script).code, Some(121));
    assert_eq!(home.run(&["--class", "convergent"], script).code, Some(121));
    assert_eq!(home.effects(), 1);
}

#[test]
fn neither_a_class_nor_another_name_takes_a_call_out_of_its_rule() {
    let home = Home::new();
    home.file("semel.toml", "version = 1\n[[rule]]\nmatch = \"cli:sh *\"\nclass = \"consequential\"\n");
    assert_eq!(home.run(&["--class", "act"], TOUCH).code, Some(125));
    assert_eq!(home.effects(), 0);
    assert_eq!(home.run(&["--action", "other", "--class", "act"], TOUCH).code, Some(125));
    for _ in 0..2 {
        assert_eq!(home.run(&["--action", "other"], TOUCH).code, Some(0));
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_call_cannot_bring_a_probe_against_that_of_its_rule() {
    let home = Home::new();
    let rule = "version = 1\n[[rule]]\nmatch = \"cli:sh *\"\n[rule.probe]\ncmd = [\"test\", \"-e\", \"world\"]\nquiet = \"1ms\"\n";
    home.file("semel.toml", rule);
    let script = "echo x >> world; echo timed out >&2; exit 1";
    for _ in 0..2 {
        // Its own would say no, and let it run again.
        assert_eq!(
            home.run(&["--key", "k", "--probe", "false", "--probe-quiet", "1ms"], script).code,
            Some(0)
        );
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_program_that_cannot_be_started_leaves_no_doubt() {
    let home = Home::new();
    let script = home.file("no-shebang", "echo x >> world\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("executable");
    let ran = home.semel(["run", "--key", "k", "--json", "--", "./no-shebang"]);
    assert_eq!((ran.code, answer(&ran)["code"].as_str()), (Some(126), Some("not_started")), "{ran:?}");
}

#[test]
fn a_slow_reader_gets_everything_and_so_does_the_record() {
    let home = Home::new();
    let script = "head -c 600000 /dev/zero | tr '\\0' a; echo end";
    let mut command = home.command(["run", "--key", "k", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("semel starts");
    let mut out = child.stdout.take().expect("a pipe");
    // The command is long done when its output is asked for.
    let waited = std::process::Command::new("sleep").arg("2").status();
    assert!(waited.is_ok());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut out, &mut text).expect("text");
    child.wait().expect("semel ends");
    assert_eq!(text.len(), 600_004);
    assert_eq!(home.run(&["--key", "k"], script).stdout.len(), 600_004);
}

#[test]
fn a_pipe_that_does_not_block_loses_nothing() {
    let home = Home::new();
    let script = "head -c 300000 /dev/zero | tr '\\0' a";
    for _ in 0..2 {
        let (read, write) = std::io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(write.as_fd(), true).expect("it does not block");
        let mut command = home.command(["run", "--key", "k", "--", "sh", "-c", script]);
        let mut child = command.stdout(write).stderr(Stdio::null()).spawn().expect("semel starts");
        drop(command);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut { read }, &mut text).expect("text");
        child.wait().expect("semel ends");
        assert_eq!(text.len(), 300_000);
    }
}

#[test]
fn a_policy_that_is_a_link_to_nowhere_is_not_no_policy() {
    let home = Home::new();
    std::os::unix::fs::symlink("nowhere", home.work().join("semel.toml")).expect("a link");
    assert_eq!(home.run(&[], TOUCH).code, Some(125));
    assert_eq!(home.effects(), 0);
}

#[test]
fn a_child_that_left_its_group_and_lost_the_lock_is_still_seen() {
    let home = Home::new();
    // Its own session, its descriptors closed, and still to act when its parent is ended.
    let script = "setsid bash -c 'for fd in 3 4 5 6 7 8 9; do eval \"exec $fd>&-\"; done 2>/dev/null; \
                  sleep 1.5; echo x >> world' >/dev/null 2>&1 & sleep 30";
    let flags = [
        "--key",
        "k",
        "--timeout",
        "200ms",
        "--probe",
        "test -e world",
        "--probe-quiet",
        "1ms",
        "--wait",
        "0s",
    ];
    let first = home.run(&flags, script);
    assert_eq!(first.code, Some(121), "its answer is not known: {first:?}");
    let patient = [&flags[..8], &["--wait", "20s"]].concat();
    let second = home.run(&patient, script);
    assert_eq!((second.code, home.effects()), (Some(0), 1), "{second:?}");
}
