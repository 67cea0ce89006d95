//! JSON with comments, edited in its concrete syntax: white space, comments, number literals and order stay.

use super::edit::{EntryChange, MemberEdit, ParseProblem};
use super::read_json::{read, split_mark, tree};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp};
use serde_json::Value;

pub fn apply(text: &str, changes: &[EntryChange]) -> Result<String, ParseProblem> {
    let (mark, body) = split_mark(text);
    let root = tree(body)?;
    for EntryChange { place, edits } in changes {
        let entry = root.object_value().and_then(|top| {
            let container = place.container.iter().try_fold(top, |object, step| object.object_value(step))?;
            container.object_value(&place.server)
        });
        let entry =
            entry.ok_or_else(|| ParseProblem::new(format!("the server {:?} is not there", place.server)))?;
        for edit in edits {
            edit_entry(&entry, edit);
        }
    }
    let edited = format!("{mark}{root}");
    // Without its place, which is one in a text that nobody has.
    read(&edited).map_err(|error| ParseProblem::new(error.what))?;
    Ok(edited)
}

fn edit_entry(entry: &CstObject, edit: &MemberEdit) {
    match edit {
        MemberEdit::Put { from, to, value, after } => match entry.get(from) {
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
        MemberEdit::Remove(member) => {
            if let Some(member) = entry.get(member) {
                member.remove();
            }
        }
        MemberEdit::Prepend(words) => match entry.array_value("args") {
            None => edit_entry(entry, &MemberEdit::set("args", words.clone(), "command")),
            Some(args) => prepend(&args, words),
        },
    }
}

fn prepend(args: &CstArray, words: &[String]) {
    let space_first = || args.child_at_index(1).filter(CstNode::is_whitespace);
    let had_space = space_first().is_some();
    // Each goes to the very front: between two others the library adds a space too many.
    for word in words.iter().rev() {
        args.insert(0, CstInputValue::String(word.clone()));
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

#[cfg(test)]
mod tests {
    use super::super::edit::EntryPath;
    use super::*;
    use serde_json::json;

    fn place() -> EntryPath {
        EntryPath { container: vec!["mcpServers".to_owned()], server: "a".to_owned() }
    }

    fn changes(edits: &[MemberEdit]) -> [EntryChange; 1] {
        [EntryChange { place: place(), edits: edits.to_vec() }]
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
        let edits = [MemberEdit::set("command", "semel", ""), MemberEdit::Prepend(vec!["0".to_owned()])];
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
      "url": "u" // it is
    }
  }
}"#;
        let edits = [
            MemberEdit::Put { from: "url", to: "command", value: "semel".into(), after: "" },
            MemberEdit::set("args", vec!["x"], "command"),
        ];
        let edited = apply(text, &changes(&edits)).expect("it can be edited");
        assert!(
            edited.contains("// where\n      \"command\": \"semel\"") && edited.contains("// it is"),
            "{edited}"
        );
    }
}
