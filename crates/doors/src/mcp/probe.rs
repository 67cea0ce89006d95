//! Asking whether a tool call happened.

use super::upstream::ToolUpstream;
use super::word;
use crate::query::{Credentials, FoundReply, Query, Subject};
use crate::redact::Secrets;
use crate::reply::tool;
use semel_core::effect::Effect;
use semel_core::json::Json;
use semel_core::policy::rule::{Confirm, Probe};
use semel_gate::upstream::ProbeAnswer;

/// The finding, and the reply that was found with it, as rules see it.
pub async fn ask(
    probe: &Probe,
    effect: Option<&Effect>,
    upstream: &ToolUpstream<'_>,
) -> (ProbeAnswer, Option<Json>) {
    let (action, meta) = (upstream.server.action(&upstream.call.tool), upstream.call.meta());
    let finding = query(upstream, &action, &meta, effect, None).probe(probe).await;
    let secrets = Secrets::of(&upstream.call.arguments, upstream.rule);
    let mut found = None;
    let answer = finding.for_gate(&secrets, |reply| {
        found = reply.map(|reply| match reply {
            FoundReply::Value(value) => value,
            FoundReply::Printed(stdout) => Json::str(String::from_utf8_lossy(&stdout).trim()),
        });
        let said = found.as_ref().unwrap_or(&Json::Null);
        let word = word::of_reply(said, upstream.rule, &upstream.call.tool);
        (found.as_ref().map(|reply| tool::encode(reply, &secrets)), word)
    });
    (answer, found)
}

/// It said yes: is it true? An error means that nobody can tell.
pub async fn confirm(confirm: &Confirm, reply: &Json, upstream: &ToolUpstream<'_>) -> Result<bool, String> {
    let (action, meta) = (upstream.server.action(&upstream.call.tool), upstream.call.meta());
    query(upstream, &action, &meta, None, Some(reply)).confirm(confirm).await
}

fn query<'a>(
    upstream: &'a ToolUpstream<'_>,
    action: &'a str,
    meta: &'a str,
    effect: Option<&'a Effect>,
    reply: Option<&'a Json>,
) -> Query<'a> {
    let credentials = Credentials::Server { server: upstream.server, meta };
    let subject = Subject { action, arguments: &upstream.call.arguments, effect, reply, credentials };
    Query { backends: upstream.backends, policy: upstream.policy, subject, signals: None }
}
