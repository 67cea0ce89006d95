use crate::home::Home;
use crate::mcp::door::stage::stateless;
use crate::mcp::line::Line;
use crate::mcp::receipt;
use semel_testkit::http::FakeMcpServer;
use serde_json::{Value, json};

fn lines(messages: &[Value]) -> Vec<u8> {
    messages.iter().flat_map(|message| format!("{message}\n").into_bytes()).collect()
}

fn hello(version: &str) -> [Value; 2] {
    let params =
        json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"amount": 1}}})
}

#[test]
fn a_client_on_stdio_stands_before_a_remote_server() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    upstream.release();
    let speak = |id: u64| {
        let [first, second] = hello("2025-11-25");
        let input = lines(&[first, second, call(id, "charge"), call(id + 1, "get_balance")]);
        let ran = home.semel_reading(["mcp", "--url", &upstream.url(), "--name", "bank"], &input);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
        let answer = said.iter().find(|message| message["id"] == id).cloned();
        assert!(said.iter().any(|message| message["id"] == id + 1), "{said:?}");
        answer.unwrap_or_else(|| panic!("no answer: {said:?}"))
    };
    let outcome = |answer: Value| answer["result"]["_meta"]["dev.semel/receipt"]["outcome"].clone();
    assert_eq!(outcome(speak(5)), "ran");
    assert_eq!(outcome(speak(8)), "replayed");
    assert_eq!(upstream.effects(), 1);
    let heard = upstream.requests();
    let charged = heard.iter().find(|heard| heard.text().contains("\"charge\"")).expect("a charge");
    assert_eq!(charged.header("mcp-session-id"), Some("s-1"));
    assert_eq!(charged.header("mcp-protocol-version"), Some("2025-11-25"));
    assert!(heard.iter().any(|heard| heard.line().starts_with("DELETE /mcp ")), "it says goodbye");
}

#[test]
fn what_stands_beside_what_semel_edits_stays_before_a_remote_server() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let [first, second] = hello("2025-11-25");
    let mut charge = call(5, "charge");
    charge["trace"] = json!("t-2");
    let list = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list"});
    let input = lines(&[first, second, list, charge]);
    let ran = home.semel_reading(["mcp", "--url", &upstream.url(), "--name", "bank"], &input);
    let said: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    for (id, edited) in [(0, "idempotency"), (4, "[semel: ")] {
        let answer = said.iter().find(|message| message["id"] == id).expect("an answer");
        assert!(answer["trace"] == "t-1" && answer["result"].to_string().contains(edited), "{answer}");
    }
    let heard = upstream.requests().into_iter().find(|heard| heard.text().contains("\"charge\""));
    let heard = heard.expect("a charge").json();
    assert_eq!((&heard["trace"], upstream.effects()), (&json!("t-2"), 1), "{heard}");
}

