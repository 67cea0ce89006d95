//! Responses: numbered events, the last of which carries the whole document.

use super::events::{data_events, event};
use super::exact;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The members of an event that are looked at.
#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    output_index: Option<Value>,
}

/// The document of the terminal event, as it stands there. Servers that leave its output out have said it before, item
/// by item, each with its place.
pub fn assembled(stream: &[u8]) -> Option<Bytes> {
    let mut items = ResponseItems::default();
    for data in data_events(stream) {
        let Ok(said) = serde_json::from_slice::<ResponseEvent<'_>>(&data) else { continue };
        let place = said.output_index.and_then(|index| index.as_u64());
        match (&*said.kind, said.response, said.item) {
            ("response.output_item.added", ..) => items.begin(place),
            ("response.output_item.done", _, Some(item)) => items.end(place, item),
            ("response.completed" | "response.incomplete" | "response.failed", Some(response), _) => {
                // An item that was begun when the response failed is no part of it.
                if said.kind == "response.failed" {
                    items.forget_begun();
                }
                return whole(response.get(), items);
            }
            _ => {}
        }
    }
    None
}

/// Items as they were said one by one.
#[derive(Default)]
struct ResponseItems {
    /// `None`: it has begun.
    by_place: BTreeMap<u64, Option<String>>,
    /// One has begun that has no place.
    begun_anywhere: bool,
    /// One that is done has no place, or that of another.
    unclear: bool,
}

impl ResponseItems {
    fn begin(&mut self, place: Option<u64>) {
        match place {
            Some(place) => drop(self.by_place.entry(place).or_default()),
            None => self.begun_anywhere = true,
        }
    }

    fn end(&mut self, place: Option<u64>, item: &RawValue) {
        let before = place.map(|place| self.by_place.insert(place, Some(item.get().to_owned())));
        self.unclear |= !matches!(before, Some(None | Some(None)));
    }

    fn forget_begun(&mut self) {
        self.begun_anywhere = false;
        self.by_place.retain(|_, item| item.is_some());
    }

    /// All of them, each in its place. `None`: some are not there, or could be anywhere.
    fn in_order(self) -> Option<Vec<String>> {
        let gapless = (0..).zip(self.by_place.keys()).all(|(place, known)| place == *known);
        let is_clear = gapless && !self.begun_anywhere && !self.unclear;
        self.by_place.into_values().collect::<Option<Vec<_>>>().filter(|_| is_clear)
    }
}

fn whole(response: &str, items: ResponseItems) -> Option<Bytes> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(response).ok()?;
    let has_output = members.get("output").is_some_and(|output| {
        serde_json::from_str::<Vec<&RawValue>>(output.get()).is_ok_and(|output| !output.is_empty())
    });
    let items = if has_output { Vec::new() } else { items.in_order()? };
    if items.is_empty() {
        return Some(response.to_owned().into());
    }
    let output = RawValue::from_string(format!("[{}]", items.join(","))).ok()?;
    let members: BTreeMap<Cow<'_, str>, &RawValue> =
        members.into_iter().chain([(Cow::Borrowed("output"), &*output)]).collect();
    serde_json::to_vec(&members).ok().map(Bytes::from)
}

/// The events of a stream, numbered as they are said.
struct ResponseStream {
    text: String,
    number: u64,
}

impl ResponseStream {
    fn say(&mut self, kind: &str, mut data: Value) {
        data["sequence_number"] = json!(self.number);
        self.number += 1;
        self.text.push_str(&event(kind, data));
    }
}

/// The stream that a document would have been. `None`: it is not finished, and there is no end to say.
pub fn split(document: &[u8]) -> Option<Bytes> {
    let document = exact::read(document).filter(Value::is_object)?;
    let status = document["status"].as_str().unwrap_or("completed");
    let last = match status {
        "completed" | "incomplete" | "failed" => format!("response.{status}"),
        _ => return None,
    };
    let mut begun = document.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    for later in ["usage", "error", "incomplete_details", "completed_at"] {
        if let Some(value) = begun.get_mut(later) {
            *value = Value::Null;
        }
    }
    let mut stream = ResponseStream { text: String::new(), number: 0 };
    stream.say("response.created", json!({"response": begun}));
    stream.say("response.in_progress", json!({"response": begun}));
    for (index, item) in document["output"].as_array()?.iter().enumerate() {
        say_item(&mut stream, index, item);
    }
    stream.say(&last, json!({"response": document}));
    Some(stream.text.into())
}

