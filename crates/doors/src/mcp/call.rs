//! A `tools/call`, read once.

use super::frame::Frame;
use super::id::Id;
use super::message::{Message, like_one_of, text};
use super::tools::Definition;
use crate::call_options::{CallOptions, is_for_semel, run_in_baggage};
use crate::wire::members::{Members, NotMembers, quoted};
use semel_core::call_metadata::TraceParent;
use semel_core::ids::{BadName, IdempotencyKey, Reason, Run};
use semel_core::json::{self, Json};
use std::sync::Arc;

/// The argument by which a model repeats something on purpose.
pub const AGAIN: &str = "semel_again";
/// The argument by which a model asks what would happen, where the door offers it.
pub const DRY_RUN: &str = "semel_dry_run";

/// Member of `_meta` that names the run.
pub const META_RUN: &str = "dev.semel/run-id";
pub const META_DRY_RUN: &str = "dev.semel/dry-run";
pub const META_RECEIPT: &str = "dev.semel/receipt";

/// Members of `_meta` in which agents put the id of the model's call.
const CALL_IDS: [&str; 2] = ["claudecode/toolUseId", "callId"];
/// Members of `_meta` in which agents put a thread or session of their own. It labels, and narrows nothing.
const THREADS: [&str; 2] = ["threadId", "sessionId"];

/// Every member that the protocol gives to the params of a call.
const PARAMS: [&str; 7] =
    ["name", "arguments", "_meta", "task", "idempotencyKey", "inputResponses", "requestState"];

/// Ids of model calls are short tokens.
const CALL_ID_CHARS_MAX: usize = 255;

/// An unknown name is told to its writer, and need not be told whole.
const NAME_CHARS_TOLD: usize = 64;

/// The abilities that a client of 2026-07-28 states with every request.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A call as a client made it.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: Id,
    pub tool: String,
    /// As it came.
    message: Message,
    /// The arguments without those that are meant for semel.
    pub arguments: Json,
    /// Names of arguments that are meant for semel: the tool has none of that name itself.
    own: Vec<&'static str>,
    pub key: Option<IdempotencyKey>,
    pub again: Option<Reason>,
    pub runs: CallRuns,
    pub call_id: Option<String>,
    /// The caller's span, which travels in `_meta` as it would in a header.
    pub trace: Option<TraceParent>,
    pub dry_run: bool,
    pub progress_token: Option<String>,
    /// The client asked for a task (2025-11-25) rather than for a result.
    pub wants_task: bool,
    /// The client can do something with the handle of a task (2026-07-28).
    pub takes_tasks: bool,
    /// The version in `_meta` of the stateless era; `None` for the era of `initialize`.
    pub version: Option<String>,
}

/// The runs that a call speaks of, strongest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRuns {
    /// Named in `_meta`.
    pub named: Option<Run>,
    /// Named in the W3C baggage that travels with the call.
    pub baggage: Option<Run>,
    /// The agent's own thread, which labels and narrows nothing.
    pub thread: Option<Run>,
}

/// Why a call cannot be understood. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCall {
    #[error("{0} must be an object")]
    NotAnObject(&'static str),
    #[error("{place} names {name:?} twice, so it can be read in two ways; name each member once")]
    Twice { place: &'static str, name: String },
    #[error("params.{0} could be taken for another member; names are written as the protocol writes them")]
    Alike(String),
    #[error("params.name must be a text")]
    Name,
    #[error("params.arguments must be an object: {0}")]
    Arguments(String),
    #[error("params.idempotencyKey: {0}")]
    Key(BadName),
    #[error("params.idempotencyKey must be a text")]
    KeyKind,
    #[error("{AGAIN}: {0}")]
    Again(BadName),
    #[error("{AGAIN} must be a text")]
    AgainKind,
    #[error("_meta[\"{META_RUN}\"]: {0}")]
    Run(BadName),
    #[error("_meta[\"{META_RUN}\"] must be a text")]
    RunKind,
    #[error(
        "{place} has {name:?}, which semel does not know; it knows the arguments {AGAIN} and {DRY_RUN}, and \
         _meta[\"{META_RUN}\"] and _meta[\"{META_DRY_RUN}\"]"
    )]
    Unknown { place: &'static str, name: String },
}

