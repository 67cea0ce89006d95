//! The two eras of the protocol: what a server says of itself, and what a client of the other era is told.

use super::frame::Frame;
use super::message::{Id, Kind, Message, text};
use super::server::{Era, Met, Server, Spoken};
use crate::wire::members::{Members, last, quoted};
use bytes::Bytes;
use std::time::Duration;

/// The member of `_meta` in which every request of the stateless era names its version.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The version by which a server is asked whether it is of the stateless era.
pub const STATELESS: &str = "2026-07-28";

/// The stateless era's code for a version that the server does not speak.
const UNSUPPORTED_VERSION: i32 = -32022;

/// The newest version of the era of `initialize`, by which a server is asked whether it is of that one.
pub const SESSION: &str = "2025-11-25";

/// A server that does not say what it is by then is left alone.
const MEETING_TAKES_MAX: Duration = Duration::from_secs(10);

/// How long a server is taken for what it said it was.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The version of the other era that a server speaks, if it is known not to speak the stateless one.
///
/// Over HTTP clients of both eras come to one server: what one of them has heard says nothing about the other. So it is
/// asked, by a way for clients of each.
pub async fn session_alone(stateless: &Server, session: &Server) -> Option<String> {
    let mut met = stateless.met().await;
    let known = match &*met {
        Met::Stateless => return None,
        Met::Unclear { again } if crate::runtime::moment() < *again => return None,
        Met::Session { agreed, again } if crate::runtime::moment() < *again => return Some(agreed.clone()),
        Met::Session { agreed, .. } => Some(agreed.clone()),
        Met::NotYet | Met::Unclear { .. } => None,
    };
    if greeted(stateless, "server/discover", stateless_params()).await.is_some() {
        *met = Met::Stateless;
        return None;
    }
    // It is not initialised a second time: each time it might begin a session that nobody ends.
    let agreed = match known {
        Some(agreed) => Some(agreed),
        None => greeted(session, "initialize", session_params())
            .await
            .and_then(|result| Some(Members::parse(&result)?.text("protocolVersion")?.into_owned())),
    };
    let again = crate::runtime::moment() + ASK_AGAIN_AFTER;
    *met = match &agreed {
        Some(agreed) => Met::Session { agreed: agreed.clone(), again },
        None => Met::Unclear { again },
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
    let Kind::Response { failed: false, .. } = answer.kind else { return None };
    let result = answer.body.as_ref().map_or("null", text);
    if server.spoken().era.is_none() {
        hear(server, method, result);
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
        if let Kind::Response { failed: false, .. } = answer.kind {
            return hear(server, method, answer.body.as_ref().map_or("null", text));
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
    if !matches!(answer.kind, Kind::Response { failed: false, .. }) {
        return Err(format!("it does not know {method}: {result}"));
    }
    hear(server, method, &result);
    if !stateless {
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if let Ok(message) = Message::parse(Bytes::from_static(initialized.as_bytes())) {
            server.link.pass(message);
        }
    }
    Ok(result)
}

/// With which `_meta` semel itself asks a server that it has been introduced to.
pub fn meta_for(server: &Server) -> String {
    match server.spoken().era {
        Some(Era::Stateless(_)) => own_meta(STATELESS),
        Some(Era::Session(_)) | None => "{}".to_owned(),
    }
}

/// Takes in what an `initialize` or `server/discover` was answered with.
pub fn hear(server: &Server, method: &str, result: &str) {
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
        server.heard(|spoken| *spoken = Spoken { era, idempotency });
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

/// The version that a request names, if it is of the stateless era. A request that names something else twice is of an
/// era too: whether it is refused for that is not decided here.
pub fn version_of(params: &str) -> Option<String> {
    // Every request comes by here. Only an escape can hide the name from a search.
    if !params.contains(META_VERSION) && !params.contains('\\') {
        return None;
    }
    let meta = last(params, "_meta")?;
    let version = last(&meta, META_VERSION)?;
    serde_json::from_str(&version).ok()
}

/// Why a request cannot be passed to a server of the other era; semel does not translate between the two.
pub fn refusal(server: &Server, id: &Id, method: &str, params: &str) -> Option<Frame> {
    match (server.spoken().era?, method) {
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

/// The `_meta` of a request that semel makes itself in the stateless era.
pub fn own_meta(version: &str) -> String {
    let mut meta = Members::default();
    meta.set(META_VERSION, quoted(version));
    meta.set("io.modelcontextprotocol/clientCapabilities", "{}".into());
    let info = serde_json::json!({"name": "semel", "version": env!("CARGO_PKG_VERSION")});
    meta.set("io.modelcontextprotocol/clientInfo", info.to_string());
    meta.to_string()
}

/// The `_meta` of a request, for what semel asks on its behalf.
pub fn meta_of(params: &str) -> String {
    let meta = last(params, "_meta").unwrap_or_default();
    let mut meta = Members::parse(&meta).unwrap_or_default();
    meta.remove("progressToken");
    meta.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_an_era_whatever_it_names_twice() {
        let version = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1,"a":2}"#;
        let params = format!(r#"{{"dup":1,"_meta":{version},"dup":2}}"#);
        assert_eq!(version_of(&params).as_deref(), Some("2026-07-28"));
        assert_eq!(version_of(&format!(r#"{{"_meta":{version},"_meta":{{}}}}"#)), None);
    }

    #[test]
    fn the_capability_is_added_where_there_are_tools() {
        let with =
            with_idempotency(r#"{"capabilities":{"tools":{"listChanged":true},"x":1},"y":2}"#).unwrap();
        assert_eq!(with, r#"{"capabilities":{"tools":{"listChanged":true,"idempotency":{}},"x":1},"y":2}"#);
        assert_eq!(with_idempotency(r#"{"capabilities":{}}"#), None);
        assert_eq!(with_idempotency(r#"{"capabilities":{"tools":{"idempotency":{}}}}"#), None);
    }
}
