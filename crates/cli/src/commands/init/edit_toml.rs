//! TOML, edited by toml_edit: comments, order and white space stay.

use super::edit::{EntryChange, MemberEdit, ParseProblem};
use super::read_toml::{parse, rendered};
use serde_json::{Map, Value as Json};
use toml_edit::{Array, Decor, InlineTable, Item, TableLike, Value};

pub fn apply(text: &str, changes: &[EntryChange]) -> Result<String, ParseProblem> {
    let mut document = parse(text)?.into_mut();
    for change in changes {
        let mut steps = change.place.steps();
        let entry =
            steps.try_fold(document.as_item_mut(), |item, step| item.as_table_like_mut()?.get_mut(step));
        let entry = entry.and_then(Item::as_table_like_mut);
        let entry = entry.ok_or_else(|| ParseProblem::new("a server is not there any more"))?;
        change.edits().iter().for_each(|edit| edit_entry(entry, edit));
    }
    Ok(rendered(&document, text))
}

fn edit_entry(entry: &mut dyn TableLike, edit: &MemberEdit) {
    match edit {
        MemberEdit::Set(member, value) => match entry.get_mut(member) {
            Some(old) => *old = replaced(old, value),
            None => drop(entry.insert(member, Item::Value(written(value)))),
        },
        MemberEdit::Remove(member) => drop(entry.remove(member)),
        MemberEdit::DropFirst(count) => {
            if let Some(args) = entry.get_mut("args").and_then(Item::as_array_mut) {
                let first = args.get(0).map(|value| value.decor().clone());
                (0..(*count).min(args.len())).for_each(|_| drop(args.remove(0)));
                if let (Some(decor), Some(value)) = (first, args.get_mut(0)) {
                    *value.decor_mut() = decor;
                }
            }
        }
        MemberEdit::Prepend(words) => {
            if let Some(args) = entry.get_mut("args").and_then(Item::as_array_mut) {
                prepend(args, words);
            }
        }
    }
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

fn prepend(args: &mut Array, words: &[Json]) {
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
        args.insert_formatted(index, written(word).decorated(prefix, ""));
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
    use super::super::edit::EntryPath;
    use super::super::read_toml::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_may_be_written_in_any_way_that_toml_has() {
        let place = EntryPath { container: vec!["mcp_servers".to_owned()], server: "a".to_owned() };
        for text in [
            "[mcp_servers.a]\ncommand = 'x' # note\nargs = ['1']\n[other]\nb = 1_000\n",
            "[mcp_servers.a]\nargs = ['1',] # note\ncommand = \"\"\"x\"\"\"\n[mcp_servers.a.env]\nK = 'v'\n",
            "[mcp_servers]\na = { command = 'x', args = ['1'] } # note\n",
            "mcp_servers = { a = { command = 'x', args = [\n  '1', # note\n] } }\n",
            "# note\nmcp_servers.a.command = 'x'\nmcp_servers.a.args = [ '1' ]\n",
            "[mcp_servers.a]\r\ncommand = 'x' # note\r\nargs = [\r\n  '1',\r\n]\r\n",
            "[mcp_servers.\"a\"]\n  command = 'x'\n  args = [\n    # note\n    '1'\n  ]",
        ] {
            let before = place.entry(&read(text).expect("it can be read")).expect("an entry").clone();
            let mut after = before.clone();
            after.insert("command".to_owned(), json!("semel"));
            after.insert("args".to_owned(), json!(["0", "1"]));
            let change = EntryChange { place: place.clone(), before, after };
            let edited = apply(text, &[change]).unwrap_or_else(|error| panic!("{text:?}: {error}"));
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
