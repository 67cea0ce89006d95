//! Asking whether a tool call happened.

use super::upstream::ToolUpstream;
use super::word;
use crate::ask::{Asker, Lent, Matter, Reply, Told};
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
    asked_by: &ToolUpstream<'_>,
) -> (ProbeAnswer, Option<Json>) {
    let (action, meta) = (asked_by.server.action(&asked_by.call.tool), asked_by.call.meta());
    let told = asker(asked_by, &action, &meta, effect, None).probe(probe).await;
    let secrets = Secrets::of(&asked_by.call.arguments, asked_by.rule);
    match told {
        Told::No => (ProbeAnswer::No, None),
        Told::Unknown(why) => (ProbeAnswer::Unknown { why: secrets.out_of_line(&why).into_owned() }, None),
        Told::Yes { reply, reply_failed } => {
            let reply = reply.map(|reply| match reply {
                Reply::Value(value) => value,
                Reply::Printed(stdout) => Json::str(String::from_utf8_lossy(&stdout).trim()),
            });
            let recorded = reply.as_ref().map(|reply| tool::encode(reply, &secrets));
            let said = reply.as_ref().unwrap_or(&Json::Null);
            let word = Some(word::of_reply(said, asked_by.rule, &asked_by.call.tool));
            let reply_failed = reply_failed.map(|why| secrets.out_of_line(&why).into_owned());
            (ProbeAnswer::Yes { reply: recorded, word, reply_failed }, reply)
        }
    }
}

/// It said yes: is it true? An error means that nobody can tell.
pub async fn confirms(confirm: &Confirm, reply: &Json, asked_by: &ToolUpstream<'_>) -> Result<bool, String> {
    let (action, meta) = (asked_by.server.action(&asked_by.call.tool), asked_by.call.meta());
    asker(asked_by, &action, &meta, None, Some(reply)).confirms(confirm).await
}

fn asker<'a>(
    asked_by: &'a ToolUpstream<'_>,
    action: &'a str,
    meta: &'a str,
    effect: Option<&'a Effect>,
    reply: Option<&'a Json>,
) -> Asker<'a> {
    let lent = Lent::Server { server: asked_by.server, meta };
    let matter = Matter { action, arguments: &asked_by.call.arguments, effect, reply, lent };
    Asker { means: asked_by.means, policy: asked_by.policy, matter, signals: None }
}
