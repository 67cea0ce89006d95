//! The arguments of a call, sorted by their names.
//!
//! Only the exact name of an argument counts, in any spelling (`trace_id`, `traceId`, `trace-id`), and never the shape of
//! its value. A wrong merge pays or answers the wrong thing, so only names that cannot name an entity are ignored.

use crate::json::{Json, Path, PathStep, push_member};
use crate::word_table;

/// How an argument takes part in telling two calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgumentKind {
    /// Made anew for each attempt. Ignored.
    Volatile,
    /// Often made anew, and sometimes the entity itself. In the key, not in the outline.
    Stamp,
    /// A model may word it otherwise. In the key, not in the outline.
    Content,
    /// The name of the thing.
    Title,
    /// How much.
    Amount,
    /// The thread or message that is answered.
    Thread,
    /// The key.
    Other,
}

word_table!(ArgumentKind {
    Volatile = "volatile", Stamp = "stamp", Content = "content", Title = "title", Amount = "amount",
    Thread = "thread", Other = "key",
});

const NAMES: &[(ArgumentKind, &[&str])] = &[
    (
        ArgumentKind::Volatile,
        &[
            "idempotency_key",
            "idempotency_token",
            "idempotency_id",
            "client_token",
            "client_request_token",
            "client_request_id",
            "creator_request_id",
            "trace_id",
            "span_id",
            "traceparent",
            "requested_at",
        ],
    ),
    (
        ArgumentKind::Stamp,
        &[
            "timestamp",
            "request_id",
            "message_id",
            "transaction_id",
            "correlation_id",
            "nonce",
            "client_order_id",
            "created",
            "created_at",
            "sent_at",
            "uuid",
        ],
    ),
    (
        ArgumentKind::Content,
        &["body", "text", "message", "note", "memo", "description", "comment", "reason", "content"],
    ),
    (ArgumentKind::Title, &["title", "subject", "name", "summary"]),
    (ArgumentKind::Amount, &["price", "total", "sum", "cost", "fee", "quantity"]),
    (
        ArgumentKind::Thread,
        &[
            "thread",
            "thread_id",
            "thread_ts",
            "in_reply_to",
            "in_reply_to_id",
            "reply_to_id",
            "reply_to_message_id",
            "parent_id",
            "parent_message_id",
            "parent_comment_id",
            "conversation_id",
        ],
    ),
];

/// Names by which a call brings an idempotency key of its own among its arguments.
const OWN_KEYS: &[&str] =
    &["idempotency_key", "idempotency_token", "idempotency_id", "client_token", "client_request_token"];

/// Roots that hold the arguments of a call, as opposed to where it goes.
const ARGUMENT_ROOTS: &[&str] = &["args", "body", "query", "document", "argv", "stdin"];

pub fn kind(name: &str) -> ArgumentKind {
    // Each argument of each call is looked up, and most begin as few of the known ones do.
    let first = letters(name).next();
    let is_known = |known: &&str| known.bytes().next() == first && is_spelling_of(name, known);
    let known = NAMES.iter().find(|(_, names)| names.iter().any(is_known));
    match known {
        Some((kind, _)) => *kind,
        None if name.to_ascii_lowercase().contains("amount") => ArgumentKind::Amount,
        None => ArgumentKind::Other,
    }
}

/// Whether two names differ in case, `_` and `-` alone.
pub fn is_spelling_of(name: &str, known: &str) -> bool {
    letters(name).eq(letters(known))
}

fn letters(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| !b"_-".contains(byte)).map(|byte| byte.to_ascii_lowercase())
}

/// Whether an idempotency key may be given to a tool under this name.
pub fn is_own_key(name: &str) -> bool {
    OWN_KEYS.iter().any(|known| is_spelling_of(name, known))
}

/// The idempotency key that a call has among its arguments. A model made it up, so it can only add sameness.
pub fn own_key(arguments: &Json) -> Option<&str> {
    let roots = ["args", "body"].into_iter().filter_map(|root| arguments.get(root)?.as_object());
    let mut members = roots.flat_map(|members| members.iter());
    members.find_map(|(name, value)| value.as_str().filter(|text| !text.is_empty() && is_own_key(name)))
}

