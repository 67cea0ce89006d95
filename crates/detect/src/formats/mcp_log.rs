//! Logs of MCP messages: JSON-RPC objects, alone or as the `message` of a line with a time.

use super::{ReaderContext, UnreadablePiece, arguments, parsed, time};
use crate::transcript::{ActionCall, AnswerText, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::{Json, Object};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Wrapper<'a> {
    #[serde(borrow, alias = "time", alias = "ts", alias = "at")]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RpcMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<RpcParams<'a>>,
    #[serde(borrow)]
    result: Option<RpcResult<'a>>,
    #[serde(borrow)]
    error: Option<RpcError<'a>>,
}

#[derive(Deserialize)]
struct RpcParams<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<CallMeta<'a>>,
}

#[derive(Deserialize)]
struct CallMeta<'a> {
    #[serde(borrow, rename = "claudecode/toolUseId")]
    claude: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct RpcResult<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, rename = "serverInfo")]
    server: Option<ServerInfo<'a>>,
}

#[derive(Deserialize)]
struct ServerInfo<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(default)]
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

/// JSON-RPC codes of a request that was not carried out.
const REFUSALS: [i64; 4] = [-32700, -32600, -32601, -32602];

pub(super) fn read(
    piece: &[u8],
    context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let wrapper: Wrapper<'_> = parsed(piece)?;
    let at = time(wrapper.timestamp.as_deref());
    let message: RpcMessage<'_> = match (wrapper.jsonrpc, wrapper.message) {
        (None, Some(inner)) => serde_json::from_str(inner.get()).map_err(UnreadablePiece::NotJson)?,
        _ => parsed(piece)?,
    };
    if message.method == "initialize" {
        context.connection += 1;
    }
    let Some(id) = message.id else { return Ok(()) };
    let id = Cow::Owned(format!("{}:{}", context.connection, id.get()));
    if let Some(server) = message.result.as_ref().and_then(|result| result.server.as_ref()) {
        context.session = Some(server.name.clone().into_owned());
    }
    let mut emit = |event: TranscriptEvent<'_>| sink(TranscriptEntry { session: None, at, event });
    match (message.params, message.result, message.error) {
        (Some(params), _, _) if message.method == "tools/call" => {
            let name = params.name.unwrap_or_default();
            let server = context.session.as_deref().unwrap_or("server");
            // A tool without parameters is called without them.
            let given =
                params.arguments.map_or_else(|| Json::Object(Object::new()), |given| arguments(Some(given)));
            let call = ActionCall::of_tool(&name, given);
            let call = ActionCall { action: format!("mcp:{server}/{name}"), ..call };
            let turn = params.meta.and_then(|meta| meta.claude);
            emit(TranscriptEvent::RecordedCall(RecordedCall { id, turn, actions: vec![call], resends: 0 }));
        }
        (_, Some(result), _) if message.method.is_empty() => {
            let text = AnswerText::Content(result.structured.or(result.content));
            emit(TranscriptEvent::ToolAnswer(ToolAnswer {
                id,
                is_error: Some(result.is_error),
                text,
                interrupted: false,
            }));
        }
        (_, _, Some(error)) if message.method.is_empty() => {
            let text = match REFUSALS.contains(&error.code) {
                true => Cow::Owned(format!("invalid request: {}", error.message)),
                false => error.message,
            };
            emit(TranscriptEvent::ToolAnswer(ToolAnswer {
                id,
                is_error: Some(true),
                text: text.into(),
                interrupted: false,
            }));
        }
        _ => {}
    }
    Ok(())
}
