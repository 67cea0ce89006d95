//! Clients without manners: a protocol error to whoever made it, and no guarded call is lost or doubled.

use super::stage::Stage;
use crate::home::memory_peak;
use crate::mcp::line::Line;
use crate::mcp::{receipt, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn next(line: &mut Line) -> Value {
    serde_json::from_slice(&line.read().expect("an answer")).expect("JSON")
}

/// Sends a line and returns the error that it brings; then shows that the conversation goes on.
fn error(line: &mut Line, sent: &[u8]) -> Value {
    line.send_raw(sent);
    let mut answer = next(line);
    assert!(answer.get("result").is_none(), "{answer}");
    assert_eq!(line.request("ping", json!({}))["result"], json!({}));
    answer["error"]["id"] = answer["id"].take();
    answer["error"].take()
}

#[test]
fn what_is_no_message_is_answered_with_a_protocol_error_and_reaches_nobody() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    line.request("ping", json!({}));
    let heard = stage.heard().len() - 1;
    for (sent, code) in [
        (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"create_or"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"create_order\",\"arguments\":{\"a\":\"\xff\xfe\"}}}", -32700),
        (b"starting up", -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"create_order\"}}]", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{\"name\":\"create_order\"}}", -32600),
        (b"7", -32600),
        (b"\"x\"", -32600),
    ] {
        let error = error(&mut line, sent);
        let what = String::from_utf8_lossy(sent);
        assert_eq!((&error["code"], &error["id"]), (&code.into(), &Value::Null), "{what}: {error}");
    }
    let pings = stage.heard_requests("ping").len();
    assert_eq!((stage.heard().len() - pings, stage.world().len()), (heard, 0));
}

/// Nobody could be told what became of it, and some servers would carry it out.
#[test]
fn a_call_without_an_id_is_not_passed_on() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    for sent in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"create_order","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"create_order","arguments":{}}}"#,
    ] {
        let error = error(&mut line, sent.as_bytes());
        assert_eq!((&error["code"], &error["id"]), (&json!(-32600), &Value::Null), "{error}");
    }
    assert_eq!((stage.world().len(), stage.heard_calls().len()), (0, 0));
}

#[test]
fn calls_that_cannot_be_understood_are_refused_before_anything_is_sent() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    let deep =
        format!(r#"{{"name":"create_order","arguments":{{"a":{}{}}}}}"#, "[".repeat(5000), "]".repeat(5000));
    for params in [
        "",
        r#","params":null"#,
        r#","params":[]"#,
        r#","params":{}"#,
        r#","params":{"name":7,"arguments":{}}"#,
        r#","params":{"name":"create_order","arguments":[]}"#,
        r#","params":{"name":"create_order","arguments":"{}"}"#,
        r#","params":{"name":"create_order","arguments":{"a":1,"a":2}}"#,
        r#","params":{"name":"create_order","name":"get_order"}"#,
        r#","params":{"name":"create_order","arguments":{"semel_again":7}}"#,
        r#","params":{"name":"create_order","_meta":{"dev.semel/run-id":7}}"#,
        &format!(r#","params":{deep}"#),
    ] {
        let error = error(
            &mut line,
            format!(r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call"{params}}}"#).as_bytes(),
        );
        assert_eq!((&error["code"], &error["id"]), (&json!(-32602), &json!("x")), "{params:.100}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|said| said.starts_with("semel sent nothing: ")),
            "{error}"
        );
    }
    assert_eq!((stage.world().len(), stage.heard_calls().len()), (0, 0));
}

#[test]
fn a_frame_larger_than_any_message_may_be_is_not_read_and_the_next_one_is() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let mut giant = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_order","arguments":{"a":""#.to_vec();
    giant.resize(129 << 20, b'x');
    giant.extend_from_slice(br#""}}}"#);
    let error = error(&mut line, &giant);
    assert_eq!((&error["code"], &error["id"]), (&json!(-32600), &Value::Null), "{error}");
    assert!(memory_peak(line.process()) < 400 << 10, "{} KiB", memory_peak(line.process()));
    line.call("create_order", json!({}));
    assert_eq!(stage.world().len(), 1);
}

/// Half a message is none, also when it is the last that comes.
#[test]
fn a_message_that_breaks_off_with_the_input_is_not_passed_on() {
    let stage = Stage::with_tools(&["create_order"]);
    let whole =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_order","arguments":{}}}"#;
    for half in [&whole[..whole.len() - 1], &whole[..20]] {
        stage.file("input", half);
        let input = std::fs::File::open(stage.work().join("input")).expect("the input");
        let ended = stage.guarded(&[]).stdin(input).output().expect("semel runs");
        let answer: Value = serde_json::from_slice(&ended.stdout).expect("one message");
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null), "{answer}");
    }
    assert_eq!((stage.world().len(), stage.heard().len()), (0, 0));
}

