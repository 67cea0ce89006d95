//! Asking through a read-only tool of an MCP server.

use super::heard::{Heard, Kind};
use super::matter::Lent;
use super::pages::goes_on;
use super::{Asker, TAKES_MAX, means};
use crate::mcp::era;
use crate::mcp::message::{MessageKind, text};
use crate::mcp::result as tool_result;
use crate::mcp::server::Server;
use crate::wire::members::{Members, quoted};
use semel_core::class::Class;
use semel_core::json::{Json, Object};
use semel_core::policy::ActionFacts;
use semel_core::policy::rule::server_and_tool;
use semel_core::policy::template::Template;

pub async fn ask(asker: &Asker<'_>, tool: &str, args: &[(String, Template)]) -> Result<Heard, String> {
    let (name, tool) = server_and_tool(tool, asker.matter.action).ok_or("it does not name a server")?;
    match asker.matter.lent {
        Lent::Server { server, meta } if server.name == name => asked(asker, server, meta, tool, args).await,
        _ => {
            let (server, started) = asker.means.server(name).await?;
            let heard = asked(asker, &server, &era::meta_for(&server), tool, args).await;
            if started {
                means::end(&server).await;
            }
            heard
        }
    }
}

async fn asked(
    asker: &Asker<'_>,
    server: &Server,
    meta: &str,
    tool: &str,
    args: &[(String, Template)],
) -> Result<Heard, String> {
    let tools = server.tools(meta).await;
    let action = server.action(tool);
    let places = asker.matter.places();
    let mut arguments = Object::new();
    for (name, template) in args {
        arguments.insert(name.as_str(), template.value(&places).map_err(|missing| missing.to_string())?);
    }
    // What is asked decides whether that is a read, and not what it is asked about.
    let arguments = Json::Object(arguments);
    let seen = Json::object([("args", arguments.clone())]);
    let annotations = tools.get(tool).map(|definition| definition.annotations).unwrap_or_default();
    let trusted = server.settings.trusted;
    let facts = ActionFacts { annotations, trusted, ..ActionFacts::new(&action, &seen) };
    if asker.policy.rule_for(&facts).class != Class::Read {
        return Err(format!("{action} is not known to be read-only, so it cannot be asked"));
    }
    let mut params = Members::default();
    params.set("name", quoted(tool));
    params.set("arguments", arguments.canonical());
    if meta != "{}" {
        params.set("_meta", meta.to_owned());
    }
    let asked = tokio::time::timeout(TAKES_MAX, server.ask("tools/call", &params.to_string())).await;
    let answered = asked.map_err(|_| format!("{action} did not answer"))??;
    let body = answered.body.as_ref().map_or("null", text);
    let result = Members::parse(body).unwrap_or_default();
    let complete = result.text("resultType").is_none_or(|kind| kind == "complete");
    let failed = matches!(answered.kind, MessageKind::Response { failed: true, .. });
    if failed || result.is_true("isError") || !complete {
        return Err(format!("{action} answered with an error"));
    }
    let resp = tool_result::whole(&result)
        .ok_or_else(|| format!("{action} answered more than can be looked through"))?;
    // A tool may speak of the page beside what it found, and where it has text and structure in either.
    let part = goes_on(&resp).or_else(|| {
        let result = semel_core::json::parse(body).ok()?;
        ["structuredContent", "_meta"].iter().find_map(|member| goes_on(result.get(member)?))
    });
    Ok(Heard { resp, kind: Kind::Tool, part })
}
