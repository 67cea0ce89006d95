//! The subject: an intent in one line, for tables and messages.

use crate::identity::Sorting;
use crate::json::{Json, Path, push_member};
use crate::judgement::arguments::{self, ArgumentKind};
use crate::redact::{REDACTED, redacted};
use crate::words::words;
use std::borrow::Cow;

/// The most that is kept: most calls are named whole, and longer ones are data, which a record does not keep.
pub const SUBJECT_CHARACTERS_MAX: usize = 400;

/// One value's share, so that a long text does not push the others out. Ids, addresses and titles are shorter.
const VALUE_CHARACTERS_MAX: usize = 120;

/// The subject inside a sentence, a list or a line of the journal, where something else is said besides.
const SHORT_CHARACTERS_MAX: usize = 80;

/// So many values are looked at for the ones that name a thing.
const VALUES_MAX: usize = 200;

/// The last word of names whose values tell one thing from another, singular or plural.
const IDENTITIES: [&str; 7] = ["id", "key", "number", "order", "invoice", "customer", "to"];

/// The subject of an intent in one line: `customer=cus_42 invoice=1001`, or the command line behind its `key`. Names of
/// things stand first, for a table cuts the end off. Secrets and control characters are left out.
pub fn subject(arguments: &Json, sorting: &Sorting, key: Option<&str>) -> String {
    let shown = redacted(arguments, &sorting.secret);
    let mut rest = shown.clone();
    for path in sorting.volatile.iter().chain(&sorting.content) {
        path.remove_from(rest.to_mut());
    }
    let mut line = String::new();
    // Commands of one line are told apart by it. At other doors libraries make one up for each request.
    if let Some(key) = key.filter(|_| shown.get("argv").is_some()) {
        line.push_str("key=");
        push_value(&mut line, &redacted(&Json::str(key), &[]));
        line.push(' ');
    }
    match (by_key(&shown, &rest, &sorting.key), rest.get("argv").and_then(Json::as_array)) {
        (Some(pairs), _) => line.push_str(&in_pairs(pairs)),
        (None, Some(argv)) => line.push_str(&command_line(argv, program(&shown))),
        (None, None) => line.push_str(&in_pairs(members(&rest))),
    }
    shorten(printable(line), SUBJECT_CHARACTERS_MAX)
}

/// A subject beside other words.
pub fn in_short(subject: &str) -> Cow<'_, str> {
    match subject.char_indices().nth(SHORT_CHARACTERS_MAX) {
        None => Cow::Borrowed(subject),
        Some(_) => Cow::Owned(shorten(subject.to_owned(), SHORT_CHARACTERS_MAX)),
    }
}

/// `name=value`, and whether it names a thing.
struct Pair {
    text: String,
    is_identity: bool,
}

/// The key fields, if there are any and all are there. What a field holds stands apart, and without what its rule
/// leaves out.
fn by_key(shown: &Json, rest: &Json, key: &[Path]) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    for path in key {
        let left = path.find(rest);
        let found = if left.is_empty() { path.find(shown) } else { left };
        let name = path.to_string();
        let name = name.strip_prefix("args.").unwrap_or(&name);
        match found.as_slice() {
            [] => return None,
            [(_, value @ Json::Object(_))] => push_values(&mut pairs, name, name, value),
            values => {
                let mut text = format!("{name}=");
                for (i, (_, value)) in values.iter().enumerate() {
                    if i > 0 {
                        text.push(',');
                    }
                    push_value(&mut text, value);
                }
                // The path of a request is seldom what it is about.
                pairs.push(Pair { text, is_identity: path.steps().len() > 1 });
            }
        }
    }
    (!pairs.is_empty()).then_some(pairs)
}

/// The members of `args`, then those of the other roots.
fn members(rest: &Json) -> Vec<Pair> {
    let mut pairs = Vec::new();
    match rest.get("args") {
        Some(args @ Json::Object(_)) => push_values(&mut pairs, "", "args", args),
        Some(args) => push_values(&mut pairs, "args", "args", args),
        None => {}
    }
    match rest {
        Json::Object(roots) => {
            for (root, value) in roots.iter().filter(|(root, _)| *root != "args") {
                let mut path = String::new();
                push_member(root, &mut path);
                push_values(&mut pairs, &path, root, value);
            }
        }
        value => {
            let mut text = String::new();
            push_value(&mut text, value);
            pairs.push(Pair { text, is_identity: false });
        }
    }
    pairs
}

/// A pair for each value that holds no other with a name. `name`: of the member in which it stands.
fn push_values(pairs: &mut Vec<Pair>, path: &str, name: &str, value: &Json) {
    if pairs.len() == VALUES_MAX {
        return;
    }
    let holds_names = |value: &Json| matches!(value, Json::Object(members) if !members.is_empty());
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (name, value) in members.iter() {
                let mut path = path.to_owned();
                push_member(name, &mut path);
                push_values(pairs, &path, name, value);
            }
        }
        Json::Array(elements) if elements.iter().any(holds_names) => {
            for (at, value) in elements.iter().enumerate() {
                push_values(pairs, &format!("{path}[{at}]"), name, value);
            }
        }
        Json::Object(_) if path.is_empty() => {}
        value => {
            let mut text = format!("{path}=");
            push_value(&mut text, value);
            pairs.push(Pair { text, is_identity: names_a_thing(name, value) });
        }
    }
}

