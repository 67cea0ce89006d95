//! Many at once: idle connections, waiters, and what is under way when semel is told to stop.

use super::line::Line;
use super::stage::{CASE, JSON, Stage, asked};
use crate::serve::served::{Served, TOKEN};
use serde_json::json;

/// Fewer than a machine's usual limit of open files; `SEMEL_EVERY_BYTE` asks for more.
fn crowd() -> usize {
    #[allow(clippy::disallowed_methods, reason = "how much to try is the caller's choice")]
    if std::env::var_os("SEMEL_EVERY_BYTE").is_some() { 8_000 } else { 400 }
}

#[test]
fn idle_connections_and_waiters_hold_nobody_else_up() {
    let stage = Stage::patient();
    let idle: Vec<Line> = (0..crowd()).map(|_| stage.line()).collect();
    stage.world.fail("waited for", json!({"hold": "long"}));
    let headers = [("Semel-Token", TOKEN), (CASE, "waited for"), ("Idempotency-Key", "waited for"), JSON];
    let mut waiting: Vec<Line> = (0..200).map(|_| stage.line()).collect();
    for line in &mut waiting {
        line.request("POST", "/p/plain/rest", &headers, "{}");
    }
    stage.home.wait_until("one of them was sent", || stage.world.of("waited for").effects == 1);
    for n in 0..10 {
        assert_eq!(stage.post(&format!("other {n}"), "{}").outcome(), "ran");
    }
    stage.world.release("long");
    let mut answers = waiting.into_iter().map(|mut line| line.answer().expect("an answer"));
    assert!(answers.all(|answer| matches!(answer.status, 201 | 409 | 503)));
    assert_eq!(stage.world.of("waited for").requests, 1);
    drop(idle);
}

/// Half of them are answered while semel waits for them; the rest never.
#[test]
fn told_to_stop_with_a_hundred_under_way_it_finishes_or_says_that_nobody_knows() {
    let Stage { home, world, mut semel } = Stage::patient();
    let cases: Vec<String> =
        (0..100).map(|n| format!("{} {n}", if n % 2 == 0 { "soon" } else { "never" })).collect();
    let faults: Vec<_> =
        cases.iter().map(|case| json!({"case": case, "hold": case.split(' ').next()})).collect();
    world.tell(&json!({"next": faults}));
    let mut lines: Vec<Line> = cases
        .iter()
        .map(|case| {
            let mut line = Line::to(&semel.address);
            let headers = [("Semel-Token", TOKEN), (CASE, case), ("Idempotency-Key", case), JSON];
            line.request("POST", "/p/plain/rest", &headers, "{}");
            line
        })
        .collect();
    home.wait_until("all were sent", || world.effects() == 100);
    let stopped = std::thread::spawn(move || semel.stop());
    world.release("soon");
    let answers: Vec<_> = lines.iter_mut().map(Line::answer).collect();
    assert_eq!(stopped.join().expect("it ends").code(), Some(0));
    let again = Served::again(&home);
    for (case, first) in cases.iter().zip(answers) {
        let retry = asked(
            &again.address,
            "POST",
            "/p/plain/rest",
            &[(CASE, case), ("Idempotency-Key", case), JSON],
            "{}",
        );
        match case.starts_with("soon") {
            true => retry.assert_replayed(&first.expect("it was answered in time")),
            false => retry.assert_in_doubt(),
        }
        assert_eq!(world.of(case).requests, 1, "{case}");
    }
    let counts = &home.json(["ledger"])["counts"];
    assert_eq!((&counts["in_flight"], &counts["in_doubt"]), (&json!(0), &json!(50)), "{counts}");
}
