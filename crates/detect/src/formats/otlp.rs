//! OpenTelemetry spans as OTLP JSON: the conventions for generative AI (`execute_tool`) and for MCP (`tools/call`).

use super::{ReaderContext, UnreadablePiece, arguments_in_text, parsed};
use crate::transcript::{ActionCall, RecordedCall, ToolAnswer, TranscriptEntry, TranscriptEvent};
use semel_core::json::Json;
use semel_core::time::At;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

#[derive(Deserialize)]
struct OtlpExport<'a> {
    #[serde(borrow, rename = "resourceSpans", alias = "resource_spans")]
    resources: Vec<ResourceSpans<'a>>,
}

#[derive(Deserialize)]
struct ResourceSpans<'a> {
    #[serde(borrow, default, rename = "scopeSpans", alias = "scope_spans")]
    scopes: Vec<ScopeSpans<'a>>,
}

#[derive(Deserialize)]
struct ScopeSpans<'a> {
    #[serde(borrow, default)]
    spans: Vec<SpanJson<'a>>,
}

#[derive(Deserialize)]
struct SpanJson<'a> {
    #[serde(borrow, default, rename = "traceId", alias = "trace_id")]
    trace: Cow<'a, str>,
    #[serde(borrow, default, rename = "spanId", alias = "span_id")]
    id: Cow<'a, str>,
    #[serde(borrow, default, rename = "parentSpanId", alias = "parent_span_id")]
    parent: Cow<'a, str>,
    #[serde(default, rename = "startTimeUnixNano", alias = "start_time_unix_nano")]
    start: serde_json::Value,
    #[serde(borrow, default)]
    attributes: Vec<Attribute<'a>>,
    #[serde(borrow)]
    status: Option<SpanStatus<'a>>,
}

#[derive(Deserialize)]
struct SpanStatus<'a> {
    #[serde(default)]
    code: serde_json::Value,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Attribute<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    value: serde_json::Value,
}

impl SpanJson<'_> {
    fn attribute(&self, key: &str) -> Option<String> {
        let value = &self.attributes.iter().find(|attribute| attribute.key == key)?.value;
        let inner = value.as_object()?.values().next()?;
        Some(inner.as_str().map_or_else(|| inner.to_string(), str::to_owned))
    }

    fn tool(&self) -> Option<String> {
        let is_tool = self.attribute("gen_ai.operation.name").as_deref() == Some("execute_tool")
            || self.attribute("mcp.method.name").as_deref() == Some("tools/call");
        self.attribute("gen_ai.tool.name").filter(|_| is_tool)
    }

    fn started(&self) -> Option<At> {
        let nanos = self.start.as_u64().or_else(|| self.start.as_str()?.parse().ok())?;
        Some(At(nanos / 1_000))
    }

    fn error(&self) -> Option<String> {
        let failed = self.status.as_ref().filter(|status| {
            status.code.as_u64() == Some(2) || status.code.as_str() == Some("STATUS_CODE_ERROR")
        });
        let kind = self.attribute("error.type");
        (failed.is_some() || kind.is_some()).then(|| {
            let message = failed.map_or("", |status| status.message.as_ref());
            format!("{} {message}", kind.unwrap_or_default()).trim().to_owned()
        })
    }
}

pub(super) fn read(
    piece: &[u8],
    _context: &mut ReaderContext,
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) -> Result<(), UnreadablePiece> {
    let export: OtlpExport<'_> = parsed(piece)?;
    let scopes = export.resources.into_iter().flat_map(|resource| resource.scopes);
    let mut spans: Vec<SpanJson<'_>> = scopes.flat_map(|scope| scope.spans).collect();
    spans.sort_by_key(|span| span.started());
    let tools: HashMap<&str, String> =
        spans.iter().filter_map(|span| Some((span.id.as_ref(), span.tool()?))).collect();
    // One call has a span at each layer. One span below another of the same tool is the same call; of several the layer
    // between them sent it again, and each has its own end.
    let is_below = |span: &SpanJson<'_>| {
        tools.get(span.id.as_ref()).is_some_and(|tool| tools.get(span.parent.as_ref()) == Some(tool))
    };
    let mut sent_below: HashMap<&str, u32> = HashMap::new();
    for span in spans.iter().filter(|span| is_below(span)) {
        *sent_below.entry(span.parent.as_ref()).or_default() += 1;
    }
    let was_resent = |id: &str| sent_below.get(id).is_some_and(|count| *count > 1);
    let mut resent: HashMap<&str, u32> = HashMap::new();
    for span in &spans {
        let Some(tool) = tools.get(span.id.as_ref()) else { continue };
        match is_below(span) {
            true if was_resent(&span.parent) => {
                let count = resent.entry(span.parent.as_ref()).or_default();
                *count += 1;
                read_span(span, tool, *count - 1, &spans, sink);
            }
            false if !was_resent(&span.id) => read_span(span, tool, 0, &spans, sink),
            _ => {}
        }
    }
    Ok(())
}

fn read_span(
    span: &SpanJson<'_>,
    tool: &str,
    resends: u32,
    spans: &[SpanJson<'_>],
    sink: &mut dyn FnMut(TranscriptEntry<'_>),
) {
    let parent = || spans.iter().find(|other| other.id == span.parent);
    let attribute = |key: &str| span.attribute(key).or_else(|| parent()?.attribute(key));
    let session = ["gen_ai.conversation.id", "mcp.session.id"].into_iter().find_map(attribute);
    let session = Some(session.map_or_else(|| span.trace.clone(), Cow::Owned));
    let at = span.started();
    // Content is recorded only where somebody switched that on.
    let arguments = attribute("gen_ai.tool.call.arguments");
    let arguments = arguments.map_or(Json::Null, |text| arguments_in_text(&text));
    let server = attribute("mcp.server.name").or_else(|| attribute("server.address"));
    let call = ActionCall::of_tool(tool, arguments);
    let call = match server {
        Some(server) => ActionCall { action: format!("mcp:{server}/{tool}"), ..call },
        None => call,
    };
    let event = TranscriptEvent::RecordedCall(RecordedCall {
        id: span.id.clone(),
        turn: attribute("gen_ai.tool.call.id").map(Cow::Owned),
        actions: vec![call],
        resends,
    });
    sink(TranscriptEntry { session: session.clone(), at, event });
    let error = span.error();
    let text = span.attribute("gen_ai.tool.call.result");
    let event = TranscriptEvent::ToolAnswer(ToolAnswer {
        id: span.id.clone(),
        is_error: Some(error.is_some()),
        text: error.or(text).unwrap_or_default().into(),
        interrupted: false,
    });
    sink(TranscriptEntry { session, at, event });
}
