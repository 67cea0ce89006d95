//! Remote servers whose entries hold more than an address and headers: what becomes of the rest, and what comes back.

use super::scene::{SECRET, SEMEL, Scene};
use serde_json::{Value, json};

const CODEX: &str = ".codex/config.toml";
const CURSOR: &str = ".cursor/mcp.json";

/// The line of the report that is about a server.
fn line(ran: &crate::home::Ran, server: &str) -> String {
    let line = ran.stdout.lines().find(|line| line.split(' ').next() == Some(server));
    line.unwrap_or_else(|| panic!("a line about {server}: {ran:?}")).to_owned()
}

fn servers(scene: &Scene, file: &str) -> Value {
    serde_json::from_str::<Value>(&scene.read(file)).expect("JSON")["mcpServers"].clone()
}

#[test]
fn a_server_without_credentials_is_guarded_where_nobody_signs_in_or_somebody_asks_for_it() {
    let scene = Scene::new();
    let before = r#"{"mcpServers": {
  "dev": {"url": "http://localhost:3000/mcp"}, "six": {"url": "http://[::1]:3000/mcp"},
  "far": {"url": "https://far.example/mcp"}, "near": {"url": "https://localhost.far.example/mcp"}
}}"#;
    scene.file(CURSOR, before);
    let ran = scene.done(["--write"]);
    for (server, action) in
        [("dev", "guard"), ("six", "guard"), ("far", "left alone"), ("near", "left alone")]
    {
        assert!(line(&ran, server).contains(action), "{server}: {ran:?}");
    }
    assert!(line(&ran, "far").ends_with("use semel serve, or --server far if it does not"), "{ran:?}");
    let ran = scene.done(["--server", "far", "--write"]);
    assert!(line(&ran, "far").contains(" guard "), "{ran:?}");
    let args = json!(["mcp", "--name", "far", "--url", "https://far.example/mcp"]);
    assert_eq!(servers(&scene, CURSOR)["far"], json!({"command": SEMEL, "args": args}));
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read(CURSOR), before);
}

#[test]
fn a_credential_survives_an_env_that_is_there_already_however_toml_writes_it() {
    let url = "url = \"https://pay.example/mcp\"\n";
    let headers = "http_headers = { Authorization = \"Bearer hunter2\", X-Team = \"blue\" }\n";
    let table = "[mcp_servers.pay.http_headers]\nAuthorization = \"Bearer hunter2\"\nX-Team = 'blue'\n";
    for (entry, kept) in [
        (format!("{url}{headers}env = {{}}\n"), false),
        (format!("env = {{}}\n{url}{headers}"), false),
        (format!("{url}{headers}env = {{ KEEP = \"me\" }}\n"), true),
        (format!("env = {{KEEP = 'me'}} # why\n{headers}{url}"), true),
        (format!("{url}{headers}\n[mcp_servers.pay.env]\nKEEP = \"me\"\n"), true),
        (format!("{url}\n{table}"), false),
        (format!("{url}env.KEEP = \"me\"\n{headers}"), true),
    ] {
        let scene = Scene::new();
        let before = format!("[mcp_servers.pay]\n{entry}\n[mcp_servers.b]\ncommand = \"npx\"\n");
        scene.file(CODEX, &before);
        let ran = scene.done(["--write"]);
        assert!(line(&ran, "pay").contains(" guard "), "{before}: {ran:?}");
        let written = scene.read(CODEX);
        let document: toml_edit::DocumentMut = written.parse().expect("TOML");
        let pay = &document["mcp_servers"]["pay"];
        assert_eq!(pay["env"]["SEMEL_HEADER_1"].as_str(), Some("Bearer hunter2"), "{written}");
        assert_eq!(pay["env"]["SEMEL_HEADER_2"].as_str(), Some("blue"), "{written}");
        assert_eq!(pay["env"].get("KEEP").is_some(), kept, "{written}");
        assert!(pay.get("http_headers").is_none(), "{written}");
        assert_eq!(before.matches('#').count(), written.matches('#').count(), "{written}");
        scene.done(["--undo", "--write"]);
        assert_eq!(scene.read(CODEX), before);
    }
}