/// All that a call may say to semel in its `_meta`. A receipt is semel's own, which a client may send back.
const META_KNOWN: [&str; 3] = [META_RUN, META_DRY_RUN, META_RECEIPT];

/// The fate of `params.idempotencyKey` on its way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUpstream<'a> {
    AsItCame,
    /// The server does not know it.
    Stripped,
    /// The client's own has been used: this is another effect.
    Instead(&'a str),
}

impl ToolCall {
    /// `definition`, so that an argument of the tool's own is not taken for one of semel's.
    pub fn read(
        id: &Id,
        message: &Message,
        definition: impl FnOnce(&str) -> Option<Arc<Definition>>,
    ) -> Result<ToolCall, BadCall> {
        let params = members_of("params", message.params.as_ref().map_or("{}", text))?;
        if let Some(odd) = params.names().find(|name| like_one_of(name, &PARAMS).is_some()) {
            return Err(BadCall::Alike(odd.to_owned()));
        }
        let tool = params.text("name").ok_or(BadCall::Name)?.into_owned();
        let arguments = match params.get("arguments") {
            None | Some("null") => Json::object::<&str, 0>([]),
            Some(arguments) => {
                json::parse(arguments).map_err(|error| BadCall::Arguments(error.to_string()))?
            }
        };
        let Json::Object(mut arguments) = arguments else {
            return Err(BadCall::Arguments("it is something else".into()));
        };
        let definition = definition(&tool);
        let is_tools = |name: &str| definition.as_ref().is_some_and(|tool| tool.has_argument(name));
        let own: Vec<&str> = [AGAIN, DRY_RUN].into_iter().filter(|name| !is_tools(name)).collect();
        let mut taken = |name: &str| own.contains(&name).then(|| arguments.remove(name)).flatten();
        let again = match taken(AGAIN) {
            None | Some(Json::Null) => None,
            // Models fill optional arguments with nothing.
            Some(Json::String(reason)) if reason.trim().is_empty() => None,
            Some(Json::String(reason)) => Some(Reason::parse(&reason).map_err(BadCall::Again)?),
            Some(_) => return Err(BadCall::AgainKind),
        };
        let asked = taken(DRY_RUN).is_some_and(|value| asks(&value.canonical()));
        let meta = match params.get("_meta") {
            None | Some("null") => Members::default(),
            // An unreadable one may ask for a dry run.
            Some(meta) => members_of("params._meta", meta)?,
        };
        // A misspelt dry run must not have the effect.
        let unknown = |place, name: &str| Err(BadCall::Unknown { place, name: shortened(name) });
        if let Some(name) = meta.names().find(|name| is_for_semel(name) && !META_KNOWN.contains(name)) {
            return unknown("params._meta", name);
        }
        if let Some(name) = params.names().find(|name| is_for_semel(name)) {
            return unknown("params", name);
        }
        let odd = |name: &&str| is_for_semel(name) && !is_tools(name);
        if let Some(name) = arguments.iter().map(|(name, _)| name).find(odd) {
            return unknown("params.arguments", name);
        }
        let key = text_or(&params, "idempotencyKey", BadCall::KeyKind)?;
        let key = key.map(|key| IdempotencyKey::parse(&key)).transpose().map_err(BadCall::Key)?;
        let call_id = CALL_IDS.iter().find_map(|name| meta.text(name)).map(|id| id.into_owned());
        Ok(ToolCall {
            id: id.clone(),
            tool,
            arguments: Json::object([("args", Json::Object(arguments))]),
            own,
            key,
            again,
            runs: runs(&meta)?,
            trace: meta.text("traceparent").and_then(|text| TraceParent::parse(&text)),
            call_id: call_id.filter(|id| !id.is_empty() && id.chars().count() <= CALL_ID_CHARS_MAX),
            dry_run: asked || meta.get(META_DRY_RUN).is_some_and(asks),
            progress_token: meta.get("progressToken").map(str::to_owned),
            wants_task: params.get("task").is_some_and(|task| task != "null"),
            takes_tasks: meta.object(META_CAPABILITIES).object("extensions").get(TASKS_EXTENSION).is_some(),
            version: meta.text("io.modelcontextprotocol/protocolVersion").map(|version| version.into_owned()),
            message: message.clone(),
        })
    }