/// Stamps and keys that are made anew for each attempt name the attempt.
fn names_a_thing(name: &str, value: &Json) -> bool {
    let is_last = |word: &String| {
        let known = |word: &str| IDENTITIES.contains(&word);
        known(word) || word.strip_suffix('s').is_some_and(known)
    };
    words(name).last().is_some_and(is_last)
        && !matches!(arguments::kind(name), ArgumentKind::Stamp | ArgumentKind::Volatile)
        && !arguments::names_nothing(value)
        && value.as_str() != Some(REDACTED)
}

fn in_pairs(pairs: Vec<Pair>) -> String {
    let (things, others): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(|pair| pair.is_identity);
    let texts: Vec<String> = things.into_iter().chain(others).map(|pair| pair.text).collect();
    texts.join(" ")
}

/// The name of a command's program, which its path does not change.
fn program(shown: &Json) -> Option<&str> {
    shown.get("argv")?.as_array()?.first()?.as_str()?.rsplit('/').next()
}

fn command_line(argv: &[Json], program: Option<&str>) -> String {
    let words = argv.iter().enumerate().map(|(at, argument)| match (argument, program) {
        (Json::String(text), _) => quoted_for_a_shell(text),
        (Json::Null, Some(program)) if at == 0 => quoted_for_a_shell(program),
        // A volatile position.
        (Json::Null, _) => "…".to_owned(),
        (other, _) => other.canonical(),
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
        subject(&parse(arguments).unwrap(), sorting, None)
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
        assert_eq!(subject_of(arguments, &sorting), "to=ann body=\"hello there\" token=[redacted]");
    }

    #[test]
    fn the_members_of_a_body_stand_apart_and_the_names_of_things_stand_first() {
        let request = r#"{"path":"/v1/refunds","body":{"amount":4900,"api_key":"k","fault":"500",
            "meta":{"request_id":"r1","customerId":"cus_1","parent_id":null},"order":"1001","lines":[{"sku":"a","id":7},
            {"id":8}],"tags":["x","y"],"idempotency_key":"i1"}}"#;
        assert_eq!(
            subject_of(request, &Sorting::default()),
            "body.lines[0].id=7 body.lines[1].id=8 body.meta.customerId=cus_1 body.order=1001 body.amount=4900 \
             body.api_key=[redacted] body.fault=500 body.idempotency_key=i1 body.lines[0].sku=a \
             body.meta.parent_id=null body.meta.request_id=r1 body.tags=[\"x\",\"y\"] path=/v1/refunds"
        );
        // A pack's rule that names the whole body.
        let sorting =
            Sorting { key: paths(&["path", "body"]), content: paths(&["body.note"]), ..Sorting::default() };
        let request = r#"{"path":"/v1/refunds","body":{"amount":4900,"note":"hello","order":"1001"}}"#;
        assert_eq!(subject_of(request, &sorting), "body.order=1001 path=/v1/refunds body.amount=4900");
    }

    #[test]
    fn a_thing_is_named_whole_however_much_is_said_besides() {
        let id = "x".repeat(100);
        let text = "word ".repeat(200);
        let arguments = format!(r#"{{"args":{{"note":"{text}","order_id":"{id}","title":"{text}"}}}}"#);
        let line = subject_of(&arguments, &Sorting::default());
        assert!(line.starts_with(&format!("order_id={id} note=")), "{line}");
        assert!(line.contains("… title="), "{line}");
        assert_eq!(in_short(&line).chars().count(), 80);
        assert_eq!(in_short("order=1001"), "order=1001");
    }

    #[test]
    fn a_command_shows_its_key_and_a_request_the_thing_that_it_is_about() {
        let key = |arguments: &str, key| subject(&parse(arguments).unwrap(), &Sorting::default(), Some(key));
        let refund = r#"{"argv":["./refund.sh","1001"],"cwd":"/w"}"#;
        assert_eq!(key(refund, "refund-1001"), "key=refund-1001 ./refund.sh 1001");
        let named = Sorting { volatile: paths(&["argv[0]"]), ..Sorting::default() };
        assert_eq!(subject_of(refund, &named), "refund.sh 1001", "under a key its path does not count");
        assert_eq!(key(refund, "for ann"), "key=\"for ann\" ./refund.sh 1001");
        assert_eq!(key(refund, "4242 4242 4242 4242"), "key=[redacted] ./refund.sh 1001");
        assert_eq!(key(r#"{"args":{"order":1001}}"#, "0199-made-up"), "order=1001");
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
            assert_eq!(subject_of(arguments, &Sorting::default()), "body.source=[redacted]");
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
                let line = subject(&Json::object([(root, json.clone())]), &Sorting::default(), Some("k"));
                prop_assert!(line.chars().count() <= SUBJECT_CHARACTERS_MAX);
                prop_assert!(!line.contains(char::is_control));
            }
        }
    }
}
