//! A remote server that forgets the session: towards it semel is the client, and begins a new one.

use super::door::stage::greeted;
use super::line::Line;
use super::peers::{NAME, Server};
use super::running::Served;
use super::{Way, assert_in_doubt, receipt, text};
use crate::home::Home;
use serde_json::{Value, json};

struct Scene {
    home: Home,
    line: Line,
    _served: Served,
}

impl Scene {
    /// A conversation with a remote server that has begun, and in which ada was charged.
    fn with_policy(policy: &str) -> Scene {
        let home = Home::new();
        home.file("semel.toml", policy);
        let served = home.http(Way::Direct, Server::Rogue);
        let mut line = greeted(Line::start(&home, &home.stdio_before_http(served.url())));
        assert_eq!(receipt(&line.call("charge", ada()))["outcome"], "ran");
        Scene { home, line, _served: served }
    }

    fn new() -> Scene {
        Scene::with_policy("version = 1\n")
    }

    fn forgets(&self) {
        self.home.file("forget", "");
    }

    fn heard(&self, method: &str) -> Vec<Value> {
        let heard = std::fs::read_to_string(self.home.work().join("heard")).unwrap_or_default();
        let heard = heard.lines().map(|line| serde_json::from_str::<Value>(line).expect("it heard JSON"));
        heard.filter(|message| message["method"] == method).collect()
    }
}

fn ada() -> Value {
    json!({"customer": "ada", "amount": 3})
}

fn bob() -> Value {
    json!({"customer": "bob", "amount": 4})
}

#[test]
fn what_only_reads_is_asked_again_and_whatever_follows_goes_on() {
    let mut scene = Scene::new();
    scene.forgets();
    let charges = scene.line.call("list_charges", json!({}));
    assert!(text(&charges).contains("ada"), "{charges}");
    scene.forgets();
    let tools = scene.line.request("tools/list", json!({}));
    assert!(tools["result"]["tools"].is_array(), "{tools}");
    assert_eq!(receipt(&scene.line.call("charge", bob()))["outcome"], "ran");
    assert_eq!(scene.home.effects(), 2);
    let hellos = scene.heard("initialize");
    assert_eq!((hellos.len(), scene.heard("notifications/initialized").len()), (3, 3));
    assert!(hellos.iter().all(|hello| hello["params"] == hellos[0]["params"]), "{hellos:?}");
}

/// The session may have been lost after the effect, so the call is not sent again; the next ones work.
#[test]
fn a_guarded_call_is_not_sent_again_and_the_next_one_works() {
    let mut scene = Scene::new();
    for _ in 0..2 {
        assert_in_doubt(&scene.line.call("charge_then_404", ada()));
    }
    assert_eq!((scene.home.effects(), scene.heard("initialize").len()), (2, 1), "one for each tool");
    assert_eq!(receipt(&scene.line.call("charge", bob()))["outcome"], "ran");
    assert_eq!((scene.home.effects(), scene.heard("initialize").len()), (3, 2));
}

#[test]
fn a_probe_answers_the_doubt_in_the_new_session() {
    let probe =
        "found = \"resp.charges.exists(c, c.tool == 'charge_then_404' && c.customer == args.customer)\"";
    let mut scene = Scene::with_policy(&format!(
        "version = 1\n[[rule]]\nmatch = \"mcp:{NAME}/charge_then_404\"\nclass = \"consequential\"\n\
         [rule.probe]\nmcp = \"./list_charges\"\n{probe}\n"
    ));
    let found = scene.line.call("charge_then_404", ada());
    assert_eq!(
        (&receipt(&found)["ok"], &receipt(&found)["evidence"]),
        (&true.into(), &"probed".into()),
        "{found}"
    );
    assert_eq!((scene.home.effects(), scene.heard("initialize").len()), (2, 2));
}

#[test]
fn whoever_needs_it_shares_the_new_session() {
    let mut scene = Scene::new();
    scene.forgets();
    let read = json!({"name": "list_charges", "arguments": {}});
    let asked = scene.line.ask_all("tools/call", vec![read; 20]);
    for _ in &asked {
        let (answer, _) = scene.line.read_answer().expect("an answer");
        assert!(text(&answer["result"]).contains("ada"), "{answer}");
    }
    assert_eq!(scene.heard("initialize").len(), 2);
}

