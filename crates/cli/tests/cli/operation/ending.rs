use crate::home::Home;
use crate::serve::served::{SESSION, Served, TOKEN, calling};
use crate::serve::stateless::{call, serving};
use semel_testkit::http::FakeMcpServer;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const CALLS: u64 = 100;

fn serve(home: &Home, upstream: &FakeMcpServer, grace: &str) -> Served {
    let policy = format!("[mcp.bank]\nurl = \"{}\"\n[serve]\ngrace = \"{grace}\"\n", upstream.url());
    Served::start(home, &policy)
}

/// Begins so many charges that wait, and returns once all of them were sent.
fn begin(home: &Home, served: &Served, upstream: &FakeMcpServer) -> Vec<semel_testkit::http::RawClient> {
    let headers = format!("Semel-Token: {TOKEN}\r\n{SESSION}");
    let asked = (0..CALLS).map(|n| {
        let message = calling(n, "charge", json!({"waits": true, "n": n}));
        served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &message.to_string())
    });
    let asked = asked.collect();
    home.wait_until("all are sent", || upstream.effects() == CALLS as usize);
    asked
}

#[test]
fn a_server_that_is_told_to_stop_leaves_nothing_claimed() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = serve(&home, &upstream, "1s");
    let asked = begin(&home, &served, &upstream);
    assert!(served.stop().success(), "it exits 0");
    assert_eq!(home.query("select count(*) from whole where open and owner is not null"), "0");
    assert_eq!(home.query("select count(*) from journal where kind = 'lapsed'"), CALLS.to_string());
    let doubts = home.json(["ledger", "list", "--state", "in_doubt", "--limit", "500"]);
    assert_eq!(doubts["items"].as_array().map(Vec::len), Some(CALLS as usize));
    upstream.release();
    drop(asked);
    // Whoever asks again is held, and nothing happens twice.
    let again = serve(&home, &upstream, "1s");
    let headers = format!("Semel-Token: {TOKEN}\r\n{SESSION}");
    let message = calling(1, "charge", json!({"waits": true, "n": 7}));
    let held = again.ask_raw("POST /mcp/bank HTTP/1.1", &headers, &message.to_string()).answer();
    assert_eq!((held.tool_outcome(), upstream.effects()), (json!("held"), CALLS as usize));
}

/// Some clients wait for ever on a stream that ends without an answer.
#[test]
fn whoever_waits_on_a_stream_when_the_grace_is_over_is_told_so() {
    let home = Home::new();
    let (mut served, _) = serving(&home, "create_order", "[serve]\ngrace = \"1s\"\n");
    let asked = call(&served, "create_order");
    home.wait_until("its stream is open", || asked.is_answered());
    served.tell_to_stop();
    let last = asked.answer();
    assert!(last.head.contains("text/event-stream"), "{last:?}");
    let words = last.json()["error"]["message"].to_string();
    assert!(words.contains("semel ended before this call did"), "{words}");
    assert!(served.end().success(), "it exits 0");
    assert_eq!(home.json(["ledger", "list"])["items"][0]["state"], "in_doubt");
}

#[test]
fn what_settles_within_the_grace_is_answered_and_done() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = serve(&home, &upstream, "60s");
    let asked = begin(&home, &served, &upstream);
    let releasing = upstream.clone();
    let address = served.address.clone();
    let releases = std::thread::spawn(move || {
        // Once it takes no more connections, it was told to stop.
        while std::net::TcpStream::connect(&address).is_ok() {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        releasing.release();
    });
    assert!(served.stop().success());
    releases.join().expect("it was told to stop");
    let answers = asked.into_iter().map(|asked| asked.answer());
    assert!(answers.into_iter().all(|answer| answer.status == 200 && answer.tool_outcome() == "ran"));
    let applied = home.json(["ledger", "list", "--state", "applied", "--limit", "500"]);
    assert_eq!(applied["items"].as_array().map(Vec::len), Some(CALLS as usize));
    assert_eq!(upstream.effects(), CALLS as usize);
}

#[test]
fn what_was_still_being_read_gets_the_grace_too() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let mut served = serve(&home, &upstream, "60s");
    let message = calling(1, "charge", json!({"waits": true})).to_string();
    let (first, second) = message.split_at(message.len() / 2);
    let mut stream = TcpStream::connect(&served.address).expect("semel listens");
    let head = format!(
        "POST /mcp/bank HTTP/1.1\r\nHost: {}\r\nSemel-Token: {TOKEN}\r\n{SESSION}Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        served.address,
        message.len()
    );
    stream.write_all(head.as_bytes()).expect("it is taken");
    // Its body is waited for: from here on it is being read.
    let mut word = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut word).expect("semel wants the body");
    stream.write_all(first.as_bytes()).expect("it is taken");
    served.tell_to_stop();
    home.wait_until("it takes no more", || TcpStream::connect(&served.address).is_err());
    stream.write_all(second.as_bytes()).expect("it is taken");
    home.wait_until("it is sent", || upstream.effects() == 1);
    // Longer than a server waits for those who only listen.
    std::thread::park_timeout(Duration::from_secs(3));
    upstream.release();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(served.end().success());
    let applied = home.json(["ledger", "list", "--state", "applied"]);
    assert_eq!((applied["items"].as_array().map(Vec::len), upstream.effects()), (Some(1), 1));
}
