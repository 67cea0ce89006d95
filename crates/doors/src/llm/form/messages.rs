//! Messages: blocks that begin, grow and stop, between `message_start` and `message_stop`.
//!
//! The input of a tool is the model's own text: it is carried over as it stands, to its last digit.

use super::events::{data_events, event};
use super::{exact, merge::merge};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
struct MessageBlock {
    members: Map<String, Value>,
    /// The text of its input, as far as it came.
    input: String,
}

/// Members that say which message it is. Only a fallback changes its model.
const FIXED: [&str; 5] = ["content", "id", "model", "role", "type"];

/// Members that say how it stopped: what is said at the end holds, even if it is nothing.
const STOPS: [&str; 3] = ["stop_details", "stop_reason", "stop_sequence"];

/// The document that the events of a stream add up to.
pub fn assembled(stream: &[u8]) -> Option<Bytes> {
    let mut message: Option<Map<String, Value>> = None;
    let mut blocks: BTreeMap<u64, MessageBlock> = BTreeMap::new();
    let mut whole = false;
    for data in data_events(stream) {
        let Value::Object(mut event) = exact::read(&data)? else { return None };
        let index = event.get("index").and_then(Value::as_u64);
        match (event.get("type").and_then(Value::as_str)?, &mut message) {
            ("message_start", message @ None) => match event.remove("message") {
                Some(Value::Object(begun)) if has_no_content(&begun) => *message = Some(begun),
                _ => return None,
            },
            ("content_block_start", Some(message)) => {
                let Some(Value::Object(members)) = event.remove("content_block") else { return None };
                if let Some(model) = falls_back_to(&members) {
                    message.insert("model".into(), model);
                }
                let block = MessageBlock { members, input: String::new() };
                if blocks.insert(index?, block).is_some() {
                    return None;
                }
            }
            ("content_block_delta", Some(_)) => {
                let Some(Value::Object(delta)) = event.remove("delta") else { return None };
                grow(blocks.get_mut(&index?)?, delta)?;
            }
            ("message_delta", Some(message)) => finish(message, event),
            ("message_stop", Some(_)) => {
                whole = true;
                break;
            }
            ("content_block_start" | "content_block_delta" | "message_delta" | "message_stop", None) => {
                return None;
            }
            _ => {}
        }
    }
    let mut message = message.filter(|_| whole)?;
    message.remove("content");
    let blocks: Option<Vec<String>> = blocks.into_values().map(MessageBlock::written).collect();
    Some(with(message, "content", &format!("[{}]", blocks?.join(","))).into())
}