#[test]
fn where_there_is_no_new_session_it_is_said_and_nothing_is_sent() {
    let mut scene = Scene::new();
    for (file, holds, words) in
        [("closed", "", "closed for today"), ("speaks", "2025-03-26", "wants to speak 2025-03-26 now")]
    {
        scene.home.file(file, holds);
        scene.forgets();
        let read = scene.line.request("tools/call", json!({"name": "list_charges", "arguments": {}}));
        let said = read["error"]["message"].as_str().unwrap_or_default();
        assert!(
            said.contains("forgotten the session, and there is no new one") && said.contains(words),
            "{read}"
        );
        let calls = scene.heard("tools/call").len();
        let charge = scene.line.call("charge", json!({"customer": file}));
        assert_eq!(receipt(&charge)["code"], "not_started", "{charge}");
        assert!(text(&charge).contains(words), "{charge}");
        assert_eq!(scene.heard("tools/call").len(), calls);
        std::fs::remove_file(scene.home.work().join(file)).expect("it was there");
        let charge = scene.line.call("charge", json!({"customer": file}));
        assert_eq!(receipt(&charge)["outcome"], "ran", "{charge}");
    }
    assert_eq!(scene.home.effects(), 3);
}

/// Many servers answer 400 where the protocol has 404.
#[test]
fn a_session_that_is_unknown_by_words_is_begun_anew() {
    for words in ["Bad Request: No valid session ID provided", "Session not found"] {
        let mut scene = Scene::new();
        scene.home.file("unknown", &format!("400 {words}"));
        scene.forgets();
        let charges = scene.line.call("list_charges", json!({}));
        assert!(text(&charges).contains("ada"), "{charges}");
        assert_eq!(scene.heard("initialize").len(), 2);
        // What semel itself would ask before a call is known.
        scene.line.request("tools/list", json!({}));
        // A call was turned away before any tool ran. It is not sent again from here; the next one runs.
        scene.forgets();
        let charge = scene.line.call("charge", bob());
        assert_eq!(receipt(&charge)["code"], "upstream_refused", "{charge}");
        assert_eq!((scene.home.effects(), scene.heard("initialize").len()), (1, 2));
        assert_eq!(receipt(&scene.line.call("charge", bob()))["outcome"], "ran");
        assert_eq!((scene.home.effects(), scene.heard("initialize").len()), (2, 3));
    }
}

#[test]
fn a_refusal_that_is_not_plainly_about_the_session_is_passed_on() {
    let mut scene = Scene::new();
    scene.home.file("unknown", "400 Bad Request: Server not initialized");
    scene.forgets();
    let read = scene.line.request("tools/call", json!({"name": "list_charges", "arguments": {}}));
    assert!(read.to_string().contains("Server not initialized"), "{read}");
    assert_eq!(scene.heard("initialize").len(), 1);
}

/// The server would keep it for nobody.
#[test]
fn a_session_that_was_begun_and_cannot_be_used_is_ended() {
    let mut scene = Scene::new();
    scene.home.file("deaf", "");
    scene.forgets();
    for tries in 1..=2 {
        let read = scene.line.request("tools/call", json!({"name": "list_charges", "arguments": {}}));
        assert!(read.to_string().contains("there is no new one"), "{read}");
        assert_eq!((scene.heard("initialize").len(), scene.heard("DELETE").len()), (tries + 1, tries));
    }
    std::fs::remove_file(scene.home.work().join("deaf")).expect("it was there");
    assert!(text(&scene.line.call("list_charges", json!({}))).contains("ada"));
    assert_eq!(scene.heard("DELETE").len(), 2);
    let ended: Vec<Value> = scene.heard("DELETE").into_iter().map(|mut one| one["session"].take()).collect();
    assert!(ended[0].is_string() && ended[1].is_string() && ended[0] != ended[1], "{ended:?}");
}

#[test]
fn what_the_session_held_is_there_again() {
    let home = Home::new();
    home.file("streams", "");
    let served = home.http(Way::Direct, Server::Rogue);
    let mut line = greeted(Line::start(&home, &home.stdio_before_http(served.url())));
    let named = |line: &mut Line| {
        let said = line.read().expect("the server names the session");
        serde_json::from_slice::<Value>(&said).expect("a message")["params"]["data"].take()
    };
    let first = named(&mut line);
    let subscription = json!({"uri": "file:///a"});
    line.request("resources/subscribe", subscription.clone());
    line.request("logging/setLevel", json!({"level": "info"}));
    home.file("forget", "");
    // Nobody but the stream itself learns of it.
    line.notify("notifications/roots/list_changed", json!({}));
    let second = named(&mut line);
    assert!(second.is_string() && second != first, "{first} {second}");
    let scene = Scene { home, line, _served: served };
    let subscribed = scene.heard("resources/subscribe");
    assert!(
        subscribed.len() == 2 && subscribed.iter().all(|asked| asked["params"] == subscription),
        "{subscribed:?}"
    );
    assert_eq!(scene.heard("logging/setLevel").len(), 2);
}
