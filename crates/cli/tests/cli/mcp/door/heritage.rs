//! What a process has left is told by the next one: to the run that it belongs to, and to nobody else.

use super::stage::Stage;
use crate::mcp::line::Line;
use crate::mcp::text;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const LEFT: &str = "An earlier call from here, whose answer may not have reached you";

fn order(order: &str, run: Option<&str>) -> Value {
    let meta = run.map_or(json!({}), |run| json!({"dev.semel/run-id": run}));
    json!({"name": "create_order", "arguments": {"order": order}, "_meta": meta})
}

/// The text of the answer to a call in this run.
fn told(line: &mut Line, name: &str, run: Option<&str>) -> String {
    text(&line.call_with(order(name, run)))
}

/// A server whose tool has its effect and then waits for a file, until it is told otherwise.
fn waiting() -> Stage {
    let stage = Stage::with_tools(&["create_order"]).rule("create_order", "class = \"consequential\"");
    let waits = json!({"create_order": {"until": stage.work().join("never")}});
    stage.tell(json!({"pages": [super::stage::listing(&["create_order"])], "calls": waits}));
    stage
}

/// Calls are with the server when semel is killed; the next server answers at once.
fn killed_in(stage: &Stage, mut line: Line, calls: Vec<Value>) {
    let before = stage.world().len();
    let asked = line.ask_all("tools/call", calls).len();
    stage.wait_until("they are with the server", || stage.world().len() == before + asked);
    line.kill();
    stage.tell(json!({"pages": [super::stage::listing(&["create_order"])]}));
}

#[test]
fn what_a_run_left_is_told_to_that_run_once_and_to_no_other() {
    for flags in [&[][..], &["--no-tools"]] {
        let stage = waiting();
        let left = vec![order("of a", Some("a")), order("of b", Some("b")), order("of none", None)];
        killed_in(&stage, stage.open_with(flags), left);
        let mut line = stage.open_with(flags);
        for (run, own) in [(Some("c"), None), (Some("b"), Some("of b")), (None, Some("of none"))] {
            let said = told(&mut line, &format!("{run:?}"), run);
            assert_eq!(said.matches(LEFT).count(), usize::from(own.is_some()), "{run:?}: {said}");
            assert!(own.is_none_or(|own| said.contains(own)), "{run:?}: {said}");
        }
        // Another one may begin where this one has ended: it is named to each run until that was told.
        line.close();
        let mut line = stage.open_with(flags);
        let said = told(&mut line, "a 2", Some("a"));
        assert!(said.matches(LEFT).count() == 1 && said.contains("of a"), "{said}");
        for run in [Some("a"), Some("b"), None] {
            assert!(!told(&mut line, &format!("{run:?} 3"), run).contains(LEFT), "once is enough");
        }
        assert_eq!(stage.world().len(), 10);
    }
}

/// A flag is stronger than what a call names, so all its calls are of one run.
#[test]
fn under_a_flag_that_names_the_run_all_calls_are_of_that_run() {
    let stage = waiting();
    killed_in(&stage, stage.open_with(&["--run", "outer"]), vec![order("1", Some("a"))]);
    assert!(!told(&mut stage.open_with(&["--run", "other"]), "2", Some("a")).contains(LEFT));
    assert!(told(&mut stage.open_with(&["--run", "outer"]), "3", Some("b")).contains(LEFT));
}

#[test]
fn what_is_too_much_for_one_answer_is_told_with_the_next_ones() {
    let stage = waiting();
    let left: Vec<Value> = (0..30).map(|n| order(&format!("left {n}"), None)).collect();
    killed_in(&stage, stage.open(), left);
    // Whoever ends before all was told has told nothing.
    let mut early = stage.open();
    let first = told(&mut early, "1", None);
    early.close();
    assert!(first.matches(LEFT).count() == 20 && first.contains("news of 10 more earlier calls"), "{first}");
    let mut line = stage.open();
    let all = told(&mut line, "2", None) + &told(&mut line, "3", None);
    let named: BTreeSet<usize> = (0..30)
        .filter(|n| all.contains(&format!("left {n} ")) || all.contains(&format!("left {n}\"")))
        .collect();
    assert_eq!((all.matches(LEFT).count(), named.len()), (30, 30), "{all}");
    assert!(!told(&mut line, "4", None).contains(LEFT));
    line.close();
    assert!(!told(&mut stage.open(), "5", None).contains(LEFT));
    assert_eq!(stage.world().len(), 35);
}

/// Others that use the same ledger meanwhile do not hide it.
#[test]
fn a_doubt_is_found_behind_much_that_was_done_since() {
    let stage = waiting();
    killed_in(&stage, stage.open(), vec![order("left", None)]);
    let mut other = stage.open_with(&["--run", "other"]);
    let many: Vec<Value> = (0..510).map(|n| order(&format!("other {n}"), None)).collect();
    for some in many.chunks(30) {
        for _ in other.ask_all("tools/call", some.to_vec()) {
            other.read_answer().expect("it is answered");
        }
    }
    let said = told(&mut stage.open(), "mine", None);
    assert!(said.contains(LEFT) && said.contains("left"), "{said}");
}
