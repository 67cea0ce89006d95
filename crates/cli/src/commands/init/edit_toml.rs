//! TOML, edited by toml_edit: comments, order and white space stay.

use super::edit::{EntryChange, EntryPath, MemberEdit, ParseProblem};
use super::read_toml::{parse, rendered};
use serde_json::{Map, Value as Json};
use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, Key, Value};

pub fn apply(text: &str, changes: &[EntryChange]) -> Result<String, ParseProblem> {
    let mut document = parse(text)?.into_mut();
    for EntryChange { place, edits } in changes {
        let entry = entry_mut(&mut document, place)
            .ok_or_else(|| ParseProblem::new(format!("the server {:?} is not there", place.server)))?;
        let mut members = take_members(entry);
        for edit in edits {
            edit_members(&mut members, edit);
        }
        put_members(entry, members);
    }
    Ok(rendered(&document, text))
}

fn entry_mut<'a>(document: &'a mut DocumentMut, place: &EntryPath) -> Option<&'a mut Item> {
    let mut item = document.as_item_mut();
    for step in place.container.iter().chain([&place.server]) {
        item = item.as_table_like_mut()?.get_mut(step)?;
    }
    Some(item)
}

/// With their order and what is written around them; the library has no way to change a name in its place.
fn take_members(entry: &mut Item) -> Vec<(Key, Item)> {
    let Some(table) = entry.as_table_like_mut() else { return Vec::new() };
    let names: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
    names
        .iter()
        .filter_map(|name| {
            let key = table.key(name)?.clone();
            Some((key, table.remove(name)?))
        })
        .collect()
}

fn put_members(entry: &mut Item, members: Vec<(Key, Item)>) {
    for (key, item) in members {
        match (&mut *entry, item) {
            (Item::Table(table), item) => {
                table.insert_formatted(&key, item);
            }
            (Item::Value(Value::InlineTable(table)), Item::Value(value)) => {
                table.insert_formatted(&key, value);
            }
            _ => unreachable!("an inline table holds values alone, and only tables have members"),
        }
    }
}

fn edit_members(members: &mut Vec<(Key, Item)>, edit: &MemberEdit) {
    let at = |members: &[(Key, Item)], name: &str| members.iter().position(|(key, _)| key.get() == name);
    match edit {
        MemberEdit::Put { from, to, value, after } => match at(members, from) {
            Some(index) => {
                let (key, item) = &mut members[index];
                *key = renamed(key, to);
                *item = replaced(item, value);
            }
            None => {
                let index = at(members, after).map_or(members.len(), |index| index + 1);
                members.insert(index, (Key::new(*to), Item::Value(written(value))));
            }
        },
        MemberEdit::Remove(member) => members.retain(|(key, _)| key.get() != *member),
        MemberEdit::Prepend(words) => {
            let args = members.iter_mut().find(|(key, _)| key.get() == "args");
            match args.and_then(|(_, item)| item.as_array_mut()) {
                Some(args) => prepend(args, words),
                None => edit_members(members, &MemberEdit::set("args", words.clone(), "command")),
            }
        }
    }
}

fn renamed(key: &Key, name: &str) -> Key {
    if key.get() == name {
        return key.clone();
    }
    Key::new(name).with_leaf_decor(key.leaf_decor().clone()).with_dotted_decor(key.dotted_decor().clone())
}

/// A new value with the old one's surroundings: a comment behind it, or its own header line if it is a table.
fn replaced(old: &Item, value: &Json) -> Item {
    let mut new = written(value);
    match (old, new) {
        (Item::Table(old), Value::InlineTable(members)) => {
            let mut table = members.into_table();
            *table.decor_mut() = old.decor().clone();
            table.set_position(old.position());
            table.set_dotted(old.is_dotted());
            Item::Table(table)
        }
        (Item::Value(old), value) => {
            new = value;
            *new.decor_mut() = old.decor().clone();
            Item::Value(new)
        }
        (_, value) => Item::Value(value),
    }
}

fn prepend(args: &mut Array, words: &[String]) {
    let first = args.get(0).map(|value| value.decor().clone());
    // One word a line where it was so before.
    let several_lines = first.as_ref().and_then(Decor::prefix).and_then(|prefix| prefix.as_str());
    let several_lines = several_lines.filter(|prefix| prefix.contains('\n')).map(|prefix| {
        let indent = prefix.rsplit('\n').next().unwrap_or_default();
        format!("\n{indent}")
    });
    for (index, word) in words.iter().enumerate() {
        let prefix = match &several_lines {
            Some(line) => line.as_str(),
            None if index == 0 => "",
            None => " ",
        };
        args.insert_formatted(index, Value::from(word.as_str()).decorated(prefix, ""));
    }
    if let (None, Some(value)) = (&several_lines, args.get_mut(words.len())) {
        value.decor_mut().set_prefix(" ");
    }
}

fn written(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(""),
        Json::Bool(boolean) => Value::from(*boolean),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => Value::Array(elements.iter().map(written).collect()),
        Json::Object(members) => Value::InlineTable(inline(members)),
    }
}

fn inline(members: &Map<String, Json>) -> InlineTable {
    members.iter().map(|(name, value)| (name.as_str(), written(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read_toml::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_may_be_written_in_any_way_that_toml_has() {
        let place = EntryPath { container: vec!["mcp_servers".to_owned()], server: "a".to_owned() };
        let edits = [MemberEdit::set("command", "semel", ""), MemberEdit::Prepend(vec!["0".to_owned()])];
        for text in [
            "[mcp_servers.a]\ncommand = 'x' # note\nargs = ['1']\n[other]\nb = 1_000\n",
            "[mcp_servers.a]\nargs = ['1',] # note\ncommand = \"\"\"x\"\"\"\n[mcp_servers.a.env]\nK = 'v'\n",
            "[mcp_servers]\na = { command = 'x', args = ['1'] } # note\n",
            "mcp_servers = { a = { command = 'x', args = [\n  '1', # note\n] } }\n",
            "# note\nmcp_servers.a.command = 'x'\nmcp_servers.a.args = [ '1' ]\n",
            "[mcp_servers.a]\r\ncommand = 'x' # note\r\nargs = [\r\n  '1',\r\n]\r\n",
            "[mcp_servers.\"a\"]\n  command = 'x'\n  args = [\n    # note\n    '1'\n  ]",
        ] {
            let edited = apply(text, &[EntryChange { place: place.clone(), edits: edits.to_vec() }])
                .unwrap_or_else(|error| panic!("{text:?}: {error}"));
            let entry = &read(&edited).expect("it can be read")["mcp_servers"]["a"];
            assert_eq!(
                (&entry["command"], &entry["args"]),
                (&json!("semel"), &json!(["0", "1"])),
                "{edited}"
            );
            assert!(edited.contains("# note"), "{text:?}: {edited:?}");
        }
    }
}
