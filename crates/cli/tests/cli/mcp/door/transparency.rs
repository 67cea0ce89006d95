//! What semel does not guard passes as the bytes that came, in both directions.

use super::stage::{Stage, listing, stateless};
use crate::mcp::Way;
use crate::mcp::line::Line;
use serde_json::{Value, json};

/// Sends each line, and after each reads as many lines as it is said to bring back.
fn conversation(way: Way, stage: &Stage, lines: &[(&str, usize)]) -> (Vec<String>, Vec<String>) {
    let mut line = Line::to(&mut match way {
        Way::Direct => stage.bare(),
        Way::Guarded => stage.guarded(&[]),
    });
    let mut came = Vec::new();
    for (sent, answers) in lines {
        line.send_raw(sent.as_bytes());
        for _ in 0..*answers {
            came.push(String::from_utf8(line.read().expect("an answer")).expect("text"));
        }
    }
    assert!(line.close().success());
    let heard = stage.heard();
    std::fs::remove_file(stage.work().join("heard")).expect("it heard something");
    (came, heard)
}

fn passes(stage: &Stage, lines: &[(&str, usize)]) {
    let direct = conversation(Way::Direct, stage, lines);
    let guarded = conversation(Way::Guarded, stage, lines);
    assert_eq!(guarded, direct);
    assert_eq!(direct.1.len(), lines.len(), "the server heard every line");
}

#[test]
fn methods_members_numbers_and_spellings_that_nobody_knows_pass_as_they_are() {
    let raw = r#"{ "b":1,"a":1.10,"big":123456789012345678901234567890,"tiny":1e-400,"e":"caf\u00e9 \/ \ud83d\ude00" ,"_meta":{"x.y/z":[ 1.0 ]}}"#;
    let stage =
        Stage::telling(json!({"methods": {"future/method": raw, "resources/read": raw, "prompts/get": raw}}));
    passes(
        &stage,
        &[
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"future/method","params":{"n":18446744073709551616,"f":1.50,"e":1E+2}}"#,
                1,
            ),
            (
                r#"{ "method" : "resources/read", "novel": [1,  2], "id" : "a\u0062", "jsonrpc":"2.0", "params":{"_meta":{"progressToken":1.0,"q":"\u0041"}} }"#,
                1,
            ),
            (r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"prompts/get","params":[1,{"a":null}]}"#, 1),
            (r#"{"jsonrpc":"2.0","id":-3,"method":"no/such/method"}"#, 1),
            (r#"{"jsonrpc":"2.0","method":"notifications/novel","params":{"x":0.10}}"#, 0),
            (r#"{"jsonrpc":"2.0","id":"z","method":"ping"}"#, 1),
        ],
    );
}

#[test]
fn calls_of_read_tools_pass_as_they_are() {
    let raw = r#"{"content":[ {"type":"text","text":"\u0061"} ],"structuredContent":{"n":1.0},"novel":1E3 }"#;
    let stage = Stage::with_calls(&["get_order"], json!({"get_order": {"effect": false, "raw": raw}}));
    passes(
        &stage,
        &[
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, 1),
            (
                r#"{"jsonrpc":"2.0", "id":2, "method":"tools/call","params":{"_meta":{"callId":"c","progressToken":7},"name":"get_order","arguments":{ "n":1.0,"semel_again":"why" },"idempotencyKey":"k"}}"#,
                1,
            ),
            (r#"{"id":2,"jsonrpc":"2.0","method":"tools/call","params":{"name":"get_order"}}"#, 1),
        ],
    );
}

#[test]
fn what_the_server_says_unasked_and_asks_itself_passes_and_so_do_the_answers() {
    let stage = Stage::telling(json!({"calls": {"get_order": {"effect": false}}}));
    let said = concat!(
        r#"{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "n": 1.0}}"#,
        "\n",
        r#"{"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"x": [ ]}}"#,
        "\n",
        r#"{"method": "roots/list", "id": "r", "jsonrpc": "2.0"}"#,
    );
    let lines = [
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, 4),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"role":"assistant","n":1.0}}"#, 0),
        (r#"{"jsonrpc":"2.0","id":"r","error":{"code":-1,"message":"no", "data":[1.0]}}"#, 0),
        (r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#, 1),
    ];
    let run = |way| {
        stage.file("say", said);
        conversation(way, &stage, &lines)
    };
    let (direct, guarded) = (run(Way::Direct), run(Way::Guarded));
    assert_eq!(direct.0[..3].concat().trim_end(), said);
    assert_eq!(guarded, direct);
}