/// However deep: neither the call nor the listing of a tool is worth a stack.
#[test]
fn nesting_without_an_end_ends_nothing() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    for depth in [1_000, 1_000_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"create_order","arguments":{{"a":{deep}}}}}}}"#
        );
        let error = error(&mut line, call.as_bytes());
        assert_eq!((&error["code"], &error["id"]), (&json!(-32602), &json!(9)), "{error}");
    }
    assert_eq!(stage.world().len(), 0);
}

#[test]
fn many_members_take_no_longer_than_they_are_many() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    let members: Vec<String> = (0..50_000).map(|n| format!("\"m{n}\":{n}")).collect();
    let params = format!(r#"{{"name":"create_order","arguments":{{{}}}}}"#, members.join(","));
    line.send_raw(
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#).as_bytes(),
    );
    let answer = next(&mut line);
    assert_eq!(receipt(&answer["result"])["outcome"], "ran", "{answer}");
    assert_eq!(stage.world().len(), 1);
}

/// The protocol forbids it; every call is answered all the same, and identical ones are one effect.
#[test]
fn ids_that_are_used_twice_at_once_lose_and_double_nothing() {
    let calls = json!({"create_order": {"until": "until"}, "get_order": {"effect": false, "until": "until"}});
    let stage = Stage::with_calls(&["create_order", "get_order"], calls);
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    for (tool, order) in [
        ("create_order", "1"),
        ("create_order", "1"),
        ("create_order", "2"),
        ("get_order", "1"),
        ("get_order", "2"),
    ] {
        let params = json!({"name": tool, "arguments": {"order": order}});
        line.send(&json!({"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": params}));
    }
    stage.wait_until("both effects are there", || stage.world().len() == 2 && stage.heard_calls().len() == 4);
    stage.file("until", "");
    let mut said = Vec::new();
    for _ in 0..5 {
        let answer = next(&mut line);
        assert_eq!(answer["id"], 70);
        said.push(text(&answer["result"]).lines().next().expect("words").to_owned());
    }
    said.sort();
    let made: Vec<String> = stage
        .world()
        .iter()
        .map(|effect| format!("done: {}", effect["id"].as_str().expect("an id")))
        .collect();
    let count = |words: &str| said.iter().filter(|said| *said == words).count();
    assert_eq!(count("done: nothing"), 2, "{said:?}");
    assert_eq!(count(&made[0]) + count(&made[1]), 3, "{said:?}");
    assert_eq!(stage.world().len(), 2);
}

