//! Legitimate repeats: to suppress one is as bad as to let a duplicate through.

use super::line::Line;
use super::peers::Server;
use super::post::Post;
use super::{Way, assert_replayed, receipt};
use crate::home::Home;
use serde_json::{Value, json};

/// So often that a mark which comes a moment after the answer would be missed at least once.
const REPEATS: usize = 50;

/// Each call is made the moment its predecessor was answered.
fn notes_are_appended_as_often_as_asked(home: &Home, mut call: impl FnMut(&str, Value) -> Value) {
    for asked in 1..=REPEATS {
        let result = call("append_note", json!({"note": "called, nobody there"}));
        assert_eq!(receipt(&result)["outcome"], "ran", "time {asked}: {result}");
        assert_eq!(home.effects(), asked);
    }
}

fn charges_are_made_once(home: &Home, mut call: impl FnMut(&str, Value) -> Value) {
    let ada = || json!({"customer": "ada", "amount": 3});
    let first = call("charge", ada());
    for _ in 1..REPEATS {
        assert_replayed(&call("charge", ada()), &first);
    }
    assert_eq!(home.effects(), 1);
}

fn over_stdio(home: &Home) -> impl FnMut(&str, Value) -> Value {
    let mut client = Line::open(home, Way::Guarded, Server::TypeScript);
    move |tool: &str, arguments: Value| client.call(tool, arguments)
}

fn over_http(url: &str) -> impl FnMut(&str, Value) -> Value {
    let client = Post::opened(url);
    let mut id = 0;
    move |tool: &str, arguments: Value| {
        id += 1;
        client
            .call(id, tool, &arguments, &json!({"claudecode/toolUseId": format!("toolu_{id}")}))
            .tool_result()
    }
}

#[test]
fn a_note_is_appended_as_often_as_asked_over_stdio() {
    let home = Home::new();
    notes_are_appended_as_often_as_asked(&home, over_stdio(&home));
}

#[test]
fn a_note_is_appended_as_often_as_asked_over_http() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::TypeScript);
    notes_are_appended_as_often_as_asked(&home, over_http(served.url()));
}

#[test]
fn a_charge_is_made_once_however_often_it_is_asked_for_over_stdio() {
    let home = Home::new();
    charges_are_made_once(&home, over_stdio(&home));
}

#[test]
fn a_charge_is_made_once_however_often_it_is_asked_for_over_http() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::TypeScript);
    charges_are_made_once(&home, over_http(served.url()));
}
