//! How a delta is added to what came before it.

use super::exact::is_number;
use serde_json::{Map, Value};

/// Members that name something and are said whole, by some servers in every chunk.
const NAMES: [&str; 6] = ["format", "id", "index", "object", "role", "type"];

/// The kind of a value, for adding to it.
#[derive(PartialEq, Eq)]
enum MergeKind {
    /// An empty text too: servers begin with one, or end with one, whatever comes otherwise.
    Nothing,
    Plain,
    Text,
    List,
    Object,
}

impl MergeKind {
    fn of(value: &Value) -> MergeKind {
        match value {
            Value::Null => MergeKind::Nothing,
            Value::String(text) if text.is_empty() => MergeKind::Nothing,
            value if is_number(value) => MergeKind::Plain,
            Value::Bool(_) | Value::Number(_) => MergeKind::Plain,
            Value::String(_) => MergeKind::Text,
            Value::Array(_) => MergeKind::List,
            Value::Object(_) => MergeKind::Object,
        }
    }
}

/// Texts grow, lists grow, objects are merged member by member; whatever else is said last holds. `None`: what was of
/// one kind goes on as another, and what they are together could only be guessed.
pub fn merge(whole: &mut Value, delta: Value) -> Option<()> {
    let (known, new) = (MergeKind::of(whole), MergeKind::of(&delta));
    if known != new && known != MergeKind::Nothing && new != MergeKind::Nothing {
        return None;
    }
    match (whole, delta) {
        (whole, delta) if new == MergeKind::Nothing => {
            if whole.is_null() {
                *whole = delta;
            }
        }
        (Value::Object(whole), Value::Object(delta)) => members(whole, delta)?,
        (Value::Array(whole), Value::Array(delta)) => elements(whole, delta)?,
        (Value::String(whole), Value::String(delta)) if new == MergeKind::Text => whole.push_str(&delta),
        // The first delta is put together from nothing, so that what it numbers stands in its place.
        (whole, Value::Array(delta)) => {
            let mut list = Vec::new();
            elements(&mut list, delta)?;
            *whole = Value::Array(list);
        }
        (whole, delta) => *whole = delta,
    }
    Some(())
}

fn members(whole: &mut Map<String, Value>, delta: Map<String, Value>) -> Option<()> {
    for (name, value) in delta {
        let known = whole.entry(name.as_str()).or_insert(Value::Null);
        let repeated = name == "name" && *known == value;
        let replaces = NAMES.contains(&name.as_str()) && MergeKind::of(&value) != MergeKind::Nothing;
        match replaces {
            _ if repeated => {}
            true => *known = value,
            false => merge(known, value)?,
        }
    }
    Some(())
}

/// Elements that say their index are merged with the one of that index; others are added.
fn elements(list: &mut Vec<Value>, delta: Vec<Value>) -> Option<()> {
    for element in delta {
        let index = element.get("index").and_then(Value::as_u64);
        let same =
            |known: &&mut Value| index.is_some() && known.get("index").and_then(Value::as_u64) == index;
        match list.iter_mut().find(same) {
            Some(known) => merge(known, element)?,
            None => list.push(element),
        }
    }
    Some(())
}
