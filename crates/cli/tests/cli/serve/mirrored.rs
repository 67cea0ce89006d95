//! A remote server that reads its tools' arguments in headers too, and refuses a call whose headers and body disagree.

use super::served::Served;
use super::stateless::ask_saying;
use crate::home::Home;
use crate::mcp::door::stage::stateless;
use crate::mcp::line::Line;
use crate::mcp::receipt;
use semel_testkit::http::{FakeMcpServer, Response};
use serde_json::{Value, json};

/// Its key goes into an argument that is mirrored, and the tool that is asked before has another one.
const RULE: &str = "[[rule]]\nmatch = \"mcp:*/charge_marked\"\nclass = \"consequential\"\n\
    key = [\"args.amount\"]\n[rule.inject]\narg = \"request_id\"\n\
    [rule.probe]\nmcp = \"./get_charges\"\nargs = { account = \"of {args.amount}\" }\nbefore = true\n\
    found = \"resp.text == 'charged 7'\"\n";

/// What it was asked to do, and what the headers said of it.
fn heard(upstream: &FakeMcpServer, tool: &str) -> Vec<[Option<String>; 3]> {
    let calls = upstream.requests().into_iter().filter(|heard| heard.text().contains(&format!("{tool:?}")));
    let said = |heard: semel_testkit::http::Request| {
        ["request", "region", "account"]
            .map(|name| heard.header(&format!("mcp-param-{name}")).map(str::to_owned))
    };
    calls.map(said).collect()
}

/// It saw each charge once, under a key of its own, and was asked before each of them.
fn charged_by_key(upstream: &FakeMcpServer) {
    assert_eq!(upstream.effects(), 2);
    let charges = heard(upstream, "charge_marked");
    let keys: Vec<&String> = charges.iter().filter_map(|[key, ..]| key.as_ref()).collect();
    assert!(keys.len() == 2 && keys[0] != keys[1] && !keys.contains(&&"mine".to_owned()), "{charges:?}");
    assert!(charges.iter().all(|[_, region, _]| region.as_deref() == Some("eu")), "{charges:?}");
    let asked: Vec<_> = heard(upstream, "get_charges").into_iter().map(|[.., account]| account).collect();
    assert_eq!(asked, [Some("of 1".to_owned()), Some("of 2".to_owned())]);
}

#[test]
fn over_http_what_semel_puts_into_a_call_is_mirrored_too() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let policy = format!("[mcp.bank]\nurl = \"{}\"\n{RULE}", upstream.url());
    let served = Served::start(&home, &policy);
    let charge = |arguments: Value, headers: &str| -> Response {
        let params = json!({"name": "charge_marked", "arguments": arguments});
        ask_saying(&served, "tools/call", params, headers).answer()
    };
    let region = "Mcp-Param-Region: eu\r\n";
    let plain = charge(json!({"amount": 1, "region": "eu", "semel_again": "one more"}), region);
    assert_eq!(plain.tool_outcome(), "ran", "{plain:?}");
    let own = format!("{region}Mcp-Param-Request: mine\r\n");
    let overwritten = charge(json!({"amount": 2, "region": "eu", "request_id": "mine"}), &own);
    assert_eq!(overwritten.tool_outcome(), "ran", "{overwritten:?}");
    charged_by_key(&upstream);
    // What the client itself says in two ways is refused, as without semel.
    let other = charge(json!({"amount": 3, "region": "eu"}), "Mcp-Param-Region: us\r\n");
    assert!(other.body.contains("the headers are not what the body says"), "{other:?}");
    assert_eq!(upstream.effects(), 2);
}

#[test]
fn behind_pipes_what_semel_puts_into_a_call_is_mirrored_too() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    home.file("semel.toml", RULE);
    let mut line = Line::start(&home, &home.stdio_before_http(&upstream.url()));
    for arguments in [
        json!({"amount": 1, "region": "eu", "semel_again": "one more"}),
        json!({"amount": 2, "region": "eu", "request_id": "mine"}),
    ] {
        let call = json!({"name": "charge_marked", "arguments": arguments, "_meta": stateless()});
        assert_eq!(receipt(&line.call_with(call))["outcome"], "ran");
    }
    charged_by_key(&upstream);
}
