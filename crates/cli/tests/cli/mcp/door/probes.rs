//! Asking through the same server whether something happened.

use super::stage::{Stage, listing};
use crate::mcp::peers::script;
use crate::mcp::{assert_in_doubt, receipt, text};
use serde_json::{Value, json};

const TOOLS: [&str; 3] = ["create_order", "list_orders", "remove_order"];

fn rule(tool: &str, quiet: &str) -> String {
    format!(
        "class = \"consequential\"\nwait = \"2s\"\n[rule.probe]\nmcp = \"{tool}\"\nargs = {{ order = \"{{args.order}}\" }}\n\
         found = \"resp.orders.exists(o, o.order == args.order)\"\n\
         reply = \"resp.orders.filter(o, o.order == args.order)[0]\"\nquiet = \"{quiet}\""
    )
}

/// `create_order` answers with a gateway's error, and `list_orders` with this.
fn calls(list: Value) -> Value {
    json!({"create_order": {"error": {"code": -32000, "message": "bad gateway"}}, "list_orders": list})
}

fn sees(orders: Value) -> Value {
    let result = json!({"content": [{"type": "text", "text": json!({"orders": orders}).to_string()}]});
    json!({"effect": false, "raw": result.to_string()})
}

fn stage(list: Value, tool: &str, quiet: &str) -> Stage {
    Stage::with_calls(&TOOLS, calls(list)).rule("create_order", &rule(tool, quiet))
}

#[test]
fn a_yes_makes_it_done_with_the_reply_that_was_found() {
    for tool in ["./list_orders", "billing/list_orders"] {
        let stage = stage(sees(json!([{"order": "1001", "id": "or_7"}])), tool, "0s");
        let mut line = stage.open();
        let found = line.call("create_order", json!({"order": "1001"}));
        let answer = receipt(&found);
        assert_eq!(
            (&answer["ok"], &answer["evidence"], &answer["tier"], &answer["effect"]),
            (&true.into(), &"probed".into(), &"probed".into(), &"created".into())
        );
        assert!(found["isError"] != true && text(&found).contains("or_7"), "{found}");
        assert_eq!(found["structuredContent"], json!({"id": "or_7", "order": "1001"}), "{found}");
        let asked = stage.heard_calls().pop().expect("the probe was asked");
        assert_eq!((&asked["name"], &asked["arguments"]), (&"list_orders".into(), &json!({"order": "1001"})));
        let again = line.call("create_order", json!({"order": "1001"}));
        assert_eq!(receipt(&again)["outcome"], "replayed");
        assert_eq!(stage.world().len(), 1);
    }
}

#[test]
fn a_no_from_one_page_of_several_says_nothing() {
    let page = json!({"orders": [], "pagination": {"has_next": true}}).to_string();
    let result = json!({"content": [{"type": "text", "text": page}]}).to_string();
    let stage = stage(json!({"effect": false, "raw": result}), "./list_orders", "0s");
    let mut line = stage.open();
    for _ in 0..2 {
        let held = line.call("create_order", json!({"order": "1001"}));
        assert_in_doubt(&held);
        assert!(held.to_string().contains("there are more pages (has_next)"), "{held}");
    }
    assert_eq!(stage.world().len(), 1);
}

/// A long answer is looked through whole, and one that is too long says nothing: a no from a part would be a lie.
#[test]
fn what_stands_in_the_middle_of_a_long_answer_is_found() {
    let rule = "class = \"consequential\"\nwait = \"2s\"\n[rule.probe]\nmcp = \"./list_orders\"\n\
                found = \"resp.text.contains(args.order)\"\nquiet = \"0s\"";
    let sees = |rows: usize| {
        let rows = "an order of somebody else\n".repeat(rows);
        let result = json!({"content": [{"type": "text", "text": format!("{rows}1001\n{rows}")}]});
        json!({"effect": false, "raw": result.to_string()})
    };
    let asked = |rows| {
        let stage = Stage::with_calls(&TOOLS, calls(sees(rows))).rule("create_order", rule);
        let answer = stage.open().call("create_order", json!({"order": "1001"}));
        assert_eq!(stage.world().len(), 1);
        answer
    };
    let found = asked(2_000);
    assert_eq!(receipt(&found)["evidence"], "probed", "{found}");
    let held = asked(50_000);
    assert_in_doubt(&held);
    assert!(held.to_string().contains("more than can be looked through"), "{}", text(&held));
}

