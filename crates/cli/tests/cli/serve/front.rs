use super::served::{Served, TOKEN};
use crate::home::Home;
use semel_testkit::http::{FakeMcpServer, RawClient};
use semel_testkit::postgres_server::free_port;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn only_who_shows_the_token_under_a_known_name_is_let_in() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let status = |headers: &str| served.ask_raw("GET /mcp/bank HTTP/1.1", headers, "").answer().status;
    let token = format!("Semel-Token: {TOKEN}\r\n");
    assert_eq!(status(""), 401);
    assert_eq!(status("Authorization: Bearer wrong-token-of-this\r\n"), 401);
    assert_eq!(status(&token), 200);
    assert_eq!(status(&format!("{token}Host: evil.example\r\n")), 403);
    assert_eq!(status(&format!("{token}Origin: https://evil.example\r\n")), 403);
    assert_eq!(status(&format!("{token}Origin: http://localhost:6274\r\n")), 200);
    let asking = "Origin: http://localhost:6274\r\nAccess-Control-Request-Headers: semel-token\r\n";
    let allowed = served.ask_raw("OPTIONS /mcp/bank HTTP/1.1", asking, "").answer();
    assert_eq!(allowed.status, 204);
    assert!(allowed.head.contains("access-control-allow-origin: http://localhost:6274"), "{allowed:?}");
    let unauthorized = served.ask_raw("GET /mcp/bank HTTP/1.1", "", "").answer();
    assert!(unauthorized.head.contains("www-authenticate: Bearer realm=\"semel\""), "{unauthorized:?}");
    assert_eq!(served.ask_raw("GET /healthz HTTP/1.1", "", "").answer().body, "ok\n");
    assert_eq!(served.ask_raw("GET /healthz HTTP/1.1", "Host: evil.example\r\n", "").answer().status, 403);
    for path in ["/", "/mcp", "/mcp/", "/mcp/other", "/mcp/bank/x", "/mcp/bank%2f..", "/api/v1"] {
        let answer = served.ask_raw(&format!("GET {path} HTTP/1.1"), &token, "").answer();
        assert_eq!(answer.status, 404, "{path}");
    }
    assert!(
        upstream.requests().iter().all(|heard| !heard.head.text.contains(TOKEN)),
        "the token goes no further"
    );
}

#[test]
fn what_is_too_large_or_no_message_is_refused_before_anything_is_passed_on() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let post = |headers: &str, body: &str| served.ask("POST", headers, body).answer();
    let batch = post("", r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"charge"}}]"#);
    assert_eq!((batch.status, batch.json()["error"]["code"].as_i64()), (400, Some(-32600)));
    let broken = post("", "{");
    assert_eq!((broken.status, broken.json()["error"]["code"].as_i64()), (400, Some(-32700)));
    assert_eq!(post("Content-Length: 900000000\r\n", "{}").status, 413);
    let long = format!("X-Long: {}\r\n", "x".repeat(100_000));
    assert_eq!(post(&long, "{}").status, 431);
    let many: String = (0..300).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(post(&many, "{}").status, 431);
    assert_eq!(served.ask("PUT", "", "{}").answer().status, 405);
    assert!(upstream.requests().is_empty(), "{:?}", upstream.requests());
}

