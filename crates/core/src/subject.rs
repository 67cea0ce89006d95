//! The subject: an intent in one line, for tables and messages.

use crate::identity::Sorting;
use crate::json::{Json, Path, push_member};
use crate::redact::redacted;

/// The width left beside an action and a state on a wide terminal.
pub const SUBJECT_CHARACTERS_MAX: usize = 80;

/// One value's share, so that a long text does not push the others out.
const VALUE_CHARACTERS_MAX: usize = 40;

/// The subject of an intent, in at most 80 characters: `customer=cus_42 invoice=1001`, or the command line. Secrets
/// and control characters are left out.
pub fn subject(arguments: &Json, sorting: &Sorting) -> String {
    let mut shown = redacted(arguments, &sorting.secret);
    let line = match by_key(&shown, &sorting.key) {
        Some(line) => line,
        None => {
            for path in sorting.volatile.iter().chain(&sorting.content) {
                path.remove_from(shown.to_mut());
            }
            match shown.get("argv").and_then(Json::as_array) {
                Some(argv) => command_line(argv),
                None => in_pairs(&shown),
            }
        }
    };
    shorten(printable(line), SUBJECT_CHARACTERS_MAX)
}

/// The key fields, if there are any and all are there.
fn by_key(shown: &Json, key: &[Path]) -> Option<String> {
    if key.is_empty() {
        return None;
    }
    let mut pairs = Vec::new();
    for path in key {
        let found = path.find(shown);
        if found.is_empty() {
            return None;
        }
        let name = path.to_string();
        let mut pair = format!("{}=", name.strip_prefix("args.").unwrap_or(&name));
        for (i, (_, value)) in found.into_iter().enumerate() {
            if i > 0 {
                pair.push(',');
            }
            push_value(&mut pair, value);
        }
        pairs.push(pair);
    }
    Some(pairs.join(" "))
}

fn command_line(argv: &[Json]) -> String {
    let words = argv.iter().map(|argument| match argument {
        Json::String(text) => quoted_for_a_shell(text),
        // A volatile position.
        Json::Null => "…".to_owned(),
        other => other.canonical(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A word as a shell would take it for itself.
pub fn quoted_for_a_shell(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The members of `args`, then those of the other roots.
fn in_pairs(shown: &Json) -> String {
    let mut line = String::new();
    let Json::Object(roots) = shown else {
        push_value(&mut line, shown);
        return line;
    };
    for (root, value) in roots.iter() {
        match value {
            Json::Object(members) if root == "args" => {
                members.iter().for_each(|(name, value)| push_pair(&mut line, name, value));
            }
            _ => push_pair(&mut line, root, value),
        }
    }
    line
}

fn push_pair(line: &mut String, name: &str, value: &Json) {
    // The rest is cut off anyway.
    if line.len() > SUBJECT_CHARACTERS_MAX * 4 {
        return;
    }
    if !line.is_empty() {
        line.push(' ');
    }
    let mut path = String::new();
    push_member(name, &mut path);
    line.push_str(&path);
    line.push('=');
    push_value(line, value);
}

fn push_value(line: &mut String, value: &Json) {
    let from = line.len();
    match value {
        Json::String(text) if !text.is_empty() && !text.contains(char::is_whitespace) => line.push_str(text),
        other => other.write_canonical(line),
    }
    let value = &line[from..];
    if value.len() > VALUE_CHARACTERS_MAX && value.chars().count() > VALUE_CHARACTERS_MAX {
        let kept = value.char_indices().nth(VALUE_CHARACTERS_MAX - 1).map_or(value.len(), |(at, _)| at);
        line.truncate(from + kept);
        line.push('…');
    }
}

/// White space becomes a space. Control characters go, and with them those that turn the direction of writing: a
/// table must not be redrawn by what stands in it.
fn printable(text: String) -> String {
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return text;
    }
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let kept = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    kept.filter(|c| !c.is_control() && !turns(*c)).collect()
}

fn shorten(text: String, characters_max: usize) -> String {
    if text.len() <= characters_max || text.chars().count() <= characters_max {
        return text;
    }
    text.chars().take(characters_max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::paths;
    use crate::json::{parse, tests::any_json};
    use proptest::prelude::*;

    fn subject_of(arguments: &str, sorting: &Sorting) -> String {
        subject(&parse(arguments).unwrap(), sorting)
    }

    #[test]
    fn key_fields_are_the_subject() {
        let sorting = Sorting { key: paths(&["args.customer", "args.invoice"]), ..Sorting::default() };
        let arguments = r#"{"args":{"customer":"cus_42","invoice":1001,"text":"hello"}}"#;
        assert_eq!(subject_of(arguments, &sorting), "customer=cus_42 invoice=1001");
        let sorting = Sorting { key: paths(&["args.items[*].id"]), ..Sorting::default() };
        assert_eq!(subject_of(r#"{"args":{"items":[{"id":1},{"id":2}]}}"#, &sorting), "items[*].id=1,2");
    }

    #[test]
    fn without_a_key_the_arguments_are() {
        let sorting = Sorting { volatile: paths(&["args.at"]), ..Sorting::default() };
        let arguments = r#"{"args":{"to":"ann","body":"hello there","at":1,"token":"abc"}}"#;
        assert_eq!(subject_of(arguments, &sorting), "body=\"hello there\" to=ann token=[redacted]");
    }

    #[test]
    fn a_command_reads_like_a_command() {
        let arguments = r#"{"argv":["git","commit","-m","it's fixed","","--token","x"],"cwd":"/w"}"#;
        assert_eq!(
            subject_of(arguments, &Sorting::default()),
            "git commit -m 'it'\\''s fixed' '' --token [redacted]"
        );
    }

    #[test]
    fn a_card_does_not_stand_in_a_subject() {
        let key = Sorting { key: paths(&["body.source"]), ..Sorting::default() };
        for arguments in
            [r#"{"body":{"source":"4242 4242 4242 4242"}}"#, r#"{"body":{"source":4242424242424242}}"#]
        {
            assert_eq!(subject_of(arguments, &key), "body.source=[redacted]");
            assert_eq!(subject_of(arguments, &Sorting::default()), r#"body={"source":"[redacted]"}"#);
        }
        let command = r#"{"argv":["pay","4242-4242-4242-4242","--note","for 378282246310005"]}"#;
        assert_eq!(subject_of(command, &Sorting::default()), "pay [redacted] --note 'for [redacted]'");
    }

    #[test]
    fn control_characters_do_not_reach_a_table() {
        let line = subject_of(r#"{"argv":["a\u001b[2Jb","c\nd","e\u202ef"]}"#, &Sorting::default());
        assert_eq!(line, "'a[2Jb' 'c d' 'ef'");
    }

    proptest! {
        #[test]
        fn it_is_one_short_line(json in any_json()) {
            for root in ["args", "argv"] {
                let line = subject(&Json::object([(root, json.clone())]), &Sorting::default());
                prop_assert!(line.chars().count() <= SUBJECT_CHARACTERS_MAX);
                prop_assert!(!line.contains(char::is_control));
            }
        }
    }
}
