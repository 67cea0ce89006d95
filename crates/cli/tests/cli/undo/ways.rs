//! Taking back by a request, and through a tool of a server.

use super::{Till, id};
use crate::home::Home;
use crate::mcp::door::stage::greeted;
use crate::mcp::line::Line;
use crate::mcp::peers::script;
use crate::serve::served::{Served, TOKEN};
use semel_testkit::http::{RouteReply, RoutedApi};
use serde_json::{Value, json};

fn till(api: &RoutedApi, undo: &str, more: &str) -> Till {
    Till::with(&format!("[rule.undo]\n{}\n{more}", undo.replace("API", &api.url())))
}

#[test]
fn a_request_takes_it_back_with_the_key_of_its_own_effect() {
    let api = RoutedApi::start();
    api.tell("DELETE /v1/charges/ch_7", [RouteReply::json(200, r#"{"deleted": true}"#)]);
    let upstream = format!(
        "[upstream.bank]\nurl = \"{}\"\nservice = \"bank\"\nheaders = {{ X-Org = \"o1\" }}\n",
        api.url()
    );
    let till = till(&api, "http = \"DELETE API/v1/charges/{reply.id}\"", &upstream);
    let charge = till.charged("7");
    let undone = till.undo(&charge);
    let answer = undone.json();
    assert_eq!((undone.code, &answer["effect"]), (Some(0), &"deleted".into()), "{undone:?}");
    assert_eq!(answer["data"], json!({"status": 200, "body": {"deleted": true}}));
    assert_eq!(till.undo(&charge).json()["outcome"], "replayed");
    assert_eq!(api.effects(), 1);
    let heard = &api.requests()[0];
    assert!(heard.header("idempotency-key").is_some_and(|key| key.starts_with("semel_")), "{heard:?}");
    assert_eq!(heard.header("x-org"), Some("o1"));
    assert_eq!(till.show(&id(&answer))["action"], "http:DELETE bank/v1/charges/ch_7");
}

#[test]
fn a_body_is_json_or_a_form() {
    for (undo, kind, body) in [
        (
            "body = { charge = \"{reply.id}\", reason = { code = 7 } }",
            "application/json",
            r#"{"charge":"ch_7","reason":{"code":7}}"#,
        ),
        (
            "form = { charge = \"{reply.id}\", amount = 5 }",
            "application/x-www-form-urlencoded",
            "amount=5&charge=ch_7",
        ),
    ] {
        let api = RoutedApi::start();
        api.tell("POST /refunds", [RouteReply::json(201, r#"{"id": "re_1"}"#)]);
        let till = till(&api, &format!("http = \"POST API/refunds\"\n{undo}"), "");
        let answer = till.undo(&till.charged("7")).json();
        assert_eq!((&answer["ok"], &answer["effect"]), (&true.into(), &"created".into()), "{answer}");
        let heard = &api.requests()[0];
        assert_eq!((heard.header("content-type"), heard.text().as_str()), (Some(kind), body));
    }
}

/// Slack answers 200 to everything.
#[test]
fn an_answer_that_refuses_in_its_body_takes_nothing_back() {
    let api = RoutedApi::start();
    let rule = "[[rule]]\nmatch = \"http:POST **\"\nclass = \"consequential\"\nrefused = \"!reply.ok\"\n";
    let till = till(&api, "http = \"POST API/delete\"\nbody = { ts = \"{reply.id}\" }", rule);
    let charge = till.charged("7");
    api.tell("POST /delete", [RouteReply::json(200, r#"{"ok": false, "error": "message_not_found"}"#)]);
    let refused = till.undo(&charge);
    assert_eq!((refused.code, &refused.json()["code"]), (Some(1), &"upstream_refused".into()), "{refused:?}");
    assert!(till.show(&charge)["undone"].is_null());
    api.tell("POST /delete", [RouteReply::json(200, r#"{"no": "word of it"}"#)]);
    let unclear = till.undo(&charge);
    assert_eq!(unclear.json()["code"], "in_doubt", "{unclear:?}");
    let id = id(&unclear.json());
    till.home.semel(["ledger", "resolve", &id, "--not-applied", "--reason", "looked"]);
    api.tell("POST /delete", [RouteReply::json(200, r#"{"ok": true}"#)]);
    assert_eq!(till.undo(&charge).json()["ok"], true);
    assert!(!till.show(&charge)["undone"].is_null());
}

/// Whether or not a rule says how its answer is read.
#[test]
fn a_mutation_that_was_refused_takes_nothing_back() {
    for read in ["refused = \"graphql\"\n", ""] {
        let api = RoutedApi::start();
        let rule = format!(
            "[[rule]]\nmatch = \"http:POST **\"\nwhen = \"body.fields == ['issueArchive']\"\n\
             class = \"consequential\"\n{read}"
        );
        let undo = "http = \"POST API/graphql\"\n\
                    body = { query = \"mutation {{ issueArchive(id: 7) {{ success }} }}\" }";
        let till = till(&api, undo, &rule);
        let charge = till.charged("7");
        let refusal = r#"{"errors": [{"path": ["issueArchive"]}], "data": null}"#;
        api.tell("POST /graphql", [RouteReply::json(200, refusal)]);
        let refused = till.undo(&charge);
        let told = refused.json();
        assert_eq!((refused.code, &told["code"]), (Some(1), &"upstream_refused".into()), "{read}{told}");
        assert!(till.show(&charge)["undone"].is_null());
        api.tell(
            "POST /graphql",
            [RouteReply::json(200, r#"{"data": {"issueArchive": {"success": true}}}"#)],
        );
        assert_eq!(till.undo(&charge).json()["ok"], true);
        assert!(!till.show(&charge)["undone"].is_null());
    }
}

#[test]
fn a_mutation_that_was_carried_out_is_not_sent_again_whatever_its_status() {
    let api = RoutedApi::start();
    let undo = "http = \"POST API/graphql\"\n\
                body = { query = \"mutation {{ issueArchive(id: 7) {{ success }} }}\" }";
    let till = till(&api, undo, "");
    let charge = till.charged("7");
    let done =
        r#"{"data": {"issueArchive": {"success": true}}, "errors": [{"path": ["issueArchive", "x"]}]}"#;
    api.tell("POST /graphql", [RouteReply::json(400, done)]);
    for _ in 0..2 {
        assert_eq!(till.undo(&charge).json()["code"], "in_doubt");
    }
    assert_eq!(api.requests().len(), 1);
}

#[test]
fn what_its_rule_calls_secret_in_an_answer_is_not_written() {
    let api = RoutedApi::start();
    let rule = "[[rule]]\nmatch = \"http:POST **\"\nsecret = [\"reply.pin\"]\n\
                [rule.undo]\nhttp = \"POST API/again\"\nbody = { id = \"{reply.id}\" }\n";
    let till = till(&api, "http = \"POST API/refunds\"", &rule.replace("API", &api.url()));
    api.tell("POST /refunds", [RouteReply::json(201, r#"{"id": "re_1", "pin": "canary-4711"}"#)]);
    let undone = till.undo(&till.charged("7"));
    assert_eq!(undone.json()["ok"], true, "{undone:?}");
    for file in till.home.state_files() {
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(11).any(|part| part == b"canary-4711"), "{}", file.display());
    }
    // What it answered can be taken back in turn.
    api.tell("POST /again", [RouteReply::json(201, "{}")]);
    let again = till.undo(&id(&undone.json()));
    assert_eq!(again.json()["ok"], true, "{again:?}");
    assert_eq!(api.requests()[1].text(), r#"{"id":"re_1"}"#);
}

#[test]
fn an_answer_means_the_same_as_for_every_other_effect() {
    let api = RoutedApi::start();
    let till = till(&api, "http = \"POST API/refunds\"\nbody = { charge = \"{reply.id}\" }", "");
    let charge = till.charged("7");
    api.tell("POST /refunds", [RouteReply::json(422, r#"{"error": "too late"}"#)]);
    let refused = till.undo(&charge);
    assert_eq!((refused.code, &refused.json()["code"]), (Some(1), &"upstream_refused".into()), "{refused:?}");
    assert!(till.show(&charge)["undone"].is_null());
    // A refusal is proof that nothing was done, so it can be asked for again.
    api.tell("POST /refunds", [RouteReply::json(202, r#"{"id": "re_1"}"#)]);
    let taken = till.undo(&charge);
    assert_eq!((taken.code, &taken.json()["evidence"]), (Some(0), &"accepted".into()), "{taken:?}");
    assert_eq!(taken.json()["reason"], "accepted, not confirmed");
    assert_eq!(api.effects(), 2);
    let keys: Vec<_> =
        api.requests().iter().map(|heard| heard.header("idempotency-key").map(str::to_owned)).collect();
    assert_ne!(keys[0], keys[1], "what was refused may be remembered under its key");
}

#[test]
fn a_lost_answer_is_in_doubt_and_not_sent_again() {
    for says in [
        RouteReply::nothing(),
        RouteReply::json(500, "{}"),
        RouteReply::json(409, "{}"),
        RouteReply::json(302, ""),
    ] {
        let api = RoutedApi::start();
        api.tell("DELETE /charges/ch_7", [says]);
        let till = till(&api, "http = \"DELETE API/charges/{reply.id}\"", "");
        let charge = till.charged("7");
        for _ in 0..2 {
            let ran = till.undo(&charge);
            assert_eq!((ran.code, &ran.json()["code"]), (Some(121), &"in_doubt".into()), "{ran:?}");
        }
        assert_eq!(api.effects(), 1);
        assert!(till.show(&charge)["undone"].is_null());
    }
}

#[test]
fn where_the_upstream_honours_the_key_it_is_sent_again_with_it() {
    let api = RoutedApi::start();
    api.tell("POST /refunds", [RouteReply::nothing(), RouteReply::json(200, "{}")]);
    let keyed = "[[rule]]\nmatch = \"http:POST *\"\n\
                 inject = { header = \"Idempotency-Key\", valid_for = \"24h\" }\n";
    let till = till(&api, "http = \"POST API/refunds\"\nbody = { charge = \"{reply.id}\" }", keyed);
    let undone = till.undo(&till.charged("7"));
    assert_eq!((undone.code, &undone.json()["tier"]), (Some(0), &"keyed".into()), "{undone:?}");
    let keys: Vec<_> =
        api.requests().iter().map(|heard| heard.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!((keys.len(), keys[0] == keys[1]), (2, true), "{keys:?}");
}

#[test]
fn an_api_that_cannot_be_reached_leaves_no_doubt() {
    let till = Till::with("[rule.undo]\nhttp = \"DELETE http://127.0.0.1:9/charges/{reply.id}\"\n");
    let charge = till.charged("7");
    for _ in 0..2 {
        let ran = till.undo(&charge);
        assert_eq!((ran.code, &ran.json()["code"]), (Some(125), &"not_started".into()), "{ran:?}");
    }
}

/// With the credential of one of them it might be taken back in the other's books.
#[test]
fn where_two_accounts_are_at_one_address_nothing_is_sent_and_it_says_why() {
    let api = RoutedApi::start();
    let account = |name: &str| {
        format!(
            "[upstream.{name}]\nurl = \"{}\"\naccount = \"{name}\"\nheaders = {{ Authorization = \"{name}\" }}\n",
            api.url()
        )
    };
    let accounts = [account("eu"), account("us")].concat();
    let till = till(&api, "http = \"DELETE API/charges/{reply.id}\"", &accounts);
    let ran = till.undo(&till.charged("7"));
    let answer = ran.json();
    assert_eq!((ran.code, &answer["code"]), (Some(125), &"not_started".into()), "{ran:?}");
    assert!(
        answer["what_happened"].as_str().is_some_and(|said| said.contains("several accounts")),
        "{answer}"
    );
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn the_truth_of_an_undo_is_asked_for_where_its_rule_says_how() {
    let api = RoutedApi::start();
    api.tell("DELETE /charges/ch_7", [RouteReply::json(202, "{}")]);
    api.tell("GET /charges/ch_7", [RouteReply::json(200, "{}"), RouteReply::json(404, "{}")]);
    let confirm = format!(
        "[[rule]]\nmatch = \"http:DELETE *\"\n[rule.confirm]\nhttp = \"GET {}/charges/ch_7\"\n\
         ok = \"status == 404\"\nwithin = \"20s\"\n",
        api.url()
    );
    let till = till(&api, "http = \"DELETE API/charges/{reply.id}\"", &confirm);
    let undone = till.undo(&till.charged("7"));
    assert_eq!((undone.code, &undone.json()["evidence"]), (Some(0), &"confirmed".into()), "{undone:?}");
    assert_eq!((api.effects(), api.count("GET /charges/ch_7")), (1, 2));
}

#[test]
fn a_request_through_the_http_door_is_taken_back() {
    let (home, bank) = (Home::new(), RoutedApi::start());
    bank.tell("POST /charges", [RouteReply::json(201, r#"{"id": "ch_7"}"#)]);
    bank.tell("DELETE /charges/ch_7", [RouteReply::json(204, "")]);
    let policy = format!(
        "[upstream.bank]\nurl = \"{0}\"\nservice = \"bank\"\nheaders_env = {{ Authorization = \"UPSTREAM_TOKEN\" }}\n\
         [[rule]]\nmatch = \"http:POST bank/charges\"\nclass = \"consequential\"\n\
         [rule.undo]\nhttp = \"DELETE {0}/charges/{{reply.id}}?order={{body.order}}\"\n",
        bank.url()
    );
    let served = Served::start(&home, &policy);
    let charge = || {
        let headers = format!("Semel-Token: {TOKEN}\r\nContent-Type: application/json\r\n");
        served.ask_raw("POST /p/bank/charges HTTP/1.1", &headers, r#"{"order": "1001"}"#).answer()
    };
    let charged = charge();
    assert_eq!((charged.status, charged.body.as_str()), (201, r#"{"id": "ch_7"}"#), "{charged:?}");
    let listed = home.json(["ledger", "list"])["items"][0].take();
    let effect = id(&listed);
    let mut undo = home.command(["--json", "ledger", "undo", &effect, "--reason", "wrong order"]);
    let undone = undo.env("UPSTREAM_TOKEN", "Bearer operator").output().expect("semel starts");
    let answer: Value = serde_json::from_slice(&undone.stdout).expect("one document");
    assert_eq!((undone.status.code(), &answer["effect"]), (Some(0), &"deleted".into()), "{answer}");
    let deleted = bank.requests().into_iter().last().expect("it was asked");
    assert_eq!(deleted.what(), "DELETE /charges/ch_7?order=1001");
    assert_eq!(deleted.header("authorization"), Some("Bearer operator"));
    let repeat = charge();
    assert_eq!(repeat.status, 409, "{repeat:?}");
    assert!(
        repeat.body.contains(&format!("its undo ({}) seems to have removed it since", id(&answer))),
        "{repeat:?}"
    );
    assert_eq!(bank.effects(), 2, "one charge and one refund");
}

/// A server on stdio with a tool that charges and one that takes back; the world is a file.
fn billing(home: &Home) {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = ["create_order", "remove_order"].map(tool);
    let listing = json!({"tools": tools}).to_string();
    let made = json!({"content": [], "structuredContent": {"id": "or_7"}}).to_string();
    let told = json!({"pages": [listing], "calls": {"create_order": {"raw": made}}});
    home.file("told.json", &told.to_string());
    let policy = format!(
        "[mcp.billing]\ncommand = [\"python3\", \"-S\", \"{}\"]\n\
         env = {{ SEMEL_WORLD = \"world\", SEMEL_HEARD = \"heard\" }}\n\
         [[rule]]\nmatch = \"mcp:billing/create_order\"\nclass = \"consequential\"\n\
         [rule.undo]\nmcp = \"./remove_order\"\nargs = {{ order = \"{{reply.id}}\", all = false }}\n",
        script("told.py")
    );
    home.file("semel.toml", &policy);
}

fn calls(home: &Home, tool: &str) -> Vec<Value> {
    let heard = std::fs::read_to_string(home.work().join("heard")).unwrap_or_default();
    let messages = heard.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.map(|mut message| message["params"].take()).filter(|params| params["name"] == tool).collect()
}

#[test]
fn a_tool_of_the_actions_own_server_takes_it_back() {
    let home = Home::new();
    billing(&home);
    let mut command = home.command(["mcp", "--name", "billing"]);
    let mut line = greeted(Line::to(&mut command));
    let made = line.call("create_order", json!({"order": "1001"}));
    let order = crate::mcp::receipt(&made)["effect_id"].as_str().expect("an effect").to_owned();
    let undone = home.semel(["--json", "ledger", "undo", &order, "--reason", "wrong order"]);
    assert_eq!((undone.code, &undone.json()["outcome"]), (Some(0), &"ran".into()), "{undone:?}");
    let again = home.semel(["--json", "ledger", "undo", &order, "--reason", "wrong order"]);
    assert_eq!((again.code, &again.json()["outcome"]), (Some(0), &"replayed".into()), "{again:?}");
    let removed = calls(&home, "remove_order");
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0]["arguments"], json!({"all": false, "order": "or_7"}));
    // The model is told, by whichever way it looks.
    let refund = id(&undone.json());
    let ledger = crate::mcp::text(&line.call("semel_ledger", json!({})));
    assert!(ledger.contains(&format!("then undone by {refund}")), "{ledger}");
    let repeat = line.call("create_order", json!({"order": "1001"}));
    assert!(
        crate::mcp::text(&repeat).contains(&format!("its undo ({refund}) seems to have removed it since")),
        "{repeat}"
    );
    assert_eq!(crate::mcp::receipt(&repeat)["code"], "superseded");
    assert_eq!(calls(&home, "create_order").len(), 1);
}

#[test]
fn a_server_that_is_not_configured_leaves_no_doubt() {
    let till = Till::with("[rule.undo]\nmcp = \"nowhere/refund\"\nargs = { charge = \"{reply.id}\" }\n");
    let ran = till.undo(&till.charged("7"));
    assert_eq!((ran.code, &ran.json()["code"]), (Some(125), &"not_started".into()), "{ran:?}");
    assert!(
        ran.json()["what_happened"].as_str().is_some_and(|what| what.contains("[mcp.nowhere]")),
        "{ran:?}"
    );
}