fn say_item(stream: &mut ResponseStream, index: usize, item: &Value) {
    let kind = item["type"].as_str().unwrap_or_default();
    let mut begun = item.clone();
    if begun.get("status").is_some() {
        begun["status"] = json!("in_progress");
    }
    // The member that grows, and the name under which it does.
    let grows = match kind {
        "function_call" => Some(("arguments", "function_call_arguments")),
        "mcp_call" => Some(("arguments", "mcp_call_arguments")),
        "custom_tool_call" => Some(("input", "custom_tool_call_input")),
        _ => None,
    };
    if let Some((name, _)) = grows {
        begun[name] = json!("");
    }
    if kind == "message" {
        begun["content"] = json!([]);
    }
    if kind == "reasoning" {
        begun["summary"] = json!([]);
    }
    stream.say("response.output_item.added", json!({"output_index": index, "item": begun}));
    let at = json!({"item_id": item["id"], "output_index": index});
    if let Some((name, event)) = grows {
        stream.say(&format!("response.{event}.delta"), also(&at, json!({"delta": item[name]})));
        let mut done = also(&at, json!({"name": item["name"]}));
        done[name] = item[name].clone();
        stream.say(&format!("response.{event}.done"), done);
    }
    let parts = |name: &str| item[name].as_array().cloned().unwrap_or_default().into_iter().enumerate();
    if kind == "message" {
        for (place, part) in parts("content") {
            say_part(stream, &also(&at, json!({"content_index": place})), &part);
        }
    }
    if kind == "reasoning" {
        for (place, part) in parts("summary") {
            let at = also(&at, json!({"summary_index": place}));
            let event = |what: &str| format!("response.reasoning_summary_{what}");
            stream.say(&event("part.added"), also(&at, json!({"part": {"type": part["type"], "text": ""}})));
            stream.say(&event("text.delta"), also(&at, json!({"delta": part["text"]})));
            stream.say(&event("text.done"), also(&at, json!({"text": part["text"]})));
            stream.say(&event("part.done"), also(&at, json!({"part": part})));
        }
    }
    stream.say("response.output_item.done", json!({"output_index": index, "item": item}));
}

fn say_part(stream: &mut ResponseStream, at: &Value, part: &Value) {
    let (name, event) = match part["type"].as_str() {
        Some("output_text") => ("text", "response.output_text"),
        Some("refusal") => ("refusal", "response.refusal"),
        _ => ("", ""),
    };
    let mut begun = part.clone();
    for (member, empty) in [(name, json!("")), ("annotations", json!([])), ("logprobs", json!([]))] {
        if let Some(value) = begun.get_mut(member) {
            *value = empty;
        }
    }
    stream.say("response.content_part.added", also(at, json!({"part": begun})));
    if !name.is_empty() {
        let logprobs = part.get("logprobs").cloned().unwrap_or_else(|| json!([]));
        let text = name == "text";
        let with = |mut data: Value| {
            if text {
                data["logprobs"] = logprobs.clone();
            }
            also(at, data)
        };
        stream.say(&format!("{event}.delta"), with(json!({"delta": part[name]})));
        for (place, annotation) in part["annotations"].as_array().into_iter().flatten().enumerate() {
            let data = json!({"annotation_index": place, "annotation": annotation});
            stream.say("response.output_text.annotation.added", also(at, data));
        }
        let mut done = with(json!({}));
        done[name] = part[name].clone();
        stream.say(&format!("{event}.done"), done);
    }
    stream.say("response.content_part.done", also(at, json!({"part": part})));
}

/// The members of both.
fn also(at: &Value, data: Value) -> Value {
    let mut all = at.clone();
    if let (Value::Object(all), Value::Object(data)) = (&mut all, data) {
        all.extend(data);
    }
    all
}
