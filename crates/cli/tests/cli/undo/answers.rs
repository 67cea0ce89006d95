//! What cannot be taken back, and how that is said. Nothing is sent for it.

use super::{Till, id};
use std::process::Stdio;

#[track_caller]
fn refused(till: &Till, effect: &str, exit: i32, code: &str, says: &str) {
    let ran = till.undo(effect);
    let answer = ran.json();
    assert_eq!((ran.code, &answer["code"]), (Some(exit), &code.into()), "{ran:?}");
    assert_eq!(answer["effect_id"], effect, "it speaks of the effect itself");
    let what = answer["what_happened"].as_str().expect("words");
    assert!(what.contains(says), "{what}");
    assert_eq!(till.refunds(), 0);
}

#[test]
fn a_doubt_is_resolved_first() {
    let till = Till::new();
    super::script(&till.home, "charge.sh", "echo \"$1\" >> charges; kill -9 $$");
    let doubt = id(&till.charge(&[], "7").json());
    refused(&till, &doubt, 121, "in_doubt", "Resolve it first.");
    // Ruled to be there, its answer is still not known.
    let resolve = ["ledger", "resolve", &doubt, "--applied", "--reason", "seen"];
    assert_eq!(till.home.semel(resolve).code, Some(0));
    refused(&till, &doubt, 120, "cannot_undo", "a ruling marked it as done");
}

#[test]
fn what_runs_is_waited_for() {
    let till = Till::new();
    super::script(&till.home, "charge.sh", "echo \"$1\" >> charges; while [ ! -e go ]; do sleep 0.01; done");
    let mut command = till.home.command(["run", "--", "./charge.sh", "7"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts");
    while till.charges() == 0 {
        std::hint::spin_loop();
    }
    let running = till.home.json(["ledger", "list"])["items"][0]["effect_id"].clone();
    refused(&till, running.as_str().expect("an id"), 122, "in_flight", "has not reported its end");
    till.home.file("go", "");
    assert!(child.wait_with_output().expect("it ends").status.success());
}

#[test]
fn what_did_not_happen_is_not_taken_back() {
    let till = Till::new();
    super::script(&till.home, "charge.sh", "exit 3");
    let policy = std::fs::read_to_string(till.home.work().join("semel.toml")).expect("a policy");
    till.home.file("semel.toml", &policy.replace("[rule.undo]", "refused_exit = [3]\n[rule.undo]"));
    let not = id(&till.charge(&[], "7").json());
    refused(&till, &not, 120, "cannot_undo", "it did not happen (refused: exit 3");
}

#[test]
fn what_was_disproved_is_not_taken_back() {
    let undo = "[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.id}\"]\n\
                [rule.confirm]\ncmd = [\"false\"]\nok = \"resp.exit == 0\"\nwithin = \"100ms\"\n";
    let till = Till::with(undo);
    let refuted = id(&till.charge(&[], "7").json());
    refused(&till, &refuted, 120, "refuted", "although it had been reported as done");
}

#[test]
fn without_an_undo_nothing_is_tried() {
    let till = Till::with("");
    let charge = till.charged("7");
    refused(&till, &charge, 120, "cannot_undo", "its rule did not say how");
    // A rule that comes later does not know what the call was given and what it answered.
    let policy = std::fs::read_to_string(till.home.work().join("semel.toml")).expect("a policy");
    till.home
        .file("semel.toml", &format!("{policy}[rule.undo]\ncmd = [\"./refund.sh\", \"{{reply.id}}\"]\n"));
    refused(&till, &charge, 120, "cannot_undo", "when it was done");
}

#[test]
fn a_value_that_is_missing_is_named() {
    let till = Till::with("[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.charge}\"]\n");
    let charge = till.charged("7");
    refused(&till, &charge, 120, "cannot_undo", "`reply.charge` is not there");
    let shown = till.home.semel(["ledger", "show", &charge]).stdout;
    assert!(shown.contains("undo          none: `reply.charge` is not there"), "{shown}");
}

#[test]
fn an_undo_that_needs_a_secret_is_not_kept() {
    let till = Till::with("[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.id}\", \"{reply.api_key}\"]\n");
    super::script(
        &till.home,
        "charge.sh",
        "echo \"$1\" >> charges; echo '{\"id\": \"ch_7\", \"api_key\": \"sk_hunter22\"}'",
    );
    let charge = till.charged("7");
    refused(&till, &charge, 120, "cannot_undo", "it needs a secret");
    for file in till.home.state_files().iter().filter(|file| file.is_file()) {
        let bytes = std::fs::read(file).expect("it can be read");
        assert!(!bytes.windows(11).any(|window| window == b"sk_hunter22"), "{}", file.display());
    }
}

#[test]
fn an_unknown_effect_is_an_error() {
    let till = Till::new();
    till.charged("7");
    let ran = till.undo("ef_00000000000000000000000007");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("no effect"), "{ran:?}");
}

#[test]
fn a_dry_run_says_what_would_be_called_and_does_nothing() {
    let till = Till::new();
    let charge = till.charged("7");
    let ran = till.home.semel(["ledger", "undo", &charge, "--reason", "r", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, format!("undo {charge}: cmd ./refund.sh ch_7\n"));
    let json = till.home.json(["ledger", "undo", &charge, "--reason", "r", "--dry-run"]);
    assert_eq!((&json["would"], &json["outcome"]), (&"run".into(), &"dry_run".into()), "{json}");
    assert_eq!((till.refunds(), till.show(&charge)["undone"].is_null()), (0, true));
    till.undo(&charge);
    let json = till.home.json(["ledger", "undo", &charge, "--reason", "r", "--dry-run"]);
    assert_eq!((&json["would"], till.refunds()), (&"replay".into(), 1), "{json}");
}

#[test]
fn a_person_sees_what_the_undo_printed_and_what_became_of_it() {
    let till = Till::new();
    let charge = till.charged("7");
    let ran = till.home.semel(["ledger", "undo", &charge, "--reason", "wrong order"]);
    let refund = till.show(&charge)["undone"]["by"].as_str().expect("an id").to_owned();
    let expected = format!("refunded ch_7\nUndone: {charge} by {refund} (cmd ./refund.sh ch_7)\n");
    assert_eq!((ran.code, ran.stdout), (Some(0), expected));
    let again = till.home.semel(["ledger", "undo", &charge, "--reason", "wrong order"]);
    let when = again.stdout.strip_prefix(&format!("Undone before: {charge} by {refund}; "));
    assert!(when.is_some_and(|when| when.contains("done")), "{again:?}");
}
