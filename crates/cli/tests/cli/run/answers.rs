use super::{TOUCH, answer};
use crate::home::Home;
use serde_json::json;

#[test]
fn the_second_call_with_one_key_answers_noop_and_the_world_changed_once() {
    for flag in ["--key", "--idempotency-key"] {
        let home = Home::new();
        let first = home.run(&[flag, "k"], TOUCH);
        assert_eq!((first.code, first.stdout.as_str()), (Some(0), "touched\n"));
        let second = home.run(&[flag, "k", "--json"], TOUCH);
        assert_eq!(second.code, Some(0));
        let answer = answer(&second);
        assert_eq!(answer["ok"], true);
        assert_eq!(answer["effect"], "noop");
        assert_eq!(answer["outcome"], "replayed");
        assert_eq!(answer["data"], json!({"exit_code": 0, "stdout": "touched\n", "stderr": ""}));
        assert_eq!(home.effects(), 1);
    }
}

#[test]
fn the_answer_of_a_first_run_has_every_field() {
    let home = Home::new();
    let ran = home.run(&["--key", "k", "--effect", "sent", "--json"], "echo hello");
    let mut answer = answer(&ran);
    assert!(answer["effect_id"].as_str().is_some_and(|id| id.starts_with("ef_")), "{answer}");
    answer["effect_id"] = json!("ef_");
    assert_eq!(
        answer,
        json!({
            "ok": true, "effect": "sent", "outcome": "ran", "effect_id": "ef_", "attempt": 1, "tier": "opaque",
            "evidence": "reported", "reason": null,
            "data": {"exit_code": 0, "exit_reading": "exit 0", "stdout": "hello\n", "stderr": ""}
        })
    );
}

#[test]
fn a_refusal_passes_the_commands_own_code_and_the_next_call_may_run() {
    let home = Home::new();
    let flags = ["--key", "k", "--json", "--refused-exit", "3"];
    let refused = home.run(&flags, "echo x >> tries; exit 3");
    let first = answer(&refused);
    assert_eq!(refused.code, Some(3));
    assert_eq!(first["code"], "upstream_refused");
    assert_eq!(first["is_it_safe_to_retry"], "yes");
    assert_eq!(first["data"]["exit_reading"], "exit 3, listed as a refusal");
    assert_eq!(home.run(&flags, "echo x >> tries; exit 3").code, Some(3));
    assert_eq!(home.lines("tries"), 2);
}

#[test]
fn a_command_that_cannot_be_started_is_not_recorded() {
    let home = Home::new();
    let missing = home.semel(["run", "--key", "k", "--json", "--", "no-such-program"]);
    assert_eq!(missing.code, Some(127));
    assert_eq!(missing.json()["code"], "not_started");
    home.file("plain", "not a program");
    assert_eq!(home.semel(["run", "--key", "k", "--", "./plain"]).code, Some(126));
    // Nothing of it is held against the key.
    assert_eq!(home.run(&["--key", "k"], TOUCH).code, Some(0));
    assert_eq!(home.effects(), 1);
}