/// A value that holds no other, with the kind that its name gives it.
#[derive(Debug)]
pub struct Leaf<'a, 't> {
    pub trail: &'t [TrailStep<'a>],
    pub kind: ArgumentKind,
    pub value: &'a Json,
}

/// A step on the way to a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailStep<'a> {
    Member(&'a str),
    Element(usize),
}

impl Leaf<'_, '_> {
    fn path(&self) -> Path {
        let step = |turn: &TrailStep<'_>| match turn {
            TrailStep::Member(name) => PathStep::Member((*name).to_owned()),
            TrailStep::Element(index) => PathStep::Element(*index),
        };
        Path::of(self.trail.iter().map(step).collect())
    }

    /// Writes its path behind `out`, which is empty or a path that leads to where the walk began.
    pub fn write_path(&self, out: &mut String) {
        for turn in self.trail {
            match turn {
                TrailStep::Member(name) => push_member(name, out),
                TrailStep::Element(index) => out.push_str(&format!("[{index}]")),
            }
        }
    }
}

/// Calls `visit` for every leaf, in the order of the tree, until it says `false`. An empty array or object is a leaf.
pub fn each_leaf<'a>(arguments: &'a Json, visit: &mut dyn FnMut(Leaf<'a, '_>) -> bool) {
    walk(arguments, ArgumentKind::Other, &mut Vec::new(), visit);
}

fn walk<'a>(
    json: &'a Json,
    of: ArgumentKind,
    trail: &mut Vec<TrailStep<'a>>,
    visit: &mut dyn FnMut(Leaf<'a, '_>) -> bool,
) -> bool {
    let (is_root, is_argv) = (trail.is_empty(), *trail == [TrailStep::Member("argv")]);
    let mut deeper = |turn, of, value| {
        trail.push(turn);
        let goes_on = walk(value, of, trail, visit);
        trail.pop();
        goes_on
    };
    match json {
        Json::Object(members) if !members.is_empty() => {
            // A root says where arguments stand; what they are, their own names say.
            members.iter().all(|(name, value)| {
                deeper(TrailStep::Member(name), if is_root { ArgumentKind::Other } else { kind(name) }, value)
            })
        }
        Json::Array(elements) if !elements.is_empty() => {
            let mut flag = None;
            elements.iter().enumerate().all(|(index, value)| {
                let of = if is_argv { kind_of_word(value, &mut flag) } else { of };
                deeper(TrailStep::Element(index), of, value)
            })
        }
        value => visit(Leaf { trail, kind: of, value }),
    }
}

/// A command names its arguments by long flags: `--note TEXT` and `--note=TEXT`.
fn kind_of_word(word: &Json, flag: &mut Option<ArgumentKind>) -> ArgumentKind {
    let before = flag.take();
    let Some(long) = word.as_str().and_then(|word| word.strip_prefix("--")) else {
        return before.unwrap_or(ArgumentKind::Other);
    };
    match long.split_once('=') {
        Some((name, _)) => kind(name),
        None => {
            *flag = Some(kind(long));
            ArgumentKind::Other
        }
    }
}

/// The volatile arguments of a call; none where nothing else would be left of it.
pub fn volatile(arguments: &Json) -> Vec<Path> {
    let (mut volatile, mut is_left) = (Vec::new(), false);
    each_leaf(arguments, &mut |leaf| {
        match leaf.kind {
            ArgumentKind::Volatile => volatile.push(leaf.path()),
            _ => {
                let counts = match leaf.trail {
                    // The program and its flags say what is done, not to what.
                    [TrailStep::Member("argv"), TrailStep::Element(at)] => {
                        *at > 0 && !leaf.value.as_str().is_some_and(|word| word.starts_with('-'))
                    }
                    [TrailStep::Member(root), ..] => ARGUMENT_ROOTS.contains(root),
                    _ => false,
                };
                is_left |= counts && !names_nothing(leaf.value);
            }
        }
        true
    });
    if is_left { volatile } else { Vec::new() }
}

