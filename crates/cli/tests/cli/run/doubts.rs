use super::{TOUCH, answer};
use crate::home::{Home, Ran};
use std::process::Stdio;

/// Changes the world, then loses its answer.
const LOSES: &str = "echo x >> world; echo 'connection reset by peer' >&2; exit 1";

#[test]
fn a_lost_answer_is_in_doubt_and_never_sent_again() {
    let home = Home::new();
    let first = home.run(&["--key", "k", "--json"], LOSES);
    assert_eq!(first.code, Some(121));
    let object = answer(&first);
    assert_eq!((object["code"].as_str(), object["effect"].as_str()), (Some("in_doubt"), Some("unknown")));
    assert_eq!(object["is_it_safe_to_retry"], "no");
    assert!(
        object["what_happened"].as_str().is_some_and(|text| text.contains("connection reset")),
        "{object}"
    );
    for _ in 0..3 {
        assert_eq!(home.run(&["--key", "k"], LOSES).code, Some(121));
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn death_by_signal_and_a_passed_timeout_are_doubts() {
    let home = Home::new();
    let died = home.run(&["--key", "a", "--json"], "kill -9 $$");
    assert_eq!(died.code, Some(121));
    assert_eq!(answer(&died)["data"]["exit_reading"], "it was killed by signal 9");
    let slow = home.run(&["--key", "b", "--json", "--timeout", "200ms"], "sleep 30");
    assert_eq!(slow.code, Some(121));
    assert_eq!(answer(&slow)["data"]["exit_reading"], "it ran into its timeout and was stopped");
}

#[test]
fn a_probe_that_finds_it_answers_for_the_lost_reply() {
    let home = Home::new();
    let flags = ["--key", "k", "--json", "--probe", "sh -c 'test -e world && echo found it'"];
    let first = home.run(&flags, LOSES);
    assert_eq!(first.code, Some(0));
    assert_eq!((answer(&first)["evidence"].as_str(), &answer(&first)["ok"]), (Some("probed"), &true.into()));
    let second = home.run(&flags, LOSES);
    assert_eq!(second.code, Some(0));
    assert_eq!(answer(&second)["outcome"], "replayed");
    assert_eq!(answer(&second)["data"]["stdout"], "found it\n");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_probe_gets_no_token_of_semels() {
    let home = Home::new();
    let names = ["SEMEL_OPERATOR_TOKEN", "SEMEL_SERVE_TOKEN", "SEMEL_TOKEN", "SEMEL_TOKEN_FILE"];
    let probe = "sh -c 'env > probed; test -e world'";
    let mut command = home.command(["run", "--key", "k", "--probe", probe, "--", "sh", "-c", LOSES]);
    let ran = Ran::of(command.envs(names.map(|name| (name, "t"))).output().expect("semel starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let seen = std::fs::read_to_string(home.work().join("probed")).expect("it was asked");
    assert!(seen.contains("PATH=") && !names.iter().any(|name| seen.contains(name)), "{seen}");
}

#[test]
fn an_answer_that_was_seen_before_the_doubt_is_not_given_twice() {
    let home = Home::new();
    let flags = ["--key", "k", "--probe", "cat world"];
    let script = "echo ch_1 >> world; cat world; kill -9 $$";
    for _ in 0..2 {
        let ran = home.run(&flags, script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ch_1\n"));
    }
}

#[test]
fn a_probe_that_finds_nothing_lets_the_next_call_run_after_the_quiet_time() {
    let home = Home::new();
    let flags = ["--key", "k", "--probe", "test -e world", "--probe-quiet", "50ms"];
    let lost = home.run(&flags, "echo timed out >&2; exit 1");
    assert_eq!(lost.code, Some(1), "it did not happen: {lost:?}");
    assert_eq!(home.run(&flags, "echo timed out >&2; exit 1").code, Some(1));
    assert_eq!(home.run(&["--key", "k"], "echo timed out >&2; exit 1").code, Some(121));
}

#[test]
fn a_no_before_the_quiet_time_does_not_count() {
    let home = Home::new();
    let flags = ["--key", "k", "--probe", "false", "--probe-quiet", "1h", "--wait", "200ms"];
    assert_eq!(home.run(&flags, LOSES).code, Some(121));
    assert_eq!(home.run(&flags, LOSES).code, Some(121));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_probe_that_fails_leaves_the_doubt() {
    let home = Home::new();
    for probe in ["sh -c 'exit 2'", "no-such-program", "sh -c 'kill -9 $$'"] {
        let ran = home.run(&["--key", "k", "--json", "--probe", probe], LOSES);
        assert_eq!(ran.code, Some(121), "{probe}");
        assert!(answer(&ran)["reason"].as_str().is_some_and(|why| why.contains("could not tell")), "{ran:?}");
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_wrapper_killed_with_its_command_running_is_in_flight_until_the_command_ends_and_then_in_doubt() {
    let home = Home::new();
    let script = "echo x >> world; sleep 1";
    let mut wrapper = home.start(&["--key", "k"], script);
    while home.effects() == 0 {
        std::thread::yield_now();
    }
    wrapper.kill().expect("it is killed");
    wrapper.wait().expect("it is gone");
    assert_eq!(home.run(&["--key", "k", "--wait", "0s"], script).code, Some(122));
    assert_eq!(home.run(&["--key", "k"], script).code, Some(121));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_signal_to_semel_goes_to_the_command_which_is_settled() {
    let home = Home::new();
    let script = "trap 'echo x >> world; exit 0' TERM; touch ready; while :; do sleep 0.05; done";
    let mut wrapper = home.start(&["--key", "k"], script);
    while !home.work().join("ready").exists() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(wrapper.id().cast_signed()).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is asked to end");
    assert_eq!(wrapper.wait().expect("it ends").code(), Some(0));
    assert_eq!(home.run(&["--key", "k"], script).code, Some(0));
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_table_reads_known_programs_and_a_rule_may_list_refusals() {
    let home = Home::new();
    let curl = home.file("curl", "#!/bin/sh\nexit $1\n");
    std::fs::set_permissions(&curl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let read = |code: &str| home.semel(["run", "--json", "--", "./curl", code]);
    for (code, exit, reading) in [
        ("7", 7, "exit 7: curl could not connect"),
        ("28", 121, "exit 28: curl timed out"),
        ("52", 121, "exit 52: curl got no answer"),
        ("3", 3, "exit 3: curl did not understand the request"),
    ] {
        let ran = read(code);
        assert_eq!((ran.code, ran.json()["data"]["exit_reading"].as_str()), (Some(exit), Some(reading)));
    }
    assert_eq!(home.run(&["--class", "consequential"], "exit 9").code, Some(121));
    // What was redirected, repeated, or one of several may have got through before; so may what a wrapper started.
    for words in [
        &["./curl", "7", "-L"][..],
        &["./curl", "7", "-sSL"],
        &["./curl", "7", "--retry", "2"],
        &["./curl", "7", "--next"],
        &["./curl", "7", "http://127.0.0.1:1/"],
        &["./curl", "7", "-K", "more"],
        &["./curl", "7", "-T", "{a,b}"],
        &["./curl", "7", "-sT[a-b]"],
        &["./curl", "7", "--follow"],
        &["./curl", "7", "--loc"],
        &["./curl", "7", "-sLd", "x=1"],
        &["nice", "./curl", "7"],
        &["timeout", "5", "./curl", "28"],
        &["env", "A=1", "./curl", "28"],
    ] {
        let ran = home.semel([&["run", "--json", "--"], words].concat());
        assert_eq!(ran.code, Some(121), "{words:?}: {ran:?}");
    }
    for words in [&["-sS", "-X", "POST", "-d", "x=1"][..], &["-XPOST", "-sd", "x=1"], &["-sSdHELLO"]] {
        let one = home.semel([&["run", "--json", "--", "./curl", "7"], words].concat());
        assert_eq!(one.code, Some(7), "{words:?}: {one:?}");
    }
    // Its settings may say the same, and do not show.
    std::fs::write(home.path().join(".curlrc"), "retry = 1\n").expect("settings");
    assert_eq!(home.semel(["run", "--json", "--", "./curl", "7", "-v"]).code, Some(121));
    let home = Home::new();
    home.file(
        "semel.toml",
        "version = 1\n[[rule]]\nmatch = \"cli:sh\"\nclass = \"consequential\"\nrefused_exit = [8]\n",
    );
    assert_eq!(home.run(&[], "exit 8").code, Some(8));
    assert_eq!(home.run(&[], TOUCH).code, Some(0));
}

#[test]
fn a_command_that_closes_what_it_inherited_still_counts_as_running() {
    let home = Home::new();
    // As sudo does: every descriptor but the first three is closed, the lock among them.
    let script = "for fd in 3 4 5 6 7 8 9; do eval \"exec $fd>&-\"; done 2>/dev/null; touch begun; sleep 1; echo x >> world";
    let probe = ["--key", "k", "--probe", "test -e world", "--probe-quiet", "1ms"];
    let args = [&["run"], &probe[..], &["--", "bash", "-c", script]].concat();
    let mut wrapper = home.command(args.clone()).stderr(Stdio::null()).spawn().expect("semel starts");
    while !home.work().join("begun").exists() {
        std::thread::yield_now();
    }
    wrapper.kill().expect("it is killed");
    wrapper.wait().expect("it is gone");
    let retried = home.semel(args);
    assert_eq!((retried.code, home.effects()), (Some(0), 1), "{retried:?}");
}

#[test]
fn a_failure_is_no_proof_while_what_the_command_started_goes_on() {
    let home = Home::new();
    let script = "(sleep 2; echo x >> world) >/dev/null 2>&1 & exit 3";
    let failed = home.run(&["--key", "k"], script);
    assert_eq!(failed.code, Some(121), "{failed:?}");
    assert!(failed.stderr.contains("still running"), "{failed:?}");
    let meanwhile = home.run(&["--key", "k", "--wait", "0s"], script);
    assert_eq!(meanwhile.code, Some(121), "{meanwhile:?}");
    while home.effects() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(home.run(&["--key", "k"], script).code, Some(121));
    assert_eq!(home.effects(), 1);
    // What ends a moment after its leader is no reason for a doubt.
    let short = "(sleep 0.1) >/dev/null 2>&1 & exit 3";
    assert_eq!(home.run(&["--key", "other", "--refused-exit", "3"], short).code, Some(3));
}

#[test]
fn a_lost_answer_is_read_at_the_end_of_a_long_stderr_too() {
    let home = Home::new();
    let script =
        "echo x >> world; head -c 3000000 /dev/zero | tr '\\0' 'e' >&2; echo connection reset >&2; exit 1";
    for _ in 0..2 {
        assert_eq!(home.run(&["--key", "k"], script).code, Some(121));
    }
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_rule_that_reads_every_failure_as_ambiguous_believes_no_proof() {
    let home = Home::new();
    let curl = home.file("curl", "#!/bin/sh\nexit 7\n");
    std::fs::set_permissions(&curl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    home.file("semel.toml", "version = 1\n[[rule]]\nmatch = \"cli:curl *\"\nfailure = \"in_doubt\"\n");
    assert_eq!(home.semel(["run", "--", "./curl", "http://127.0.0.1:1/"]).code, Some(121));
}

/// The second day: a person adds the rule that the documents recommend, and tries the very same command again.
#[test]
fn an_edited_policy_does_not_run_a_doubt_again() {
    let charge = "#!/bin/sh\necho $2 >> world\nkill -9 $$\n";
    let rule = "[[rule]]\nmatch = \"cli:charge.sh*\"\nclass = \"consequential\"\nkey = [\"argv[2]\"]\n";
    let probe = "[rule.probe]\ncmd = [\"grep\", \"-x\", \"{argv[2]}\", \"world\"]\nquiet = \"1ms\"\n";
    for (before, after, flags, code) in [
        ("", rule.to_owned(), &[][..], 121),
        ("", format!("{rule}{probe}"), &[], 0),
        ("", rule.replace("key = [\"argv[2]\"]", "content = [\"argv[1]\"]"), &[], 121),
        ("", String::new(), &["--key", "order-1001"], 121),
        (rule, String::new(), &[], 121),
    ] {
        let home = Home::new();
        let script = home.file("charge.sh", charge);
        std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("a file");
        home.file("semel.toml", &format!("version = 1\n{before}"));
        let call = |flags: &[&str]| {
            let line = ["--", "./charge.sh", "--order", "1001"];
            home.semel([&["run"], flags, &line].concat())
        };
        assert_eq!(call(&[]).code, Some(121));
        home.file("semel.toml", &format!("version = 1\n{after}"));
        let again = call(flags);
        let world = std::fs::read_to_string(home.work().join("world")).expect("it ran");
        assert_eq!((world.as_str(), again.code), ("1001\n", Some(code)), "{after}: {again:?}");
        assert!(code == 0 || !again.stderr.contains("--again"), "{again:?}");
        // Whoever edits the policy hears of it, unless the caller's key is the edit, or nothing is left open.
        let told = |args: &[&str]| {
            let said = home.semel(args.iter().copied());
            format!("{}{}", said.stdout, said.stderr).contains("identities that this policy no longer uses")
        };
        let expected = code == 121 && flags.is_empty();
        assert_eq!((told(&["policy", "lint"]), told(&["doctor"])), (expected, expected), "{after}");
        // Another order is another effect.
        let other = home.semel([&["run"], flags, &["--", "./charge.sh", "--order", "1002"][..]].concat());
        let count = std::fs::read_to_string(home.work().join("world")).expect("it ran").lines().count();
        assert_eq!(count, 2, "{after}: {other:?}");
    }
}
