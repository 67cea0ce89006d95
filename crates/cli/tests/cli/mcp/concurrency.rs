//! Many at once: identical calls are one effect, and identical ids of different clients never mix.

use super::line::Line;
use super::peers::Server;
use super::post::Post;
use super::{Way, text};
use crate::home::Home;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PROCESSES: usize = 8;
const CALLS_EACH: usize = 8;

/// So many clients use the same JSON-RPC id at the same time.
const CLIENTS: usize = 16;

fn late(home: &Home, customer: &str) -> Value {
    json!({"customer": customer, "amount": 3, "until": home.work().join("until")})
}

/// Sends all calls before the first can be answered, and returns every answer.
fn identical_calls(home: &Home, way: Way) -> Vec<Value> {
    let open = |_| Line::open(home, way, Server::Rogue);
    let mut clients: Vec<Line> = (0..PROCESSES).map(open).collect();
    for _ in 0..CALLS_EACH {
        for client in &mut clients {
            client.ask("tools/call", json!({"name": "charge_answered_late", "arguments": late(home, "ada")}));
        }
    }
    home.wait_until("somebody has charged", || home.effects() > 0);
    home.file("until", "");
    let answers = |client: &mut Line| -> Vec<Value> {
        (0..CALLS_EACH).map(|_| client.read_answer().expect("each call is answered").0).collect()
    };
    clients.iter_mut().flat_map(answers).collect()
}

#[test]
fn without_semel_64_identical_calls_charge_64_times() {
    let home = Home::new();
    assert_eq!(identical_calls(&home, Way::Direct).len(), 64);
    assert_eq!(home.effects(), 64);
}

#[test]
fn identical_calls_of_eight_processes_are_one_effect_and_64_answers() {
    let home = Home::new();
    let answers = identical_calls(&home, Way::Guarded);
    assert_eq!(home.effects(), 1);
    let charge = home.world()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(answers.len(), 64);
    for answer in &answers {
        assert!(text(&answer["result"]).contains(&charge), "{answer}");
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    let outcomes: Vec<&Value> =
        answers.iter().map(|answer| &super::receipt(&answer["result"])["outcome"]).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "ran").count(), 1, "{outcomes:?}");
}

/// All of them ask under id 7 before any is answered.
fn identical_ids(home: &Home, url: &str) {
    let clients: Vec<Post> = (0..CLIENTS).map(|_| Post::opened(url)).collect();
    let customer = |n: usize| format!("customer-{n}-");
    let connections: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(n, client)| {
            let arguments = late(home, &customer(n));
            client.post(&Post::calling(7, "charge_answered_late", &arguments, &json!({"progressToken": 1})))
        })
        .collect();
    home.wait_until("all have charged", || home.effects() == CLIENTS);
    home.file("until", "");
    let answers: Vec<Value> =
        connections.into_iter().map(|connection| connection.answer_so_far().rpc_answer()).collect();
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], 7, "{answer}");
        assert!(text(&answer["result"]).contains(&customer(n)), "client {n} got {answer}");
    }
    let world = home.world();
    let charged: BTreeSet<&str> = world.iter().filter_map(|line| line["customer"].as_str()).collect();
    assert_eq!((charged.len(), home.effects()), (CLIENTS, CLIENTS));
}

#[test]
fn identical_ids_of_sixteen_clients_never_mix_before_a_server_over_http() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Rogue);
    identical_ids(&home, served.url());
}

#[test]
fn identical_ids_of_sixteen_clients_never_mix_before_a_server_on_stdio() {
    let home = Home::new();
    let served = home.http_before_stdio(Server::Rogue);
    identical_ids(&home, served.url());
}

/// Without semel a second request under an id that is in flight is a fault of the client; different kinds of ids are
/// not, and have to come back as they went.
#[test]
fn ids_come_back_as_they_went() {
    let home = Home::new();
    let mut client = Line::open(&home, Way::Guarded, Server::Rogue);
    let ids = [json!(70), json!("70"), json!("a b"), json!(9_007_199_254_740_993_u64), json!(-1), json!("")];
    for (n, id) in ids.iter().enumerate() {
        let params =
            json!({"name": "charge_answered_late", "arguments": late(&home, &format!("customer-{n}-"))});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    home.wait_until("all have charged", || home.effects() == ids.len());
    home.file("until", "");
    for _ in &ids {
        let (answer, _) = client.read_answer().expect("each is answered");
        let n = ids.iter().position(|id| *id == answer["id"]).unwrap_or_else(|| panic!("{answer}"));
        assert!(text(&answer["result"]).contains(&format!("customer-{n}-")), "{answer}");
    }
}
