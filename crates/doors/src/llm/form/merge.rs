//! How a delta is added to what came before it.

use serde_json::{Map, Value};

/// Members that name something and are said whole, by some servers in every chunk.
const NAMES: [&str; 5] = ["id", "index", "object", "role", "type"];

/// Texts grow, lists grow, objects are merged member by member; whatever else is said last holds.
pub fn merge(whole: &mut Value, delta: Value) {
    match (whole, delta) {
        (_, Value::Null) => {}
        (Value::Object(whole), Value::Object(delta)) => members(whole, delta),
        (Value::Array(whole), Value::Array(delta)) => {
            delta.into_iter().for_each(|element| append(whole, element))
        }
        (Value::String(whole), Value::String(delta)) => whole.push_str(&delta),
        // The first delta is put together from nothing, so that what it numbers stands in its place.
        (whole @ Value::Null, Value::Array(delta)) => {
            let mut list = Vec::new();
            delta.into_iter().for_each(|element| append(&mut list, element));
            *whole = Value::Array(list);
        }
        (whole, delta) => *whole = delta,
    }
}

fn members(whole: &mut Map<String, Value>, delta: Map<String, Value>) {
    for (name, value) in delta {
        let known = whole.entry(name.as_str()).or_insert(Value::Null);
        let repeated = name == "name" && *known == value;
        match NAMES.contains(&name.as_str()) {
            _ if repeated || value.is_null() => {}
            true => *known = value,
            false => merge(known, value),
        }
    }
}

/// Elements that say their index are merged with the one of that index; others are added.
fn append(list: &mut Vec<Value>, element: Value) {
    let index = element.get("index").and_then(Value::as_u64);
    let same = |known: &&mut Value| index.is_some() && known.get("index").and_then(Value::as_u64) == index;
    match list.iter_mut().find(same) {
        Some(known) => merge(known, element),
        None => list.push(element),
    }
}
