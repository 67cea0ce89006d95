//! The real agents, with a scripted model, for `cargo xtask test --long`: their own re-send, not our replay of it.

use super::Way;
use super::peers::{NAME, Server, installed, python, script};
use super::running::Running;
use crate::home::{Home, Ran};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy)]
enum Agent {
    ClaudeCode,
    Codex,
}

/// One task of the agent: the scripted model makes it call a tool that charges a customer.
fn charge(home: &Home, agent: Agent, url: &str, tool: &str, times: u32) -> Ran {
    let arguments = r#"{"customer":"ada","amount":3}"#;
    let words = [python(), script("model.py"), tool.to_owned(), arguments.to_owned(), times.to_string()];
    let model = Running::start(&mut home.program(&words));
    let address = format!("http://127.0.0.1:{}", model.port());
    let mut command = match agent {
        Agent::ClaudeCode => claude_code(home, &address, url),
        Agent::Codex => codex(home, &address, url),
    };
    Ran::of(command.stdin(Stdio::null()).output().expect("the agent starts"))
}

fn claude_code(home: &Home, model: &str, url: &str) -> Command {
    let servers = serde_json::json!({"mcpServers": {NAME: {"type": "http", "url": url}}});
    let servers = home.file("servers.json", &servers.to_string());
    let mut command = Command::new(installed("agents").join("node_modules/.bin/claude"));
    home.furnish(&mut command).arg("-p").arg("charge ada").arg("--mcp-config").arg(servers);
    command.args(["--strict-mcp-config", "--allowedTools", &format!("mcp__{NAME}")]);
    command.env("ANTHROPIC_BASE_URL", model).env("ANTHROPIC_API_KEY", "none");
    command.env("CLAUDE_CONFIG_DIR", home.work().join("claude"));
    // Nothing but the model and the server is spoken to.
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    // The model is offered its tools at once, and need not search for them.
    command.env("ENABLE_TOOL_SEARCH", "false");
    command
}

fn codex(home: &Home, model: &str, url: &str) -> Command {
    let directory = home.work().join("codex");
    std::fs::create_dir(&directory).expect("a directory for Codex");
    let config = format!(
        "model = \"script\"\nmodel_provider = \"script\"\n[model_providers.script]\nname = \"script\"\n\
         base_url = \"{model}/v1\"\nwire_api = \"responses\"\n[mcp_servers.{NAME}]\nurl = \"{url}\"\n"
    );
    std::fs::write(directory.join("config.toml"), config).expect("its configuration is written");
    let mut command = Command::new(installed("agents").join("node"));
    home.furnish(&mut command).arg(installed("agents").join("node_modules/.bin/codex"));
    command.args([
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "charge ada",
    ]);
    command.env("CODEX_HOME", directory);
    command
}

/// The session is gone after the effect, and the agent sends it again.
fn charges(agent: Agent, way: Way, effects: usize) {
    let home = Home::new();
    let served = home.http(way, Server::Rogue);
    let ran = charge(&home, agent, served.url(), "charge_then_404", 1);
    let seen = std::fs::read_to_string(home.work().join("seen")).unwrap_or_default();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(home.effects(), effects, "{agent:?}, {way:?}: the model saw {seen}");
    let told = if way == Way::Guarded { "in_doubt" } else { "charged: ch_" };
    assert!(seen.contains(told), "the model saw {seen}");
}

/// The model charges twice, and the audit reads the session that the agent has written.
fn audited(agent: Agent, way: Way, effects: usize, counts: Value) {
    let home = Home::new();
    let served = home.http(way, Server::Rogue);
    let ran = charge(&home, agent, served.url(), "charge", 2);
    assert_eq!((ran.code, home.effects()), (Some(0), effects), "{agent:?}, {way:?}: {ran:?}");
    let sessions = match agent {
        Agent::ClaudeCode => "claude/projects",
        Agent::Codex => "codex/sessions",
    };
    let report = home.json(["audit", sessions]);
    assert_eq!(
        (&report["counts"], &report["tool_calls"]),
        (&counts, &2.into()),
        "{agent:?}, {way:?}: {report:#}"
    );
    assert_eq!(report["skipped"]["lines"], 0, "{report:#}");
}

#[test]
#[ignore = "needs real agents: cargo xtask test --long"]
fn claude_code_charges_twice_without_semel_and_once_with_it() {
    charges(Agent::ClaudeCode, Way::Direct, 2);
    charges(Agent::ClaudeCode, Way::Guarded, 1);
}

#[test]
#[ignore = "needs real agents: cargo xtask test --long"]
fn the_audit_finds_the_duplicate_in_a_session_of_claude_code_and_none_with_semel() {
    audited(Agent::ClaudeCode, Way::Direct, 2, json!({"proven": 1}));
    audited(Agent::ClaudeCode, Way::Guarded, 1, json!({}));
}

#[test]
#[ignore = "needs real agents: cargo xtask test --long"]
fn the_audit_finds_the_duplicate_in_a_session_of_codex_and_none_with_semel() {
    audited(Agent::Codex, Way::Direct, 2, json!({"proven": 1}));
    audited(Agent::Codex, Way::Guarded, 1, json!({}));
}

#[test]
#[ignore = "needs real agents: cargo xtask test --long"]
fn codex_charges_twice_without_semel_and_once_with_it() {
    charges(Agent::Codex, Way::Direct, 2);
    charges(Agent::Codex, Way::Guarded, 1);
}
