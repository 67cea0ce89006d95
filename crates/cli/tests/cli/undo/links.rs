//! One undo for each effect, known from both ends.

use super::{Till, id};
use serde_json::json;
use std::process::Stdio;

#[test]
fn an_effect_is_taken_back_once_and_both_know_of_each_other() {
    let till = Till::new();
    let charge = till.charged("7");
    let undone = till.undo(&charge);
    let answer = undone.json();
    assert_eq!((undone.code, &answer["outcome"]), (Some(0), &"ran".into()), "{undone:?}");
    assert_eq!((&answer["undoes"], &answer["ok"]), (&charge.as_str().into(), &true.into()));
    let refund = id(&answer);
    let original = till.show(&charge);
    assert_eq!(original["undone"]["by"], refund.as_str(), "{original}");
    assert_eq!((&original["state"], &original["evidence"]), (&"applied".into(), &"reported".into()));
    let of_refund = till.show(&refund);
    assert_eq!(
        of_refund["undoes"],
        json!({"effect_id": charge, "by": "operator token alice", "reason": "wrong order"})
    );
    assert_eq!(
        (&of_refund["action"], &of_refund["class"]),
        (&"cli:refund.sh".into(), &"consequential".into())
    );
    // Whoever asks again is told so, by whatever reason.
    for reason in ["wrong order", "another reason"] {
        let again = till.home.semel(["--json", "ledger", "undo", &charge, "--reason", reason]);
        let answer = again.json();
        assert_eq!((again.code, &answer["outcome"]), (Some(0), &"replayed".into()), "{again:?}");
        assert_eq!((&answer["effect"], id(&answer)), (&"noop".into(), refund.clone()));
    }
    assert_eq!((till.charges(), till.refunds()), (1, 1));
}

