//! The two eras of the protocol: what a server says of itself, and what a client of the other era is told.

use super::frame::Frame;
use super::id::Id;
use super::message::{Message, MessageKind, text};
use super::server::{Era, EraCheck, Server, ServerProtocol};
use super::version::{SESSION, STATELESS, own_meta, version_of};
use crate::wire::members::Members;
use bytes::Bytes;
use std::time::Duration;

/// The stateless era's code for a version that the server does not speak.
const UNSUPPORTED_VERSION: i32 = -32022;

/// A server that does not say what it is by then is left alone.
const MEETING_TAKES_MAX: Duration = Duration::from_secs(10);

/// How long a server is taken for what it said it was.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The version of the other era that a server speaks, if it is known not to speak the stateless one.
///
/// Over HTTP clients of both eras come to one server: what one of them has heard says nothing about the other. So it is
/// asked, by a way for clients of each.
pub async fn session_alone(stateless: &Server, session: &Server) -> Option<String> {
    let mut check = stateless.era_check().await;
    let known = match &*check {
        EraCheck::Stateless => return None,
        EraCheck::Unclear { again } if crate::runtime::moment() < *again => return None,
        EraCheck::Session { agreed, again } if crate::runtime::moment() < *again => {
            return Some(agreed.clone());
        }
        EraCheck::Session { agreed, .. } => Some(agreed.clone()),
        EraCheck::NotYet | EraCheck::Unclear { .. } => None,
    };
    if greeted(stateless, "server/discover", stateless_params()).await.is_some() {
        *check = EraCheck::Stateless;
        return None;
    }
    // It is not initialised a second time: each time it might begin a session that is never ended.
    let agreed = match known {
        Some(agreed) => Some(agreed),
        None => greeted(session, "initialize", session_params())
            .await
            .and_then(|result| Some(Members::parse(&result)?.text("protocolVersion")?.into_owned())),
    };
    let again = crate::runtime::moment() + ASK_AGAIN_AFTER;
    *check = match &agreed {
        Some(agreed) => EraCheck::Session { agreed: agreed.clone(), again },
        None => EraCheck::Unclear { again },
    };
    agreed
}

/// The answer to a client whose `initialize` a server has refused, if that server is of the stateless era alone.
pub async fn refused_initialize(server: &Server, id: &Id, params: &str) -> Option<Frame> {
    // A client that names a version of the stateless era is of that one, and gets the server's own answer.
    if version_of(params).is_some() {
        return None;
    }
    let supported = supported(server).await?;
    if supported.iter().any(|version| version.as_str() < STATELESS) {
        return None;
    }
    let params = Members::parse(params).unwrap_or_default();
    Some(stateless_only(id, &supported, &params.text("protocolVersion").unwrap_or_default()))
}

/// The versions of a server of the stateless era.
async fn supported(server: &Server) -> Option<Vec<String>> {
    let result = greeted(server, "server/discover", stateless_params()).await?;
    serde_json::from_str(Members::parse(&result)?.get("supportedVersions")?).ok()
}

/// The answer of a server to a greeting, unless it refuses it. Its era and abilities are known then.
async fn greeted(server: &Server, method: &str, params: String) -> Option<String> {
    let asked = tokio::time::timeout(MEETING_TAKES_MAX, server.ask(method, &params)).await;
    let answer = asked.ok()?.ok()?;
    let MessageKind::Response { failed: false, .. } = answer.kind else { return None };
    let result = answer.body.as_ref().map_or("null", text);
    if server.protocol().era.is_none() {
        learn(server, method, result);
    }
    Some(result.to_owned())
}

