//! JSON with comments, edited in its concrete syntax: white space, comments, number literals and order stay.

use super::edit::{Change, Edit, Unreadable};
use super::entry::Place;
use super::read_json::{entry_ranges, read, split_mark, tree};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp};
use serde_json::Value;

pub fn apply(text: &str, changes: &[Change]) -> Result<String, Unreadable> {
    let (mark, body) = split_mark(text);
    let root = tree(body)?;
    for Change { place, edits } in changes {
        let entry = root.object_value().and_then(|top| {
            let container = place.container.iter().try_fold(top, |object, step| object.object_value(step))?;
            container.object_value(&place.server)
        });
        let entry =
            entry.ok_or_else(|| Unreadable::new(format!("the server {:?} is not there", place.server)))?;
        for edit in edits {
            edit_entry(&entry, edit);
        }
    }
    let edited = format!("{mark}{root}");
    // Without its place, which is one in a text that nobody has.
    read(&edited).map_err(|error| Unreadable::new(error.what))?;
    Ok(edited)
}

fn edit_entry(entry: &CstObject, edit: &Edit) {
    match edit {
        Edit::Put { from, to, value, after } => match entry.get(from) {
            Some(member) => {
                // Not replaced as a whole, because that loses the indentation of its value.
                if from != to {
                    rename(&member, to);
                }
                member.set_value(input(value));
            }
            None => {
                let next = entry.get(after).map(|member| member.property_index() + 1);
                entry.insert(next.unwrap_or_else(|| entry.properties().len()), to, input(value));
            }
        },
        Edit::Remove(member) => {
            if let Some(member) = entry.get(member) {
                member.remove();
            }
        }
        Edit::Move { from, to, names } => {
            if let Some(member) = entry.get(from) {
                move_members(entry, &member, to, names);
            }
        }
        Edit::Front { drop, add } => match entry.array_value("args") {
            None => edit_entry(entry, &Edit::set("args", add.clone(), "command")),
            Some(args) => front(&args, *drop, add),
        },
    }
}

fn move_members(entry: &CstObject, from: &CstObjectProp, to: &str, names: &[(String, String)]) {
    let Some(table) = from.object_value() else { return };
    let named: Vec<_> = table
        .properties()
        .into_iter()
        .filter_map(|member| {
            let now = member.decoded_name()?;
            let (_, name) = names.iter().find(|(name, _)| *name == now)?;
            Some((member, name))
        })
        .collect();
    let target = entry.object_value(to);
    let nothing_there = target.as_ref().is_none_or(|target| target.properties().is_empty());
    if nothing_there && named.len() == table.properties().len() {
        if let Some(empty) = target.and_then(|_| entry.get(to)) {
            empty.remove();
        }
        rename(from, to);
        named.iter().for_each(|(member, name)| rename(member, name));
        return;
    }
    let mut moving = Vec::new();
    for (member, name) in named {
        let text = member.value().and_then(|value| value.as_string_lit()?.decoded_value().ok());
        let Some(text) = text else { continue };
        moving.push((name.clone(), CstInputValue::String(text)));
        member.remove();
    }
    match target {
        Some(target) => moving.into_iter().for_each(|(name, text)| {
            target.append(&name, text);
        }),
        None => {
            entry.insert(from.property_index() + 1, to, CstInputValue::Object(moving));
        }
    }
    if table.properties().is_empty() {
        from.clone().remove();
    }
}

fn front(args: &CstArray, drop: usize, add: &[String]) {
    let space_first = || args.child_at_index(1).filter(CstNode::is_whitespace);
    let had_space = space_first().is_some();
    // The words are put in before the old ones go: what is empty for a moment loses its form. Each goes to the very
    // front: between two others the library adds a space too many.
    for word in add.iter().rev() {
        args.insert(0, CstInputValue::String(word.clone()));
    }
    for element in args.elements().into_iter().skip(add.len()).take(drop) {
        element.remove();
    }
    if let (false, Some(space)) = (had_space, space_first()) {
        space.remove();
    }
}

