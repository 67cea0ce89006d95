//! Asking through a read-only tool whether something happened.

use super::members::Members;
use super::message::{Kind, text};
use super::render::recorded_value;
use super::secrets::Secrets;
use super::upstream::ToolUpstream;
use super::word;
use semel_core::class::Class;
use semel_core::effect::Effect;
use semel_core::json::Json;
use semel_core::policy::ActionFacts;
use semel_core::policy::rule::{Call, Confirm, Probe, server_and_tool};
use semel_gate::upstream::ProbeAnswer;
use serde_json::json;
use std::time::Duration;

/// A question is a read; one that takes longer has failed.
const PROBE_TAKES_MAX: Duration = Duration::from_secs(30);

pub async fn ask(probe: &Probe, effect: Option<&Effect>, asked_by: &ToolUpstream<'_>) -> ProbeAnswer {
    match answer(probe, effect, asked_by).await {
        Ok(answer) => answer,
        Err(why) => ProbeAnswer::Unknown { why },
    }
}

async fn answer(
    probe: &Probe,
    effect: Option<&Effect>,
    asked_by: &ToolUpstream<'_>,
) -> Result<ProbeAnswer, String> {
    let Call::Mcp { tool, args } = &probe.call else {
        return Err("only probes through an MCP tool can be asked from here".into());
    };
    let found = probe.found.as_ref().ok_or("the probe does not say what to look for")?;
    let facts = effect.map_or(Json::Null, attempt_facts);
    let resp = resp(tool, args, &[("attempt", &facts)], asked_by).await?;
    let call_args = asked_by.arguments();
    let variables = [("resp", &resp), ("args", &call_args), ("attempt", &facts)];
    match found.eval_bool(&variables).map_err(|error| error.to_string())? {
        false => Ok(ProbeAnswer::No),
        true => {
            let reply = probe.reply.as_ref().and_then(|reply| reply.eval(&variables).ok());
            let secrets = Secrets::of(&asked_by.call.arguments, asked_by.rule);
            let reply = reply.map(|reply| recorded_value(&reply, &secrets));
            Ok(ProbeAnswer::Yes { reply, word: None })
        }
    }
}

/// It said yes: is it true? An error means that nobody can tell.
pub async fn confirms(confirm: &Confirm, reply: &Json, asked_by: &ToolUpstream<'_>) -> Result<bool, String> {
    let Call::Mcp { tool, args } = &confirm.call else {
        return Err("only an MCP tool can be asked from here".into());
    };
    let resp = resp(tool, args, &[("reply", reply)], asked_by).await?;
    let call_args = asked_by.arguments();
    let variables = [("resp", &resp), ("args", &call_args), ("reply", reply)];
    confirm.ok.eval_bool(&variables).map_err(|error| error.to_string())
}

/// What the tool answers, as expressions see it.
async fn resp(
    tool: &str,
    args: &[(String, semel_core::policy::template::Template)],
    known: &[(&str, &Json)],
    asked_by: &ToolUpstream<'_>,
) -> Result<Json, String> {
    let own_action = asked_by.server.action(&asked_by.call.tool);
    let (server_name, tool) = server_and_tool(tool, &own_action).ok_or("the probe does not name a server")?;
    let same = server_name == asked_by.server.name;
    let server = match same {
        true => asked_by.server,
        false => {
            asked_by.servers.get(server_name).ok_or_else(|| format!("there is no server {server_name}"))?
        }
    };
    let meta = if same { asked_by.call.meta() } else { "{}".to_owned() };
    let tools = server.tools(&meta).await;
    let action = server.action(tool);
    let mut root = asked_by.call.arguments.clone();
    if let Json::Object(root) = &mut root {
        for (name, value) in known {
            root.insert(*name, (*value).clone());
        }
    }
    let mut arguments = Members::default();
    for (name, template) in args {
        let value = template.value(&root).map_err(|missing| missing.to_string())?;
        arguments.set(name, value.canonical());
    }
    let annotations = tools.get(tool).map(|definition| definition.annotations).unwrap_or_default();
    let facts =
        ActionFacts { annotations, trusted: server.settings.trusted, ..ActionFacts::new(&action, &root) };
    if asked_by.policy.rule_for(&facts).class != Class::Read {
        return Err(format!("{action} is not known to be read-only, so it cannot be asked"));
    }
    let mut params = Members::default();
    params.set("name", super::members::quoted(tool));
    params.set("arguments", arguments.to_string());
    if meta != "{}" {
        params.set("_meta", meta);
    }
    let params = params.to_string();
    let asked = tokio::time::timeout(PROBE_TAKES_MAX, server.ask("tools/call", &params)).await;
    let answered = asked.map_err(|_| format!("{action} did not answer"))??;
    let body = answered.body.as_ref().map_or("null", text);
    let result = Members::parse(body).unwrap_or_default();
    let complete = result.text("resultType").is_none_or(|kind| kind == "complete");
    if matches!(answered.kind, Kind::Response { failed: true, .. }) || result.is_true("isError") || !complete
    {
        return Err(format!("{action} answered with an error"));
    }
    Ok(word::value(&result))
}

fn attempt_facts(effect: &Effect) -> Json {
    let started = effect.attempts.first().map_or(effect.opened_at, |attempt| attempt.claimed_at);
    Json::from(json!({"started": started.to_string(), "started_unix": started.0 / 1_000_000}))
}
