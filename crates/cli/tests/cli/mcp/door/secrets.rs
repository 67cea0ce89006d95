//! Secrets of arguments and results never reach the ledger's files.

use super::stage::Stage;
use crate::mcp::{receipt, text};
use serde_json::{Value, json};

const PASSWORD: &str = "correct-horse-battery";
const RETURNED: &str = "returned-token-31415926";
const MARKED: &str = "pin-4711-4711";

fn assert_unwritten(stage: &Stage) {
    let files: Vec<_> = stage.state_files().into_iter().filter(|path| path.is_file()).collect();
    assert!(files.iter().any(|path| path.ends_with("ledger.db")), "{files:?}");
    for path in files {
        let bytes = std::fs::read(&path).expect("the file can be read");
        for secret in [PASSWORD, RETURNED, MARKED] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} stands in {}", path.display());
        }
    }
}

fn arguments() -> Value {
    json!({"order": "1", "password": PASSWORD, "code": MARKED, "body": format!("{{\"api_key\": \"{PASSWORD}\"}}")})
}

fn stage(does: Value) -> Stage {
    let rule = "class = \"consequential\"\nsecret = [\"args.code\"]";
    Stage::with_calls(&["create_order"], json!({"create_order": does})).rule("create_order", rule)
}

#[test]
fn neither_arguments_nor_members_of_a_result_are_written() {
    let said = json!({"id": "or_1", "access_token": RETURNED});
    let raw = json!({
        "content": [{"type": "text", "text": said.to_string()}, {"type": "text", "text": format!("for {PASSWORD} and {MARKED}, token={RETURNED}")}],
        "structuredContent": said,
    });
    let stage = stage(json!({"raw": raw.to_string()}));
    let mut line = stage.open();
    let first = line.call("create_order", arguments());
    // Whoever asked first gets all of it; a replay has what may be kept.
    assert_eq!(first["structuredContent"]["access_token"], RETURNED);
    assert!(text(&first).contains(PASSWORD), "{first}");
    assert_eq!(stage.heard_calls()[0]["arguments"], arguments());
    let again = line.call("create_order", arguments());
    assert_eq!(receipt(&again)["outcome"], "replayed", "{again}");
    assert_eq!(again["structuredContent"]["id"], "or_1", "{again}");
    let again = again.to_string();
    assert!(!again.contains(RETURNED) && !again.contains(PASSWORD), "{again}");
    assert_unwritten(&stage);
}

#[test]
fn nor_is_what_an_error_repeats_of_them() {
    let words = format!("invalid password {PASSWORD} with {MARKED}");
    let refused =
        json!({"raw": json!({"content": [{"type": "text", "text": words}], "isError": true}).to_string()});
    let doubtful = json!({"error": {"code": -32000, "message": format!("timed out: {words}")}});
    let unclear = json!({"error": {"code": -32000, "message": format!("oops {PASSWORD} {MARKED}")}});
    for does in [refused, doubtful, unclear] {
        let stage = stage(does);
        stage.open().request("tools/call", json!({"name": "create_order", "arguments": arguments()}));
        assert_eq!(stage.recorded().len(), 1);
        assert_unwritten(&stage);
    }
}

#[test]
fn nor_is_what_a_probe_finds() {
    let found = json!({"orders": [{"order": "1", "token": RETURNED, "note": format!("for {PASSWORD}")}]});
    let calls = json!({
        "create_order": {"error": {"code": -32000, "message": "bad gateway"}},
        "list_orders": {"effect": false, "raw": json!({"content": [], "structuredContent": found}).to_string()},
    });
    let rule = "class = \"consequential\"\nsecret = [\"args.code\"]\n[rule.probe]\nmcp = \"./list_orders\"\n\
                found = \"resp.orders.exists(o, o.order == args.order)\"\nreply = \"resp.orders[0]\"\nquiet = \"0s\"";
    let stage = Stage::with_calls(&["create_order", "list_orders"], calls).rule("create_order", rule);
    let answer = stage.open().call("create_order", arguments());
    assert_eq!(receipt(&answer)["evidence"], "probed", "{answer}");
    assert_unwritten(&stage);
}