#[test]
fn a_token_is_made_once_and_for_its_owner_alone() {
    let home = Home::new();
    home.file("semel.toml", "");
    let said = |home: &Home| {
        let mut child = home.command(["--json", "serve", "--listen", "127.0.0.1:0"]);
        let mut child = child.stdout(std::process::Stdio::piped()).spawn().expect("semel starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
        child.kill().and_then(|()| child.wait()).expect("it ends");
        line
    };
    let (first, again) = (said(&home), said(&home));
    let file = home.state().join("serve.token");
    let token = std::fs::read_to_string(&file).expect("a token");
    // By its looks it is semel's own, so that one that is mistyped is not taken for an upstream's credential.
    assert!(token.starts_with("semel_") && token.trim().len() == "semel_".len() + 64, "{token}");
    assert!(!first.contains(token.trim()) && first.contains("serve.token") && again.contains("serve.token"));
    assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("it is ours");
    let ran = home.semel(["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("chmod 600"), "{ran:?}");
}

/// The first line with these words that a server says at its start.
fn line_with(words: &str, command: &mut Command) -> String {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("semel starts");
    let talk = BufReader::new(child.stderr.take().expect("a pipe"));
    let line = talk.lines().map_while(Result::ok).find(|line| line.contains(words));
    child.kill().and_then(|()| child.wait()).expect("it ends");
    line.expect("it is said")
}

#[test]
fn a_server_whose_ledger_cannot_be_reached_starts_on_a_fresh_host_and_makes_its_token() {
    let home = Home::new();
    let mut serve = home.command(["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SEMEL_LEDGER", format!("redis://127.0.0.1:{}", free_port()));
    let line = line_with("clients show the token in", &mut serve);
    assert!(line.ends_with("/shared/serve.token"), "{line}");
    assert!(home.state().join("shared/serve.token").exists());
}

#[test]
fn a_server_that_others_reach_without_tls_says_so() {
    let home = Home::new();
    home.file("semel.toml", "[serve]\nallow_remote = true\n");
    let line = line_with("without TLS", &mut home.command(["serve", "--listen", "0.0.0.0:0"]));
    assert!(line.contains("set tls under [serve]"), "{line}");
}

#[test]
fn what_is_not_safe_to_serve_is_not_served_and_the_place_is_named() {
    let home = Home::new();
    for (policy, words) in [
        ("[serve]\nlisten = \"0.0.0.0:0\"\n", "can be reached by other machines"),
        (
            "[serve]\nlisten = \"0.0.0.0:0\"\nallow_remote = true\nrequire_token = false\n",
            "require_token is false",
        ),
        ("[mcp.a]\nurl = \"ftp://x\"\n", "`ftp://` is not spoken here"),
        ("[mcp.a]\nurl = \"http://u:p@x/\"\n", "user name or password"),
        ("[mcp.a]\nurl = \"http://2130706433/\"\n", "number in disguise"),
        ("[mcp.a]\nurl = \"http://a\"\nheaders_env = { X = \"NOT_SET\" }\n", "NOT_SET is not set"),
        (
            "[mcp.a]\ncommand = [\"/does/not/exist\"]\n",
            "semel.toml:1: [mcp.a]: command: cannot start /does/not/exist",
        ),
        (
            "[mcp.a]\ncommand = [\"true\"]\ncwd = \"tools\"\n",
            "semel.toml:1: [mcp.a]: command: cannot start true: its cwd ",
        ),
        ("[mcp.a]\ncomand = [\"x\"]\n", "did you mean `command`?"),
        (
            "[upstream.a]\nurl = \"http://127.0.0.1:9/x\"\n[upstream.b]\nurl = \"http://127.0.0.1:9//x\"\n\
             headers = { A = \"k\" }\n",
            "[upstream.b] is at the address of [upstream.a] with other headers",
        ),
    ] {
        home.file("semel.toml", policy);
        let ran = home.semel(["serve"]);
        assert_eq!(ran.code, Some(2), "{policy}: {ran:?}");
        assert!(ran.stderr.contains(words), "{policy}: {ran:?}");
    }
}

#[test]
fn a_server_without_upstreams_says_what_it_answers_and_where_it_looked() {
    let home = Home::new();
    let told = || line_with("answers /api/v1", &mut home.command(["serve", "--listen", "127.0.0.1:0"]));
    assert!(told().ends_with("no semel.toml was found from here"), "{}", told());
    let file = home.file("semel.toml", "[defaults]\nwait = \"1s\"\n");
    assert!(told().ends_with(&format!("no [upstream.NAME] in {}", file.display())), "{}", told());
}

/// It greets, and ends.
const SHORT_LIVED: &str = r#"
import json, sys
asked = json.loads(sys.stdin.readline())
version = asked["params"].get("protocolVersion")
result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "bank", "version": "1"}}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
sys.stdin.readline()
sys.exit(3 if version else 4)
"#;

#[test]
fn a_server_that_ends_is_said_to_have_and_one_that_is_told_to_is_not() {
    let home = Home::new();
    let command = json!(["python3", "-S", "-c", SHORT_LIVED]);
    let mut served = Served::start(&home, &format!("[mcp.bank]\ncommand = {command}\n"));
    home.wait_until("it is said", || served.said().contains("the server bank has ended (exit status: 3)"));
    assert!(served.stop().success());
    let stays =
        SHORT_LIVED.replace("sys.exit(3 if version else 4)", "open('greeted', 'w'); sys.stdin.read()");
    let command = json!(["python3", "-S", "-c", stays]);
    let mut served = Served::start(&home, &format!("[mcp.shop]\ncommand = {command}\n"));
    home.wait_until("it has greeted", || home.work().join("greeted").exists());
    assert!(served.stop().success());
    assert!(!served.said().contains("has ended"), "{}", served.said());
}

#[test]
fn a_port_alone_is_one_of_this_machine() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port();
    for listen in [format!("{port}"), format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let refused = home.semel(["serve", "--listen", &listen]);
        let said = format!("cannot listen on 127.0.0.1:{port}");
        assert!(refused.stderr.contains(&said) && refused.stderr.contains("--listen"), "{refused:?}");
    }
    let odd = home.semel(["serve", "--listen", "here"]);
    assert!(odd.code == Some(2) && odd.stderr.contains("such as 127.0.0.1:7777"), "{odd:?}");
}

/// It greets, and then asks for ever more without reading an answer.
const DEAF: &str = r#"
import json, sys, time
asked = json.loads(sys.stdin.readline())
result = {"protocolVersion": asked["params"].get("protocolVersion"), "capabilities": {}, "serverInfo": {"name": "b", "version": "1"}}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
if asked["method"] == "initialize":
    for number in range(8_000):
        print(json.dumps({"jsonrpc": "2.0", "id": f"{number}-" + "x" * 10_000, "method": "roots/list"}), flush=True)
    open("asked", "w")
time.sleep(60)
"#;

#[test]
fn a_server_that_asks_without_reading_is_told_no_more() {
    let home = Home::new();
    let command = json!(["python3", "-S", "-c", DEAF]);
    let served = Served::start(&home, &format!("[mcp.bank]\ncommand = {command}\n"));
    home.wait_until("it has asked", || home.work().join("asked").exists());
    // It has said eighty megabytes, and would have been told as much.
    assert!(served.memory_peak() < 60 << 10, "{} KiB", served.memory_peak());
}

#[test]
fn large_messages_that_trickle_keep_others_waiting_for_seconds_alone() {
    let home = Home::new();
    let upstream = FakeMcpServer::start();
    let served = Served::before(&home, &upstream.url());
    let headers =
        format!("Semel-Token: {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n");
    // Which of them comes too late is not known.
    let mut trickling: Vec<_> =
        (0..5).map(|_| served.ask_raw("POST /mcp/bank HTTP/1.1", &headers, "{")).collect();
    let answered = |asked: &[RawClient]| asked.iter().position(RawClient::is_answered);
    home.wait_until("one is turned away", || answered(&trickling).is_some());
    let first = answered(&trickling).expect("it is still there");
    let crowded = trickling.swap_remove(first).answer();
    assert_eq!(crowded.status, 503, "{crowded:?}");
    assert!(crowded.head.contains("retry-after: 1"), "{crowded:?}");
    drop(trickling);
    assert_eq!(upstream.effects(), 0);
}
