//! Many at once: idle connections, waiters, and what is under way when semel is told to stop.

use super::line::{Judge, request};
use super::stage::{CASE, JSON, PLAIN, Stage, asked};
use super::world::World;
use crate::api::client::token;
use crate::home::Home;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::RawClient;
use serde_json::json;

/// Idle connections, and requests that wait. Fewer than a machine's usual limit of open files; `SEMEL_EVERY_BYTE` asks
/// for more.
fn crowd() -> (usize, usize) {
    #[allow(clippy::disallowed_methods, reason = "how much to try is the caller's choice")]
    if std::env::var_os("SEMEL_EVERY_BYTE").is_some() { (8_000, 1_000) } else { (200, 150) }
}

/// A request that has not been answered yet, of somebody with this token.
fn begun(address: &str, token: &str, case: &str) -> RawClient {
    let mut line = RawClient::connect(address);
    let headers = [("Semel-Token", token), (CASE, case), ("Idempotency-Key", case), JSON];
    request(&mut line, "POST", &format!("{PLAIN}/rest"), &headers, "{}");
    line
}

#[test]
fn idle_connections_and_waiters_hold_nobody_else_up() {
    let stage = Stage::patient();
    let [greedy, modest] = ["greedy", "modest"].map(|tenant| token(&stage.home, "agent", tenant, "agent"));
    let (idle, waiting) = crowd();
    let idle: Vec<RawClient> = (0..idle).map(|_| stage.line()).collect();
    stage.world.fail("waited for", json!({"hold": "long"}));
    let waiting: Vec<RawClient> =
        (0..waiting).map(|_| begun(&stage.semel.address, &greedy, "waited for")).collect();
    stage.home.wait_until("one of them was sent", || stage.world.of("waited for").effects == 1);
    // Whose turn comes, while all of those wait: another tenant's, and the operator's.
    for n in 0..10 {
        let case = format!("modest {n}");
        let answer = begun(&stage.semel.address, &modest, &case).answer();
        assert_eq!((answer.outcome(), stage.world.of(&case).effects), ("ran", 1));
        assert_eq!(stage.post(&format!("other {n}"), "{}").outcome(), "ran");
    }
    assert_eq!(stage.world.of("waited for").requests, 1);
    stage.world.release("long");
    let mut answers = waiting.into_iter().map(|mut line| line.next_answer());
    assert!(answers.all(|answer| matches!(answer.status, 201 | 409 | 503)));
    assert_eq!(stage.world.of("waited for").requests, 1);
    drop(idle);
}

/// Sixteen connections, fifteen requests, of which nobody has more than three quarters.
#[test]
fn a_tenant_that_waits_with_all_it_may_leaves_room_for_another() {
    let home = Home::new();
    let world = World::start(&home);
    let policy = format!("[defaults]\nwait = \"30s\"\n[upstream.plain]\nurl = \"{}\"\n", world.url());
    let semel = Served::start_with_files(&home, &policy, 160);
    let [greedy, modest] = ["greedy", "modest"].map(|tenant| token(&home, "agent", tenant, "agent"));
    world.fail("waited for", json!({"hold": "long"}));
    let waiting: Vec<RawClient> = (0..12).map(|_| begun(&semel.address, &greedy, "waited for")).collect();
    let under_way = || {
        let headers = format!("Authorization: Bearer {TOKEN}\r\n");
        let text = semel.ask_raw("GET /metrics HTTP/1.1", &headers, "").answer().body;
        // This question is one too.
        text.contains("semel_requests_open 13\n")
    };
    home.wait_until("all of them wait", under_way);
    for case in ["waited for", "something else"] {
        let refused = begun(&semel.address, &greedy, case).answer();
        let said = refused.body;
        assert_eq!(refused.status, 503, "{said}");
        assert!(said.contains("too many requests at once"), "{said}");
    }
    for n in 0..3 {
        let case = format!("modest {n}");
        let answer = begun(&semel.address, &modest, &case).answer();
        assert_eq!((answer.outcome(), world.of(&case).effects), ("ran", 1));
    }
    let listed = home.json(["ledger", "list", "--limit", "100"]);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(4), "nothing is claimed for who was refused");
    world.release("long");
    for mut line in waiting {
        assert_eq!(line.next_answer().status, 201);
    }
    assert_eq!((world.of("waited for").requests, world.of("something else").requests), (1, 0));
}

/// Half of them are answered while semel waits for them; the rest never.
#[test]
fn told_to_stop_with_a_hundred_under_way_it_finishes_or_says_that_nobody_knows() {
    let Stage { home, world, mut semel } = Stage::with("2m", "[serve]\ngrace = \"3s\"\n");
    let cases: Vec<String> =
        (0..100).map(|n| format!("{} {n}", if n % 2 == 0 { "soon" } else { "never" })).collect();
    let faults: Vec<_> =
        cases.iter().map(|case| json!({"case": case, "hold": case.split(' ').next()})).collect();
    world.tell(&json!({"next": faults}));
    let mut lines: Vec<RawClient> = cases
        .iter()
        .map(|case| {
            let mut line = RawClient::connect(&semel.address);
            let headers = [("Semel-Token", TOKEN), (CASE, case), ("Idempotency-Key", case), JSON];
            request(&mut line, "POST", "/p/plain/rest", &headers, "{}");
            line
        })
        .collect();
    home.wait_until("all were sent", || world.effects() == 100);
    let stopped = std::thread::spawn(move || semel.stop());
    world.release("soon");
    let answers: Vec<_> = lines.iter_mut().map(RawClient::answer_if_any).collect();
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