    /// Whether it is the same call if it comes again, by its key or by the model's id for it.
    pub fn is_known_again(&self) -> bool {
        self.key.is_some() || self.call_id.is_some()
    }

    /// With what the headers say that it came with.
    pub fn with_options(mut self, options: &CallOptions) -> ToolCall {
        self.dry_run |= options.dry_run;
        self.again = self.again.or_else(|| options.again.clone());
        self
    }

    /// The request for the real server: without what was meant for semel, with `put` added to its arguments.
    pub fn request(&self, id: &Id, key: KeyUpstream<'_>, put: &[(&str, Json)]) -> Frame {
        let mut params = Members::parse(self.params()).unwrap_or_default();
        let arguments = self.arguments_upstream(&params, put);
        let meta = meta_upstream(&params);
        let mut changed = match key {
            KeyUpstream::AsItCame => false,
            KeyUpstream::Stripped => params.remove("idempotencyKey"),
            KeyUpstream::Instead(key) => {
                params.set("idempotencyKey", quoted(key));
                true
            }
        };
        changed |= arguments.is_some() || meta.is_some();
        if let Some(arguments) = arguments {
            params.set("arguments", arguments);
        }
        match meta {
            Some(meta) if meta == "{}" => drop(params.remove("_meta")),
            Some(meta) => params.set("_meta", meta),
            None => {}
        }
        let params = changed.then(|| Frame::from(params.to_string()));
        self.message.edited(Some(id), params).expect("a call has an id, and params that name its tool")
    }

    fn params(&self) -> &str {
        self.message.params.as_ref().map_or("{}", text)
    }

    /// `None`: as they came.
    fn arguments_upstream(&self, params: &Members<'_>, put: &[(&str, Json)]) -> Option<String> {
        let mut arguments = params.object("arguments");
        let mut changed = false;
        for name in &self.own {
            changed |= arguments.remove(name);
        }
        for (name, value) in put {
            arguments.set(name, value.canonical());
            changed = true;
        }
        changed.then(|| arguments.to_string())
    }

    /// Whether its tool has room for a reason to repeat it: an argument of that name is not its own.
    pub fn offers_again(&self) -> bool {
        self.own.contains(&AGAIN)
    }

    /// The `_meta` with which a probe speaks to the same server in the same era.
    pub fn meta(&self) -> String {
        let params = Members::parse(self.params()).unwrap_or_default();
        let mut meta = params.object("_meta");
        for own in [META_RUN, META_DRY_RUN, "progressToken"] {
            meta.remove(own);
        }
        meta.to_string()
    }
}

/// `None`: as it came.
fn meta_upstream(params: &Members<'_>) -> Option<String> {
    let mut meta = params.object("_meta");
    (meta.remove(META_RUN) | meta.remove(META_DRY_RUN)).then(|| meta.to_string())
}

/// Whether a value asks for a dry run, as JSON. A client that says so in other words than `true` must not get the
/// effect.
fn asks(json: &str) -> bool {
    !matches!(json, "null" | "false" | "0" | "\"\"" | "\"false\"")
}

fn members_of<'a>(place: &'static str, json: &'a str) -> Result<Members<'a>, BadCall> {
    Members::read(json).map_err(|problem| match problem {
        NotMembers::NotAnObject => BadCall::NotAnObject(place),
        NotMembers::Twice(name) => BadCall::Twice { place, name: shortened(&name) },
    })
}

