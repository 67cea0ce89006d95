//! Which door asks whom, and with what in hand.

use crate::home::Home;
use crate::mcp::peers::script;
use crate::mcp::receipt;
use crate::serve::served::Served;
use semel_testkit::http::{RouteReply, RoutedApi};
use serde_json::json;

const LOST: &str = "echo x >> world; kill -9 $$";

fn probe(call: &str, found: &str) -> String {
    format!("class = \"consequential\"\n[rule.probe]\n{call}\nfound = \"{found}\"\nquiet = \"0s\"\n")
}

#[test]
fn an_origin_gets_the_credential_that_the_operator_gave_it_and_no_other_does() {
    let (home, own, other) = (Home::new(), RoutedApi::start(), RoutedApi::start());
    let mut policy = format!(
        "[upstream.bank]\nurl = \"{}/v1\"\nheaders_env = {{ Authorization = \"BANK_KEY\" }}\n",
        own.url()
    );
    for (word, api) in [("own", &own), ("other", &other)] {
        api.tell("GET /charges", [RouteReply::json(200, "{\"paid\": true}")]);
        let call = format!("http = \"GET {}/charges\"", api.url());
        policy.push_str(&format!("[[rule]]\nmatch = \"cli:{word}\"\n{}", probe(&call, "resp.paid")));
    }
    home.file("semel.toml", &policy);
    for word in ["own", "other"] {
        let mut command = home.command(["run", "--action", word, "--", "sh", "-c", LOST]);
        let ran = command.env("BANK_KEY", "Bearer operator").status().expect("semel starts");
        assert_eq!(ran.code(), Some(0), "{word}");
    }
    assert_eq!(own.requests()[0].header("authorization"), Some("Bearer operator"));
    assert_eq!(other.requests()[0].header("authorization"), None);
    // Without the variable the question cannot be asked as the operator wants it, so it is not asked at all.
    let ran = home.semel(["run", "--json", "--action", "own", "--key", "2", "--", "sh", "-c", LOST]);
    assert_eq!((ran.code, own.requests().len()), (Some(121), 1), "{ran:?}");
    assert!(ran.json()["reason"].as_str().is_some_and(|why| why.contains("BANK_KEY")), "{ran:?}");
}

#[test]
fn a_command_is_asked_about_through_a_tool_of_a_configured_server() {
    let home = Home::new();
    let listing = json!({"tools": [{"name": "list_orders", "inputSchema": {"type": "object"}}]}).to_string();
    let seen = json!({"content": [{"type": "text", "text": "{\"orders\": [\"1001\"]}"}]}).to_string();
    let told = json!({"pages": [listing], "calls": {"list_orders": {"effect": false, "raw": seen}}});
    home.file("told.json", &told.to_string());
    let server = format!(
        "[mcp.billing]\ncommand = [\"python3\", \"-S\", \"{}\"]\n\
         env = {{ SEMEL_WORLD = \"world\", SEMEL_HEARD = \"heard\" }}\n",
        script("told.py")
    );
    let call = "mcp = \"billing/list_orders\"\nargs = { order = \"{argv[4]}\" }";
    let rule = probe(call, "resp.orders.exists(o, o == argv[4])");
    home.file("semel.toml", &format!("{server}[[rule]]\nmatch = \"cli:sh *\"\n{rule}"));
    let ran = home.semel(["--json", "run", "--", "sh", "-c", LOST, "charge", "1001"]);
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"probed".into()), "{ran:?}");
    assert_eq!(home.effects(), 1);
}

#[test]
fn a_command_is_asked_about_through_a_tool_of_a_remote_server() {
    let (home, bank) = (Home::new(), semel_testkit::http::FakeMcpServer::start());
    let server = format!("[mcp.bank]\nurl = \"{}\"\n", bank.url());
    let rule = probe("mcp = \"bank/get_balance\"", "resp.text == 'charged 0'");
    home.file("semel.toml", &format!("{server}[[rule]]\nmatch = \"cli:sh *\"\n{rule}"));
    let ran = home.semel(["--json", "run", "--", "sh", "-c", LOST]);
    assert_eq!((ran.code, &ran.json()["evidence"]), (Some(0), &"probed".into()), "{ran:?}");
    assert_eq!((home.effects(), bank.effects()), (1, 0));
    let heard = bank.requests();
    let asked = heard.iter().find(|heard| heard.text().contains("tools/call")).expect("it was asked");
    assert_eq!(asked.header("mcp-session-id"), Some("s-1"), "in a session of semel's own");
    assert!(heard.iter().any(|heard| heard.line().starts_with("DELETE ")), "which it has ended");
}

#[test]
fn a_tool_is_asked_about_by_request_and_by_command() {
    let api = RoutedApi::start();
    api.tell("GET /charges/7", [RouteReply::json(200, "{\"paid\": true}")]);
    let by_request = format!("http = \"GET {}/charges/{{args.order}}\"\nfound = \"resp.paid\"", api.url());
    let by_command =
        "cmd = [\"sh\", \"-c\", \"echo asked >> asked; test $1 = 7\", \"ask\", \"{args.order}\"]";
    for call in [by_request.as_str(), by_command] {
        let home = Home::new();
        let upstream = semel_testkit::http::FakeMcpServer::start();
        let rule = format!(
            "[[rule]]\nmatch = \"mcp:bank/charge\"\nclass = \"consequential\"\nfailure = \"in_doubt\"\n\
             wait = \"1s\"\n[rule.probe]\n{call}\nquiet = \"0s\"\nbefore = true\n"
        );
        let served = Served::start(&home, &format!("[mcp.bank]\nurl = \"{}\"\n{rule}", upstream.url()));
        let there = served.call("charge", json!({"order": "7"})).json();
        let answer = receipt(&there["result"]);
        assert_eq!((&answer["effect"], &answer["evidence"]), (&"noop".into(), &"probed".into()), "{there}");
        assert_eq!(upstream.effects(), 0);
        assert!(api.count("GET /charges/7") + home.lines("asked") > 0);
    }
}