#[test]
fn the_tools_own_word_for_its_effect_is_taken_and_a_queue_is_only_accepted() {
    let home = Home::new();
    let said = home.run(&["--json"], r#"echo '{"effect": "deleted"}'"#);
    assert_eq!(answer(&said)["effect"], "deleted");
    let queued = home.run(&["--json"], r#"echo '{"status": "queued"}'"#);
    assert_eq!(answer(&queued)["evidence"], "accepted");
    assert_eq!(answer(&queued)["reason"], "accepted, not confirmed");
}

#[test]
fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let home = Home::new();
    let before = answer(&home.run(&["--dry-run", "--json", "--key", "k"], TOUCH));
    assert_eq!((&before["would"], &before["effect"]), (&json!("run"), &json!("would_update")));
    assert_eq!(before["intent_digest"].as_str().map(str::len), Some(64));
    assert_eq!(home.effects(), 0);
    home.run(&["--key", "k"], TOUCH);
    let after = answer(&home.run(&["--dry-run", "--json", "--key", "k"], TOUCH));
    assert_eq!((&after["would"], &after["effect"]), (&json!("replay"), &json!("would_noop")));
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_dry_run_names_the_effect_that_the_run_will_have() {
    let home = Home::new();
    for (flags, script, would) in [
        (&["--effect", "created"][..], "true", "would_create"),
        (&["--effect", "sent"], "true", "would_send"),
        (&["--effect", "noop"], "true", "would_noop"),
        (&[], "true", "would_update"),
    ] {
        let dry = answer(&home.run(&[&["--dry-run", "--json"], flags].concat(), script));
        assert_eq!(dry["effect"], would, "{flags:?}");
    }
    let mkdir = home.semel(["run", "--dry-run", "--json", "--", "mkdir", "new"]).json();
    let made = home.json(["run", "--", "mkdir", "new"]);
    assert_eq!((&mkdir["effect"], &made["effect"]), (&json!("would_create"), &json!("created")));
}

#[test]
fn an_answer_that_nobody_read_is_handed_over_instead_of_run_again() {
    let home = Home::new();
    let args = ["run", "--", "sh", "-c", "sleep 0.2; echo x >> world; echo touched"];
    let mut child = home.command(args).stdout(std::process::Stdio::piped()).spawn().expect("semel starts");
    drop(child.stdout.take());
    child.wait().expect("semel ends");
    // Without a key and of class act: a delivered success would run again.
    let second = home.semel(args);
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), "touched\n"));
    assert_eq!(home.effects(), 1);
    home.semel(args);
    assert_eq!(home.effects(), 2);
}

#[test]
fn large_output_streams_through_and_only_its_fact_is_kept() {
    let home = Home::new();
    let script = "echo x >> world; head -c 3000000 /dev/zero | tr '\\0' a";
    assert_eq!(home.run(&["--key", "k"], script).stdout.len(), 3_000_000);
    let replay = home.run(&["--key", "k", "--json"], script);
    assert_eq!(replay.code, Some(0));
    let reason = answer(&replay)["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("3000000 bytes was not kept"), "{reason}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn output_that_is_no_text_comes_back_to_the_byte() {
    let home = Home::new();
    let args = ["run", "--key", "k", "--", "printf", "\\377\\000\\012b"];
    let bytes = |home: &Home| home.command(args).output().expect("semel runs").stdout;
    assert_eq!(bytes(&home), b"\xff\0\nb");
    assert_eq!(bytes(&home), b"\xff\0\nb");
    let json = home.semel(["run", "--json", "--key", "k", "--", "printf", "\\377\\000\\012b"]).json();
    assert_eq!(json["data"]["stdout_base64"], "/wAKYg==");
}

#[test]
fn a_hint_is_about_the_ledger_and_the_run_that_were_named() {
    let home = Home::new();
    let ledger = home.work().join("my ledger.db");
    let flags = ["--ledger", ledger.to_str().unwrap(), "--key", "k"];
    let held = home.run(&flags, "kill -9 $$");
    let hint = held.stderr.lines().find_map(|line| line.split_once("hint: ")).expect("a hint").1;
    let pasted = hint.replace("semel", env!("CARGO_BIN_EXE_semel")).replace("TEXT", "seen");
    let resolved = home.program(&["sh", "-c", &pasted].map(str::to_owned)).output().expect("a shell");
    assert!(resolved.status.success(), "{pasted}: {resolved:?}");
    let refused = |run: &str| {
        home.semel(["cancel", run]);
        home.run(&["--run", run], "true").stderr
    };
    assert!(refused("my run").contains("semel ledger --run 'my run'"));
}

#[test]
fn a_dry_run_leaves_no_trace() {
    let home = Home::new();
    let dry = home.run(&["--key", "k", "--dry-run"], super::TOUCH);
    assert_eq!((dry.code, home.effects()), (Some(0), 0), "{dry:?}");
    assert!(!home.state().exists(), "a ledger was founded");
    home.run(&["--key", "k"], super::TOUCH);
    let dry = home.run(&["--key", "k", "--dry-run", "--json"], super::TOUCH);
    assert_eq!((dry.json()["effect"].as_str(), home.effects()), (Some("would_noop"), 1), "{dry:?}");
}