#[test]
fn sixteen_who_want_it_back_at_once_get_one_undo() {
    let till = Till::new();
    super::script(&till.home, "refund.sh", "sleep 0.3; echo \"$1\" >> refunds; echo \"refunded $1\"");
    let charge = till.charged("7");
    let started: Vec<_> = (0..16)
        .map(|n| {
            let reason = format!("racer {n}");
            let mut command = till.home.command(["--json", "ledger", "undo", &charge, "--reason", &reason]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("semel starts")
        })
        .collect();
    let ended: Vec<_> = started
        .into_iter()
        .map(|child| crate::home::Ran::of(child.wait_with_output().expect("it ends")))
        .collect();
    let refund = till.show(&charge)["undone"]["by"].clone();
    for ran in &ended {
        assert_eq!((ran.code, &ran.json()["effect_id"]), (Some(0), &refund), "{ran:?}");
    }
    let ran = ended.iter().filter(|ran| ran.json()["outcome"] == "ran").count();
    assert_eq!((ran, till.refunds()), (1, 1));
}

/// The link follows the undo's own record: what was written down of it can be taken back.
#[test]
fn an_undo_that_did_not_happen_after_all_can_be_made_again() {
    let till = Till::new();
    let charge = till.charged("7");
    super::script(&till.home, "refund.sh", "exit 7");
    let refund = id(&till.undo(&charge).json());
    let rule = |words: [&str; 2]| {
        let ruled = till.home.semel([&["ledger"][..], &words, &[&refund, "--reason", "seen"]].concat());
        assert_eq!(ruled.code, Some(0), "{ruled:?}");
    };
    rule(["resolve", "--applied"]);
    assert_eq!(till.show(&charge)["undone"]["by"], refund.as_str());
    let again = till.home.semel(["ledger", "allow-repeat", &refund, "--reason", "twice"]);
    assert!(again.code != Some(0) && again.stderr.contains("done once"), "{again:?}");
    let reopened = till.home.semel(["ledger", "reopen", &refund, "--reason", "not so sure"]);
    assert_eq!(reopened.code, Some(0), "{reopened:?}");
    rule(["resolve", "--not-applied"]);
    assert!(till.show(&charge)["undone"].is_null(), "{}", till.show(&charge));
    assert!(till.charge(&[], "7").json()["undone_by"].is_null());
    super::script(&till.home, "refund.sh", "echo \"$1\" >> refunds; echo \"refunded $1\"");
    let undone = till.undo(&charge);
    assert_eq!((undone.code, &undone.json()["outcome"]), (Some(0), &"ran".into()), "{undone:?}");
    assert_eq!((till.refunds(), &till.show(&charge)["undone"]["by"]), (1, &refund.as_str().into()));
}

#[test]
fn a_repeat_of_what_was_undone_is_told_so_and_can_be_done_anew_on_purpose() {
    let till = Till::new();
    let charge = till.charged("7");
    let refund = id(&till.undo(&charge).json());
    let repeat = till.charge(&[], "7");
    let answer = repeat.json();
    assert_eq!((&answer["outcome"], &answer["effect"]), (&"replayed".into(), &"noop".into()), "{repeat:?}");
    assert_eq!(answer["undone_by"], refund.as_str());
    let reason = answer["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("undone just now by {refund}")), "{reason}");
    // Even where nobody listens to talk.
    let quiet = till.home.semel(["-q", "run", "--", "./charge.sh", "7"]);
    assert!(quiet.stderr.contains(&refund), "{quiet:?}");
    let anew = till.charge(&["--again", "it was right after all"], "7");
    assert_eq!((anew.code, &anew.json()["outcome"]), (Some(0), &"ran".into()), "{anew:?}");
    assert_eq!(anew.json().get("undone_by"), None);
    assert_eq!((till.charges(), till.refunds()), (2, 1));
}

/// Only the newest effect of a record takes marks; an older one knows its undo all the same.
#[test]
fn an_older_effect_of_a_record_can_be_undone_too() {
    let till = Till::new();
    super::script(
        &till.home,
        "charge.sh",
        "echo \"$1\" >> charges; echo \"{\\\"id\\\": \\\"ch_$(wc -l < charges)\\\"}\"",
    );
    let first = till.charged("7");
    let second = id(&till.charge(&["--again", "one more"], "7").json());
    assert_eq!(till.undo(&first).code, Some(0));
    assert!(till.show(&first)["undone"]["by"].is_string());
    assert!(till.show(&second)["undone"].is_null());
    assert_eq!(till.undo(&first).json()["outcome"], "replayed");
    assert_eq!(till.undo(&second).json()["outcome"], "ran");
    let refunds = std::fs::read_to_string(till.home.work().join("refunds")).expect("refunds");
    assert_eq!(refunds, "ch_1\nch_2\n");
    // The repeat for the same reason finds its own occurrence, and that it was undone.
    let again = till.charge(&["--again", "one more"], "7").json();
    assert!(again["reason"].as_str().is_some_and(|why| why.contains("undone")), "{again}");
}

#[test]
fn an_undo_can_be_taken_back_where_its_own_rule_says_how() {
    let rule = "[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.id}\"]\n\
                [[rule]]\nmatch = \"cli:refund.sh *\"\n[rule.undo]\ncmd = [\"./charge.sh\", \"{argv[1]}\"]\n";
    let till = Till::with(rule);
    let charge = till.charged("7");
    let refund = id(&till.undo(&charge).json());
    let redone = till.undo(&refund);
    assert_eq!((redone.code, &redone.json()["undoes"]), (Some(0), &refund.as_str().into()), "{redone:?}");
    assert_eq!(till.show(&refund)["undone"]["by"], id(&redone.json()).as_str());
    assert_eq!((till.charges(), till.refunds()), (2, 1));
}

#[test]
fn a_cancelled_run_says_what_can_be_undone_and_its_fence_holds_no_undo() {
    let till = Till::new();
    let charge = id(&till.charge(&["--run", "r1"], "7").json());
    till.home.semel(["run", "--run", "r1", "--", "sh", "-c", "true"]);
    let cancelled = till.home.json(["cancel", "r1"]);
    let undo = cancelled["undo"].as_array().expect("a list");
    assert_eq!(undo.len(), 1, "{cancelled}");
    assert_eq!(
        (&undo[0]["effect_id"], &undo[0]["call"]),
        (&charge.as_str().into(), &"cmd ./refund.sh ch_7".into())
    );
    let text = till.home.semel(["cancel", "r1"]).stdout;
    assert!(text.contains(&format!("undo: 1\n  {charge}  cmd ./refund.sh ch_7\n")), "{text}");
    assert_eq!(till.undo(&charge).code, Some(0));
    assert_eq!(till.home.json(["cancel", "r1"])["undo"], json!([]), "it was");
    assert_eq!(till.refunds(), 1);
}

#[test]
fn lists_say_what_was_undone() {
    let till = Till::new();
    let charge = id(&till.charge(&["--run", "r1"], "7").json());
    let refund = id(&till.undo(&charge).json());
    let list = till.home.semel(["ledger", "list"]).stdout;
    assert!(list.contains(&format!("undone by {refund}")), "{list}");
    let markdown = till.home.semel(["ledger", "--run", "r1", "--markdown"]).stdout;
    assert!(markdown.contains("UNDONE") && markdown.contains(&refund), "{markdown}");
    let shown = till.home.semel(["ledger", "show", &refund]).stdout;
    assert!(shown.contains(&format!("undoes        {charge}, operator token alice: wrong order")), "{shown}");
}
