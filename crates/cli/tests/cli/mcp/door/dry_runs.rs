//! What would happen, without its happening.

use super::stage::Stage;
use crate::mcp::{receipt, text};
use serde_json::{Value, json};

fn dry(order: &str) -> Value {
    json!({"name": "create_order", "arguments": {"order": order}, "_meta": {"dev.semel/dry-run": true}})
}

#[test]
fn a_dry_run_says_what_would_happen_and_sends_nothing() {
    let stage = Stage::with_tools(&["create_order"])
        .rule("create_order", "class = \"consequential\"\neffect = \"created\"");
    let mut line = stage.open();
    let would = line.call_with(dry("1"));
    let answer = receipt(&would);
    assert_eq!(
        (&answer["outcome"], &answer["effect"], &answer["ok"]),
        (&"dry_run".into(), &"would_create".into(), &true.into())
    );
    assert_eq!(answer["would"], "run", "{would}");
    assert!(answer["changes"].to_string().contains("create_order"), "{would}");
    assert_ne!(would["isError"], true);
    assert!(
        text(&would).contains("Nothing was sent") && !text(&would).contains("Do not call it again"),
        "{would}"
    );
    assert_eq!((stage.world().len(), stage.heard_calls().len(), stage.recorded().len()), (0, 0, 0));
    line.call("create_order", json!({"order": "1"}));
    let would = line.call_with(dry("1"));
    assert_eq!(
        (&receipt(&would)["would"], &receipt(&would)["effect"]),
        (&"replay".into(), &"would_noop".into())
    );
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn it_names_the_effect_that_the_call_would_have() {
    let stage = Stage::with_tools(&["create_order", "send_mail", "delete_order", "set_price"]);
    let mut line = stage.open();
    for (tool, would, did) in [
        ("create_order", "would_create", "created"),
        ("send_mail", "would_send", "sent"),
        ("delete_order", "would_delete", "deleted"),
        ("set_price", "would_update", "updated"),
    ] {
        let dry = json!({"name": tool, "arguments": {}, "_meta": {"dev.semel/dry-run": true}});
        assert_eq!(receipt(&line.call_with(dry))["effect"], would);
        assert_eq!(receipt(&line.call(tool, json!({})))["effect"], did);
    }
}

#[test]
fn a_dry_run_can_be_an_argument_where_the_operator_offers_it() {
    let stage = Stage::with_tools(&["create_order", "get_order"]);
    let mut line = stage.open_with(&["--dry-run-argument"]);
    let listed = line.request("tools/list", json!({}))["result"]["tools"].take();
    assert_eq!(listed[0]["inputSchema"]["properties"]["semel_dry_run"]["type"], "boolean", "{listed}");
    assert!(listed[1]["inputSchema"]["properties"].get("semel_dry_run").is_none(), "{listed}");
    let would = line.call("create_order", json!({"order": "1", "semel_dry_run": true}));
    assert_eq!(receipt(&would)["outcome"], "dry_run", "{would}");
    assert_eq!(stage.world().len(), 0);
    line.call("create_order", json!({"order": "1", "semel_dry_run": false}));
    assert_eq!(stage.world().len(), 1);
    assert_eq!(stage.heard_calls()[0]["arguments"], json!({"order": "1"}));
    assert!(!stage.open().request("tools/list", json!({})).to_string().contains("semel_dry_run"));
}

/// Whoever asks for a dry run in other words than `true` must not get the effect instead.
#[test]
fn a_dry_run_asked_for_in_other_words_is_a_dry_run() {
    for yes in [json!("true"), json!(1), json!({})] {
        let stage = Stage::with_tools(&["create_order"]);
        let mut params = dry("1");
        params["_meta"]["dev.semel/dry-run"] = yes.clone();
        assert_eq!(receipt(&stage.open().call_with(params))["outcome"], "dry_run", "{yes}");
        let would = stage.open().call("create_order", json!({"order": "1", "semel_dry_run": yes}));
        assert_eq!(receipt(&would)["outcome"], "dry_run", "{yes}");
        assert_eq!(stage.world().len(), 0);
    }
}

/// A dry run may read: what the call would ask first is asked, and nothing is done.
#[test]
fn a_dry_run_asks_the_probe_that_goes_before() {
    let rule = "class = \"consequential\"\n[rule.probe]\nmcp = \"./list_orders\"\n\
                found = \"resp.orders.exists(o, o.order == args.order)\"\nquiet = \"0s\"\nbefore = true";
    let orders = json!({"orders": [{"order": "1"}]}).to_string();
    let result = json!({"content": [{"type": "text", "text": orders}]}).to_string();
    let calls = json!({"list_orders": {"effect": false, "raw": result}});
    let stage = Stage::with_calls(&["create_order", "list_orders"], calls).rule("create_order", rule);
    let mut line = stage.open();
    let there = line.call_with(dry("1"));
    assert_eq!(
        (&receipt(&there)["would"], &receipt(&there)["effect"]),
        (&"replay".into(), &"would_noop".into()),
        "{there}"
    );
    assert!(receipt(&there)["changes"].to_string().contains("a probe found it there"), "{there}");
    let missing = line.call_with(dry("2"));
    assert_eq!(
        (&receipt(&missing)["would"], &receipt(&missing)["effect"]),
        (&"run".into(), &"would_create".into()),
        "{missing}"
    );
    assert_eq!((stage.heard_calls().len(), stage.world().len(), stage.recorded().len()), (2, 0, 0));
}

#[test]
fn the_tools_own_dry_run_fills_the_changes() {
    let rule = "class = \"consequential\"\ndry_run = { arg = \"preview\", value = \"true\" }";
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"dry": "preview"}}))
        .rule("create_order", rule);
    let mut line = stage.open();
    let would = line.call_with(dry("1"));
    let changes = receipt(&would)["changes"].to_string();
    assert!(changes.contains("would do") && changes.contains("preview"), "{would}");
    assert_eq!(stage.heard_calls()[0]["arguments"], json!({"order": "1", "preview": true}));
    assert_eq!((stage.world().len(), stage.recorded().len()), (0, 0));
    // Once it is done the tool is not asked any more.
    line.call("create_order", json!({"order": "1"}));
    line.call_with(dry("1"));
    assert_eq!(stage.heard_calls().len(), 2);
}

