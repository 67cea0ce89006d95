//! The process that takes something back dies at every step of it. The next one finds out, and nothing is taken back
//! twice.

use super::{Till, id};
use crate::home::Ran;

/// Dies at this point, as kill -9 would have it.
fn undo_dying_at(till: &Till, charge: &str, point: &str) {
    let mut command = till.home.command(["--json", "ledger", "undo", charge, "--reason", "wrong order"]);
    let ran =
        Ran::of(command.env("SEMEL_FAILPOINTS", format!("{point}=abort")).output().expect("semel starts"));
    assert_eq!(ran.code, None, "{point}: it did not die: {ran:?}");
    assert!(ran.stderr.contains(&format!("failpoint {point}")), "{point}: {ran:?}");
}

#[test]
fn whatever_dies_on_the_way_nothing_is_taken_back_twice() {
    // Refunds by the first, what the second is told, refunds after it.
    let points = [
        ("gate.before_claim", 0, Some("ran"), 1),
        ("gate.after_claim", 0, None, 0),
        ("gate.before_send", 0, None, 0),
        ("gate.after_send", 1, None, 1),
        ("gate.before_settle", 1, None, 1),
        ("gate.after_settle", 1, Some("replayed"), 1),
        ("undo.before_link", 1, Some("replayed"), 1),
        ("undo.after_link", 1, Some("replayed"), 1),
        ("gate.before_deliver", 1, Some("replayed"), 1),
    ];
    for (point, by_first, second, in_all) in points {
        let till = Till::new();
        let charge = till.charged("7");
        undo_dying_at(&till, &charge, point);
        assert_eq!(till.refunds(), by_first, "{point}");
        let next = till.undo(&charge);
        let answer = next.json();
        match second {
            Some(outcome) => {
                assert_eq!((next.code, &answer["outcome"]), (Some(0), &outcome.into()), "{point}: {next:?}")
            }
            None => {
                assert_eq!((next.code, &answer["code"]), (Some(121), &"in_doubt".into()), "{point}: {next:?}")
            }
        }
        assert_eq!(till.refunds(), in_all, "{point}");
        // What is known of the effect itself is the same from both ends.
        let undone = till.show(&charge)["undone"]["by"].clone();
        assert_eq!(undone.is_string(), second.is_some(), "{point}: {undone}");
        if second.is_some() {
            assert_eq!(undone, id(&answer).as_str(), "{point}");
        }
    }
}

/// The undo is done and settled, and nobody has told the effect. A repeat of it must hear of that first.
#[test]
fn a_link_that_was_not_written_is_found_by_whoever_reads_first() {
    let till = Till::new();
    let charge = till.charged("7");
    undo_dying_at(&till, &charge, "undo.before_link");
    let repeat = till.charge(&[], "7").json();
    assert!(repeat["undone_by"].is_string(), "{repeat}");
    let journal = till.show(&charge)["journal"].to_string();
    assert!(journal.contains("\"undone\""), "and it is written down now: {journal}");

    let till = Till::new();
    let charge = till.charged("7");
    undo_dying_at(&till, &charge, "undo.before_link");
    let listed = till.home.json(["ledger", "list"])["items"].to_string();
    assert!(listed.contains(&till.show(&charge)["undone"]["by"].to_string()), "{listed}");
}

#[test]
fn a_link_that_was_not_written_is_written_before_the_secret_changes() {
    let till = Till::new();
    let charge = till.charged("7");
    undo_dying_at(&till, &charge, "undo.before_link");
    till.home.json(["ledger", "rotate-secret", "--reason", "leaked", "--replace"]);
    let shown = till.show(&charge);
    assert!(shown["undone"]["by"].is_string(), "{shown}");
    let journal: Vec<_> =
        shown["journal"].as_array().expect("lines").iter().map(|line| line["kind"].clone()).collect();
    assert!(journal.contains(&"undone".into()), "{journal:?}");
}

#[test]
fn an_undo_in_doubt_is_cleared_by_the_probe_of_its_own_rule_or_by_a_person() {
    let probe = "[rule.undo]\ncmd = [\"./refund.sh\", \"{reply.id}\"]\n\
                 [[rule]]\nmatch = \"cli:refund.sh *\"\n[rule.probe]\n\
                 cmd = [\"grep\", \"-qx\", \"{argv[1]}\", \"refunds\"]\nquiet = \"0s\"\n";
    let till = Till::with(probe);
    till.home.file("refunds", "");
    let charge = till.charged("7");
    undo_dying_at(&till, &charge, "gate.after_send");
    let next = till.undo(&charge);
    assert_eq!((next.code, &next.json()["evidence"]), (Some(0), &"probed".into()), "{next:?}");
    assert_eq!((till.refunds(), till.show(&charge)["undone"]["by"].is_string()), (1, true));

    let till = Till::new();
    let charge = till.charged("7");
    undo_dying_at(&till, &charge, "gate.after_claim");
    let refund = id(&till.undo(&charge).json());
    let resolve = ["ledger", "resolve", &refund, "--not-applied", "--reason", "no refund there"];
    assert_eq!(till.home.semel(resolve).code, Some(0));
    let next = till.undo(&charge);
    assert_eq!((next.code, &next.json()["outcome"]), (Some(0), &"ran".into()), "{next:?}");
    assert_eq!(till.refunds(), 1);
}
