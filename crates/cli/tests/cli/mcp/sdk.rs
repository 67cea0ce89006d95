//! The official clients: what they get is what they got without semel, and a repeat changes nothing.

use super::peers::{Server, call};
use super::running::Served;
use super::{Way, assert_replayed, receipt, text};
use crate::home::Home;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
enum Client {
    Python(&'static str),
    TypeScript(&'static str),
    /// The package of the 2025 era.
    OldTypeScript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
    /// HTTP to semel, stdio from there on.
    HttpThenStdio,
    /// Stdio to semel, HTTP from there on.
    StdioThenHttp,
}

/// Holds what is served while a plan is carried out.
struct Place {
    home: Home,
    server: Value,
    _served: Option<Served>,
}

impl Place {
    fn new(way: Way, over: Over, server: Server) -> Place {
        let home = Home::new();
        let served = match (over, way) {
            (Over::Stdio, _) => None,
            (Over::HttpThenStdio, Way::Guarded) => Some(home.http_before_stdio(server)),
            (Over::StdioThenHttp, Way::Guarded) => Some(home.http(Way::Direct, server)),
            (Over::Http | Over::HttpThenStdio | Over::StdioThenHttp, _) => Some(home.http(way, server)),
        };
        let server = match &served {
            Some(served) if over == Over::StdioThenHttp && way == Way::Guarded => {
                json!({"command": home.stdio_before_http(served.url())})
            }
            Some(served) => json!({"url": served.url()}),
            None => json!({"command": home.stdio(way, server)}),
        };
        Place { home, server, _served: served }
    }

    fn take(&self, client: Client, steps: &Value) -> Value {
        let plan = |mode: &str| json!({"server": self.server, "mode": mode, "steps": steps});
        match client {
            Client::Python(mode) => self.home.python_client(&plan(mode)),
            Client::TypeScript(mode) => self.home.typescript_client(&plan(mode)),
            Client::OldTypeScript => {
                let mut plan = plan("legacy");
                plan["sdk"] = 1.into();
                self.home.typescript_client(&plan)
            }
        }
    }
}

fn ada() -> Value {
    json!({"customer": "ada", "amount": 3})
}

fn steps(over: Over) -> Value {
    // A server on stdio behind HTTP serves many clients, so semel has it ask none of them.
    let last = match over {
        Over::HttpThenStdio => call("charge", json!({"customer": "eve", "amount": 4})),
        Over::Stdio | Over::Http | Over::StdioThenHttp => call("charge_if_confirmed", ada()),
    };
    let notes = [json!({"note": "a"}), json!({"note": "b"})];
    json!([
        {"list": true},
        call("charge", ada()),
        call("charge_structured", ada()),
        notes.map(|note| call("append_note", note)),
        last,
        call("get_charges", json!({})),
    ])
}

/// Ids are random, and the receipt is what semel adds: with both left out, nothing may differ.
fn plain(results: &Value) -> Value {
    match results {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| *name != "dev.semel/receipt" && *name != "pid");
            let kept = kept.map(|(name, value)| (name.clone(), plain(value)));
            Value::Object(kept.filter(|(name, value)| name != "_meta" || *value != json!({})).collect())
        }
        Value::String(words) => {
            let mut words: Vec<String> = words.split_inclusive(['"', ' ']).map(str::to_owned).collect();
            words.iter_mut().filter(|word| word.starts_with("ch_")).for_each(|word| *word = "ch_".to_owned());
            words.concat().into()
        }
        other => other.clone(),
    }
}