/// After the rule's timeout the caller looks again. It is the same call, and it has sent.
#[test]
fn a_no_that_counts_after_the_timeout_does_not_send_again() {
    let rule =
        format!("timeout = \"100ms\"\n{}", rule("./list_orders", "500ms")).replace("\"2s\"", "\"20s\"");
    let stage = Stage::with_calls(&TOOLS, calls(sees(json!([])))).rule("create_order", &rule);
    let mut line = stage.open();
    let first = line.call("create_order", json!({"order": "1001"}));
    assert!(text(&first).contains("did not happen"), "{first}");
    assert_eq!(stage.world().len(), 1, "the server lied; but it was called once");
}

/// The first call has sent, so it is told that it did not happen; the next one may run.
#[test]
fn a_no_after_quiet_lets_the_next_call_run() {
    let stage = stage(sees(json!([])), "./list_orders", "0s");
    let mut line = stage.open();
    let first = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(first["isError"], true, "{first}");
    assert!(text(&first).contains("did not happen"), "{first}");
    stage.tell(json!({"pages": [listing(&TOOLS)]}));
    let next = line.call("create_order", json!({"order": "1001"}));
    assert_eq!((&receipt(&next)["outcome"], &receipt(&next)["ok"]), (&"ran".into(), &true.into()), "{next}");
    assert_eq!(stage.world().len(), 2);
}

