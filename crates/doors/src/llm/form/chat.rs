//! Chat completions: chunks without names, each a part of the document, and `[DONE]` at the end.

use super::events::{contains, data_events};
use super::{exact, merge::merge};
use crate::http::sse::Parser;
use crate::llm::api::DONE;
use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};

/// Whether a piece of a stream says nothing but what the answer cost. Whoever did not ask for that expects a choice in
/// every chunk.
pub fn says_only_usage(piece: &[u8]) -> bool {
    let mut events = data_events(piece).peekable();
    contains(piece, b"\"usage\"")
        && events.peek().is_some()
        && events.all(|data| {
            let chunk = serde_json::from_slice::<Value>(&data).unwrap_or_default();
            chunk["usage"].is_object() && chunk["choices"].as_array().is_some_and(Vec::is_empty)
        })
}

/// A stream without the chunks that say only what it cost.
pub fn without_usage(stream: Bytes) -> Bytes {
    let mut parser = Parser::default();
    parser.push(&stream);
    let mut kept = BytesMut::with_capacity(stream.len());
    while let Ok(Some(piece)) = parser.next_piece() {
        if !says_only_usage(&piece.raw) {
            kept.extend_from_slice(&piece.raw);
        }
    }
    kept.extend_from_slice(&parser.rest());
    kept.freeze()
}

/// The document that the chunks of a stream add up to.
pub fn assembled(stream: &[u8]) -> Option<Bytes> {
    let mut document = Map::new();
    let mut choices: Vec<(u64, Map<String, Value>)> = Vec::new();
    let mut whole = false;
    for data in data_events(stream) {
        if data.trim_ascii() == DONE.as_bytes() {
            // Nobody reads on behind the end.
            whole = true;
            break;
        }
        let Value::Object(chunk) = exact::read(&data)? else { return None };
        for (name, value) in chunk {
            match (name.as_str(), value) {
                ("choices", Value::Array(parts)) => {
                    let alone = parts.len() == 1;
                    for part in parts {
                        add(&mut choices, part, alone)?;
                    }
                }
                // Padding, against those who guess at the text from the length of its packets.
                ("obfuscation", _) => {}
                (_, Value::Null) => drop(document.entry(name).or_insert(Value::Null)),
                (_, value) => drop(document.insert(name, value)),
            }
        }
    }
    choices.sort_by_key(|(index, _)| *index);
    let choices: Vec<Value> = choices.into_iter().map(|(_, choice)| finished(choice)).collect();
    document.insert("object".into(), json!("chat.completion"));
    document.insert("choices".into(), Value::Array(choices));
    whole.then(|| exact::written(&Value::Object(document)).into())
}

/// The element of this index, made if there is none.
fn indexed<T>(list: &mut Vec<(u64, T)>, index: u64, make: impl FnOnce() -> T) -> &mut T {
    let at = list.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
        list.push((index, make()));
        list.len() - 1
    });
    &mut list[at].1
}

/// Adds what a chunk says of one choice. One that is `alone` in its chunk needs no number.
fn add(choices: &mut Vec<(u64, Map<String, Value>)>, part: Value, alone: bool) -> Option<()> {
    let Value::Object(part) = part else { return None };
    let index = match part.get("index") {
        None | Some(Value::Null) if alone => 0,
        index => index?.as_u64()?,
    };
    let choice = indexed(choices, index, || Map::from_iter([("index".to_owned(), json!(index))]));
    for (name, value) in part {
        match name.as_str() {
            "index" => {}
            "delta" => {
                // Sound comes in parts that are encoded one by one; such an answer stays in the form it came in.
                if value.get("audio").is_some_and(|audio| !audio.is_null()) {
                    return None;
                }
                let message = choice.entry("message").or_insert_with(|| json!({}));
                if !tells_calls_apart(message, &value) || splits_parts(message, &value) {
                    return None;
                }
                merge(message, value)?;
            }
            "logprobs" => merge(choice.entry(name).or_insert(Value::Null), value)?,
            _ if value.is_null() => drop(choice.entry(name).or_insert(Value::Null)),
            _ => drop(choice.insert(name, value)),
        }
    }
    Some(())
}

