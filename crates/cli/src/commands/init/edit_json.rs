//! JSON with comments, edited in its concrete syntax: white space, comments, number literals and order stay.

use super::edit::{EntryChange, MemberEdit, ParseProblem};
use super::read_json::{read, split_mark, tree};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject};
use serde_json::Value;

pub fn apply(text: &str, changes: &[EntryChange]) -> Result<String, ParseProblem> {
    let (mark, body) = split_mark(text);
    let root = tree(body)?;
    for change in changes {
        let top = root.object_value();
        let entry =
            top.and_then(|top| change.place.steps().try_fold(top, |object, step| object.object_value(step)));
        let entry = entry.ok_or_else(|| ParseProblem::new("a server is not there any more"))?;
        change.edits().iter().for_each(|edit| edit_entry(&entry, edit));
    }
    let edited = format!("{mark}{root}");
    // Without its place, which is one in a text that nobody has.
    read(&edited).map_err(|error| ParseProblem::new(error.what))?;
    Ok(edited)
}

fn edit_entry(entry: &CstObject, edit: &MemberEdit) {
    match edit {
        MemberEdit::Set(member, value) => match entry.get(member) {
            // Not replaced as a whole, because that loses the indentation of its value.
            Some(written) => written.set_value(input(value)),
            None => drop(entry.append(member, input(value))),
        },
        MemberEdit::Remove(member) => {
            if let Some(member) = entry.get(member) {
                member.remove();
            }
        }
        MemberEdit::DropFirst(count) => {
            let args = entry.array_value("args").map(|args| args.elements()).unwrap_or_default();
            args.into_iter().take(*count).for_each(CstNode::remove);
        }
        MemberEdit::Prepend(words) => {
            if let Some(args) = entry.array_value("args") {
                prepend(&args, words);
            }
        }
    }
}

fn prepend(args: &CstArray, words: &[Value]) {
    let space_first = || args.child_at_index(1).filter(CstNode::is_whitespace);
    let had_space = space_first().is_some();
    // Each goes to the very front: between two others the library adds a space too many.
    for word in words.iter().rev() {
        args.insert(0, input(word));
    }
    if let (false, Some(space)) = (had_space, space_first()) {
        space.remove();
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
        for (tokens, args) in layouts {
            for gap in 0..tokens.split(' ').count() {
                for filling in fillings {
                    let text = laid_out(tokens, gap, filling);
                    let before = read(&text).expect("it can be read")["mcpServers"]["a"].clone();
                    let before = before.as_object().expect("an entry").clone();
                    let after = json!({"command": "semel", "args": args});
                    let after = after.as_object().expect("an entry").clone();
                    let change = EntryChange { place: place(), before, after };
                    let edited = apply(&text, &[change]).unwrap_or_else(|error| panic!("{text:?}: {error}"));
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
}