#[test]
fn an_env_beside_headers_is_added_to_and_gives_back_what_it_was_given() {
    for (env, kept) in [
        (r#"{}"#, json!({})),
        (r#"{"KEEP": "me"}"#, json!({"KEEP": "me"})),
        (r#"{"SEMEL_HEADER_1": "mine"}"#, json!({"SEMEL_HEADER_1": "mine"})),
    ] {
        for entry in [
            format!(
                r#"{{"url": "https://pay.example/mcp", "headers": {{"Authorization": "Bearer hunter2"}}, "env": {env}}}"#
            ),
            format!(
                r#"{{"env": {env}, "headers": {{"Authorization": "Bearer hunter2"}}, "url": "https://pay.example/mcp"}}"#
            ),
        ] {
            let scene = Scene::new();
            let before = format!(r#"{{"mcpServers": {{"pay": {entry}, "good": {{"command": "npx"}}}}}}"#);
            scene.file(CURSOR, &before);
            let ran = scene.done(["--write"]);
            for server in ["pay", "good"] {
                assert!(line(&ran, server).contains(" guard "), "{before}: {ran:?}");
            }
            let written = scene.read(CURSOR);
            assert_eq!(written.matches(SEMEL).count(), 2, "{written}");
            assert_eq!(written.matches(SECRET).count(), 1, "{written}");
            let env = servers(&scene, CURSOR)["pay"]["env"].clone();
            assert!(
                kept.as_object().expect("an object").iter().all(|(name, value)| env[name] == *value),
                "{written}"
            );
            scene.done(["--undo", "--write"]);
            assert_eq!(scene.read(CURSOR), before);
        }
    }
}

#[test]
fn a_server_that_cannot_be_guarded_keeps_no_other_one_from_it() {
    let address = r#""url": "https://pay.example/mcp""#;
    let headers = r#""headers": {"Authorization": "hunter2"}"#;
    for (entry, why) in [
        (format!(r#"{address}, {headers}, "env": null"#), "both an address and env"),
        (format!(r#"{address}, {headers}, "args": ["x"]"#), "both an address and args"),
        (format!(r#"{address}, "headers": {{"Authorization": "hunter2", "X-Team": ""}}"#), "X-Team is empty"),
        (
            format!(r#"{address}, "headers": {{"Authorization": "hunter2", "X-Team": "é"}}"#),
            "X-Team holds a character",
        ),
        (format!(r#"{address}, {headers}, "type": "ws""#), "its type is \"ws\""),
        (format!(r#""url": "https://pay.example/sse", {headers}"#), "SSE"),
    ] {
        let scene = Scene::new();
        let before =
            format!("{{\"mcpServers\": {{\"pay\": {{{entry}}}, \"good\": {{\"command\": \"npx\"}}}}}}");
        scene.file(CURSOR, &before);
        let ran = scene.done(["--write"]);
        let pay = line(&ran, "pay");
        assert!(pay.contains("left alone") && pay.contains(why), "{before}: {ran:?}");
        let written = scene.read(CURSOR);
        assert!(written.contains(&entry) && written.contains(SEMEL), "{written}");
    }
}

#[test]
fn what_codex_takes_from_its_environment_is_not_overwritten() {
    let headers = "env_http_headers = { Authorization = \"TOKEN\" }\n";
    for (rest, why) in [
        ("env = { TOKEN = \"mine\" }\n", "its env sets TOKEN"),
        ("env_vars = [\"OTHER\"]\n", "both an address and env_vars"),
    ] {
        let scene = Scene::new();
        let before = format!("[mcp_servers.pay]\nurl = \"https://pay.example/mcp\"\n{headers}{rest}");
        scene.file(CODEX, &before);
        let ran = scene.done(["--write"]);
        assert!(line(&ran, "pay").contains(why), "{ran:?}");
        assert_eq!(scene.read(CODEX), before);
    }
}

/// Its `url` is for SSE, unless `type` says otherwise; its `httpUrl` is not.
#[test]
fn gemini_tells_the_transports_apart_by_the_name_of_the_address() {
    let scene = Scene::new();
    let file = ".gemini/settings.json";
    let before = r#"{"mcpServers": {
  "old": {"url": "https://x.example/a", "headers": {"Authorization": "hunter2"}},
  "sse": {"url": "https://x.example/b", "type": "sse", "headers": {"Authorization": "hunter2"}},
  "two": {"url": "https://x.example/c", "httpUrl": "https://x.example/d", "headers": {"Authorization": "hunter2"}},
  "typed": {"type": "http", "url": "https://x.example/e", "headers": {"Authorization": "hunter2"}, "timeout": 5},
  "http": {"httpUrl": "https://x.example/sse", "headers": {"Authorization": "hunter2"}, "timeout": 5}
}}"#;
    scene.file(file, before);
    let ran = scene.done(["--write"]);
    assert!(line(&ran, "old").contains("with httpUrl it can be guarded"), "{ran:?}");
    assert!(line(&ran, "sse").contains("SSE"), "{ran:?}");
    assert!(line(&ran, "two").contains("two addresses"), "{ran:?}");
    assert_eq!(scene.read(file).matches(SEMEL).count(), 2, "{ran:?}");
    scene.done(["--undo", "--write"]);
    assert_eq!(scene.read(file), before);
}
