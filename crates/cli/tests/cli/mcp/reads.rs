//! A read is never answered from the record.

use super::Way;
use super::line::Line;
use super::peers::Server;
use super::post::Post;
use super::text;
use crate::home::Home;
use serde_json::{Value, json};
use std::io::Write;

/// Enough writes that an answer kept from any of them would be noticed.
const WRITES: usize = 25;

fn stays_fresh(home: &Home, mut call: impl FnMut(&str, Value) -> Value) {
    for written in 1..=WRITES {
        call("charge", json!({"customer": format!("customer {written}"), "amount": written}));
        let seen = text(&call("get_charges", json!({})));
        assert_eq!(seen.lines().count(), written, "{seen}");
        assert_eq!(seen, std::fs::read_to_string(home.work().join("world")).expect("the world was changed"));
    }
    // Somebody else writes, past the door.
    let world = std::fs::OpenOptions::new().append(true).open(home.work().join("world"));
    writeln!(world.expect("there is a world"), "{{\"id\": \"by hand\"}}").expect("it is written");
    assert!(text(&call("get_charges", json!({}))).contains("by hand"));
}

#[test]
fn a_read_after_a_write_is_fresh_over_stdio() {
    for server in [Server::Python, Server::TypeScript] {
        let home = Home::new();
        let mut client = Line::open(&home, Way::Guarded, server);
        stays_fresh(&home, |tool, arguments| client.call(tool, arguments));
    }
}

#[test]
fn a_read_after_a_write_is_fresh_over_http() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Python);
    let client = Post::opened(served.url());
    let mut id = 0;
    stays_fresh(&home, |tool, arguments| {
        id += 1;
        client.call(id, tool, &arguments, &json!({})).tool_result()
    });
}

/// A transport that sends a read twice gets two answers, even under one call id.
#[test]
fn a_read_under_the_same_call_id_is_fresh() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Python);
    let client = Post::opened(served.url());
    let read = |id| {
        let meta = json!({"claudecode/toolUseId": "toolu_1"});
        text(&client.call(id, "get_charges", &json!({}), &meta).tool_result())
    };
    assert_eq!(read(1).lines().count(), 0);
    client.call(2, "charge", &json!({"customer": "ada", "amount": 3}), &json!({}));
    assert_eq!(read(3).lines().count(), 1);
}