#[test]
fn a_guarded_call_may_ask_the_client_something_on_the_way() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"asks": "elicitation/create"}}));
    let mut line = stage.open();
    let result = line.call("create_order", json!({"order": "1"}));
    assert!(crate::mcp::text(&result).starts_with("done: "), "{result}");
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn of_a_guarded_call_the_server_gets_what_the_client_sent_but_for_the_id() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let params = r#"{"name":"create_order", "arguments":{ "n":1.0,"big":123456789012345678901234567890 ,"e":"\u00e9"},"novel":[ 1.0 ],"_meta":{"callId":"c","x.y/z":1E2}}"#;
    line.send_raw(
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#).as_bytes(),
    );
    let (answer, _) = line.read_answer().expect("an answer");
    assert_eq!(answer["id"], 5);
    let heard = stage.heard().pop().expect("it heard the call");
    assert!(heard.ends_with(&format!(r#""params":{params}}}"#)), "{heard}");
}

#[test]
fn a_subscription_of_the_stateless_era_stays_open_and_is_ended_by_its_client() {
    let stage = Stage::telling(json!({"era": "stateless", "pages": [listing(&["create_order"])]}));
    let mut line = stage.open_stateless();
    let wanted = json!({"resourceSubscriptions": ["file:///a"]});
    let id = line.ask("subscriptions/listen", json!({"_meta": stateless(), "notifications": wanted}));
    let said = |line: &mut Line| -> Value {
        serde_json::from_slice(&line.read().expect("the server says something")).expect("a message")
    };
    let named = json!({"io.modelcontextprotocol/subscriptionId": id});
    let acknowledged = said(&mut line);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"], json!({"_meta": named, "notifications": wanted}));
    let params = json!({"uri": "file:///a", "_meta": named});
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params});
    stage.file("say", &updated.to_string());
    let call = json!({"name": "create_order", "arguments": {}, "_meta": stateless()});
    let called = line.ask("tools/call", call);
    assert_eq!(said(&mut line), updated);
    assert_eq!(said(&mut line)["id"], called);
    line.notify("notifications/cancelled", json!({"requestId": id, "_meta": stateless()}));
    line.close();
    let cancelled = stage.heard_requests("notifications/cancelled");
    assert!(cancelled.len() == 1 && cancelled[0]["params"]["requestId"] == id, "{cancelled:?}");
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn what_stands_beside_an_edited_result_stays_as_it_was_written() {
    let beside = r#" ,"trace": "t-1" ,"\u006eovel":1.0"#;
    for era in ["session", "stateless"] {
        let told = json!({"era": era, "pages": [listing(&["create_order"])], "beside": beside});
        let stage = Stage::telling(told);
        let mut line = Line::to(&mut stage.guarded(&[]));
        let hello = match era {
            "session" => ("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})),
            _ => ("server/discover", json!({"_meta": stateless()})),
        };
        let meta = if era == "session" { json!({}) } else { stateless() };
        let call = json!({"name": "create_order", "arguments": {}, "_meta": meta});
        let list = json!({"_meta": meta});
        for (method, params) in [hello, ("tools/list", list), ("tools/call", call)] {
            let id = line.ask(method, params);
            let (answer, bytes) = line.read_answer().expect("an answer");
            let bytes = String::from_utf8(bytes).expect("text");
            let changed = ["idempotency", "[semel: ", "dev.semel/receipt"];
            assert!(changed.iter().any(|word| answer["result"].to_string().contains(word)), "{bytes}");
            assert!(
                bytes.starts_with(&format!(r#"{{"jsonrpc": "2.0", "id": {id}, "result": {{"#)),
                "{bytes}"
            );
            assert!(bytes.trim_end().ends_with(&format!("}}{beside}}}")), "{bytes}");
        }
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn what_stands_beside_the_params_of_a_guarded_call_goes_to_the_server() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    for (order, key) in [("1", ""), ("2", r#","idempotencyKey":"k""#)] {
        let call = |id: &str, key: &str| {
            format!(
                r#"{{ "trace":"t-1", "id" : {id},"params":{{"name":"create_order","arguments":{{"order":"{order}"}}{key}}},"jsonrpc":"2.0", "method":"tools\/call","novel":[ 1.0 ] }}"#
            )
        };
        line.send_raw(call("5", key).as_bytes());
        assert_eq!(line.read_answer().expect("an answer").0["id"], 5);
        let heard = stage.heard().pop().expect("it heard the call");
        let id = &serde_json::from_str::<Value>(&heard).expect("JSON")["id"];
        assert_eq!(heard, call(&id.to_string(), ""), "but for its id, and a key that it does not know");
    }
    assert_eq!(stage.world().len(), 2);
}
