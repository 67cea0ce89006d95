//! What a client sees of the tools: the server's own words, and one sentence more where something is guarded.

use super::stage::Stage;
use crate::mcp::line::Line;
use serde_json::{Value, json};

const SENTENCE: &str = "look first with a read-only tool; never retry it blindly";
const READ: &str = r#"{"name":"get_order","x": 1.0, "inputSchema": {"type":"object" } }"#;
const OTHER_READ: &str = r#"{"title":"L","name":"list_orders","annotations":{"readOnlyHint":true}}"#;
const WRITE: &str = r#"{"name":"create_order","description":"Makes one.","inputSchema":{"type":"object","properties":{"n":{"const":1e2}},"additionalProperties":false},"novel":[ 1 ]}"#;
const BARE: &str = r#"{"name":"append_note"}"#;

fn page(tools: &[&str], rest: &str) -> String {
    format!(r#"{{"tools": [ {} ]{rest}}}"#, tools.join(" , "))
}

fn list(line: &mut Line, params: Value) -> (Value, String) {
    let id = line.ask("tools/list", params);
    let (mut answer, bytes) = line.read_answer().expect("the listing comes");
    assert_eq!(answer["id"], id);
    (answer["result"].take(), String::from_utf8(bytes).expect("it is text"))
}

fn names(result: &Value) -> Vec<&str> {
    result["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect()
}

fn tool<'a>(result: &'a Value, name: &str) -> &'a Value {
    result["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect("it is listed")
}

#[test]
fn reads_stay_as_they_were_written_and_guarded_tools_gain_a_sentence_and_an_argument() {
    let stage =
        Stage::telling(json!({"pages": [page(&[READ, WRITE, BARE, OTHER_READ], r#", "ttlMs":5.0"#)]}));
    let (result, bytes) = list(&mut stage.open(), json!({}));
    assert_eq!(names(&result), ["get_order", "create_order", "append_note", "list_orders", "semel_ledger"]);
    assert!(
        bytes.contains(READ) && bytes.contains(OTHER_READ) && bytes.contains(r#""ttlMs":5.0"#),
        "{bytes}"
    );
    let made = tool(&result, "create_order");
    assert!(
        made["description"]
            .as_str()
            .is_some_and(|d| d.starts_with("Makes one.\n\n[semel: ") && d.contains(SENTENCE))
    );
    assert!(made["description"].as_str().is_some_and(|d| d.contains("answered from the record")), "{made}");
    assert_eq!(made["inputSchema"]["properties"]["semel_again"]["type"], "string");
    assert!(made["inputSchema"].get("required").is_none(), "the argument is optional");
    assert!(bytes.contains(r#"{"n":{"const":1e2},"#) && bytes.contains(r#""novel":[ 1 ]"#), "{bytes}");
}

/// An act tool repeats, so there is nothing to ask for.
#[test]
fn a_tool_without_description_or_schema_gains_the_sentence_alone() {
    let stage = Stage::telling(json!({"pages": [page(&[BARE], "")]}));
    let (result, _) = list(&mut stage.open(), json!({}));
    let note = tool(&result, "append_note");
    assert!(
        note["description"].as_str().is_some_and(|d| d.starts_with("[semel: ") && d.contains(SENTENCE)),
        "{note}"
    );
    assert!(!note["description"].as_str().is_some_and(|d| d.contains("answered from the record")), "{note}");
    assert!(note.get("inputSchema").is_none(), "{note}");
}

#[test]
fn the_argument_is_offered_only_where_an_agent_may_repeat() {
    for again in ["person", "never"] {
        let stage = Stage::telling(json!({"pages": [page(&[WRITE], "")]}))
            .rule("create_order", &format!("class = \"consequential\"\nagain = \"{again}\""));
        let (result, _) = list(&mut stage.open(), json!({}));
        let made = tool(&result, "create_order");
        assert_eq!(made["inputSchema"]["properties"], json!({"n": {"const": 1e2}}), "{again}");
        assert!(made["description"].as_str().is_some_and(|d| d.contains(SENTENCE)));
    }
}

#[test]
fn pages_stay_pages_and_own_tools_stand_at_the_end_of_the_last() {
    let first = page(&[READ, WRITE], r#","nextCursor":"1""#);
    let stage = Stage::telling(json!({"pages": [first, page(&[OTHER_READ], "")]}));
    let mut line = stage.open();
    let (first, _) = list(&mut line, json!({}));
    assert_eq!(names(&first), ["get_order", "create_order"]);
    assert_eq!(first["nextCursor"], "1");
    let (second, bytes) = list(&mut line, json!({"cursor": "1"}));
    assert_eq!(names(&second), ["list_orders", "semel_ledger"]);
    assert!(bytes.contains(OTHER_READ), "{bytes}");
    // Both pages are known now: nobody asks for them again.
    line.call("create_order", json!({}));
    line.call("list_orders", json!({}));
    assert_eq!(stage.heard_requests("tools/list").len(), 2);
}

#[test]
fn switched_off_the_listing_is_the_servers_own_byte_for_byte() {
    let stage = Stage::telling(json!({"pages": [page(&[READ, WRITE, BARE], r#", "z" : 1.10"#)]}));
    let ask = |mut line: Line| list(&mut line, json!({})).1;
    let direct = ask(super::stage::greeted(Line::to(&mut stage.bare())));
    assert_eq!(ask(stage.open_with(&["--no-decoration", "--no-tools"])), direct);
    assert_ne!(ask(stage.open_with(&["--no-decoration"])), direct, "semel_ledger is still there");
    let undecorated = ask(stage.open_with(&["--no-decoration"]));
    assert!([READ, WRITE, BARE].iter().all(|tool| undecorated.contains(tool)), "{undecorated}");
    let without_tools = ask(stage.open_with(&["--no-tools"]));
    assert!(!without_tools.contains("semel_ledger") && without_tools.contains(SENTENCE), "{without_tools}");
}

#[test]
fn a_server_that_only_reads_is_not_decorated_at_all() {
    let stage = Stage::telling(json!({"pages": [page(&[READ, OTHER_READ], "")]}));
    let ask = |mut line: Line| list(&mut line, json!({})).1;
    let direct = ask(super::stage::greeted(Line::to(&mut stage.bare())));
    assert_eq!(ask(stage.open()), direct);
}

/// A tool may have an argument of that name; then it is the tool's, in the listing and in the call.
#[test]
fn a_tool_keeps_an_argument_of_its_own_that_is_called_like_semels() {
    let own = r#"{"name":"create_order","inputSchema":{"type":"object","properties":{"semel_again":{"type":"integer"}}}}"#;
    let stage = Stage::telling(json!({"pages": [page(&[own], "")]}));
    let mut line = stage.open();
    let (result, _) = list(&mut line, json!({}));
    assert_eq!(
        tool(&result, "create_order")["inputSchema"]["properties"]["semel_again"],
        json!({"type": "integer"})
    );
    line.call("create_order", json!({"semel_again": 7}));
    assert_eq!(stage.heard_calls()[0]["arguments"], json!({"semel_again": 7}));
}

#[test]
fn what_changed_on_the_way_is_listed_anew_before_the_next_call() {
    let stage = Stage::with_tools(&["get_order"]);
    let mut line = stage.open();
    list(&mut line, json!({}));
    let read = line.call("get_order", json!({}));
    assert_eq!(read["_meta"].get("dev.semel/receipt"), None, "a read passes: {read}");
    stage.tell(
        json!({"pages": [page(&[r#"{"name":"get_order","annotations":{"readOnlyHint":false}}"#], "")]}),
    );
    stage.file("say", r#"{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}"#);
    line.ask("ping", json!({}));
    let told = line.read().expect("the notification passes");
    assert_eq!(told, b"{\"jsonrpc\": \"2.0\", \"method\": \"notifications/tools/list_changed\"}\n");
    line.read_answer();
    // It says now that it does not only read, so it is guarded.
    let result = line.call("get_order", json!({}));
    assert_eq!(crate::mcp::receipt(&result)["outcome"], "ran", "{result}");
}