/// The tool's own account is structure for a program, and words for a model, which sees no `_meta`.
#[test]
fn the_tools_own_account_of_what_it_would_do_arrives_as_structure() {
    let rule = "class = \"consequential\"\ndry_run = { arg = \"preview\", value = \"true\" }";
    let account = json!({"effect": "would_delete", "changes": [{"order": "1"}], "reason": "it is old"});
    let result = json!({"content": [{"type": "text", "text": account.to_string()}]});
    let calls = json!({"create_order": {"effect": false, "raw": result.to_string()}});
    let stage = Stage::with_calls(&["create_order"], calls).rule("create_order", rule);
    let would = stage.open().call_with(dry("1"));
    let answer = receipt(&would);
    let said = ["effect", "changes", "reason"].map(|name| answer[name].clone());
    assert_eq!(said, ["effect", "changes", "reason"].map(|name| account[name].clone()), "{would}");
    assert_eq!(would["content"].as_array().map(Vec::len), Some(1), "{would}");
    let told = text(&would);
    assert!(told.contains("(would_delete).\n- it is old\n- {\"order\":\"1\"}"), "{told}");
    assert_eq!(stage.world().len(), 0);
}

#[test]
fn a_dry_run_of_the_tool_that_fails_is_told_as_that() {
    let rule = "class = \"consequential\"\ndry_run = { arg = \"preview\", value = \"true\" }";
    let calls =
        json!({"create_order": {"effect": false, "error": {"code": -32602, "message": "no preview here"}}});
    let stage = Stage::with_calls(&["create_order"], calls).rule("create_order", rule);
    let would = stage.open().call_with(dry("1"));
    assert!(receipt(&would)["changes"].to_string().contains("no preview here"), "{would}");
}

/// Who misspells a dry run must not get the effect, whatever the mode.
#[test]
fn a_dry_run_asked_for_by_another_name_is_refused() {
    for mode in ["guard", "observe"] {
        let stage = Stage::with_tools(&["create_order"]).mode(mode);
        let mut line = stage.open();
        for name in ["dev.semel/dry_run", "dev.semel/dryRun", "semel_dry_run"] {
            let mut params = dry("1");
            params["_meta"] = json!({name: true});
            let said = line.request("tools/call", params)["error"]["message"].take();
            let said = said.as_str().unwrap_or_default();
            assert!(said.contains(name) && said.contains("_meta[\"dev.semel/dry-run\"]"), "{said}");
        }
        let params = json!({"name": "create_order", "arguments": {"order": "1", "semel_dryrun": true}});
        assert!(line.request("tools/call", params)["error"].is_object());
        assert_eq!((stage.world().len(), stage.heard_calls().len()), (0, 0), "{mode}");
    }
}

/// What settles a doubt is an effect too.
#[test]
fn a_report_has_no_dry_run() {
    let stage = Stage::with_calls(&["create_order"], json!({"create_order": {"dies": true}}))
        .rule("create_order", "class = \"consequential\"\nrulings = \"agent\"");
    let doubt = receipt(&stage.open().call("create_order", json!({"order": "1"})))["effect_id"].clone();
    let report = json!({"effect_id": doubt, "happened": true, "evidence": "it is listed"});
    let params = json!({"name": "semel_report", "arguments": report, "_meta": {"dev.semel/dry-run": true}});
    let said = stage.open().call_with(params);
    assert!(said["isError"] == true && text(&said).contains("no dry run"), "{said}");
    assert_eq!(stage.recorded()[0]["state"], "in_doubt");
}