fn rename(member: &CstObjectProp, name: &str) {
    if let Some(written) = member.name().and_then(|name| name.as_string_lit()) {
        written.set_raw_value(Value::from(name).to_string());
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(boolean) => CstInputValue::Bool(*boolean),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

pub fn transplant(text: &str, from: &str, places: &[&Place]) -> Option<String> {
    let (here, there) = (entry_ranges(text, places)?, entry_ranges(from, places)?);
    let mut swaps: Vec<_> = here.into_iter().zip(there).collect();
    swaps.sort_by_key(|(here, _)| here.start);
    let (mut result, mut end) = (String::with_capacity(text.len()), 0);
    for (here, there) in swaps {
        result.push_str(&text[end..here.start]);
        result.push_str(&from[there]);
        end = here.end;
    }
    Some(result + &text[end..])
}

#[cfg(test)]
mod tests {
    use super::super::entry::Place;
    use super::*;
    use serde_json::json;

    fn place() -> Place {
        Place { container: vec!["mcpServers".to_owned()], server: "a".to_owned() }
    }

    fn changes(edits: &[Edit]) -> [Change; 1] {
        [Change { place: place(), edits: edits.to_vec() }]
    }

    /// The tokens with one gap filled, and every other one as JSON needs no gap at all.
    fn laid_out(tokens: &str, gap: usize, filling: &str) -> String {
        let tokens: Vec<&str> = tokens.split(' ').collect();
        let fill = |(index, token): (usize, &&str)| {
            if index == gap { format!("{filling}{token}") } else { (*token).to_owned() }
        };
        tokens.iter().enumerate().map(fill).collect()
    }

    #[test]
    fn white_space_and_comments_may_stand_in_any_gap() {
        let layouts = [
            (
                r#"{ "mcpServers" : { "a" : { "command" : "x" , "args" : [ "1" , "2" , ] , } , "b" : 1e400 } }"#,
                json!(["0", "1", "2"]),
            ),
            (r#"{ "mcpServers" : { "a" : { "args" : [ ] , "command" : "x" } } }"#, json!(["0"])),
            (r#"{ "mcpServers" : { "a" : { "command" : "x" } } }"#, json!(["0"])),
        ];
        let fillings =
            ["", " ", "\n", "\r\n\t", "\n\n  ", " /* note */ ", " // note\n", "\n// note\n  ", "\t"];
        let edits = [Edit::set("command", "semel", ""), Edit::Front { drop: 0, add: vec!["0".to_owned()] }];
        for (tokens, args) in layouts {
            for gap in 0..tokens.split(' ').count() {
                for filling in fillings {
                    let text = laid_out(tokens, gap, filling);
                    let edited =
                        apply(&text, &changes(&edits)).unwrap_or_else(|error| panic!("{text:?}: {error}"));
                    let entry = &read(&edited).expect("it can be read")["mcpServers"]["a"];
                    assert_eq!(entry, &json!({"command": "semel", "args": args}), "{text:?}: {edited:?}");
                    assert_eq!(
                        edited.matches("note").count(),
                        text.matches("note").count(),
                        "{text:?}: {edited:?}"
                    );
                    assert_eq!(transplant(&edited, &text, &[&place()]).as_ref(), Some(&text), "{edited:?}");
                    let back = apply(&edited, &changes(&[Edit::Front { drop: 1, add: Vec::new() }]));
                    let back = read(&back.expect("it can be taken back")).expect("it can be read");
                    let rest: Vec<_> = args.as_array().expect("a list").iter().skip(1).cloned().collect();
                    assert_eq!(back["mcpServers"]["a"]["args"], Value::Array(rest), "{edited:?}");
                }
            }
        }
    }

    #[test]
    fn a_member_keeps_its_comments_when_it_changes_its_name() {
        let text = r#"{
  "mcpServers": {
    "a": {
      // where
      "url": "u", // it is
      "headers": {"K": "\u0041" /* kept */}
    }
  }
}"#;
        let edits = [
            Edit::Put { from: "url".to_owned(), to: "command".to_owned(), value: "semel".into(), after: "" },
            Edit::set("args", vec!["x"], "command"),
            Edit::Move { from: "headers", to: "env", names: vec![("K".to_owned(), "V".to_owned())] },
        ];
        let expected = r#"{
  "mcpServers": {
    "a": {
      // where
      "command": "semel", // it is
      "args": ["x"],
      "env": {"V": "\u0041" /* kept */}
    }
  }
}"#;
        assert_eq!(apply(text, &changes(&edits)).expect("it can be edited"), expected);
    }
}