/// Blocks are said one by one. A beginning that holds some already numbers them in a way of its own.
fn has_no_content(message: &Map<String, Value>) -> bool {
    message.get("content").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// The model that goes on, if this block says that another one does.
fn falls_back_to(block: &Map<String, Value>) -> Option<Value> {
    let is_fallback = block.get("type").is_some_and(|kind| kind == "fallback");
    block.get("to").filter(|_| is_fallback)?.get("model").filter(|model| model.is_string()).cloned()
}

fn grow(block: &mut MessageBlock, mut delta: Map<String, Value>) -> Option<()> {
    match delta.remove("type")?.as_str()? {
        "input_json_delta" => block.input.push_str(delta.get("partial_json")?.as_str()?),
        "citations_delta" => {
            let citations = block.members.entry("citations").or_insert(Value::Null);
            merge(citations, json!([delta.remove("citation")?]))?;
        }
        // These are said whole.
        "signature_delta" | "compaction_delta" => block.members.extend(delta),
        // Any other member grows under the name that it has in the block.
        _ => {
            for (name, value) in delta {
                merge(block.members.entry(name).or_insert(Value::Null), value)?;
            }
        }
    }
    Some(())
}

/// Members that are known only at the end. Counts are totals; a member that is left out, or null, stays as it was.
fn finish(message: &mut Map<String, Value>, event: Map<String, Value>) {
    for (name, value) in event {
        match (name.as_str(), value) {
            ("type", _) => {}
            ("delta", Value::Object(delta)) => {
                delta.into_iter().for_each(|(name, value)| say(message, name, value));
            }
            ("usage", Value::Object(counts)) => {
                let known = message.entry("usage").or_insert_with(|| json!({}));
                let counts = counts.into_iter().filter(|(_, count)| !count.is_null());
                known
                    .as_object_mut()
                    .into_iter()
                    .zip([counts])
                    .for_each(|(known, counts)| known.extend(counts));
            }
            (_, value) => say(message, name, value),
        }
    }
}

fn say(message: &mut Map<String, Value>, name: String, value: Value) {
    let holds = STOPS.contains(&name.as_str()) || !value.is_null() || !message.contains_key(&name);
    if holds && !FIXED.contains(&name.as_str()) {
        message.insert(name, value);
    }
}

impl MessageBlock {
    /// `None`: its input broke off, and is not ours to complete.
    fn written(mut self) -> Option<String> {
        if self.input.trim().is_empty() {
            return Some(exact::written(&Value::Object(self.members)));
        }
        let input: &RawValue = serde_json::from_str(&self.input).ok()?;
        self.members.remove("input");
        Some(with(self.members, "input", input.get()))
    }
}

/// An object with one more member, whose text is not touched.
fn with(members: Map<String, Value>, name: &str, text: &str) -> String {
    let mut written = exact::written(&Value::Object(members));
    written.pop();
    let comma = if written.len() > 1 { "," } else { "" };
    format!("{written}{comma}\"{name}\":{text}}}")
}

/// The stream that a document would have been.
pub fn split(document: &[u8]) -> Option<Bytes> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(document).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(members.get("content")?.get()).ok()?;
    let mut message: Map<String, Value> = Map::new();
    for (name, value) in members.iter().filter(|(name, _)| *name != "content") {
        message.insert(name.clone(), exact::read(value.get().as_bytes())?);
    }
    let usage = message.get("usage").cloned().unwrap_or_else(|| json!({"output_tokens": 0}));
    let mut last = Map::new();
    for name in ["stop_reason", "stop_sequence", "stop_details", "container"] {
        if let Some(value) = message.get_mut(name) {
            last.insert(name.to_owned(), std::mem::take(value));
        }
    }
    message.insert("content".into(), json!([]));
    if let Some(count) = message.get_mut("usage").and_then(|usage| usage.get_mut("output_tokens")) {
        *count = json!(0);
    }
    let mut stream = event("message_start", json!({"message": message}));
    for (index, block) in blocks.into_iter().enumerate() {
        say_block(&mut stream, index, block)?;
    }
    stream.push_str(&event("message_delta", json!({"delta": last, "usage": usage})));
    stream.push_str(&event("message_stop", json!({})));
    Some(stream.into())
}

fn say_block(stream: &mut String, index: usize, block: &RawValue) -> Option<()> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(block.get()).ok()?;
    let Value::Object(mut begun) = exact::read(block.get().as_bytes())? else { return None };
    let mut deltas = Vec::new();
    let kind = begun.get("type").and_then(Value::as_str)?.to_owned();
    let mut grows = |name: &str, delta: &str| {
        if let Some(Value::String(text)) = begun.get_mut(name) {
            let mut said = Map::from_iter([("type".to_owned(), json!(delta))]);
            said.insert(name.to_owned(), Value::String(std::mem::take(text)));
            deltas.push(Value::Object(said));
        }
    };
    match kind.as_str() {
        "text" => grows("text", "text_delta"),
        "thinking" => {
            grows("thinking", "thinking_delta");
            grows("signature", "signature_delta");
        }
        _ => {}
    }
    if let (Some(input), Some(Value::Object(_))) = (members.get("input"), begun.get("input")) {
        deltas.push(json!({"type": "input_json_delta", "partial_json": input.get()}));
        begun.insert("input".into(), json!({}));
    }
    if let Some(Value::Array(citations)) = begun.get_mut("citations") {
        let citations = std::mem::take(citations).into_iter();
        deltas.extend(citations.map(|citation| json!({"type": "citations_delta", "citation": citation})));
    }
    stream.push_str(&event("content_block_start", json!({"index": index, "content_block": begun})));
    for delta in deltas {
        stream.push_str(&event("content_block_delta", json!({"index": index, "delta": delta})));
    }
    stream.push_str(&event("content_block_stop", json!({"index": index})));
    Some(())
}