/// Whether a value cannot say which thing is meant.
pub fn names_nothing(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(_) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn kinds(arguments: &str) -> Vec<(String, ArgumentKind)> {
        let mut found = Vec::new();
        each_leaf(&parse(arguments).unwrap(), &mut |leaf| {
            found.push((leaf.path().to_string(), leaf.kind));
            true
        });
        found
    }

    #[test]
    fn names_are_exact_whatever_joins_their_words() {
        for name in ["idempotency_key", "idempotencyKey", "Idempotency-Key", "clientToken", "traceparent"] {
            assert_eq!(kind(name), ArgumentKind::Volatile, "{name}");
        }
        for name in ["request_id", "requestId", "createdAt", "uuid", "nonce"] {
            assert_eq!(kind(name), ArgumentKind::Stamp, "{name}");
        }
        for name in ["order_id", "client_id", "idempotency", "message_body", "ts", "name_of_user", "key", ""]
        {
            assert_eq!(kind(name), ArgumentKind::Other, "{name}");
        }
        assert_eq!(kind("subject"), ArgumentKind::Title);
        for name in ["amount", "unitAmount", "amount_due", "price"] {
            assert_eq!(kind(name), ArgumentKind::Amount, "{name}");
        }
        assert_eq!(kind("inReplyTo"), ArgumentKind::Thread);
    }

    #[test]
    fn every_known_name_is_found_in_every_spelling() {
        for (expected, names) in NAMES {
            for name in *names {
                let spellings =
                    [name.to_uppercase(), name.replace('_', "-"), format!("_{}", name.replace('_', ""))];
                assert!(spellings.iter().all(|spelling| kind(spelling) == *expected), "{name}");
            }
        }
    }

    #[test]
    fn a_leaf_is_named_by_its_own_member_and_a_root_names_nothing() {
        let found =
            kinds(r#"{"body":{"body":"hi","lines":[{"note":"n","id":7}],"text":["a","b"]},"path":"/x"}"#);
        let expected = [
            ("body.body", ArgumentKind::Content),
            ("body.lines[0].id", ArgumentKind::Other),
            ("body.lines[0].note", ArgumentKind::Content),
            ("body.text[0]", ArgumentKind::Content),
            ("body.text[1]", ArgumentKind::Content),
            ("path", ArgumentKind::Other),
        ];
        assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
        assert_eq!(kinds(r#"{"body":"hi"}"#), [("body".to_owned(), ArgumentKind::Other)]);
    }

    #[test]
    fn the_words_of_a_command_are_named_by_their_long_flags() {
        let found =
            kinds(r#"{"argv":["gh","issue","create","--title","T","--body","B","--trace-id=7","-m","x"]}"#);
        let kinds: Vec<ArgumentKind> = found.into_iter().map(|(_, kind)| kind).collect();
        use ArgumentKind::{Content, Other, Title, Volatile};
        assert_eq!(kinds, [Other, Other, Other, Other, Title, Other, Content, Volatile, Other, Other]);
    }

    #[test]
    fn volatile_arguments_are_found_at_any_depth_unless_nothing_else_is_left() {
        let found = |arguments: &str| -> Vec<String> {
            volatile(&parse(arguments).unwrap()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            found(r#"{"args":{"amount":1,"idempotencyKey":"k","meta":{"trace_id":"t"}}}"#),
            ["args.idempotencyKey", "args.meta.trace_id"]
        );
        assert_eq!(found(r#"{"args":{"client_token":"k","dry":true,"note":""}}"#), Vec::<String>::new());
        assert_eq!(found(r#"{"path":"/tokens","body":{"client_token":"k"}}"#), Vec::<String>::new());
    }

    #[test]
    fn a_key_among_the_arguments_is_found_where_a_model_writes_it() {
        let own = |arguments: &str| own_key(&parse(arguments).unwrap()).map(str::to_owned);
        assert_eq!(own(r#"{"args":{"amount":1,"idempotency_key":"k"}}"#).as_deref(), Some("k"));
        assert_eq!(own(r#"{"body":{"clientToken":"k"}}"#).as_deref(), Some("k"));
        assert_eq!(own(r#"{"args":{"idempotency_key":"","trace_id":"t"}}"#), None);
        assert_eq!(own(r#"{"args":{"nested":{"idempotency_key":"k"}}}"#), None);
    }
}