/// It does not wait for the answer to its greeting, which begins the session.
#[test]
fn a_guarded_call_waits_for_the_session_where_its_client_does_not() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let [mut first, second] = hello("2025-11-25");
    first["params"]["clientInfo"]["name"] = json!("impatient");
    let input = lines(&[first, second, call(5, "charge")]);
    let watched = upstream.clone();
    let released = std::thread::spawn(move || {
        // Whatever comes too early has come by then, or the greeting is all that does.
        for _ in 0..100 {
            if watched.requests().len() > 1 {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        watched.release();
    });
    let ran = home.semel_reading(["mcp", "--url", &upstream.url(), "--name", "bank"], &input);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    released.join().expect("it was released");
    let heard = upstream.requests();
    assert!(heard[0].text().contains("initialize") && upstream.effects() == 1, "{heard:?}");
    assert!(heard[1..].iter().all(|heard| heard.header("mcp-session-id") == Some("s-1")), "{heard:?}");
}

#[test]
fn a_variable_that_is_not_set_is_named_as_it_was_typed() {
    let home = Home::new();
    let ran = home.semel(["mcp", "--url", "http://127.0.0.1:1/mcp", "--header-env", "X-Key=NOT_SET"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let expected = "error: --header-env X-Key=NOT_SET: the environment variable NOT_SET is not set\n";
    assert!(ran.stderr.ends_with(expected), "{ran:?}");
}

#[test]
fn of_the_stateless_era_headers_mirror_the_body() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "get_balance", "arguments": {}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
    let mut command = vec!["mcp".to_owned(), "--url".to_owned(), upstream.url()];
    command.extend(["--header-env".to_owned(), "X-Login=USER".to_owned()]);
    let ran = home.semel_reading(&command, &lines(&[message]));
    assert!(ran.stdout.contains("charged 0"), "{ran:?}");
    let heard = upstream.requests();
    let called = heard.iter().find(|heard| heard.text().contains("tools/call")).expect("a call");
    for (name, value) in [
        ("mcp-protocol-version", Some("2026-07-28")),
        ("mcp-method", Some("tools/call")),
        ("mcp-name", Some("get_balance")),
        ("mcp-session-id", None),
        ("x-login", Some("alice")),
    ] {
        assert_eq!(called.header(name), value, "{name}");
    }
    let listed =
        heard.iter().find(|heard| heard.text().contains("tools/list")).expect("semel asks for the tools");
    assert_eq!(listed.header("mcp-method"), Some("tools/list"));
}

#[test]
fn a_remote_tool_that_asks_twice_is_one_effect() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let mut line = Line::start(&home, &home.stdio_before_http(&upstream.url()));
    let mut call = json!({"name": "charge_asking", "arguments": {"amount": 1}, "_meta": stateless()});
    for state in ["one", "two"] {
        // Whoever asks again is asked again.
        for _ in 0..2 {
            let asked = line.call_with(call.clone());
            assert_eq!(
                (&asked["resultType"], &asked["requestState"]),
                (&json!("input_required"), &json!(state))
            );
        }
        assert_eq!(upstream.effects(), 0);
        call["inputResponses"] = json!({"sure": {"action": "accept"}});
        call["requestState"] = json!(state);
    }
    let charged = line.call_with(call.clone());
    assert_eq!(receipt(&charged)["outcome"], "ran", "{charged}");
    assert_eq!(receipt(&line.call_with(call))["outcome"], "replayed");
    assert_eq!(upstream.effects(), 1);
}

#[test]
fn a_remote_subscription_stays_open_and_is_let_go_of_where_its_client_ends_it() {
    let (home, upstream) = (Home::new(), FakeMcpServer::start());
    let mut line = Line::start(&home, &home.stdio_before_http(&upstream.url()));
    let id = line.ask("subscriptions/listen", json!({"_meta": stateless(), "notifications": {}}));
    let said = |line: &mut Line| -> Value {
        serde_json::from_slice(&line.read().expect("the server says something")).expect("a message")
    };
    let acknowledged = said(&mut line);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    let call = json!({"name": "charge", "arguments": {"amount": 1}, "_meta": stateless()});
    assert_eq!(receipt(&line.call_with(call))["outcome"], "ran");
    upstream.release();
    let changed = said(&mut line);
    assert_eq!(changed["method"], "notifications/tools/list_changed", "{changed}");
    line.notify("notifications/cancelled", json!({"requestId": id, "_meta": stateless()}));
    home.wait_until("the server's stream was let go of", || upstream.streams() == 0);
    assert_eq!(upstream.effects(), 1);
}

#[test]
fn a_remote_server_that_is_not_there_is_an_error_and_nothing_is_sent_again() {
    let home = Home::new();
    let input = lines(&[hello("2025-11-25")[0].clone(), call(5, "charge")]);
    let ran = home.semel_reading(["mcp", "--url", "http://127.0.0.1:9/mcp"], &input);
    assert!(ran.stdout.contains(r#""id":0,"error""#) && ran.stdout.contains("not_started"), "{ran:?}");
}