fn stateless_params() -> String {
    format!(r#"{{"_meta":{}}}"#, own_meta(STATELESS))
}

fn session_params() -> String {
    let about = serde_json::json!({"name": "semel", "version": env!("CARGO_PKG_VERSION")});
    serde_json::json!({"protocolVersion": SESSION, "capabilities": {}, "clientInfo": about}).to_string()
}

/// Finds out which era a server is of, on behalf of a client that speaks the stateless one without asking first.
///
/// The server is initialised only if it does not know `server/discover`: then that client cannot speak to it anyway.
pub async fn meet(server: &Server) {
    for (method, params) in [("server/discover", stateless_params()), ("initialize", session_params())] {
        let asked = tokio::time::timeout(MEETING_TAKES_MAX, server.ask(method, &params)).await;
        let Ok(Ok(answer)) = asked else { return };
        if let MessageKind::Response { failed: false, .. } = answer.kind {
            return learn(server, method, answer.body.as_ref().map_or("null", text));
        }
    }
}

/// Introduces semel to a server as a client of one era, which has no abilities, so that the server asks nothing back.
/// Gives the server's answer.
pub async fn introduce(server: &Server, stateless: bool) -> Result<String, String> {
    let (method, params) = match stateless {
        false => ("initialize", session_params()),
        true => ("server/discover", stateless_params()),
    };
    let answer = server.ask(method, &params).await?;
    let result = answer.body.as_ref().map_or("null", text).to_owned();
    if !matches!(answer.kind, MessageKind::Response { failed: false, .. }) {
        return Err(format!("it does not know {method}: {result}"));
    }
    learn(server, method, &result);
    if !stateless {
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if let Ok(message) = Message::parse(Bytes::from_static(initialized.as_bytes())) {
            server.link.pass(message, false);
        }
    }
    Ok(result)
}

/// The same as a client of the first era, or of the second where the server does not speak the first.
pub async fn introduce_either(server: &Server) -> Result<String, String> {
    match introduce(server, false).await {
        Ok(result) => Ok(result),
        Err(_) => introduce(server, true).await,
    }
}

/// With which `_meta` semel itself asks a server that it has been introduced to.
pub fn meta_for(server: &Server) -> String {
    match server.protocol().era {
        Some(Era::Stateless(_)) => own_meta(STATELESS),
        Some(Era::Session(_)) | None => "{}".to_owned(),
    }
}

/// Takes in what an `initialize` or `server/discover` was answered with.
pub fn learn(server: &Server, method: &str, result: &str) {
    let Some(members) = Members::parse(result) else { return };
    let era = match method {
        "initialize" => members.text("protocolVersion").map(|version| Era::Session(version.into_owned())),
        _ => {
            let versions: Option<Vec<String>> =
                members.get("supportedVersions").and_then(|list| serde_json::from_str(list).ok());
            versions.map(Era::Stateless)
        }
    };
    let idempotency = members.object("capabilities").object("tools").get("idempotency").is_some();
    if era.is_some() {
        server.update_protocol(|protocol| *protocol = ServerProtocol { era, idempotency });
    }
}

/// The same answer with SEP-3182's capability, which the door itself provides. `None`: as it came.
pub fn with_idempotency(result: &str) -> Option<String> {
    let mut members = Members::parse(result)?;
    let mut capabilities = Members::parse(members.get("capabilities")?)?;
    let mut tools = Members::parse(capabilities.get("tools")?)?;
    if tools.get("idempotency").is_some() {
        return None;
    }
    tools.set("idempotency", "{}".into());
    let tools = tools.to_string();
    capabilities.set("tools", tools);
    let capabilities = capabilities.to_string();
    members.set("capabilities", capabilities);
    Some(members.to_string())
}

/// Why a request cannot be passed to a server of the other era; semel does not translate between the two.
pub fn refusal(server: &Server, id: &Id, method: &str, params: &str) -> Option<Frame> {
    match (server.protocol().era?, method) {
        // A server may speak both, and name both.
        (Era::Stateless(supported), "initialize")
            if supported.iter().all(|version| version.as_str() >= STATELESS) =>
        {
            let asked =
                Members::parse(params).and_then(|params| Some(params.text("protocolVersion")?.into_owned()));
            Some(stateless_only(id, &supported, asked.as_deref().unwrap_or("an initialize-era version")))
        }
        (Era::Session(agreed), method) if method != "server/discover" => {
            Some(session_only(id, &agreed, &version_of(params)?))
        }
        _ => None,
    }
}

/// The refusal to a client of the stateless era by a server that has only the one of `initialize`.
pub fn session_only(id: &Id, agreed: &str, asked: &str) -> Frame {
    let message = format!(
        "This client speaks MCP {asked}, the server behind semel speaks MCP {agreed} (with initialize); \
         semel does not translate between the two."
    );
    let data = serde_json::json!({"supported": [agreed], "requested": asked});
    Frame::refusal(id, UNSUPPORTED_VERSION, &message, Some(data))
}

/// The refusal to a client of the initialize era by a server that has only the stateless one.
pub fn stateless_only(id: &Id, supported: &[String], asked: &str) -> Frame {
    let versions = supported.join(", ");
    let message = format!(
        "This client speaks MCP {asked} (with initialize), the server behind semel speaks MCP {versions}, which is \
         stateless; semel does not translate between the two."
    );
    let data = serde_json::json!({"supported": supported, "requested": asked});
    Frame::refusal(id, UNSUPPORTED_VERSION, &message, Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_added_where_there_are_tools() {
        let with =
            with_idempotency(r#"{"capabilities":{"tools":{"listChanged":true},"x":1},"y":2}"#).unwrap();
        assert_eq!(with, r#"{"capabilities":{"tools":{"listChanged":true,"idempotency":{}},"x":1},"y":2}"#);
        assert_eq!(with_idempotency(r#"{"capabilities":{}}"#), None);
        assert_eq!(with_idempotency(r#"{"capabilities":{"tools":{"idempotency":{}}}}"#), None);
    }
}