#[test]
fn ten_thousand_calls_at_once_are_answered_one_by_one_or_refused_before_they_are_sent() {
    const CALLS: usize = 10_000;
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    line.request("tools/list", json!({}));
    let mut lines = Vec::new();
    for n in 0..CALLS {
        let params = json!({"name": "create_order", "arguments": {"order": n.to_string()}});
        lines.push(
            json!({"jsonrpc": "2.0", "id": n + 10, "method": "tools/call", "params": params}).to_string(),
        );
    }
    line.send_raw(lines.join("\n").as_bytes());
    let (mut done, mut refused) = (0, 0);
    for _ in 0..CALLS {
        let answer = next(&mut line);
        match answer["error"]["message"].as_str() {
            Some(said) => {
                assert!(said.contains("too many calls at once; nothing was sent"), "{answer}");
                refused += 1;
            }
            None => {
                assert_eq!(receipt(&answer["result"])["outcome"], "ran", "{answer}");
                done += 1;
            }
        }
    }
    assert_eq!(done + refused, CALLS);
    assert!(done >= 2_000, "{done}");
    let mut per_order: BTreeMap<String, usize> = BTreeMap::new();
    for effect in stage.world() {
        *per_order.entry(effect["arguments"]["order"].to_string()).or_default() += 1;
    }
    assert_eq!(per_order.len(), done, "what was answered as done was done");
    assert!(per_order.values().all(|times| *times == 1));
    assert!(memory_peak(line.process()) < 200 << 10, "{} KiB", memory_peak(line.process()));
}

#[test]
fn large_calls_that_wait_are_few_and_the_others_are_refused_before_they_are_sent() {
    let stage =
        Stage::with_calls(&["create_order", "append_note"], json!({"create_order": {"until": "until"}}));
    let mut line = stage.open();
    let large = "x".repeat(30 << 20);
    let order = |n: usize| json!({"name": "create_order", "arguments": {"order": n}, "_meta": {"x": large}});
    for n in 0..6 {
        line.ask("tools/call", order(n));
    }
    for _ in 4..6 {
        let answer = next(&mut line);
        let said = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(said.contains("too much in flight; nothing was sent"), "{said}");
    }
    let small = json!({"name": "append_note", "arguments": {}});
    assert_eq!(receipt(&line.call_with(small))["ok"], true, "nobody's large call stands in its way");
    stage.file("until", "");
    for _ in 0..4 {
        assert_eq!(receipt(&next(&mut line)["result"])["ok"], true);
    }
    assert_eq!(receipt(&line.call_with(order(6)))["ok"], true, "there is room again");
    let done = stage.world().into_iter().map(|effect| effect["arguments"]["order"].as_u64());
    assert_eq!(
        done.collect::<BTreeSet<_>>(),
        BTreeSet::from([None, Some(0), Some(1), Some(2), Some(3), Some(6)])
    );
    assert_eq!(stage.world().len(), 6);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused_under_its_id_with_the_member_that_makes_it_so() {
    let stage = Stage::with_tools(&["create_order"]);
    let mut line = stage.open();
    for (sent, code, id, member) in [
        (r#""id":"x","params":{"name":"create_order","name":"get_order"}"#, -32602, json!("x"), "name"),
        (r#""id":"x","params":{"name":"create_order","_meta":{"a":1,"a":1}}"#, -32602, json!("x"), "a"),
        (r#""id":"x","params":{"name":"create_order","arguments":{"b":1,"b":1}}"#, -32602, json!("x"), "b"),
        (r#""id":"x","params":{"name":"create_order"},"params":{}"#, -32600, json!("x"), "params"),
        (r#""id":"x","params":{"name":"create_order"},"Params":{}"#, -32600, json!("x"), "Params"),
        (r#""id":"x","params":{"name":"create_order"},"id":"y""#, -32600, Value::Null, "id"),
    ] {
        let error =
            error(&mut line, format!(r#"{{"jsonrpc":"2.0","method":"tools/call",{sent}}}"#).as_bytes());
        assert_eq!((&error["code"], &error["id"]), (&json!(code), &id), "{sent}: {error}");
        let words = error["message"].as_str().unwrap_or_default();
        assert!(words.starts_with("semel ") && words.contains(&format!("{member:?}")), "{sent}: {words}");
    }
    assert_eq!((stage.world().len(), stage.heard_calls().len()), (0, 0));
}
