//! Two servers on one ledger are one boundary.

use super::line::{Judge, request};
use super::models::{is_whole, prompt};
use super::sdk::{
    ANTHROPIC_NODE, ANTHROPIC_PYTHON, Api, OPENAI_NODE, OPENAI_PYTHON, STRIPE_NODE, STRIPE_PYTHON, Sdk,
};
use super::stage::{CASE, JSON, Stage, asked, token};
use semel_testkit::http::RawClient;
use serde_json::{Value, json};

fn step(sdk: Sdk, case: &str) -> Value {
    if sdk.api != Api::Stripe {
        return prompt(sdk, case);
    }
    let args = json!({"amount": 100, "currency": "eur", "customer": format!("cus {case}")});
    json!({"do": "charges.create", "args": args, "headers": {CASE: case}})
}

/// Two agents in two languages ask two servers for the same thing at once: one of them joins.
fn joined(first: Sdk, second: Sdk) {
    let stage = Stage::patient();
    let other = stage.second();
    let case = format!("{:?}", first.api);
    let (hold, release) = (json!({"hold": "both"}), "both");
    stage.world.fail(&case, hold);
    let ask = |sdk: Sdk, address: &str| {
        sdk.together(&stage.home, &sdk.api.guarded(address), &[step(sdk, &case)], &token()).remove(0)
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| ask(first, &stage.semel.address));
        stage.home.wait_until("the first was sent", || stage.world.of(&case).effects == 1);
        let two = scope.spawn(|| ask(second, &other.address));
        // Nothing shows that the second waits, but that it came and did nothing else.
        stage.home.wait_until("the second has come", || is_connected(&other.address));
        std::thread::park_timeout(std::time::Duration::from_millis(400));
        stage.world.release(release);
        (one.join().expect("it brings something"), two.join().expect("it brings something"))
    });
    assert!(one.ok() && two.ok(), "{} {}", one, two);
    assert_eq!((one.id(), one.body()), (two.id(), two.body()), "{} {}", one, two);
    assert!(stage.world.made(&case, one.id()));
    let happened = stage.world.of(&case);
    assert_eq!((happened.requests, happened.effects), (1, 1), "{case}");
}

/// Whether somebody has a connection to that address, as the kernel lists them.
fn is_connected(address: &str) -> bool {
    const ESTABLISHED: &str = "01";
    let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).expect("a port");
    let (local, list) = (format!(":{port:04X}"), std::fs::read_to_string("/proc/net/tcp").expect("a list"));
    list.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.len() > 3 && words[1].ends_with(&local) && words[3] == ESTABLISHED
    })
}

#[test]
fn the_twin_of_a_charge_under_way_joins_it_through_another_process() {
    joined(STRIPE_PYTHON, STRIPE_NODE);
}

#[test]
fn the_twin_of_a_prompt_under_way_joins_it_through_another_process() {
    joined(OPENAI_PYTHON, OPENAI_NODE);
    joined(ANTHROPIC_NODE, ANTHROPIC_PYTHON);
}

/// The first server dies with the answer in hand, or before it had one; the second knows what there is to know.
#[test]
fn what_one_process_finished_the_other_answers() {
    let mut stage = Stage::new();
    let other = stage.second();
    let first = stage.post("done", "{}");
    assert_eq!((first.status, first.outcome()), (201, "ran"), "{first:?}");
    let base = Api::OpenAi.guarded(&stage.semel.address);
    let mut named = prompt(OPENAI_PYTHON, "named");
    named["key"] = "step-1".into();
    let said = OPENAI_PYTHON.together(&stage.home, &base, &[named.clone()], &token()).remove(0);
    assert!(is_whole(&said), "{}", said);
    stage.semel.stop();
    let headers = [(CASE, "done"), ("Idempotency-Key", "done"), JSON];
    let again = asked(&other.address, "POST", "/p/plain/rest", &headers, "{}");
    again.assert_replayed(&first);
    let base = Api::OpenAi.guarded(&other.address);
    let repeated = OPENAI_NODE.together(&stage.home, &base, &[named], &token()).remove(0);
    assert_eq!((repeated.id(), repeated.body()), (said.id(), said.body()), "{}", repeated);
    assert_eq!((stage.world.of("done").effects, stage.world.of("named").effects), (1, 1));
}

#[test]
fn what_one_process_left_in_doubt_the_other_does_not_send() {
    let stage = Stage::patient();
    let Stage { home, world, semel } = stage;
    let second = crate::serve::served::Served::again(&home);
    world.fail("dead", json!({"hold": "never"}));
    let address = semel.address.clone();
    let headers = [(CASE, "dead"), ("Idempotency-Key", "dead"), JSON];
    let caller = std::thread::spawn(move || {
        let mut line = RawClient::connect(&address);
        request(
            &mut line,
            "POST",
            "/p/plain/rest",
            &[&[("Semel-Token", crate::serve::served::TOKEN)], &headers[..]].concat(),
            "{}",
        );
        line.answer_if_any()
    });
    home.wait_until("it was sent", || world.of("dead").effects == 1);
    // Killed, not stopped: nothing is written down on the way.
    drop(semel);
    assert_eq!(caller.join().expect("the caller ends"), None);
    asked(&second.address, "POST", "/p/plain/rest", &headers, "{}").assert_in_doubt();
    assert_eq!(world.of("dead").requests, 1);
}