/// Names of the tools in a list.
fn names(list: &Value) -> Vec<&str> {
    list["tools"]
        .as_array()
        .expect("a list of tools")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

fn same_as_without(client: Client, over: Over, server: Server) {
    let direct = Place::new(Way::Direct, over, server).take(client, &steps(over));
    let place = Place::new(Way::Guarded, over, server);
    let guarded = place.take(client, &steps(over));
    assert_eq!(guarded["version"], direct["version"]);
    let offered = names(&guarded["results"][0]);
    let hidden: Vec<&str> =
        names(&direct["results"][0]).into_iter().filter(|name| !offered.contains(name)).collect();
    assert!(hidden.is_empty(), "semel hides {hidden:?}");
    for step in 1..=4 {
        let (ours, theirs) = (&guarded["results"][step], &direct["results"][step]);
        assert_eq!(plain(ours), plain(theirs), "step {step}");
    }
    let seen = text(&guarded["results"][5]);
    assert_eq!(seen.lines().count(), 5, "what was read is what there is: {seen}");
    assert_eq!(place.home.effects(), 5);
    repeats_change_nothing(&place, client, &guarded);
}

/// The same client comes again, as after a crash of its agent.
fn repeats_change_nothing(place: &Place, client: Client, first: &Value) {
    let again = place.take(client, &json!([call("charge", ada()), call("charge_structured", ada())]));
    assert_replayed(&again["results"][0], &first["results"][1]);
    assert_eq!(receipt(&again["results"][1])["outcome"], "replayed", "{again}");
    assert!(text(&again["results"][1]).contains("[semel] "), "{again}");
    let [replayed, ran] = [&again["results"][1], &first["results"][2]].map(|it| &it["structuredContent"]);
    assert_eq!(replayed, ran, "a structure is replayed as it was");
    assert_eq!(place.home.effects(), 5);
}

#[test]
fn python_of_2025_over_stdio() {
    same_as_without(Client::Python("legacy"), Over::Stdio, Server::Python);
}

#[test]
fn python_of_2026_over_stdio() {
    same_as_without(Client::Python("auto"), Over::Stdio, Server::Python);
}

#[test]
fn python_of_2025_over_http() {
    same_as_without(Client::Python("legacy"), Over::Http, Server::Python);
}

#[test]
fn python_of_2026_over_http() {
    same_as_without(Client::Python("auto"), Over::Http, Server::Python);
}

#[test]
fn python_over_http_to_a_server_on_stdio() {
    same_as_without(Client::Python("legacy"), Over::HttpThenStdio, Server::Python);
}

#[test]
fn python_of_2026_over_http_to_a_server_on_stdio() {
    same_as_without(Client::Python("auto"), Over::HttpThenStdio, Server::Python);
}

#[test]
fn python_over_stdio_to_a_server_over_http() {
    same_as_without(Client::Python("legacy"), Over::StdioThenHttp, Server::Python);
}

#[test]
fn typescript_of_2026_over_stdio_to_a_server_over_http() {
    same_as_without(Client::TypeScript("auto"), Over::StdioThenHttp, Server::TypeScript);
}

#[test]
fn typescript_of_2025_over_stdio() {
    same_as_without(Client::TypeScript("legacy"), Over::Stdio, Server::TypeScript);
}

#[test]
fn typescript_of_2026_over_stdio() {
    same_as_without(Client::TypeScript("auto"), Over::Stdio, Server::TypeScript);
}

#[test]
fn typescript_of_2025_over_http() {
    same_as_without(Client::TypeScript("legacy"), Over::Http, Server::Python);
}

#[test]
fn typescript_of_2026_over_http() {
    same_as_without(Client::TypeScript("auto"), Over::Http, Server::TypeScript);
}

#[test]
fn the_older_typescript_package_over_stdio() {
    same_as_without(Client::OldTypeScript, Over::Stdio, Server::TypeScript);
}

#[test]
fn the_older_typescript_package_over_http() {
    same_as_without(Client::OldTypeScript, Over::Http, Server::Python);
}

#[test]
fn progress_and_questions_to_the_client_pass_while_a_guarded_call_runs() {
    let steps =
        json!(
            [call("charge_with_progress", ada()), call("append_sampled_note", json!({"customer": "ada"})),]
        );
    for mode in ["legacy", "auto"] {
        let place = Place::new(Way::Guarded, Over::Stdio, Server::Python);
        let said = place.take(Client::Python(mode), &steps);
        assert_eq!(said["results"][0]["progress"], json!(["asked", "charged", "written"]), "{said}");
        let world = place.home.world();
        assert_eq!(world[1]["note"], "in kind words", "{said}");
        assert_eq!(world.len(), 2);
    }
}

/// The client of 2026 sends the call again with its user's answer; the two are one intent, and only the second acts.
#[test]
fn a_call_that_asks_first_is_one_effect_and_its_repeat_none() {
    for client in [Client::Python("auto"), Client::TypeScript("auto"), Client::Python("legacy")] {
        let place = Place::new(Way::Guarded, Over::Stdio, Server::TypeScript);
        let steps = json!([call("charge_if_confirmed", ada()), call("charge_if_confirmed", ada())]);
        let said = place.take(client, &steps);
        assert_eq!(place.home.effects(), 1, "{said}");
        assert_replayed(&said["results"][1], &said["results"][0]);
    }
}

/// The clients refuse what their schema does not allow, unless it is an error; so under a schema a dry run has that form.
#[test]
fn a_dry_run_that_was_offered_reaches_the_model_behind_every_client() {
    let dry = json!({"customer": "ada", "amount": 3, "semel_dry_run": true});
    let steps = json!([{"list": true}, call("charge_structured", dry), call("charge_structured", ada())]);
    for client in [
        Client::Python("legacy"),
        Client::Python("2026-07-28"),
        Client::TypeScript("legacy"),
        Client::TypeScript("2026-07-28"),
        Client::OldTypeScript,
    ] {
        let mut place = Place::new(Way::Guarded, Over::Stdio, Server::TypeScript);
        let command = place.server["command"].as_array_mut().expect("a command");
        let mcp = command.iter().position(|word| word == "mcp").expect("semel mcp");
        command.insert(mcp + 1, "--dry-run-argument".into());
        let results = place.take(client, &steps)["results"].take();
        let (would, done) = (&results[1], &results[2]);
        assert_eq!(receipt(would)["outcome"], "dry_run", "{client:?}: {would}");
        assert!(text(would).contains("Nothing was sent"), "{client:?}: {would}");
        assert_eq!(done["structuredContent"]["customer"], "ada", "{client:?}: {done}");
        assert_eq!(place.home.world().len(), 1, "{client:?}");
    }
}