/// An expression that fails says why, and names what is missing.
#[test]
fn nor_is_why_a_probe_could_not_tell() {
    let calls = json!({
        "create_order": {"error": {"code": -32000, "message": "bad gateway"}},
        "list_orders": {"effect": false, "raw": json!({"content": [], "structuredContent": {"token": RETURNED}}).to_string()},
    });
    for found in ["resp[args.code]", "resp[args.password]", "resp.token + 1 == 2"] {
        let rule = format!(
            "class = \"consequential\"\nsecret = [\"args.code\"]\n[rule.probe]\nmcp = \"./list_orders\"\n\
             found = \"{found}\"\nquiet = \"0s\""
        );
        let stage =
            Stage::with_calls(&["create_order", "list_orders"], calls.clone()).rule("create_order", &rule);
        let answer = stage.open().call("create_order", arguments());
        assert_eq!(receipt(&answer)["code"], "in_doubt", "{answer}");
        assert_unwritten(&stage);
        let shown =
            stage.semel(["ledger", "show", stage.recorded()[0]["effect_id"].as_str().unwrap()]).stdout;
        assert!(shown.contains("probe_unclear"), "{shown}");
    }
}

/// Other programs read it well, and find the secret in it.
#[test]
fn nor_is_a_result_that_cannot_be_read_for_what_a_rule_calls_secret() {
    let twice = format!(r#"{{"blurb":"{MARKED}","beside":{{"a":1,"a":2}}}}"#);
    let nan = format!(r#"{{"blurb":"{MARKED}","beside":NaN}}"#);
    let half = format!(r#"{{"blurb":"{MARKED}","beside":"\ud83d"}}"#);
    let as_text = |text: &str| json!({"content": [{"type": "text", "text": text}]}).to_string();
    let structured = format!(r#"{{"content":[],"structuredContent":{twice}}}"#);
    for raw in [structured, as_text(&twice), as_text(&nan), as_text(&half)] {
        let calls = json!({"create_order": {"raw": raw}});
        let rule = "class = \"consequential\"\nsecret = [\"reply.blurb\"]";
        let stage = Stage::with_calls(&["create_order"], calls).rule("create_order", rule);
        let mut line = stage.open();
        let first = line.call("create_order", json!({"order": "1"}));
        assert!(first.to_string().contains(MARKED), "who asked gets all of it: {first}");
        let again = line.call("create_order", json!({"order": "1"}));
        assert_eq!(receipt(&again)["outcome"], "replayed", "{again}");
        assert!(text(&again).contains("was not kept") && !again.to_string().contains(MARKED), "{again}");
        assert_eq!(stage.world().len(), 1, "{raw}");
        assert_unwritten(&stage);
    }
}

/// An error is told in words, to whoever reads the ledger and to whoever asks again.
#[test]
fn nor_is_what_a_rule_calls_secret_of_a_result_in_any_line_about_it() {
    let as_text = |text: &str, is_error: bool| json!({"raw": json!({"content": [{"type": "text", "text": text}], "isError": is_error}).to_string()});
    let mut answers: Vec<Value> = Vec::new();
    for text in [
        r#"{"pin":"PIN"}"#,
        r#"{"message":"PIN"}"#,
        r#"{"pin":"PIN","b":NaN}"#,
        r#"{"pin":"PIN","a":1,"a":2}"#,
        r#"{"pin":"PIN","e":"\ud83d"}"#,
        "{\"pin\":\"PIN\"}\n{\"pin\":\"PIN\"}",
        r#"Error: {"pin":"PIN"}"#,
        "invalid: the pin PIN is not found",
    ] {
        let text = text.replace("PIN", MARKED);
        answers.extend([as_text(&text, true), as_text(&text, false)]);
        answers.push(json!({"error": {"code": -32602, "message": text}}));
        answers.push(json!({"error": {"code": -32000, "message": "it failed", "data": {"pin": MARKED}}}));
    }
    let resource = json!({"uri": "a:b", "text": format!(r#"{{"pin":"{MARKED}"}}"#)});
    let resource = json!({"content": [{"type": "resource", "resource": resource}]});
    answers.push(json!({"raw": resource.to_string()}));
    let unquoted = json!({"content": [{"type": "text", "text": {"pin": MARKED}}]});
    answers.push(json!({"raw": unquoted.to_string()}));
    for does in answers {
        let rule = "class = \"consequential\"\nsecret = [\"reply.pin\", \"reply.message\"]";
        let calls = json!({"create_order": does});
        let stage = Stage::with_calls(&["create_order"], calls).rule("create_order", rule);
        let mut line = stage.open();
        let first = line.request("tools/call", json!({"name": "create_order", "arguments": {"order": "1"}}));
        // Of an error's data nothing is told in words.
        let given = first.to_string().contains(MARKED) || does["error"]["data"].is_object();
        assert!(given, "who asked is given it: {first}");
        // What was refused runs again, and whoever asked that is given it again.
        if stage.world().len() == 1 {
            let again =
                line.request("tools/call", json!({"name": "create_order", "arguments": {"order": "1"}}));
            let ran = stage.world().len() > 1;
            assert!(ran || !again.to_string().contains(MARKED), "{does}: {again}");
        }
        assert_unwritten(&stage);
    }
}