/// Whether it is plain which call each part of a delta belongs to: by its number, which no other call has, or, where
/// none has a number, because it begins a call. Otherwise it could only be guessed.
fn tells_calls_apart(message: &Value, delta: &Value) -> bool {
    let (known, new) = (calls(message), calls(delta));
    new.iter().enumerate().all(|(place, call)| match call["index"].as_u64() {
        Some(_) => {
            let goes_on = |before: &Value| before["index"] == call["index"] && !names_another(before, call);
            let is_other = |other: &Value| other["index"].is_u64() && other["index"] != call["index"];
            // Two names at once are two calls.
            let twice = |before: &Value| name(before).is_some() && name(call).is_some();
            known.iter().all(|other| is_other(other) || goes_on(other))
                && new[..place].iter().all(|other| is_other(other) || goes_on(other) && !twice(other))
        }
        None => {
            let is_other = |other: &Value| other["index"].is_null() && names_another(other, call);
            call["index"].is_null() && id(call).is_some() && known.iter().chain(&new[..place]).all(is_other)
        }
    })
}

/// Whether content that is no text goes on in another delta. Its parts have no numbers.
fn splits_parts(message: &Value, delta: &Value) -> bool {
    let parts = |of: &Value| of["content"].as_array().is_some_and(|parts| !parts.is_empty());
    parts(message) && parts(delta)
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

fn names_another(known: &Value, call: &Value) -> bool {
    id(known).zip(id(call)).is_some_and(|(known, new)| known != new)
}

fn id(call: &Value) -> Option<&str> {
    call["id"].as_str().filter(|id| !id.is_empty())
}

fn name(call: &Value) -> Option<&str> {
    let kind = if call["custom"].is_object() { "custom" } else { "function" };
    call[kind]["name"].as_str().filter(|name| !name.is_empty())
}

/// A choice as documents have it.
fn finished(mut choice: Map<String, Value>) -> Value {
    let message = choice.entry("message").or_insert_with(|| json!({}));
    if let Some(message) = message.as_object_mut() {
        message.entry("role").or_insert_with(|| json!("assistant"));
        message.entry("content").or_insert(Value::Null);
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            // Their places are what tells them apart in chunks; in a document they stand in their places.
            calls.sort_by_key(|call| call["index"].as_u64().unwrap_or(u64::MAX));
            calls.iter_mut().filter_map(Value::as_object_mut).for_each(|call| drop(call.remove("index")));
        }
    }
    choice.entry("finish_reason").or_insert(Value::Null);
    Value::Object(choice)
}

/// The stream that a document would have been.
pub fn split(document: &[u8], include_usage: bool) -> Option<Bytes> {
    let Value::Object(mut document) = exact::read(document)? else { return None };
    let Some(Value::Array(choices)) = document.remove("choices") else { return None };
    let usage = document.remove("usage");
    document.insert("object".into(), json!("chat.completion.chunk"));
    let mut stream = String::new();
    let mut say = |choices: Value, usage: Option<&Value>| {
        let mut chunk = document.clone();
        chunk.insert("choices".into(), choices);
        if let Some(usage) = usage {
            chunk.insert("usage".into(), usage.clone());
        }
        stream.push_str(&format!("data: {}\n\n", exact::written(&Value::Object(chunk))));
    };
    let no_usage_yet = include_usage.then_some(&Value::Null);
    for choice in choices {
        let Value::Object(mut choice) = choice else { return None };
        let index = choice.get("index").cloned().unwrap_or(json!(0));
        let Some(Value::Object(mut message)) = choice.remove("message") else { return None };
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
            for (place, call) in calls.iter_mut().enumerate() {
                call.as_object_mut()?.insert("index".into(), json!(place));
            }
        }
        let logprobs = choice.remove("logprobs").unwrap_or(Value::Null);
        let said = json!([{"index": index, "delta": message, "logprobs": logprobs, "finish_reason": null}]);
        say(said, no_usage_yet);
        choice.insert("delta".into(), json!({}));
        say(json!([choice]), no_usage_yet);
    }
    if let Some(usage) = usage.filter(|_| include_usage) {
        say(json!([]), Some(&usage));
    }
    stream.push_str(&format!("data: {DONE}\n\n"));
    Some(stream.into())
}