#[test]
fn a_no_before_quiet_does_not_count() {
    let stage = Stage::with_calls(&TOOLS, calls(sees(json!([]))))
        .rule("create_order", &rule("./list_orders", "1h").replace("wait = \"2s\"", "wait = \"20ms\""));
    let mut line = stage.open();
    for _ in 0..2 {
        assert_in_doubt(&line.call("create_order", json!({"order": "1001"})));
    }
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn an_error_or_an_answer_that_is_not_understood_holds_the_call() {
    let error = json!({"effect": false, "error": {"code": -32603, "message": "no"}});
    let tool_error = json!({"effect": false, "raw": r#"{"content":[],"isError":true}"#});
    let truncated =
        json!({"effect": false, "raw": r#"{"content":[{"type":"text","text":"{\"orders\": [{\"or"}]}"#});
    let other = json!({"effect": false, "raw": r#"{"content":[{"type":"text","text":"{\"items\":[]}"}]}"#});
    let input = json!({"effect": false, "input": {"inputRequests": {}}});
    for list in [error, tool_error, truncated, other, input] {
        let stage = stage(list.clone(), "./list_orders", "0s");
        let mut line = stage.open();
        for _ in 0..2 {
            assert_in_doubt(&line.call("create_order", json!({"order": "1001"})));
        }
        assert_eq!(stage.world().len(), 1, "{list}");
    }
}

/// Whoever wrote the rule learns of it where the doubt is shown.
#[test]
fn an_expression_that_fails_is_told_in_the_ledger() {
    let stage = stage(sees(json!([{"id": "or_0"}])), "./list_orders", "0s");
    let mut line = stage.open();
    for _ in 0..2 {
        assert_in_doubt(&line.call("create_order", json!({"order": "1001"})));
    }
    let show = || stage.semel(["ledger", "show", stage.recorded()[0]["effect_id"].as_str().unwrap()]).stdout;
    let shown = show();
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("probe_unclear")).collect();
    assert_eq!(lines.len(), 1, "{shown}");
    assert!(lines[0].contains("o.order == args.order") && lines[0].contains("No such key: order"), "{shown}");
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_reply_that_cannot_be_made_is_told_in_the_ledger() {
    let rule = rule("./list_orders", "0s").replace("[0]", "[1]");
    let found = calls(sees(json!([{"order": "1001"}])));
    let stage = Stage::with_calls(&TOOLS, found).rule("create_order", &rule);
    let done = stage.open().call("create_order", json!({"order": "1001"}));
    assert_eq!((&receipt(&done)["ok"], &receipt(&done)["evidence"]), (&true.into(), &"probed".into()));
    let shown = stage.semel(["ledger", "show", stage.recorded()[0]["effect_id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("probe_reply_failed") && shown.contains("out of bounds"), "{shown}");
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn a_tool_that_is_not_known_to_read_is_not_asked() {
    for tool in ["./remove_order", "elsewhere/list_orders"] {
        let stage = stage(sees(json!([])), tool, "0s");
        let held = stage.open().call("create_order", json!({"order": "1001"}));
        assert_in_doubt(&held);
        assert!(
            receipt(&held)["reason"].as_str().is_some_and(|why| why.contains("probe could not tell")),
            "{held}"
        );
        assert_eq!(stage.heard_calls().len(), 1, "{tool}");
    }
}

/// One tool that reads and writes, by what it is told to do: what is asked counts, and not what it is asked about.
#[test]
fn a_tool_that_may_write_is_asked_where_the_question_only_reads() {
    let found = |sql: &str| {
        format!(
            "class = \"consequential\"\n[rule.probe]\nmcp = \"./run\"\nargs = {{ sql = \"{sql}\" }}\n\
             found = \"resp.orders.exists(o, o.order == args.order)\"\nquiet = \"0s\""
        )
    };
    let reads = "when = \"args.sql.startsWith('select')\"\nclass = \"read\"";
    let error = json!({"error": {"code": -32000, "message": "bad gateway"}});
    let stage = |sql: &str| {
        let calls = json!({"create_order": error, "run": sees(json!([{"order": "1001"}]))});
        let stage = Stage::with_calls(&["create_order", "run"], calls);
        stage.rule("run", reads).rule("run", "class = \"act\"").rule("create_order", &found(sql))
    };
    for sql in ["delete from orders", "select 1"] {
        let asks = stage("select * from orders");
        let arguments = json!({"order": "1001", "sql": sql});
        let answered = asks.open().call("create_order", arguments.clone());
        assert_eq!(receipt(&answered)["evidence"], "probed", "{answered}");
        let writes = stage("delete from orders");
        assert_in_doubt(&writes.open().call("create_order", arguments));
        assert_eq!(writes.heard_calls().len(), 1, "{sql}: nothing but the call itself");
    }
}

#[test]
fn a_probe_can_ask_first() {
    let before = rule("./list_orders", "0s") + "\nbefore = true";
    let there = sees(json!([{"order": "1001", "id": "or_7"}]));
    let stage = Stage::with_calls(&TOOLS, json!({"list_orders": there})).rule("create_order", &before);
    let mut line = stage.open();
    let skipped = line.call("create_order", json!({"order": "1001"}));
    assert_eq!(receipt(&skipped)["effect"], "noop", "{skipped}");
    assert!(text(&skipped).contains("or_7"), "{skipped}");
    assert_eq!(stage.world().len(), 0);
    line.call("create_order", json!({"order": "1002"}));
    assert_eq!(stage.world().len(), 1);
}

#[test]
fn another_server_that_the_policy_names_answers_the_doubt() {
    let stage = Stage::with_calls(&TOOLS, calls(sees(json!([]))));
    let elsewhere = stage.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let there = json!({"list_orders": sees(json!([{"order": "1001", "id": "or_7"}]))});
    let told = json!({"pages": [listing(&["list_orders"])], "calls": there});
    stage.file("elsewhere/told.json", &told.to_string());
    let [world, heard] = ["world", "heard"].map(|file| elsewhere.join(file));
    stage.file(
        "semel.toml",
        &format!(
            "version = 1\n[mcp.warehouse]\ncommand = {}\ncwd = {elsewhere:?}\n\
             env = {{ SEMEL_WORLD = {world:?}, SEMEL_HEARD = {heard:?} }}\n",
            json!(["python3", "-S", script("told.py")])
        ),
    );
    let stage = stage.rule("create_order", &rule("warehouse/list_orders", "0s"));
    let mut line = stage.open();
    let found = line.call("create_order", json!({"order": "1001"}));
    let answer = receipt(&found);
    assert_eq!((&answer["ok"], &answer["evidence"]), (&true.into(), &"probed".into()), "{found}");
    assert!(text(&found).contains("or_7"), "{found}");
    assert_eq!(receipt(&line.call("create_order", json!({"order": "1001"})))["outcome"], "replayed");
    assert_eq!(stage.world().len(), 1);
    assert_eq!(stage.heard_calls().len(), 1, "nobody but the other server was asked");
    let asked = std::fs::read_to_string(heard).expect("it was asked");
    assert_eq!(asked.matches("list_orders").count(), 1, "{asked}");
}
