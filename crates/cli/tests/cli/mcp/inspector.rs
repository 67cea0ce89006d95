//! The Inspector's command line, which many people meet MCP with.

use super::peers::{NAME, Server, installed, node};
use super::{Way, assert_in_doubt, assert_replayed, text};
use crate::home::{Home, Ran};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// What the Inspector exits with when a tool reports an error.
const TOOL_ERROR: i32 = 5;

fn inspect(home: &Home, server: &[String], tool: &str) -> (Option<i32>, Value) {
    let mut command = home.program(&[node()]);
    command.arg(installed("tests").join("node_modules/.bin/mcp-inspector")).arg("--cli");
    match server {
        [url] => drop(command.args([url, "--transport", "http"])),
        // In a file, where two dashes are the server's own.
        [program, arguments @ ..] => {
            let given = |(name, value): (&OsStr, Option<&OsStr>)| Some((text_of(name)?, text_of(value?)?));
            let environment: BTreeMap<String, String> = command.get_envs().filter_map(given).collect();
            let server = json!({"command": program, "args": arguments, "env": environment});
            let servers = json!({"mcpServers": {NAME: server}});
            let file = home.file("servers.json", &servers.to_string());
            command.arg("--config").arg(file).args(["--server", NAME]);
        }
        [] => unreachable!("a server has a name"),
    }
    command.args(["--method", "tools/call", "--tool-name", tool, "--format", "json"]);
    command.args(["--tool-arg", "customer=ada", "--tool-arg", "amount=3"]);
    let ran = Ran::of(command.output().expect("the Inspector starts"));
    let document = ran.stdout.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let mut document = document.unwrap_or_else(|| panic!("no document: {ran:?}"));
    (ran.code, document["result"].take())
}

fn text_of(words: &OsStr) -> Option<String> {
    words.to_str().map(str::to_owned)
}

fn charges_once(home: &Home, server: &[String]) {
    let (code, first) = inspect(home, server, "charge");
    assert_eq!(code, Some(0), "{first}");
    assert!(text(&first).starts_with("charged: ch_"), "{first}");
    let (code, again) = inspect(home, server, "charge");
    assert_eq!(code, Some(0), "{again}");
    assert_replayed(&again, &first);
    assert_eq!(home.effects(), 1);
}

#[test]
fn charges_once_over_stdio() {
    let home = Home::new();
    charges_once(&home, &home.stdio(Way::Guarded, Server::Python));
}

#[test]
fn charges_once_over_http() {
    let home = Home::new();
    let served = home.http(Way::Guarded, Server::Python);
    charges_once(&home, &[served.url().to_owned()]);
}

#[test]
fn charges_twice_without_semel() {
    let home = Home::new();
    let server = home.stdio(Way::Direct, Server::Python);
    for _ in 0..2 {
        assert_eq!(inspect(&home, &server, "charge").0, Some(0));
    }
    assert_eq!(home.effects(), 2);
}

#[test]
fn shows_a_doubt_as_a_tool_error() {
    let home = Home::new();
    let server = home.stdio(Way::Guarded, Server::Python);
    for _ in 0..2 {
        let (code, result) = inspect(&home, &server, "die_after_charge");
        assert_eq!(code, Some(TOOL_ERROR), "{result}");
        assert_in_doubt(&result);
    }
    assert_eq!(home.effects(), 1);
}