/// Enough of a name to know it by.
fn shortened(name: &str) -> String {
    name.chars().take(NAME_CHARS_TOLD).collect()
}

/// A member that must be a text if it is there.
fn text_or(members: &Members<'_>, name: &str, otherwise: BadCall) -> Result<Option<String>, BadCall> {
    match members.get(name) {
        None | Some("null") => Ok(None),
        Some(_) => members.text(name).map(|text| Some(text.into_owned())).ok_or(otherwise),
    }
}

fn runs(meta: &Members<'_>) -> Result<CallRuns, BadCall> {
    let named = |text: Option<String>| text.map(|run| Run::named(&run)).transpose().map_err(BadCall::Run);
    Ok(CallRuns {
        named: named(text_or(meta, META_RUN, BadCall::RunKind)?)?,
        baggage: named(meta.text("baggage").and_then(|baggage| run_in_baggage(&baggage)))?,
        thread: THREADS
            .iter()
            .find_map(|name| meta.text(name))
            .and_then(|thread| Run::inferred(&thread).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn read(params: &str) -> Result<ToolCall, BadCall> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{params}}}"#);
        let message = Message::parse(Bytes::from(text)).unwrap();
        ToolCall::read(message.request_id().unwrap(), &message, |_| None)
    }

    #[test]
    fn what_is_meant_for_semel_is_read_and_does_not_go_upstream() {
        let call = read(
            r#"{"name":"charge","arguments":{"amount":9007199254740993,"semel_again":" second order "},
                "idempotencyKey":"k1","future":[1.0],
                "_meta":{"progressToken":7,"dev.semel/run-id":"r1","claudecode/toolUseId":"toolu_1"}}"#,
        )
        .unwrap();
        assert_eq!(call.again, Reason::parse("second order").ok());
        assert_eq!(call.key.as_ref().map(IdempotencyKey::as_str), Some("k1"));
        assert_eq!(call.runs.named, Run::named("r1").ok());
        assert_eq!(call.call_id.as_deref(), Some("toolu_1"));
        assert_eq!(call.arguments.canonical(), r#"{"args":{"amount":9007199254740993}}"#);
        let put = [("request_id", Json::str("semel_1"))];
        assert_eq!(
            call.request(&Id::text("s"), KeyUpstream::Stripped, &put).to_bytes(),
            r#"{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"charge","arguments":{"amount":9007199254740993,"request_id":"semel_1"},"future":[1.0],"_meta":{"progressToken":7,"claudecode/toolUseId":"toolu_1"}}}"#
        );
    }

    #[test]
    fn a_tool_has_one_name_however_its_letters_are_escaped() {
        for name in [r#""charge""#, r#""\u0063harge""#, r#""char\u0067e""#] {
            let call = read(&format!(r#"{{"name":{name},"arguments":{{}}}}"#)).unwrap();
            assert_eq!(call.tool, "charge", "{name}");
        }
        for other in ["Charge", "charge ", "charge/"] {
            let call = read(&format!(r#"{{"name":"{other}","arguments":{{}}}}"#)).unwrap();
            assert_eq!(call.tool, other, "a server knows its tools by their letters alone");
        }
    }

    #[test]
    fn a_call_without_extras_goes_on_as_it_came() {
        let params = r#"{"name":"x","arguments":{ "a" : 1e5 },"_meta":{"callId":"c"},"requestState":"s"}"#;
        let call = read(params).unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let one = Message::parse(Bytes::from_static(b"{\"id\":1,\"method\":\"m\"}")).unwrap();
        assert_eq!(call.request(one.request_id().unwrap(), KeyUpstream::Stripped, &[]).to_bytes(), expected);
        assert_eq!(call.call_id.as_deref(), Some("c"));
    }

    #[test]
    fn what_cannot_be_understood_is_refused_before_anything_is_sent() {
        assert_eq!(read(r#"{"name":7}"#).unwrap_err(), BadCall::Name);
        assert!(matches!(read(r#"{"name":"get_x","Name":"send"}"#), Err(BadCall::Alike(_))));
        assert!(matches!(read(r#"{"name":"get_x","argumentſ":{}}"#), Err(BadCall::Alike(_))));
        assert_eq!(read(r#"[]"#).unwrap_err(), BadCall::NotAnObject("params"));
        let twice = |place, name: &str| BadCall::Twice { place, name: name.to_owned() };
        assert_eq!(read(r#"{"name":"x","name":"y"}"#).unwrap_err(), twice("params", "name"));
        let doubled = r#"{"name":"x","_meta":{"a":1,"a":2,"dev.semel/dry-run":true}}"#;
        assert_eq!(read(doubled).unwrap_err(), twice("params._meta", "a"));
        let dry = r#"{"name":"x","_meta":"dry"}"#;
        assert_eq!(read(dry).unwrap_err(), BadCall::NotAnObject("params._meta"));
        assert!(matches!(read(r#"{"name":"x","arguments":[]}"#), Err(BadCall::Arguments(_))));
        assert!(matches!(read(r#"{"name":"x","arguments":{"a":1,"a":2}}"#), Err(BadCall::Arguments(_))));
        assert!(matches!(read(r#"{"name":"x","idempotencyKey":""}"#), Err(BadCall::Key(_))));
        assert_eq!(read(r#"{"name":"x","idempotencyKey":7}"#).unwrap_err(), BadCall::KeyKind);
        assert_eq!(read(r#"{"name":"x","arguments":{"semel_again":true}}"#).unwrap_err(), BadCall::AgainKind);
    }

    #[test]
    fn a_name_that_is_meant_for_semel_and_not_known_is_refused() {
        for params in [
            r#"{"name":"x","_meta":{"dev.semel/dry_run":true}}"#,
            r#"{"name":"x","_meta":{"dev.semel/dryRun":true}}"#,
            r#"{"name":"x","_meta":{"dev.Semel/Dry-Run":true}}"#,
            r#"{"name":"x","_meta":{"semel_dry_run":true}}"#,
            r#"{"name":"x","_meta":{"dev.semel":{"dry-run":true}}}"#,
            r#"{"name":"x","_meta":{"semel":{"dry_run":true}}}"#,
            r#"{"name":"x","dev.semel/dry-run":true}"#,
            r#"{"name":"x","semel_dry_run":true}"#,
            r#"{"name":"x","arguments":{"semel_dryrun":true}}"#,
            r#"{"name":"x","arguments":{"semelDryRun":true}}"#,
            r#"{"name":"x","arguments":{"dev.semel/dry-run":true}}"#,
            r#"{"name":"x","arguments":{"semel_agian":"why"}}"#,
        ] {
            assert!(matches!(read(params), Err(BadCall::Unknown { .. })), "{params}");
        }
        let refused = read(r#"{"name":"x","arguments":{"semel_dryrun":true}}"#).unwrap_err().to_string();
        assert!(
            refused.starts_with("params.arguments has \"semel_dryrun\", which semel does not know"),
            "{refused}"
        );
        assert!(refused.contains("semel_dry_run") && refused.contains("dev.semel/dry-run"), "{refused}");
        assert!(read(r#"{"name":"x","arguments":{"dry_run":true},"_meta":{"dry-run":true}}"#).is_ok());
    }

    #[test]
    fn runs_are_read_from_meta_baggage_and_thread() {
        let call =
            read(r#"{"name":"x","_meta":{"threadId":"t1","baggage":"a=b,semel.run_id=night%3A4+2;p=1"}}"#)
                .unwrap();
        let expected =
            CallRuns { named: None, baggage: Run::named("night:4+2").ok(), thread: Run::inferred("t1").ok() };
        assert_eq!(call.runs, expected);
        assert!(matches!(read(r#"{"name":"x","_meta":{"dev.semel/run-id":""}}"#), Err(BadCall::Run(_))));
    }
}
